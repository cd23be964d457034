r"""Lognormal: a column clipped to ``lower..upper``, both above 0, whose logarithm is normal.

.. math:: p(x \mid \mu, \sigma^2) \propto x^{-1} \sigma^{-1} e^{-(\log x - \mu)^2 / 2 \sigma^2}, \quad
          T(x) = (\log x, (\log x)^2)

Everything is that of `normal.py`, on natural logarithms: bounds, lattice, quantities, prior.
Sensitivity in `sensitivity.md`: partition-of-unity or minimal-moments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from pydantic import model_validator

from suffice.pipeline.families import normal
from suffice.pipeline.families.shared.contract import ColumnType, Example, Family, GenerativeCase, UnitMoments
from suffice.pipeline.families.shared.smoothness import of_mean_and_variance
from suffice.pipeline.math.distributions.normal_inverse_gamma import (
    NormalInverseGamma,
    NormalInverseGammaDistribution,
)
from suffice.pipeline.terms.declaration import fields
from suffice.pipeline.terms.statistics import lattice
from suffice.pipeline.terms.statistics.moment_columns import n_moments
from suffice.pipeline.terms.statistics.simulated_sums import power_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.priors.mixtures import Mixture
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.measure import PowerSums
    from suffice.pipeline.terms.statistics.simulated_sums import SimulatedSums
    from suffice.typing import Floats


NAMES = ("log_mean", "log_variance")


class LognormalSpec(fields.ColumnSpec):
    """A numeric column clipped to ``lower..upper``; its logarithm is rounded to the lattice."""

    lower: fields.Positive
    upper: fields.Positive
    nulls: fields.NullsField = fields.Nulls()
    lattice_bits: fields.LatticeBits = lattice.DEFAULT_BITS
    moment_weight: fields.MomentWeight | None = None

    @model_validator(mode="after")
    def _bounds_are_an_interval(self) -> Self:
        if self.lower >= self.upper:
            message = "lower must be below upper"
            raise ValueError(message)
        if lattice.log_bound(self.upper) - lattice.log_bound(self.lower) < lattice.NARROWEST_LOGS:
            message = "the interval from lower to upper is too narrow for float64 logarithms"
            raise ValueError(message)
        normal.require_weight(self.moment_weight, self.lattice_bits)
        return self


def of_logarithms(spec: LognormalSpec) -> normal.NormalSpec:
    """Return the statistic of a column of logarithms that this one is."""
    return normal.NormalSpec.model_construct(
        family="normal",
        column=spec.column,
        share=spec.share,
        lower=lattice.log_bound(spec.lower),
        upper=lattice.log_bound(spec.upper),
        nulls=spec.nulls,
        lattice_bits=spec.lattice_bits,
        moment_weight=spec.moment_weight,
    )


def measure(spec: LognormalSpec) -> PowerSums:
    """Sum n, X and X^2 on the lattice of logarithms; what is not positive clips to ``lower``."""
    return normal.measure(of_logarithms(spec), lattice.Transform(shape=lattice.Shape.LOG))


def plug_in(statistic: NoisyStatistic, prior: NormalInverseGamma) -> Distribution:
    """Update the prior of the logarithm's mean and variance with projected sums."""
    return NormalInverseGammaDistribution.updated(prior, normal.project(statistic), NAMES)


def noise_aware(
    statistic: NoisyStatistic, prior: NormalInverseGamma | Mixture, n_prior: NPrior
) -> Distribution:
    """Return the exact posterior of the logarithm's mean and variance: N and both sums are latent."""
    return normal.noise_aware(statistic, prior, n_prior, NAMES)


def simulate(
    spec: LognormalSpec, truth: Floats, sizes: NDArray[np.int64], rng: np.random.Generator
) -> SimulatedSums:
    """Draw data sets whose logarithms have these means and variances, (n_data_sets, 2), and sum them."""
    mean, sd = truth[:, 0], np.sqrt(truth[:, 1])
    return power_sums(measure(spec), sizes, lambda record: np.exp(rng.normal(mean[record], sd[record])))


FAMILY = Family(
    name="lognormal",
    spec=LognormalSpec,
    measure=measure,
    block=lambda spec, n_is_public: normal.block(of_logarithms(spec), n_is_public),
    totals=lambda spec, design, sums: normal.totals(of_logarithms(spec), design, sums),
    parameters=lambda spec: normal.parameters(of_logarithms(spec)),
    prior=NormalInverseGamma,
    default_prior=normal.default_prior,
    plug_in=plug_in,
    log_likelihood=normal.log_likelihood,
    noise_aware=noise_aware,
    simulate=simulate,
    takes_mixtures=True,
    mean="exp(log_mean + log_variance / 2)",
    parameter_spaces=lambda _parameters: normal.mean_and_variance(*NAMES),
    jax_likelihood=normal.jax_likelihood,
    smoothness=of_mean_and_variance(*NAMES, "the column's logarithm"),
    n_latent=n_moments,
    example=Example(entry={"column": "x", "lower": "0.1", "upper": "100"}, columns={"x": ColumnType.NUMBER}),
    generative_case=GenerativeCase(
        entry={"column": "x", "lower": "0.0025", "upper": "400"}, prior="NormalInverseGamma(0.3, 4, 12, 6)"
    ),
    outside=normal.outside,
    clipping_bounds=lambda spec: (spec.lower, spec.upper),
    mean_and_variance=normal.MEAN_AND_VARIANCE,
    unit_moments=UnitMoments(
        components=normal.UNIT_COMPONENTS,
        totals=lambda spec, products: normal.unit_totals(of_logarithms(spec), products),
    ),
)
