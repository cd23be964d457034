"""One release, from spec to manifest: the plain function that orders ledger, engine, mechanism and store.

The order is the guarantee. Everything that can be refused is refused before the charge is reserved; the
charge is durably in ``drawing`` before noise is drawn; from then on, unknown means spent. What happens
to a charge after a failure depends only on how far it came::

    reserved   fails -> abandoned, epsilon returned
    drawing    fails -> tombstone in the store, abandoned, epsilon spent
    staged     fails -> stays staged; the same command again publishes the very same bytes
"""

from __future__ import annotations

import contextlib
import importlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.errors import (
    ChargeLostError,
    ClusterError,
    LedgerError,
    MissingExtraError,
    ReleaseInterruptedError,
    StageFailedError,
    StorageError,
    SufficeError,
    UsageError,
)
from suffice.guarding import deferred_interrupts, heartbeat
from suffice.pipeline.declaration.exact_numbers import format_epsilon
from suffice.pipeline.spec.plan import Plan, compile_plan
from suffice.pipeline.spec.spec import ALL, Spec, check_window, require_spec
from suffice.storage.ledger.charge import Charge, ChargeRequest, ChargeState
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.ledger.rerun import Decision, decide_rerun, spent_error
from suffice.storage.operations.settling import abandon, publish, remove_orphans, settle
from suffice.storage.operations.verify_ledger import refuse_older_ledger
from suffice.storage.releases.manifest import compose_manifest
from suffice.storage.releases.release_parquet import encode_statistic
from suffice.storage.releases.release_store import ReleaseStore, open_release, open_store
from suffice.storage.signatures.signing import signer_from_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.chunk.partition import ChunkJob
    from suffice.pipeline.pooling.release import Release
    from suffice.pipeline.reduce.cluster import Cluster
    from suffice.pipeline.sources.contract import Pin, Split
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.signatures.signing import Signer

    Progress = Callable[[int, int], None]

PUBLISHED = "published"
ALREADY_PUBLISHED = "already_published"
DEFAULT_STORE = "releases"
DEFAULT_LEDGER = "sqlite:///ledger.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run did.

    Attributes
    ----------
    release : Release
        The published release.
    status : str
        ``published``, or ``already_published`` where the same key had been published before: then no
        data were read and nothing was charged.
    remaining_epsilon : str
        What the account has left, decimal text.
    """

    release: Release
    status: str
    remaining_epsilon: str


def run_release(
    spec: Spec,
    store: str | os.PathLike[str] | None = None,
    ledger: str | None = None,
    cluster: str = "threads",
    window: str = ALL,
    *,
    new_attempt: bool = False,
    progress: Progress | None = None,
) -> Release:
    """Charge the ledger, compute exact statistics, add noise once, publish; return the release.

    Running it again with the same spec returns the published release, reads no data and charges nothing.

    Parameters
    ----------
    spec : Spec
        From :func:`suffice.load_spec`.
    store : str, optional
        URI of the release store; ``SUFFICE_STORE`` or ``releases`` otherwise.
    ledger : str, optional
        URL of the privacy ledger; ``SUFFICE_LEDGER`` or ``sqlite:///ledger.db`` otherwise.
    cluster : str
        ``threads``, ``local``, or the address of a Dask scheduler inside the trust boundary.
    window : str
        The label of the period released, for a spec with windows; else ``all``.
    new_attempt : bool
        Charge again after an attempt whose epsilon was spent without a release.
    progress : callable, optional
        Called with the number of finished tasks and of all tasks.

    Returns
    -------
    Release

    Raises
    ------
    SpecError, SpecChangedError, NameTakenError
        Nothing was charged.
    AccountError
        The account refuses; nothing was read, nothing was charged.
    SchemaError
        Columns are missing or of the wrong type family; nothing was charged.
    StorageError
        The store or the ledger; where it came after the reservation, the text states the charge's state.
    StageFailedError
        A stage failed after the reservation.
    """
    outcome = carry_out(
        spec,
        store=None if store is None else os.fspath(store),
        ledger=ledger,
        cluster=cluster,
        window=window,
        new_attempt=new_attempt,
        progress=progress,
    )
    return outcome.release


def carry_out(
    spec: Spec,
    *,
    store: str | None = None,
    ledger: str | None = None,
    cluster: str = "threads",
    window: str = ALL,
    new_attempt: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Do what :func:`run_release` does, and say also whether it was done before and what remains."""
    require_spec(spec)
    if ledger is not None and not isinstance(ledger, str):
        message = "the ledger is named by a URL, as sqlite:///ledger.db"
        raise UsageError(message)
    window = check_window(spec, window)
    plan = compile_plan(spec)
    signer = signer_from_environment()
    with open_ledger(ledger or os.environ.get("SUFFICE_LEDGER") or DEFAULT_LEDGER) as opened:
        run = _Run(
            spec=spec,
            plan=plan,
            window=window,
            ledger=opened,
            store=open_store(
                store or os.environ.get("SUFFICE_STORE") or DEFAULT_STORE,
                ledger_id=opened.ledger_id,
                create=True,
            ),
            new_attempt=new_attempt,
            signer=signer,
        )
        refuse_older_ledger(opened, run.store)
        charge, status = run.earlier()
        if charge is None:
            opened.check(run.request)
            charge, status = run.fresh(cluster, progress)
        remaining = opened.remaining(spec.dataset, window)
        return Outcome(
            release=open_release(run.store.release_uri(charge.name, charge.window, charge.release_id)),
            status=status,
            remaining_epsilon=format_epsilon(remaining),
        )


