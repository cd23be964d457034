r"""Integrals of densities of many cells by importance sampling, with errors, and no answer where these fail.

The question is :math:`Z = \int f(x)\, dx` of a density f from which chains have drawn. With q a Student's t
of 5 degrees of freedom that has the mean and the covariance of their draws,

.. math:: \hat Z = \frac 1 n \sum_i w_i, \quad w_i = \frac{f(x_i)}{q(x_i)}, \quad x_i \sim q; \qquad
    e = \frac{\operatorname{sd}(w)}{\sqrt n\, \hat Z} \qquad (1)

The mean of :math:`\hat Z` is Z wherever chains have been, so long as nothing that q rests on is chosen by the
:math:`x_i`: chains are a run for choices that is thrown away.

Error: e of :math:`\log \hat Z`. It holds where weights have a variance, which their largest tell: with
:math:`w_{(0)} \le \dots \le w_{(m)}` the largest,

.. math:: k = \frac 1 m \sum_{j = 1}^m \log \frac{w_{(j)}}{w_{(0)}} \qquad (2)

estimates the index of their tail (Hill), and there is a variance below a half. Where k is larger, or fewer
than `FEWEST` draws count, :math:`(\sum w)^2 / \sum w^2`, the error is infinite: there is no answer. What q
does not reach at all no weight tells.

====== ============== ======================================= =============================
symbol in the code    meaning                                 shape
====== ============== ======================================= =============================
x      ``position``   draws of q                              (k, n_cells, n)
f, q   ``target``,    log densities, ``Student``              (n_cells, n)
       ``reference``
w      ``weight``     weights over their largest              (n_cells, n)
====== ============== ======================================= =============================

References
----------
Vehtari, Simpson, Gelman, Yao, Gabry. Pareto smoothed importance sampling. JMLR 25(72), 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.multivariate.hmc import CellsTarget
    from suffice.typing import Floats

DRAWS, FEWEST = 1 << 15, 400
_FREEDOM = 5.0
_TAIL = 0.5
_RIDGE = 1e-6
_STATES = 1 << 15
"""Draws of all cells that are worked on at once, so that they stay in a near cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Integral:
    """Logarithms of integrals, and their errors, (n_cells,); infinite errors where there is no answer."""

    log: Floats
    error: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Student:
    """Student's t of 5 degrees of freedom in every cell.

    Attributes
    ----------
    mean : ndarray of shape (n_cells, k, 1), float64
    root : ndarray of shape (n_cells, k, k), float64
        Of the scale matrix.
    """

    mean: Floats
    root: Floats

    @classmethod
    def about(cls, draws: Floats) -> Self:
        """Return that with the mean of draws (n_cells, k, n), and their covariance for a scale matrix."""
        mean = draws.mean(axis=2, keepdims=True)
        centred = draws - mean
        sd = np.maximum(centred.std(axis=2, keepdims=True), 1e-12)
        centred /= sd
        # Of the correlations, so that the ridge means the same for every scale.
        correlation = centred @ np.swapaxes(centred, 1, 2) / draws.shape[2]
        root: Floats = sd * np.linalg.cholesky(correlation + _RIDGE * np.eye(draws.shape[1]))
        return cls(mean=mean, root=root)

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw (n_cells, k, size); return the log density there, (n_cells, size), too."""
        cells, k, _ = self.mean.shape
        normal = rng.standard_normal((cells, k, size))
        spread = _FREEDOM / rng.chisquare(_FREEDOM, (cells, 1, size))
        square = np.sum(normal**2, axis=1) * spread[:, 0]
        constant = math.lgamma((_FREEDOM + k) / 2.0) - math.lgamma(_FREEDOM / 2.0)
        constant -= k / 2.0 * math.log(_FREEDOM * math.pi)
        of_root = np.log(np.einsum("cii->ci", self.root)).sum(axis=1, keepdims=True)
        value = constant - of_root - (_FREEDOM + k) / 2.0 * np.log1p(square / _FREEDOM)
        return self.mean + self.root @ (normal * np.sqrt(spread)), value


def log_integral(target: CellsTarget, draws: Floats, rng: np.random.Generator, size: int = DRAWS) -> Integral:
    """Return the integral of a density in every cell.

    Parameters
    ----------
    target : CellsTarget
    draws : ndarray of shape (iterations, k, n_cells, n_chains), float64
        Of the density, or about: the closer they are, the smaller is the error.
    rng : numpy.random.Generator
    size : int
        n of (1).
    """
    cells = draws.shape[2]
    parts = [
        _of_few(target.take(few), draws[:, :, few], rng, size)
        for few in np.array_split(np.arange(cells), max(1, math.ceil(cells * size / _STATES)))
        if len(few)
    ]
    return Integral(
        log=np.concatenate([part.log for part in parts]), error=np.concatenate([part.error for part in parts])
    )


def _of_few(target: CellsTarget, draws: Floats, rng: np.random.Generator, size: int) -> Integral:
    by_cell = draws.transpose(2, 1, 0, 3).reshape(draws.shape[2], draws.shape[1], -1)
    position, of_reference = Student.about(by_cell).draw(size, rng)
    with np.errstate(all="ignore"):  # what is no number has no density
        value, _ = target(np.swapaxes(position, 0, 1).reshape(position.shape[1], -1))
        value = np.where(np.isfinite(value), value, -np.inf).reshape(of_reference.shape)
        return average(value - of_reference)


def average(log_weight: Floats) -> Integral:
    """Return (1) of the logarithms of weights (n_cells, n), without an answer where (2) says so."""
    most = log_weight.max(axis=1)
    weight = np.exp(log_weight - most[:, None])
    mean, size = weight.mean(axis=1), weight.shape[1]
    error = weight.std(axis=1) / math.sqrt(size) / mean
    counted = mean**2 / np.mean(weight**2, axis=1) * size
    # As many as for a generalised Pareto distribution of the largest weights (Vehtari et al.).
    largest = math.ceil(3.0 * math.sqrt(size)) + 1
    tail = np.log(np.partition(weight, size - largest, axis=1)[:, size - largest :])
    index = (tail - tail.min(axis=1, keepdims=True)).sum(axis=1) / (largest - 1)
    is_known = np.isfinite(most) & (counted >= FEWEST) & (index < _TAIL)
    log = most + np.log(mean)
    return Integral(log=np.where(is_known, log, np.nan), error=np.where(is_known, error, np.inf))
