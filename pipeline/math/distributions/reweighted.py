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

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice.pipeline.math.distributions.composite import Draws

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
class WeighedCell:
    """Draws of one cell with their weights.

    Attributes
    ----------
    mean, sd : dict of str to ndarray, float64
        Of all draws with their weights, by parameter: a number, or one an entry.
    drawn : dict of str to ndarray, float64
        Draws that were resampled by their weights, on the first axis.
    shape, effective : float
        k and n_eff.
    log_mean : float
        Log of the average of the weights.
    r_hat : float
        Of particles that were tempered from the reference's draws; NaN of draws that were reweighted.
    """

    mean: Mapping[str, Floats]
    sd: Mapping[str, Floats]
    drawn: Mapping[str, Floats]
    shape: float
    effective: float
    log_mean: float
    r_hat: float = math.nan


def weighed(
    drawn: Mapping[str, Floats],
    log_weight: Floats,
    independent: float,
    size: int,
    rng: np.random.Generator,
) -> WeighedCell | None:
    """Weigh draws of one cell; None where too few count.

    Parameters
    ----------
    drawn : mapping of str to ndarray, float64
        Draws on the first axis, by parameter.
    log_weight : ndarray of shape (n_draws,), float64
    independent : float, 0..1
        How many independent draws each is worth, as those of chains are worth less than 1.
    size : int
        How many are kept.
    rng : numpy.random.Generator
    """
    if np.max(log_weight) == -np.inf:
        return None
    weight, shape = smoothed(log_weight)
    count = effective(weight) * independent
    if count < FEWEST_EFFECTIVE:
        return None
    mean = {name: np.tensordot(weight, values, 1) for name, values in drawn.items()}
    kept = resampled(weight, size, rng)
    return WeighedCell(
        mean=mean,
        sd={
            name: np.sqrt(np.tensordot(weight, (values - mean[name]) ** 2, 1))
            for name, values in drawn.items()
        },
        drawn={name: values[kept] for name, values in drawn.items()},
        shape=shape,
        effective=count,
        log_mean=float(np.logaddexp.reduce(log_weight) - np.log(len(log_weight))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReweightedDraws(Draws):
    """A distribution by draws that were resampled by their weights.

    Attributes
    ----------
    means, sds : dict of str to ndarray of shape (n_cells, ...), float64
        Of all draws with their weights, by parameter.
    drawn : dict of str to ndarray of shape (n_kept, n_cells, ...), float64
    shape, effective : ndarray of shape (n_cells,), float64
        k and n_eff.
    draws : int
        How many of the reference a cell has at least.
    r_hat : ndarray of shape (n_cells,), float64
        Of particles that were tempered from them; NaN where they were reweighted.
    of : str
        What they are draws of.
    components : dict of str to tuple of str
        Names of entries, of parameters that have several.
    log_evidence : ndarray of shape (n_cells,), float64, or None
    """

    means: Mapping[str, Floats]
    sds: Mapping[str, Floats]
    drawn: Mapping[str, Floats]
    shape: Floats
    effective: Floats
    r_hat: Floats
    draws: int
    of: str
    components: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    log_evidence: Floats | None = None

    @classmethod
    def joined(cls, cells: Sequence[WeighedCell], **settings: Any) -> Self:
        """Return the distribution of cells side by side."""
        first = cells[0].mean
        return cls(
            means={name: np.stack([cell.mean[name] for cell in cells]) for name in first},
            sds={name: np.stack([cell.sd[name] for cell in cells]) for name in first},
            drawn={name: np.stack([cell.drawn[name] for cell in cells], axis=1) for name in first},
            shape=np.array([cell.shape for cell in cells]),
            effective=np.array([cell.effective for cell in cells]),
            r_hat=np.array([cell.r_hat for cell in cells]),
            **settings,
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(self.means)

    @property
    def diagnostics(self) -> dict[str, Any]:
        """What the numbers rest on."""
        moved = np.isfinite(self.r_hat)
        known: dict[str, Any] = {
            "sampler": f"reweighted draws of {self.of}",
            "draws": self.draws,
            "fewest_effective_draws": float(np.min(self.effective)),
        }
        if not moved.all():
            known["largest_pareto_k"] = round(max(0.0, float(np.max(self.shape[~moved]))), 3)
        if moved.any():
            tempered = f"tempered sequential Monte Carlo from draws of {self.of}"
            known["sampler"] = tempered if moved.all() else f"{known['sampler']}; {tempered}"
            known["largest_r_hat"] = round(float(np.max(self.r_hat[moved])), 4)
        return known

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self.means[parameter]

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self.sds[parameter]

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Draws of these draws."""
        kept, cells = next(iter(self.drawn.values())).shape[:2]
        chosen = rng.integers(kept, size=(draws, cells))
        return {name: values[chosen, np.arange(cells)] for name, values in self.drawn.items()}
