r"""Probabilities of cells' categories under one Dirichlet population, which is integrated over.

Model. Of cells c with the evidence of ``category_cells``,

.. math:: p(\alpha \mid y) \propto p(\alpha) \prod_c Z_c(\alpha), \qquad \alpha = \varphi \mu \qquad (1)

with public hyperpriors: the mean :math:`\mu` is uniform over probabilities, and

.. math:: s \sim \mathrm{HalfNormal}(1), \qquad
    s^2 = \psi'(\varphi / K) + \psi'(\varphi (1 - 1 / K)), \qquad \varphi \ge 1, \qquad (2)

so that s is the standard deviation of the logit of a category whose share is 1 / K. Of two categories it is
the population ``beta``. The posterior of a cell is the mixture over :math:`\alpha`.

Method. By :math:`\log \alpha` (1) is nearly normal. Newton's method with the outer products of cells' scores
(Berndt, Hall, Hall, Hausman 1974) leads to its mode; then points of a Sobol sequence, turned into Student's
t of ``_DEGREES`` degrees of freedom about it, are weighed by (1), twice: the second time about the weighed
moments of the first. How many of them count, 1 over the sum of squared weights, is stated. Given
:math:`\alpha`, joint draws take :math:`\tau`, then the rate of every category; they add up to 1. Means and
standard deviations are those of ``MOMENT_DRAWS`` draws.

References
----------
Berndt, Hall, Hall, Hausman. Estimation and inference in nonlinear structural models. Ann. Econ. Soc. Meas. 3,
1974.
"""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.composite import Draws
from suffice.pipeline.math.engines.pooled.hyperpriors import LOG_SPREAD_SD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.math.engines.pooled.category_cells import CategoryCells, CategoryNodes
    from suffice.typing import Cells, Floats

MOMENT_DRAWS = 2000
_BLOCK = 64
_POINTS = (64, 256)
_DEGREES = 5.0
_STEPS, _LONGEST, _CLOSE = 25, 0.7, 0.02
_DIFFERENCE = 1e-3
_LARGEST = 1e5
"""Of a concentration: larger ones are told from it by no cell."""
_NEGLIGIBLE = 1e-4
_PER_CATEGORY = 2.0
"""Cells for each category that count as much as what curves along its axis."""
_FEWEST = 30.0
"""Points that have to count for the integral to be resolved."""


def spread_of(whole: Floats, k: int) -> Floats:
    """Return s of (2)."""
    from scipy.special import polygamma

    return np.asarray(np.sqrt(polygamma(1, whole / k) + polygamma(1, whole * (1.0 - 1.0 / k))))


def _log_prior(log_alpha: Floats) -> float:
    """Return the log density of log alpha, but for a constant."""
    alpha = np.exp(log_alpha)
    whole = float(np.sum(alpha))
    if not 1.0 <= whole <= _LARGEST:
        return -np.inf
    k = len(alpha)
    steps = whole * np.exp(np.array([-_DIFFERENCE, _DIFFERENCE]))
    s = spread_of(np.array([whole]), k)[0]
    slope = abs(float(np.diff(spread_of(steps, k))[0])) / (2.0 * _DIFFERENCE)
    # p(log alpha) = p(mu) p(log phi) times the product of mu.
    return float(-0.5 * s**2 + np.log(slope) + np.sum(log_alpha - np.log(whole)))


class _Evidence:
    """Log evidence of all cells, over nodes about one alpha; those of few cells are kept."""

    def __init__(self, cells: CategoryCells, alpha: Floats) -> None:
        self.cells, self.alpha = cells, alpha
        self._kept: list[CategoryNodes] = []

    def blocks(self) -> Iterator[tuple[Cells, CategoryNodes]]:
        """Give cells and their nodes."""
        for number, start in enumerate(range(0, self.cells.n_cells, _BLOCK)):
            block = np.arange(start, min(start + _BLOCK, self.cells.n_cells))
            if number >= len(self._kept):
                nodes = self.cells.nodes(block, self.alpha)
                if len(self._kept) < _MOST_KEPT:
                    self._kept.append(nodes)
                yield block, nodes
            else:
                yield block, self._kept[number]

    def of(self, alphas: Floats) -> Floats:
        """Return log Z at points (n, K), (n_cells, n)."""
        value = np.empty((self.cells.n_cells, len(alphas)))
        for block, nodes in self.blocks():
            for number, alpha in enumerate(alphas):
                value[block, number] = nodes.log_evidence(alpha)
        return value


_MOST_KEPT = 16
"""Blocks whose nodes are kept: 25 MB each of five categories."""


