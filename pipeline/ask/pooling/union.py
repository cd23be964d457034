"""What the records of merged cells add up to: totals, shares and means of these records themselves.

Sums of released values are sums of exact totals and of as many noises as cells are merged. Posteriors of the
totals follow from that alone: cells may differ as they like, and no family's model of rows is used. So an
answer is about the records that were released, as bounds and lattice leave them, and has no part for how
another sample of records would differ.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Never, cast

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.judging.conflict import Conflict
from suffice.pipeline.ask.posterior.cells import refuse_shared
from suffice.pipeline.ask.posterior.posterior import NOISE_AWARE, Posterior
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines.union.distribution import UnionDistribution, evenly_spread
from suffice.pipeline.math.engines.union.moments import MomentsOfCell
from suffice.pipeline.math.engines.union.summed_noise import SummedNoise
from suffice.pipeline.math.engines.union.totals import TotalsOfCell
from suffice.pipeline.terms.released.within_unit import rows_alone
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.ask.judging.checking import Check
    from suffice.pipeline.math.distributions.prior import Prior
    from suffice.pipeline.math.engines.union.distribution import CellPoints
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats

_COUNTS = ("categorical", "contingency")
_SHARES = ("bernoulli", "binomial")
"""Families whose mean over its largest value is the share that people ask for."""
_KEPT = 256
"""Merged cells whose points are kept: 50 MB."""
_OF_TOTALS = "(1 + t / R)^-a of every total t, a of 0, 1/2, 1, 3/2 alike"
_OF_MOMENTS = "1 / (N + 1), uniform mean, uniform standard deviation"


@dataclass(frozen=True, slots=True)
class UnionPrior:
    """The prior of the exact totals, as text."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionPosterior(Posterior):
    """The posterior of what the records of merged cells add up to; made by ``RolledUp.posterior``.

    Its parameters are quantities of the records: ``n``, ``total``, and ``mean`` of T(x), or ``share`` of
    Bernoulli and binomial records; ``count`` and ``share`` of categories; ``variance`` of normal columns, and
    ``log_mean`` and ``log_variance`` of lognormal ones. All are given that the cells hold a record at all.

    Attributes
    ----------
    cells_summed : int
        How many cells of the release each merged one is made of.
    """

    cells_summed: int

    @property
    def conflict(self) -> Conflict:
        """Nothing is judged: the prior of totals is spread over all that the release leaves open."""
        return Conflict(
            quantities=(),
            tails=np.ones((self.n_groups, 0)),
            of_n=np.array([], dtype=bool),
            prior=str(self.prior),
            n_prior="",
        )

    @property
    def log_evidence(self) -> Floats:
        """Refused: priors of totals are not compared.

        Raises
        ------
        UsageError
        """
        self._refuse("evidence")

    def check(
        self,
        quantity: str | None = None,  # noqa: ARG002 - as any posterior's
        draws: int = 0,  # noqa: ARG002 - as any posterior's
        rng: np.random.Generator | int | None = None,  # noqa: ARG002 - as any posterior's
    ) -> Check:
        """Refused: there is no model of rows to be checked.

        Raises
        ------
        UsageError
        """
        self._refuse("check")

    def _refuse(self, what: str) -> Never:
        message = (
            f"{self.statistic}: totals of merged cells rest on no model of rows, and have no {what}: "
            "posterior(assume='one parameter') has a model"
        )
        raise UsageError(message)


def union_posterior(statistic: NoisyStatistic) -> UnionPosterior:
    """Return the posterior of quantities of merged cells.

    Parameters
    ----------
    statistic : NoisyStatistic
        Sums of released values, with ``cells_summed``.

    Raises
    ------
    UsageError
        Where such quantities are not worked out for the family.
    """
    refuse_shared(statistic)
    rows = rows_alone(statistic)
    plan, family = rows.plan, FAMILIES[rows.plan.family]
    if rows.observations[1:] or plan.design is not Design.PARTITION_OF_UNITY:
        message = f"{plan.name}: cells are merged of one release, in which the number of records is private"
        raise UsageError(message)
    cells: list[CellPoints]
    if family.mean_and_variance is not None:
        cells, prior = _moments(rows), _OF_MOMENTS
    else:
        require_totals(plan)
        is_whole = statistic.plan.within_unit is None
        cells, prior = _totals(rows, is_whole=is_whole), _OF_TOTALS
    kept = f"{plan.rows_of}; " if plan.rows_of else ""
    return UnionPosterior(
        statistic=plan.name,
        family=plan.family,
        method=NOISE_AWARE,
        prior=cast("Prior", UnionPrior(prior)),
        n_prior=None,
        groups=rows.groups,
        label_columns=family.labels(plan.parameters) if plan.family in _COUNTS else {},
        distribution=UnionDistribution.of(cells),
        rows_of=(
            f"{kept}of the released records of {rows.cells_summed} merged cells, as bounds and lattice leave "
            "them: totals, shares and means of these records, not of a process that made them"
        ),
        observed=(rows,),
        cells_summed=rows.cells_summed,
    )