class _Run:
    """One run for one key (dataset, name, window), with its ledger and its store."""

    def __init__(
        self,
        *,
        spec: Spec,
        plan: Plan,
        window: str,
        ledger: Ledger,
        store: ReleaseStore,
        new_attempt: bool,
        signer: Signer | None,
    ) -> None:
        self.spec = spec
        self.plan = plan
        self.window = window
        self.ledger = ledger
        self.store = store
        self.new_attempt = new_attempt
        self.signer = signer
        self.request = ChargeRequest(
            dataset=spec.dataset,
            name=spec.name,
            window=window,
            epsilon=plan.epsilon,
            neighboring=str(plan.neighboring),
            unit=plan.unit,
            grid=plan.grid,
            source=spec.source_address,
            plan_json=plan.canonical,
            plan_hash=plan.plan_hash,
            store_id=store.store_id,
            store_uri=store.uri,
        )

    def earlier(self) -> tuple[Charge | None, str]:
        """Settle what an earlier run of the same key left: its charge where it is published now."""
        charge = self.ledger.find(self.spec.dataset, self.spec.name, self.window)
        return self._settle(charge)

    def fresh(self, address: str, progress: Progress | None) -> tuple[Charge, str]:
        """Reserve, read, draw once, write, stage and publish."""
        _require_engine()
        from suffice.pipeline import sources  # noqa: PLC0415 - reruns and refusals need no engine
        from suffice.pipeline.chunk.partition import chunk_job  # noqa: PLC0415
        from suffice.pipeline.reduce.cluster import open_cluster  # noqa: PLC0415
        from suffice.pipeline.sources.schema_check import check_schema  # noqa: PLC0415

        with open_cluster(address) as cluster:
            pin = sources.pin(self.spec)
            check_schema(self.spec, sources.schema(pin))
            splits = sources.splits(pin)
            job = chunk_job(self.spec, self.window)
            charge = self.ledger.reserve(self.request, new_attempt=self.new_attempt)
            if charge.state is not ChargeState.RESERVED:  # another run of the same key came first
                settled, status = self._settle(charge)
                if settled is None:
                    raise spent_error(charge)
                return settled, status
            with heartbeat(self.ledger, charge):
                return self._release(charge, cluster, pin, splits, job, progress), PUBLISHED

    def _settle(self, charge: Charge | None) -> tuple[Charge | None, str]:
        """Act on the rerun rules: publish what is staged, fence off what expired after its draw."""
        decision = decide_rerun(
            charge,
            self.request,
            now=self.ledger.now(),
            new_attempt=self.new_attempt,
            plan_of=self.ledger.plan,
        )
        if charge is None or decision in {Decision.START, Decision.TAKE_OVER}:
            return None, ""
        if decision is Decision.ALREADY_PUBLISHED:
            return charge, ALREADY_PUBLISHED
        charge = settle(self.ledger, self.store, charge)
        if charge.state is ChargeState.PUBLISHED:
            return charge, PUBLISHED
        self._clean_up(charge)
        if charge.drew and not self.new_attempt:
            raise spent_error(charge)
        return None, ""

    def _release(
        self,
        charge: Charge,
        cluster: Cluster,
        pin: Pin,
        splits: Sequence[Split],
        job: ChunkJob,
        progress: Progress | None,
    ) -> Charge:
        """Carry a reserved charge to its end, whatever happens on the way."""
        from suffice.pipeline import sources  # noqa: PLC0415
        from suffice.pipeline.mechanism.mechanism import privatize  # noqa: PLC0415
        from suffice.pipeline.reduce.tree import exact_sums  # noqa: PLC0415

        failure: SufficeError | None = None
        sums: Any = None
        noisy: Any = None
        try:
            sums = exact_sums(job, splits, cluster, progress=progress)
            sources.check(pin)
        except BaseException as error:  # noqa: BLE001 - every end of the reading settles the charge
            failure = self._give_back(charge, error)
        if failure is not None:  # raised out here: no context and no local that could carry data
            sums = None
            raise failure
        with deferred_interrupts() as interrupted:
            stage = "drawing"
            try:
                charge = self.ledger.enter_drawing(charge)
                noisy = privatize(sums, self.spec, self.plan)
                stage = "staging"
                manifest = self._write(charge, noisy, splits)
                charge = self.ledger.stage(charge, manifest)
                stage = "publishing"
                charge = publish(self.ledger, self.store, charge)
            except Exception as error:  # noqa: BLE001 - every end from here on settles the charge
                failure = self._spend(charge, stage, error)
        sums = noisy = None  # whatever is raised from here on shows its locals
        if failure is None and charge.state is not ChargeState.PUBLISHED:
            failure = spent_error(charge)
        if failure is not None:
            raise failure
        if interrupted():
            message = "interrupted after the draw: the charge is published"
            raise ReleaseInterruptedError(message)
        return charge

    def _write(self, charge: Charge, noisy: Mapping[str, NDArray[Any]], splits: Sequence[Split]) -> bytes:
        """Write the data files, and return the manifest's bytes."""
        if charge.drawing_sequence is None or charge.drawing_hash is None:
            message = "the ledger gave a drawing charge without its entry"
            raise LedgerError(message)
        files = [
            self.store.write_data(
                charge.name,
                charge.window,
                charge.release_id,
                statistic.name,
                encode_statistic(statistic, self.plan.groups, noisy[statistic.name]),
                rows=noisy[statistic.name].size,
            )
            for statistic in self.plan.statistics
        ]
        return compose_manifest(
            self.plan,
            window=charge.window,
            release_id=charge.release_id,
            public_n=sum(split.n_rows for split in splits) if self.plan.n_is_public else None,
            files=files,
            ledger_id=charge.ledger_id,
            drawing_sequence=charge.drawing_sequence,
            drawing_hash=charge.drawing_hash,
            created=self.ledger.now(),
            signer=self.signer,
        )

    def _give_back(self, charge: Charge, error: BaseException) -> SufficeError:
        """Abandon a charge that never drew, and say what happened in a fixed text."""
        try:
            abandon(self.ledger, self.store, charge, reason="reading failed")
            fate = "nothing was drawn, and its epsilon was returned"
        except LedgerError:
            fate = "nothing was drawn; its epsilon returns when the next run finds the charge expired"
        if isinstance(error, KeyboardInterrupt):
            return ReleaseInterruptedError(f"interrupted: the charge is abandoned, {fate}")
        if isinstance(error, StageFailedError | ClusterError):
            return StageFailedError("reading", f"{error}; {fate}")
        return StageFailedError("reading", f"the data could not be read; {fate}")

    def _spend(self, charge: Charge, stage: str, error: Exception) -> SufficeError:
        """Fence off and abandon a charge that may have drawn; leave a staged one to be published."""
        if stage == "publishing":
            return StageFailedError(stage, "staged but not published: the same command again publishes it")
        if isinstance(error, ChargeLostError):
            return StageFailedError(
                stage, "another run has taken over this charge, and decides what becomes of it"
            )
        if isinstance(error, LedgerError):  # unknown how far the ledger came: the next run settles it
            return StageFailedError(
                stage, "the ledger failed: the charge counts as spent until a rerun settles it"
            )
        try:
            charge = abandon(self.ledger, self.store, charge, reason=f"{stage} failed")
        except StorageError:
            return StageFailedError(
                stage, "the charge counts as spent, and a rerun after its lease settles it"
            )
        self._clean_up(charge)
        return StageFailedError(
            stage, "noise may have been drawn: the charge is abandoned, its epsilon spent"
        )

    def _clean_up(self, charge: Charge) -> None:
        """Remove the data files of an abandoned charge, as far as that goes: recovery tries again."""
        with contextlib.suppress(StorageError):
            remove_orphans(self.store, charge)


def _require_engine() -> None:
    """Import all that a release needs before anything is charged.

    Raises
    ------
    MissingExtraError
        Where the engine or the noise source is not installed.
    """
    try:
        for module in (
            "suffice.pipeline.chunk.partition",
            "suffice.pipeline.reduce.cluster",
            "suffice.pipeline.mechanism.mechanism",
            "suffice.pipeline.reduce.tree",
        ):
            importlib.import_module(module)
    except ModuleNotFoundError:
        raise MissingExtraError("a release", "pipeline") from None
