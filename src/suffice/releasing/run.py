"""One run for one key (dataset, name, window): what an earlier run left is settled, or a release is made.

What happens to a charge after a failure depends only on how far it came::

    reserved   fails -> abandoned, epsilon returned; noise that was drawn meanwhile is overwritten
    drawing    fails -> complete in the spool: published by the next run on this host
                        otherwise: tombstone in the store, abandoned, epsilon spent
               dies  -> the same, but epsilon is returned where nobody saw the draw
    staged     fails -> stays staged; the same command again publishes the very same bytes

So whatever can be known to fail is tried before ``drawing``: room in the spool, the store, the ledger. And
noise is drawn before it, which needs no data: ``drawing`` adds, writes and stages.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

from suffice import errors
from suffice.pipeline.spec.contract_fit import check_contract, floating_unit_warning
from suffice.pipeline.terms.declaration.documents import one_of
from suffice.profile.settings import pinned_certificates, stall_seconds
from suffice.releasing.guarding import Interrupts, contained, deferred_interrupts, held, uncharged
from suffice.storage.ledger.charge import Charge, ChargeRequest, ChargeState
from suffice.storage.ledger.rerun import Decision, decide_rerun, spent_error
from suffice.storage.objects.address import read_address
from suffice.storage.objects.object_store import Patience
from suffice.storage.operations.markers import put_marker, standing_marker
from suffice.storage.operations.publishing import describe_anew, publish_patiently, stage_files
from suffice.storage.operations.settling import clean_up, give_back, published_by_another, settle, spend
from suffice.storage.operations.spooling import spool_files, spool_sizes
from suffice.storage.operations.witness import move_witness
from suffice.storage.releases.about_file import Wording, compose_about
from suffice.storage.releases.manifest import compose_manifest
from suffice.storage.releases.spool import find_spool, open_spool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from suffice.pipeline.cluster.addresses import AnyCluster
    from suffice.pipeline.rows.chunk.exact_sums import ExactTotals
    from suffice.pipeline.rows.mechanism.held_noise import HeldNoise
    from suffice.pipeline.rows.sources.contract import Pin, Split
    from suffice.pipeline.rows.sources.given_rows import GivenRows
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.storage.ledger.account import NamedAudit
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.releases.manifest import DataFile
    from suffice.storage.releases.release_store import ReleaseStore
    from suffice.storage.releases.spool import Spool
    from suffice.storage.releases.spool_entry import SpoolEntry
    from suffice.storage.signatures.signing import Signer

    Progress = Callable[[int, int], None]
    Notice = Callable[[str], None]

Result = TypeVar("Result")

PUBLISHED = "published"
ALREADY_PUBLISHED = "already_published"
ReleaseStatus = Annotated[str, one_of(PUBLISHED, ALREADY_PUBLISHED)]


class ReleaseRun:
    """One run for one key (dataset, name, window), with its ledger and its store."""

    def __init__(
        self,
        *,
        spec: Spec,
        plan: Plan,
        window: str,
        amendment: int,
        ledger: Ledger,
        store: ReleaseStore,
        spool_path: Path | None,
        new_attempt: bool,
        publish_timeout: float,
        notice: Notice,
        signer: Signer | None,
        witness: str | None,
        contract: DataContract | None,
        audit: NamedAudit | None = None,
        given: GivenRows | None = None,
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
        self.contract = contract
        self.audit = audit.sha256 if audit is not None and audit.plan_hash == plan.plan_hash else None
        self.given = given
        self.has_released = False
        """Whether this run itself read the rows that were released."""
        self.before_charging: Callable[[], None] | None = None
        """Called once the account would take the charge, and before it is asked to; may refuse."""
        self.request = charge_request(
            spec,
            plan,
            window,
            amendment=amendment,
            store_id=store.store_id,
            store_uri=store.uri,
            witness=witness,
            contract=contract,
        )

    def carry_out(self, place: AnyCluster, progress: Progress | None) -> tuple[Charge, str]:
        """Settle what an earlier run of the same key left; make the release where none came of that."""
        charge, status = self._settle(
            self.ledger.find(self.spec.dataset, self.spec.name, self.window, amendment=self.request.amendment)
        )
        if charge is not None:
            return charge, status
        self.ledger.check(self.request)
        if self.contract is not None:
            check_contract(self.spec, self.contract)
            warn_of_unit(self.contract)
        if self.before_charging is not None:
            self.before_charging()
        return contained(lambda: self._fresh(place, progress))

    def _fresh(self, place: AnyCluster, progress: Progress | None) -> tuple[Charge, str]:
        """Reserve, read, draw once, write, stage and publish; hold what is exact meanwhile."""
        require_engine()
        from suffice.pipeline.rows import sources  # reruns and refusals need no engine
        from suffice.pipeline.rows.chunk.partition import chunk_job
        from suffice.pipeline.rows.reduce.survey import surveyed_on
        from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
        from suffice.pipeline.rows.sources.schema_check import check_columns

        spool = open_spool(self.spool_path)
        with uncharged():
            self.store.check_create_only()
        with (
            open_cluster_for_sums(place, pinned_certificates(), stall_seconds(), self.notice) as cluster,
            contextlib.ExitStack() as pinned,
        ):
            with surveyed_on(cluster):
                pin = timely(partial(sources.pin, self.spec, self.window, self.contract, self.given))
            pinned.callback(sources.close, pin)
            for text in check_columns(self.spec, sources.schema(pin), self.contract):
                warnings.warn(text, errors.SufficeWarning, stacklevel=2)
            self._warn_of_zone_data()
            checksums = self.ledger.checksums(self.spec.dataset)
            if checksums is not None:
                timely(partial(sources.verify, pin, checksums))
            self.input_verified = checksums is not None
            splits = timely(partial(sources.splits, pin))
            job = chunk_job(self.spec, self.window)
            add = partial(exact_sums, job, splits, cluster, progress=progress)
            charge = self.ledger.reserve(self.request, new_attempt=self.new_attempt)
            if charge.state is not ChargeState.RESERVED:  # another run of the same key came first
                settled, status = self._settle(charge)
                if settled is None:
                    raise _left_just_now(charge)
                return settled, status
            with held(self.ledger, charge):
                if charge.epoch > 1 and standing_marker(self.ledger, self.store, charge) is not None:
                    raise _left_just_now(charge)
                if charge.epoch > 1 and self._is_exhausted(charge):
                    ended = TimeoutError("so many runs of this key were gone before their draw")
                    raise give_back(self.ledger, self.store, spool, charge, "reading", ended)
                charge = self._release(charge, spool, pin, splits, add)
                self.has_released = True
                return charge, PUBLISHED

    def _is_exhausted(self, charge: Charge) -> bool:
        """Tell whether more runs of a charge's key failed before their draw than the owner allows."""
        key = (charge.name, charge.window, charge.amendment)
        failed = self.ledger.failed_readings(charge.dataset)
        count = sum(
            reading.count for reading in failed if (reading.name, reading.window, reading.amendment) == key
        )
        return count > self.ledger.account(charge.dataset).failed_readings

    def _settle(self, charge: Charge | None) -> tuple[Charge | None, str]:
        """Act on the rerun rules: publish what is staged, fence off what expired after its draw."""
        decision = decide_rerun(
            charge,
            self.request,
            now=self.ledger.now(),
            new_attempt=self.new_attempt,
            plan_of=self.ledger.plan,
        )
        if charge is None or decision is Decision.START:
            return None, ""
        if decision is Decision.TAKE_OVER and standing_marker(self.ledger, self.store, charge) is None:
            return None, ""  # to be gone on with
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
            except errors.StorageError as error:
                if not interrupts:
                    raise
                message = f"interrupted while an earlier run was settled: {error}"
                raise errors.ReleaseInterruptedError(message) from None
        if charge.state is ChargeState.PUBLISHED:
            return charge, PUBLISHED
        clean_up(self.store, charge)
        if charge.counts_as == "spent" and not self.new_attempt:
            raise spent_error(charge)
        return None, ""

    def _release(
        self, charge: Charge, spool: Spool, pin: Pin, splits: Sequence[Split], add: Callable[[], ExactTotals]
    ) -> Charge:
        """Carry a reserved charge to its end, whatever happens on the way."""
        from suffice.pipeline.rows.mechanism.held_noise import HeldNoise

        failure: errors.SufficeError | None = None
        private = contextlib.ExitStack()  # overwrites totals and noise
        public_n: int | None = None
        stage = "preflight"
        try:
            entry = spool.reserve(charge, spool_sizes(self.plan, charge, self.ledger.now()))
            noise = HeldNoise(self.spec, self.plan)  # drawn beside the reading: it needs no data
            private.callback(noise.wipe)
            stage = "reading"
            totals = add()
            private.callback(totals.wipe)
            public_n = self._unchanged(pin, splits)
            stage = "preflight"
            noise.wait()  # before the marker, from which on unknown means spent
            self._preflight(charge)
        except BaseException as error:  # noqa: BLE001 - every end of the reading settles the charge
            private.close()  # first: whoever keeps the error that came here, and a ledger may fail, too
            failure = give_back(self.ledger, self.store, spool, charge, stage, error)
        if failure is not None:
            raise failure
        with deferred_interrupts() as interrupts:
            stage = "drawing"
            try:
                charge = self._enter_drawing(charge, spool)
                entry = replace(entry, patience=self._patience(interrupts))  # what it lacks is in memory
                files = self._draw(totals, noise, entry)
                stage = "staging"
                manifest = self._manifest(charge, files, public_n)
                entry.finish(charge, manifest)
                charge = stage_files(self.ledger, charge, entry, manifest)
                stage = "publishing"
                charge = publish_patiently(
                    self.ledger,
                    self.store,
                    spool,
                    charge,
                    self._patience(interrupts),
                    self._words(charge, manifest),
                )
            except Exception as error:  # noqa: BLE001 - every end from here on settles the charge
                ended = published_by_another(self.ledger, charge, error)
                if ended is None:
                    failure = spend(self.ledger, self.store, spool, charge, stage, error)
                else:
                    charge = ended
            finally:
                private.close()
        if failure is None and charge.state is not ChargeState.PUBLISHED:
            failure = spent_error(charge)
        if interrupts:
            message = "interrupted after the draw: the charge is published"
            failure = errors.ReleaseInterruptedError(
                message if failure is None else f"interrupted: {failure}"
            )
        if failure is not None:
            raise failure
        return charge

    def _enter_drawing(self, charge: Charge, spool: Spool) -> Charge:
        return self.ledger.enter_drawing(charge, spool=spool.name, zone_data=self.plan.zone_data)

    def _warn_of_zone_data(self) -> None:
        """Warn where time zone data are others than those of the account's last release."""
        now = self.plan.zone_data
        before = None if now is None else self.ledger.zone_data(self.spec.dataset)
        if before is not None and before != now:
            text = (
                f"time zone data are {now} here, and were {before} for the last release of "
                f"{self.spec.dataset}: where a zone's rules changed its midnights are others, and a row near "
                "one may enter two windows, or none"
            )
            warnings.warn(text, errors.SufficeWarning, stacklevel=2)

    def _draw(self, totals: ExactTotals, noise: HeldNoise, entry: SpoolEntry) -> list[DataFile]:
        """Add noise to the totals, once, and write the sums into the spool; neither is left."""
        from suffice.pipeline.rows.mechanism.mechanism import privatize

        with contextlib.closing(privatize(totals, self.spec, self.plan, noise)) as blocks:
            return spool_files(entry, self.plan, blocks)

    def _unchanged(self, pin: Pin, splits: Sequence[Split]) -> int | None:
        """Check that what was read is what was pinned, and let go of it: publication may take an hour.

        Returns
        -------
        int or None
            The number of records, where it is public.
        """
        from suffice.pipeline.rows import sources

        public_n = timely(partial(sources.row_count, pin, splits)) if self.plan.n_is_public else None
        timely(partial(sources.check, pin))
        sources.close(pin)
        return public_n

    def _preflight(self, charge: Charge) -> None:
        """Try once more, right before the draw, all that must work after it.

        The spool has room since the charge was reserved; a ledger that notes the marker can be written; and
        the store takes the charge's marker, outside of the release's place, with credentials that still
        hold. Marker and witness tell an older copy of the ledger, while epsilon can still be returned.
        """
        put_marker(self.ledger, self.store, charge)
        for witness in sorted({self.request.witness or "", charge.witness or ""} - {""}):
            move_witness(self.ledger, witness)

    def _manifest(self, charge: Charge, files: Sequence[DataFile], public_n: int | None) -> bytes:
        """Return the manifest of the files that were drawn."""
        if charge.drawing_sequence is None or charge.drawing_hash is None:
            message = "the ledger gave a drawing charge without its entry"
            raise errors.LedgerError(message)
        return compose_manifest(
            self.plan,
            window=charge.window,
            amendment=charge.amendment,
            amends=charge.amends,
            release_id=charge.release_id,
            public_n=public_n,
            input_verified=self.input_verified,
            files=files,
            ledger_id=charge.ledger_id,
            drawing_sequence=charge.drawing_sequence,
            drawing_hash=charge.drawing_hash,
            created=self.ledger.now(),
            contract=self.request.contract,
            audit=self.audit,
            signer=self.signer,
        )

    def _words(self, charge: Charge, manifest: bytes) -> bytes | None:
        """Return the file of the spec's words for the public, where it has any."""
        about, created = self.spec.about, self.ledger.now()
        if not about:
            return None
        return compose_about(
            manifest, charge.release_id, about, Wording(), created=created, signer=self.signer
        )

    def put_missing_words(self, charge: Charge) -> None:
        """Put the spec's words beside a published release that has none, as one that another run published.

        What goes wrong is warned of: the release stands, and can be described later.
        """
        if not self.spec.about:
            return
        uri = self.store.release_uri(charge.name, charge.edition, charge.release_id)
        try:
            describe_anew(uri, self.spec.about, created=self.ledger.now(), signer=self.signer)
        except (errors.StorageError, errors.UsageError) as error:
            text = f"{charge.label} is published without its words: {error}; `suffice describe` puts them"
            warnings.warn(text, errors.SufficeWarning, stacklevel=2)

    def _patience(self, interrupts: Interrupts) -> Patience:
        return Patience(seconds=self.publish_timeout, sleep=interrupts.sleep, notice=self.notice)


