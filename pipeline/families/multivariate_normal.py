r"""Multivariate normal: numeric columns, each clipped to bounds of its own.

.. math:: p(x \mid \mu, \Sigma) \propto |\Sigma|^{-1/2} e^{-(x - \mu)^T \Sigma^{-1} (x - \mu) / 2}, \quad
          T(x) = (x, x x^T)

Columns, lattice, block and quantities are those of `several_columns.py`. Sensitivity in `sensitivity.md`:
two-column-moments or rotated-moments; minimal-moments beside a public N; cone-moments with noise on a cone.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import model_validator

from suffice.pipeline.families.normal import require_weight
from suffice.pipeline.families.shared import several_columns
from suffice.pipeline.families.shared.contract import ColumnType, Example, Family, GenerativeCase
from suffice.pipeline.families.shared.parameter_space import ParameterSpace
from suffice.pipeline.families.shared.smoothness import Smooth, of_columns
from suffice.pipeline.math.distributions.normal_inverse_wishart import (
    NormalInverseWishart,
    NormalInverseWishartDistribution,
)
from suffice.pipeline.math.distributions.spread_scales import SpreadNormalInverseWishart
from suffice.pipeline.terms.declaration.fields import (
    LatticeBits,
    MomentWeight,
    NoiseField,
    NoiseOn,
    StatisticSpec,
)
from suffice.pipeline.terms.statistics import moment_columns
from suffice.pipeline.terms.statistics.lattice import DEFAULT_BITS
from suffice.pipeline.terms.statistics.moment_columns import lattice_of
from suffice.pipeline.terms.statistics.simulated_sums import moment_sums, normal_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.distributions.normal_inverse_wishart import Moments
    from suffice.pipeline.math.distributions.regions import Region
    from suffice.pipeline.math.engines.multivariate.exact_moments import AnyNormalPrior
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.measure import MomentSums
    from suffice.pipeline.terms.statistics.sensitivity import ColumnBounds, Constants, NeighboringRelation
    from suffice.pipeline.terms.statistics.simulated_sums import SimulatedSums
    from suffice.typing import Floats


class MultivariateNormalSpec(StatisticSpec):
    """Two or more numeric columns with bounds; a row enters where each has a value, or one for its nulls."""

    columns: several_columns.Columns
    lattice_bits: LatticeBits = DEFAULT_BITS
    moment_weight: MomentWeight | None = None
    noise: NoiseField | None = None

    @model_validator(mode="after")
    def _columns_go_together(self) -> Self:
        several_columns.require_columns(tuple(self.columns), least=2)
        require_weight(self.moment_weight, self.lattice_bits)
        return self


def _box(spec: MultivariateNormalSpec) -> several_columns.Box:
    return several_columns.Box(
        columns=spec.columns,
        bits=spec.lattice_bits,
        weight=spec.moment_weight,
        on_cone=spec.noise is NoiseOn.CONE,
    )


def measure(spec: MultivariateNormalSpec) -> MomentSums:
    """Sum n, values and products of two on the lattices."""
    return several_columns.measure(_box(spec))


def cone_error(
    spec: MultivariateNormalSpec, n_may_be_public: bool, neighboring: NeighboringRelation
) -> Fraction:
    """Return the expected squared error of correlations by noise on a cone, over that by Laplace noise."""
    pairs = list(combinations(range(1, len(spec.columns) + 1), 2))
    return several_columns.cone_error(_box(spec), pairs, n_may_be_public, neighboring)


def parameters(spec: MultivariateNormalSpec) -> Constants:
    """Return the columns' bounds and the lattice."""
    return several_columns.parameters(_box(spec))


def default_prior(parameters: Constants) -> SpreadNormalInverseWishart:
    """Return a prior centred in the bounds, its scales spread over eight decades below their width."""
    return prior_of_columns(parameters.columns)


def prior_of_columns(columns: Sequence[ColumnBounds], *, linear: bool = True) -> SpreadNormalInverseWishart:
    """Return the default prior of the means and the covariance of columns within these bounds.

    Without first moments, `linear` False, rows are about 0, and the bound farther from it tells the scale.
    """
    lattices = [lattice_of(column, linear=linear) for column in columns]
    centre, half_range = zip(*lattices, strict=True)
    return SpreadNormalInverseWishart(tuple(map(float, centre)), tuple(map(float, half_range)))


def plug_in(statistic: NoisyStatistic, prior: AnyNormalPrior) -> Distribution:
    """Update the prior with projected moments; where its scales are latent, chains draw them."""
    from suffice.pipeline.math.distributions.normal_inverse_wishart import project
    from suffice.pipeline.math.engines.multivariate import exact_moments
    from suffice.pipeline.math.engines.multivariate.exact_moments import posterior_of_moments

    names = tuple(column.name for column in statistic.plan.parameters.columns)
    sums = project(statistic)
    if isinstance(prior, NormalInverseWishart):
        return NormalInverseWishartDistribution.updated(prior, sums, names)
    evidence = exact_moments.normal_evidence(prior, len(names), sums.centre, sums.half_range, linear=True)
    update = exact_moments.normal_update(prior, evidence, names)
    return posterior_of_moments(sums, evidence, update, f"{prior}")


