"""``suffice.json``: which ledger a store belongs to, and which store it is. Written once, for good.

Releases stand in a store by their ids, markers by their sequences.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.errors import ObjectExistsError, StoreError, WrongStoreError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.objects.object_store import check_create_only, check_create_only_by
from suffice.storage.releases.manifest_model import FORMAT_VERSION

if TYPE_CHECKING:
    from suffice.storage.objects.object_store import ObjectStore

MARKERS = "charges/"
"""Where markers stand. A release may have this name too: no window's label has three digits."""

REHEARSALS = "rehearsals/"
"""Where rehearsals put what they try to publish. A release may have this name too: as for markers."""

_RELEASE_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)
_MARKER = re.compile(r"charges/([0-9]{3})/([0-9]{3})/([0-9]{3})/([0-9]{3})", re.ASCII)
_REHEARSED = re.compile(r"rehearsals/[0-9a-f]{32}/[^/]+", re.ASCII)
_DIGITS = 12
LARGEST_SEQUENCE = 10**_DIGITS - 1


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a charge puts what it releases: name, edition of a window, release id."""

    name: str
    edition: str
    release_id: str

    @property
    def key(self) -> str:
        """The prefix of its keys, without the last slash."""
        return f"{self.name}/{self.edition}/{self.release_id}"


def read_place(key: str) -> tuple[Place, str] | None:
    """Return the place that a key stands in, and its name there; None where it is of no release."""
    parts = key.split("/", 3)
    if len(parts) != 4 or not _RELEASE_ID.fullmatch(parts[2]):
        return None
    return Place(*parts[:3]), parts[3]


def marker_key(sequence: int) -> str:
    """Return where a charge's marker stands: 12 digits in four groups, so that no directory grows large.

    Examples
    --------
    >>> marker_key(1234567)
    'charges/000/001/234/567'
    """
    digits = f"{sequence:0{_DIGITS}d}"
    return MARKERS + "/".join(digits[start : start + 3] for start in range(0, _DIGITS, 3))


def marker_sequence(key: str) -> int | None:
    """Return the sequence of the marker at a key; None where no marker stands there."""
    parts = _MARKER.fullmatch(key)
    return int("".join(parts.groups())) if parts else None


def is_rehearsed(key: str) -> bool:
    """Tell whether an object was put by a rehearsal: it belongs to no release."""
    return _REHEARSED.fullmatch(key) is not None


KEY = "suffice.json"

_LARGEST = 4096
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreIdentity:
    """Who a store is.

    Attributes
    ----------
    store_id, ledger_id : str
        32 hex digits each.
    """

    store_id: str
    ledger_id: str


def read_identity(objects: ObjectStore, uri: str) -> StoreIdentity | None:
    """Return the identity of the store that stands at `uri`, or None where none does.

    Raises
    ------
    StoreError
        Where it cannot be read, or does not say whose store it is.
    """
    data = objects.get(KEY, at_most=_LARGEST)
    if data is None:
        return None
    try:
        content = canonical_json.decode(data)
    except ValueError:
        content = None
    if isinstance(content, dict) and content.get("format_version", FORMAT_VERSION) != FORMAT_VERSION:
        message = f"the store {uri} has a format that this suffice does not know: upgrade it"
        raise StoreError(message)
    if (
        not isinstance(content, dict)
        or content.keys() != {"format_version", "ledger_id", "store_id"}
        or not all(_ID.fullmatch(str(content[key])) for key in ("ledger_id", "store_id"))
    ):
        message = f"{uri}/{KEY} is corrupt: it does not say which ledger the store belongs to"
        raise StoreError(message)
    return StoreIdentity(store_id=content["store_id"], ledger_id=content["ledger_id"])


def claim_store(
    objects: ObjectStore, uri: str, ledger_id: str, *, create: bool, probe: bool = True
) -> StoreIdentity | None:
    """Return the identity of a store that a ledger may write to, or None where none stands there.

    Parameters
    ----------
    objects : ObjectStore
    uri : str
        For messages.
    ledger_id : str
        The ledger that is to write.
    create : bool
        Make the store where there is none.
    probe : bool
        Ask a store that stands there already whether it creates objects only once.

    Raises
    ------
    WrongStoreError
        Where the store belongs to another ledger, or holds releases or markers, and nothing says whose;
        nothing was written to it.
    StoreError
        Where it cannot be written, replaces objects, or does not show what was written.
    """
    identity = read_identity(objects, uri)
    if identity is None and not create:
        return None
    if identity is not None:
        _check_owner(identity, uri, ledger_id)
    else:
        require_empty(objects, uri)
    if identity is not None and probe:
        check_create_only_by(objects, uri, KEY)
    if identity is None:
        check_create_only(objects, uri)
        return write_identity(objects, uri, store_id=secrets.token_hex(16), ledger_id=ledger_id)
    return identity


def write_identity(objects: ObjectStore, uri: str, *, store_id: str, ledger_id: str) -> StoreIdentity:
    """Put ``suffice.json`` where there is none; return what stands there then, another run's if it was first.

    Raises
    ------
    WrongStoreError
        Where another ledger was first.
    StoreError
        Where it cannot be written, or is not shown.
    """
    content = {"format_version": FORMAT_VERSION, "ledger_id": ledger_id, "store_id": store_id}
    with contextlib.suppress(ObjectExistsError):
        objects.put_new(KEY, canonical_json.encode(content))
    identity = read_identity(objects, uri)
    if identity is None:
        message = f"the store {uri} does not show what was written to it"
        raise StoreError(message)
    _check_owner(identity, uri, ledger_id)
    return identity


def require_empty(objects: ObjectStore, uri: str) -> None:
    """Refuse to make a store of a place that was one: its releases would belong to no store then."""
    for key in objects.keys_after("", ""):
        if read_place(key) is not None or marker_sequence(key) is not None:
            message = (
                f"{uri} holds releases, and its suffice.json, which says whose they are, is gone: "
                f"`suffice store adopt {uri} --ledger URL` with the ledger that paid for them puts it back"
            )
            raise WrongStoreError(message)


def _check_owner(identity: StoreIdentity, uri: str, ledger_id: str) -> None:
    if identity.ledger_id != ledger_id:
        message = (
            f"the store {uri} belongs to ledger {identity.ledger_id}, not to this ledger, {ledger_id}: "
            "name another --store"
        )
        raise WrongStoreError(message)
