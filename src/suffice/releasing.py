"""One release, from spec to manifest: the plain function that orders ledger, engine, mechanism and store.

The order is the guarantee. Everything that can be refused is refused before the charge is reserved; the
charge is durably in ``drawing`` before noise is drawn; from then on, unknown means spent. What happens
to a charge after a failure depends only on how far it came::

    reserved   fails -> abandoned, epsilon returned
    drawing    fails -> complete in the spool: published by the next run on this host
                        otherwise: tombstone in the store, abandoned, epsilon spent
    staged     fails -> stays staged; the same command again publishes the very same bytes

So whatever can be known to fail is tried before ``drawing``: room in the spool, the store, the ledger.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.errors import (
    LedgerError,
    MissingExtraError,
    ReleaseInterruptedError,
    StorageError,
    SufficeError,
    SufficeWarning,
    UsageError,
)
from suffice.guarding import Interrupts, contained, deferred_interrupts, held, uncharged, wait_for
from suffice.pipeline.declaration.exact_numbers import format_epsilon
from suffice.pipeline.spec.plan import Plan, compile_plan
from suffice.pipeline.spec.spec import Spec, require_spec
from suffice.pipeline.spec.terms import ALL, check_window
from suffice.profile.settings import settings
from suffice.storage.ledger.charge import Charge, ChargeRequest, ChargeState
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.ledger.rerun import Decision, decide_rerun, spent_error
from suffice.storage.operations.failures import clean_up, give_back, published_by_another, spend
from suffice.storage.operations.known_stores import open_for_release
from suffice.storage.operations.markers import put_marker, refuse_marked_elsewhere
from suffice.storage.operations.publishing import Patience, publish_patiently
from suffice.storage.operations.settling import settle
from suffice.storage.operations.spooling import spool_files, spool_sizes
from suffice.storage.operations.witness import check_witness, follow_witness, move_witness
from suffice.storage.releases.manifest import compose_manifest, require_manifest
from suffice.storage.releases.release_store import ReleaseStore, open_release
from suffice.storage.releases.spool import find_spool, open_spool, spool_path
from suffice.storage.signatures.signing import signer_from_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from suffice.pipeline.chunk.partition import ChunkJob
    from suffice.pipeline.pooling.release import Release
    from suffice.pipeline.reduce.cluster import Cluster
    from suffice.pipeline.sources.contract import Pin, Split
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.releases.manifest import DataFile
    from suffice.storage.releases.spool import Spool
    from suffice.storage.signatures.signing import Signer

    Progress = Callable[[int, int], None]
    Notice = Callable[[str], None]

PUBLISHED = "published"
ALREADY_PUBLISHED = "already_published"
PUBLISH_TIMEOUT = 3600.0
"""Seconds for which the publication of a staged charge is tried again, unless the caller says otherwise."""


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
    cluster: str | None = None,
    window: str = ALL,
    *,
    new_attempt: bool = False,
    publish_timeout: float = PUBLISH_TIMEOUT,
    wait: bool = False,
    witness: str | None = None,
    progress: Progress | None = None,
    notice: Notice | None = None,
) -> Release:
    """Charge the ledger, compute exact statistics, add noise once, publish; return the release.

    Running it again with the same spec returns the published release, reads no data and charges nothing.

    Parameters
    ----------
    spec : Spec
        From :func:`suffice.load_spec`.
    store : str, optional
        URI of the release store; otherwise ``SUFFICE_STORE``, what the deployment profile pins, or
        ``releases``.
    ledger : str, optional
        URL of the privacy ledger; otherwise ``SUFFICE_LEDGER``, what the profile pins, or
        ``sqlite:///ledger.db``.
    cluster : str, optional
        ``threads``, ``local``, or the address of a Dask scheduler inside the trust boundary; otherwise
        ``SUFFICE_CLUSTER``, what the profile pins, or ``threads``.
    window : str
        The label of the period released, for a spec with windows; else ``all``.
    new_attempt : bool
        Charge again after an attempt whose epsilon was spent without a release.
    publish_timeout : float
        Seconds for which a store that fails after the draw is tried again. Later, any run of the same spec
        on this host publishes what was drawn.
    wait : bool
        Wait while another run holds the charge, instead of raising `ChargeInProgressError`.
    witness : str, optional
        URI of the ledger's witness; ``SUFFICE_WITNESS`` otherwise; where that is not set, none is asked.
    progress : callable, optional
        Called with the number of finished tasks and of all tasks.
    notice : callable, optional
        Called with a sentence about every wait.

    Returns
    -------
    Release

    Raises
    ------
    SpecError, SpecChangedError, NameTakenError
        Nothing was charged.
    PinnedError, ProfileError
        A parameter lies outside of the deployment profile, or the profile cannot be used; nothing was
        opened.
    AccountError
        The account refuses; nothing was read, nothing was charged.
    SchemaError
        Columns are missing or of the wrong type family; nothing was charged.
    StorageError
        The store or the ledger; where it came after the reservation, the text states the charge's state.
    SpoolError
        The spool; the text states the charge's state where it came after the reservation.
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
        publish_timeout=publish_timeout,
        wait=wait,
        witness=witness,
        progress=progress,
        notice=notice,
    )
    return outcome.release