def noise_aware(statistic: NoisyStatistic, prior: AnyNormalPrior, n_prior: NPrior) -> Distribution:
    """Return the posterior of latent moments by MCMC; N, where it is private, with its own prior."""
    return disjoint((statistic,), prior, (n_prior,))


def disjoint(
    statistics: Sequence[NoisyStatistic], prior: AnyNormalPrior, n_priors: Sequence[NPrior]
) -> Distribution:
    """Return the posterior of one mean and covariance of several data sets, by MCMC over their moments."""
    from suffice.pipeline.math.engines.multivariate.column_posterior import normal_posterior  # consumers only

    return normal_posterior(statistics, prior, n_priors)


def parameter_spaces(parameters: Constants) -> tuple[ParameterSpace, ...]:
    """Return the spaces of the means and of the covariance."""
    size = len(parameters.columns)
    return (ParameterSpace(name="mean", shape=(size,)), ParameterSpace(name="covariance", shape=(size, size)))


def jax_likelihood(statistic: NoisyStatistic, n_prior: NPrior, given: Mapping[str, Any], latent: Any) -> Any:
    """Return the log weight (n_cells,) of latent numbers, given means and a covariance."""
    from suffice.pipeline.math.engines.jax_moments import columns  # an extra

    return columns(statistic, n_prior, given, latent)


def region(parameters: Constants) -> Region:
    """Return where the parameters of records within their bounds lie."""
    from suffice.pipeline.math.distributions.regions import RegionOfColumns  # consumers only

    return RegionOfColumns.of(parameters)


def log_likelihood(mean: Floats, covariance: Floats, sums: Moments, _parameters: Constants) -> Floats:
    r"""Return :math:`-(n \log |\Sigma| + \mathrm{tr}(\Sigma^{-1} \sum (x - \mu)(x - \mu)^T)) / 2`.

    Up to a constant, worked out in half ranges; `mean` is (..., d) and `covariance` (..., d, d), in the
    columns' units, and their leading axes broadcast against the cells.
    """
    square = sums.half_range[:, None] * sums.half_range
    m, scaled = (mean - sums.centre) / sums.half_range, covariance / square
    cross = sums.total[..., :, None] * m[..., None, :]
    about_mean = (
        sums.products
        - cross
        - np.swapaxes(cross, -1, -2)
        + sums.n[..., None, None] * m[..., :, None] * m[..., None, :]
    )
    trace = np.trace(np.linalg.solve(scaled, about_mean), axis1=-2, axis2=-1)
    likelihood: Floats = -(sums.n * np.linalg.slogdet(scaled)[1] + trace) / 2
    return likelihood


def truth(prior: AnyNormalPrior, parameters: Constants, size: int, rng: np.random.Generator) -> Floats:
    """Draw means, variances, and the covariances of pairs."""
    columns = len(parameters.columns)
    mean, covariance = prior.sample(size, rng, columns)
    variance = np.einsum("nii->ni", covariance)
    return np.concatenate([mean, variance, covariance[:, *np.triu_indices(columns, 1)]], axis=1)


def simulate(
    spec: MultivariateNormalSpec, truth: Floats, sizes: NDArray[np.int64], rng: np.random.Generator
) -> SimulatedSums:
    """Draw rows, and sum their lattice values and products."""
    columns = len(spec.columns)
    mean, variance, off = np.split(truth, [columns, 2 * columns], axis=1)
    first, second = np.triu_indices(columns, 1)
    covariance = variance[:, :, None] * np.eye(columns)
    covariance[:, first, second] = covariance[:, second, first] = off
    return moment_sums(measure(spec), sizes, normal_rows(mean, covariance, rng))


FAMILY = Family(
    name="multivariate_normal",
    spec=MultivariateNormalSpec,
    measure=measure,
    block=lambda spec, n_is_public: several_columns.block(_box(spec), n_is_public),
    totals=lambda spec, design, sums: several_columns.totals(_box(spec), design, sums),
    parameters=parameters,
    prior=NormalInverseWishart,
    spread_prior=SpreadNormalInverseWishart,
    default_prior=default_prior,
    plug_in=plug_in,
    log_likelihood=log_likelihood,
    noise_aware=noise_aware,
    disjoint=disjoint,
    simulate=simulate,
    parameter_spaces=parameter_spaces,
    jax_likelihood=jax_likelihood,
    smoothness=Smooth(over=of_columns, names=lambda _parameters: ("covariance",)),
    n_latent=moment_columns.n_moments,
    example=Example(
        entry={"columns": {"x": {"lower": "-3", "upper": "100"}, "y": {"lower": "1", "upper": "3"}}},
        columns={"x": ColumnType.NUMBER, "y": ColumnType.NUMBER},
    ),
    generative_case=GenerativeCase(
        entry={"columns": {"x": {"lower": "-6", "upper": "6"}, "y": {"lower": "-9", "upper": "9"}}},
        prior="NormalInverseWishart([0.3, 0], 4, 25, [12, 22])",
    ),
    truth=truth,
    least_rows=moment_columns.least_rows,
    by_mcmc=lambda _parameters: True,
    region=region,
    cone_error=cone_error,
    relates="correlation",
)
