r"""Hamiltonian Monte Carlo over many cells and chains at once, and what says whether to believe it.

The question is draws from a density p(x) that is known up to a constant, with a gradient that may be
rounded off. With momenta :math:`\rho \sim \mathrm{Normal}(0, I)`, positions whitened by a root R of the
covariance that all chains of a cell have shown so far (x = R u), and a step h,

.. math:: \rho \leftarrow \rho + \tfrac h 2 R^T \nabla \log p(x), \quad x \leftarrow x + h R \rho, \quad
    \rho \leftarrow \rho + \tfrac h 2 R^T \nabla \log p(x) \qquad (1)

    P(\text{accept}) = \min\bigl(1, e^{\log p(x') - |\rho'|^2 / 2 - \log p(x) + |\rho|^2 / 2}\bigr) \qquad (2)

(1) preserves volume and is reversible whatever the gradient, so (2) leaves p invariant (Neal 2011). The
step follows what chains accept; after the warm-up neither it nor R changes any more. Error: that of Monte
Carlo, judged by

.. math:: \hat R = \sqrt{\frac{(n - 1) W / n + B}{W}}, \qquad
    n_{\text{eff}} = \frac{m n}{2 \sum_t (\rho_{2t} + \rho_{2t + 1}) - 1} \qquad (3)

of m halves of chains with n draws each: W the mean variance within, B the variance of means, :math:`\rho_t`
the autocorrelations, up to the first negative sum of two and made to fall (Geyer 1992).

====== ============== ======================================= =============================
symbol in the code    meaning                                 shape
====== ============== ======================================= =============================
x      ``position``   positions                               (k, n_cells, n_chains)
rho    ``moving``     momenta                                 (k, n_cells, n_chains)
R      ``root``       root of the covariance                  (n_cells, k, k)
h      ``step``       step of the leapfrog                    (n_cells,)
====== ============== ======================================= =============================

References
----------
Geyer. Practical Markov chain Monte Carlo. Statistical Science 7, 1992.
Neal. MCMC using Hamiltonian dynamics. Handbook of Markov Chain Monte Carlo, 2011.
Gelman, Carlin, Stern, Dunson, Vehtari, Rubin. Bayesian Data Analysis, third edition, 2013.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from suffice.typing import Cells, Floats


ACCEPTED = 0.75
"""The share of accepted proposals that the step is tuned for."""
_FEWEST_STEPS, _MOST_STEPS = 8, 24
"""Leapfrog steps of a proposal: more where steps have to be short, as amid the kinks of much noise, so that a
proposal still leads somewhere else."""
_LENGTH = 2.4
"""A proposal's length, in posterior standard deviations, that is long enough."""
_STAGES = (30, 30, 40, 60)
"""Iterations of warm-up after each of which the covariance is taken anew."""
SETTLED = 1.05
"""The largest R-hat of a cell that is not drawn for longer."""
FEWEST_EFFECTIVE = 400
"""The fewest effective draws of a coordinate of a cell that is not drawn for longer."""
DOUBLINGS = 3
"""How often chains that have not settled are run on, twice as long each time."""
FAR_APART = 1.2
"""Above this R-hat what a cell's chains drew is not kept once they are run on."""
_TUNED_AGAIN = 30
"""Iterations after which chains that are run on have found their step."""
_ABREAST = 1024
"""Chains that take about as long as one does: so many are run on side by side, where cells are few."""
_FEWEST_ABREAST = 64
"""Draws that a part of a chain has at least where parts are run on side by side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How chains are warmed up and run on.

    Attributes
    ----------
    stages : tuple of int
        Iterations of warm-up after each of which the covariance is taken anew.
    fewest_steps : int
        Of a proposal.
    first_step : float
        Before anything is known.
    independent : bool
        Whether coordinates are about independent: then only their variances are learnt, not correlations.
    doublings : int
        How often chains that have not settled are run on, twice as long each time.
    abreast : bool
        Whether a chain that is run on goes on from several of its draws, side by side. Its parts are kept one
        after the other: draws on either side of a seam are not neighbours.
    """

    stages: tuple[int, ...] = _STAGES
    fewest_steps: int = _FEWEST_STEPS
    first_step: float = 0.1
    independent: bool = False
    doublings: int | None = None
    abreast: bool = False


class CellsTarget(Protocol):
    """A log density of many cells, of which some can be looked at alone."""

    def __call__(self, x: Floats) -> tuple[Floats, Floats]:
        """Take positions (k, n_cells * n_chains) to log densities (n_cells * n_chains,) and gradients.

        Gradients need not be exact: they guide, and the densities decide.
        """
        ...

    def take(self, cells: Cells) -> Self:
        """Return the density of some cells."""
        ...