def _mode(cells: CategoryCells) -> tuple[_Evidence, Floats, Floats]:
    """Return nodes about the mode, the mode of log alpha, and the covariance of the normal law there."""
    log_alpha = np.log(np.maximum(cells.shares, 1e-3) * 4.0 * cells.n_categories)
    evidence = _Evidence(cells, np.exp(log_alpha))
    k = len(log_alpha)
    for _ in range(_STEPS):
        # Nodes are about populations that are not far off.
        if np.max(np.abs(log_alpha - np.log(evidence.alpha))) > 0.8:
            evidence = _Evidence(cells, np.exp(log_alpha))
        moved = log_alpha + _DIFFERENCE * np.concatenate([np.zeros((1, k)), np.eye(k), -np.eye(k)])
        value = evidence.of(np.exp(moved))
        prior = np.array([_log_prior(each) for each in moved])
        scores = (value[:, 1 : k + 1] - value[:, k + 1 :]) / (2.0 * _DIFFERENCE)
        gradient = np.sum(scores, axis=0) + (prior[1 : k + 1] - prior[k + 1 :]) / (2.0 * _DIFFERENCE)
        bends = np.sum(2.0 * value[:, :1] - value[:, 1 : k + 1] - value[:, k + 1 :], axis=0) / _DIFFERENCE**2
        information = _information(scores, bends)
        step = np.linalg.solve(information, gradient)
        longest = float(np.max(np.abs(step)))
        if longest > _LONGEST:
            step *= _LONGEST / longest
        new = log_alpha + step
        whole = np.log(np.sum(np.exp(new)))
        # Within the prior's ends.
        new -= max(whole - np.log(0.9 * _LARGEST), 0.0) - max(np.log(1.05) - whole, 0.0)
        if longest < _CLOSE * np.sqrt(np.min(np.diag(np.linalg.inv(information)))) + 1e-3:
            break
        log_alpha = new
    covariance = np.linalg.inv(information)
    return _Evidence(cells, np.exp(log_alpha)), log_alpha, np.asarray(covariance, dtype=np.float64)


def _information(scores: Floats, bends: Floats) -> Floats:
    """Return outer products of cells' scores (n_cells, K), shrunk to what curves along each axis (K,).

    Fewer cells than categories have no scores along most directions.
    """
    n_cells, k = scores.shape
    outer = scores.T @ scores
    share = n_cells / (n_cells + _PER_CATEGORY * k)
    # A uniform mean bends each log concentration by up to 1.
    return np.asarray(share * outer + (1.0 - share) * np.diag(np.maximum(bends, 0.0)) + 0.1 * np.eye(k))