def timely(work: Callable[[], Result]) -> Result:
    """Ask something of a source, but wait for it no longer than for a task of a worker.

    Raises
    ------
    ClusterError
        Where it does not go on for so long.
    """
    from suffice.pipeline.cluster.workers import within_deadline

    return within_deadline(work, stall_seconds())


def _left_just_now(charge: Charge) -> errors.ChargeInProgressError:
    return errors.ChargeInProgressError(
        f"{charge.label} was begun and left by another run just now: run again"
    )


def warn_of_unit(contract: DataContract) -> None:
    """Warn of units that are floating-point numbers: by the contract alone, not by a file."""
    text = floating_unit_warning(contract)
    if text is not None:
        warnings.warn(text, errors.SufficeWarning, stacklevel=2)


def charge_request(
    spec: Spec,
    plan: Plan,
    window: str,
    *,
    store_id: str,
    store_uri: str,
    amendment: int = 0,
    witness: str | None = None,
    contract: DataContract | None = None,
) -> ChargeRequest:
    """Return what a release of a window, or an amendment of it, asks of its account."""
    return ChargeRequest(
        dataset=spec.dataset,
        name=spec.name,
        window=window,
        amendment=amendment,
        loss=plan.loss,
        rho=plan.rho,
        neighboring=str(plan.neighboring),
        unit=plan.unit,
        grid=plan.grid,
        source=spec.source_address,
        plan_json=plan.canonical,
        plan_hash=plan.plan_hash,
        store_id=store_id,
        store_uri=store_uri,
        witness=None if witness is None else read_address(witness).uri,  # any host has to find it
        contract=None if contract is None else contract.sha256,
    )


