r"""Cells of one release merged over some of its group columns, with noise counted right.

Of m merged cells with exact totals S_i, released values add up to

.. math:: y = \sum_{i=1}^m y_i = S + \sum_{i=1}^m Z_i, \qquad S = \sum_i S_i, \qquad Z_i \sim \mathrm{DLap}_b

The question is S itself: totals, shares and means of the records that were released, as bounds and lattice
leave them. Their posterior,

.. math:: p(S \mid y) \propto \pi(S)\, P\left(\textstyle\sum_i Z_i = y - S\right)

follows from that alone: cells may differ as they like, and no family's model of rows is used. So it has no
part for how another sample of records would differ. The priors of S, and how the posterior is worked out, are
those of ``engines.unions``; it is held as points, whose number is its error.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Never, cast

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference import posterior_terms
from suffice.pipeline.ask.judging.checking import MOSTLY
from suffice.pipeline.ask.judging.conflict import Conflict
from suffice.pipeline.ask.pooling.adopted import refuse_adopted
from suffice.pipeline.ask.pooling.pool import pooled
from suffice.pipeline.ask.pooling.statistic import Statistic
from suffice.pipeline.ask.posterior.cells import refuse_shared
from suffice.pipeline.ask.posterior.posterior import Posterior
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines import unions
from suffice.pipeline.math.parameters.arguments import ends_of, generator
from suffice.pipeline.math.parameters.contrasts import matched_cells
from suffice.pipeline.math.parameters.parameter_posterior import DRAWS, MASS
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic, rows_alone
from suffice.pipeline.terms.released.sample import ReleasedSample, no_statistics
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

    from numpy.typing import NDArray

    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.judging.checking import Check
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats

_COUNTS = ("categorical", "contingency", "histogram")
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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
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
        return Conflict.of_nothing(self.n_groups, self.prior)

    @property
    def decided_by_default(self) -> dict[str, NDArray[np.bool_]]:
        """Where intervals of shares and means are mostly their range: by parameter, shaped as ``mean``.

        True where a central interval of 95 % takes two thirds or more of all that a share or a mean can be:
        the prior of totals is spread evenly over what the release leaves open.
        """
        decided = {}
        for name, (low, high) in {"share": (0.0, 1.0), "mean": self._range_of_means()}.items():
            if name in self.parameters:
                ends = self.distribution.quantiles(name, ends_of(MASS), DRAWS, generator(0))
                decided[name] = np.asarray(ends[..., 1] - ends[..., 0] >= MOSTLY * (high - low))
        return decided

    def _range_of_means(self) -> tuple[float, float]:
        constants: Any = self.observed[0].plan.parameters
        moments = FAMILIES[self.family].mean_and_variance
        if moments is None:
            return float(constants.lower or 0), float(constants.upper or 1)
        centre, half_range = moments.interval(constants)
        return centre - half_range, centre + half_range

    @property
    def log_evidence(self) -> Floats:
        """Refused: priors of totals are not compared."""
        self._refuse("evidence")

    def check(
        self,
        quantity: str | None = None,  # noqa: ARG002 - as any posterior's
        draws: int = 0,  # noqa: ARG002 - as any posterior's
        rng: np.random.Generator | int | None = None,  # noqa: ARG002 - as any posterior's
    ) -> Check:
        """Refused: there is no model of rows to be checked."""
        self._refuse("check")

    def _refuse(self, what: str) -> Never:
        message = (
            f"{self.statistic}: totals of merged cells rest on no model of rows, and have no {what}: "
            "posterior(assume='one parameter') has a model"
        )
        raise UsageError(message)


def union_posterior(statistic: NoisyStatistic) -> UnionPosterior:
    """Return the posterior of quantities of merged cells, from sums of released values with ``cells_summed``.

    Families of which such quantities are not worked out are refused.
    """
    refuse_shared(statistic)
    rows = rows_alone(statistic)
    plan, family = rows.plan, FAMILIES[rows.plan.family]
    if rows.observations[1:] or plan.design is not Design.PARTITION_OF_UNITY:
        message = f"{plan.name}: cells are merged of one release, in which the number of records is private"
        raise UsageError(message)
    cells: list[unions.CellPoints]
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
        method=posterior_terms.NOISE_AWARE,
        prior=cast("Prior", UnionPrior(prior)),
        n_prior=None,
        groups=rows.groups,
        label_columns=family.labels(plan.parameters) if plan.family in _COUNTS else {},
        distribution=unions.UnionDistribution.of(cells),
        rows_of=(
            f"{kept}of the released records of {rows.cells_summed} merged cells, as bounds and lattice leave "
            "them: totals, shares and means of these records, not of a process that made them"
        ),
        observed=(rows,),
        cells_summed=rows.cells_summed,
    )


def require_totals(plan: StatisticPlan) -> None:
    """Refuse families of which no quantities of merged cells are worked out."""
    family = FAMILIES[plan.family]
    if family.latent is None and family.mean_and_variance is None and plan.family not in _COUNTS:
        message = (
            f"{plan.name} is {plan.family}, of which totals and shares of merged cells are not worked out: "
            "posterior(assume='one parameter') takes one parameter for all merged cells, which is wrong "
            "where cells differ; table() has sums with their noise"
        )
        raise UsageError(message)


def quantities_of(plan: StatisticPlan) -> int:
    """Return how many intervals a merged cell has; refuse families of which none are worked out."""
    require_totals(plan)
    if plan.family in _COUNTS:
        return 2 * len(plan.components)
    return 3 if FAMILIES[plan.family].mean_and_variance is None else 4


def _totals(statistic: NoisyStatistic, *, is_whole: bool) -> list[unions.CellPoints]:
    """Points of S where it counts, and of quantities that are linear in it."""
    plan = statistic.plan
    values = statistic.values.astype(np.float64)
    noise = unions.SummedNoise.of(
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

    def of_cell(row: Floats) -> unions.CellPoints:
        cell = unions.TotalsOfCell(values=row, record=record, noise=noise)

        def points() -> tuple[Floats, Mapping[str, Floats]]:
            shares = unions.evenly_spread(len(row) + 1)
            totals = cell.points(shares)
            held = np.any(totals > 0.0, axis=1)
            # Shares are of records: given that there is one, unless none of the points has any.
            kept = totals[held] if held.any() else totals
            return np.full(len(kept), 1.0 / len(kept)), quantities(kept)

        return points

    return [of_cell(row) for row in values]


def _moments(statistic: NoisyStatistic) -> list[unions.CellPoints]:
    """Points of the number of records, of their total, and of their mean and variance."""
    plan = statistic.plan
    family: Any = FAMILIES[plan.family]
    centre, half_range = family.mean_and_variance.interval(plan.parameters)
    record = float(plan.partition_total or 1)
    mean, variance = (space.name for space in family.parameter_spaces(plan.parameters))

    values = (statistic.values / record).astype(np.float64)
    shares = unions.evenly_spread(4)

    @lru_cache(maxsize=_KEPT)
    def weighted(cell: int) -> tuple[Floats, Mapping[str, Floats]]:
        moments = unions.MomentsOfCell(
            values=values[cell], scale=plan.scale / record, terms=statistic.cells_summed
        )
        weight, (n, m, square) = moments.points(shares)
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


ONE_PARAMETER = "one parameter"
"""The assumption that merged cells share their parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledUp:
    """Cells merged over group columns; made by ``roll_up``.

    Attributes
    ----------
    columns : tuple of str
        The group columns that are gone.
    parts : tuple of NoisyStatistic
        One for every combination of their keys, with the remaining cells in one order.
    """

    columns: tuple[str, ...]
    parts: tuple[NoisyStatistic, ...] = field(repr=False)

    @property
    def groups(self) -> Mapping[str, list[str | int]]:
        """The keys of every merged cell, by remaining group column."""
        return self.parts[0].groups

    @property
    def statistic(self) -> NoisyStatistic:
        """The merged cells: sums of released values, behind so many noises."""
        return summed(self.parts)

    def table(self) -> list[dict[str, Any]]:
        """Return one row per merged cell and quantity, as ``NoisyStatistic.table`` does.

        Values add up, and so do their noises: with m cells merged, the noise of a sum of components is a sum
        of m discrete Laplace variables, whose standard deviation is sqrt(m) times that of one.
        """
        root = math.sqrt(len(self.parts))
        return [{**row, "noise_sd": row["noise_sd"] * root} for row in self.statistic.table()]

    @posterior_terms.lists_terms
    def posterior(
        self,
        prior: AnyPrior = None,
        *,
        rng: np.random.Generator | int | None = None,
        assume: str | None = None,
        **terms: Unpack[posterior_terms.SharedTerms],
    ) -> Posterior:
        """Return the noise-aware posterior of what the records of the merged cells add up to.

        The answer is of the records that were released: their number, total, mean, variance, counts and
        shares (see ``UnionPosterior``), as bounds and lattice leave them. Nothing is assumed of how cells
        differ. It has no part for how another sample of records would differ, so no parameter of a family.

        Parameters
        ----------
        prior, rng, **terms : optional
            Of the shared parameter, as in ``suffice.pool(disjoint=...)``; of ``assume="one parameter"``.
            Cells are chosen before they are merged, and not by `where`.
        assume : {"one parameter"}, optional
            The merged cells share their parameters, and each has its own N. Where cells differ, such an
            answer is about no cell, and its intervals are wrong.

        Raises
        ------
        UsageError
            Where there is no such assumption, a prior has no use, or the quantities of the family's merged
            cells are not worked out.
        """
        stated = posterior_terms.noise_aware_terms(prior, terms)
        if stated.where:
            message = "roll_up: cells are chosen before they are merged: roll up statistic.where(...)"
            raise UsageError(message)
        require_assumption(assume, stated.clipping, prior, stated.n_prior, stated.predictor_prior)
        if assume is None:
            return union_posterior(self.statistic)
        shared = pooled(self.parts, prior=prior, rng=generator(rng), **terms)
        kept = f"{shared.rows_of}; " if shared.rows_of else ""
        of = f"{kept}assumed to be the same in {len(self.parts)} merged cells: wrong where these differ"
        if FAMILIES[shared.family].adds_up:
            of = f"{kept}of the records of {len(self.parts)} merged cells together, which may differ"
        return dataclasses.replace(shared, rows_of=of)