def require_totals(plan: StatisticPlan) -> None:
    """Refuse families of which no quantities of merged cells are worked out.

    Raises
    ------
    UsageError
    """
    family = FAMILIES[plan.family]
    if family.latent is None and family.mean_and_variance is None and plan.family not in _COUNTS:
        message = (
            f"{plan.name} is {plan.family}, of which totals and shares of merged cells are not worked out: "
            "posterior(assume='one parameter') takes one parameter for all merged cells, which is wrong "
            "where cells differ; table() has sums with their noise"
        )
        raise UsageError(message)


def quantities_of(plan: StatisticPlan) -> int:
    """Return how many intervals a merged cell has.

    Raises
    ------
    UsageError
        Where none are worked out for the family.
    """
    require_totals(plan)
    if plan.family in _COUNTS:
        return 2 * len(plan.components)
    return 3 if FAMILIES[plan.family].mean_and_variance is None else 4


def _totals(statistic: NoisyStatistic, *, is_whole: bool) -> list[CellPoints]:
    """Points of totals, and of quantities that are linear in them."""
    plan = statistic.plan
    values = statistic.values.astype(np.float64)
    noise = SummedNoise.of(
        statistic.cells_summed, plan.scale, max(float(np.max(-values)), 0.0), is_whole=is_whole
    )
    record = float(plan.partition_total or 1)
    maps = {
        quantity.name: np.array(
            [float(quantity.coefficients.get(position, 0)) for position in range(len(plan.components))]
        )
        for quantity in plan.quantities
        if quantity.name in {"n", "total"}
    }
    ratio = "share" if plan.family in _SHARES else "mean"
    largest = float(plan.parameters.upper or 1) if plan.family in _SHARES else 1.0

    def quantities(totals: Floats) -> dict[str, Floats]:
        if plan.family in _COUNTS:
            n = np.sum(totals, axis=1, keepdims=True)
            return {"count": totals, "share": _over(totals, n)}
        n, total = totals @ maps["n"], totals @ maps["total"]
        return {"n": n, "total": total, ratio: _over(total, n) / largest}

    def of_cell(row: Floats) -> CellPoints:
        cell = TotalsOfCell(values=row, record=record, noise=noise)

        def points() -> tuple[Floats, Mapping[str, Floats]]:
            shares = evenly_spread(len(row) + 1)
            totals = cell.points(shares)
            held = np.any(totals > 0.0, axis=1)
            # Shares are of records: given that there is one, unless none of the points has any.
            kept = totals[held] if held.any() else totals
            return np.full(len(kept), 1.0 / len(kept)), quantities(kept)

        return points

    return [of_cell(row) for row in values]


def _moments(statistic: NoisyStatistic) -> list[CellPoints]:
    """Points of the number of records, of their total, and of their mean and variance."""
    plan = statistic.plan
    family: Any = FAMILIES[plan.family]
    centre, half_range = family.mean_and_variance.interval(plan.parameters)
    record = float(plan.partition_total or 1)
    mean, variance = (space.name for space in family.parameter_spaces(plan.parameters))

    values = (statistic.values / record).astype(np.float64)
    shares = evenly_spread(4)

    @lru_cache(maxsize=_KEPT)
    def weighted(cell: int) -> tuple[Floats, Mapping[str, Floats]]:
        own = MomentsOfCell(values=values[cell], scale=plan.scale / record, terms=statistic.cells_summed)
        weight, (n, m, square) = own.points(shares)
        location = centre + half_range * m
        return weight, {"n": n, "total": n * location, mean: location, variance: half_range**2 * square}

    return [partial(weighted, cell) for cell in range(len(values))]


def _over(total: Floats, n: Floats) -> Floats:
    """Return ratios; no number where there are no records."""
    ratio: Floats = np.divide(
        total, n, out=np.full(np.broadcast_shapes(total.shape, n.shape), np.nan), where=n > 0.0
    )
    return ratio


def summed(parts: tuple[NoisyStatistic, ...]) -> NoisyStatistic:
    """Return aligned cells of a release added up: values, and so many noises."""
    first = parts[0]
    values = np.sum([part.values for part in parts], axis=0, dtype=object)
    return dataclasses.replace(first, values=values, cells_summed=len(parts) * first.cells_summed)
