"""What a rehearsal does with spool and store: the steps of a release, for a charge that no ledger has.

Its files are put in a place of their own, under a manifest that is marked and that no reader takes for a
release's, read back, and removed.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.errors import ReleaseMissingError, StoreError
from suffice.storage.ledger.charge import Charge, ChargeState, release_id
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.manifest import compose_manifest, rehearsal_manifest
from suffice.storage.releases.release_store import open_release
from suffice.storage.releases.store_identity import REHEARSALS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from suffice.pipeline.spec.plan import Plan
    from suffice.storage.ledger.charge import ChargeRequest
    from suffice.storage.objects.object_store import ObjectStore
    from suffice.storage.releases.manifest import DataFile
    from suffice.storage.releases.spool import SpoolEntry
    from suffice.storage.signatures.signing import Signer

_NO_HASH = "0" * 64


def rehearsed_charge(request: ChargeRequest, ledger_id: str, now: datetime) -> Charge:
    """Return a charge of a random id that stands in no ledger: what names files in a spool."""
    charge_id = secrets.token_hex(16)
    return Charge(
        charge_id=charge_id,
        release_id=release_id(ledger_id, charge_id),
        ledger_id=ledger_id,
        dataset=request.dataset,
        name=request.name,
        window=request.window,
        amendment=0,
        amends=None,
        attempt=1,
        epsilon=request.epsilon,
        state=ChargeState.RESERVED,
        marked=False,
        drew=False,
        epoch=1,
        lease_expires=now,
        holder_process="",
        spool=None,
        plan_hash=request.plan_hash,
        store_id=request.store_id,
        store_uri=request.store_uri,
        reserved_sequence=1,
        drawing_sequence=1,
        drawing_hash=_NO_HASH,
        manifest_sha256=None,
        manifest=None,
        created=now,
    )


def compose_rehearsal(
    plan: Plan,
    charge: Charge,
    files: Sequence[DataFile],
    *,
    public_n: int | None,
    signer: Signer | None,
) -> bytes:
    """Return the marked manifest of drawn files; without its mark readers would take it."""
    manifest = compose_manifest(
        plan,
        window=charge.window,
        amendment=0,
        amends=None,
        release_id=charge.release_id,
        public_n=public_n,
        input_verified=False,
        files=files,
        ledger_id=charge.ledger_id,
        drawing_sequence=1,
        drawing_hash=_NO_HASH,
        created=charge.created,
    )
    return rehearsal_manifest(manifest, signer)


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalPlace:
    """Where one rehearsal puts its files.

    Attributes
    ----------
    objects : ObjectStore
        The store's.
    store_uri, store_id : str
        Of the store; the id is made up where none stands there yet.
    name : str
        32 hex digits of the rehearsal's own.
    """

    objects: ObjectStore
    store_uri: str
    store_id: str
    name: str

    @property
    def uri(self) -> str:
        """Where they stand."""
        return f"{self.store_uri}/{REHEARSALS}{self.name}"

    def publish(self, entry: SpoolEntry, files: Sequence[DataFile]) -> None:
        """Put the files of a spool's entry and last its manifest, as publication does, and read them back.

        Raises
        ------
        SpoolError, StoreError
        """
        data = {file.path: entry.data(file.path, file.size) for file in files}
        for name, content in {**data, MANIFEST: entry.manifest()}.items():
            self.objects.put_new(self._key(name), content)
            if self.objects.get(self._key(name), at_most=len(content) + 1) != content:
                message = f"the store does not return what was put at {self.uri}/{name}"
                raise StoreError(message)

    def require_refused(self) -> None:
        """Check that what was put is no release to a reader.

        Raises
        ------
        StoreError
        """
        try:
            open_release(self.uri)
        except ReleaseMissingError:
            return
        message = f"a reader takes {self.uri} for a release: remove it, and do not publish with this suffice"
        raise StoreError(message)

    def remove(self, files: Sequence[DataFile]) -> bool:
        """Remove what was put, as far as this login may; return whether all of it is gone.

        Who may create and not delete is a good publisher: what stays is no release.
        """
        names = (MANIFEST, *(file.path for file in files))
        for name in names:
            with suppress(StoreError):
                self.objects.delete(self._key(name))
        with suppress(StoreError):
            return not self.objects.keys(f"{REHEARSALS}{self.name}/")
        return False

    def _key(self, name: str) -> str:
        return f"{REHEARSALS}{self.name}/{name}"
