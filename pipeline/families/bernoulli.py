r"""Bernoulli: a boolean column, or one of 0 and 1.

.. math:: p(x \mid p) = p^x (1 - p)^{1 - x}, \quad x \in \{0, 1\}, \quad T(x) = x

Sensitivity in `sensitivity.md`: partition-of-unity (false, true) or minimal-sum (true);
one-row-a-unit.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import model_validator

from suffice.pipeline.families.shared import contract
from suffice.pipeline.families.shared.parameter_space import ParameterSpace, SampledParameter, Support
from suffice.pipeline.families.shared.smoothness import of_one_sum
from suffice.pipeline.math.distributions.dirichlet import Beta, BetaDistribution
from suffice.pipeline.math.distributions.interval_kinds import HIGHEST_DENSITY
from suffice.pipeline.terms.declaration.domains import boolean_domain
from suffice.pipeline.terms.declaration.fields import Nulls, NullsField, SampledColumnSpec
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics.measure import CodeColumn, CodeCounts
from suffice.pipeline.terms.statistics.sensitivity import Block, Constants, Design, Quantity, minimal_sum
from suffice.pipeline.terms.statistics.simulated_sums import code_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.simulated_sums import SimulatedSums
    from suffice.typing import Floats


ONE = Fraction(1)
PROBABILITY = ParameterSpace(name="probability", support=Support.PROBABILITY)
"""Of a trial's success: a beta is conjugate to it here, and in families that count such trials."""


class BernoulliSpec(SampledColumnSpec):
    """A column whose values are false and true, or 0 and 1; anything else follows `nulls`."""

    nulls: NullsField = Nulls()

    @model_validator(mode="after")
    def _nulls_are_zero_or_one(self) -> Self:
        if self.nulls.value not in {None, Fraction(0), ONE}:
            message = "nulls of a bernoulli statistic count as 0 or 1, or drop"
            raise ValueError(message)
        return self


def measure(spec: BernoulliSpec) -> CodeCounts:
    """Count false and true."""
    value = spec.nulls.value
    column = CodeColumn(
        column=spec.column, domain=boolean_domain(), fallback=None if value is None else int(value)
    )
    return CodeCounts(of=column)


def block(spec: BernoulliSpec, n_is_public: bool) -> Block:
    """Release (false, true), or true alone where every physical row counts and N is public."""
    if n_is_public and spec.nulls.value is not None:
        return Block(
            design=Design.MINIMAL,
            components=("true",),
            largest_value=1,
            minimal_sensitivity=minimal_sum(0, 1),
            quantities=(
                Quantity(name="n", coefficients={}, public_n_coefficient=ONE),
                Quantity(name="total", coefficients={0: ONE}),
            ),
        )
    return Block(
        design=Design.PARTITION_OF_UNITY,
        components=("false", "true"),
        largest_value=1,
        record_l1=1,
        quantities=(
            Quantity(name="n", coefficients={0: ONE, 1: ONE}),
            Quantity(name="total", coefficients={1: ONE}),
        ),
    )


def totals(_spec: BernoulliSpec, design: Design, sums: NDArray[Any]) -> NDArray[Any]:
    """Take both counts, or that of true."""
    return sums[:, 1:] if design is Design.MINIMAL else sums


def parameters(_spec: BernoulliSpec) -> Constants:
    """Return none: the family has no public constants."""
    return Constants()


def uniform_prior(_parameters: Constants) -> Beta:
    """Return the uniform prior of a probability."""
    return Beta(1, 1)


def beta_distribution(prior: Beta, successes: Floats, failures: Floats) -> Distribution:
    """Return the distribution of a probability after these, possibly fractional, successes and failures."""
    return BetaDistribution(
        concentration1=prior.concentration1 + successes, concentration0=prior.concentration0 + failures
    )


def log_odds(
    probability: Fraction, trials: Fraction, log: Callable[[Fraction], Fraction]
) -> tuple[Fraction, Fraction]:
    """Return the natural parameter of so many trials that succeed with a probability, and its normaliser."""
    failure = log(1 - probability)
    return log(probability) - failure, -trials * failure


def success_log_likelihood(probability: Floats, successes: Floats, failures: Floats) -> Floats:
    r"""Return :math:`s \log p + f \log(1 - p)`, of a probability that a beta is conjugate to."""
    from scipy.special import xlog1py, xlogy

    return np.asarray(xlogy(successes, probability) + xlog1py(failures, -probability), dtype=np.float64)


def project(statistic: NoisyStatistic) -> Floats:
    """Return counts of false and true, (n_cells, 2): within 0..N where N is public, else at least 0."""
    values = statistic.values.astype(np.float64)
    if statistic.plan.design is not Design.MINIMAL:
        return np.maximum(values, 0.0)
    n = float(statistic.known_n)
    true = np.clip(values[:, 0], 0.0, n)
    return np.stack([n - true, true], axis=1)


