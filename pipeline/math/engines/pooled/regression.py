r"""Hyperparameters of a population whose location depends on public covariates of cells.

Model. As in ``hyperparameters``, but for the location, which is that of cell c:

.. math:: m_c = m + \sum_k w_{ck} \beta_k, \qquad \beta_k \sim \mathrm{Normal}(0, 1), \qquad
    Z_c(h) = \int L_c(z; b) \, f(z \mid m_c, s) \, dz, \qquad h = (m, \beta, s, b). \qquad (1)

Covariates have mean 0 over cells, so that m is the location at their means; those that are more than an
indicator have a standard deviation of 1 (Gelman et al. 2008). It is the model of Fay and Herriot without its
normal approximation: L is the exact likelihood of the cell, noise and latent size included.

A Normal(0, 1) law says that a covariate hardly moves odds or rates by more than e^2 for each of its standard
deviations. Of a wider one, with covariates of which the cells tell little, the location of a cell has a prior
that puts its probability next to 0 or 1.

Method. s and b have the Gauss-Legendre rules of ``hyperparameters``, at whose pairs the likelihood of all
cells is a function of :math:`\theta = (m, \beta)` alone,

.. math:: \log p(y \mid \theta, s, b) = \sum_c \ell_c(m_c), \qquad
    \ell_c(m_c) = \log Z_c(m_c; s, b) \qquad (2)

a sum of smooth functions of one number each. They are tabulated at places ``_STEP`` s apart, by one product
of matrices for all cells, with cubics through four places between. The integral over :math:`\theta` is
importance sampling: at each pair from a multivariate t law about the mode of (2) with its curvature, in
steps of opposite sign, weighed by the exact posterior. The shape k of the tail of all weights
(``reweighted``) says whether averages can be relied on. Where they cannot, as where noise hides the cells and
the posterior is skewed, half of the draws are from a t law with the moments of the first answer.

Symbols: w: ``design``, (n_cells, n_coefficients); :math:`\theta`: ``theta``.

References
----------
Fay, Herriot. Estimates of income for small places. J. Amer. Statist. Assoc. 74, 1979. Gelman, Jakulin,
Pittau, Su. A weakly informative default prior distribution for logistic and other regression models. Ann.
Appl. Statist. 2, 2008. Rue, Martino, Chopin. Approximate Bayesian inference for latent Gaussian models by
using integrated nested Laplace approximations. J. R. Statist. Soc. B 71, 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.math.distributions.reweighted import (
    FEWEST_EFFECTIVE,
    LARGEST_SHAPE,
    effective,
    smoothed,
)
from suffice.pipeline.math.engines.pooled.cells import Focus
from suffice.pipeline.math.engines.pooled.hyperparameters import (
    FARTHEST,
    FINEST,
    FIRST_CELLS,
    LEAST,
    MORE,
    ROUNDS,
    Hyperparameters,
    followed,
    legendre_rule,
    rule_sizes,
)
from suffice.pipeline.math.engines.pooled.hyperpriors import COEFFICIENT_SD, SLOPE_SD, location_prior
from suffice.pipeline.math.engines.pooled.kept_nodes import KeptNodes, blocks_focus
from suffice.pipeline.math.engines.pooled.normal_approximation import Box, first_box, moments_of
from suffice.pipeline.math.engines.pooled.regression_target import Places, Proposal, Target, degrees, mixed
from suffice.pipeline.math.engines.pooled.residual_grid import ResidualGrid

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.math.engines.pooled.cells import CellsSource, Nodes
    from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
    from suffice.pipeline.math.engines.pooled.normal_approximation import Moments
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.typing import Cells, Floats

_REACH = 9.0
"""How far places go beyond the location of a cell, in its standard deviations."""
_BELOW = 16.0
"""Pairs of s and b whose Laplace approximation is so far below the best, in nats, have no weight."""
_FEW, _DRAWS, _MORE_DRAWS, _MORE_OF_FEW_CELLS = 16, 8192, 4, 2
_FEWEST_OF_RULES = 101
"""Cells whose rules over s and b are taken of fewer: draws, not nodes, are what is rough then."""
_FEWEST, _MOST = 32, 4096
_AGAIN, _WIDER = 2, 1.3
_FLOOR = 1e-300
_SEED = 33
"""Of the proposals: the same for all, so that an answer is the same whenever it is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression(Hyperparameters):
    """Nodes of the posterior of hyperparameters, with coefficients.

    Attributes
    ----------
    coefficients : ndarray of shape (n_slopes, n_nodes, n_coefficients), float64
        Of the columns of the design.
    centre : ndarray of shape (n_coefficients,), float64
        beta_0: positions of cells are less w_c . beta_0.
    design : ndarray of shape (n_cells, n_coefficients), float64
    shape : float
        Of the tail of the weights: averages can be relied on up to .7.
    effective : float
        How many independent draws the nodes are worth.
    """

    coefficients: Floats
    centre: Floats
    design: Floats
    shape: float
    effective: float

    def at_means(self) -> Self:
        """Return the one node of all hyperparameters and coefficients at their posterior means."""
        mean = self.weight.ravel() @ self.coefficients.reshape(-1, self.coefficients.shape[2])
        # Without slots' super(), whose class the dataclass has replaced.
        return replace(Hyperparameters.at_means(self), coefficients=mean[None, None, :])

    @property
    def diagnostics(self) -> dict[str, Any]:
        """What the numbers rest on."""
        return {
            "sampler": "importance sampling of location and coefficients, quadrature of spread and slope",
            "draws": int(np.count_nonzero(self.weight)),
            "fewest_effective_draws": self.effective,
            "largest_pareto_k": round(max(0.0, self.shape), 3),
        }

    def locations(self, cells: Cells, slope: int, nodes: Any) -> Floats:
        """Return m_c - w_c . beta_0 of some cells at some nodes of a slope, (n_cells, n_chosen)."""
        of_nodes = self.coefficients[slope, nodes] - self.centre
        result: Floats = self.location[slope, nodes] + self.design[cells] @ of_nodes.T
        return result

    @property
    def offset(self) -> Floats:
        """What positions are less by, (n_cells,)."""
        result: Floats = self.design @ self.centre
        return result

    @property
    def moments(self) -> tuple[Floats, Floats]:
        """Mean and covariance of theta."""
        theta = np.concatenate([self.location[:, :, None], self.coefficients - self.centre], axis=2)
        flat, weight = theta.reshape(-1, theta.shape[2]), self.weight.ravel()
        mean: Floats = weight @ flat
        covariance: Floats = (weight[:, None] * (flat - mean)).T @ (flat - mean)
        return mean, covariance

    @property
    def beside_slope(self) -> tuple[float, int]:
        """How well coefficients foretell the slope on log size, R^2, and the column that does most.

        It is that of their posterior: near 1 a covariate says what the size of a cell says.
        """
        beta, b = self.coefficients.reshape(-1, self.coefficients.shape[2]), self.slopes.ravel()
        weight = self.weight.ravel()
        beta, b = beta - weight @ beta, b - weight @ b
        variance = float(weight @ b**2)
        if variance <= 0.0:
            return 0.0, 0
        joint, shared = (weight[:, None] * beta).T @ beta, beta.T @ (weight * b)
        share = float(shared @ np.linalg.pinv(joint, hermitian=True) @ shared) / variance
        return share, int(np.argmax(np.abs(shared) / np.sqrt(np.maximum(np.diag(joint), 1e-300))))

    @property
    def wide(self) -> Proposal:
        """A proposal that is wider than the posterior, of whatever shape that is."""
        mean, covariance = self.moments
        return Proposal.of(mean, _WIDER**2 * covariance)

    def location_variance(self, cells: Cells) -> Floats:
        """Return the posterior variance of m_c, (n_cells,)."""
        rows = np.column_stack([np.ones(len(cells)), self.design[cells]])
        result: Floats = np.sum((rows @ self.moments[1]) * rows, axis=1)
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    """Cells whose positions are less what covariates are thought to explain of them; a ``CellsSource``."""

    source: CellsSource
    offset: Floats

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return self.source.n_cells

    @property
    def has_sizes(self) -> bool:
        """As of the cells."""
        return self.source.has_sizes

    @property
    def middle(self) -> float:
        """As of the cells."""
        return self.source.middle

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        """Nodes of some cells, dense where each has its population."""
        offset = self.offset[cells][:, None]
        nodes = self.source.nodes(cells, replace(focus, centre=focus.centre + offset))
        return replace(nodes, position=nodes.position - offset)

    def records(self, position: Floats, log_size: Floats, rng: np.random.Generator) -> Floats:
        """Numbers of records at whole positions, as of the cells."""
        source: Any = self.source
        drawn: Floats = source.records(position, log_size, rng)
        return drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cells:
    """Some cells: their nodes, normal approximations, rows (1, w_c), and what all share."""

    blocks: KeptNodes
    population: Population
    moments: Moments
    prior: LocationPrior
    rows: Floats
    centre: Floats
    has_slope: bool

    @classmethod
    def of(
        cls,
        source: CellsSource,
        cells: Cells,
        population: Population,
        prior: LocationPrior,
        design: Floats,
        middle: float,
    ) -> _Cells:
        """Work out beta_0 by the normal approximation, and what is left of positions."""
        has_slope = population.slope and source.has_sizes
        rows = np.column_stack([np.ones(len(cells)), design[cells]])
        blocks = KeptNodes(source, cells)
        moments = moments_of(blocks, middle)
        centre = np.zeros(design.shape[1])
        # A population that is no location family is not moved.
        if population.slope:
            box = first_box(moments, prior, has_slope=has_slope, covariates=rows[:, 1:])
            omega = moments.omega(np.array([box.s[0]]))[0]
            size = moments.log_size - np.sum(omega * moments.log_size) / np.sum(omega)
            left = moments.mean - box.b[0] * size * has_slope - prior.centre
            of_prior = np.diag([prior.precision, *[COEFFICIENT_SD**-2.0] * len(centre)])
            centre = np.linalg.solve((rows.T * omega) @ rows + of_prior, rows.T @ (omega * left))[1:]
            blocks = KeptNodes(Residuals(source=source, offset=design @ centre), cells)
            moments = moments_of(blocks, middle)
        return cls(
            blocks=blocks,
            population=population,
            moments=moments,
            prior=prior,
            rows=rows,
            centre=centre,
            has_slope=has_slope,
        )

    def first_box(self) -> Box:
        """Return where the normal approximation has s and b."""
        return first_box(self.moments, self.prior, has_slope=self.has_slope, covariates=self.rows[:, 1:])


