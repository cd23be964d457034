r"""The likelihood of what was released of a tree, as JAX traces it: all counts are summed over.

With a law :math:`\pi_l` of the count of each leaf l, given parameters, and the discrete Laplace noise of
every level,

.. math::
    p(y \mid \theta) = \sum_{n_1, n_2, \dots} \prod_l \pi_l(n_l \mid \theta)
    \prod_v \tanh\frac{1}{2 b_v}\, e^{-|y_v - n_v| / b_v}, \qquad
    n_v = \sum_{l \text{ below } v} n_l. \qquad (1)

Messages go up the tree as in the posterior's passes. Here windows are fixed by the released values and the
noise, so that one compiled function serves all parameters: a count lies within ``NATS`` scales of its noisy
value but for a chance of e^-45. Parts are added two by two, term by term,

.. math::
    S(s) = e^{-\lambda s} \sum_l \bigl(L(l) e^{\lambda l}\bigr) \bigl(R(s - l) e^{\lambda (s - l)}\bigr),
    \qquad (2)

whatever the number :math:`\lambda`: it levels both parts, whose weights would otherwise leave the range of
floats at parameters that are far from the data, as those from which a sampler begins. All terms are
positive, so that nothing cancels, and gradients hold as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from suffice.errors import UsageError
from suffice.pipeline.math.engines.jax_sums import NATS
from suffice.pipeline.math.engines.tree.messages import Halving

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
    from suffice.typing import Counts

MOST_TERMS = 200_000_000
"""Of all sums together: about a second with its gradient."""
_LEAST = 1e-290
"""Sums of products below it are 0: their reciprocals, which gradients take, would not be floats."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Where the log weights of every part stand: from ``low`` on, ``width`` of them."""

    low: Counts
    width: Counts

    @classmethod
    def of_leaves(cls, tree: NoisyTree) -> Self:
        """Return those of the leaves, by their own values and by those above them."""
        high = tree.bounds(NATS).astype(np.int64)
        low = np.zeros(tree.n_leaves, np.int64)
        values, scale = tree.values[-1], tree.scales[-1]
        if values is not None and scale is not None:
            low = np.maximum(np.minimum(values, high) - int(np.ceil(NATS * scale)), 0)
        return cls(low, high - low + 1)

    @property
    def inside(self) -> Any:
        """Which places of rows as wide as the widest are in the windows."""
        return np.arange(int(self.width.max())) < self.width[:, None]

    @property
    def counts(self) -> Counts:
        """The counts at all places."""
        counts: Counts = self.low[:, None] + np.arange(int(self.width.max()))
        return counts

    def take(self, rows: Counts) -> Self:
        """Return some of them."""
        return type(self)(self.low[rows], self.width[rows])

    def added(self, halving: Halving) -> Self:
        """Return those of sums of two, and of what was left alone."""
        low, width = np.empty(halving.n_parts, np.int64), np.empty(halving.n_parts, np.int64)
        low[halving.pairs] = self.low[halving.left] + self.low[halving.right]
        width[halving.pairs] = self.width[halving.left] + self.width[halving.right] - 1
        low[halving.single], width[halving.single] = self.low[halving.alone], self.width[halving.alone]
        return type(self)(low, width)

    def about(self, values: Counts, scale: float) -> Self:
        """Return the parts that lie within reach of noisy values; of others the nearest count."""
        reach = int(np.ceil(NATS * scale))
        start = np.clip(values - reach - self.low, 0, self.width - 1)
        stop = np.clip(values + reach + 1 - self.low, start + 1, self.width)
        return type(self)(self.low + start, stop - start)


def tree_log_likelihood(tree: NoisyTree, log_weight: Callable[[Counts], Any]) -> Any:
    """Return the logarithm of (1).

    Parameters
    ----------
    tree : NoisyTree
    log_weight : callable
        Log weights of counts, (n_counts, n_leaves): a column for each leaf, in its law.

    Raises
    ------
    UsageError
        Where the noise is so wide that there are more than ``MOST_TERMS`` terms.
    """
    windows = Windows.of_leaves(tree)
    _check_size(tree, windows)
    logs = jnp.where(windows.inside, log_weight(windows.counts.T).T, -jnp.inf)
    constant = 0.0
    for level in range(tree.depth, -1, -1):
        values, scale = tree.values[level], tree.scales[level]
        if values is not None and scale is not None:
            logs = logs - np.abs(windows.counts - values[:, None]) / scale
            constant += len(values) * float(np.log(np.tanh(0.5 / scale)))
        if level > 0:
            above, noise = tree.values[level - 1], tree.scales[level - 1]
            windows, logs = _summed(tree.parents[level - 1], windows, logs)
            if above is not None and noise is not None:
                cut = windows.about(above, noise)
                logs = _cut(logs, windows, cut)
                windows = cut
    return logsumexp(logs[0]) + constant


