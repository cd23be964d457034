r"""Nodes of cells that released two noisy counts: what is true, and what is false.

Model. With a Poisson number of records of mean :math:`\Lambda`, counts are independent Poisson ones, of means
:math:`\Lambda p` and :math:`\Lambda (1 - p)`, and so are the likelihoods A of their means
(``count_likelihoods``):

.. math:: L(x, \Lambda) = A(\Lambda p; y_1) \, A(\Lambda (1 - p); y_0),
    \qquad x = \operatorname{logit} p. \qquad (1)

The prior of N is that of :math:`\Lambda` by its mixing density g. The latent size is :math:`\Lambda`.

Method. A is tabulated in the root of its mean, in which a Poisson law has the width 1/2 whatever its mean is,
at ``_TABLE`` points between the places where it is e^-``_DEPTH`` of its highest, with ``_FINER`` times as
many by cubics through four, and chords between these: off by .001 nats. Beyond, it is taken for 0. Counts
that are alike share a table.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.count_likelihoods import NoisyCount, log_mixing
from suffice.pipeline.math.engines.pooled.cells import Focus, Nodes, cubic, dense_nodes, nodes_of_positions
from suffice.pipeline.math.engines.pooled.latent_counts import drawn_counts

if TYPE_CHECKING:
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Cells, Floats, Rows

SIZES = 12
_TABLE, _FINER = 72, 6
_DEPTH = 34.0
_HALVINGS = 8
_SMALLEST = 1e-4
"""Of a mean number of records: less of it has next to no prior."""
_FARTHEST = 32.0
"""Scales of the noise beyond which a number of records is out of question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTable:
    """log A of many counts, by the root of the mean.

    Attributes
    ----------
    value : ndarray of shape (n_counts, n_points), float64
    low, step : ndarray of shape (n_counts,), float64
        The first point, and how far apart they are.
    """

    value: Floats
    low: Floats
    step: Floats

    @classmethod
    def of(cls, count: NoisyCount) -> Self:
        """Tabulate."""
        typical = np.sqrt(np.maximum(np.mean(count.values, axis=1), 0.25))
        far = typical + 0.5 * _DEPTH**0.5 + np.sqrt(_DEPTH * np.max(count.scales)) + 2.0

        def below_top(root: Floats) -> Floats:
            log_mean = 2.0 * np.log(np.maximum(root, 1e-9))[:, None]
            value: Floats = count.log_likelihood(log_mean)[:, 0] - top
            return value

        top = np.max(count.log_likelihood(2.0 * np.log(typical[:, None] * [0.7, 0.9, 1.0, 1.1])), axis=1)
        ends = []
        for outer in (np.zeros_like(typical), far):
            inside, outside = typical.copy(), outer.copy()
            for _ in range(_HALVINGS):
                middle = (inside + outside) / 2.0
                is_inside = below_top(middle) > -_DEPTH
                inside, outside = np.where(is_inside, middle, inside), np.where(is_inside, outside, middle)
            ends.append(outside)
        low, high = ends
        low = np.where(below_top(np.zeros_like(low)) > -_DEPTH, 0.0, low)
        step = (high - low) / (_TABLE - 1)
        root = low[:, None] + step[:, None] * np.arange(_TABLE)
        value = count.log_likelihood(2.0 * np.log(np.maximum(root, 1e-9)))
        place = np.arange((_TABLE - 1) * _FINER + 1) / _FINER
        first = np.clip(place.astype(np.int64) - 1, 0, _TABLE - 4)
        taps = [value[:, first + tap] * weight for tap, weight in enumerate(cubic(place - first))]
        return cls(value=np.sum(taps, axis=0), low=low, step=step / _FINER)

    def __call__(self, rows: Rows, mean: Floats) -> Floats:
        """Return log A of some counts at means (n_counts, n_points); minus infinity beyond the table."""
        length = self.value.shape[1]
        place = np.sqrt(mean)
        place -= self.low[rows, None]
        place *= 1.0 / self.step[rows, None]
        is_beyond = (place < 0.0) | (place > length - 1)
        np.clip(place, 0.0, length - 1.001, out=place)
        first = place.astype(np.int32)
        place -= first
        first += (rows * length).astype(np.int32)[:, None]
        flat = self.value.ravel()
        value = flat.take(first)
        first += 1
        rise = flat.take(first)
        rise -= value
        rise *= place
        value += rise
        value[is_beyond] = -np.inf
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class CountCells:
    """Cells with noisy counts of true and of false; a ``CellsSource``.

    Attributes
    ----------
    true, false : NoisyCount
    n_prior : NPrior
        One of which ``log_mixing`` knows the density.
    """

    true: NoisyCount
    false: NoisyCount
    n_prior: NPrior
    _tables: dict[str, tuple[CountTable, Rows]] = field(default_factory=dict, repr=False, compare=False)

    def _log_likelihood(self, name: str, cells: Cells, mean: Floats) -> Floats:
        """Log A of the counts of that name, (n_cells, n_positions, n_sizes)."""
        if name not in self._tables:
            count: NoisyCount = getattr(self, name)
            _, first, of_cell = np.unique(count.values, axis=0, return_index=True, return_inverse=True)
            self._tables[name] = CountTable.of(count.take(first)), of_cell.reshape(-1)
        table, of_cell = self._tables[name]
        return table(of_cell[cells], mean.reshape(len(cells), -1)).reshape(mean.shape)

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return len(self.true.values)

    @property
    def has_sizes(self) -> bool:
        """True."""
        return True

    @property
    def middle(self) -> float:
        """The logit of the share of all counts together."""
        true, false = (
            max(float(np.sum(np.mean(each.values, axis=1))), float(np.min(each.scales)), 0.5)
            for each in (self.true, self.false)
        )
        return float(np.log(true / false))

    def moved(self, cells: Cells, shifts: Floats) -> Self:
        """Return the given cells with so many counts moved from false to true."""
        true, false = (
            NoisyCount(values=each.values[cells] + sign * shifts[:, None], scales=each.scales)
            for each, sign in ((self.true, 1.0), (self.false, -1.0))
        )
        return replace(self, true=true, false=false, _tables={})

    def parts(self, cells: Cells) -> tuple[Floats, Floats, Floats, float]:
        """Return counts of true and of false, the number of records, and the scale of the noise."""
        true, false = (np.mean(each.values[cells], axis=1) for each in (self.true, self.false))
        scale = float(np.min(self.true.scales))
        return true, false, np.maximum(true + false, scale), scale

    def records(self, position: Floats, log_size: Floats, rng: np.random.Generator) -> Floats:
        """Draw numbers of records given logits and log mean sizes, (draws, n_cells): both latent counts."""
        mean = np.expm1(log_size)
        share = 1.0 / (1.0 + np.exp(-position))
        return drawn_counts(self.true, share * mean, rng) + drawn_counts(
            self.false, (1.0 - share) * mean, rng
        )

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        """Nodes of some cells: of the logit, and of log mean sizes."""
        true, false = self.true.take(cells), self.false.take(cells)
        b = float(np.min(true.scales))
        y1, y0 = (np.maximum(np.mean(each.values, axis=1), b + 0.5) for each in (true, false))
        logit = np.log(y1 / y0)
        spread = np.sqrt((y1 + 2.0 * b**2) / y1**2 + (y0 + 2.0 * b**2) / y0**2)
        x, log_dx = nodes_of_positions(logit, spread, focus, (-60.0, 34.0))
        size = np.maximum(np.mean(true.values + false.values, axis=1), b + 0.5)
        error = np.sqrt(size + 4.0 * b**2)
        far = _FARTHEST * b + 8.0 * np.sqrt(size) + 8.0
        log_mean, log_step = dense_nodes(
            np.log(np.maximum(size - far, _SMALLEST)),
            np.log(size + far),
            np.log(size),
            np.minimum(error / size, 1.0),
            n=SIZES,
        )
        mean = np.exp(log_mean)
        prior = log_mixing(self.n_prior, mean)
        assert prior is not None  # noqa: S101 - as is stated of n_prior
        share = 1.0 / (1.0 + np.exp(-x))
        log_weight = (
            self._log_likelihood("true", cells, share[:, :, None] * mean[:, None, :])
            + self._log_likelihood("false", cells, (1.0 - share)[:, :, None] * mean[:, None, :])
            + (log_step + prior + log_mean)[:, None, :]
        )
        return Nodes.of(x, log_dx, np.log1p(mean), log_weight)
