r"""Linear regression: a numeric outcome on numeric predictors, each clipped to bounds of its own.

.. math:: y = x^T \beta + \beta_0 + e, \quad e \sim \mathrm{Normal}(0, \sqrt v), \quad
          T(z) = (z, z z^T) \text{ of } z = (x, y)

Without an intercept there are no first moments. Columns, lattice, block and quantities are those of
`several_columns.py`, the outcome being the last column. Sensitivity in `sensitivity.md`: two-column-moments
or rotated-moments; beside a public N minimal-moments or, without an intercept, minimal-products; with noise
on a cone cone-moments.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import model_validator

from suffice.pipeline.families.multivariate_normal import prior_of_columns
from suffice.pipeline.families.normal import require_weight
from suffice.pipeline.families.shared import several_columns
from suffice.pipeline.families.shared.contract import ColumnType, Example, Family, GenerativeCase
from suffice.pipeline.families.shared.parameter_space import ParameterSpace, Support
from suffice.pipeline.families.shared.smoothness import Smooth, of_residuals
from suffice.pipeline.math.distributions.normal_inverse_gamma import (
    NormalInverseGammaRegression,
    RegressionDistribution,
)
from suffice.pipeline.math.distributions.spread_scales import SpreadNormalInverseGammaRegression
from suffice.pipeline.terms.declaration.fields import (
    Boolean,
    LatticeBits,
    MomentWeight,
    NoiseField,
    NoiseOn,
    StatisticSpec,
)
from suffice.pipeline.terms.statistics import moment_columns
from suffice.pipeline.terms.statistics.lattice import DEFAULT_BITS
from suffice.pipeline.terms.statistics.moment_columns import is_linear, lattice_of
from suffice.pipeline.terms.statistics.simulated_sums import moment_sums, normal_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.families.shared.contract import PredictorWorld
    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.distributions.normal_inverse_wishart import Moments
    from suffice.pipeline.math.distributions.regions import Region
    from suffice.pipeline.math.distributions.spread_scales import SpreadNormalInverseWishart
    from suffice.pipeline.math.engines.multivariate.exact_moments import AnyNormalPrior, AnyRegressionPrior
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.measure import MomentSums
    from suffice.pipeline.terms.statistics.sensitivity import Constants, NeighboringRelation
    from suffice.pipeline.terms.statistics.simulated_sums import SimulatedSums
    from suffice.typing import Floats


class LinearRegressionSpec(StatisticSpec):
    """One outcome and its predictors; a row enters where each has a value, or one for its nulls."""

    outcome: several_columns.Columns
    predictors: several_columns.Columns
    intercept: Boolean = True
    lattice_bits: LatticeBits = DEFAULT_BITS
    moment_weight: MomentWeight | None = None
    noise: NoiseField | None = None

    @model_validator(mode="after")
    def _columns_go_together(self) -> Self:
        if len(self.outcome) != 1:
            message = "outcome names one column, as {delay: {lower: 0, upper: 180}}"
            raise ValueError(message)
        several_columns.require_columns((*self.predictors, *self.outcome), least=2)
        require_weight(self.moment_weight, self.lattice_bits)
        if self.moment_weight is not None and not self.intercept:
            message = "without an intercept there are no first moments, so moment_weight has no effect"
            raise ValueError(message)
        return self


def _box(spec: LinearRegressionSpec) -> several_columns.Box:
    return several_columns.Box(
        columns={**spec.predictors, **spec.outcome},
        bits=spec.lattice_bits,
        linear=spec.intercept,
        weight=spec.moment_weight,
        on_cone=spec.noise is NoiseOn.CONE,
    )


def measure(spec: LinearRegressionSpec) -> MomentSums:
    """Sum n, values and products of two on the lattices."""
    return several_columns.measure(_box(spec))


def cone_error(
    spec: LinearRegressionSpec, n_may_be_public: bool, neighboring: NeighboringRelation
) -> Fraction:
    """Return the expected squared error of coefficients by noise on a cone, over that by Laplace noise."""
    outcome = len(spec.predictors) + 1
    pairs = [(i, outcome) for i in range(1, outcome)]
    return several_columns.cone_error(_box(spec), pairs, n_may_be_public, neighboring)


def parameters(spec: LinearRegressionSpec) -> Constants:
    """Return the columns' bounds, the lattice, and whether there is an intercept."""
    return several_columns.parameters(_box(spec), intercept=Fraction(int(spec.intercept)))


