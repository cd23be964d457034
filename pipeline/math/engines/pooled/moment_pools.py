r"""Posteriors of cells' means and variances, which come from two populations that are integrated over.

Model. Of cells c with the nodes of ``moment_cells``, populations f of means and g of log standard deviations,

.. math::
    Z_c(h, k) = \sum_{ij} w_{cij} \, f(x_{ci} \mid h) \, g(y_{cj} \mid k), \qquad
    p(h, k \mid y) \propto p(h) \, p(k) \prod_c Z_c(h, k) \qquad (1)

with h = (m, s) the location and the spread of means and k those of log standard deviations,

.. math:: m_h \sim \mathrm{Logistic}(0, 1), \quad m_k \sim \mathrm{Logistic}(-2, 1), \quad
    s_h, s_k \sim \mathrm{HalfNormal}(1) \qquad (2)

in the units of ``moment_cells``: quarters of the bounds' width, and logarithms of halves of it. The posterior
of a cell is the exact mixture over h and k, as in ``distribution``, and so are own shares, of means and of
variances.

Method. Populations add up to 1 over the nodes of each cell. The rules over h and over k are those of
``hyperparameters``, each about where the normal approximation of the cells' likelihoods has it; (1) weighs
all pairs of their nodes by products of matrices, and moves both until the posterior lies inside
(``moment_sides``). Nodes of cells are dense down to spreads that hardly any cell could tell from 0, where the
posterior has them; they are laid out again until hyperparameters stay.

Joint draws take h and k first, then the log standard deviation of every cell, then its mean.
"""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.pooled.cells import Focus
from suffice.pipeline.math.engines.pooled.hyperparameters import (
    ROUNDS,
    followed,
    legendre_rule,
    rule_sizes,
)
from suffice.pipeline.math.engines.pooled.hyperpriors import LOG_SPREAD_SD, LocationPrior
from suffice.pipeline.math.engines.pooled.marginals import NodeMarginal
from suffice.pipeline.math.engines.pooled.moment_cells import UNIT, MomentNodes
from suffice.pipeline.math.engines.pooled.moment_sides import (
    Side,
    SideNodes,
    focus_of,
    focused,
    rule_about_edges,
    side_nodes,
)
from suffice.pipeline.math.engines.pooled.normal import NormalPopulation
from suffice.pipeline.math.engines.pooled.normal_approximation import first_box, moments_about

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.pipeline.math.engines.pooled.moment_cells import MomentCells
    from suffice.pipeline.math.engines.pooled.normal_approximation import Moments
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.typing import Cells, Floats

