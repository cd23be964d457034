r"""What draws of a quantile's bin say of the data: the law of the mechanism over data sets of a prior.

Model. Shares p of the bins are those of a histogram's walk (``bin_walk``): log intensities on a grid of
ten logarithms, or no records; N is of its prior, and counts are multinomial given both. With C their sums
from the lowest bin on, a draw is the bin b with

.. math:: P(b \mid k) = \frac{e^{-d_b / \tau}}{\sum_h e^{-d_h / \tau}}, \qquad
          d_b = \max(0,\; C_{b-1} - q N,\; q N - C_b). \qquad (1)

The quantile of the data is in the first bin with :math:`C_b \ge q N`. Data sets without records have none,
and are left out.

Method. Importance sampling from the prior: one set of data sets weighs for all cells, each cell by the
product of (1) over its draws. Nothing is approximated but by the number of data sets; how far that may be
trusted the effective number says,

.. math:: n_\mathrm{eff} = \Bigl(\sum_m w_m\Bigr)^2 \Big/ \sum_m w_m^2. \qquad (2)

Symbols: p: ``share``, (size, n_bins); k: ``counts``, likewise; q: ``quantile``; :math:`\tau`: ``rank_scale``;
w: ``weight``, (size, n_cells).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.histogram.walk_shares import walk_shares

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.histogram.histogram_posterior import Bins
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Cells, Floats

_NUMBERS = 1 << 22
"""Of one block: 32 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileWeights:
    """The posterior of the bin that a quantile is in, of every cell.

    Attributes
    ----------
    probability : ndarray of shape (n_cells, n_bins), float64
    effective : ndarray of shape (n_cells,), float64
        The effective number of data sets (2).
    """

    probability: Floats
    effective: Floats


def log_law(counts: Floats, quantile: float, rank_scale: float) -> Floats:
    """Return the logarithm of (1) for every data set and bin, (size, n_bins)."""
    through = np.cumsum(counts, axis=1)
    target = quantile * through[:, -1:]
    log_weight = -np.maximum(np.maximum(through - counts - target, target - through), 0.0) / rank_scale
    # The highest is 0: some bin has the quantile.
    law: Floats = log_weight - np.log(np.sum(np.exp(log_weight), axis=1, keepdims=True))
    return law


def quantile_bin(counts: Floats, quantile: float) -> Cells:
    """Return the bin that the quantile of every data set is in, (size,)."""
    through = np.cumsum(counts, axis=1)
    # As far as rounding may take a product with a decimal fraction.
    target = quantile * through[:, -1:] * (1.0 - 2.0**-50)
    bins: Cells = np.argmax(through >= target, axis=1)
    return bins


def quantile_weights(
    drawn: Cells,
    bins: Bins,
    *,
    quantile: float,
    rank_scale: float,
    steps: tuple[float, ...],
    n_prior: NPrior,
    size: int,
    rng: np.random.Generator,
) -> QuantileWeights:
    """Return the posterior of every cell by its draws.

    Parameters
    ----------
    drawn : ndarray of shape (n_cells, n_bins), int64
        How often each bin was drawn.
    bins : Bins
    quantile, rank_scale : float
    steps : tuple of float
        Of the walk.
    n_prior : NPrior
    size : int
        Data sets of the prior.
    rng : Generator
    """
    n_cells, n_bins = drawn.shape
    probability, total, square = np.zeros((n_cells, n_bins)), np.zeros(n_cells), np.zeros(n_cells)
    top = np.full(n_cells, -np.inf)
    block = max(1, _NUMBERS // n_bins)
    for start in range(0, size, block):
        share = walk_shares(bins, steps, min(block, size - start), rng)
        n = n_prior.sample(len(share), rng)
        counts = rng.multinomial(n, share).astype(np.float64)[n > 0]
        if not len(counts):
            continue
        log_weight = log_law(counts, quantile, rank_scale) @ drawn.T.astype(np.float64)
        highest = np.maximum(top, np.max(log_weight, axis=0))
        kept = np.exp(top - highest)
        weight = np.exp(log_weight - highest)
        at = np.zeros((len(counts), n_bins))
        at[np.arange(len(counts)), quantile_bin(counts, quantile)] = 1.0
        probability = probability * kept[:, None] + weight.T @ at
        total = total * kept + np.sum(weight, axis=0)
        square = square * kept**2 + np.sum(weight**2, axis=0)
        top = highest
    with np.errstate(divide="ignore", invalid="ignore"):
        # (2); where no data set has records nothing is effective.
        effective = np.where(square > 0.0, total**2 / square, 0.0)
        probability = np.where(total[:, None] > 0.0, probability / total[:, None], 0.0)
    return QuantileWeights(probability=probability, effective=effective)
