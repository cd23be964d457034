r"""Normal, mean and variance unknown: a numeric column clipped to ``lower..upper``.

.. math:: p(x \mid \mu, \sigma^2) \propto \sigma^{-1} e^{-(x - \mu)^2 / 2\sigma^2}, \quad T(x) = (x, x^2)

On the lattice X lies in ``-M..M`` with ``M = 2**lattice_bits``, and ``x = centre + half_range X / M``.
Sensitivity in `sensitivity.md`: partition-of-unity, the quadratic Bernstein basis, which sums to
``(2M)^2`` a record; or minimal-moments; unit-means.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from pydantic import model_validator

from suffice.pipeline.families.shared import contract
from suffice.pipeline.families.shared.clipped_record import normal_outside
from suffice.pipeline.families.shared.parameter_space import ParameterSpace, Support
from suffice.pipeline.families.shared.smoothness import of_mean_and_variance
from suffice.pipeline.math.distributions.normal_inverse_gamma import (
    NormalInverseGamma,
    NormalInverseGammaDistribution,
)
from suffice.pipeline.terms.declaration import fields
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics import l2_sensitivity
from suffice.pipeline.terms.statistics.lattice import DEFAULT_BITS, Quantiser, require_interval
from suffice.pipeline.terms.statistics.measure import LatticeColumn, PowerSums
from suffice.pipeline.terms.statistics.moment_columns import (
    DEFAULT_WEIGHT,
    NormalSums,
    first_moment,
    n_moments,
)
from suffice.pipeline.terms.statistics.sensitivity import (
    Block,
    Constants,
    Design,
    Quantity,
    combination,
    minimal_moments,
    moments_between_ends,
)
from suffice.pipeline.terms.statistics.simulated_sums import power_sums

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from suffice.pipeline.families.shared.clipped_record import Outside
    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.normal.moment_weights import NoisyMoments
    from suffice.pipeline.math.priors.mixtures import Mixture, ScaleMixture
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.lattice import Transform
    from suffice.pipeline.terms.statistics.simulated_sums import SimulatedSums
    from suffice.typing import Floats


class NormalSpec(fields.ColumnSpec):
    """A numeric column clipped to ``lower..upper`` and rounded to the lattice."""

    lower: fields.Bound
    upper: fields.Bound
    nulls: fields.NullsField = fields.Nulls()
    lattice_bits: fields.LatticeBits = DEFAULT_BITS
    moment_weight: fields.MomentWeight | None = None

    @model_validator(mode="after")
    def _bounds_are_an_interval(self) -> Self:
        require_interval(self.lower, self.upper)
        require_weight(self.moment_weight, self.lattice_bits)
        return self


def require_weight(weight: Fraction | None, bits: int) -> None:
    """Refuse a weight of second moments by which the lattice's steps cannot be divided."""
    if weight is not None and weight > 1 << bits:
        message = f"moment_weight is at most 2^lattice_bits = {1 << bits}"
        raise ValueError(message)


def measure(spec: NormalSpec, transform: Transform | None = None) -> PowerSums:
    """Sum n, X and X^2 on the lattice, of values or of what is taken of them."""
    quantiser = Quantiser.centred(spec.lower, spec.upper, spec.lattice_bits)
    column = LatticeColumn.of(spec.column, quantiser, nulls=spec.nulls.value, transform=transform)
    return PowerSums(of=column, degree=2)


def _in_column_units(
    spec: NormalSpec, n: Quantity, total: Quantity, squares: Quantity
) -> tuple[Quantity, ...]:
    """Map the lattice moments n, sum X and sum X^2 to n, total and total_of_squares of the column."""
    centre = (spec.lower + spec.upper) / 2
    step = (spec.upper - spec.lower) / 2 / (1 << spec.lattice_bits)
    return (
        n,
        combination("total", [(centre, n), (step, total)]),
        combination("total_of_squares", [(centre**2, n), (2 * centre * step, total), (step**2, squares)]),
    )


