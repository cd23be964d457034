r"""Exact likelihoods of vectors and tables of counts: all vectors of latent counts, summed.

Given N the counts are multinomial. Each count, with its noise, is a row of weights
:math:`p_k^c / c! \; e^{-|y_k - c| / b}`; rows are convolved one after the other, in logarithms, and

.. math:: p(y \mid p) = \sum_N \pi(N)\, N! \sum_{c:\, \sum_k c_k = N} \prod_k \frac{p_k^{c_k}}{c_k!}
          e^{-|y_k - c_k| / b}.

Features that are independent given a class have that class's count as the sum of each of their rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp

from suffice.pipeline.math.engines.jax.totals import NATS, log_prior_of_n, require_terms
from suffice.pipeline.math.engines.network.decomposition import by_class, families
from suffice.pipeline.terms.statistics.count_table import released_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.statistics.count_table import CountTable
    from suffice.typing import Floats


_NOTHING = -1e30
"""Replaces the log of 0: finite, so that gradients are finite too."""
_LEAST = 1e-300
"""Probabilities are treated as at least this."""


@dataclass(frozen=True, slots=True)
class Masses:
    """Log weights of consecutive counts: from `first` (n_cells,) on, (n_cells, n_counts)."""

    first: Floats
    log: Any

    def between(self, first: Floats, size: int) -> Any:
        """Return the log weights of `size` counts from `first` on, (n_cells, size)."""
        before = max(0, math.ceil(np.max(self.first - first)))
        after = max(0, math.ceil(np.max(first + size - self.first - self.log.shape[1])))
        padded = jnp.pad(self.log, ((0, 0), (before, after)), constant_values=_NOTHING)
        start = (first - self.first).astype(np.int64) + before
        return jnp.take_along_axis(padded, start[:, None] + np.arange(size), axis=1)


@dataclass(frozen=True, slots=True)
class CountWindow:
    """The counts that the noise allows: within `half` of every observed one, (n_observed, n_cells)."""

    observed: Floats
    half: int

    @property
    def first(self) -> Floats:
        """The first count, (n_cells,)."""
        least: Floats = np.maximum(0.0, np.rint(np.min(self.observed, axis=0)) - self.half)
        return least

    @property
    def size(self) -> int:
        """The number of counts."""
        return int(np.ceil(np.max(np.ptp(self.observed, axis=0)))) + 2 * self.half + 1

    def counts(self) -> Floats:
        """Return the counts, (n_cells, size)."""
        return self.first[:, None] + np.arange(float(self.size))


def network(
    nodes: Sequence[CountTable], noisy: Sequence[Floats], probability: Any, scale: float, prior: NPrior
) -> Any:
    """Return the sum over families of nodes of the log likelihood of their own tables, (n_cells,).

    As in the posterior: each family has latent counts and an N of its own.
    """
    ends = np.cumsum([table.size for table in nodes])
    parts = jnp.split(entries(probability, len(noisy[0]), int(ends[-1])), ends[:-1], axis=1)
    observed = dict(zip([table.name for table in released_tables(nodes)], noisy, strict=True))
    total = jnp.zeros(len(noisy[0]))
    for root, children in families(nodes):
        if root is not None and not children:
            values = observed[nodes[root].name].reshape(len(noisy[0]), -1)
            total += vector(values, parts[root], np.full(nodes[root].size, 1.0 / scale), scale, prior)
            continue
        names = [variable.name for variable in nodes[children[0]].variables[:-1]]
        total += star(
            [by_class(nodes[child], observed[nodes[child].name], names) for child in children],
            [
                by_class(nodes[child], parts[child].reshape(-1, *nodes[child].shape), names)
                for child in children
            ],
            scale,
            prior,
            of_class=None if root is None else parts[root],
        )
    return total


def entries(probability: Any, n_cells: int, n_entries: int) -> Any:
    """Return probabilities of every cell, (n_cells, n_entries)."""
    return jnp.broadcast_to(probability, (n_cells, n_entries))


def vector(values: Floats, probability: Any, rates: Floats, scale: float, prior: NPrior) -> Any:
    """Return the log likelihood (n_cells,) of counts (n_cells, n_categories).

    Their noise has these rates, each 1 / `scale`, or 0 of a count that is what the others leave of N.
    """
    half = math.ceil(NATS * scale)
    probability = jnp.broadcast_to(probability, values.shape)
    require_terms(len(values) * (2 * half + 1) ** 2 * (values.shape[1] - 1))
    most = float(prior.support[1])
    rows, windows = _rows(values, probability, rates, half, most)
    total = _sum_of(rows, windows, most)
    n = total.first[:, None] + np.arange(float(total.log.shape[1]))
    return logsumexp(total.log + gammaln(n + 1.0) + log_prior_of_n(n, prior), axis=1)


def star(
    features: Sequence[Floats],
    probabilities: Sequence[Any],
    scale: float,
    prior: NPrior,
    *,
    of_class: Any = None,
) -> Any:
    """Return the log likelihood of tables (n_cells, n_classes, n_categories), independent given the class.

    Without probabilities of the classes their frequencies have a flat prior.
    """
    most = float(prior.support[1])
    half = math.ceil(NATS * scale)
    n_cells, n_classes = features[0].shape[:2]
    per_class = sum(table.shape[2] - 1 for table in features) + 1
    require_terms(n_cells * n_classes * per_class * (2 * half + 1) ** 2)
    sums, margins = [], []
    for noisy, probability in zip(features, probabilities, strict=True):
        flat = noisy.reshape(-1, noisy.shape[2])
        rows, windows = _rows(
            flat, probability.reshape(flat.shape), np.full(flat.shape[1], 1.0 / scale), half, most
        )
        sums.append(_sum_of(rows, windows, most))
        margins.append(_reached(windows, most)[0].reshape(n_cells, n_classes))
    window = CountWindow(np.stack(margins).reshape(len(margins), -1), half)
    m = window.counts()
    log_weight = sum(each.between(window.first, window.size) + gammaln(m + 1.0) for each in sums)
    if of_class is not None:
        log_class = jnp.log(jnp.maximum(of_class, _LEAST)).reshape(-1, 1)
        log_weight += m * log_class - gammaln(m + 1.0)
    by_cell = log_weight.reshape(n_cells, n_classes, -1)
    first = window.first.reshape(n_cells, n_classes)
    total = _sum_of(
        [Masses(first[:, y], by_cell[:, y]) for y in range(n_classes)],
        [CountWindow(np.stack([margin[:, y] for margin in margins]), half) for y in range(n_classes)],
        most,
    )
    n = total.first[:, None] + np.arange(float(total.log.shape[1]))
    # Of N rows: a multinomial coefficient, or one over the number of vectors of class counts.
    link = gammaln(n + 1.0) if of_class is not None else gammaln(n + 1.0) - gammaln(n + n_classes)
    return logsumexp(total.log + link + log_prior_of_n(n, prior), axis=1)


def _rows(
    values: Floats, probability: Any, rates: Floats, half: int, most: float
) -> tuple[list[Masses], list[CountWindow]]:
    """Weights of every category's counts, and the windows that they are over."""
    rows, windows = [], []
    for category, rate in enumerate(rates):
        observation = values[:, category]
        window = CountWindow(np.clip(observation, 0.0, most)[None], half)
        counts = window.counts()
        log_p = jnp.log(jnp.maximum(probability[:, category], _LEAST))[:, None]
        log_weight = counts * log_p - gammaln(counts + 1.0) - rate * np.abs(counts - observation[:, None])
        rows.append(Masses(window.first, log_weight))
        windows.append(window)
    return rows, windows


def _sum_of(rows: Sequence[Masses], windows: Sequence[CountWindow], most: float) -> Masses:
    """Convolve rows; a sum has moved by at most what its parts have moved, so windows do not grow."""
    total = rows[0]
    for used in range(1, len(rows)):
        window = CountWindow(_reached(windows[: used + 1], most), windows[0].half)
        total = _convolved(total, rows[used], window)
    return total


def _reached(windows: Sequence[CountWindow], most: float) -> Floats:
    """Sums of what was observed, (n_observed, n_cells), none above the largest N."""
    reached: Floats = np.minimum(sum(window.observed for window in windows), most)
    return reached


def _convolved(left: Masses, right: Masses, window: CountWindow) -> Masses:
    """Weights of sums within a window."""
    width = right.log.shape[1]
    first = np.maximum(window.first, left.first + right.first)
    shifted = left.between(first - right.first - (width - 1), window.size + width - 1)
    position = np.arange(window.size)[:, None] - np.arange(width) + (width - 1)
    return Masses(first, logsumexp(shifted[:, position] + right.log[:, None, :], axis=2))
