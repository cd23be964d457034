"""``suffice.json``: which ledger a store belongs to, and which store it is. Written once, for good."""

from __future__ import annotations

import contextlib
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.errors import ObjectExistsError, StoreError, WrongStoreError
from suffice.storage.objects.probe import check_create_only
from suffice.storage.releases.manifest_model import FORMAT_VERSION
from suffice.storage.signatures import canonical_json

if TYPE_CHECKING:
    from suffice.storage.objects.object_store import ObjectStore

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
        Where the store belongs to another ledger; nothing was written to it.
    StoreError
        Where it cannot be written, replaces objects, or does not show what was written.
    """
    identity = read_identity(objects, uri)
    if identity is None and not create:
        return None
    if identity is not None:
        _check_owner(identity, uri, ledger_id)
    if identity is None or probe:
        check_create_only(objects, uri)
    if identity is None:
        content = {
            "format_version": FORMAT_VERSION,
            "ledger_id": ledger_id,
            "store_id": secrets.token_hex(16),
        }
        with contextlib.suppress(ObjectExistsError):  # another run of some ledger was first: its file counts
            objects.put_new(KEY, canonical_json.encode(content))
        identity = read_identity(objects, uri)
        if identity is None:
            message = f"the store {uri} does not show what was written to it"
            raise StoreError(message)
        _check_owner(identity, uri, ledger_id)
    return identity


def _check_owner(identity: StoreIdentity, uri: str, ledger_id: str) -> None:
    if identity.ledger_id != ledger_id:
        message = (
            f"the store {uri} belongs to ledger {identity.ledger_id}, not to this ledger, {ledger_id}: "
            "name another --store"
        )
        raise WrongStoreError(message)
