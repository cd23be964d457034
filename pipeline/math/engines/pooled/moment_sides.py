r"""Nodes over the population of one parameter of cells with means and variances.

They are over t and s of (3) of ``hyperparameters``, and move to where the posterior is: first the ends of a
rule of Gauss, then, of log standard deviations, nodes over t one by one. Where noise hides small variances
and not large ones, the location of their logarithms has a density that is flat far to the left and has an
edge on the right, which no evenly spaced nodes find.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import Focus
from suffice.pipeline.math.engines.pooled.hyperparameters import LEAST, legendre_rule, rule_sizes
from suffice.pipeline.math.engines.pooled.normal_approximation import first_box

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
    from suffice.pipeline.math.engines.pooled.normal_approximation import Box, Moments
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.typing import Floats

_ROOM, _FAR, _MANY = 4.0, (10.0, 30.0), 48
"""Standard deviations of a location within which narrow populations may be; that, in their least spread, of
that many cells and of few."""
_EDGE, _FINE = 32, 800
"""Nodes over the location of log standard deviations, and points that they are chosen from."""
_EVEN, _DENSE = 0.25, 0.4
"""Shares of nodes that are even, and where the density is; others are where it changes."""
_APART, _COUNTS = 0.5, 0.01
"""How wide populations are at least, in units of (2) of ``cells``; what counts of the highest weight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two parameters: its population, and the hyperprior of its location."""

    population: Population
    prior: LocationPrior
    focus: Focus


@dataclass(frozen=True, slots=True, kw_only=True)
class SideNodes:
    """Nodes over t and s of one side, flat."""

    t: Floats
    location: Floats
    spread: Floats
    drawn_spread: Floats
    log_weight: Floats
    """Of the rule and the hyperprior."""


def side_nodes(
    side: Side, moments: Moments, box: Box, n_cells: int, rule: tuple[Floats, Floats] | None = None
) -> SideNodes:
    """Return nodes over t and s, by a rule over t, or Gauss's."""
    n_t, n_s, _ = rule_sizes(n_cells)
    (t, of_t), (s, of_s) = rule or legendre_rule(box.t, n_t), legendre_rule(box.s, n_s)
    omega = moments.omega(s)
    precision = np.sum(omega, axis=1) + side.prior.precision
    middle = (omega @ moments.mean + side.prior.precision * side.prior.centre) / precision
    sd = precision**-0.5
    location = (middle[:, None] + sd[:, None] * t).ravel()
    drawn = np.repeat(s, len(t))
    log_rule = np.log(np.outer(of_s * sd, of_t)).ravel()
    return SideNodes(
        t=np.tile(t, len(s)),
        location=location,
        spread=np.maximum(drawn, _resolved(side.focus, location)),
        drawn_spread=drawn,
        log_weight=log_rule + side.prior.log_density(location) - 0.5 * drawn**2,
    )


def rule_about_edges(
    t: Floats, of_t: Floats, mass: Floats, ends: tuple[float, float]
) -> tuple[Floats, Floats]:
    """Return a rule over t that is dense where the posterior is, and where it rises and falls.

    Parameters
    ----------
    t, of_t : ndarray of shape (n_nodes,), float64
        The rule so far.
    mass : ndarray of shape (n_nodes,), float64
        What the posterior has at each node.
    ends : (float, float)
        Middle and half width.
    """
    density = mass / of_t
    fine = np.linspace(ends[0] - ends[1], ends[0] + ends[1], _FINE)
    of_fine = np.interp(fine, t, density, left=0.0, right=0.0)
    moves = np.abs(np.gradient(of_fine))
    monitor = (
        _EVEN / _FINE + _DENSE * of_fine / np.sum(of_fine) + (1.0 - _EVEN - _DENSE) * moves / np.sum(moves)
    )
    below = np.concatenate([[0.0], np.cumsum((monitor[1:] + monitor[:-1]) / 2.0)])
    nodes = np.interp(np.linspace(0.0, below[-1], _EDGE), below, fine)
    step = np.gradient(nodes)
    step[[0, -1]] /= 2.0
    return nodes, step


def focus_of(moments: Moments, prior: LocationPrior) -> Focus:
    """Return where a narrow population may be."""
    box = first_box(moments, prior)
    spread = max(box.s[0], 0.0)
    omega = moments.omega(np.array([0.0, spread]))
    precision = np.sum(omega, axis=1) + prior.precision
    middles = (omega @ moments.mean + prior.precision * prior.centre) / precision
    least = LEAST * precision[0] ** -0.5
    reach = _ROOM * float(precision[1]) ** -0.5 + float(abs(middles[1] - middles[0]))
    far = float(np.clip(_FAR[0] * (_MANY / len(moments.mean)) ** 0.5, *_FAR))
    return _about(float(middles[1]), max(float(box.s[0] - box.s[1]), least, reach / far), reach)


def _resolved(focus: Focus, location: Floats) -> Floats:
    """Return how narrow a population has to be at most for nodes to be dense enough for it where it is."""
    return np.asarray(_APART / focus.slope(location))


def _about(centre: float, lowest: float, reach: float) -> Focus:
    # Narrower ones than this are told apart once it is known better where they are.
    lowest = max(lowest, reach / _FAR[1])
    return Focus(centre=centre, width=lowest, reach=reach)


def focused(focus: Focus, rules: SideNodes, of_side: Floats) -> Focus:
    """Return the same where nodes are dense wherever populations that count and are narrow may be."""
    is_narrow = rules.drawn_spread < 1.01 * _resolved(focus, rules.location)
    counts = is_narrow & (of_side > _COUNTS * np.max(of_side))
    if not np.any(counts & (np.abs(rules.location - focus.centre) > focus.reach + focus.width)):
        return focus
    low, high = float(np.min(rules.location[counts])), float(np.max(rules.location[counts]))
    return _about((low + high) / 2.0, focus.width, (high - low) / 2.0)