def carry_out(
    spec: Spec,
    *,
    store: str | None = None,
    ledger: str | None = None,
    cluster: str | None = None,
    window: str = ALL,
    new_attempt: bool = False,
    publish_timeout: float = PUBLISH_TIMEOUT,
    wait: bool = False,
    witness: str | None = None,
    progress: Progress | None = None,
    notice: Notice | None = None,
) -> Outcome:
    """Do what :func:`run_release` does, and say also whether it was done before and what remains."""
    require_spec(spec)
    if not 0 <= publish_timeout < float("inf"):
        message = "the publish timeout is a number of seconds of at least 0"
        raise UsageError(message)
    chosen = settings(store=store, ledger=ledger, cluster=cluster, witness=witness, spec_path=spec.directory)
    window = check_window(spec, window)
    plan = compile_plan(spec)
    require_manifest(plan)
    signer = signer_from_environment()
    with open_ledger(chosen.ledger) as opened:
        if chosen.witness is not None:
            check_witness(opened, chosen.witness)
        with uncharged():
            opened_store = open_for_release(opened, chosen.store, spec.dataset)
        run = _Run(
            spec=spec,
            plan=plan,
            window=window,
            ledger=opened,
            store=opened_store,
            spool_path=spool_path(chosen.ledger, chosen.spool),
            new_attempt=new_attempt,
            publish_timeout=publish_timeout,
            notice=notice or (lambda _: None),
            signer=signer,
            witness=chosen.witness,
        )
        charge, status = wait_for(
            lambda: run.carry_out(chosen.cluster, progress), wait=wait, notice=run.notice
        )
        if chosen.witness is not None and status == PUBLISHED:
            follow_witness(opened, chosen.witness)
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
        spool_path: Path | None,
        new_attempt: bool,
        publish_timeout: float,
        notice: Notice,
        signer: Signer | None,
        witness: str | None,
    ) -> None:
        self.spec = spec
        self.plan = plan
        self.window = window
        self.ledger = ledger
        self.store = store
        self.spool_path = spool_path
        self.new_attempt = new_attempt
        self.publish_timeout = publish_timeout
        self.notice = notice
        self.signer = signer
        self.input_verified = False
        self.witness = witness
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

    def carry_out(self, address: str, progress: Progress | None) -> tuple[Charge, str]:
        """Settle what an earlier run of the same key left; make the release where none came of that."""
        charge, status = self._settle(self.ledger.find(self.spec.dataset, self.spec.name, self.window))
        if charge is not None:
            return charge, status
        self.ledger.check(self.request)
        return contained(lambda: self._fresh(address, progress))

    def _fresh(self, address: str, progress: Progress | None) -> tuple[Charge, str]:
        """Reserve, read, draw once, write, stage and publish; hold what is exact meanwhile."""
        _require_engine()
        from suffice.pipeline import sources  # noqa: PLC0415 - reruns and refusals need no engine
        from suffice.pipeline.chunk.partition import chunk_job  # noqa: PLC0415
        from suffice.pipeline.reduce.cluster import open_cluster  # noqa: PLC0415
        from suffice.pipeline.reduce.survey import surveyed_on  # noqa: PLC0415
        from suffice.pipeline.sources.schema_check import check_schema, unit_warnings  # noqa: PLC0415

        spool = open_spool(self.spool_path)
        with uncharged():
            self.store.check_create_only()
        with open_cluster(address) as cluster:
            with surveyed_on(cluster):
                pin = sources.pin(self.spec, self.window)
            check_schema(self.spec, sources.schema(pin))
            for text in unit_warnings(self.spec, sources.schema(pin)):
                warnings.warn(text, SufficeWarning, stacklevel=2)
            checksums = self.ledger.checksums(self.spec.dataset)
            if checksums is not None:
                sources.verify(pin, checksums)
            self.input_verified = checksums is not None
            splits = sources.splits(pin)
            job = chunk_job(self.spec, self.window)
            charge = self.ledger.reserve(self.request, new_attempt=self.new_attempt)
            if charge.state is not ChargeState.RESERVED:  # another run of the same key came first
                settled, status = self._settle(charge)
                if settled is None:
                    raise spent_error(charge)
                return settled, status
            with held(self.ledger, charge):
                if charge.epoch > 1:  # taken over from a run that died before it drew, here or elsewhere
                    refuse_marked_elsewhere(self.ledger, self.store, charge)
                return self._release(charge, spool, cluster, pin, splits, job, progress), PUBLISHED

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
        self.store.check_create_only()
        with deferred_interrupts() as interrupts:
            try:
                charge = settle(
                    self.ledger,
                    self.store,
                    charge,
                    spool=find_spool(self.spool_path),
                    patience=self._patience(interrupts),
                )
            except StorageError as error:
                if not interrupts:
                    raise
                message = f"interrupted while an earlier run was settled: {error}"
                raise ReleaseInterruptedError(message) from None
        if charge.state is ChargeState.PUBLISHED:
            return charge, PUBLISHED
        clean_up(self.store, charge)
        if charge.drew and not self.new_attempt:
            raise spent_error(charge)
        return None, ""

    def _release(
        self,
        charge: Charge,
        spool: Spool,
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
        totals: Any = None
        entry: Any = None
        stage = "preflight"
        try:
            entry = spool.reserve(charge, spool_sizes(self.plan, charge, self.ledger.now()))
            stage = "reading"
            totals = exact_sums(job, splits, cluster, progress=progress)
            sources.check(pin)
            stage = "preflight"
            self._preflight(charge)
        except BaseException as error:  # noqa: BLE001 - every end of the reading settles the charge
            if totals is not None:
                totals.wipe()  # first: whoever keeps the error that came here, and a ledger may fail, too
            failure = give_back(self.ledger, self.store, spool, charge, stage, error)
        if failure is not None:
            raise failure
        with deferred_interrupts() as interrupts:
            stage = "drawing"
            try:
                charge = self.ledger.enter_drawing(charge, spool=spool.name)
                with contextlib.closing(privatize(totals, self.spec, self.plan)) as blocks:
                    files = spool_files(entry, self.plan, blocks)
                totals.wipe()  # publication may take an hour
                stage = "staging"
                manifest = self._manifest(charge, files, splits)
                entry.finish(charge, manifest)
                charge = self.ledger.stage(charge, manifest)
                stage = "publishing"
                charge = publish_patiently(self.ledger, self.store, spool, charge, self._patience(interrupts))
            except Exception as error:  # noqa: BLE001 - every end from here on settles the charge
                ended = published_by_another(self.ledger, charge, error)
                if ended is None:
                    failure = spend(self.ledger, self.store, spool, charge, stage, error)
                else:
                    charge = ended
            finally:
                totals.wipe()
        if failure is None and charge.state is not ChargeState.PUBLISHED:
            failure = spent_error(charge)
        if interrupts:
            message = "interrupted after the draw: the charge is published"
            failure = ReleaseInterruptedError(message if failure is None else f"interrupted: {failure}")
        if failure is not None:
            raise failure
        return charge

    def _preflight(self, charge: Charge) -> None:
        """Try once more, right before the draw, all that must work after it.

        The spool has room since the charge was reserved; a ledger that notes the marker can be written; and
        the store takes the charge's marker, outside of the release's place, with credentials that still
        hold. Marker and witness tell an older copy of the ledger, while epsilon can still be returned.
        """
        put_marker(self.ledger, self.store, charge)
        if self.witness is not None:
            move_witness(self.ledger, self.witness)

    def _manifest(self, charge: Charge, files: Sequence[DataFile], splits: Sequence[Split]) -> bytes:
        """Return the manifest of the files that were drawn."""
        if charge.drawing_sequence is None or charge.drawing_hash is None:
            message = "the ledger gave a drawing charge without its entry"
            raise LedgerError(message)
        return compose_manifest(
            self.plan,
            window=charge.window,
            release_id=charge.release_id,
            public_n=sum(split.n_rows for split in splits) if self.plan.n_is_public else None,
            input_verified=self.input_verified,
            files=files,
            ledger_id=charge.ledger_id,
            drawing_sequence=charge.drawing_sequence,
            drawing_hash=charge.drawing_hash,
            created=self.ledger.now(),
            signer=self.signer,
        )

    def _patience(self, interrupts: Interrupts) -> Patience:
        return Patience(seconds=self.publish_timeout, sleep=interrupts.sleep, notice=self.notice)


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
