"""The exact law of cone noise of one column without first moments, and a chi-square test built on it.

With one column and no first moments the cone is ``0 <= P_11 <= P_00``. ``P_00 - P_11`` and ``P_11`` are then
two independent exponential variables: the orthant, whose noise is independent Laplace variables. A cell has
the mass h(n, k), the integral of ``r^2 exp(-r u)`` over ``|u - n| < 1/2``, ``|v - k| < 1/2``, ``0 < v < u``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.signal import fftconvolve
from scipy.stats import chi2

if TYPE_CHECKING:
    from numpy.typing import NDArray

FALSE_ALARM = 1e-6
"""Chance that right noise fails one test; with two tails, half of it each."""


def cell_masses(rate: float, size: int) -> NDArray[np.float64]:
    """Return h(n, k) for n and k from 0 to ``size - 1``, in closed form."""

    def below(u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the integral of ``r^2 exp(-r s)`` over s from u on."""
        return rate * np.exp(-rate * u)

    edge = np.maximum(np.arange(size + 1) - 0.5, 0.0)
    masses = np.zeros((size, size))
    for n in range(size):
        start, stop = edge[n], edge[n + 1]
        for k in range(n + 1):
            low, high = edge[k], edge[k + 1]
            if k < n:
                masses[n, k] = (below(start) - below(stop)) * (high - low)
            else:  # v < u: the integral of (u - low) r^2 exp(-r u)
                masses[n, k] = (1 + rate * (start - low)) * np.exp(-rate * start) - (
                    1 + rate * (stop - low)
                ) * np.exp(-rate * stop)
    return masses


def law_of_noise(rate: float, size: int) -> NDArray[np.float64]:
    """Return the law of the difference of two, on ``-(size - 1)..size - 1`` in both components."""
    masses = cell_masses(rate, size)
    return np.clip(fftconvolve(masses, masses[::-1, ::-1]), 0, None)


def agrees(noise: NDArray[np.int64], law: NDArray[np.float64], least: float = 20.0) -> bool:
    """Tell whether draws, shape (n, 2), agree with a law: chi-square over cells that expect `least`.

    At half of the false alarm: of cells that expect so few the tail is longer, by less than the other half.
    """
    centre = law.shape[0] // 2
    inside = (np.abs(noise) <= centre).all(axis=1)
    counts = np.zeros(law.shape)
    np.add.at(counts, tuple((noise[inside] + centre).T), 1)
    expected = law * len(noise)
    many = expected >= least
    observed = np.append(counts[many], len(noise) - counts[many].sum())
    means = np.append(expected[many], len(noise) - expected[many].sum())
    statistic = float(((observed - means) ** 2 / np.maximum(means, 1e-9)).sum())
    return bool(chi2.sf(statistic, int(many.sum())) > FALSE_ALARM / 2)
