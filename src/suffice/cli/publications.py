"""``suffice publications``: what was published, shown, checked and fetched."""

from __future__ import annotations

import os
import shutil
from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from suffice.cli import output
from suffice.cli.files import check_file, check_local
from suffice.cli.options import DEFAULT_STORE, JsonOption, PublicationKeyOption, StoreOption
from suffice.cli.output import in_line, note_resting, say
from suffice.cli.publication_output import print_publication, publication_document
from suffice.cli.trust import print_resting, verify_publication_of
from suffice.errors import StorageError, StoreError, UsageError
from suffice.pipeline.terms.declaration.documents import Count, Hour, LongId, ShortId, document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.storage.operations.withdrawing import RestingRelease
    from suffice.storage.publications.publication import Publication

app = typer.Typer(
    help="Publications: list, show, check and fetch them.", rich_markup_mode=None, no_args_is_help=True
)

PublicationArgument = Annotated[
    str, typer.Argument(metavar="PUBLICATION", help="An id, or the path or URI of its folder.")
]


class ListedPublication(TypedDict):
    """A publication; ``withdrawn`` names the releases that were, of those that it rests on."""

    publication_id: LongId
    title: str
    kind: str
    created: Hour
    files: Count
    signed_by: ShortId | None
    withdrawn: list[str]


class PublicationList(TypedDict):
    """What was published in a store, and what of it cannot be read."""

    uri: str
    publications: list[ListedPublication]
    problems: list[str]


class FetchedPublication(TypedDict):
    """The files of a publication, where they were copied to."""

    publication_id: LongId
    files: list[str]


@app.command("list")
def list_publications(
    store: StoreOption = DEFAULT_STORE,
    publication_keys: PublicationKeyOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """List what was published in a store; what cannot be read is named, and the status is 5."""
    from suffice.storage.operations.withdrawing import resting_releases
    from suffice.storage.publications.publication_store import PublicationStore, check_is_there

    publications = PublicationStore.open(store, publication_keys=publication_keys)
    check_is_there(publications)
    published: list[Publication] = []
    problems = []
    for publication_id in publications.ids():
        try:
            published += filter(None, [publications.find(publication_id)])
        except StoreError as error:
            problems.append(f"{publication_id}: {error}")
    resting = resting_releases(published, [])
    note_resting(resting.values())
    rows = [_row(publication, resting) for publication in published]
    if as_json:
        output.print_json(PublicationList(uri=publications.uri, publications=rows, problems=problems))
    else:
        if rows:
            output.print_rows([{**row, "withdrawn": ", ".join(row["withdrawn"])} for row in rows])
        else:
            say(f"no publications at {publications.uri}")
        for problem in problems:
            say(in_line(problem))
    if problems:
        raise typer.Exit(StorageError.exit_status)


@app.command()
def show(
    publication: PublicationArgument,
    store: StoreOption = DEFAULT_STORE,
    publication_keys: PublicationKeyOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show a publication: what was asked, what it rests on and whether that was withdrawn, its files."""
    from suffice.storage.operations.withdrawing import resting_releases

    shown = _opened(publication, store, publication_keys)
    resting = resting_releases([shown], [store])
    note_resting(resting.values())
    written = publication_document(shown)
    if as_json:
        output.print_json({**written, "releases": document(tuple(resting.values()))})
    else:
        print_publication(written)
        print_resting(resting.values())


@app.command()
def verify(
    publication: PublicationArgument,
    store: StoreOption = DEFAULT_STORE,
    publication_keys: PublicationKeyOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Check a publication's manifest, signature and files; say which of its releases was withdrawn."""
    from suffice.storage.publications.publication_store import locate_publication

    located = locate_publication(publication)
    place, publication_id = (store, publication) if located is None else (located[0].parent.uri, located[1])
    verify_publication_of(place, publication_id, publication_keys, releases=store, as_json=as_json)


@app.command()
def fetch(
    publication: PublicationArgument,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="A new folder for its files.")],
    store: StoreOption = DEFAULT_STORE,
    publication_keys: PublicationKeyOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Copy a publication's files into a new folder, each checked before it is written."""
    check_local("--out", out)
    if _exists(out):
        message = f"--out {out}: it exists, and is not replaced: name another place"
        raise UsageError(message)
    check_file("--out", out / "manifest.json", overwrite=False)
    fetched = _opened(publication, store, publication_keys)
    _copy(fetched, out)
    written = [str(out / path) for path in (*(file.path for file in fetched.files), "manifest.json")]
    if as_json:
        output.print_json(FetchedPublication(publication_id=fetched.publication_id, files=written))
    else:
        for path in written:
            say(f"wrote {path}")


def _row(publication: Publication, resting: Mapping[str, RestingRelease]) -> ListedPublication:
    stated = publication.stated
    on = [resting[release.manifest_sha256] for release in stated.head.releases]
    return {
        "publication_id": publication.publication_id,
        "title": stated.title,
        "kind": stated.head.kind,
        "created": stated.created,
        "files": len(stated.files),
        "signed_by": None if stated.signature is None else stated.signature.key_id,
        "withdrawn": [release.label for release in on if release.withdrawal is not None],
    }


def _copy(publication: Publication, out: Path) -> None:
    """Write a publication's files, one in memory at a time, and the manifest last; nothing stays of a half.

    Raises
    ------
    UsageError
        Where the folder cannot be written.
    PublicationCorruptError, StoreError
        Where a file is missing, or is not what was published.
    """
    message = f"--out {out}: its files cannot be written"
    try:
        out.mkdir(parents=True)
    except (OSError, ValueError):
        raise UsageError(message) from None
    try:
        for file in publication.files:
            (out / file.path).write_bytes(publication.read(file.name))
        (out / "manifest.json").write_bytes(publication.data)
    except BaseException as error:
        shutil.rmtree(out, ignore_errors=True)
        if isinstance(error, OSError) and not isinstance(error, StorageError):
            raise UsageError(message) from None
        raise


def _exists(path: Path) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:  # a path may hold what no file system takes
        return False


def _opened(reference: str, store: str, publication_keys: list[str] | None) -> Publication:
    from suffice.storage.publications.publication_store import open_publication

    return open_publication(reference, store=store, publication_keys=publication_keys)
