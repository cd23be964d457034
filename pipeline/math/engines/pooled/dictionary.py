r"""A population with no shape: a mixture of some hundred normal laws, whose shares are integrated over.

Model. With atoms k of locations :math:`\mu_k` and spreads :math:`\sigma_k` on the line, of z as in (1) of
``residual_grid``, and a size v,

.. math::
    z_c \sim \sum_k \pi_k \, \mathrm{Normal}\bigl(\mu_0 + r_c (\mu_k - \mu_0), \, r_c^2 \sigma_k^2\bigr),
    \quad r_c = e^{g (v_c - v_0)}, \quad \pi \sim \mathrm{Dirichlet}(A \gamma), \qquad (1)

with the hyperpriors of b and g of ``hyperpriors``: the size moves and stretches the whole law, about the
middle :math:`\mu_0` of the atoms,

and the small total A = 2, so that a release's population is of few atoms unless its cells say otherwise, and
:math:`\gamma_k \propto \sigma_k e^{-\sigma_k^2 / 2}`, a half-normal law of spreads that are evenly spaced in
their logarithm, shared evenly by the locations of a spread.

Atoms lie about where the default population has its posterior: spreads are a fifth of its own to ``WIDE``,
each ``_FACTOR`` times the one before; locations are 1.5 spreads apart, as far as ``_REACH`` of the
population's spreads and ``_OWN_REACH`` of their own. The cells say where, by little: the atoms cover all that
the default leaves open.

Method. Gibbs sampling: b, g and labels given the shares, slopes with the labels summed over,

.. math:: p(b \mid g, \pi, y) \propto p(b) \prod_c \sum_k \pi_k Z_{ck}(b, g), \qquad
    p(k_c \mid b, g, \pi, y) \propto \pi_k Z_{ck}(b, g), \qquad
    \pi \mid k \sim \mathrm{Dirichlet}(A \gamma + \text{counts}), \qquad (2)

g as b, where Z is a cell's likelihood under an atom (``residual_grid``), to seven digits, of evenly spaced b
and g (``_SLOPES``), no farther apart than 1.7 posterior standard deviations: sums over them are then as good
as integrals (Trefethen, Weideman 2014). Given a draw of (b, g, pi) cells are independent, so that answers are
exact mixtures over the draws (``distribution``), and their error is that of the chains: how far these differ
from each other, in posterior standard deviations of a cell, is ``chain_gap``. The generator is fixed: who
asks again gets the same.

References
----------
Ishwaran, James. Gibbs sampling methods for stick-breaking priors. J. Amer. Statist. Assoc. 96, 2001.
Stephens. False discovery rates: a new deal. Biostatistics 18, 2017. Trefethen, Weideman. The exponentially
convergent trapezoidal rule. SIAM Review 56, 2014.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import Focus
from suffice.pipeline.math.engines.pooled.hyperparameters import Hyperparameters
from suffice.pipeline.math.engines.pooled.hyperpriors import SLOPE_SD, log_spread_slope_prior
from suffice.pipeline.math.engines.pooled.normal import normal_density

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.pooled.kept_nodes import KeptNodes
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.pipeline.math.engines.pooled.residual_grid import ResidualGrid
    from suffice.typing import Floats

TOTAL = 2.0
WIDE = 2.5
_FACTOR, _APART = 1.8, 1.5
_REACH, _OWN_REACH = 3.0, 2.5
_SLOPES = {2000: ((13, 4.5), (7, 4.0)), None: ((7, 4.0), (5, 3.4))}
"""Of b and of g, up to so many cells: how many, and how far they go, in posterior standard deviations."""
_LEAST_REACH = 0.02
_CHAINS, _SWEEPS, _FIRST = 4, 300, 100
_MANY_CELLS, _FEW_SWEEPS = 2000, 120
_SEED = 33
_OF_PRIOR = 1000
_POINTS, _LOW = 400, 0.1587
_GAP = 0.2
"""How far chains may differ, in posterior standard deviations of a cell."""
_FLOOR, _LEAST_OF_CELL = 1e-300, np.float32(1e-37)
_NARROWER = 4.0
"""Atoms are told apart as long as sizes make them narrower by no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Atoms:
    """Normal laws on the line, and their prior shares.

    Attributes
    ----------
    location, spread : ndarray of shape (n_atoms,), float64
    concentration : ndarray of shape (n_atoms,), float64
        Of the Dirichlet law: A gamma of (1).
    """

    location: Floats
    spread: Floats
    concentration: Floats

    @classmethod
    def about(cls, hyper: Hyperparameters) -> Atoms:
        """Place atoms about where a population of another shape has its posterior."""
        middle, spread = hyper.mean(hyper.location), hyper.mean(hyper.spread)
        far = _REACH * (spread + hyper.sd(hyper.spread) + hyper.sd(hyper.location))
        least = min(spread / 5.0, WIDE / _FACTOR)
        n_spreads = int(np.ceil(np.log(WIDE / least) / np.log(_FACTOR))) + 1
        location, width, share = [], [], []
        for each in np.geomspace(least, WIDE, n_spreads):
            half = int(np.ceil(max(far, _OWN_REACH * each) / (_APART * each)))
            places = middle + np.arange(-half, half + 1) * _APART * each
            location.append(places)
            width.append(np.full(len(places), each))
            share.append(np.full(len(places), each * np.exp(-0.5 * each**2) / len(places)))
        gamma = np.concatenate(share)
        return cls(
            location=np.concatenate(location),
            spread=np.concatenate(width),
            concentration=TOTAL * gamma / np.sum(gamma),
        )

    def densities(self, grid: ResidualGrid, growth: Floats) -> NDArray[np.float32]:
        """Return densities, (n_atoms, n_knots n_points), of atoms that knots stretch about their middle."""
        middle = float(np.median(self.location))
        of_knots = [
            normal_density(
                grid.points,
                middle + each * (self.location - middle),
                np.maximum(each * self.spread, grid.focus.width),
            )
            for each in growth.tolist()
        ]
        return np.concatenate(of_knots, axis=1).astype(np.float32)

    def location_and_spread(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return medians of mixtures of some shares (n, n_atoms), and half of what holds .683 about them."""
        from scipy.special import ndtr

        middle = float(np.median(self.location))
        far = float(np.max(np.abs(self.location - middle))) + 3.0 * WIDE
        points = middle + np.sinh(np.linspace(-1.0, 1.0, _POINTS) * np.arcsinh(20.0 * far)) / 20.0
        below = shares @ ndtr((points - self.location[:, None]) / self.spread[:, None])
        ends = np.array([np.interp([_LOW, 0.5, 1.0 - _LOW], each, points) for each in below])
        return ends[:, 1], (ends[:, 2] - ends[:, 0]) / 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnPopulations(Hyperparameters):
    """Draws of (1) given all cells, as ``Hyperparameters``: a draw is a node of the slope that it has.

    Attributes
    ----------
    density : ndarray of shape (n_draws, n_points), float64
        Of every draw's mixture, at the points of the grid.
    location, spread : ndarray of shape (n_slopes, n_draws), float64
        Medians, and half of what holds .683 about them: moments would be those of the tails.
    prior_log_spread_sd : float
        The standard deviation of the logarithm of such a spread under (1), by draws.
    chain_gap : float
        How far the mean of a cell differs between halves of the chains, at most, in its posterior standard
        deviations.
    """

    density: Floats
    prior_log_spread_sd: float
    chain_gap: float

    def components(self, population: Population, number: int, rows: Any) -> list[tuple[float, Floats]]:  # noqa: ARG002
        """Return the densities of some draws: of one component."""
        return [(1.0, self.density[rows])]


def drawn_populations(hyper: Hyperparameters, blocks: KeptNodes, *, has_slope: bool) -> DrawnPopulations:
    """Draw shares and slopes given all cells; `hyper` is of the default population."""
    atoms = Atoms.about(hyper)
    n_cells, knots, unit = len(blocks.cells), hyper.grid.knots, hyper.size_unit
    of_b, of_g = next(sizes for most, sizes in _SLOPES.items() if most is None or n_cells <= most)
    b = _even(hyper.mean(hyper.slopes), hyper.sd(hyper.slopes), *of_b) if has_slope else np.zeros(1)
    g = np.zeros(1)
    if len(knots) > 1:
        g = _even(hyper.mean(hyper.spread_slope), hyper.sd(hyper.spread_slope), *of_g)
    middle, origin = hyper.mean(hyper.location), hyper.grid.origin
    growth = np.exp(g[:, None] * (np.array(knots) - origin))
    # At the sizes where atoms are narrowest.
    least = float(np.min(atoms.spread) * max(np.min(growth), 1.0 / _NARROWER))
    is_narrow = atoms.spread <= 2.0 * np.min(atoms.spread)
    reach = float(np.max(np.abs(atoms.location - middle)[is_narrow]))
    focus = Focus(centre=middle, width=least, reach=reach)
    grid = replace(hyper.grid, focus=focus)
    density = np.array([atoms.densities(grid, each) for each in growth])
    n_atoms = len(atoms.location)
    likelihood = np.empty((len(b), len(g), n_cells, n_atoms), dtype=np.float32)
    for cells, nodes in blocks(grid.focus):
        for number, slope in enumerate(b):
            measure = grid.placed(nodes, float(slope)).measure().astype(np.float32)
            for place, each in enumerate(density):
                likelihood[number, place, cells] = measure @ each.T
    scale = np.max(likelihood, axis=(0, 1, 3))
    likelihood /= np.maximum(scale, _FLOOR)[:, None]
    log_prior = -0.5 * (b[:, None] * unit / SLOPE_SD) ** 2 + log_spread_slope_prior(g * unit)
    drawn, of_draws, gap = _chains(likelihood, log_prior, atoms)
    middles, spread = atoms.location_and_spread(drawn)
    weight = np.zeros((len(b), len(drawn)))
    weight[of_draws[:, 0], np.arange(len(drawn))] = 1.0 / len(drawn)
    rng = np.random.default_rng(_SEED)
    of_prior = np.array([_dirichlet(atoms.concentration, rng) for _ in range(_OF_PRIOR)])
    shape = weight.shape
    of_mixtures = np.empty((len(drawn), grid.n_points))
    for place, each in enumerate(density):
        chosen = of_draws[:, 1] == place
        of_mixtures[chosen] = drawn[chosen] @ each
    return DrawnPopulations(
        location=np.broadcast_to(middles, shape),
        spread=np.broadcast_to(spread, shape),
        drawn_spread=np.broadcast_to(spread, shape),
        slope=b,
        spread_slope=np.broadcast_to(g[of_draws[:, 1]], shape),
        weight=weight,
        grid=grid,
        settled=hyper.settled and gap <= _GAP,
        size_unit=unit,
        density=of_mixtures,
        prior_log_spread_sd=float(np.std(np.log(atoms.location_and_spread(of_prior)[1]))),
        chain_gap=gap,
    )


def _even(mean: float, sd: float, n: int, reach: float) -> Floats:
    """Return evenly spaced places about a mean."""
    half = max(reach * sd, _LEAST_REACH)
    places: Floats = mean + half * np.linspace(-1.0, 1.0, n)
    return places


def _chains(
    likelihood: NDArray[np.float32], log_prior: Floats, atoms: Atoms
) -> tuple[Floats, NDArray[np.int64], float]:
    """Return draws of shares (n_draws, n_atoms), which b and g each has, and how far chains differ.

    Likelihoods are (n_b, n_g, n_cells, n_atoms).
    """
    rng = np.random.default_rng(_SEED)
    n_b, n_g, n_cells, n_atoms = likelihood.shape
    sweeps = _SWEEPS if n_cells <= _MANY_CELLS else _FEW_SWEEPS
    shares, slopes, of_chains = [], [], []
    mean, square = atoms.location, atoms.location**2 + atoms.spread**2
    for _ in range(_CHAINS):
        # Chains start at draws of the prior, drawn to an even mixture so that no cell is impossible.
        share = 0.5 * _dirichlet(atoms.concentration, rng) + 0.5 / n_atoms
        b, g = n_b // 2, n_g // 2
        responsible = np.zeros((n_cells, n_atoms))
        for sweep in range(_FIRST + sweeps):
            # (2)
            b = _drawn(likelihood[:, g], share, log_prior[:, g], rng)
            if n_g > 1:
                g = _drawn(likelihood[b], share, log_prior[b], rng)
            joint = likelihood[b, g] * share
            ends = np.cumsum(joint, axis=1)
            wanted = rng.random(n_cells) * ends[:, -1]
            label = np.minimum(np.sum(ends < wanted[:, None], axis=1), n_atoms - 1)
            if sweep >= _FIRST:
                shares.append(share)
                slopes.append((b, g))
                responsible += joint / np.maximum(ends[:, -1:], _FLOOR)
            counts = np.bincount(label, minlength=n_atoms)
            share = _dirichlet(atoms.concentration + counts, rng)
        of_chains.append(responsible / sweeps)
    # By the moments of atoms, which are those of a cell that says little; both differences and widths are.
    means = np.array([each @ mean for each in of_chains])
    together = np.mean(of_chains, axis=0)
    sd = np.sqrt(np.maximum(together @ square - (together @ mean) ** 2, 1e-12))
    halves = np.abs(np.mean(means[: _CHAINS // 2], axis=0) - np.mean(means[_CHAINS // 2 :], axis=0))
    return np.array(shares), np.array(slopes), float(np.max(halves / sd))


def _drawn(
    likelihood: NDArray[np.float32], share: Floats, log_prior: Floats, rng: np.random.Generator
) -> int:
    """Draw one of n slopes given the shares, labels summed over; likelihoods are (n, n_cells, n_atoms)."""
    z = likelihood @ share.astype(np.float32)
    log_weight = log_prior + np.sum(np.log(np.maximum(z, _LEAST_OF_CELL), dtype=np.float64), axis=1)
    weight = np.cumsum(np.exp(log_weight - np.max(log_weight)))
    return min(int(np.searchsorted(weight, rng.random() * weight[-1])), len(weight) - 1)


def _dirichlet(concentration: Floats, rng: np.random.Generator) -> Floats:
    """Draw shares; numpy's own returns no number where all concentrations are tiny."""
    drawn = np.maximum(rng.standard_gamma(concentration), _FLOOR)
    shares: Floats = drawn / np.sum(drawn)
    return shares
