r"""A population with no shape: a mixture of some hundred normal laws, whose shares are integrated over.

Model. With atoms k of locations :math:`\mu_k` and spreads :math:`\sigma_k` on the line, of z as in (1) of
``residual_grid``,

.. math:: z_c \sim \sum_k \pi_k \, \mathrm{Normal}(\mu_k, \sigma_k^2), \qquad
    \pi \sim \mathrm{Dirichlet}(A \gamma), \qquad b \sim \mathrm{Normal}(0, (.5 / u)^2), \qquad (1)

with the small total A = 2, so that a release's population is of few atoms unless its cells say otherwise, and
:math:`\gamma_k \propto \sigma_k e^{-\sigma_k^2 / 2}`, a half-normal law of spreads that are evenly spaced in
their logarithm, shared evenly by the locations of a spread.

Atoms lie about where the default population has its posterior: spreads are a fifth of its own to ``WIDE``,
each ``_FACTOR`` times the one before; locations are 1.5 spreads apart, as far as ``_REACH`` of the
population's spreads and ``_OWN_REACH`` of their own. The cells say where, by little: the atoms cover all that
the default leaves open.

Method. Gibbs sampling in two blocks: (b, labels) given the shares, b with the labels summed over,

.. math:: p(b \mid \pi, y) \propto p(b) \prod_c \sum_k \pi_k Z_{ck}(b), \qquad
    p(k_c \mid b, \pi, y) \propto \pi_k Z_{ck}(b), \qquad
    \pi \mid k \sim \mathrm{Dirichlet}(A \gamma + \text{counts}), \qquad (2)

where Z is a cell's likelihood under an atom (``residual_grid``), of ``_SLOPES`` evenly spaced b. Given a draw
of (b, pi) cells are independent, so that answers are exact mixtures over the draws (``distribution``), and
their error is that of the chains: how far these differ from each other, in posterior standard deviations of a
cell, is ``chain_gap``. The generator is fixed: who asks again gets the same.

References
----------
Ishwaran, James. Gibbs sampling methods for stick-breaking priors. J. Amer. Statist. Assoc. 96, 2001.
Stephens. False discovery rates: a new deal. Biostatistics 18, 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import Focus
from suffice.pipeline.math.engines.pooled.hyperparameters import Hyperparameters
from suffice.pipeline.math.engines.pooled.hyperpriors import SLOPE_SD
from suffice.pipeline.math.engines.pooled.normal import normal_density
from suffice.pipeline.math.engines.pooled.residual_grid import ResidualGrid

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.kept_nodes import KeptNodes
    from suffice.pipeline.math.engines.pooled.populations import Population
    from suffice.typing import Floats

TOTAL = 2.0
WIDE = 2.5
_FACTOR, _APART = 1.8, 1.5
_REACH, _OWN_REACH = 3.0, 2.5
_SLOPES, _SLOPE_REACH = 21, 5.0
_CHAINS, _SWEEPS, _FIRST = 4, 300, 100
_MANY_CELLS, _FEW_SWEEPS = 2000, 120
_SEED = 33
_OF_PRIOR = 1000
_POINTS, _LOW = 400, 0.1587
_GAP = 0.2
"""How far chains may differ, in posterior standard deviations of a cell."""
_FLOOR = 1e-300


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
    least = float(np.min(atoms.spread))
    middle = hyper.mean(hyper.location)
    reach = float(np.max(np.abs(atoms.location - middle)[atoms.spread <= 2.0 * least]))
    grid = ResidualGrid(focus=Focus(centre=middle, width=least, reach=reach), origin=hyper.grid.origin)
    slope, log_prior = np.zeros(1), np.zeros(1)
    if has_slope:
        half = max(_SLOPE_REACH * hyper.sd(hyper.slopes), 0.02)
        slope = hyper.mean(hyper.slopes) + half * np.linspace(-1.0, 1.0, _SLOPES)
        log_prior = -0.5 * (slope * hyper.size_unit / SLOPE_SD) ** 2
    density = normal_density(grid.points, atoms.location, atoms.spread)
    likelihood = np.empty((len(slope), len(blocks.cells), len(atoms.location)))
    for cells, nodes in blocks(grid.focus):
        for number, each in enumerate(slope):
            likelihood[number, cells] = grid.placed(nodes, float(each)).measure() @ density.T
    scale = np.max(likelihood, axis=(0, 2))
    likelihood /= np.maximum(scale, _FLOOR)[:, None]
    drawn, chosen, gap = _chains(likelihood, log_prior, atoms)
    middles, spread = atoms.location_and_spread(drawn)
    weight = np.zeros((len(slope), len(drawn)))
    weight[chosen, np.arange(len(drawn))] = 1.0 / len(drawn)
    rng = np.random.default_rng(_SEED)
    of_prior = np.array([_dirichlet(atoms.concentration, rng) for _ in range(_OF_PRIOR)])
    shape = weight.shape
    return DrawnPopulations(
        location=np.broadcast_to(middles, shape),
        spread=np.broadcast_to(spread, shape),
        drawn_spread=np.broadcast_to(spread, shape),
        slope=slope,
        spread_slope=np.zeros(shape),
        weight=weight,
        grid=grid,
        settled=hyper.settled and gap <= _GAP,
        size_unit=hyper.size_unit,
        density=drawn @ density,
        prior_log_spread_sd=float(np.std(np.log(atoms.location_and_spread(of_prior)[1]))),
        chain_gap=gap,
    )


def _chains(likelihood: Floats, log_prior: Floats, atoms: Atoms) -> tuple[Floats, Any, float]:
    """Return draws of shares (n_draws, n_atoms), the slope of each, and how far chains differ."""
    rng = np.random.default_rng(_SEED)
    n_slopes, n_cells, n_atoms = likelihood.shape
    sweeps = _SWEEPS if n_cells <= _MANY_CELLS else _FEW_SWEEPS
    shares, slopes, of_chains = [], [], []
    mean, square = atoms.location, atoms.location**2 + atoms.spread**2
    for _ in range(_CHAINS):
        # Chains start at draws of the prior, drawn to an even mixture so that no cell is impossible.
        share = 0.5 * _dirichlet(atoms.concentration, rng) + 0.5 / n_atoms
        responsible = np.zeros((n_cells, n_atoms))
        for sweep in range(_FIRST + sweeps):
            log_weight = log_prior + np.sum(np.log(np.maximum(likelihood @ share, _FLOOR)), axis=1)
            weight = np.cumsum(np.exp(log_weight - np.max(log_weight)))
            slope = min(int(np.searchsorted(weight, rng.random() * weight[-1])), n_slopes - 1)
            # (2)
            joint = likelihood[slope] * share
            ends = np.cumsum(joint, axis=1)
            wanted = rng.random(n_cells) * ends[:, -1]
            label = np.minimum(np.sum(ends < wanted[:, None], axis=1), n_atoms - 1)
            if sweep >= _FIRST:
                shares.append(share)
                slopes.append(slope)
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


def _dirichlet(concentration: Floats, rng: np.random.Generator) -> Floats:
    """Draw shares; numpy's own returns no number where all concentrations are tiny."""
    drawn = np.maximum(rng.standard_gamma(concentration), _FLOOR)
    shares: Floats = drawn / np.sum(drawn)
    return shares
