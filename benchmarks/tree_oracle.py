"""The law that a study draws leaves from, as a population that knows it; and what no sets can do better.

An oracle knows everything but the counts and the noise: the law of the sizes, the share of empty leaves, and
the factor of each state. Posteriors by any other population are to be measured by its own.

No sets of counts that hold a share c of the leaves below 20 and of those from 20 on are smaller on the first
than sets of this form: given what was released, with chances p(n) of the oracle and s = P(N < 20),

    n is in the set where  p(n) (a if n < 20 else b)  >=  s + d (1 - s),

for multipliers a, b, d >= 0 (Neyman and Pearson's lemma with three constraints: coverage of either class, and
the mean size of sets of the larger leaves). :func:`least_widths` searches for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln, ndtri
from scipy.stats import norm

from suffice.pipeline.math.engines.tree.populations import Population

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.tree.messages import Ragged
    from suffice.typing import Floats
    from support.tree_worlds import Setting

_POINTS = 4_000
_SMOOTH = 200
"""From this count on the density of rates is taken: Poisson noise moves their law by next to nothing."""
PARETO = 1.2
SMALL = 20


class Oracle(Population):
    """The law of a setting's leaves, states' factors given as sizes."""

    name, n_hyperparameters = "oracle", 0

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def log_weight(self, counts: Floats, point: Floats, sizes: Floats | float = 1.0) -> Floats:  # noqa: ARG002
        """Return log probabilities."""
        sizes = np.broadcast_to(np.asarray(sizes, np.float64), (*counts.shape[:-1], 1))
        weight = np.empty(counts.shape)
        for size in np.unique(sizes):
            rows = np.flatnonzero(sizes.ravel() == size)
            taken = counts[rows] if counts.ndim > 1 else counts
            weight[rows if counts.ndim > 1 else ...] = self._log_chance(taken, float(size))
        return weight

    def _log_chance(self, counts: Floats, size: float) -> Floats:
        setting, middle = self.setting, self.setting.median * size
        share = (np.arange(_POINTS) + 0.5) / _POINTS
        ratio = (
            (1.0 - share) ** (-1.0 / PARETO) - 1.0
            if setting.is_pareto
            else np.exp(setting.spread * ndtri(share))
        )
        steps, log_rate = np.arange(float(_SMOOTH)), np.log(middle * ratio)
        small = np.exp(steps * log_rate[:, None] - np.exp(log_rate)[:, None] - gammaln(steps + 1.0)).mean(
            axis=0
        )
        n = np.maximum(counts, 1.0)
        if setting.is_pareto:
            large = PARETO * (1.0 + n / middle) ** (-PARETO - 1.0) / middle
        else:
            large = norm.pdf(np.log(n / middle) / setting.spread) / setting.spread / n
        chance = np.where(counts < _SMOOTH, small[np.minimum(counts, _SMOOTH - 1).astype(int)], large)
        chance = (1.0 - setting.empty) * chance + setting.empty * (counts == 0)
        log_chance: Floats = np.log(np.maximum(chance, 1e-300))
        return log_chance


def least_widths(
    laws: list[Ragged], coverage: float, ratio: float, least_squares: float
) -> tuple[float, ...]:
    """Return the least mean size, less 1, of sets for leaves below 20, and their multipliers' results.

    Parameters
    ----------
    laws : list of Ragged
        The oracle's laws of the leaves of every tree.
    coverage : float
        At least, of either class.
    ratio : float
        Of the mean width of sets of leaves from 20 on to that of least squares, at most.
    least_squares : float
        The mean width of least squares.

    Returns
    -------
    tuple of float
        Width below 20, coverage below 20, coverage from 20 on, width from 20 on; nan where there are none.
    """
    counts = np.concatenate(
        [np.repeat(law.low - law.offset, law.width) + np.arange(law.weights.size) for law in laws]
    )
    chance = np.concatenate([law.weights for law in laws])
    node = np.repeat(
        np.arange(sum(len(law.low) for law in laws)), np.concatenate([law.width for law in laws])
    )
    is_small = counts < SMALL
    small = np.bincount(node, chance * is_small)
    n_small, n_large = small.sum(), (1.0 - small).sum()
    best = (np.nan,) * 4
    # Chances below these are in no set that is wanted.
    kept = chance > 1e-5
    counts, chance, node, is_small = counts[kept], chance[kept], node[kept], is_small[kept]
    s = small[node]
    # Whatever d is, a and b follow from the coverages that are asked for; d trades the two widths.
    for d in (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.5, 5.0):
        score = chance / np.maximum(s + d * (1.0 - s), 1e-12)
        taken = np.zeros(len(chance), bool)
        for of_class, total in ((is_small, n_small), (~is_small, n_large)):
            order = np.flatnonzero(of_class)[np.argsort(-score[of_class], kind="stable")]
            enough = int(np.searchsorted(np.cumsum(chance[order]), coverage * total)) + 1
            taken[order[:enough]] = True
        size = np.bincount(node[taken], minlength=len(small)) - 1.0
        width, wide = (size * small).sum() / n_small, (size * (1.0 - small)).sum() / n_large
        if wide <= ratio * least_squares and not width >= best[0]:
            held = chance * taken
            best = (
                float(width),
                float(held[is_small].sum() / n_small),
                float(held[~is_small].sum() / n_large),
                float(wide),
            )
    return best
