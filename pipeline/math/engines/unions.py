r"""Posteriors of what the records of merged cells add up to, from the sums of their released values.

Model: component j of m merged cells is released as

.. math:: y_j = t_j + z_j, \qquad t_j \ge 0, \quad z_j = \sum_{i \le m} \mathrm{DLap}_i(b) \qquad (1)

with :math:`t_j` the total of all their records and :math:`f_m` the density of z. Nothing is assumed of how
records differ from cell to cell. The question is the posterior of the totals or, where these are moments,
of N, the mean and the variance of the records.

**Totals.** Given an exponent a, totals are independent, and with R what one record adds to all components

.. math:: p(t_j \mid y_j, a) \propto (1 + t_j / R)^{-a} \, f_m(y_j - t_j) \qquad (2)

    p(a \mid y) \propto \prod_j \frac{\int (1 + t / R)^{-a} f_m(y_j - t) \, dt}
        {R \int_0^M (1 + u)^{-a} du} \qquad (3)

a is one of 0, 1/2, 1, 3/2, equally likely a priori: whether small totals are many is learned from the
release. M, in records, is the released N and three standard deviations of its noise. Sums over integers are
exact; where these lie too densely, (2) is integrated by the trapezoidal rule on ``_EVENLY`` and
``_FROM_ZERO`` nodes.

**Moments.** With z in -1..1 over the public bounds, N records of mean m and variance V have the quadratic
Bernstein sums

.. math:: t = \bigl(N ((1 - m)^2 + V) / 4, \; N (1 - m^2 - V) / 2, \; N ((1 + m)^2 + V) / 4\bigr) \qquad (4)

    p(N, m, \sqrt V) \propto \frac{1}{N + 1} \frac{1}{\sqrt{1 - m^2}}, \qquad
        0 \le V \le 1 - m^2 \qquad (5)

The bound in (5) is the largest variance of records in -1..1. Points of (N, N m) are proposed by a
multivariate t distribution that is fitted in rounds to the posterior, and weighed (importance sampling on a
Latin hypercube); given these, V is integrated by a Gauss rule. Ends of intervals are right to about 0.03
(totals) and 0.04 (moments) standard deviations. Where integers lie densely :math:`f_m`
is that of continuous Laplace numbers of the same variance.

======= ================= ======================================== ===================== ==============
symbol  in the code       meaning                                  shape                 unit
======= ================= ======================================== ===================== ==============
y       ``values``        sums of released values                  (n_components,)       steps; records
m       ``terms``         number of noises in each                 scalar                none
b       ``scale``         scale of one noise                       scalar                steps; records
R       ``record``        what a record adds                       scalar                steps
a       ``EXPONENTS``     exponents of the prior of totals         (4,)                  none
V       ``variance``      variance of the records                  (n_points,)           half ranges^2
======= ================= ======================================== ===================== ==============
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.pipeline.math.distributions.laplace_sums import log_density_of_sum, log_mass_of_sum
from suffice.pipeline.math.distributions.quadrature import integral_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from suffice.typing import Floats

    CellPoints: TypeAlias = Callable[[], tuple[Floats, Mapping[str, Floats]]]
    """Returns weights (n_points,) and quantities, each (n_points,) or (n_points, n_entries)."""

_DEGREES = 5.0
_ROUNDS = (512, 512, 1024)
"""Points by which the proposal is fitted, before those that count."""
_WIDER = 1.5
_AWAY = 8.0
"""Standard deviations of the noise about the estimated variance that are integrated over."""
_PANELS = np.linspace(0.0, 1.0, 4)
KEPT_POINTS = 1 << 12
"""Points that count: the ends of intervals are right to about 0.04 standard deviations."""
_KNOTS_PER_SCALE = 64.0
"""Steps of the table of the noise's log density, in which it is a polyline: right to about 1e-4 nats."""
_FARTHEST = 2000.0
"""Scales beyond which the log density is a straight line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsOfCell:
    """Weighted points of the moments of one merged cell.

    Attributes
    ----------
    values : ndarray of shape (3,), float64
        Sums of released values, in records.
    scale : float
        b of one Laplace number, in records.
    terms : int
        How many are added.
    """

    values: Floats
    scale: float
    terms: int

    def points(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return weights (n_points,) that add up to 1, and N, m and V, (3, n_points).

        Parameters
        ----------
        shares : ndarray of shape (4, n_points), float64
            Evenly spread over 0..1 in each row; the first ``KEPT_POINTS`` count.
        """
        sd = np.sqrt(2.0 * self.terms) * self.scale
        # The three sums of (4) add up to N; the third less the first is N m.
        n = float(np.sum(self.values))
        centre = np.array([max(n, sd), float(self.values[2] - self.values[0])])
        # N is a sum of three components and N m a difference of two: their noise variances are 3 sd^2 and 2
        # sd^2.
        covariance = sd**2 * np.array([[3.0, 0.0], [0.0, 2.0]])
        start = 0
        for size in _ROUNDS:
            weight, moments = self._weighted(shares[:, start : start + size], centre, covariance)
            latent = np.stack([moments[0], moments[0] * moments[1]])
            centre = latent @ weight
            away = latent - centre[:, None]
            # A proposal wider than the posterior keeps weights bounded.
            covariance = _WIDER * (weight * away) @ away.T + 1e-6 * sd**2 * np.eye(2)
            start += size
        return self._weighted(shares[:, :KEPT_POINTS], centre, covariance)

    def _weighted(self, shares: Floats, centre: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        from scipy.special import gammaincinv, ndtri

        root = np.linalg.cholesky(covariance)
        # A t variable is a normal one times the root of an inverse gamma.
        mixing = _DEGREES / (2.0 * gammaincinv(_DEGREES / 2.0, shares[2]))
        latent = centre[:, None] + np.sqrt(mixing) * (root @ ndtri(shares[:2]))
        square = np.sum(np.linalg.solve(root, latent - centre[:, None]) ** 2, axis=0)
        # The density of a bivariate t, up to a constant: (1 + d^2 / nu)^(-(nu + 2) / 2).
        log_proposal = -(_DEGREES + 2.0) / 2.0 * np.log1p(square / _DEGREES)
        possible = (latent[0] > 0.0) & (np.abs(latent[1]) < latent[0])
        n = np.where(possible, latent[0], 1.0)
        m = np.where(possible, latent[1] / n, 0.0)
        log_mass, variance = self._variances(n, m, shares[3])
        # Uniform in the mean is 1 / N in N m.
        log_weight = np.where(possible, log_mass - np.log1p(n) - np.log(n) - log_proposal, -np.inf)
        weight = np.exp(log_weight - np.max(log_weight))
        return weight / np.sum(weight), np.stack([n, m, variance])

    def _variances(self, n: Floats, m: Floats, share: Floats) -> tuple[Floats, Floats]:
        """Log of the integral over V, and a draw of V, each (n_points,)."""
        sd = np.sqrt(6.0 * self.terms) * self.scale / n
        # By (4), t_1 + t_3 - t_2 = N (m^2 + V).
        near = (self.values[0] + self.values[2] - self.values[1]) / n - m**2
        most = 1.0 - m**2
        low = np.sqrt(np.clip(near - _AWAY * sd, 0.0, most))
        high = np.sqrt(np.clip(np.maximum(near, 0.0) + _AWAY * sd, 0.0, most))
        low = np.minimum(low, 0.9 * high)
        edges = low[:, None] + (high - low)[:, None] * _PANELS
        nodes, weights = integral_rule(edges[:, :-1].ravel(), edges[:, 1:].ravel(), 8)
        root, width = nodes.reshape(len(n), -1), weights.reshape(len(n), -1)
        variance = root**2
        n, m = n[:, None], m[:, None]
        expected = (
            n * ((1.0 - m) ** 2 + variance) / 4.0,
            n * (1.0 - m**2 - variance) / 2.0,
            n * ((1.0 + m) ** 2 + variance) / 4.0,
        )
        log_value = np.zeros_like(variance)
        for value, each in zip(self.values.tolist(), expected, strict=True):
            log_value += _log_density((value - each) / self.scale, self.terms)
        top = np.max(log_value, axis=1, keepdims=True)
        # Uniform in the root of V over 0..sqrt(1 - m^2).
        mass = np.exp(log_value - top) * width
        # V is drawn given N and m: the inverse of its distribution function at the nodes.
        cumulative = np.cumsum(mass, axis=1)
        total = cumulative[:, -1:]
        # Half of a node's mass lies on either side of it.
        middle = (cumulative - mass / 2.0) / total
        place = np.clip(np.sum(middle < share[:, None], axis=1), 1, middle.shape[1] - 1)[:, None]
        before, after = (np.take_along_axis(middle, place - back, 1)[:, 0] for back in (1, 0))
        first, last = (np.take_along_axis(root, place - back, 1)[:, 0] for back in (1, 0))
        part = np.clip((share - before) / np.maximum(after - before, 1e-300), -1.0, 2.0)
        drawn = np.clip(first + (last - first) * part, 0.0, None)
        return (np.log(total) + top)[:, 0] - np.log(np.maximum(most, 1e-300)) / 2.0, drawn**2


def _log_density(distance: Floats, terms: int) -> Floats:
    """Log density of the noise at distances in scales, looked up: a table is many times as fast."""
    table = _table(terms)
    place = np.minimum(np.abs(distance) * _KNOTS_PER_SCALE, len(table) - 2.0)
    knot = place.astype(np.int64)
    beyond = np.maximum(np.abs(distance) - _FARTHEST, 0.0)
    before = table[knot]
    looked_up: Floats = before + (table[knot + 1] - before) * (place - knot) - beyond
    return looked_up


@cache
def _table(terms: int) -> Floats:
    knots = np.arange(_FARTHEST * _KNOTS_PER_SCALE + 2.0) / _KNOTS_PER_SCALE
    return log_density_of_sum(knots, terms)


# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it


POINTS = 1 << 13
"""Points of a cell: the ends of intervals are right to about 0.03 standard deviations."""
_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionDistribution:
    """Made by ``UnionDistribution.of``.

    Attributes
    ----------
    cells : tuple of callable
        One for each merged cell: its weighted points.
    moments : dict of str to tuple of ndarray
        Means and standard deviations by quantity: (n_cells,) or (n_cells, n_entries).
    """

    cells: tuple[CellPoints, ...] = field(repr=False)
    moments: Mapping[str, tuple[Floats, Floats]] = field(repr=False)

    @classmethod
    def of(cls, cells: Sequence[CellPoints]) -> UnionDistribution:
        """Sum up the moments of every cell."""
        means: dict[str, list[Floats]] = {}
        sds: dict[str, list[Floats]] = {}
        for cell in cells:
            weight, quantities = cell()
            for name, values in quantities.items():
                mean = weight @ values
                means.setdefault(name, []).append(mean)
                # Var = E (x - E x)^2 over weighted points.
                sds.setdefault(name, []).append(np.sqrt(weight @ (values - mean) ** 2))
        moments = {name: (np.array(means[name]), np.array(sds[name])) for name in means}
        return cls(cells=tuple(cells), moments=moments)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the quantities."""
        return tuple(self.moments)

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self.moments[parameter][0]

    def sd(self, parameter: str) -> Floats:
        """Standard deviations."""
        return self.moments[parameter][1]

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles of the points; they rest on no draws."""
        levels = np.asarray(q, dtype=np.float64)
        result = []
        for cell in self.cells:
            weight, quantities = cell()
            values = quantities[parameter]
            columns = values.reshape(len(weight), -1).T
            quantiles = np.array([_weighted_quantiles(column, weight, levels) for column in columns])
            result.append(quantiles.reshape(*values.shape[1:], len(levels)))
        return np.array(result)

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Return None: only points are known."""
        return None

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws: points, chosen by their weights."""
        drawn: dict[str, list[Floats]] = {name: [] for name in self.moments}
        for cell in self.cells:
            weight, quantities = cell()
            chosen = rng.choice(len(weight), draws, p=weight)
            for name, values in quantities.items():
                drawn[name].append(values[chosen])
        return {name: np.stack(parts, axis=1) for name, parts in drawn.items()}


def evenly_spread(dimensions: int) -> Floats:
    """Return a Latin hypercube of ``POINTS`` points, (dimensions, POINTS), the same at every call."""
    middles = (np.arange(POINTS) + 0.5) / POINTS
    return np.random.default_rng(_SEED).permuted(np.tile(middles, (dimensions, 1)), axis=1)


def _weighted_quantiles(values: Floats, weight: Floats, levels: Floats) -> Floats:
    """Return the least values below or at which so much of the weight is."""
    order = np.argsort(values)
    below = np.cumsum(weight[order])
    places = np.searchsorted(below / below[-1], levels)
    return values[order][np.minimum(places, len(values) - 1)]


NATS = 40.0
"""How far the log density falls within ``reach``."""
MOST_INTEGERS = 1 << 15
"""Distances up to which probabilities are those of integers: beyond, integers lie densely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedNoise:
    """The distribution of the noise on one total; made by ``SummedNoise.of``.

    Attributes
    ----------
    terms : int
        m, how many numbers are added.
    scale : float
        b of the continuous Laplace numbers with the variance of the discrete ones, in lattice steps.
    log_mass : ndarray of shape (n,), float64, or None
        Log probabilities of 0..n - 1, where so many hold every distance that matters.
    """

    terms: int
    scale: float
    log_mass: Floats | None

    @classmethod
    def of(cls, terms: int, scale: float, farthest: float, *, is_whole: bool = True) -> SummedNoise:
        """Work out the distribution to ``reach`` beyond the farthest value from the possible totals.

        Parameters
        ----------
        terms : int, > 0
        scale : float, > 0
            b of one discrete Laplace number, in lattice steps.
        farthest : float, >= 0
            In lattice steps.
        is_whole : bool
            Whether the noise is a whole number of steps; else it is taken for continuous.
        """
        # 2 q / (1 - q)^2 = 1 / (2 sinh(1 / 2 b)^2) is the variance of one, 2 b^2 that of a continuous one.
        alike = 0.5 / math.sinh(0.5 / scale) if is_whole else scale
        noise = cls(terms=terms, scale=alike, log_mass=None)
        most = math.ceil(noise.reach + farthest) + 1
        if most > MOST_INTEGERS or not is_whole:
            return noise
        return cls(terms=terms, scale=alike, log_mass=log_mass_of_sum(most, terms, scale))

    @property
    def is_discrete(self) -> bool:
        """Whether totals are whole numbers of steps."""
        return self.log_mass is not None

    @property
    def sd(self) -> float:
        """Standard deviation, in lattice steps."""
        return math.sqrt(2.0 * self.terms) * self.scale

    @property
    def reach(self) -> float:
        """Distance, in lattice steps, at which the density is ``NATS`` below its top, or a little farther."""
        distances = np.linspace(0.0, NATS + 12.0 * math.sqrt(2.0 * self.terms), 4096)
        below = log_density_of_sum(distances, self.terms)
        # The log density of a sum of Laplace numbers falls without end, at last by 1 / b a step.
        far = np.searchsorted(below[0] - below, NATS)
        return float(distances[min(int(far), len(distances) - 1)]) * self.scale + 1.0

    def log_density(self, distance: Floats) -> Floats:
        """Log density or probability at distances (n,) in lattice steps, up to a constant."""
        if self.log_mass is None:
            return log_density_of_sum(distance / self.scale, self.terms)
        return self.log_mass[np.abs(distance).astype(np.int64)]


EXPONENTS = (0.0, 0.5, 1.0, 1.5)
_EVENLY, _FROM_ZERO = 2049, 513
"""Nodes of a total whose integers lie too densely to be summed: over its window, and in octaves from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsOfCell:
    """Quasi-random points of the totals of one merged cell.

    Attributes
    ----------
    values : ndarray of shape (n_components,), float64
        Sums of released values, in lattice steps.
    record : float
        R, what one record adds to all components, in lattice steps.
    noise : SummedNoise
    """

    values: Floats
    record: float
    noise: SummedNoise

    def points(self, shares: Floats) -> Floats:
        """Return totals (n_points, n_components) in lattice steps, equally likely.

        Parameters
        ----------
        shares : ndarray of shape (n_components + 1, n_points), float64
            Evenly spread over 0..1 in each row: they choose the exponent, then every total.
        """
        spread = self.noise.sd * np.sqrt(len(self.values))
        most = max(float(np.sum(self.values)) + 3.0 * spread, self.record) / self.record
        tables = [self._table(value) for value in self.values.tolist()]
        evidence = np.zeros(len(EXPONENTS))
        for place, exponent in enumerate(EXPONENTS):
            normaliser = np.log(self.record * _integral(exponent, most))
            # (3).
            evidence[place] = sum(log_mass[place] - normaliser for _, _, log_mass in tables)
        weight = np.exp(evidence - np.max(evidence))
        chosen = np.searchsorted(np.cumsum(weight / np.sum(weight))[:-1], shares[0], side="right")
        result = np.empty((shares.shape[1], len(tables)))
        for component, (nodes, cumulative, _) in enumerate(tables):
            for place in range(len(EXPONENTS)):
                points = np.flatnonzero(chosen == place)
                result[points, component] = self._inverse(
                    nodes, cumulative[place], shares[component + 1, points]
                )
        return result

    def _table(self, value: float) -> tuple[Floats, Floats, Floats]:
        """Nodes (n,), distribution functions there (n_exponents, n), and logs of the masses."""
        reach = self.noise.reach
        first, last = np.floor(max(value - reach, 0.0)), np.ceil(max(value, 0.0) + reach)
        if self.noise.is_discrete:
            nodes = np.arange(first, last + 1.0)
        else:
            nodes = np.append(np.linspace(first, last, _EVENLY), np.clip(value, first, last))
            if first == 0.0:
                octaves = np.expm1(np.linspace(0.0, np.log1p(last / self.record), _FROM_ZERO))
                nodes = np.append(nodes, np.minimum(self.record * octaves, last))
            nodes = np.unique(nodes)
        # (2) at the nodes, for all exponents.
        log_noise = self.noise.log_density(nodes - value)
        log_value = log_noise - np.outer(EXPONENTS, np.log1p(nodes / self.record))
        top = np.max(log_value, axis=1, keepdims=True)
        density = np.exp(log_value - top)
        if self.noise.is_discrete:
            cumulative = np.cumsum(density, axis=1)
        else:
            # The trapezoidal rule.
            steps = np.diff(nodes) * (density[:, 1:] + density[:, :-1]) / 2.0
            cumulative = np.concatenate([np.zeros((len(density), 1)), np.cumsum(steps, axis=1)], axis=1)
        mass = cumulative[:, -1:]
        return nodes, cumulative / mass, (np.log(mass) + top)[:, 0]

    def _inverse(self, nodes: Floats, cumulative: Floats, shares: Floats) -> Floats:
        if self.noise.is_discrete:
            return nodes[np.minimum(np.searchsorted(cumulative, shares), len(nodes) - 1)]
        return np.interp(shares, cumulative, nodes)


def _integral(exponent: float, most: float) -> float:
    """Integral of (1 + t)^-a over 0..most."""
    if exponent == 1.0:
        return float(np.log1p(most))
    return float(((1.0 + most) ** (1.0 - exponent) - 1.0) / (1.0 - exponent))