def block(spec: NormalSpec, n_is_public: bool) -> Block:
    """Release the quadratic Bernstein sums, or the weighted moments beside a public N."""
    steps = 1 << spec.lattice_bits
    if n_is_public and spec.nulls.value is not None:
        weight = spec.moment_weight or DEFAULT_WEIGHT
        return Block(
            design=Design.MINIMAL,
            components=(first_moment(steps, weight), "sum(X^2)"),
            largest_value=max(steps**2, int(steps**2 / weight)),
            minimal_sensitivity=minimal_moments(steps, weight),
            minimal_l2_squared=l2_sensitivity.minimal_moments(steps, weight),
            between_ends=moments_between_ends(steps, weight),
            moment_weight=weight,
            quantities=_in_column_units(
                spec,
                n=Quantity(name="n", coefficients={}, public_n_coefficient=Fraction(1)),
                total=Quantity(name="sum(X)", coefficients={0: weight / steps}),
                squares=Quantity(name="sum(X^2)", coefficients={1: Fraction(1)}),
            ),
        )
    quarter, lattice_unit = Fraction(1, 4), Fraction(1, 4 * steps)
    record = Fraction(1, 4 * steps**2)
    return Block(
        design=Design.PARTITION_OF_UNITY,
        components=("sum((M-X)^2)", "sum(2(M-X)(M+X))", "sum((M+X)^2)"),
        largest_value=4 * steps**2,
        record_l1=4 * steps**2,
        quantities=_in_column_units(
            spec,
            n=Quantity(name="n", coefficients={0: record, 1: record, 2: record}),
            total=Quantity(name="sum(X)", coefficients={0: -lattice_unit, 2: lattice_unit}),
            squares=Quantity(name="sum(X^2)", coefficients={0: quarter, 1: -quarter, 2: quarter}),
        ),
    )


def totals(spec: NormalSpec, design: Design, sums: NDArray[Any]) -> NDArray[Any]:
    """Form the components from n, sum X and sum X^2, in Python integers."""
    steps = 1 << spec.lattice_bits
    n, total, squares = sums[:, 0], sums[:, 1], sums[:, 2]
    if design is Design.MINIMAL:
        return np.stack([total * int(steps / (spec.moment_weight or DEFAULT_WEIGHT)), squares], axis=1)
    ends, cross = n * steps**2 + squares, 2 * steps * total
    return np.stack([ends - cross, 2 * (n * steps**2 - squares), ends + cross], axis=1)


def parameters(spec: NormalSpec) -> Constants:
    """Return the clipping bounds and the lattice."""
    return Constants(lower=spec.lower, upper=spec.upper, lattice_bits=spec.lattice_bits)


def default_prior(parameters: Constants) -> ScaleMixture:
    """Return a prior centred in the interval, of any standard deviation up to about its half range."""
    from suffice.pipeline.math.priors.mixtures import ScaleMixture  # consumers only

    return ScaleMixture(float(parameters.lower or 0), float(parameters.upper or 0))


def project(statistic: NoisyStatistic) -> NormalSums:
    """Return N, sum and sum of squares in half ranges: n >= 0, |t| <= n, t^2 / n <= q <= n."""
    lower = statistic.plan.parameters.lower or Fraction(0)
    upper = statistic.plan.parameters.upper or Fraction(0)
    centre, half_range = (lower + upper) / 2, (upper - lower) / 2
    maps = {quantity.name: quantity for quantity in statistic.plan.quantities}
    n_map, total_map, squares_map = maps["n"], maps["total"], maps["total_of_squares"]
    # Combined in exact fractions: far from zero, a difference of rounded sums would lose its digits.
    total = statistic.estimates(
        combination("total", [(1 / half_range, total_map), (-centre / half_range, n_map)])
    )
    squares = statistic.estimates(
        combination(
            "total_of_squares",
            [
                (1 / half_range**2, squares_map),
                (-2 * centre / half_range**2, total_map),
                (centre**2 / half_range**2, n_map),
            ],
        )
    )
    n = np.maximum(statistic.estimates(n_map), 0.0)
    total = np.clip(total, -n, n)
    least = np.divide(total**2, n, out=np.zeros_like(n), where=n > 0.0)
    return NormalSums(
        n=n,
        total=total,
        total_of_squares=np.clip(squares, least, np.maximum(n, least)),
        centre=float(centre),
        half_range=float(half_range),
    )


