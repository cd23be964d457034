"""Shares of bins drawn from the prior of a histogram's walk, on a grid of ten logarithms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.histogram.bin_walk import first_state, transitions

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.histogram.histogram_posterior import Bins
    from suffice.typing import Cells, Floats

_POINTS, _SPACING = 100, 0.1
"""Of the grid of log intensities."""


def walk_shares(bins: Bins, steps: tuple[float, ...], size: int, rng: np.random.Generator) -> Floats:
    """Draw shares of bins from a walk's prior, (size, n_bins); draws without any records are drawn anew.

    Parameters
    ----------
    bins : Bins
    steps : tuple of float
        Standard deviations of a step; each is as probable as the others.
    size : int
    rng : Generator
    """
    width = np.asarray(bins.upper) - np.asarray(bins.lower)
    is_atom = width == 0.0
    # An atom counts as a bin of the largest width, as in the engine of histograms.
    width = np.where(is_atom, np.max(width), width)
    starts = np.cumsum(first_state(_POINTS))
    ends = np.cumsum(transitions(steps, _SPACING, _POINTS), axis=2)
    parts, left = [], size
    while left > 0:
        of_kernel = rng.integers(len(ends), size=left)
        states = np.empty((left, len(width)), dtype=np.int64)
        walking: Cells | None = None
        for position, atom in enumerate(is_atom):
            uniform = rng.random(left)
            if atom or walking is None:
                states[:, position] = np.searchsorted(starts, uniform * starts[-1], side="right")
            else:
                for kernel, end in enumerate(ends):
                    rows = np.flatnonzero(of_kernel == kernel)
                    states[rows, position] = _next(end, walking[rows], uniform[rows])
            walking = walking if atom else states[:, position]
        means = np.where(states < _POINTS, width * np.exp(_SPACING * states), 0.0)
        total = np.sum(means, axis=1, keepdims=True)
        known = total[:, 0] > 0.0
        parts.append(means[known] / total[known])
        left -= int(np.sum(known))
    return np.concatenate(parts)


def _next(ends: Floats, states: Cells, uniform: Floats) -> Cells:
    """Return a state after each, by inversion: all distribution functions stand on one line."""
    line = (ends / ends[:, -1:] + np.arange(len(ends))[:, None]).ravel()
    after = np.searchsorted(line, states + uniform * (1.0 - 2.0**-40), side="right") - states * len(ends)
    states_after: Cells = np.minimum(after, len(ends) - 1)
    return states_after
