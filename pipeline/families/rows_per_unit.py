r"""Rows per unit: how many rows units have, and which share of them a bound on units leaves out.

.. math:: T(k) = (\min(k, K), \; \min(k, C) - \min(k, K), \; C - \min(k, C))

of a unit with k rows, K of which enter the release; or a histogram of :math:`\min(k, C)` over units.
Sensitivity in `sensitivity.md`: rows-per-unit and bounded-units.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.families import categorical
from suffice.pipeline.families.shared.contract import Absent, Example, Family, GenerativeCase
from suffice.pipeline.families.shared.parameter_space import probabilities
from suffice.pipeline.families.shared.smoothness import of_tables
from suffice.pipeline.math.distributions.dirichlet import Dirichlet, DirichletDistribution
from suffice.pipeline.terms.declaration.fields import Boolean, Count, StatisticSpec
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics import l2_sensitivity
from suffice.pipeline.terms.statistics.measure import RowCounts
from suffice.pipeline.terms.statistics.sensitivity import Block, Constants, Design, Quantity
from suffice.pipeline.terms.statistics.simulated_sums import SimulatedSums, code_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


KEPT, LEFT_OUT = "kept", "left out"
NO_LAW = "its shares are of the rows themselves, and of no distribution that a unit is drawn from"
_UPPER, _MAX_ROWS = "upper", "max_rows"


class RowsPerUnitSpec(StatisticSpec):
    """The rows of each unit, of which at most `upper` are counted; each number of rows with `histogram`."""

    upper: Count
    histogram: Boolean = False


def refused_under(spec: RowsPerUnitSpec) -> str | None:
    """Say that the bound is too low to see rows that are left out."""
    if spec.upper > spec.max_rows:
        return None
    return f"upper is {spec.upper}: only above max_rows, {spec.max_rows}, are rows seen that are left out"


def measure(spec: RowsPerUnitSpec) -> RowCounts:
    """Sum rows kept, left out and unused; or count the units with each number of rows."""
    return RowCounts(kept=spec.max_rows, upper=spec.upper, counts_each=spec.histogram)


def categories(spec: RowsPerUnitSpec) -> tuple[str, ...]:
    """Return what shares are of: rows kept and left out; or units with each number of rows."""
    if not spec.histogram:
        return KEPT, LEFT_OUT
    return (*map(str, range(1, spec.upper)), f"{spec.upper} or more")


def block(spec: RowsPerUnitSpec, _n_is_public: bool) -> Block:
    """Release the three totals, or the histogram; the number of units follows from either."""
    counts = tuple(
        Quantity(name="count", category=category, coefficients={position: Fraction(1)})
        for position, category in enumerate(categories(spec))
    )
    if spec.histogram:
        return Block(
            design=Design.PARTITION_OF_UNITY,
            components=categories(spec),
            largest_value=1,
            record_l1=1,
            unit_l1=1,
            quantities=counts,
        )
    share = Fraction(1, spec.upper)
    return Block(
        design=Design.PARTITION_OF_UNITY,
        components=("sum(min(k,K))", "sum(min(k,C)-min(k,K))", "sum(C-min(k,C))"),
        largest_value=spec.upper,
        record_l1=spec.upper,
        unit_l1=spec.upper,
        record_l2_squared=l2_sensitivity.rows_of_units(spec.max_rows, spec.upper),
        quantities=(Quantity(name="n", coefficients={0: share, 1: share, 2: share}), *counts),
    )


def parameters(spec: RowsPerUnitSpec) -> Constants:
    """Return the categories, and both bounds."""
    constants = {_UPPER: Fraction(spec.upper), _MAX_ROWS: Fraction(spec.max_rows)}
    return Constants(categories=categories(spec), constants=constants)


def sentence(spec: RowsPerUnitSpec) -> str:
    """Say what the shares are of."""
    if spec.histogram:
        return "of units of the release: how many rows each has"
    return (
        f"of rows of the release, the first {spec.upper} of each unit, of which {spec.max_rows} are kept: at "
        "least this share is left out"
    )


def is_histogram(parameters: Constants) -> bool:
    """Whether units with each number of rows are counted."""
    return parameters.categories != (KEPT, LEFT_OUT)


def default_prior(parameters: Constants) -> Dirichlet:
    """Return the uniform prior of the share left out; for a histogram one that counts for a unit in all."""
    return Dirichlet(1 / len(parameters.categories)) if is_histogram(parameters) else Dirichlet(1)


def project(statistic: NoisyStatistic) -> Floats:
    """Return counts of at least 0: of units by rows, or of rows kept and left out."""
    counts = np.maximum(statistic.values.astype(np.float64), 0.0)
    return counts[:, : len(statistic.plan.parameters.categories)]


def plug_in(statistic: NoisyStatistic, prior: Dirichlet) -> Distribution:
    """Update the prior by projected counts, as though every row, or unit, were drawn by itself."""
    return DirichletDistribution(concentration=_concentration(statistic, prior) + project(statistic))


def noise_aware(statistic: NoisyStatistic, prior: Dirichlet, n_prior: NPrior) -> Distribution:
    """Return the posterior of the data's own shares; of a histogram, that of its categories."""
    known = statistic.plan.parameters
    if is_histogram(known):
        if statistic.cells_summed > 1:
            message = (
                f"{statistic.plan.name} is a histogram of the whole release, of which there is no posterior "
                f"from {statistic.cells_summed} cells together: release it without groups; table has its "
                "counts, and roll_up their sums"
            )
            raise UsageError(message)
        return categorical.noise_aware(statistic, prior, n_prior)
    from suffice.pipeline.math.engines.left_out_share import NoisyRowTotals, RowShares  # consumers only

    kept, left_out = _concentration(statistic, prior).tolist()
    return RowShares.of(
        NoisyRowTotals(
            totals=NoisyTotals.of(statistic),
            kept=int(known.constants[_MAX_ROWS]),
            upper=int(known.constants[_UPPER]),
            concentration=(kept, left_out),
            n_prior=n_prior,
            cells=statistic.cells_summed,
        )
    )