def _points(n: int, middle: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Return points of Student's t, (n, K), and their log densities."""
    from scipy.special import gammaincinv, ndtri
    from scipy.stats import qmc

    k = len(middle)
    u = (qmc.Sobol(k + 1, scramble=False).random(n) + 0.5 / n) % 1.0
    u = np.clip(u, 1e-6, 1.0 - 1e-6)
    chi = 2.0 * gammaincinv(_DEGREES / 2.0, u[:, k]) / _DEGREES
    z = ndtri(u[:, :k]) / np.sqrt(chi)[:, None]
    root = np.linalg.cholesky(covariance)
    log_density = -0.5 * (_DEGREES + k) * np.log1p(np.sum(z**2, axis=1) / _DEGREES)
    return middle + z @ root.T, log_density - float(np.sum(np.log(np.diag(root))))


def pooled_categories(cells: CategoryCells, name: str) -> CategoryPool:
    """Return the posterior of every cell's probabilities, the population integrated over."""
    evidence, middle, covariance = _mode(cells)
    for n in _POINTS:
        points, log_density = _points(n, middle, 1.2 * covariance)
        log_prior = np.array([_log_prior(each) for each in points])
        kept = np.isfinite(log_prior)
        points, log_density, log_prior = points[kept], log_density[kept], log_prior[kept]
        log_weight = np.sum(evidence.of(np.exp(points)), axis=0) + log_prior - log_density
        weight = np.exp(log_weight - np.max(log_weight))
        weight /= np.sum(weight)
        effective = 1.0 / float(np.sum(weight**2))
        if effective > 4.0 * len(middle):
            middle = weight @ points
            covariance = (points - middle).T @ (weight[:, None] * (points - middle))
    counts = weight > _NEGLIGIBLE * np.max(weight)
    return CategoryPool(
        name=name,
        alpha=np.exp(points[counts]),
        weight=weight[counts] / np.sum(weight[counts]),
        effective=effective,
        _evidence=evidence,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryPool(Draws):
    """The posterior of all cells of one pool.

    Attributes
    ----------
    name : str
        The parameter's.
    alpha : ndarray of shape (n_points, K), float64
        Concentrations of the population.
    weight : ndarray of shape (n_points,), float64
    effective : float
        How many points count.
    """

    name: str
    alpha: Floats
    weight: Floats
    effective: float
    _evidence: _Evidence = field(repr=False)
    _known: list[tuple[Floats, Floats]] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return (self.name,)

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return self._evidence.cells.n_cells

    @property
    def settled(self) -> bool:
        """Whether enough points count."""
        return self.effective > _FEWEST

    @property
    def diagnostics(self) -> dict[str, Any]:
        """What the numbers rest on."""
        return {
            "sampler": "independent draws given weighed populations",
            "draws": len(self.weight),
            "fewest_effective_draws": self.effective,
        }

    @property
    def shares(self) -> Floats:
        """The mean of the law, mu, at every point, (n_points, K)."""
        return np.asarray(self.alpha / np.sum(self.alpha, axis=1, keepdims=True))

    @property
    def spread(self) -> Floats:
        """The spread s of (2) at every point, (n_points,)."""
        return spread_of(np.sum(self.alpha, axis=1), self.alpha.shape[1])

    def moments_of(self, values: Floats) -> tuple[Floats, Floats]:
        """Return posterior means and standard deviations of values at points (n_points, ...)."""
        mean = np.tensordot(self.weight, values, axes=1)
        return mean, np.sqrt(np.tensordot(self.weight, (values - mean) ** 2, axes=1))

    @property
    def tells_spread(self) -> float:
        """The posterior standard deviation of the log spread over that of its hyperprior."""
        return float(self.moments_of(np.log(self.spread))[1]) / LOG_SPREAD_SD

    def _moments(self) -> tuple[Floats, Floats]:
        if not self._known:
            drawn = self.sample(MOMENT_DRAWS, np.random.default_rng(0))[self.name]
            self._known.append((np.mean(drawn, axis=0), np.std(drawn, axis=0)))
        return self._known[0]

    def mean(self, parameter: str) -> Floats:
        """Means, (n_cells, K)."""
        return self._moments()[0]

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations, (n_cells, K)."""
        return self._moments()[1]

    @property
    def own_share(self) -> Floats:
        """One less the ratio of variances, of a cell's probabilities to the population's, all together."""
        shares, whole = self.shares, np.sum(self.alpha, axis=1)
        within = self.weight @ (shares * (1.0 - shares) / (whole + 1.0)[:, None])
        of_population = float(np.sum(within + self.moments_of(shares)[1] ** 2))
        return np.asarray(np.clip(1.0 - np.sum(self.sd(self.name) ** 2, axis=1) / of_population, 0.0, 1.0))

    @property
    def outside(self) -> Floats:
        """Zeros: the population has no outliers."""
        return np.zeros(self.n_cells)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws (draws, n_cells, K): the population first, then every cell; they add up to 1."""
        numbers = rng.multinomial(draws, self.weight / np.sum(self.weight))
        result = np.empty((draws, self.n_cells, self.alpha.shape[1]))
        for block, nodes in self._evidence.blocks():
            done = 0
            for number in np.flatnonzero(numbers).tolist():
                n = int(numbers[number])
                result[done : done + n, block] = _drawn(nodes, self.alpha[number], n, rng)
                done += n
        return {self.name: result[rng.permutation(draws)]}


def _drawn(nodes: CategoryNodes, alpha: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Draw probabilities given alpha, (n, n_cells, K)."""
    terms, below = nodes.terms(alpha)
    log_scales = nodes.log_scales(alpha, (terms, below))
    chance = np.exp(log_scales - np.max(log_scales, axis=1, keepdims=True))
    chosen = _chosen(np.broadcast_to(chance, (n, *chance.shape)), rng)
    rows = np.arange(len(chance))
    result = np.empty((n, len(chance), len(alpha)))
    for category, each in enumerate(alpha):
        of_places = terms[:, category][rows, chosen]
        of_below = below[:, category][rows, chosen]
        place = _chosen(np.concatenate([of_below[..., None], of_places], axis=-1), rng) - 1
        at = np.clip(place + rng.random(place.shape) - 0.5, 0.0, terms.shape[-1] - 1.001)
        left = at.astype(np.int64)
        known = nodes.place[:, category]
        low, high = known[rows, chosen, left], known[rows, chosen, left + 1]
        xi = low + (at - left) * (high - low)
        # Below the lowest place, a power law.
        tail = nodes.lowest[:, category][rows, chosen] + np.log(rng.random(place.shape)) / each
        result[..., category] = np.where(place < 0, tail, xi)
    result -= np.max(result, axis=-1, keepdims=True)
    np.exp(result, out=result)
    result /= np.sum(result, axis=-1, keepdims=True)
    return result


def _chosen(weight: Floats, rng: np.random.Generator) -> Cells:
    """Draw places along the last axis in proportion to weights."""
    ends = np.cumsum(weight, axis=-1)
    wanted = rng.random(ends.shape[:-1]) * ends[..., -1]
    chosen: Cells = np.minimum(np.sum(ends <= wanted[..., None], axis=-1), weight.shape[-1] - 1)
    return chosen
