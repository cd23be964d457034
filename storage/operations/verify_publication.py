"""Verify a publication: its manifest, its signature, its files, and what else stands in its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.errors import PublicationCorruptError, SignatureError
from suffice.pipeline.terms.declaration.wording import counted
from suffice.storage.publications.layout import MANIFEST, RECEIPT, read_path
from suffice.storage.signatures.signing import signature_status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.storage.publications.publication import Publication
    from suffice.storage.publications.publication_store import PublicationStore
    from suffice.storage.signatures.signing import SignatureStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationVerification:
    """What a verification of a publication found.

    Attributes
    ----------
    problems : tuple of str
        One sentence each.
    files : int
        How many the manifest names.
    left : int
        Whole files that it does not name: another writer of the same request was first, or one began anew.
    signature : str
        As for a release.
    publication : Publication or None
        None where its manifest cannot be read.
    """

    problems: tuple[str, ...]
    files: int
    left: int
    signature: SignatureStatus
    publication: Publication | None

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.problems


def verify_publication(store: PublicationStore, publication_id: str) -> PublicationVerification:
    """Check every file of a publication; whatever bytes stand there, this returns.

    Parameters
    ----------
    store : PublicationStore
        Its keys are those that are demanded.
    publication_id : str

    Raises
    ------
    UsageError
        Where the id is none.
    StoreError
        Where the store cannot be read.
    """
    status: SignatureStatus = "not_checked"
    files = left = 0
    found: Publication | None = None
    try:
        found = store.find(publication_id)
    except (PublicationCorruptError, SignatureError) as error:
        problems = [str(error)]
    else:
        if found is None:
            n_files = counted(len(store.objects.names(f"{publication_id}/")), "file")
            problems = [f"it has no manifest, so nothing was published: {n_files}; the same request goes on"]
        else:
            status = signature_status(found.manifest, checked=store.keys is not None)
            files = len(found.files)
            problems = list(_check_files(found))
            strange, left = _look_around(store, found)
            problems += strange
    return PublicationVerification(
        problems=tuple(problems), files=files, left=left, signature=status, publication=found
    )


def _check_files(publication: Publication) -> Iterator[str]:
    for file in publication.files:
        try:
            publication.read(file.name)
        except PublicationCorruptError as error:
            yield str(error)


def _look_around(store: PublicationStore, publication: Publication) -> tuple[list[str], int]:
    """Name what no writer puts there, and count the whole files that the manifest does not name."""
    problems, left = [], 0
    named = {MANIFEST, *(file.path for file in publication.files)}
    prefix = f"{publication.publication_id}/"
    for key in store.objects.keys(prefix):
        path = key.removeprefix(prefix)
        if path in named:
            continue
        if read_path(path) is None:
            problems.append(f"{path!r} is beside the manifest, and is no published file")
        elif store.read_file(publication.publication_id, path) is None:
            problems.append(f"{path} holds other bytes than its name says")
        elif not path.endswith(f"-{RECEIPT}"):
            left += 1
    return problems, left
