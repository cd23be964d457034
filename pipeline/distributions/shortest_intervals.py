r"""Highest-density intervals: of all intervals with a probability, the shortest.

With the quantile function Q, the interval of mass m is

.. math:: [Q(p), Q(p + m)], \quad p = \operatorname{argmin}_{0 \le p \le 1 - m} Q(p + m) - Q(p),

where Q(0) and Q(1) are the ends of the parameter's range. Where the density has one mode, no value outside
has a higher density than one inside; where it has several, this is still a single interval, the shortest.

Every candidate has the mass, so that only its length depends on which levels p are tried. Of a quantile
function these are 17, closer together towards both ends; of draws all windows. An end of the range is taken
where that makes an interval at most ``AT_AN_END`` longer than the shortest: whether it reaches 0 does then
not depend on which draws there were. Lengths are within 1 % of the shortest, for beta, gamma and normal
distributions within 0.5 % (tests). A density that is flat all over has no shortest interval, and gets the
central one.

References
----------
Chen, Shao. Monte Carlo estimation of Bayesian credible and HPD intervals. J. Comput. Graph. Stat. 8, 1999.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.pipeline.distributions.cell_blocks import blocks_of
from suffice.pipeline.distributions.draws import from_draws

if TYPE_CHECKING:
    from suffice.pipeline.distributions.distribution import Distribution
    from suffice.typing import Floats

Range: TypeAlias = tuple[float, float]

CENTRAL, HIGHEST_DENSITY = "central", "highest-density"
"""The kinds of intervals: equal probabilities on both sides, or the shortest."""
AT_AN_END = 0.01
"""Share by which an interval from an end of the range may be longer than the shortest."""
_LEVELS = 17
_NUMBERS = 1 << 22
"""Draws that are sorted at a time: 32 MB."""


def shortest_intervals(
    distribution: Distribution,
    parameter: str,
    mass: float,
    ends: Range,
    draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the shortest intervals of every cell, shaped as the means with 2 as a last axis.

    Parameters
    ----------
    distribution : Distribution
        Of all cells.
    parameter : str
        Its name.
    mass : float, in (0, 1)
        Posterior probability of an interval.
    ends : (float, float)
        The parameter's range; infinite where it has no end.
    draws, rng
        For distributions whose quantiles are those of draws.
    """
    found = []
    for block in blocks_of(distribution):
        if from_draws(block):
            found.append(shortest_of_draws(block.sample(draws, rng)[parameter], mass, ends))
        else:
            below, above = _levels(mass)
            inner = [*below[1:], *above[:-1]]
            quantiles = block.quantiles(parameter, inner, draws, rng)
            lower, upper = quantiles[..., : _LEVELS - 1], quantiles[..., _LEVELS - 1 :]
            found.append(_shortest(_with_end(lower, ends[0], first=True), _with_end(upper, ends[1]), ends))
    return np.concatenate(found)


def shortest_of_draws(draws: Floats, mass: float, ends: Range = (-math.inf, math.inf)) -> Floats:
    """Return the shortest intervals of draws (n_draws, ...), 2 as a last axis.

    Between draws number i and i + k lies the probability k / (n_draws + 1), on average; the ends of the range
    count as draws number 0 and n_draws + 1.
    """
    n_draws, shape = len(draws), draws.shape[1:]
    flat = draws.reshape(n_draws, -1)
    window = min(math.ceil(mass * (n_draws + 1)), n_draws + 1)
    found = np.empty((flat.shape[1], 2))
    step = max(1, _NUMBERS // n_draws)
    for start in range(0, len(found), step):
        part = slice(start, start + step)
        ordered = np.sort(flat[:, part].T, axis=1)
        ordered = _with_end(_with_end(ordered, ends[0], first=True), ends[1])
        found[part] = _shortest(ordered[:, : n_draws + 2 - window], ordered[:, window:], ends)
    return found.reshape(*shape, 2)


def _levels(mass: float) -> tuple[list[float], list[float]]:
    """Probabilities below the lower and the upper ends: from 0 to 1 - mass, and from mass to 1."""
    share = np.sin(np.linspace(0.0, math.pi / 2.0, _LEVELS)) ** 2
    below = (1.0 - mass) * share
    return below.tolist(), (below + mass).tolist()


def _with_end(values: Floats, end: float, *, first: bool = False) -> Floats:
    edge = np.full((*values.shape[:-1], 1), end)
    return np.concatenate([edge, values] if first else [values, edge], axis=-1)


def _shortest(lower: Floats, upper: Floats, ends: Range) -> Floats:
    """Choose along the last axis; an end of the range where it is all but as good."""
    with np.errstate(invalid="ignore"):
        width = upper - lower
    width = np.where(np.isnan(width), np.inf, width)
    last = width.shape[-1] - 1
    is_near = width <= (1.0 + AT_AN_END) * np.min(width, axis=-1, keepdims=True)
    first_does, last_does = (
        is_near[..., 0] & math.isfinite(ends[0]),
        is_near[..., last] & math.isfinite(ends[1]),
    )
    chosen = np.where(last_does, last, np.argmin(width, axis=-1))
    chosen = np.where(first_does, 0, chosen)
    chosen = np.where(first_does & last_does & is_near[..., last // 2], last // 2, chosen)
    take = chosen[..., None]
    return np.concatenate([np.take_along_axis(side, take, axis=-1) for side in (lower, upper)], axis=-1)