OF_MEANS, OF_LEVELS = LocationPrior(0.0, 1.0), LocationPrior(-2.0, 1.0)
"""Hyperpriors of m: of means about the middle of the bounds, of log standard deviations about 7 % of them."""
_TOGETHER = 32
_FLOOR, _SMALLEST = 1e-300, 1e-60
_NEGLIGIBLE = 1e-7
_TRIES, _ALIKE = 6, 0.1
"""How often nodes are laid out at most, and how little hyperparameters then differ where that is enough, in
standard deviations."""
_FLAT = 4.0
_SAME = 0.03
"""How little the location of log standard deviations changes once its nodes are where it is, in standard
deviations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SidePosterior:
    """What is known of the population of one parameter, on its line."""

    location: tuple[float, float]
    spread: tuple[float, float]
    log_spread_sd: float

    @property
    def tells_spread(self) -> float:
        """The posterior standard deviation of the log spread over that of its hyperprior."""
        return self.log_spread_sd / LOG_SPREAD_SD


def _mean_and_sd(weight: Floats, values: Floats) -> tuple[float, float]:
    mean = float(np.sum(weight * values))
    return mean, float(np.sqrt(max(float(np.sum(weight * (values - mean) ** 2)), 0.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentPool:
    """The posterior of all cells of one pool; made by ``pooled_moments``.

    Attributes
    ----------
    names : (str, str)
        The mean's and the variance's.
    marginals : (NodeMarginal, NodeMarginal)
    own_share : ndarray of shape (n_cells, 2), float64
    outside : ndarray of shape (n_cells,), float64
    sides : (SidePosterior, SidePosterior)
        In the units of (1) of ``moment_cells``.
    settled : bool
    nodes : MomentNodes
        Of the cells' likelihoods.
    """

    names: tuple[str, str]
    centre: float
    half_range: float
    marginals: tuple[NodeMarginal, NodeMarginal]
    own_share: Floats
    outside: Floats
    sides: tuple[SidePosterior, SidePosterior]
    settled: bool
    nodes: MomentNodes = field(repr=False)
    _populations: tuple[Population, Population] = field(repr=False)
    _rules: tuple[SideNodes, SideNodes] = field(repr=False)
    _weight: Floats = field(repr=False)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.names

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return len(self.own_share)

    def _marginal(self, parameter: str) -> NodeMarginal:
        return self.marginals[self.names.index(parameter)]

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self._marginal(parameter).mean()

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self._marginal(parameter).sd()

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles from distribution functions; they rest on no draws."""
        return self._marginal(parameter).quantiles(q)

    def density(self, parameter: str, points: Floats) -> Floats:
        """Densities at points (n_cells, n_points)."""
        return self._marginal(parameter).density(points)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws: hyperparameters first, then every cell."""
        flat = self._weight.ravel()
        pair = rng.choice(len(flat), draws, p=flat / np.sum(flat))
        rows, columns = np.divmod(pair, self._weight.shape[1])
        position, level = np.empty((2, draws, self.n_cells))
        for part in _parts(self.n_cells, _TOGETHER // 4):
            nodes = self.nodes.take(part)
            f, g = (
                _densities(population, rule, *places)
                for population, rule, places in zip(self._populations, self._rules, nodes.sides, strict=True)
            )
            # Over levels first: the sums over positions are what is left of them.
            of_levels = (f @ nodes.weight)[:, rows] * g[:, columns]
            j = _chosen(of_levels, rng)
            of_positions = f[:, rows] * np.take_along_axis(
                nodes.weight.transpose(0, 2, 1), j[:, :, None], axis=1
            )
            i = _chosen(of_positions, rng)
            position[:, part] = _between(nodes.position, i, rng).T
            level[:, part] = _between(nodes.level, j, rng).T
        return dict(
            zip(
                self.names,
                (
                    self.centre + self.half_range * UNIT * position,
                    self.half_range**2 * np.exp(2.0 * level),
                ),
                strict=True,
            )
        )


def _chosen(weight: Floats, rng: np.random.Generator) -> Cells:
    """Draw places along the last axis in proportion to weights, (n_cells, draws)."""
    ends = np.cumsum(weight, axis=-1)
    wanted = rng.random(ends.shape[:-1]) * ends[..., -1]
    chosen: Cells = np.minimum(np.sum(ends <= wanted[..., None], axis=-1), weight.shape[-1] - 1)
    return chosen


def _between(nodes: Floats, chosen: Cells, rng: np.random.Generator) -> Floats:
    """Return places within half a step of chosen nodes."""
    place = np.clip(chosen + rng.random(chosen.shape) - 0.5, 0.0, nodes.shape[1] - 1.001)
    left = place.astype(np.int64)
    low, high = (np.take_along_axis(nodes, left + step, axis=1) for step in (0, 1))
    return np.asarray(low + (place - left) * (high - low))


def _parts(n: int, step: int) -> Iterator[slice]:
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def _components(population: Population, nodes: SideNodes, places: Floats, spacing: Floats) -> list[Floats]:
    """Densities of every component times its share at places of cells, (n_cells, n_nodes, n_places).

    Each adds up to its share over the places of a cell. Sums over places that all cells have in common would
    be too high or too low together by a little, and a thousand cells make much of it.
    """
    shape = (len(nodes.location), *places.shape)
    parts = []
    for share, density in population.components(places.ravel(), nodes.location, nodes.spread):
        # Products of smaller numbers are denormal, and slow.
        part = np.where(density > _SMALLEST, density, 0.0).reshape(shape).swapaxes(0, 1)
        part *= share / np.maximum(part @ spacing[:, :, None], _SMALLEST)
        parts.append(part)
    return parts


def _densities(population: Population, nodes: SideNodes, places: Floats, spacing: Floats) -> Floats:
    return np.asarray(sum(_components(population, nodes, places, spacing)))


def weighed(nodes: MomentNodes, populations: Sequence[Population], rules: Sequence[SideNodes]) -> Floats:
    """Return (1) at all pairs of nodes of both rules, (n_first, n_second); adds up to 1."""
    log_weight = rules[0].log_weight[:, None] + rules[1].log_weight
    for part in _parts(len(nodes.weight), _TOGETHER):
        few = nodes.take(part)
        f = _densities(populations[0], rules[0], *few.sides[0])
        g = _densities(populations[1], rules[1], *few.sides[1])
        z = (f @ few.weight) @ g.swapaxes(1, 2)
        log_weight += np.sum(np.log(np.maximum(z, _FLOOR)), axis=0)
    weight = np.exp(log_weight - np.max(log_weight))
    weight[weight < _NEGLIGIBLE] = 0.0
    return np.asarray(weight / np.sum(weight))


def _moments(nodes: MomentNodes, middles: tuple[float, float]) -> tuple[Moments, Moments]:
    """Return the normal approximation of each side, the other under a wide law about its middle."""
    of_position, of_level = (
        np.exp(-0.5 * ((place - middle) / 2.0) ** 2)
        for place, middle in zip((nodes.position, nodes.level), middles, strict=True)
    )
    approximations = (
        moments_about(nodes.position, np.einsum("cij,cj->ci", nodes.weight, of_level), middles[0]),
        moments_about(nodes.level, np.einsum("cij,ci->cj", nodes.weight, of_position), middles[1]),
    )
    first, second = (
        # Of likelihoods with one flat side, a normal law with their slope may be centred anywhere.
        replace(each, mean=np.clip(each.mean, middle - _FLAT, middle + _FLAT))
        for each, middle in zip(approximations, middles, strict=True)
    )
    return first, second


def _settled(
    nodes: MomentNodes, sides: Sequence[Side], moments: Sequence[Moments]
) -> tuple[tuple[SideNodes, ...], Floats, bool]:
    """Weigh pairs of nodes, and move the ends of both rules until the posterior lies inside."""
    n_cells = len(nodes.weight)
    boxes = [first_box(each, side.prior) for each, side in zip(moments, sides, strict=True)]
    n_t, n_s, _ = rule_sizes(n_cells)
    rule = legendre_rule(boxes[1].t, n_t)
    before = (np.inf, np.inf)
    for _ in range(ROUNDS):
        rules = (
            side_nodes(sides[0], moments[0], boxes[0], n_cells),
            side_nodes(sides[1], moments[1], boxes[1], n_cells, rule),
        )
        weight = weighed(nodes, [side.population for side in sides], rules)
        is_settled = True
        for number, axis in ((0, 1), (1, 0)):
            of_side = np.sum(weight, axis=axis)
            n = len(rule[0]) if number else n_t
            t, of_t = followed("t", boxes[number].t, *_mean_and_sd(of_side, rules[number].t), n)
            s, of_s = followed("s", boxes[number].s, *_mean_and_sd(of_side, rules[number].drawn_spread), n_s)
            boxes[number] = replace(boxes[number], t=t, s=s)
            is_settled &= of_t and of_s
        after = _mean_and_sd(of_side, rules[1].location)
        if is_settled and max(abs(after[0] - before[0]), abs(after[1] - before[1])) < _SAME * after[1]:
            break
        before = after
        of_nodes = np.sum(of_side.reshape(-1, len(rule[0])), axis=0)
        rule = rule_about_edges(*rule, of_nodes, boxes[1].t)
    return rules, weight, is_settled


def pooled_moments(
    source: MomentCells, population: Population, names: tuple[str, str], interval: tuple[float, float]
) -> MomentPool:
    """Return the posterior of every cell's mean and variance, hyperparameters integrated over.

    Raises
    ------
    TooManyError
        Where the noise of a cell is so wide that there would be too many sums.
    """
    middles = source.middle
    priors = OF_MEANS, OF_LEVELS
    populations: tuple[Population, Population] = population, NormalPopulation("normal")
    foci = tuple(
        Focus(centre=middle, width=width) for middle, width in zip(middles, (0.05, 0.2), strict=True)
    )
    # Likelihoods are worked out here, and nowhere else.
    known = source.nodes(foci)
    foci = tuple(focus_of(each, prior) for each, prior in zip(_moments(known, middles), priors, strict=True))
    nodes = known.moved(foci)
    before: list[tuple[float, float]] = []
    for _ in range(_TRIES):
        moments = _moments(nodes, (float(foci[0].centre), float(foci[1].centre)))
        sides = [
            Side(population=each, prior=prior, focus=focus)
            for each, prior, focus in zip(populations, priors, foci, strict=True)
        ]
        rules, weight, is_settled = _settled(nodes, sides, moments)
        of_sides = [np.sum(weight, axis=axis) for axis in (1, 0)]
        wanted = tuple(map(focused, foci, rules, of_sides))
        after = [
            _mean_and_sd(of_side, values)
            for of_side, each in zip(of_sides, rules, strict=True)
            for values in (each.location, each.drawn_spread)
        ]
        if wanted == foci or (before and _are_alike(before, after)):
            break
        before = after
        foci = wanted
        nodes = known.moved(foci)
    else:
        is_settled = False
    return _mixture(nodes, populations, rules, weight, names, interval, is_settled=is_settled)


def _are_alike(before: Sequence[tuple[float, float]], after: Sequence[tuple[float, float]]) -> bool:
    """Whether means and standard deviations differ by next to nothing: nodes then need not be elsewhere."""
    return all(
        max(abs(mean - last_mean), abs(sd - last_sd)) < _ALIKE * sd
        for (last_mean, last_sd), (mean, sd) in zip(before, after, strict=True)
    )


def _mixture(
    nodes: MomentNodes,
    populations: tuple[Population, Population],
    rules: tuple[SideNodes, ...],
    weight: Floats,
    names: tuple[str, str],
    interval: tuple[float, float],
    *,
    is_settled: bool,
) -> MomentPool:
    """Return the mixture over the pairs of nodes that have a weight."""
    of_sides = [np.sum(weight, axis=axis) for axis in (1, 0)]
    sides = tuple(
        SidePosterior(
            location=_mean_and_sd(of_side, each.location),
            spread=_mean_and_sd(of_side, each.drawn_spread),
            log_spread_sd=_mean_and_sd(of_side, np.log(each.drawn_spread))[1],
        )
        for each, of_side in zip(rules, of_sides, strict=True)
    )
    kept = [np.flatnonzero(of_side) for of_side in of_sides]
    first, second = (
        SideNodes(**{name: getattr(each, name)[rows] for name in SideNodes.__slots__})
        for each, rows in zip(rules, kept, strict=True)
    )
    weight = weight[np.ix_(*kept)]
    variances = [
        [
            float(np.sum(of_side[rows] * spread**2)) + side.location[1] ** 2
            for spread in population.spreads(each.spread)
        ]
        for population, each, side, of_side, rows in zip(
            populations, (first, second), sides, of_sides, kept, strict=True
        )
    ]
    masses: tuple[list[Floats], list[Floats]] = ([], [])
    own_share, outside = [], []
    for part in _parts(len(nodes.weight), _TOGETHER):
        few = nodes.take(part)
        of_first = _components(populations[0], first, *few.sides[0])
        g = _densities(populations[1], second, *few.sides[1])
        z = (np.asarray(sum(of_first)) @ few.weight) @ g.swapaxes(1, 2)
        back = (weight / np.maximum(z, _FLOOR)) @ g
        # Each component's part of the joint posterior, (n_cells, n_positions, n_levels).
        parts = [few.weight * (each.swapaxes(1, 2) @ back) for each in of_first]
        joint = np.sum(parts, axis=0)
        total = np.maximum(np.sum(joint, axis=(1, 2)), _FLOOR)
        masses[0].append(np.sum(joint, axis=2) / total[:, None])
        masses[1].append(np.sum(joint, axis=1) / total[:, None])
        share = [np.sum(each, axis=(1, 2)) / total for each in parts]
        told = [
            of_part * _told(np.sum(each, axis=2), few.position, variance)
            for of_part, each, variance in zip(share, parts, variances[0], strict=True)
        ]
        own_share.append(
            np.stack([np.sum(told, axis=0), _told(masses[1][-1], few.level, variances[1][0])], axis=1)
        )
        outside.append(share[1] if populations[0].is_contaminated else np.zeros(len(total)))
    centre, half_range = interval
    marginals = (
        NodeMarginal(
            line=Line.IDENTITY,
            position=centre + half_range * UNIT * nodes.position,
            mass=np.concatenate(masses[0]),
            spacing=half_range * UNIT * nodes.spacing,
        ),
        NodeMarginal(
            line=Line.LOGARITHM,
            position=2.0 * (nodes.level + np.log(half_range)),
            mass=np.concatenate(masses[1]),
            spacing=2.0 * nodes.level_spacing,
        ),
    )
    return MomentPool(
        names=names,
        centre=centre,
        half_range=half_range,
        marginals=marginals,
        own_share=np.concatenate(own_share),
        outside=np.concatenate(outside),
        sides=(sides[0], sides[1]),
        settled=is_settled,
        nodes=nodes,
        _populations=populations,
        _rules=(first, second),
        _weight=weight,
    )


def _told(mass: Floats, place: Floats, variance: float) -> Floats:
    """Return one less the ratio of a variance under masses to that of a population, in 0..1."""
    total = np.maximum(np.sum(mass, axis=1), _FLOOR)
    mean = np.sum(mass * place, axis=1) / total
    within = np.sum(mass * (place - mean[:, None]) ** 2, axis=1) / total
    return np.asarray(np.clip(1.0 - within / variance, 0.0, 1.0))