def loops_in_words() -> str:
    """Say how the inner loops of a release were compiled."""
    from suffice.pipeline.rows.chunk import jit, paged_columns

    if jit.how_compiled() != jit.NATIVE:
        return "compiled by numba: a start takes half a second longer"
    return f"in C; flat columns of Parquet are read {'by pages' if paged_columns.is_used() else 'by Arrow'}"


def require_engine() -> None:
    """Import all that a release needs before anything is charged.

    Raises
    ------
    MissingExtraError
        Where the engine or the noise source is not installed.
    UsageError
        Where a variable that chooses how rows are summed has no value that it may have.
    """
    try:
        for module in (
            "suffice.pipeline.rows.chunk.partition",
            "suffice.pipeline.rows.reduce.tree",
            "suffice.pipeline.rows.mechanism.mechanism",
            "suffice.pipeline.rows.reduce.tree",
        ):
            importlib.import_module(module)
    except ModuleNotFoundError:
        raise errors.MissingExtraError("a release", "pipeline") from None
    from suffice.pipeline.rows.chunk import jit, paged_columns

    for variable, value in ((jit.VARIABLE, jit.NUMBA), (paged_columns.VARIABLE, paged_columns.ARROW)):
        if os.environ.get(variable) not in {None, "", value}:
            message = f"{variable}: this is not {value}: set that, or leave it unset"
            raise errors.UsageError(message)
