r"""The likelihood of a mean rate of cells that vary more, or less, than a Poisson count, from noisy counts.

Models. With L of ``published_counts``, either every cell has a rate of its own about the mean one,

.. math::
    \lambda_c \sim \mathrm{Gamma}(k, k / \lambda), \quad n_c \sim \mathrm{Poisson}(\lambda_c E_c), \quad
    k = v^{-2}, \qquad (1)

so that counts are negative binomial, of the mean m = lambda E and the variance m + v^2 m^2:

.. math::
    p(n \mid \lambda, v) = \frac{\Gamma(n + k)}{\Gamma(k) \, n!}
    \Bigl(\frac{k}{k + m}\Bigr)^k \Bigl(\frac{m}{k + m}\Bigr)^n; \qquad (2)

or events are more regular than chance, as those of a timetable: of X ~ Poisson(r m) every r-th counts, from a
random one on,

.. math::
    p(n \mid \lambda, r) = \sum_{|j| < r} \Bigl(1 - \frac{|j|}{r}\Bigr) P(X = r n + j), \qquad (3)

of the mean m too, and a variance of about m / r + 1/6. Near v = 0 and with r = 1 cells share a Poisson rate.
What v or r is nobody says; they are summed out:

.. math::
    p(y \mid \lambda) = \sum_h \pi_h \prod_c \sum_{n \ge 0} p(n \mid \lambda, h) \, L_c(n), \qquad
    \pi(v) \propto e^{-v^2 / 2 s^2}, \quad v \le 4, \qquad (4)

half of the prior on v, a half-normal one: even near 0, on whatever scale counts are, and weak beside a month
of cells; and half on r, even over ``REGULAR``. Few cells do not hold a large v off: at v = 2 the likelihood
of N of them falls as slowly as :math:`\lambda^{-N / 4}`, so that a longer tail of v would make means of a few
cells what the prior of lambda has as its end.

Symbols:

- lambda: the mean rate, by its logarithm ``position``
- v: ``spread``, the standard deviation of rates over their mean; s: ``SCALE``
- r: ``every``, a whole number
- E: ``size``, the exposure

Method. Counts are those of ``SharedLikelihood``; cells that need the same p(n | lambda, h) share it. The
integral over v is the trapezoidal rule at ``SPREADS`` values of log v, where the posterior of lambda and v is
not lower by ``LEFT_OUT`` than where it is highest: they are closer than a standard deviation, and what they
miss is less than what is left out. Of r those are left out that are lower by as much.

References
----------
Gelman. Prior distributions for variance parameters in hierarchical models. Bayesian Analysis 1, 2006. Cox.
Renewal theory. 1962 (of an equilibrium process with Erlang intervals, which (3) counts).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.published_counts import BATCH, SharedLikelihood

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.engines.published_counts import Shared
    from suffice.typing import Floats

SCALE = 0.5
"""Of the prior of v: two in three are below it."""
ENDS = (1e-4, 4.0)
"""Of v: below the first, cells of less than a hundred million vary as if they shared a rate."""
SPREADS = 24
LEFT_OUT = 12.0
REGULAR = (2, 3, 4, 6, 8, 12)
_GRID = (9, 13)
"""Values of log v and of log lambda on which a round looks for the range."""
_ROUNDS = 16
_NONE = np.empty(0)
_LOG_REGULAR = -math.log(2.0 * len(REGULAR))


class VaryingLikelihood(SharedLikelihood):
    """The log likelihood of a mean rate: (4).

    Parameters
    ----------
    cells : sequence of LatentCount
    nats : float
        As in ``SharedLikelihood``.
    log_prior : callable
        Log density of the prior of log lambda.
    edges : ndarray of shape (n_edges,), float64
        Its support, ascending.
    """

    def __init__(
        self, cells: Shared, nats: float, log_prior: Callable[[Floats], Floats], edges: Floats
    ) -> None:
        from scipy.sparse import csr_array
        from scipy.special import gammaln

        super().__init__(cells, Line.LOGARITHM, nats)
        times, counts, sizes, constants = zip(*self._terms, strict=True)
        lengths = list(map(len, counts))
        pairs, column = np.unique(
            np.stack([np.concatenate(sizes), np.concatenate(counts)]), axis=1, return_inverse=True
        )
        self._times = np.array(times, dtype=np.float64)
        self._sizes, self._size_of = np.unique(pairs[0], return_inverse=True)
        self._counts = pairs[1]
        self._constants = pairs[1] * np.log(pairs[0]) - gammaln(pairs[1] + 1.0)
        # Of every cell's likelihood of counts, relative to its largest.
        column = column.ravel()
        log_weight = np.concatenate(constants) - self._constants[column]
        row = np.repeat(np.arange(len(times)), lengths)
        self._top = np.maximum.reduceat(log_weight, np.cumsum([0, *lengths[:-1]]))
        weight = np.exp(log_weight - self._top[row])
        self._weights = csr_array((weight, (row, column)), shape=(len(times), len(self._counts)))
        self._log_spreads, box, top = self._range(log_prior, edges)
        self._every = self._regular(log_prior, edges, box, top)

    def __call__(self, position: Floats) -> Floats:
        """Return the log likelihood at positions of any shape."""
        value = self.by_shape(position.ravel())
        return np.asarray(np.logaddexp.reduce(value, axis=0).reshape(position.shape))

    def by_shape(self, position: Floats) -> Floats:
        """Return the log likelihood by the spread or regularity of counts, (n_shapes, n_positions)."""
        value = self._at(position, self._log_spreads, self._every)
        spreads = len(self._log_spreads)
        step = self._log_spreads[1] - self._log_spreads[0]
        value[:spreads] += (log_spread_prior(self._log_spreads) + math.log(step))[:, None]
        value[[0, spreads - 1]] -= math.log(2.0)
        value[spreads:] += _LOG_REGULAR
        return value

    def log_counts(self, counts: Floats, position: float, shape: int) -> Floats:
        """Return log probabilities of counts of one unit of exposure, given a rate and a shape."""
        from scipy.special import gammaln

        if shape < len(self._log_spreads):  # (2)
            k = math.exp(-2.0 * self._log_spreads[shape])
            mean = math.exp(position)
            constants = gammaln(counts + k) - gammaln(k) - gammaln(counts + 1.0)
            varied: Floats = constants + counts * (position - math.log(k + mean)) - k * math.log1p(mean / k)
            return varied
        every = self._every[shape - len(self._log_spreads)]
        log_mean = math.log(every) + position
        apart = np.arange(1.0 - every, every)
        events = np.add.outer(every * counts, apart)
        log_term = np.log1p(-np.abs(apart) / every) + np.where(
            events >= 0.0,
            events * log_mean - math.exp(log_mean) - gammaln(np.maximum(events, 0.0) + 1.0),
            -np.inf,
        )
        spaced: Floats = np.logaddexp.reduce(log_term, axis=1)  # (3)
        return spaced

    def left_out(self, position: float) -> float:
        """Return how far a cell's likelihood is below its largest at a position, in nats: the farthest."""
        at = np.array([position])
        best = int(np.argmax(self._at(at, self._log_spreads, self._every)))
        spreads = len(self._log_spreads)
        likelihood = (
            self._varied(at, self._log_spreads[best])
            if best < spreads
            else self._spaced(at, self._every[best - spreads])
        )
        return float(np.max(np.array(self._largest) - likelihood[:, 0]))

    def _at(self, position: Floats, log_spreads: Floats, every: tuple[int, ...] = ()) -> Floats:
        """Return log likelihoods of lambda and v, then r, (n_spreads + n_every, n_positions)."""
        value = np.empty((len(log_spreads) + len(every), len(position)))
        step = max(1, BATCH // len(self._counts))
        for start in range(0, len(position), step):
            part = slice(start, start + step)
            for row, log_spread in enumerate(log_spreads.tolist()):
                value[row, part] = self._times @ self._varied(position[part], log_spread)
            for row, each in enumerate(every, len(log_spreads)):
                value[row, part] = self._times @ self._spaced(position[part], each)
        return value

    def _varied(self, position: Floats, log_spread: float) -> Floats:
        """Return log likelihoods of the cells, (n_cells, n_positions), by (2)."""
        from scipy.special import gammaln

        k = math.exp(-2.0 * log_spread)
        mean = np.multiply.outer(self._sizes, np.exp(position))
        # Its parts that are of lambda by the sizes that occur.
        slope, level = position - np.log(k + mean), -k * np.log1p(mean / k)
        log_term = slope[self._size_of] * self._counts[:, None]
        log_term += level[self._size_of]
        log_term += (self._constants + gammaln(self._counts + k) - gammaln(k))[:, None]
        return self._of_cells(np.exp(log_term, out=log_term))

    def _spaced(self, position: Floats, every: int) -> Floats:
        """Return log likelihoods of the cells by (3): one term, and others by ratios of neighbours."""
        from scipy.special import gammaln

        # Of a mean that is next to nothing no count but 0 is possible, whatever it is.
        mean = np.maximum(every * np.multiply.outer(self._sizes, np.exp(position))[self._size_of], 1e-290)
        count = (every * self._counts)[:, None]
        middle = np.exp(count * np.log(mean) - mean - gammaln(count + 1.0))
        total, below, above = middle.copy(), middle, middle
        for apart in range(1, every):
            below = below * np.maximum(count - apart + 1.0, 0.0) / mean
            above = above * mean / (count + apart)
            total += (1.0 - apart / every) * (below + above)
        return self._of_cells(total)

    def _of_cells(self, probability: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            likelihood: Floats = np.log(self._weights @ probability) + self._top[:, None]
        return likelihood

    def _range(self, log_prior: Callable[[Floats], Floats], edges: Floats) -> tuple[Floats, Floats, float]:
        """Return values of log v, the ends of log lambda, and the top.

        A box about what is likely moves and shrinks until it fits.
        """
        bounds = np.array([np.log(ENDS), [edges[0], edges[-1]]])
        box = np.array([bounds[0], np.clip(self.around[[0, -1]], *bounds[1])])
        for _ in range(_ROUNDS):
            axes = [np.linspace(ends[0], ends[1], size) for ends, size in zip(box, _GRID, strict=True)]
            value = self._at(axes[1], axes[0]) + log_spread_prior(axes[0])[:, None] + log_prior(axes[1])
            likely = np.argwhere(value > np.max(value) - LEFT_OUT)
            if not len(likely):  # nothing is possible here: all that is asked is refused
                break
            before = box.copy()
            for axis, (first, last) in enumerate(zip(likely.min(axis=0), likely.max(axis=0), strict=True)):
                points, width = axes[axis], before[axis, 1] - before[axis, 0]
                step = width / (len(points) - 1)
                # Where the likely reaches an end, it may go on beyond.
                low = points[first] - (width / 2.0 if first == 0 else step)
                high = points[last] + (width / 2.0 if last == len(points) - 1 else step)
                box[axis] = np.clip([low, high], *bounds[axis])
            if np.all(np.abs(box - before) < 0.1 * (before[:, 1] - before[:, 0])[:, None]):
                break
        return np.linspace(box[0, 0], box[0, 1], SPREADS), box[1], float(np.max(value))

    def _regular(
        self, log_prior: Callable[[Floats], Floats], edges: Floats, box: Floats, top: float
    ) -> tuple[int, ...]:
        """Return the r that are likely, up to the first that is not."""
        kept: list[int] = []
        for every in REGULAR:
            ends, best = box.copy(), -math.inf
            for _ in range(_ROUNDS):
                points = np.linspace(ends[0], ends[1], 2 * _GRID[1])
                value = self._at(points, _NONE, (every,))[0] + log_prior(points)
                place, before = int(np.argmax(value)), best
                best, width = float(value[place]), ends[1] - ends[0]
                if abs(best - before) < 0.1:
                    break
                half = width / 2.0 if place in {0, len(points) - 1} else 3.0 * width / len(points)
                ends = np.clip(points[place] + np.array([-half, half]), edges[0], edges[-1])
            if not best + _LOG_REGULAR > top - LEFT_OUT:
                break
            top = max(top, best + _LOG_REGULAR)
            kept.append(every)
        return tuple(kept)


def log_spread_prior(log_spread: Floats) -> Floats:
    """Return the log density of log v: half of the prior, between its ends."""
    # (4) times v, for the density of the logarithm; the ends hold all of it but a part in a thousand.
    density: Floats = (
        log_spread - np.exp(2.0 * log_spread) / (2.0 * SCALE**2) - math.log(SCALE * math.sqrt(2.0 * math.pi))
    )
    return density
