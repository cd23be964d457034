"""The count that a run pays for first, where its spec expects a number of rows or units, and what it decides.

The count is a release like every other, ``NAME.expect``, with a charge, a draw and a manifest of its own. The
decision looks at what is published of it alone: a rerun finds it, charges nothing and decides the same. A
window that was stopped is counted again under ``--new-attempt``, as the count's next amendment.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.errors import ExpectationNotMetError, ReleaseMissingError
from suffice.pipeline.spec.expected import STATISTIC, ExpectPlan, expect_spec, noisy_count
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss, PrivacyMeasure
from suffice.releasing.run import ALREADY_PUBLISHED, ReleaseRun
from suffice.storage.ledger.account import check_measure
from suffice.storage.ledger.charge import ChargeState, newest_published
from suffice.storage.releases.manifest import require_manifest
from suffice.storage.releases.release_store import open_release

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.cluster.addresses import AnyCluster
    from suffice.pipeline.spec.spec import Spec
    from suffice.storage.ledger.charge import Charge, ChargeRequest, ChargeSummary
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.releases.release_store import ReleaseStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a spec's window is held to before it is charged.

    Attributes
    ----------
    spec : Spec
        Of the count's release.
    plan : ExpectPlan
    """

    spec: Spec
    plan: ExpectPlan

    @classmethod
    def of(cls, spec: Spec) -> Expected | None:
        """Return a spec's, or None where it expects nothing.

        Raises
        ------
        SpecError
            Where the count could not be released.
        """
        plan = ExpectPlan.of(spec)
        if plan is None:
            return None
        require_manifest(plan.plan)
        return cls(spec=expect_spec(spec), plan=plan)

    def require(self, run: ReleaseRun, place: AnyCluster) -> None:
        """Count, or find counted, and refuse what the run would release where it is less than expected.

        Parameters
        ----------
        run : ReleaseRun
            Of the release itself, which is not charged yet.
        place : str or Client
            Where Dask runs.

        Raises
        ------
        ExpectationNotMetError
            Where the noisy count is below the floor.
        SufficeError
            As a release: the account has to cover the count and the release, before either is charged.
        """
        charges = run.ledger.editions(self.spec.dataset, self.spec.name).get(run.window, [])
        number = _newest(charges)
        if not any(charge.state is ChargeState.PUBLISHED for charge in charges):
            self.check(run.ledger, run.request)
        charge, status = self._count(run, number, place)
        counted = published_count(run.store, charge)
        if (
            counted < self.plan.floor
            and run.new_attempt
            and status == ALREADY_PUBLISHED
            and run.window != ALL
        ):
            self.check(run.ledger, run.request)
            charge, status = self._count(run, number + 1, place)
            counted = published_count(run.store, charge)
        if counted < self.plan.floor:
            raise self._not_met(run, charge, counted, charged=status != ALREADY_PUBLISHED)

    def check(self, ledger: Ledger, request: ChargeRequest) -> None:
        """Refuse a count that the account covers, where it would not cover the release after it.

        Raises
        ------
        BudgetExceededError
            Where the account has too little left for both.
        """
        ledger.check(request.and_also(self.plan.loss, self.plan.plan.rho))

    def _count(self, run: ReleaseRun, number: int, place: AnyCluster) -> tuple[Charge, str]:
        """Release the count as its amendment of this number, or find it released."""
        counting = ReleaseRun(
            spec=self.spec,
            plan=self.plan.plan,
            window=run.window,
            amendment=number,
            ledger=run.ledger,
            store=run.store,
            spool_path=run.spool_path,
            new_attempt=run.new_attempt,
            publish_timeout=run.publish_timeout,
            notice=run.notice,
            signer=run.signer,
            witness=run.witness,
            contract=run.contract,
            given=run.given,
        )
        return counting.carry_out(place, None)

    def _not_met(
        self, run: ReleaseRun, charge: Charge, counted: int, *, charged: bool
    ) -> ExpectationNotMetError:
        measure = run.ledger.account(self.spec.dataset).measure
        price = check_measure(self.plan.plan, measure)
        both = check_measure(run.plan, measure) + price
        left = PrivacyLoss(measure, run.ledger.remaining(self.spec.dataset, run.window))
        paid = f"{price} was charged, for the count" if charged else "nothing was charged"
        if run.window == ALL:
            again = "choose another name"
        elif left < both:
            again = (
                "a larger grant is needed: counting again and releasing take "
                f"{both}, and {left.text} is left for this window"
            )
        else:
            again = f"--new-attempt counts again, for {price}"
        return ExpectationNotMetError(
            f"{run.request.label} is not released: {charge.label} counted {counted:,} {self.plan.counts} "
            f"that fit, noise included, and {self.plan.floor:,} are expected; {paid}; when the data "
            f"have come, {again}; a lower floor is held against this count, and costs nothing"
        )


def prices(spec: Spec, measure: PrivacyMeasure) -> tuple[PrivacyLoss, PrivacyLoss | None]:
    """Return what a release costs an account, and what the count before it costs; None where there is none.

    Raises
    ------
    GuaranteeError
        Where the account counts epsilon and the spec states rho.
    """
    plan = ExpectPlan.of(spec)
    counted = None if plan is None else check_measure(plan.plan, measure)
    return check_measure(compile_plan(spec), measure), counted


def published_count(store: ReleaseStore, charge: Charge | ChargeSummary) -> int:
    """Return the noisy count of a published release ``NAME.expect``."""
    uri = store.release_uri(charge.name, charge.edition, charge.release_id)
    return noisy_count(open_release(uri, allow_withdrawn=True).statistic(STATISTIC))


def stopped_windows(
    spec: Spec, ledger: Ledger, store: ReleaseStore, windows: Sequence[str]
) -> frozenset[str]:
    """Return those of some windows whose newest count is below the floor: they wait for their data.

    Only what is published is looked at; a window that was never counted is none of them.
    """
    expected = Expected.of(spec)
    if expected is None or not windows:
        return frozenset()
    counted = ledger.editions(spec.dataset, expected.spec.name)
    stopped = []
    for window in windows:
        charge = newest_published(counted.get(window, ()))
        with suppress(ReleaseMissingError):  # a count that is gone from the store stops nothing
            if charge is not None and published_count(store, charge) < expected.plan.floor:
                stopped.append(window)
    return frozenset(stopped)


def _newest(charges: Sequence[ChargeSummary]) -> int:
    """Return the number of the newest count whose epsilon was not returned; 0 for the first."""
    kept = [charge.amendment for charge in charges if charge.counts_as != "returned"]
    return max(kept, default=0)
