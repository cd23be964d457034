"""A release's words for the public, ``about-N.json``: put beside its manifest, the largest N counts.

Nothing in a store is replaced. Mended words are another file, which names the one before by its SHA-256, so
that none can be put in between.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError

from suffice.errors import ReleaseCorruptError, UsageError
from suffice.pipeline.spec.about import LARGEST_ABOUT, NOTHING, About, is_small, misfit, read_about
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.releases.manifest_model import Hex16, Hex64, Hour, SignatureEntry, StrictModel
from suffice.storage.signatures.signing import ABOUT, check_signature

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from suffice.storage.objects.object_store import ObjectStore
    from suffice.storage.releases.manifest_model import Manifest
    from suffice.storage.signatures.signing import PublicKey, Signer

MOST_WORDINGS = 99
"""Of one release: a reader asks for one after the other."""
_FORMAT_VERSION = 1


class StatedAbout(StrictModel):
    """What ``about-N.json`` states, of format 1."""

    format_version: Literal[1]
    release_id: Hex16
    manifest_sha256: Hex64
    number: Annotated[int, Field(ge=1, le=MOST_WORDINGS)]
    replaces: Hex64 | None
    created: Hour
    about: dict[str, Any]
    checksum: Hex64
    signature: SignatureEntry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The words of a release, as they stand beside its manifest.

    Attributes
    ----------
    about : About
        Nothing where there are none.
    files : tuple of bytes
        All of them, the oldest first.
    """

    about: About = NOTHING
    files: tuple[bytes, ...] = ()

    @property
    def number(self) -> int:
        """How often the release was described."""
        return len(self.files)

    @property
    def ever(self) -> tuple[About, ...]:
        """All words that the release ever had, the newest first; nothing is the last."""
        earlier = []
        for data in self.files[-2::-1]:
            with contextlib.suppress(ValueError, KeyError, TypeError):  # only the newest was checked
                content: Any = canonical_json.decode(data)
                earlier.append(read_about(content["about"]))
        return (self.about, *earlier, NOTHING) if self.files else (NOTHING,)


def about_name(number: int) -> str:
    """Return the name of a release's words."""
    return f"about-{number}.json"


def compose_about(
    manifest: bytes,
    release_id: str,
    about: About,
    standing: Wording,
    *,
    created: datetime,
    signer: Signer | None = None,
) -> bytes:
    """Return the exact bytes of words that follow others.

    Parameters
    ----------
    manifest : bytes
        Of the release.
    release_id : str
    about : About
    standing : Wording
        What stands there now.
    created : datetime
        Aware; only its hour, in UTC, is published.
    signer : Signer, optional
        The one that signs releases.

    Raises
    ------
    UsageError
        Where the words take too much room, or it was described too often.
    """
    if standing.number >= MOST_WORDINGS:
        message = f"a release is described {MOST_WORDINGS} times at most"
        raise UsageError(message)
    if not is_small(about):
        message = f"the words take more than {LARGEST_ABOUT // 2} bytes: shorten descriptions"
        raise UsageError(message)
    content: dict[str, Any] = {
        "format_version": _FORMAT_VERSION,
        "release_id": release_id,
        "manifest_sha256": _sha256(manifest),
        "number": standing.number + 1,
        "replaces": _sha256(standing.files[-1]) if standing.files else None,
        "created": created.astimezone(UTC).strftime("%Y-%m-%dT%HZ"),
        "about": about.document(),
        "checksum": None,
        "signature": None,
    }
    content["checksum"] = _sha256(canonical_json.encode(content))
    if signer is not None:
        content["signature"] = signer.sign(content, ABOUT)
    return canonical_json.encode(content)


def beside(objects: ObjectStore, prefix: str = "") -> Callable[[str], bytes | None]:
    """Return what reads the files beside a manifest, whose keys have this prefix."""
    return lambda name: objects.get(f"{prefix}{name}", at_most=LARGEST_ABOUT + 1)


def read_wording(
    get: Callable[[str], bytes | None], data: bytes, manifest: Manifest, keys: Sequence[PublicKey] | None
) -> Wording:
    """Return the newest words beside a manifest; they may be hostile.

    Parameters
    ----------
    get : callable
        Returns at least the first `LARGEST_ABOUT` + 1 bytes of a file beside the manifest, or None.
    data : bytes
        Of the manifest.
    manifest : Manifest
        Read from them.
    keys : sequence of PublicKey, optional
        What the reader demands of releases, and so of their words.

    Raises
    ------
    ReleaseCorruptError
        Where something else stands there.
    SignatureError
        Where none of the keys signed them.
    """
    files: list[bytes] = []
    while len(files) < MOST_WORDINGS and (words := get(about_name(len(files) + 1))) is not None:
        files.append(words)
    about = parse_about(files, data, manifest, keys) if files else NOTHING
    return Wording(about=about, files=tuple(files))


def parse_about(
    files: Sequence[bytes], data: bytes, manifest: Manifest, keys: Sequence[PublicKey] | None
) -> About:
    """Read the last of a release's files of words; terms and errors are those of :func:`read_wording`."""
    name, newest = about_name(len(files)), files[-1]
    try:
        content: Any = canonical_json.decode(newest) if len(newest) <= LARGEST_ABOUT else None
        stated = StatedAbout.model_validate(content)
        about = read_about(stated.about)
    except (ValueError, ValidationError):
        raise _corrupt(name, f"holds no words of format {_FORMAT_VERSION}") from None
    if stated.checksum != _sha256(canonical_json.encode({**content, "checksum": None, "signature": None})):
        raise _corrupt(name, "does not have the checksum that it states")
    if (stated.release_id, stated.manifest_sha256) != (manifest.release_id, _sha256(data)):
        raise _corrupt(name, "is of another release")
    if stated.number != len(files) or stated.replaces != (_sha256(files[-2]) if files[1:] else None):
        raise _corrupt(name, "does not follow the words before it")
    check_words(about, manifest, name)
    if keys is not None:
        check_signature(content, keys, ABOUT)
    elif stated.signature is None and manifest.signature is not None:
        raise _corrupt(name, "is not signed, and the release is")
    return about


def check_words(about: About, manifest: Manifest, name: str = "") -> None:
    """Refuse words for what a release does not have.

    Raises
    ------
    ReleaseCorruptError
        Where they stand in a file of this name.
    UsageError
        Where they stand in none.
    """
    plans = {each.name: each for each in manifest.plan.statistics}
    other = misfit(
        about, plans, lambda name: (plans[name].family, plans[name].parameters), manifest.plan.key_columns
    )
    if other is None:
        return
    place, rule = other
    if name:
        raise _corrupt(name, "has words for what the release does not have")
    message = f"about.{'.'.join(place)}: {rule}"
    raise UsageError(message)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _corrupt(name: str, rule: str) -> ReleaseCorruptError:
    return ReleaseCorruptError(f"the file {name} beside the release's manifest {rule}")