def require_assumption(assume: str | None, clipping: str, *priors: object) -> None:
    """Refuse assumptions that there are not, and terms of parameters that nobody assumes."""
    if assume not in {None, ONE_PARAMETER}:
        message = f"assume: a roll-up assumes nothing of its cells, or {ONE_PARAMETER!r}: not {assume!r}"
        raise UsageError(message)
    if assume is None and clipping != posterior_terms.BY_EVIDENCE:
        message = (
            "a roll-up's totals, shares and means are of the released records, as bounds leave them: leave "
            f"clipping out, or assume {ONE_PARAMETER!r} for all merged cells"
        )
        raise UsageError(message)
    if assume is None and any(prior is not None for prior in priors):
        message = (
            "a roll-up's totals, shares and means are of the released records, and take no prior of a "
            f"parameter or of N: leave it out, or assume {ONE_PARAMETER!r} for all merged cells"
        )
        raise UsageError(message)


def roll_up(statistic: Statistic | NoisyStatistic, *columns: str) -> RolledUp:
    """Merge cells over some group columns: their sums with noise counted right, and posteriors of these.

    Parameters
    ----------
    statistic : Statistic or NoisyStatistic
        As ``release["cancelled"]``; or some of its cells.
    *columns : str
        The group columns that disappear.

    Raises
    ------
    UsageError
        Where no column is named, or one is no group; where another thing than a statistic is given.
    """
    refuse_adopted(statistic)
    if isinstance(statistic, Statistic):
        statistic = statistic.noisy
    if isinstance(statistic, ReleasedSample):
        raise no_statistics(statistic.plan)
    if not isinstance(statistic, NoisyStatistic):
        message = 'roll_up takes a statistic of a release, as release["cancelled"], then columns'
        raise UsageError(message)
    unknown = [column for column in columns if column not in statistic.groups]
    if unknown or not columns:
        known = ", ".join(statistic.groups) or "none"
        message = f"roll_up takes group columns of the release, which are: {known}"
        raise UsageError(message)
    by_key: dict[tuple[str | int, ...], list[int]] = {}
    for row in range(len(statistic.values)):
        key = tuple(statistic.groups[column][row] for column in columns)
        by_key.setdefault(key, []).append(row)
    first = next(iter(by_key.values()))
    parts = []
    for rows in by_key.values():
        _, order, keys = matched_cells(
            (statistic.groups, first), (statistic.groups, rows), apart_from=columns
        )
        parts.append(dataclasses.replace(statistic.take(order), groups=keys))
    return RolledUp(columns=columns, parts=tuple(parts))