def regressed(
    source: CellsSource, population: Population, line: Line, design: Floats
) -> tuple[Regression, KeptNodes]:
    """Return the posterior of hyperparameters and coefficients, and nodes of what they leave of all cells.

    Parameters
    ----------
    source : CellsSource
    population : Population
    line : Line
    design : ndarray of shape (n_cells, n_coefficients), float64
        Columns have mean 0.

    Raises
    ------
    UsageError
        Where weights are not to be relied on.
    """
    n, n_cells = min(FIRST_CELLS, source.n_cells), source.n_cells
    prior = location_prior(line, source.middle)
    box, middle = None, source.middle
    while True:
        chosen = np.unique(np.linspace(0, n_cells - 1, n).astype(np.int64))
        cells = _Cells.of(source, chosen, population, prior, design, middle)
        # More cells tell spreads and slopes in finer units.
        result, box, is_settled = _settled(cells, box or cells.first_box())
        if n == n_cells:
            break
        n, middle = min(n * MORE, n_cells), result.mean(result.location)
    return replace(_reliable(cells, box, result), settled=is_settled), cells.blocks


def _settled(cells: _Cells, box: Box) -> tuple[Regression, Box, bool]:
    """Weigh few draws, and move the ends of the rules over s and b until the posterior lies inside."""
    _, n_s, n_b = rule_sizes(max(len(cells.rows), _FEWEST_OF_RULES))
    for _ in range(ROUNDS):
        result = _weighed(cells, box, _FEW)
        s, b = result.drawn_spread, result.slopes
        of_s, is_settled = followed("s", box.s, result.mean(s), result.sd(s), n_s)
        of_b = box.b
        if cells.has_slope:
            of_b, is_inside = followed("b", box.b, result.mean(b), result.sd(b), n_b)
            is_settled &= is_inside
        if is_settled:
            break
        box = replace(box, s=of_s, b=of_b)
    return result, box, is_settled


