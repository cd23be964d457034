"""A rehearsal: every stage of a release on generated rows. No row is read, nothing is charged.

Its order is that of a release (:mod:`suffice.releasing.run`), and each stage is the one that a release runs.
The rows follow from the spec's public domains, so that nothing in it is private: the noise is drawn by
the real mechanism all the same, and what comes of it is marked and refused by every reader.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
import warnings
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

from suffice.errors import StageFailedError, SufficeError, SufficeWarning
from suffice.pipeline.spec.contract_fit import check_contract
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import AnySpec, Spec, load_spec, require_source
from suffice.pipeline.spec.windows_and_amendments import ALL, moment, resolve_window
from suffice.pipeline.terms.declaration.documents import printed
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.pipeline.terms.declaration.source_specs import declared_sample
from suffice.pipeline.terms.declaration.wording import counted
from suffice.profile.settings import settings
from suffice.releasing.expectation import Expected
from suffice.releasing.granting import naming_the_grant
from suffice.releasing.guarding import contained
from suffice.releasing.run import charge_request, require_engine, timely
from suffice.storage.ledger.account import check_measure, chosen_witness
from suffice.storage.ledger.charge import ChargeState, label, newest_published
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.objects.address import read_address
from suffice.storage.objects.object_store import check_create_only
from suffice.storage.operations import spooling
from suffice.storage.operations.witness import check_witness, find_for_release
from suffice.storage.releases.manifest import require_manifest
from suffice.storage.releases.spool import open_spool, spool_path
from suffice.storage.signatures.signing import signer_from_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from suffice.pipeline.cluster.addresses import AnyCluster
    from suffice.pipeline.rows.chunk.exact_sums import ExactTotals
    from suffice.pipeline.rows.chunk.sample_fit import SampleFit
    from suffice.pipeline.rows.sources.contract import Split
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.profile.settings import Settings
    from suffice.storage.ledger.charge import Charge, ChargeRequest
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.releases.manifest import DataFile
    from suffice.storage.releases.spool_entry import SpoolEntry
    from suffice.storage.signatures.signing import Signer

    Told = Callable[["Stage"], None]

_WITHHELD = (
    "the stage {} ended in an error of another library, whose text is withheld, for it might quote data; "
    "nothing was charged"
)


@printed("stage=name seconds tried")
@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage of a rehearsal.

    Attributes
    ----------
    name : str
    tried : str
        What was found to work; empty where it failed.
    seconds : float
        To a tenth.
    """

    name: str
    tried: str
    seconds: float


@printed("stage *error")
@dataclass(frozen=True, slots=True)
class Failure:
    """The stage that failed, and what with."""

    stage: str
    error: SufficeError