def plug_in(statistic: NoisyStatistic, prior: NormalInverseGamma) -> Distribution:
    """Update the prior with projected sums; see ``NormalInverseGammaDistribution.updated``."""
    return NormalInverseGammaDistribution.updated(prior, project(statistic))


def noisy_moments(
    statistic: NoisyStatistic, prior: NormalInverseGamma | Mixture, n_prior: NPrior
) -> NoisyMoments:
    r"""Return the raw noisy sums in half ranges, with the distribution of their noise and the prior.

    The noise is discrete, but on a lattice so fine that it is taken for continuous: with M = 4, the coarsest,
    its scale is still above three steps at an epsilon of 20. The sums are those of rounded values: where the
    standard deviation is above a step, rounding adds on average 1 / 12 M^2 a record to q (Sheppard), which
    matters for few ``lattice_bits`` and is taken into account. Columns that vary by less than a step do not
    follow the model.
    """
    from suffice.pipeline.math.engines.normal.moment_weights import (  # consumers only
        BERNSTEIN,
        MOMENTS,
        MomentsPrior,
        NoisyMoments,
    )
    from suffice.pipeline.math.priors.mixtures import Mixture

    steps = 1 << (statistic.plan.parameters.lattice_bits or DEFAULT_BITS)
    minimal = statistic.plan.design is Design.MINIMAL
    coefficients = np.array(MOMENTS if minimal else BERNSTEIN)
    coefficients[:, 0] += coefficients[:, 2] / (12.0 * steps**2)
    values, scales = [], []
    for observation in statistic.observations:
        weight = observation.plan.moment_weight or DEFAULT_WEIGHT
        units = (int(steps**2 / weight), steps**2) if minimal else (4 * steps**2,) * 3
        values.append(
            [[value / unit for value, unit in zip(row, units, strict=True)] for row in observation.values]
        )
        scales += [observation.plan.scale / unit for unit in units]
    centre, half_range = interval(statistic.plan.parameters)
    parts = prior if isinstance(prior, Mixture) else Mixture(1.0, prior)
    components = cast("tuple[NormalInverseGamma, ...]", parts.components)
    return NoisyMoments(
        totals=NoisyTotals(
            values=np.concatenate(values, axis=1, dtype=np.float64),
            scale=np.array(scales),
            coefficients=np.tile(coefficients, (len(values), 1)),
            releases=len(values),
        ),
        prior=MomentsPrior.of(
            [
                (
                    weight,
                    (part.loc - centre) / half_range,
                    part.precision,
                    part.concentration,
                    part.scale / half_range**2,
                )
                for weight, part in zip(parts.weights, components, strict=True)
            ]
        ),
        n_prior=n_prior,
    )


def noise_aware(
    statistic: NoisyStatistic,
    prior: NormalInverseGamma | Mixture,
    n_prior: NPrior,
    names: tuple[str, str] = ("mean", "variance"),
) -> Distribution:
    """Return the exact posterior: N and both sums are latent, N with its own prior."""
    from suffice.pipeline.math.engines.normal.moment_posterior import (
        MomentPosterior,  # consumers only
        MomentsDistribution,
    )

    centre, half_range = interval(statistic.plan.parameters)
    posterior = MomentPosterior(noisy=noisy_moments(statistic, prior, n_prior))
    return MomentsDistribution(posterior=posterior, centre=centre, half_range=half_range, names=names)