def truth(prior: Dirichlet, parameters: Constants, size: int, rng: np.random.Generator) -> Floats:
    """Draw shares of every category; of rows left out only such as there can be."""
    drawn = prior.sample(size, rng, len(parameters.categories))
    if is_histogram(parameters):
        return drawn
    largest = float(1 - parameters.constants[_MAX_ROWS] / parameters.constants[_UPPER])
    while np.any(beyond := drawn[:, 1] > largest):
        drawn[beyond] = prior.sample(int(np.count_nonzero(beyond)), rng, 2)
    return drawn


def simulate(
    spec: RowsPerUnitSpec, truth: Floats, sizes: NDArray[np.int64], rng: np.random.Generator
) -> SimulatedSums:
    """Draw histograms; or totals with these shares of rows, up to rounding to whole rows."""
    if spec.histogram:
        return code_counts(sizes, truth, rng)
    from suffice.pipeline.math.engines.left_out_share import draw_rows  # consumers only

    drawn = draw_rows(sizes.astype(np.float64), truth[:, 1], spec.max_rows, spec.upper, rng)
    sums = drawn.astype(np.int64).astype(object)
    return SimulatedSums(clipped=sums, unclipped=sums, n_clipped=0)


def _concentration(statistic: NoisyStatistic, prior: Dirichlet) -> Floats:
    given = np.array(prior.concentration, dtype=np.float64)
    return np.broadcast_to(given, (len(statistic.plan.parameters.categories),)).copy()


FAMILY = Family(
    name="rows_per_unit",
    spec=RowsPerUnitSpec,
    measure=measure,
    block=block,
    totals=lambda _spec, _design, sums: sums,
    parameters=parameters,
    prior=Dirichlet,
    default_prior=default_prior,
    plug_in=plug_in,
    log_likelihood=categorical.log_likelihood,
    noise_aware=noise_aware,
    simulate=simulate,
    truth=truth,
    predicts=False,
    of_whole_units=sentence,
    of_release=True,
    refused_under=refused_under,
    n_categories=lambda spec: spec.upper if spec.histogram else 1,
    labels=categorical.labels,
    parameter_spaces=lambda parameters: probabilities(len(parameters.categories)),
    smoothness=dataclasses.replace(
        of_tables(lambda parameters: (len(parameters.categories),), distance="units that differ"),
        reason_against=lambda parameters: "" if is_histogram(parameters) else NO_LAW,
    ),
    jax_likelihood=Absent("its likelihood is a sum of closed forms that are written for NumPy alone"),
    example=Example(entry={"upper": "40"}, columns={}),
    generative_case=GenerativeCase(entry={"upper": "40"}),
)