def default_prior(parameters: Constants) -> SpreadNormalInverseGammaRegression:
    """Return a prior about the middle of the bounds, its scales spread over eight decades below them."""
    lattices = [lattice_of(column, linear=is_linear(parameters)) for column in parameters.columns]
    centre, half_range = zip(*lattices, strict=True)
    return SpreadNormalInverseGammaRegression(tuple(map(float, centre)), tuple(map(float, half_range)))


def default_predictor_prior(parameters: Constants) -> SpreadNormalInverseWishart:
    """Return the default prior of a multivariate normal statistic of the predictors."""
    return prior_of_columns(parameters.columns[:-1], linear=is_linear(parameters))


def plug_in(statistic: NoisyStatistic, prior: AnyRegressionPrior) -> Distribution:
    """Update the prior with projected moments; where its scales are latent, chains draw them."""
    from suffice.pipeline.math.distributions.normal_inverse_wishart import project
    from suffice.pipeline.math.engines.multivariate import exact_moments
    from suffice.pipeline.math.engines.multivariate.exact_moments import posterior_of_moments

    sums, parameters = project(statistic), statistic.plan.parameters
    if isinstance(prior, NormalInverseGammaRegression):
        return RegressionDistribution.updated(prior, sums, parameters)
    evidence = exact_moments.regression_evidence(prior, parameters)
    update = exact_moments.regression_update(prior, evidence, parameters)
    return posterior_of_moments(sums, evidence, update, f"{prior}")


def noise_aware(statistic: NoisyStatistic, prior: AnyRegressionPrior, n_prior: NPrior) -> Distribution:
    """Return the posterior of latent moments by MCMC; N, where it is private, with its own prior."""
    return disjoint((statistic,), prior, (n_prior,))


def disjoint(
    statistics: Sequence[NoisyStatistic],
    prior: AnyRegressionPrior,
    n_priors: Sequence[NPrior],
    predictor_prior: AnyNormalPrior | None = None,
) -> Distribution:
    """Return the posterior of one regression in several data sets, whose predictors are distributed apart.

    Their rows are modelled as normal, and without an intercept as normal about 0; the default prior of their
    mean and covariance is that of a multivariate normal statistic.
    """
    from suffice.pipeline.math.engines.multivariate.column_posterior import (
        regression_posterior,  # consumers only
    )

    chosen = predictor_prior or default_predictor_prior(statistics[0].plan.parameters)
    return regression_posterior(statistics, prior, n_priors, chosen)


def parameter_spaces(parameters: Constants) -> tuple[ParameterSpace, ...]:
    """Return the spaces of the coefficients, the intercept where there is one, and the variance."""
    coefficient = ParameterSpace(name="coefficient", shape=(len(parameters.columns) - 1,))
    intercept = ParameterSpace(name="intercept")
    variance = ParameterSpace(name="variance", support=Support.POSITIVE)
    if is_linear(parameters):
        return coefficient, intercept, variance
    return coefficient, variance


def jax_likelihood(
    statistic: NoisyStatistic,
    n_prior: NPrior,
    given: Mapping[str, Any],
    latent: Any,
    predictors: SpreadNormalInverseWishart,
) -> Any:
    """Return the log weight (n_cells,) of latent numbers; the predictors have the posterior's prior."""
    from suffice.pipeline.math.engines.jax_moments import regression  # an extra

    return regression(statistic, n_prior, predictors, given, latent)


def n_latent(parameters: Constants) -> int:
    """Return how many latent numbers that likelihood takes: moments, the predictors' scales, and w."""
    scales = len(parameters.columns) - 1 + int(is_linear(parameters))
    return moment_columns.n_moments(parameters) + scales


def region(parameters: Constants) -> Region:
    """Return where the parameters of records within their bounds lie."""
    from suffice.pipeline.math.distributions.regions import RegionOfRegression  # consumers only

    return RegionOfRegression.of(parameters)


def log_likelihood(coefficient: Floats, variance: Floats, sums: Moments, parameters: Constants) -> Floats:
    r"""Return :math:`-(n \log v + \sum (y - x^T \beta - \beta_0)^2 / v) / 2`.

    Up to a constant, worked out in half ranges; `coefficient` is (..., k), the intercept last where there is
    one, and `variance` (...), in the columns' units; leading axes broadcast against the cells.
    """
    from suffice.pipeline.math.distributions.normal_inverse_gamma import Scaling, design_of  # consumers only

    scaling = Scaling.of(parameters)
    design = design_of(sums, parameters)
    beta = scaling.coefficients_in_half_ranges(coefficient)
    residual = (
        design.outcome
        - 2.0 * np.einsum("...k,...k->...", beta, design.cross)
        + np.einsum("...k,...kl,...l->...", beta, design.gram, beta)
    )
    v = variance / sums.half_range[-1] ** 2
    likelihood: Floats = -(sums.n * np.log(v) + residual / v) / 2
    return likelihood