def _reliable(cells: _Cells, box: Box, last: Regression) -> Regression:
    """Weigh as many draws as averages need, or refuse."""
    # Pairs of s and b that the last round kept share the draws.
    pairs = np.count_nonzero(np.any(last.weight.reshape(len(last.slope), -1, _FEW) > 0.0, axis=2))
    wanted = _DRAWS * min(max(1000 // len(cells.rows), 1), _MORE_OF_FEW_CELLS)
    draws = min(max(1 << math.ceil(math.log2(wanted / max(int(pairs), 1))), _FEWEST), _MOST)
    result = _weighed(cells, box, draws)
    for _ in range(_AGAIN):
        if result.shape <= LARGEST_SHAPE and result.effective >= FEWEST_EFFECTIVE:
            return result
        result = _weighed(cells, box, draws * _MORE_DRAWS, result.wide)
    if result.shape <= LARGEST_SHAPE and result.effective >= FEWEST_EFFECTIVE:
        return result
    message = (
        f"no method here is reliable with these covariates: weights have a Pareto k of {result.shape:.2f}, "
        f"and above {LARGEST_SHAPE:g} averages are not to be relied on; {result.effective:.0f} draws count, "
        f"and {FEWEST_EFFECTIVE:g} are needed: leave covariates out"
    )
    raise UsageError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Approximation:
    """Fay and Herriot's estimates at all pairs of s and b, and places that hold the posterior.

    Attributes
    ----------
    theta : ndarray of shape (n_s, n_b, n_theta), float64
    grid : ResidualGrid
    places : list of Places
        One for each s.
    """

    theta: Floats
    grid: ResidualGrid
    places: list[Places]

    @classmethod
    def of(cls, cells: _Cells, lowest: float, s: Floats, b: Floats) -> _Approximation:
        """Work them out; spreads below the lowest do not matter."""
        moments, prior, rows = cells.moments, cells.prior, cells.rows
        omega = moments.omega(s)
        typical = omega[len(s) // 2]
        origin = float(np.sum(typical * moments.log_size) / np.sum(typical))
        of_prior = np.array([prior.precision, *[COEFFICIENT_SD**-2.0] * (rows.shape[1] - 1)])
        inverse = np.linalg.inv(np.stack([(rows.T * each) @ rows for each in omega]) + np.diag(of_prior))
        target = moments.mean - b[:, None] * (moments.log_size - origin)
        score = (omega[:, None, :] * target) @ rows + of_prior * np.array([prior.centre, *-cells.centre])
        theta = score @ inverse
        # Locations of cells (n_s, n_b, n_cells), and their standard deviations (n_s, n_cells).
        location, sd = theta @ rows.T, np.sqrt(np.sum((rows @ inverse) * rows, axis=2))
        least = LEAST * float(np.min(sd[0]))
        lowest = max(lowest, least)
        # Where populations are, of small cells and of large ones, less how narrow they are there.
        about = float(np.mean(location[len(s) // 2]))
        moved = b[:, None] * (moments.log_size - origin)
        gap = np.abs(location + moved - about) + 4.0 * sd[:, None, :] + np.abs(b)[:, None]
        beyond = gap - np.maximum(s, least)[:, None, None]
        reach = min(float(np.max(beyond, initial=0.0)), FARTHEST)
        lowest = max(lowest, reach * FINEST)
        reach = reach if reach > 2.0 * lowest else 0.0
        focus = blocks_focus(cells.blocks, Focus(centre=about, width=lowest, reach=reach))
        grid = ResidualGrid(focus=focus, origin=origin, highest=moments.highest)
        wide = _REACH * sd[:, None, :]
        ends = zip(np.min(location - wide, axis=(1, 2)), np.max(location + wide, axis=(1, 2)), strict=True)
        places = [
            Places.of(cells.population, grid, each, spread)
            for each, spread in zip(ends, np.maximum(s, lowest).tolist(), strict=True)
        ]
        return cls(theta=theta, grid=grid, places=places)


def _weighed(cells: _Cells, box: Box, draws: int, wide: Proposal | None = None) -> Regression:
    """Return nodes and weights of the posterior within a box, with so many draws at each pair of s and b.

    With a wide proposal, half of the draws are from that one.
    """
    n_theta = cells.rows.shape[1]
    _, n_s, n_b = rule_sizes(max(len(cells.rows), _FEWEST_OF_RULES))
    s, of_s = legendre_rule(box.s, n_s)
    b, of_b = legendre_rule(box.b, n_b) if cells.has_slope else (np.zeros(1), np.ones(1))
    # Hyperpriors of both, and the rules' weights, (n_b, n_s).
    log_pair = np.log(of_s) - 0.5 * s**2 + np.log(of_b)[:, None]
    log_pair -= 0.5 * (b[:, None] * cells.moments.size_unit / SLOPE_SD) ** 2
    about = _Approximation.of(cells, float(box.s[0] - box.s[1]), s, b)
    grid = about.grid
    steps = _steps(n_theta, len(b) * len(s), draws)
    theta: Any = np.zeros((len(b), len(s), draws, n_theta))
    log_weight: Any = np.full((len(b), len(s), draws), -np.inf)
    best = -np.inf
    # From the middle of the rule on, so that the best pairs come first.
    for number in sorted(range(len(b)), key=lambda k: abs(k - len(b) // 2)):
        blocks = cells.blocks(grid.focus)
        measure = np.concatenate([grid.placed(nodes, float(b[number])).measure() for _, nodes in blocks])
        for j, each in enumerate(about.places):
            table = np.log(np.maximum(measure @ each.whole.T, _FLOOR))
            posterior = Target(
                table=table, places=each, rows=cells.rows, prior=cells.prior, centre=cells.centre
            )
            mode, minus, value = posterior.mode(about.theta[j, number])
            scale: Any = np.linalg.inv(minus)
            near = Proposal.of(mode, scale)
            of_pair = float(log_pair[number, j])
            laplace = value + of_pair + near.log_size
            best = max(best, laplace)
            if laplace < best - _BELOW:
                continue
            proposals = (near,) if wide is None else (near, wide)
            drawn, log_q = mixed(proposals, steps[number * len(s) + j])
            theta[number, j] = drawn
            log_weight[number, j] = posterior.log_density(drawn) + of_pair - log_q
    log_weight[log_weight < np.max(log_weight) - 2.0 * _BELOW] = -np.inf
    flat = log_weight.ravel()
    kept = np.flatnonzero(flat > -np.inf)
    weight = np.zeros(flat.size)
    weight[kept], shape = smoothed(flat[kept])
    of_nodes = (len(b), len(s) * draws)
    return Regression(
        location=theta[..., 0].reshape(of_nodes),
        spread=np.broadcast_to(np.repeat([each.spread for each in about.places], draws), of_nodes),
        drawn_spread=np.broadcast_to(np.repeat(s, draws), of_nodes),
        slope=b,
        spread_slope=np.zeros(of_nodes),
        weight=weight.reshape(of_nodes),
        grid=grid,
        size_unit=cells.moments.size_unit,
        coefficients=theta[..., 1:].reshape(*of_nodes, n_theta - 1) + cells.centre,
        centre=cells.centre,
        design=cells.rows[:, 1:],
        shape=shape,
        effective=effective(weight),
    )


def _steps(n_theta: int, n_pairs: int, draws: int) -> Floats:
    """Return draws of a t law with unit scale, (n_pairs, n_draws, n_theta), in pairs of opposite sign."""
    rng = np.random.default_rng(_SEED)
    freedom = degrees(n_theta)
    half = rng.standard_normal((n_pairs, draws // 2, n_theta))
    half *= np.sqrt(freedom / rng.chisquare(freedom, (n_pairs, draws // 2, 1)))
    # Neighbours have opposite signs, so that halves are whole pairs.
    return np.stack([half, -half], axis=2).reshape(n_pairs, draws, n_theta)
