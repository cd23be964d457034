"""The log density of latent moments by the compiled loops of ``target_kernel``, where these are made for it.

Values and gradients are those of ``SharedTarget`` but for rounding, which is the reference and serves all
else. A chain amplifies rounding: draws are others than those of arrays, of the same distribution.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice.pipeline.math.distributions.many_cells import MOMENT_DENSITY
from suffice.pipeline.math.engines.cone.latent_noise import SHARE
from suffice.pipeline.math.engines.multivariate.exact_moments import (
    SpreadNormalEvidence,
    SpreadRegressionEvidence,
)

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.multivariate.hmc import CellsTarget
    from suffice.pipeline.math.engines.multivariate.shared_target import SharedTarget
    from suffice.typing import Cells, Floats


def compiled_if_it_pays(target: SharedTarget, cells: int) -> CellsTarget:
    """Return the density of cells by the loops, where these are made for it and pay; else as it is."""
    if not can_compile(target) or not MOMENT_DENSITY.pay(cells):
        return target
    return CompiledTarget.of(target)


def can_compile(target: SharedTarget) -> bool:
    """Whether the loops are made for a problem, whatever was released.

    That is one data set with an intercept and a private N, one release of it, and default priors: of a
    regression and its predictors, or of means and covariances.
    """
    only = target.targets[0]
    alone, shared = ([type(evidence) for evidence in part] for part in (only.evidence, target.shared))
    if only.outcome is not None:
        has_priors = alone == [SpreadNormalEvidence] and shared == [SpreadRegressionEvidence]
    else:
        has_priors = alone == [] and shared == [SpreadNormalEvidence]
    releases = len(only.cone), len(only.scaled.scale) > 0
    return bool(
        has_priors
        and len(target.targets) == 1
        and releases in {(1, False), (0, True)}
        and only.linear
        and not only.latent_n.fixed
        and only.relative is not None
        and only.units is not None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledTarget:
    """A density that `can_compile` says the loops are made for.

    Attributes
    ----------
    target : SharedTarget
    arguments : tuple
        Of the loops, before coordinates.
    """

    target: SharedTarget
    arguments: tuple[Any, ...]

    @classmethod
    def of(cls, target: SharedTarget) -> Self:
        """Return the density with what the loops need to know of it."""
        return cls(target=target, arguments=_arguments(target))

    def take(self, cells: Cells) -> Self:
        """Return the density of some cells."""
        return type(self).of(self.target.take(cells))

    def __call__(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the log density (b,), up to a constant, and its gradient (k, b)."""
        kernel: Any = importlib.import_module(MOMENT_DENSITY.module)
        value, gradient = np.empty(x.shape[1]), np.empty(x.shape)
        kernel.value_and_gradient(*self.arguments, np.ascontiguousarray(x), value, gradient)
        return value, gradient


def _arguments(target: SharedTarget) -> tuple[Any, ...]:
    kernel: Any = importlib.import_module(MOMENT_DENSITY.module)
    (only,), normal, regression = target.targets, None, None
    for evidence in (*only.evidence, *target.shared):
        if isinstance(evidence, SpreadNormalEvidence):
            normal = evidence
        elif isinstance(evidence, SpreadRegressionEvidence):
            regression = evidence
    if normal is None or only.relative is None or only.units is None:
        raise TypeError(target)
    d, n_cells = only.size, only.units.shape[1]
    of_moments = 1 + d + d * (d + 1) // 2
    of_noise = sum(noise.n_coordinates for noise in only.cone)
    latent = of_moments if regression is not None else of_moments + of_noise
    noise = of_moments + (normal.n_latent if regression is not None else 0)
    problem = np.zeros(6, dtype=np.int64)
    problem[kernel.COLUMNS], problem[kernel.IS_REGRESSION] = d, regression is not None
    problem[kernel.IS_CONE] = len(only.cone) > 0
    problem[kernel.LATENT], problem[kernel.NOISE] = latent, noise
    problem[kernel.SHARED] = target.n_coordinates - 1
    numbers = np.zeros(6)
    of_n = only.latent_n
    numbers[kernel.LOWEST], numbers[kernel.HIGHEST] = of_n.lowest, of_n.highest
    numbers[kernel.RECIPROCAL], numbers[kernel.CONCENTRATION] = of_n.reciprocal, normal.concentration
    if only.cone:
        release = only.cone[0]
        values, coefficients, precision = release.values, release.coefficients, release.precision
        numbers[kernel.FACTOR] = release.unit * np.sqrt(1.0 - SHARE)
    else:
        values, coefficients, precision = only.scaled.values, only.scaled.coefficients, np.zeros((0, 0))
    of_outcome, pairs = np.zeros((0, n_cells)), d * (d - 1) // 2
    of_regression, gram, squares = np.zeros(0), np.zeros((0, 0)), np.zeros(0)
    if regression is not None and only.outcome is not None:
        lengths, pairs = only.outcome, (d - 1) * (d - 2) // 2
        precisions = np.stack([*lengths.noise, lengths.noise_of_mean, lengths.most]) ** -2.0
        of_outcome = np.concatenate([1.0 / lengths.rows[None], precisions])
        of_regression, gram = regression.loc, regression.root.T @ regression.root
        squares = regression.squares()
        numbers[kernel.OUTCOME] = regression.outcome
    of_pairs = only.relative[:, :pairs].reshape(3 * pairs, n_cells) ** 2
    of_cells = np.concatenate([np.log(only.units), of_pairs, of_outcome, values.T])
    floats = (
        numbers, of_cells, coefficients, precision, normal.loc, normal.half_range, of_regression, gram,
        squares,
    )  # fmt: skip
    return problem, *(np.ascontiguousarray(array, dtype=np.float64) for array in floats)