def plug_in(statistic: NoisyStatistic, prior: Beta) -> Distribution:
    r"""Update the prior: :math:`\mathrm{Beta}(a + n_1, b + n_0)`, of projected counts."""
    false, true = project(statistic).T
    return beta_distribution(prior, true, false)


def log_likelihood(probability: Floats, counts: Floats, _parameters: Constants) -> Floats:
    r"""Return :math:`n_1 \log p + n_0 \log(1 - p)` of counts of false and true, on the last axis."""
    return success_log_likelihood(probability, counts[..., 1], counts[..., 0])


def noise_aware(statistic: NoisyStatistic, prior: Beta, n_prior: NPrior) -> Distribution:
    """Return the exact posterior: the counts of false and true are latent, N with its own prior."""
    from suffice.pipeline.math.engines.one_sum.sum_posterior import LatentSumPosterior  # consumers only

    return LatentSumPosterior.of(*latent(statistic, prior, n_prior))


def latent(
    statistic: NoisyStatistic, prior: Beta, n_prior: NPrior
) -> tuple[NoisySums, Callable[[Floats, Floats], Distribution]]:
    """Return the count of true, and that of false where it is released, as sums of one trial a record."""
    from suffice.pipeline.math.engines.one_sum.noisy_sum import (
        BetaBinomial,  # consumers only
        NoisySums,
    )

    rows = [[0.0, 1.0]] if statistic.plan.design is Design.MINIMAL else [[1.0, -1.0], [0.0, 1.0]]
    sums = NoisySums(
        totals=NoisyTotals.of(statistic, np.array(rows)),
        step=1.0,
        lower=0.0,
        marginal=BetaBinomial(
            concentration1=prior.concentration1, concentration0=prior.concentration0, trials=1.0
        ),
        n_prior=n_prior,
    )
    return sums, lambda n, true: beta_distribution(prior, true, n - true)


def jax_likelihood(
    statistic: NoisyStatistic, n_prior: NPrior, given: Mapping[str, Any], _latent: None
) -> Any:
    """Return the log likelihood of every cell: all counts are summed."""
    import jax.numpy as jnp  # an extra

    from suffice.pipeline.math.engines.jax_sums import vector  # an extra

    plan = statistic.plan
    values, rates = statistic.values.astype(np.float64), np.full(2, 1.0 / plan.scale)
    if plan.design is Design.MINIMAL:  # false is what true leaves of N
        values = np.concatenate([statistic.known_n - values, values], axis=1)
        rates[0] = 0.0
    true = given["probability"]
    probability = jnp.stack(jnp.broadcast_arrays(1.0 - true, true), axis=-1)
    return vector(values, probability, rates, plan.scale, n_prior)


def simulate(
    _spec: BernoulliSpec, truth: Floats, sizes: NDArray[np.int64], rng: np.random.Generator
) -> SimulatedSums:
    """Draw counts of false and true."""
    return code_counts(sizes, np.stack([1.0 - truth, truth], axis=1), rng)


def unit_totals(_spec: BernoulliSpec, products: NDArray[Any]) -> NDArray[Any]:
    """Take squares and twice the product of each unit's counts of false and true."""
    return np.stack([products[:, 0], 2 * products[:, 1], products[:, 2]], axis=1)


def natural(
    probability: Fraction, log: Callable[[Fraction], Fraction], _parameters: Constants
) -> tuple[Fraction, Fraction]:
    """Return the log odds and the log normaliser, of one trial."""
    return log_odds(probability, ONE, log)


def records_and_total(_spec: BernoulliSpec, sums: NDArray[Any]) -> NDArray[Any]:
    """Return the counts of all and of true."""
    return np.stack([sums[:, 0] + sums[:, 1], sums[:, 1]], axis=1)


UNIT_MOMENTS = contract.UnitMoments(
    components=("false^2 of units", "2 false true of units", "true^2 of units"), totals=unit_totals
)

FAMILY = contract.Family(
    name="bernoulli",
    spec=BernoulliSpec,
    measure=measure,
    block=block,
    totals=totals,
    parameters=parameters,
    prior=Beta,
    default_prior=uniform_prior,
    plug_in=plug_in,
    log_likelihood=log_likelihood,
    noise_aware=noise_aware,
    latent=latent,
    simulate=simulate,
    of_units=contract.ONE_ROW_A_UNIT,
    sampled=SampledParameter(natural=natural, totals=records_and_total),
    unit_moments=UNIT_MOMENTS,
    interval=HIGHEST_DENSITY,
    parameter_spaces=lambda _parameters: (PROBABILITY,),
    jax_likelihood=jax_likelihood,
    smoothness=of_one_sum("probability", natural, lambda _parameters: 1.0),
    mean="probability",
    example=contract.Example(entry={"column": "x"}, columns={"x": contract.ColumnType.BOOLEAN}),
    generative_case=contract.GenerativeCase(entry={"column": "x"}),
)