def sample_until_settled(
    target: CellsTarget,
    start: Floats,
    spread: Floats,
    iterations: int,
    rng: np.random.Generator,
    course: Course | None = None,
) -> Floats:
    """Draw from a density, in chains; cells whose chains disagree, or say too little, are run on.

    They go on from where they are, moving as what they have drawn suggests, for as long as they have been
    drawn so far. As many draws are kept as of the others, farther apart; what chains drew that were far from
    each other is warm-up.

    Parameters
    ----------
    target : CellsTarget
    start : ndarray of shape (k, n_cells, n_chains), float64
        Where the chains start.
    spread : ndarray of shape (k, n_cells), float64
        A guess of the standard deviations.
    iterations : int
        Draws kept of each chain.
    rng : numpy.random.Generator
    course : Course or None
        None: as ``Course()`` says.

    Returns
    -------
    ndarray of shape (iterations, k, n_cells, n_chains), float64
    """
    course = Course() if course is None else course
    with np.errstate(all="ignore"):  # a proposal that is no number is rejected
        path = _warmed_up(target, start, spread, course, rng)
        kept, path = path.drawn(target, iterations, rng)
        cells = np.arange(kept.shape[2])
        for doubling in range(DOUBLINGS if course.doublings is None else course.doublings):
            draws = kept[:, :, cells].transpose(0, 3, 2, 1)
            r_hat = split_r_hat(draws).max(axis=1)
            enough = min(FEWEST_EFFECTIVE, draws[:, :, 0, 0].size / 2)
            unsettled = ~(r_hat <= SETTLED)
            likely = ~unsettled
            unsettled[likely] = ~(effective_draws(draws[:, :, likely]).min(axis=1) >= enough)
            if not unsettled.any():
                break
            cells, apart = cells[unsettled], ~(r_hat[unsettled] <= FAR_APART)
            part, before = target.take(cells), kept[:, :, cells]
            path = path.take(unsettled).whitened(before)
            parts = _parts(before, iterations << doubling) if course.abreast else 1
            path = path.from_draws(before, parts).tuned(part, _TUNED_AGAIN, rng)[1]
            drawn, path = path.drawn(part, (iterations << doubling) // parts, rng)
            drawn, path = _end_to_end(drawn, parts), path.last_parts(parts)
            half = iterations // 2
            both = np.concatenate([_thinned(before, half), _thinned(drawn, iterations - half)])
            kept[:, :, cells] = np.where(apart[:, None], _thinned(drawn, iterations), both)
    return kept


def _warmed_up(
    target: Callable[[Floats], tuple[Floats, Floats]],
    start: Floats,
    spread: Floats,
    course: Course,
    rng: np.random.Generator,
) -> Path:
    """Return where chains are, and how they move, once the covariance and the step are known."""
    size, n_cells, _ = start.shape
    root = spread.T[:, :, None] * np.eye(size)
    step = np.full(n_cells, course.first_step)
    path = Path(position=start, root=root, step=step, steps=course.fewest_steps, course=course)
    for number, stage in enumerate(course.stages):
        kept, path = path.tuned(target, stage, rng)
        path = replace(path, position=_unstuck(kept, path.position, rng)).whitened(kept[stage // 4 :])
        if number > 0:  # before, steps are short because the covariance is not known yet
            path = path.long_enough()
    return path


def _parts(draws: Floats, iterations: int) -> int:
    """Return into how many parts, side by side, the chains of such draws are divided to be run on."""
    chains = int(draws.shape[2] * draws.shape[3])
    return max(1, min(_ABREAST // chains, iterations // _FEWEST_ABREAST, len(draws) // 2))


def _end_to_end(draws: Floats, parts: int) -> Floats:
    """Return parts of chains, side by side in the last axis, one after the other."""
    length, size, n_cells, _ = draws.shape
    apart = draws.reshape(length, size, n_cells, -1, parts).transpose(4, 0, 1, 2, 3)
    return apart.reshape(parts * length, size, n_cells, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """Where the chains of cells are, and how they move.

    Attributes
    ----------
    position : ndarray of shape (k, n_cells, n_chains), float64
    root : ndarray of shape (n_cells, k, k), float64
        Of the covariance that positions are whitened by.
    step : ndarray of shape (n_cells,), float64
    steps : int
        Leapfrog steps of a proposal.
    course : Course
    """

    position: Floats
    root: Floats
    step: Floats
    steps: int
    course: Course

    def take(self, chosen: NDArray[np.bool_]) -> Path:
        """Return that of some cells."""
        return replace(
            self, position=self.position[:, chosen], root=self.root[chosen], step=self.step[chosen]
        )

    def whitened(self, kept: Floats) -> Path:
        """Return a path by the covariance of such draws."""
        return replace(self, root=_root(kept, self.root, independent=self.course.independent))

    def long_enough(self) -> Path:
        """Return a path of so many steps that a proposal leads somewhere else."""
        enough = np.ceil(_LENGTH / np.median(self.step))
        return replace(self, steps=int(np.clip(enough, self.course.fewest_steps, _MOST_STEPS)))

    def from_draws(self, draws: Floats, parts: int) -> Path:
        """Return a path on from so many draws of each chain, side by side."""
        if parts == 1:
            return self
        _, size, n_cells, _ = draws.shape
        apart = _thinned(draws, parts).transpose(1, 2, 3, 0)
        return replace(self, position=apart.reshape(size, n_cells, -1))

    def last_parts(self, parts: int) -> Path:
        """Return a path on from the last of every chain's parts."""
        return replace(self, position=self.position[:, :, parts - 1 :: parts])

    def tuned(
        self, target: Callable[[Floats], tuple[Floats, Floats]], iterations: int, rng: np.random.Generator
    ) -> tuple[Floats, Path]:
        """Return draws along which the step follows what is accepted, and the path after them."""
        kept, step = _run(target, self, iterations, rng, tuned=True)
        return kept, replace(self, position=kept[-1], step=step)

    def drawn(
        self, target: Callable[[Floats], tuple[Floats, Floats]], iterations: int, rng: np.random.Generator
    ) -> tuple[Floats, Path]:
        """Return draws, and the path after them."""
        kept, _ = _run(target, self, iterations, rng, tuned=False)
        return kept, replace(self, position=kept[-1])


def _thinned(draws: Floats, count: int) -> Floats:
    """Return so many of the draws, evenly apart, the last one among them."""
    return draws[np.arange(1, count + 1) * len(draws) // count - 1]


def _unstuck(kept: Floats, position: Floats, rng: np.random.Generator) -> Floats:
    """Put chains that have not moved in a stage of warm-up, too far out for the step, where another one is.

    Cells none of whose chains have moved stay as they are.
    """
    moved = np.any(kept[-1] != kept[0], axis=0)
    n_cells, n_chains = moved.shape
    # A random order of the chains that have moved: those that have not come last.
    order = np.argsort(np.where(moved, rng.uniform(size=moved.shape), 2.0), axis=1)
    count = np.maximum(moved.sum(axis=1), 1)[:, None]
    chosen = np.take_along_axis(order, np.arange(n_chains)[None] % count, axis=1)
    source = np.where(moved | ~moved.any(axis=1, keepdims=True), np.arange(n_chains), chosen)
    return position[:, np.arange(n_cells)[:, None], source]


def _run(
    target: Callable[[Floats], tuple[Floats, Floats]],
    path: Path,
    iterations: int,
    rng: np.random.Generator,
    *,
    tuned: bool,
) -> tuple[Floats, Floats]:
    """Return the positions after every iteration, and the step."""
    position, root, step, steps = path.position, path.root, path.step, path.steps
    shape = position.shape
    back = np.swapaxes(root, 1, 2)

    def evaluate(x: Floats) -> tuple[Floats, Floats]:
        value, gradient = target(x.reshape(shape[0], -1))
        return value.reshape(shape[1:]), _times(back, gradient.reshape(shape))

    value, slope = evaluate(position)
    kept = np.empty((iterations, *shape))
    for iteration in range(iterations):
        # A random step leaves no period of a normal density unmixed (Neal 2011).
        size = (step * rng.uniform(0.7, 1.3))[:, None]
        moving = rng.standard_normal(shape)
        # Minus the Hamiltonian: log p(x) - |rho|^2 / 2.
        energy = value - np.sum(moving**2, axis=0) / 2.0
        x, gradient = position, slope
        moving += size / 2.0 * gradient
        for last in [False] * (steps - 1) + [True]:
            # (1); the last half step and the next first one are one full step.
            x = x + _times(root, size * moving)
            new_value, gradient = evaluate(x)
            moving += (size / 2.0 if last else size) * gradient
        gain = new_value - np.sum(moving**2, axis=0) / 2.0 - energy
        # (2).
        chance = np.where(np.isfinite(gain), np.exp(np.minimum(gain, 0.0)), 0.0)
        accepted = rng.uniform(size=chance.shape) < chance
        position = np.where(accepted, x, position)
        slope = np.where(accepted, gradient, slope)
        value = np.where(accepted, new_value, value)
        kept[iteration] = position
        if tuned:
            rate = 1.0 / np.sqrt(iteration + 4.0)
            # Robbins and Monro: steps of 1 / sqrt(iteration), towards the wanted share of accepted ones.
            step = np.minimum(step * np.exp(rate * (chance.mean(axis=1) - ACCEPTED)), _LENGTH / steps)
    return kept, step


def _times(matrix: Floats, vectors: Floats) -> Floats:
    """Return the product of every cell's matrix, (n_cells, k, k), and vectors (k, n_cells, n_chains)."""
    product = np.empty_like(vectors)
    np.matmul(matrix, np.swapaxes(vectors, 0, 1), out=np.swapaxes(product, 0, 1))
    return product


def _root(kept: Floats, old: Floats, *, independent: bool = False) -> Floats:
    """Return a root of the covariance that all chains of a cell have shown; the old one if none moved.

    Of its diagonal alone, where coordinates are taken for independent.
    """
    iterations, size, n_cells, n_chains = kept.shape
    covariance = np.empty((n_cells, size, size))
    for cell in range(n_cells):  # one after the other, so that draws stay in a near cache
        pooled = kept[:, :, cell].transpose(1, 0, 2).reshape(size, iterations * n_chains)
        centred = pooled - pooled.mean(axis=1, keepdims=True)
        covariance[cell] = centred @ centred.T / (iterations * n_chains)
    variance = np.einsum("cii->ci", covariance)
    moved = np.isfinite(variance).all(axis=1) & (variance > 0.0).all(axis=1)
    if independent:
        covariance = variance[:, :, None] * np.eye(size)
    sd = np.sqrt(np.where(moved[:, None], variance, 1.0))
    correlation = np.where(moved[:, None, None], covariance / sd[:, :, None] / sd[:, None, :], np.eye(size))
    ridge = 1e-6 * np.eye(size)
    # Of the correlations, so that the ridge means the same for every scale.
    fresh = sd[:, :, None] * np.linalg.cholesky(correlation + ridge)
    return np.where(moved[:, None, None], fresh, old)


def split_r_hat(draws: Floats) -> Floats:
    """Return split R-hat of draws (iterations, n_chains, ...): 1 where the chains agree with each other."""
    halves = _halves(draws)
    length = len(halves)
    within = halves.var(axis=0, ddof=1).mean(axis=0)
    between = halves.mean(axis=0).var(axis=0, ddof=1)
    # (3), with R-hat^2 = total / within.
    total = (length - 1) / length * within + between
    r_hat: Floats = np.sqrt(np.divide(total, within, out=np.ones_like(total), where=within > 0.0))
    return r_hat


def effective_draws(draws: Floats) -> Floats:
    """Return how many independent draws the chains (iterations, n_chains, ...) are worth for a mean.

    By Geyer's initial positive sequence of sums of neighbouring autocorrelations.
    """
    halves = _halves(draws)
    length, n_chains = halves.shape[:2]
    centred = halves - halves.mean(axis=0)
    # Wiener and Khinchin: autocovariances are the transform of the spectrum, padded so that none wraps.
    spectrum = np.abs(np.fft.rfft(centred, 2 * length, axis=0)) ** 2
    covariance = np.fft.irfft(spectrum, 2 * length, axis=0)[:length].mean(axis=1) / length
    within = covariance[0] * length / (length - 1)
    total = covariance[0] + halves.mean(axis=0).var(axis=0, ddof=1)
    # Vehtari et al. 2021: 1 - (W - mean autocovariance) / total, so that chains apart count as correlated.
    correlation = 1.0 - np.divide(
        within - covariance, total, out=np.zeros_like(covariance), where=total > 0.0
    )
    correlation[0] = 1.0
    pairs = correlation[: length // 2 * 2].reshape(length // 2, 2, *correlation.shape[1:]).sum(axis=1)
    kept = np.logical_and.accumulate(pairs > 0.0, axis=0)
    # Geyer: sums of two neighbours of a reversible chain are positive and fall.
    falling = np.minimum.accumulate(np.where(kept, pairs, 0.0), axis=0)
    time = np.maximum(2.0 * falling.sum(axis=0) - 1.0, 1.0 / np.log10(length * n_chains))
    effective: Floats = length * n_chains / time
    return effective


def normal_scores(draws: Floats) -> Floats:
    """Return draws (iterations, n_chains, ...) as normal quantiles of their ranks among those of all chains.

    What heavy tails do to means says little of how chains mix: diagnostics look at these, as in Vehtari,
    Gelman, Simpson, Carpenter, Buerkner. Rank-normalization, folding, and localization. Bayesian Analysis 16,
    2021.
    """
    from scipy.special import ndtri

    flat = draws.reshape(-1, *draws.shape[2:])
    ranks = np.argsort(np.argsort(flat, axis=0), axis=0) + 1.0
    # Blom's scores.
    scores: Floats = ndtri((ranks - 0.375) / (len(flat) + 0.25))
    return scores.reshape(draws.shape)


def _halves(draws: Floats) -> Floats:
    """Split every chain in two, so that a chain that drifts disagrees with itself."""
    half = len(draws) // 2
    return np.concatenate([draws[:half], draws[half : 2 * half]], axis=1)
