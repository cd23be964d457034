r"""Gamma with a known shape ``k``: a column clipped to ``0..upper``.

.. math:: p(x \mid r) \propto r^k x^{k - 1} e^{-r x}, \quad x > 0, \quad T(x) = x

Sensitivity in `sensitivity.md`: partition-of-unity (X, M - X) or minimal-sum (X): ``M = 2**lattice_bits``
lattice steps from 0 to the bound.

Families whose T is gamma distributed take its models from here: those of a rate, which a gamma is conjugate
to, and those of a scale.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.families.shared import one_sum
from suffice.pipeline.families.shared.clipped_record import (
    LARGEST_REACH,
    ClippedRecord,
    Outside,
    clipped_gamma,
    gamma_rate_outside,
    gamma_scale_outside,
    steps_of_gamma,
)
from suffice.pipeline.families.shared.parameter_space import ParameterSpace, Support
from suffice.pipeline.math.distributions import gamma
from suffice.pipeline.math.distributions.spread_scales import CONCENTRATION
from suffice.pipeline.terms.declaration.fields import Positive

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.jax_sums import Total
    from suffice.pipeline.math.engines.one_sum.noisy_sum import Marginal
    from suffice.pipeline.math.priors.mixtures import SpreadGamma, SpreadInverseGamma, SpreadScale
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats


def rate_of_gamma_sums(name: str = "rate", *, shape: float | str = 1.0) -> one_sum.SumModel:
    r"""Return the model of a rate r where :math:`T \sim \mathrm{Gamma}(k, r)`.

    .. math:: p(\text{total} \mid r) \propto r^{k n} e^{-r \, \text{total}}, \quad
              r \sim \mathrm{Gamma}(a, b) \mapsto \mathrm{Gamma}(a + k n, b + \text{total})

    The default prior is ``SpreadGamma(upper / k)``, of T's bound: 1 / r, the mean of T over k, of any scale
    up to there.

    Parameters
    ----------
    name : str
        What r is called.
    shape : float or str
        k, or the name of the constant that it is.
    """

    def default_prior(parameters: Constants) -> SpreadGamma:
        from suffice.pipeline.math.priors.mixtures import SpreadGamma  # consumers only

        return SpreadGamma(one_sum.bounds(parameters)[1] / one_sum.known(shape, parameters))

    def update(prior: gamma.Gamma, sums: one_sum.OneSum, parameters: Constants) -> Distribution:
        return gamma.GammaDistribution(
            concentration=prior.concentration + one_sum.known(shape, parameters) * sums.n,
            rate=prior.rate + sums.total,
            name=name,
        )

    def marginal(prior: gamma.Gamma | SpreadGamma, parameters: Constants) -> Marginal:
        return _marginal(prior, one_sum.known(shape, parameters), 1.0)

    def log_likelihood(rate: Floats, sums: one_sum.OneSum, parameters: Constants) -> Floats:
        return one_sum.known(shape, parameters) * sums.n * np.log(rate) - rate * sums.total

    def natural(
        rate: Fraction, log: Callable[[Fraction], Fraction], parameters: Constants
    ) -> tuple[Fraction, Fraction]:
        return -rate, -one_sum.known_exactly(shape, parameters) * log(rate)

    def in_jax(rate: Any, n: Any, parameters: Constants) -> Total:
        from suffice.pipeline.math.engines import jax_sums

        return jax_sums.GammaTotal(n * one_sum.known(shape, parameters), rate)

    def outside(rate: Floats, parameters: Constants) -> Outside:
        return gamma_rate_outside(rate, one_sum.bounds(parameters)[1], one_sum.known(shape, parameters))

    def chances(rate: Floats, parameters: Constants, reach: int) -> Floats:
        return clipped_gamma(rate, one_sum.bounds(parameters)[1], one_sum.known(shape, parameters), reach)

    def limits(parameters: Constants) -> tuple[float, float]:
        """The mean of T is k / r."""
        return one_sum.known(shape, parameters) / one_sum.bounds(parameters)[1], math.inf

    return one_sum.SumModel(
        parameter=ParameterSpace(name=name, support=Support.POSITIVE),
        prior=gamma.Gamma,
        default_prior=default_prior,
        update=update,
        marginal=marginal,
        log_likelihood=log_likelihood,
        natural=natural,
        in_jax=in_jax,
        outside=outside,
        clipped_record=ClippedRecord(
            reach=lambda parameters: _reach(one_sum.known(shape, parameters), parameters),
            chances=chances,
            is_exact=False,
        ),
        limits=limits,
    )


def scale_of_gamma_sums(name: str = "scale", *, share: float = 1.0) -> one_sum.SumModel:
    r"""Return the model of a scale s where :math:`w T \sim \mathrm{Gamma}(w, 1 / s)`.

    .. math:: p(\text{total} \mid s) \propto s^{-w n} e^{-w \, \text{total} / s}, \quad
              s \sim \mathrm{InverseGamma}(a, b) \mapsto \mathrm{InverseGamma}(a + w n, b + w \, \text{total})

    The default prior is ``SpreadInverseGamma(upper)``, of T's bound: any scale up to there.

    Parameters
    ----------
    name : str
        What s is called.
    share : float
        w: 1 where T is exponential, 1/2 where it is a normal variable's square.
    """

    def update(prior: gamma.InverseGamma, sums: one_sum.OneSum, _parameters: Constants) -> Distribution:
        return gamma.InverseGammaDistribution(
            concentration=prior.concentration + share * sums.n,
            scale=prior.scale + share * sums.total,
            name=name,
        )

    def default_prior(parameters: Constants) -> SpreadInverseGamma:
        from suffice.pipeline.math.priors.mixtures import SpreadInverseGamma  # consumers only

        return SpreadInverseGamma(one_sum.bounds(parameters)[1])

    def marginal(prior: gamma.InverseGamma | SpreadInverseGamma, _parameters: Constants) -> Marginal:
        return _marginal(prior, share, share)

    def natural(
        scale: Fraction, log: Callable[[Fraction], Fraction], _parameters: Constants
    ) -> tuple[Fraction, Fraction]:
        return -Fraction(share) / scale, Fraction(share) * log(scale)

    def in_jax(scale: Any, n: Any, _parameters: Constants) -> Total:
        from suffice.pipeline.math.engines import jax_sums

        return jax_sums.GammaTotal(n * share, share / scale)

    def outside(scale: Floats, parameters: Constants) -> Outside:
        outside = gamma_scale_outside(scale / share, one_sum.bounds(parameters)[1], share)
        return Outside(share=outside.share, shifts=(share * outside.shifts[0],))

    def chances(scale: Floats, parameters: Constants, reach: int) -> Floats:
        return clipped_gamma(share / scale, one_sum.bounds(parameters)[1], share, reach)

    return one_sum.SumModel(
        parameter=ParameterSpace(name=name, support=Support.POSITIVE),
        prior=gamma.InverseGamma,
        default_prior=default_prior,
        update=update,
        marginal=marginal,
        log_likelihood=lambda scale, sums, _parameters: (
            -share * (sums.n * np.log(scale) + sums.total / scale)
        ),
        natural=natural,
        in_jax=in_jax,
        outside=outside,
        clipped_record=ClippedRecord(
            reach=lambda parameters: _reach(share, parameters), chances=chances, is_exact=False
        ),
        limits=lambda parameters: (0.0, one_sum.bounds(parameters)[1]),
    )


def _reach(shape: float, parameters: Constants) -> int:
    """Return how many steps of a clipped record's lattice there are: no more than the release's own has."""
    return min(steps_of_gamma(shape, LARGEST_REACH + 1), 1 << (parameters.lattice_bits or 0))


def _marginal(prior: gamma.Gamma | gamma.InverseGamma | SpreadScale, shape: float, share: float) -> Marginal:
    """Return the distribution of a sum of which w times is Gamma(k N, r), r or 1 / r having this prior."""
    from suffice.pipeline.math.engines.one_sum.noisy_sum import GammaGamma
    from suffice.pipeline.math.engines.one_sum.spread_sums import SpreadGammaGamma

    if not isinstance(prior, gamma.Gamma | gamma.InverseGamma):
        return SpreadGammaGamma(
            weights=prior.weights, concentration=CONCENTRATION, rates=prior.rates, shape=shape, share=share
        )
    rate = prior.rate if isinstance(prior, gamma.Gamma) else prior.scale
    return GammaGamma(concentration=prior.concentration, rate=rate, shape=shape, share=share)


class GammaSpec(one_sum.LatticeSumSpec):
    """A numeric column clipped to ``0..upper``."""

    shape: Positive
    upper: Positive


FAMILY = one_sum.one_sum_family(
    name="gamma",
    spec=GammaSpec,
    lattice=lambda spec: one_sum.SumLattice.from_zero(spec.upper, spec.lattice_bits),
    clipping_bounds=lambda spec: (Fraction(0), spec.upper),
    constants=lambda spec: {"shape": spec.shape},
    model=rate_of_gamma_sums(shape="shape"),
    draw=lambda spec, rate, rng: rng.standard_gamma(float(spec.shape), rate.shape) / rate,
    mean="shape / rate",
    example={"shape": "2", "upper": "100"},
    generative_case={"shape": "2", "upper": "80"},
    generative_prior="Gamma(8, 8)",
)