def jax_likelihood(statistic: NoisyStatistic, n_prior: NPrior, given: Mapping[str, Any], latent: Any) -> Any:
    """Return the log weight (n_cells,) of latent numbers, given a mean and a variance."""
    from suffice.pipeline.math.engines.jax_moments import one_column  # an extra

    # Of a prior of the parameters a likelihood takes nothing: any will do.
    noisy = noisy_moments(statistic, default_prior(statistic.plan.parameters), n_prior)
    mean, variance = given.values()
    return one_column(statistic, noisy, mean, variance, latent)


def mean_and_variance(mean: str, variance: str) -> tuple[ParameterSpace, ParameterSpace]:
    """Return the spaces of a mean and a variance with these names."""
    return ParameterSpace(name=mean), ParameterSpace(name=variance, support=Support.POSITIVE)


def interval(parameters: Constants) -> tuple[float, float]:
    """Centre and half range, in the column's unit."""
    lower, upper = parameters.lower or Fraction(0), parameters.upper or Fraction(0)
    return float((lower + upper) / 2), float((upper - lower) / 2)


def log_likelihood(mean: Floats, variance: Floats, sums: NormalSums, _parameters: Constants) -> Floats:
    r"""Return :math:`-(n \log v + (q - 2 m t + n m^2) / v) / 2`, worked out in half ranges."""
    m, v = (mean - sums.centre) / sums.half_range, variance / sums.half_range**2
    about_mean = sums.total_of_squares - 2 * m * sums.total + sums.n * m**2
    return -(sums.n * np.log(v) + about_mean / v) / 2


def simulate(
    spec: NormalSpec, truth: Floats, sizes: NDArray[np.int64], rng: np.random.Generator
) -> SimulatedSums:
    """Draw data sets with these means and variances, (n_data_sets, 2), and sum them."""
    mean, sd = truth[:, 0], np.sqrt(truth[:, 1])
    return power_sums(measure(spec), sizes, lambda record: rng.normal(mean[record], sd[record]))


def outside(mean: Floats, variance: Floats, parameters: Constants) -> Outside:
    """Return values outside of either bound."""
    return normal_outside(mean, variance, float(parameters.lower or 0), float(parameters.upper or 0))


def unit_totals(spec: NormalSpec, products: NDArray[Any]) -> NDArray[Any]:
    """Form squares and twice the product of sum(M - X) and sum(M + X), of k^2, k sum X and (sum X)^2."""
    return totals(spec, Design.PARTITION_OF_UNITY, products)


UNIT_COMPONENTS = ("(sum(M-X))^2 of units", "2 sum(M-X) sum(M+X) of units", "(sum(M+X))^2 of units")
MEAN_AND_VARIANCE = contract.MeanAndVariance(interval=interval, project=project, noisy=noisy_moments)

FAMILY = contract.Family(
    name="normal",
    spec=NormalSpec,
    measure=measure,
    block=block,
    totals=totals,
    parameters=parameters,
    prior=NormalInverseGamma,
    default_prior=default_prior,
    plug_in=plug_in,
    log_likelihood=log_likelihood,
    noise_aware=noise_aware,
    simulate=simulate,
    takes_mixtures=True,
    of_units=contract.UNIT_MEANS,
    unit_moments=contract.UnitMoments(components=UNIT_COMPONENTS, totals=unit_totals),
    parameter_spaces=lambda _parameters: mean_and_variance("mean", "variance"),
    jax_likelihood=jax_likelihood,
    smoothness=of_mean_and_variance("mean", "variance", "the column"),
    n_latent=n_moments,
    example=contract.Example(
        entry={"column": "x", "lower": "-3", "upper": "100"}, columns={"x": contract.ColumnType.NUMBER}
    ),
    generative_case=contract.GenerativeCase(
        entry={"column": "x", "lower": "-6", "upper": "6"}, prior="NormalInverseGamma(0.3, 4, 12, 6)"
    ),
    outside=outside,
    clipping_bounds=lambda spec: (spec.lower, spec.upper),
    mean_and_variance=MEAN_AND_VARIANCE,
)
