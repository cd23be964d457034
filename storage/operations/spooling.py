"""From noisy blocks to files in the spool, while the noise is drawn.

A rehearsal takes the same steps with spool and store, for a charge that no ledger has. Its files are put in a
place of their own, under a manifest that is marked and that no reader takes for a release's, read back, and
removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from suffice.errors import ReleaseMissingError, StoreError
from suffice.storage.ledger.charge import Charge, ChargeState, release_id
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.manifest import DataFile, compose_manifest, rehearsal_manifest
from suffice.storage.releases.release_parquet import StatisticWriter, encoded_size
from suffice.storage.releases.release_store import open_release
from suffice.storage.releases.store_identity import REHEARSALS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.storage.ledger.charge import ChargeRequest
    from suffice.storage.objects.object_store import ObjectStore
    from suffice.storage.releases.spool_entry import SpoolEntry, SpoolFile
    from suffice.storage.signatures.signing import Signer

    Blocks = Iterable[tuple[str, NDArray[Any]]]

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
        loss=request.loss,
        state=ChargeState.RESERVED,
        marked=False,
        drew=False,
        epoch=1,
        lease_expires=now,
        holder_process="",
        run="0" * 16,
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


_SIGNATURE_ROOM = 4096
"""Bytes of a manifest's signature with all that names its key."""

_LONGEST_HASH = "f" * 64


def spool_sizes(plan: Plan, charge: Charge, created: datetime) -> dict[str, int]:
    """Return how many bytes each file of a release may have, by name; no data and no noise are needed.

    Data files have exactly these sizes; the manifest has at most its own, which differ only in how many
    digits some numbers have.
    """
    files = [
        DataFile(
            statistic=statistic.name,
            path=file_name(statistic),
            size=encoded_size(statistic),
            sha256=_LONGEST_HASH,
            rows=statistic.n_cells * statistic.n_values,
        )
        for statistic in plan.statistics
    ]
    manifest = compose_manifest(
        plan,
        window=charge.window,
        amendment=charge.amendment,
        amends=charge.amends,
        release_id=charge.release_id,
        public_n=plan.max_total_rows if plan.n_is_public else None,
        files=files,
        ledger_id=charge.ledger_id,
        drawing_sequence=2**53 - 1,
        drawing_hash=_LONGEST_HASH,
        created=created,
        input_verified=False,
        contract=_LONGEST_HASH,
        audit=_LONGEST_HASH,
    )
    return {**{file.path: file.size for file in files}, MANIFEST: len(manifest) + _SIGNATURE_ROOM}


def spool_files(entry: SpoolEntry, plan: Plan, blocks: Blocks) -> list[DataFile]:
    """Write the data files of a release, block after block, each durable once it is whole.

    Parameters
    ----------
    entry : SpoolEntry
        With room for them.
    plan : Plan
    blocks : iterable of (str, ndarray)
        The name of a statistic and its next cells, shape (some cells, n_values), in lattice units; in
        the plan's order of statistics. Each array is overwritten once its values are taken.

    Returns
    -------
    list of DataFile
        In that order.

    Raises
    ------
    SpoolError
        Where they cannot be written.
    ValueError
        Where the blocks are not the plan's.
    """
    statistics = iter(plan.statistics)
    files: list[DataFile] = []
    current = ""
    with contextlib.ExitStack() as stack:
        for name, block in blocks:
            if name != current:
                stack.close()
                statistic = next(statistics, None)
                if statistic is None or statistic.name != name:
                    message = "the blocks are not in the order of the plan"
                    raise ValueError(message)
                writer = stack.enter_context(_writing(entry, statistic, files))
                current = name
            writer.write(block)
            block.fill(0)
        stack.close()
    if next(statistics, None) is not None:
        message = "the blocks end before the plan does"
        raise ValueError(message)
    return files


def file_name(statistic: StatisticPlan) -> str:
    """Return the name of a statistic's file beside the manifest."""
    return f"{statistic.name}.parquet"


class _Sink:
    """A file that pyarrow writes to, hashed on the way."""

    closed = False

    def __init__(self, file: SpoolFile) -> None:
        self._file = file
        self.size = 0
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        """Write all of the bytes."""
        self._file.write(data)
        self.digest.update(data)
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: nothing waits here."""

    def close(self) -> None:
        """Leave the file to whoever opened it."""


@contextlib.contextmanager
def _writing(entry: SpoolEntry, statistic: StatisticPlan, files: list[DataFile]) -> Iterator[StatisticWriter]:
    """Write one data file; add it to `files` once it is whole and durable."""
    path = file_name(statistic)
    with entry.writing(path) as file:
        sink = _Sink(file)
        writer = StatisticWriter(statistic, pa.PythonFile(sink, mode="w"))
        try:
            yield writer
            writer.close()
        finally:
            writer.abandon()
    files.append(
        DataFile(
            statistic=statistic.name,
            path=path,
            size=sink.size,
            sha256=sink.digest.hexdigest(),
            rows=statistic.n_cells * statistic.n_values,
        )
    )
