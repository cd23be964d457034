r"""Normal with a known variance: a column clipped to ``lower..upper``.

.. math:: p(x \mid \mu) \propto e^{-(x - \mu)^2 / 2 v}, \quad T(x) = x

Sensitivity in `sensitivity.md`: partition-of-unity (M + X, M - X) or minimal-sum (X), with X in ``-M..M`` and
``M = 2**lattice_bits``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import model_validator

from suffice.pipeline.families.shared import one_sum
from suffice.pipeline.families.shared.clipped_record import Outside, normal_outside
from suffice.pipeline.families.shared.parameter_space import ParameterSpace
from suffice.pipeline.math.distributions.normal import Normal, NormalDistribution
from suffice.pipeline.terms.declaration.fields import Bound, Positive
from suffice.pipeline.terms.statistics.lattice import Quantiser, require_interval

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.jax_sums import Total
    from suffice.pipeline.math.engines.one_sum.noisy_sum import Marginal
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats


class NormalKnownVarianceSpec(one_sum.LatticeSumSpec):
    """A numeric column clipped to ``lower..upper``."""

    variance: Positive
    lower: Bound
    upper: Bound

    @model_validator(mode="after")
    def _bounds_are_an_interval(self) -> Self:
        require_interval(self.lower, self.upper)
        return self


def lattice(spec: NormalKnownVarianceSpec) -> one_sum.SumLattice:
    """Return the lattice about the centre, as a normal statistic's."""
    return one_sum.SumLattice(
        quantiser=Quantiser.centred(spec.lower, spec.upper, spec.lattice_bits),
        lower=spec.lower,
        upper=spec.upper,
        bits=spec.lattice_bits,
    )


def default_prior(parameters: Constants) -> Normal:
    """Return a prior centred in the interval, with a quarter of its length as standard deviation."""
    lower, upper = one_sum.bounds(parameters)
    return Normal((lower + upper) / 2, (upper - lower) / 4)


def update(prior: Normal, sums: one_sum.OneSum, parameters: Constants) -> Distribution:
    r"""Return the normal distribution of the mean.

    .. math::
        \mathrm{Normal}\Bigl(\frac{v m_0 / s_0^2 + \text{total}}{v / s_0^2 + n},
            \sqrt{v / (v / s_0^2 + n)}\Bigr)
    """
    variance = float(parameters.constants["variance"])
    prior_rows = variance / prior.scale / prior.scale
    rows = prior_rows + sums.n
    return NormalDistribution(
        loc=(prior_rows * prior.loc + sums.total) / rows, scale=np.sqrt(variance / rows)
    )


def marginal(prior: Normal, parameters: Constants) -> Marginal:
    """Return the normal distribution of the total."""
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NormalNormal  # consumers only

    variance = float(parameters.constants["variance"])
    return NormalNormal(loc=prior.loc, scale=prior.scale, variance=variance)


def log_likelihood(mean: Floats, sums: one_sum.OneSum, parameters: Constants) -> Floats:
    r"""Return :math:`(\mu \, \text{total} - n \mu^2 / 2) / v`."""
    return (mean * sums.total - sums.n * mean**2 / 2) / float(parameters.constants["variance"])


def natural(
    mean: Fraction, _log: Callable[[Fraction], Fraction], parameters: Constants
) -> tuple[Fraction, Fraction]:
    r"""Return :math:`\mu / v` and :math:`\mu^2 / 2 v`."""
    variance = parameters.constants["variance"]
    return mean / variance, mean**2 / (2 * variance)


def in_jax(mean: Any, n: Any, parameters: Constants) -> Total:
    """Return the normal distribution of the total."""
    from suffice.pipeline.math.engines import jax_sums  # an extra

    lower, _ = one_sum.bounds(parameters)
    return jax_sums.NormalTotal(n * (mean - lower), n * float(parameters.constants["variance"]))


def outside(mean: Floats, parameters: Constants) -> Outside:
    """Return values outside of either bound; the variance is known, so the mean alone moves."""
    variance = np.full(mean.shape, float(parameters.constants["variance"]))
    outside = normal_outside(mean, variance, *one_sum.bounds(parameters))
    return Outside(share=outside.share, shifts=outside.shifts[:1])


FAMILY = one_sum.one_sum_family(
    name="normal_known_variance",
    spec=NormalKnownVarianceSpec,
    lattice=lattice,
    clipping_bounds=lambda spec: (spec.lower, spec.upper),
    constants=lambda spec: {"variance": spec.variance},
    model=one_sum.SumModel(
        parameter=ParameterSpace(name="mean"),
        prior=Normal,
        default_prior=default_prior,
        update=update,
        marginal=marginal,
        log_likelihood=log_likelihood,
        natural=natural,
        in_jax=in_jax,
        outside=outside,
        limits=one_sum.bounds,
    ),
    draw=lambda spec, mean, rng: rng.normal(mean, math.sqrt(spec.variance)),
    example={"variance": "3", "lower": "-3", "upper": "100"},
    generative_case={"variance": "1", "lower": "-9", "upper": "9"},
    generative_prior="Normal(0, 1)",
)