def truth(prior: AnyRegressionPrior, parameters: Constants, size: int, rng: np.random.Generator) -> Floats:
    """Draw the coefficients, the intercept where there is one, and the variance of the residuals."""
    linear = is_linear(parameters)
    if isinstance(prior, SpreadNormalInverseGammaRegression):
        return np.column_stack(prior.sample(size, rng, len(parameters.columns), linear=linear))
    return np.column_stack(prior.sample(size, rng, len(parameters.columns) - 1 + int(linear)))


def simulate(
    spec: LinearRegressionSpec,
    truth: Floats,
    sizes: NDArray[np.int64],
    rng: np.random.Generator,
    predictors: PredictorWorld | None = None,
) -> SimulatedSums:
    """Draw rows, and sum their lattice values and products.

    Parameters
    ----------
    spec : LinearRegressionSpec
    truth : ndarray of shape (n_data_sets, n_parameters), float64
    sizes : ndarray of int64, shape (n_data_sets,)
    rng : numpy.random.Generator
    predictors : callable, optional
        The number of data sets, a generator -> what draws the predictors of rows. By default they are normal,
        their mean and covariance drawn for each data set from the default prior; without an intercept their
        mean is 0.
    """
    size = len(spec.predictors)
    slope, residual = truth[:, :size], np.sqrt(truth[:, -1])
    intercept = truth[:, size] if spec.intercept else np.zeros(len(truth))
    world = predictors or normal_predictors(default_predictor_prior(parameters(spec)), size, spec.intercept)
    draw_predictors = world(len(truth), rng)

    def draw(data_set: NDArray[np.int64]) -> Floats:
        x = draw_predictors(data_set)
        fitted = intercept[data_set] + np.sum(x * slope[data_set], axis=1)
        return np.column_stack([x, fitted + residual[data_set] * rng.standard_normal(len(x))])

    return moment_sums(measure(spec), sizes, draw)


def normal_predictors(prior: AnyNormalPrior, size: int, intercept: bool) -> PredictorWorld:
    """Return how predictors are drawn whose mean and covariance a prior draws for each data set."""

    def world(n_data_sets: int, rng: np.random.Generator) -> Callable[[NDArray[np.int64]], Floats]:
        mean, covariance = prior.sample(n_data_sets, rng, size)
        return normal_rows(mean if intercept else np.zeros_like(mean), covariance, rng)

    return world


FAMILY = Family(
    name="linear_regression",
    spec=LinearRegressionSpec,
    measure=measure,
    block=lambda spec, n_is_public: several_columns.block(_box(spec), n_is_public),
    totals=lambda spec, design, sums: several_columns.totals(_box(spec), design, sums),
    parameters=parameters,
    prior=NormalInverseGammaRegression,
    spread_prior=SpreadNormalInverseGammaRegression,
    default_predictor_prior=default_predictor_prior,
    normal_predictors=normal_predictors,
    default_prior=default_prior,
    plug_in=plug_in,
    log_likelihood=log_likelihood,
    noise_aware=noise_aware,
    disjoint=disjoint,
    simulate=simulate,
    parameter_spaces=parameter_spaces,
    jax_likelihood=jax_likelihood,
    smoothness=Smooth(
        over=of_residuals,
        names=lambda parameters: tuple(space.name for space in parameter_spaces(parameters)),
    ),
    n_latent=n_latent,
    example=Example(
        entry={
            "outcome": {"y": {"lower": "-3", "upper": "100"}},
            "predictors": {"x": {"lower": "1", "upper": "3"}},
        },
        columns={"x": ColumnType.NUMBER, "y": ColumnType.NUMBER},
    ),
    generative_case=GenerativeCase(
        entry={
            "outcome": {"y": {"lower": "-20", "upper": "20"}},
            "predictors": {"x": {"lower": "-1", "upper": "1"}},
        },
        prior="NormalInverseGammaRegression([0.5, 0], [1, 4], 4, 0.3)",
    ),
    truth=truth,
    least_rows=moment_columns.least_rows,
    by_mcmc=lambda _parameters: True,
    region=region,
    cone_error=cone_error,
    relates="coefficient",
    predicts=False,
)
