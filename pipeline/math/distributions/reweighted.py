r"""Distributions by draws of another one, reweighted; with the shape of the weights' tail.

Model. Draws :math:`\theta_s` of a reference have the weights

.. math:: w_s \propto \frac{p(\theta_s)}{g(\theta_s)}, \qquad
    \mathrm{E}_p f \approx \frac{\sum_s w_s f(\theta_s)}{\sum_s w_s}, \qquad
    n_{\text{eff}} = \frac{(\sum_s w_s)^2}{\sum_s w_s^2}. \qquad (1)

The largest M weights beyond u are taken for draws of a generalised Pareto distribution of shape k,

.. math:: P(w - u > x) = (1 + k x / \sigma)^{-1 / k}, \qquad (2)

and replaced by its quantiles. Weights have :math:`1 / k` moments: above k = .7 averages (1) are not to be
relied on, whatever :math:`n_{\text{eff}}` is.

Symbols:

- w: ``log_weight``, (n_draws,), as logarithms but for a constant
- k: ``shape``; n_eff: ``effective``
- M: min(S / 5, 3 sqrt(S)) of S draws

Method. k is the average of the profile posterior of Zhang and Stephens, drawn to 1/2 as by 10 observations.
The standard error of a mean is about :math:`sd / \sqrt{n_{\text{eff}}}`.

References
----------
Vehtari, Simpson, Gelman, Yao, Gabry. Pareto smoothed importance sampling. JMLR 25, 2024. Zhang, Stephens. A
new and efficient estimation method for the generalized Pareto distribution. Technometrics 51, 2009.
"""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.composite import Draws

if TYPE_CHECKING:
    from suffice.typing import Cells, Floats


LARGEST_SHAPE = 0.7
"""Of the tail of weights on which averages may rest."""
FEWEST_EFFECTIVE = 400.0


def smoothed(log_weight: Floats) -> tuple[Floats, float]:
    """Return weights that sum to 1 with a smoothed tail, and the tail's shape k.

    Parameters
    ----------
    log_weight : ndarray of shape (n_draws,), float64
        At least one is finite; minus infinity where a draw does not count.

    Returns
    -------
    weight : ndarray of shape (n_draws,), float64
    shape : float
        Minus infinity where the largest weights are alike: they have no tail.
    """
    weight = np.exp(log_weight - np.max(log_weight))
    draws = len(weight)
    size = math.ceil(min(draws / 5, 3.0 * math.sqrt(draws)))
    order = np.argsort(weight)
    tail, cutoff = order[-size:], float(weight[order[-size - 1]])
    beyond = weight[tail] - cutoff
    shape = -math.inf
    if beyond[-1] > 1e-10 and beyond[size // 2] > 0.0:
        shape, scale = _fitted(np.maximum(beyond, 1e-300))
        # (2) at the middles of M equal probabilities; no weight becomes larger than the largest.
        level = (np.arange(size) + 0.5) / size
        quantile = scale * np.expm1(-shape * np.log1p(-level)) / shape if shape else -scale * np.log1p(-level)
        weight[tail] = np.minimum(cutoff + quantile, 1.0)
    return weight / np.sum(weight), shape


def _fitted(beyond: Floats) -> tuple[float, float]:
    """Shape and scale of a generalised Pareto distribution, of ascending exceedances (Zhang and Stephens)."""
    n = len(beyond)
    grid = 30 + int(math.sqrt(n))
    quartile = float(beyond[max(int(n / 4 + 0.5) - 1, 0)])
    theta = 1.0 / beyond[-1] + (1.0 - np.sqrt(grid / (np.arange(1.0, grid + 1.0) - 0.5))) / (3.0 * quartile)
    shapes = np.mean(np.log1p(-theta[:, None] * beyond), axis=1)
    profile = n * (np.log(-theta / shapes) - shapes - 1.0)
    share = np.exp(profile - np.max(profile))
    middle = float(share @ theta / np.sum(share))
    shape = float(np.mean(np.log1p(-middle * beyond)))
    scale = -shape / middle
    # Drawn to 1/2, as weakly as by ten observations.
    return (n * shape + 10.0 * 0.5) / (n + 10.0), scale


def effective(weight: Floats) -> float:
    """Return how many independent draws weights that sum to 1 are worth."""
    return float(1.0 / np.sum(weight**2))


def resampled(weight: Floats, size: int, rng: np.random.Generator) -> Cells:
    """Return positions of so many draws by their weights, at even distances."""
    # The ends of the cumulated weights between which one even position lies each.
    places = (np.arange(size) + rng.random()) / size
    return np.minimum(np.searchsorted(np.cumsum(weight), places), len(weight) - 1).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReweightedDraws(Draws):
    """A distribution by draws that were resampled by their weights.

    Attributes
    ----------
    name : str
        The parameter's.
    means, sds : ndarray of shape (n_cells, n_entries), float64
        Of all draws with their weights.
    drawn : ndarray of shape (n_kept, n_cells, n_entries), float64
    shape, effective : ndarray of shape (n_cells,), float64
        k and n_eff.
    draws : int
        How many of the reference a cell has at least.
    log_evidence : ndarray of shape (n_cells,), float64, or None
    """

    name: str
    means: Floats
    sds: Floats
    drawn: Floats
    shape: Floats
    effective: Floats
    draws: int
    log_evidence: Floats | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return (self.name,)

    @property
    def diagnostics(self) -> dict[str, Any]:
        """What the numbers rest on."""
        return {
            "sampler": "reweighted draws",
            "draws": self.draws,
            "fewest_effective_draws": float(np.min(self.effective)),
            "largest_pareto_k": round(max(0.0, float(np.max(self.shape))), 3),
        }

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self.means

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self.sds

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Draws of these draws."""
        kept, cells, entries = self.drawn.shape
        chosen = rng.integers(kept, size=(draws, cells))
        return {self.name: np.take_along_axis(self.drawn, chosen[:, :, None].repeat(entries, axis=2), axis=0)}