def _summed(parents: Counts, windows: Windows, logs: Any) -> tuple[Windows, Any]:
    """Add the members of every family two by two, until each is one sum."""
    order = np.argsort(parents, kind="stable")
    windows, logs, counts = windows.take(order), logs[order], np.bincount(parents)
    while counts.max() > 1:
        halving = Halving.of(counts)
        sums = windows.added(halving)
        width = int(sums.width.max())
        added = jnp.full((halving.n_parts, width), -jnp.inf)
        added = added.at[halving.single].set(_as_wide(logs[halving.alone], width))
        pairs = _added(windows.take(halving.left), logs[halving.left], logs[halving.right])
        added = added.at[halving.pairs].set(_as_wide(pairs, width))
        windows, logs, counts = sums, jnp.where(sums.inside, added, -jnp.inf), halving.counts
    return windows, logs


def _as_wide(logs: Any, width: int) -> Any:
    """Return rows of another width: what is cut or added weighs nothing."""
    more = max(width - logs.shape[1], 0)
    return jnp.pad(logs, ((0, 0), (0, more)), constant_values=-jnp.inf)[:, :width]


def _added(windows: Windows, left: Any, right: Any) -> Any:
    """Return log weights of sums of two parts, (2)."""
    n_rows, width = left.shape
    # By the slope from end to end of the first part's window, which is about that of the second's.
    last = windows.width - 1
    slope = (left[np.arange(n_rows), last] - left[:, 0]) / np.maximum(last, 1)
    tilt = jax.lax.stop_gradient(jnp.where(jnp.isfinite(slope), -slope, 0.0))[:, None]
    (first, of_first), (second, of_second) = (
        _levelled(part + tilt * np.arange(width)) for part in (left, right)
    )

    def step(sums: Any, at: Any) -> tuple[Any, None]:
        part = jax.lax.dynamic_slice_in_dim(sums, at, width, axis=1)
        part = part + first * jax.lax.dynamic_slice_in_dim(second, at, 1, axis=1)
        return jax.lax.dynamic_update_slice_in_dim(sums, part, at, axis=1), None

    full = 2 * width - 1
    sums, _ = jax.lax.scan(step, jnp.zeros((n_rows, full)), jnp.arange(width))
    has_any = sums > _LEAST
    logs = jnp.where(has_any, jnp.log(jnp.where(has_any, sums, 1.0)), -jnp.inf)
    return logs + of_first + of_second - tilt * np.arange(full)


def _levelled(logs: Any) -> tuple[Any, Any]:
    """Return weights of at most 1, and the logarithm of what they were divided by."""
    highest = jax.lax.stop_gradient(logs.max(axis=1, keepdims=True))
    highest = jnp.where(jnp.isfinite(highest), highest, 0.0)
    return jnp.exp(logs - highest), highest


def _cut(logs: Any, windows: Windows, cut: Windows) -> Any:
    """Return the log weights in narrower windows."""
    places = np.minimum(cut.counts - windows.low[:, None], logs.shape[1] - 1)
    return jnp.where(cut.inside, jnp.take_along_axis(logs, jnp.asarray(places), axis=1), -jnp.inf)


def _check_size(tree: NoisyTree, windows: Windows) -> None:
    """Refuse trees whose sums would have too many terms."""
    terms = 0
    for level in range(tree.depth, 0, -1):
        parents = tree.parents[level - 1]
        windows, counts = windows.take(np.argsort(parents, kind="stable")), np.bincount(parents)
        while counts.max() > 1:
            halving = Halving.of(counts)
            terms += len(halving.pairs) * int(windows.width.max()) ** 2
            windows, counts = windows.added(halving), halving.counts
        above, noise = tree.values[level - 1], tree.scales[level - 1]
        if above is not None and noise is not None:
            windows = windows.about(above, noise)
    if terms > MOST_TERMS:
        message = (
            f"the tree has {tree.n_leaves} leaves behind noise so wide that its likelihood would take some "
            f"{terms:.1g} terms, of {MOST_TERMS:.0e} at most: ask release.tree, which costs less, or take a "
            "part of the tree"
        )
        raise UsageError(message)
