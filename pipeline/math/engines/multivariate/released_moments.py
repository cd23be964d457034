"""What releases say of moments in half ranges: behind Laplace noise, and behind noise on a cone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.cone.latent_noise import LatentConeNoise
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics.moment_columns import is_linear, moment_map
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


def noisy_moments(statistic: NoisyStatistic) -> NoisyTotals:
    """Return what was released behind Laplace noise as linear functions of moments in half ranges."""
    laplace = [each for each in statistic.observations if each.plan.cone is None]
    if not laplace:
        size = len(statistic.plan.parameters.columns)
        n_moments = (size + 1) * (size + 2) // 2
        nothing = np.zeros((len(statistic.values), 0))
        return NoisyTotals(values=nothing, scale=np.zeros(0), coefficients=np.zeros((0, n_moments)))
    first, *others = laplace
    coefficients = np.concatenate([_coefficients(each) for each in laplace])
    return replace(NoisyTotals.of(replace(first, further=tuple(others))), coefficients=coefficients)


def cone_noises(statistic: NoisyStatistic) -> tuple[LatentConeNoise, ...]:
    """Return what was released behind noise on a cone."""
    return tuple(
        LatentConeNoise.of(each.plan.cone, each.values)
        for each in statistic.observations
        if each.plan.cone is not None
    )


def _coefficients(statistic: NoisyStatistic) -> Floats:
    """The map from moments in half ranges to the components of one release."""
    plan = statistic.plan
    parameters = plan.parameters
    steps = 1 << (parameters.lattice_bits or 0)
    weight = None if plan.design is not Design.MINIMAL else plan.moment_weight or Fraction(1)
    names = tuple(column.name for column in parameters.columns)
    matrix = moment_map(names, steps, linear=is_linear(parameters), weight=weight).matrix.astype(np.float64)
    first, _ = np.triu_indices(len(names) + 1)
    powers = np.where(first > 0, 2.0, 1.0)
    powers[0] = 0.0
    # Sheppard: E (rounding error)^2 = 1 / 12 of a squared step, for each of N rows.
    matrix[:, 0] += matrix[:, _squares(len(names))].sum(axis=1) / 12.0
    coefficients: Floats = matrix * float(steps) ** powers
    return coefficients


def _squares(size: int) -> NDArray[np.int64]:
    """Return where the sums of squares stand among the moments."""
    first, second = np.triu_indices(size + 1)
    return np.flatnonzero((first == second) & (first > 0))