@printed("rehearsal ok name dataset window stages kept sample unchecked_columns=unchecked error?")
@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What a rehearsal tried, and what it failed at.

    Attributes
    ----------
    name, dataset, window : str
        What a release would be of.
    stages : tuple of Stage
        In order; the last one is the one that failed, where one did.
    failure : SufficeError or None
        What a release would have failed with.
    kept : str or None
        Where its output stands, if it was kept, or could not be removed.
    sample : SampleFit or None
        How much of a sample fits the spec, where one was given.
    unchecked : tuple of str
        Columns of which nobody has compared a value with what the spec says of them.
    """

    name: str
    dataset: str
    window: str
    stages: tuple[Stage, ...]
    failure: SufficeError | None
    kept: str | None
    sample: SampleFit | None
    unchecked: tuple[str, ...]
    rehearsal: ClassVar[Literal[True]] = True

    @property
    def ok(self) -> bool:
        """Whether every stage worked."""
        return self.failure is None

    @property
    def error(self) -> Failure | None:
        """What it failed at, as it is printed."""
        return None if self.failure is None else Failure(stage=self.stages[-1].name, error=self.failure)


def rehearse(
    spec: AnySpec,
    store: str | os.PathLike[str] | None = None,
    ledger: str | None = None,
    cluster: AnyCluster | None = None,
    window: str = ALL,
    *,
    as_of: str | datetime | None = None,
    allow_open: bool = False,
    witness: str | None = None,
    keep: bool = False,
    sample: str | os.PathLike[str] | None = None,
    sample_is: str | None = None,
    told: Told | None = None,
) -> Rehearsal:
    """Try every stage of a release on generated rows; read no row, charge nothing.

    Of the source only the schema is read. The reservation is made in the ledger and undone in the same
    transaction. What is drawn is put into the store under ``rehearsals/``, marked, and removed.

    Parameters
    ----------
    spec : Spec
        From :func:`suffice.load_spec`.
    store, ledger, cluster, window, as_of, allow_open, witness
        As for :func:`suffice.release`. A store that is not there yet is not made.
    keep : bool
        Leave what was put into the store. It is no release.
    sample : path, optional
        A file whose values are compared with what the spec says of its columns. What comes of it is exact.
    sample_is : {"public", "synthetic"}
        What the owner of the sample declares that it is; stated with it.
    told : callable, optional
        Called with each stage when it has ended.

    Returns
    -------
    Rehearsal
        Where a stage failed, its `failure` is what a release would have raised: nothing is tried after it.

    Raises
    ------
    UsageError
        Where the call itself, its window or a setting is refused: nothing was tried.
    MissingExtraError
        Where the engine is not installed.
    """
    spec = load_spec(spec)
    require_source(spec)
    chosen = settings(
        store=None if store is None else os.fspath(store),
        ledger=ledger,
        cluster=cluster,
        witness=witness,
        spec_path=spec.directory,
    )
    window = resolve_window(spec, window, as_of=moment(as_of, datetime.now(UTC)), allow_open=allow_open)
    plan = compile_plan(spec)
    require_manifest(plan)
    require_engine()
    fit, unchecked = _compared(spec, sample, sample_is)
    run = _Run(spec=spec, plan=plan, window=window, chosen=chosen, keep=keep, tell=told or (lambda _: None))
    failure: SufficeError | None = None
    try:
        contained(run.carry_out)
    except SufficeError as error:
        failure = error
    return Rehearsal(
        name=spec.name,
        dataset=spec.dataset,
        window=window,
        stages=tuple(run.stages),
        failure=failure,
        kept=run.kept,
        sample=fit,
        unchecked=unchecked,
    )


def _compared(
    spec: Spec, sample: str | os.PathLike[str] | None, sample_is: str | None
) -> tuple[SampleFit | None, tuple[str, ...]]:
    """Compare a sample with a spec; return what came of it, and the columns that nobody has checked."""
    from suffice.pipeline.rows.chunk.sample_fit import sample_fit  # the engine is an extra
    from suffice.pipeline.rows.sources.contract import spec_columns

    if sample is None and sample_is is None:
        return None, spec_columns(spec)
    fit = sample_fit(spec, *declared_sample(sample, sample_is))
    return fit, fit.unchecked(spec)


@dataclass(kw_only=True)
class _Trying:
    """A stage that is being tried."""

    tried: str = ""


@dataclass(kw_only=True)
class _Run:
    """One rehearsal, and what it has tried so far."""

    spec: Spec
    plan: Plan
    window: str
    chosen: Settings
    keep: bool
    tell: Told
    stages: list[Stage] = field(default_factory=list)
    kept: str | None = None

    def carry_out(self) -> None:
        """Try all stages, and leave nothing behind, whatever happens."""
        from suffice.pipeline.rows.chunk.partition import chunk_job  # the engine is an extra
        from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums

        with contextlib.ExitStack() as opened:
            with self._stage("ledger") as stage, naming_the_grant(self.spec):
                ledger = opened.enter_context(open_ledger(self.chosen.ledger))
                dataset = self.spec.dataset
                witness = chosen_witness(
                    dataset,
                    ledger.witness(dataset),
                    None if self.chosen.witness is None else read_address(self.chosen.witness).uri,
                )
                if witness is not None:
                    check_witness(ledger, witness)
                contract = ledger.contract(dataset)
                stage.tried = f"opened{', and its witness agrees' if witness else ''}"
            with self._stage("store") as stage:
                place, stage.tried = self._place(ledger)
            with self._stage("account") as stage, naming_the_grant(self.spec):
                request, stage.tried = self._reserved(ledger, place, contract)
                if contract is not None:
                    check_contract(self.spec, contract)
            with self._stage("signature") as stage:
                signer = signer_from_environment()
                stage.tried = f"signs with {signer.public_key.key_id}" if signer else "no key is named"
            with self._stage("spool") as stage:
                spool = open_spool(spool_path(self.chosen.ledger, self.chosen.spool))
                charge = spooling.rehearsed_charge(request, ledger.ledger_id, ledger.now())
                entry = spool.reserve(charge, spooling.spool_sizes(self.plan, charge, charge.created))
                opened.callback(spool.remove, charge.charge_id)
                stage.tried = f"has room for {counted(len(self.plan.statistics) + 1, 'file')}"
            with self._stage("cluster") as stage:
                cluster = opened.enter_context(
                    open_cluster_for_sums(self.chosen.cluster, self.chosen.cluster_certificates)
                )
                stage.tried = "connected, and fit for exact sums"
            with self._stage("source") as stage:
                splits = self._generated(contract)
                stage.tried = "opened, and its columns fit; no row was read"
            with self._stage("reading") as stage:
                totals = exact_sums(chunk_job(self.spec, self.window), splits, cluster)
                opened.callback(totals.wipe)
                stage.tried = f"summed {sum(split.n_rows for split in splits)} generated rows"
            with self._stage("drawing") as stage:
                files = self._draw(totals, entry, charge, splits, signer)
                stage.tried = f"noise drawn for {self.plan.cells_text}, kept in the spool"
            with self._stage("publishing") as stage:
                stage.tried = self._publish(place, entry, files)

    @contextlib.contextmanager
    def _stage(self, name: str) -> Iterator[_Trying]:
        """Time a stage; whatever it raises of another library is one of our errors when it leaves."""
        start, trying = time.monotonic(), _Trying()
        failure: SufficeError | None = None
        try:
            yield trying
        except SufficeError:
            trying.tried = ""
            raise
        except Exception:  # noqa: BLE001 - whatever it is, its text may quote data
            trying.tried = ""
            failure = StageFailedError(name, _WITHHELD.format(name))
        finally:
            stage = Stage(name=name, tried=trying.tried, seconds=round(time.monotonic() - start, 1))
            self.stages.append(stage)
            self.tell(stage)
        if failure is not None:
            raise failure

    def _place(self, ledger: Ledger) -> tuple[spooling.RehearsalPlace, str]:
        """Look at the store as a release does, but make none; return where this rehearsal puts its files."""
        registered = find_for_release(ledger, self.chosen.store, self.spec.dataset)
        address = read_address(self.chosen.store)
        objects = address.objects()
        check_create_only(objects, address.uri)
        place = spooling.RehearsalPlace(
            objects=objects,
            store_uri=address.uri,
            store_id=registered.store_id if registered else secrets.token_hex(16),
            name=secrets.token_hex(16),
        )
        new = "" if registered else "; no store stands there yet: a release makes it"
        return place, f"creates objects only once{new}"

    def _reserved(
        self, ledger: Ledger, place: spooling.RehearsalPlace, contract: DataContract | None
    ) -> tuple[ChargeRequest, str]:
        """Try the reservation, and say what it would come to."""
        request = charge_request(
            self.spec,
            self.plan,
            self.window,
            store_id=place.store_id,
            store_uri=place.store_uri,
            contract=contract,
        )
        charge = ledger.rehearse(request)
        if charge.state is not ChargeState.RESERVED:
            return request, f"{charge.state} before: a release would read nothing and charge nothing"
        measure = ledger.account(self.spec.dataset).measure
        left = PrivacyLoss(measure, ledger.remaining(self.spec.dataset, self.window))
        tried = f"{charge.loss} of the {left.text} that remains was reserved, and undone"
        expected = Expected.of(self.spec)
        if expected is None:
            return request, tried
        counted_before = newest_published(
            ledger.editions(self.spec.dataset, expected.spec.name).get(self.window, ())
        )
        if counted_before is not None:
            count = label(counted_before.name, counted_before.edition)
            return request, f"{tried}; {count} is published, and decides whether it is charged"
        expected.check(ledger, request)
        price = check_measure(expected.plan.plan, measure)
        return request, f"{tried}; {price} for the count before it remains as well"

    def _generated(self, contract: DataContract | None) -> tuple[Split, ...]:
        """Check the source's schema, let go of the source, and return rows of the same types."""
        from suffice.pipeline.rows import sources
        from suffice.pipeline.rows.sources.generated import generated_splits
        from suffice.pipeline.rows.sources.schema_check import check_columns

        with contextlib.closing(timely(partial(sources.pin, self.spec, self.window, contract))) as pin:
            schemas = sources.schema(pin)
            texts = check_columns(self.spec, schemas, contract)
        for text in texts:
            warnings.warn(text, SufficeWarning, stacklevel=2)
        return generated_splits(self.spec, schemas, self.window)

    def _draw(
        self,
        totals: ExactTotals,
        entry: SpoolEntry,
        charge: Charge,
        splits: tuple[Split, ...],
        signer: Signer | None,
    ) -> list[DataFile]:
        """Add noise to the sums of generated rows, and keep them in the spool under a marked manifest."""
        from suffice.pipeline.rows.mechanism.held_noise import HeldNoise
        from suffice.pipeline.rows.mechanism.mechanism import privatize

        noise = HeldNoise(self.spec, self.plan)
        try:
            noise.wait()
            with contextlib.closing(privatize(totals, self.spec, self.plan, noise)) as blocks:
                files = spooling.spool_files(entry, self.plan, blocks)
        finally:
            noise.wipe()
        n_rows = sum(split.n_rows for split in splits)
        manifest = spooling.compose_rehearsal(
            self.plan, charge, files, public_n=n_rows if self.plan.n_is_public else None, signer=signer
        )
        entry.finish(charge, manifest)
        return files

    def _publish(self, place: spooling.RehearsalPlace, entry: SpoolEntry, files: list[DataFile]) -> str:
        """Put the files, read them back, see that they are no release, and remove them."""
        removed = False
        try:
            place.publish(entry, files)
            place.require_refused()
        finally:
            if not self.keep:
                removed = place.remove(files)
            self.kept = None if removed else place.uri
        left = "removed" if removed else f"kept at {place.uri}"
        return f"{counted(len(files) + 1, 'file')} put, read back, refused as a release, {left}"
