r"""Nodes of cells that released two noisy sums of counts: the total S, and C N - S of N records up to C.

Model. S is a Poisson count of the mean :math:`N \lambda` given the number of records, of which two noisy
numbers are known: :math:`y_1`, and :math:`C N - y_2`. So, with the likelihood A of a count that was released
twice (``count_likelihoods``) and the prior of N itself,

.. math:: L(x, N) = A(N \lambda; y_1, C N - y_2), \qquad x = \log \lambda. \qquad (1)

Records are as bounds leave them, and the model has no bound.

Method. Up to ``_WHOLE`` records N is summed over; above, an integral stands for the sum, by the nodes of
``dense_nodes``: (1) is smooth in N between whole numbers too. A of a single release is looked up
(``kink_table``); of several, and where noise is next to none, it is worked out at every node.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled.cells import Focus, Nodes, dense_nodes, nodes_of_positions
from suffice.pipeline.math.engines.pooled.kink_table import KinkTable

if TYPE_CHECKING:
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Cells, Floats

_WHOLE = 6
_SIZES = 14
_FARTHEST = 32.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RateCells:
    """Cells with noisy sums of counts and of what they leave of the bound; a ``CellsSource``.

    Attributes
    ----------
    total, rest : ndarray of shape (n_cells, n_releases), float64
        y_1 and y_2.
    scales : ndarray of shape (n_releases,), float64
        Of the noise on both.
    bound : float
        C.
    n_prior : NPrior
    """

    total: Floats
    rest: Floats
    scales: Floats
    bound: float
    n_prior: NPrior
    _table: list[KinkTable | None] = field(default_factory=list, repr=False, compare=False)

    def _kinks(self) -> KinkTable | None:
        """Table of both kinks for all cells; None of several releases, and where there is none."""
        if not self._table:
            # Kinks that are not out of question by ``_FARTHEST``.
            scale = float(np.min(self.scales))
            beyond = (_FARTHEST + 2.0) * scale + 10.0 * self.bound
            highest = max(float(np.max(self.total)), 0.0) + max(-float(np.min(self.rest)), 0.0) + beyond
            self._table.append(KinkTable.of(scale, highest) if len(self.scales) == 1 else None)
        return self._table[0]

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return len(self.total)

    @property
    def has_sizes(self) -> bool:
        """True."""
        return True

    @property
    def middle(self) -> float:
        """The logarithm of all totals over all records."""
        total = max(float(np.sum(np.mean(self.total, axis=1))), float(np.min(self.scales)))
        records = float(np.sum(np.mean(self.total + self.rest, axis=1))) / self.bound
        return float(np.log(total / max(records, 1.0)))

    def moved(self, cells: Cells, shifts: Floats) -> Self:
        """Return the given cells with so many units moved from the rest to the total."""
        return replace(
            self,
            total=self.total[cells] + shifts[:, None],
            rest=self.rest[cells] - shifts[:, None],
            _table=[],
        )

    def parts(self, cells: Cells) -> tuple[Floats, Floats, Floats, float]:
        """Return totals and rests, numbers of records, and the scale of the noise."""
        total, rest = (np.mean(each[cells], axis=1) for each in (self.total, self.rest))
        scale = float(np.min(self.scales))
        return total, rest, np.maximum((total + rest) / self.bound, scale / self.bound), scale

    def records(self, position: Floats, log_size: Floats, rng: np.random.Generator) -> Floats:  # noqa: ARG002
        """Return numbers of records at log sizes: nodes are of N itself."""
        return np.rint(np.expm1(log_size))

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        """Nodes of some cells: of log rates, and of numbers of records."""
        total, rest = self.total[cells], self.rest[cells]
        b = float(np.min(self.scales))
        # Standard deviations of what noise does to N and to S.
        of_n = 2.0 * b / self.bound
        records = np.mean(total + rest, axis=1) / self.bound
        size, error = np.maximum(records, of_n + 1.0), np.maximum(of_n, 0.5)
        far = _FARTHEST * b / self.bound + 8.0
        log_n, log_step = dense_nodes(
            np.log(np.maximum(size - far, _WHOLE + 0.5)),
            np.log(np.maximum(size + far, _WHOLE + 1.5)),
            np.log(np.maximum(size, _WHOLE + 0.5)),
            np.minimum(error / size, 1.0),
            n=_SIZES,
        )
        whole = np.tile(np.arange(_WHOLE + 1.0), (len(cells), 1))
        n = np.concatenate([whole, np.exp(log_n)], axis=1)
        log_rule = np.concatenate([np.zeros_like(whole), log_step + log_n], axis=1)
        low, high = self.n_prior.support
        log_prior = np.where(
            (n < low - 0.5) | (n > high + 0.5), -np.inf, self.n_prior.log_prob(np.clip(n, low, high))
        )
        count = np.maximum(np.mean(total, axis=1), b + 0.5)
        rate = np.log(count / size)
        spread = np.sqrt((count + 2.0 * b**2) / count**2 + (error / size) ** 2)
        x, log_dx = nodes_of_positions(rate, spread, focus, (-200.0, 200.0))
        return Nodes.of(
            x,
            log_dx,
            np.log1p(n),
            self._log_likelihood(total, rest, x, n) + (log_rule + log_prior)[:, None, :],
        )

    def _log_likelihood(self, total: Floats, rest: Floats, x: Floats, n: Floats) -> Floats:
        """(1), (n_cells, n_positions, n_sizes)."""
        n_cells, n_sizes = n.shape
        scales = np.concatenate([self.scales, self.scales])
        other = self.bound * n[:, :, None] - rest[:, None, :]
        values = np.concatenate([np.broadcast_to(total[:, None, :], other.shape), other], axis=2)
        # Noise alone bounds (1): where that is out of question nothing else is asked.
        gap = np.sum(np.abs(other - total[:, None, :]) / self.scales, axis=2)
        near = gap < np.min(gap, axis=1, keepdims=True) + _FARTHEST
        cell, size = np.nonzero(near & (n > 0.0))
        value = np.full((n_cells, n_sizes, x.shape[1]), -np.inf)
        table = self._kinks()
        if table is None:
            log_mean = x[cell] + np.log(n[cell, size])[:, None]
            counts = NoisyCount(values=values[cell, size], scales=scales)
            value[cell, size] = counts.log_likelihood(log_mean)
        else:
            root = np.exp(x / 2.0)[cell] * np.sqrt(n[cell, size])[:, None]
            of_total, of_rest = values[cell, size].T
            low, high = np.minimum(of_total, of_rest), np.maximum(of_total, of_rest)
            value[cell, size] = table.log_likelihood(low, high, root)
        # No records: the sum is 0 whatever the rate.
        empty = np.sum(np.log(np.tanh(0.5 / scales)) - np.abs(values[:, 0]) / scales, axis=1)
        value[:, 0] = empty[:, None]
        return value.transpose(0, 2, 1)
