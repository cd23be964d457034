r"""Noisy sums of one statistic T, and the joint weight of the latent number of rows N and their sum S.

Model: N rows have a prior :math:`\pi(N)`; T of each has a distribution with a parameter
:math:`\theta` under its conjugate prior; a release adds independent discrete Laplace noise of scale b to
:math:`A = (S - \text{lower} N) / \text{step}` and, where N is private, to :math:`R N - A`. The question is
how probable each pair (N, S) is given the release. With :math:`\theta` integrated out,

.. math::
    W(N, S) = \pi(N) \, p(S \mid N) \prod_l e^{-|y_{1l} - A| / b_l} \, e^{-|y_{2l} - (R N - A)| / b_l}
    \qquad (1)

    p(S \mid N) = \int p(S \mid N, \theta) \, p(\theta) \, d\theta \qquad (2)

    (a)_c = \Gamma(a + c) / \Gamma(a) \qquad (3)

The product in (1) is over releases l of the same sums. Where N is public only :math:`y_1` is released.

Method: (2) has a closed form for every conjugate pair, stated in its class. Each is written in ratios (3),
in which no two large log gammas cancel: N and S go up to 1e15. Nothing here is approximate but ``profile``,
by which a range of N is divided before it is summed: it is the log of about :math:`\sum_S W(N, S)`.

========= ===================== ================================ ================= ================
symbol    in the code           meaning                          shape             unit
========= ===================== ================================ ================= ================
N         ``n``                 number of records                (n_rows,)         records
S         ``total``             sum of T                         (n_rows, n)       that of T
A         ``amount``            S above ``lower`` N              (n_rows, n)       lattice steps
x         ``position``          A, or log A where S > 0          (n_rows, n)       steps, or none
y         ``totals.values``     released sums                    (n_cells, n_sums) lattice steps
b         ``totals.scale``      scale of the noise               (n_sums,)         lattice steps
1 / b     ``totals.rate``       fall of the log density          (n_sums,)         nats a step
R         ``coefficients``      range of T                       (n_sums, 2)       lattice steps
========= ===================== ================================ ================= ================
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

import numpy as np

from suffice.pipeline.math.distributions.adaptive_blocks import NATS
from suffice.pipeline.math.engines.multinomial.noisy_counts import log_rising
from suffice.pipeline.terms.released.noise_distribution import log_laplace

if TYPE_CHECKING:
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
    from suffice.typing import Cells, Floats


class SumSupport(StrEnum):
    """Where a sum may lie, and so how sums over it are taken."""

    INTEGERS = "integers"
    """0, 1, 2, ...: summed."""
    POSITIVE = "positive"
    """Above 0: integrated over its logarithm, in which powers of it are smooth at 0."""
    REAL = "real"
    """Any real number: integrated."""


class Marginal(Protocol):
    """What is needed of the distribution of S given N."""

    @property
    def support(self) -> SumSupport:
        """Where S may lie."""

    @property
    def most_per_row(self) -> float:
        """Upper bound of S / N; infinity where there is none."""

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log of p(S | N) inside of the support, N >= 1; arrays broadcast, and so does what is returned."""

    def typical(self, n: Floats) -> Floats:
        """A sum near the highest probability or density: where a search for the mode starts."""

    def spread(self, total: Floats, n: Floats) -> Floats:
        """Standard deviation of a position given N and the parameter under which S is expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaBinomial:
    r"""Successes among m N trials, of a probability with a :math:`\mathrm{Beta}(a, b)` prior.

    .. math:: p(S \mid N) = \frac{(a)_S}{S!} \frac{(b)_{mN - S}}{(mN - S)!} \frac{(mN)!}{(a + b)_{mN}}
    """

    concentration1: float
    concentration0: float
    trials: float
    support: ClassVar[SumSupport] = SumSupport.INTEGERS

    @property
    def most_per_row(self) -> float:
        """All trials."""
        return self.trials

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log probability."""
        trials = self.trials * n
        return (
            # (2) is the ratio of Beta functions times the binomial coefficient; each factor is one (3) over
            # c!.
            log_rising_ratio(self.concentration1, total)
            + log_rising_ratio(self.concentration0, trials - total)
            - log_rising_ratio(self.concentration1 + self.concentration0, trials)
        )

    def spread(self, total: Floats, n: Floats) -> Floats:
        """That of S, or of its logarithm."""
        # m N p (1 - p) at p = S / (m N).
        return np.sqrt(total * (1.0 - total / (self.trials * n)))

    def typical(self, n: Floats) -> Floats:
        """The mode, where there is one."""
        a, b = max(self.concentration1 - 1.0, 0.0), max(self.concentration0 - 1.0, 0.0)
        share = (
            a / (a + b) if a + b > 0.0 else self.concentration1 / (self.concentration1 + self.concentration0)
        )
        return np.rint(share * self.trials * n)


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaPoisson:
    r"""Sum of N Poisson counts of a rate with a :math:`\mathrm{Gamma}(a, b)` prior: a negative binomial.

    .. math:: p(S \mid N) = \frac{(a)_S}{S!} \Bigl(\frac{b}{b + N}\Bigr)^a \Bigl(\frac{N}{b + N}\Bigr)^S
    """

    concentration: float
    rate: float
    support: ClassVar[SumSupport] = SumSupport.INTEGERS
    most_per_row: ClassVar[float] = np.inf

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log probability."""
        return (
            # (2): (a)_S / S! (b / (b + N))^a (N / (b + N))^S; log1p keeps what is left where b and N differ
            # much.
            log_rising_ratio(self.concentration, total)
            - self.concentration * np.log1p(n / self.rate)
            - total * np.log1p(self.rate / n)
        )

    def spread(self, total: Floats, n: Floats) -> Floats:  # noqa: ARG002 - as the others
        """That of S, or of its logarithm."""
        # N lambda at lambda = S / N.
        return np.sqrt(total)

    def typical(self, n: Floats) -> Floats:
        """The mode."""
        return np.floor(max(self.concentration - 1.0, 0.0) / self.rate * n)


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaNegativeBinomial:
    r"""Failures before r N successes, of a probability of success with a :math:`\mathrm{Beta}(a, b)` prior.

    .. math:: p(S \mid N) = \frac{rN}{rN + S} \frac{(a)_{rN}}{\Gamma(rN + 1)} \frac{(b)_S}{S!}
        \frac{\Gamma(rN + S + 1)}{(a + b)_{rN + S}}
    """

    concentration1: float
    concentration0: float
    successes: float
    support: ClassVar[SumSupport] = SumSupport.INTEGERS
    most_per_row: ClassVar[float] = np.inf

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log probability."""
        successes = self.successes * n
        return (
            # (2) with (rN)_S / S! = Gamma(rN + S + 1) / (Gamma(rN + 1) S!) times rN / (rN + S), the last
            # term.
            log_rising_ratio(self.concentration1, successes)
            + log_rising_ratio(self.concentration0, total)
            - log_rising_ratio(self.concentration1 + self.concentration0, successes + total)
            - np.log1p(total / successes)
        )

    def spread(self, total: Floats, n: Floats) -> Floats:
        """That of S, or of its logarithm."""
        # r N (1 - p) / p^2 at p = r N / (r N + S).
        return np.sqrt(total * (1.0 + total / (self.successes * n)))

    def typical(self, n: Floats) -> Floats:
        """About the mode."""
        ratio = max(self.concentration0 - 1.0, 0.0) / (self.concentration1 + 1.0)
        return np.floor(ratio * np.maximum(self.successes * n - 1.0, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaGamma:
    r"""Sum of shape k N and a rate with a :math:`\mathrm{Gamma}(a, b)` prior: a scaled beta prime.

    .. math:: p(S \mid N) = \frac{w}{B(kN, a)} \frac{b^a (w S)^{kN - 1}}{(b + w S)^{kN + a}}

    where w S given the rate r is :math:`\mathrm{Gamma}(kN, r)`.
    """

    concentration: float
    rate: float
    shape: float = 1.0
    share: float = 1.0
    support: ClassVar[SumSupport] = SumSupport.POSITIVE
    most_per_row: ClassVar[float] = np.inf

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log density."""
        shape, part = self.shape * n, self.share * total
        return (
            # (2): 1 / B(kN, a) is (a)_kN kN / (kN)!, so that no log Beta of two large numbers is needed.
            log_rising_ratio(self.concentration, shape)
            + np.log(shape)
            - self.concentration * np.log1p(part / self.rate)
            - shape * np.log1p(self.rate / part)
            - np.log(total)
        )

    def spread(self, total: Floats, n: Floats) -> Floats:
        """That of S, or of its logarithm."""
        # log S has a variance of about 1 / (k N).
        return np.broadcast_to(1.0 / np.sqrt(self.shape * n), np.broadcast_shapes(total.shape, n.shape))

    def typical(self, n: Floats) -> Floats:
        """The mode of the logarithm of S."""
        return self.rate * self.shape * n / self.concentration / self.share


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalNormal:
    r"""Sum of N normals of variance v and a mean with a :math:`\mathrm{Normal}(m, s)` prior.

    .. math:: S \mid N \sim \mathrm{Normal}(N m, \sqrt{N v + N^2 s^2})
    """

    loc: float | Floats
    scale: float
    variance: float
    support: ClassVar[SumSupport] = SumSupport.REAL
    most_per_row: ClassVar[float] = np.inf

    def log_prob(self, total: Floats, n: Floats) -> Floats:
        """Log density."""
        # Var S = E Var(S | mu) + Var E(S | mu) = N v + N^2 s^2; the root is split, as N^2 would overflow
        # early.
        deviation = np.sqrt(n) * np.sqrt(self.variance + n * self.scale**2)
        standard = (total - n * self.loc) / deviation
        log_prob: Floats = -0.5 * standard * standard - np.log(deviation) - 0.5 * np.log(2.0 * np.pi)
        return log_prob

    def spread(self, total: Floats, n: Floats) -> Floats:
        """That of S, or of its logarithm."""
        return np.broadcast_to(np.sqrt(self.variance * n), np.broadcast_shapes(total.shape, n.shape))

    def typical(self, n: Floats) -> Floats:
        """The mode."""
        return n * self.loc


def log_rising_ratio(concentration: float, count: Floats) -> Floats:
    r"""Log of :math:`(a)_c / c!`, as ``log_rising``, of one concentration."""
    if concentration == 1.0:  # nothing, whatever the counts
        return np.zeros(())
    return log_rising(np.array([concentration]), count)


_CLOSE = 4.0
"""Nats below a bound at which the best of a few locations counts as the mode."""
_LEVEL = 1e-3
"""Nats that a mode may be higher than where it is taken to be."""
_SECTIONS, _EIGHTHS = 11, np.linspace(0.0, 1.0, 9)
_LOWEST_LOG = -600.0
_LONGEST_LOG = 5.0
"""Rational functions of S have poles pi away from the real logarithms of S."""
_NEAR_END = (12.0, 108.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisySums:
    """Noisy sums and the distribution that they came from.

    Attributes
    ----------
    totals : NoisyTotals
        The sums of X - lowest and, unless N is public, of highest - X, in lattice steps. They are linear in
        N and A: by 0 and 1, and by R and -1.
    step, lower : float
        S = lower N + step A, in T's unit.
    marginal : Marginal
        The distribution of S given N under the prior.
    n_prior : NPrior
        The prior of N; ``Fixed`` where N is public.
    from_nothing : bool
        Whether sums down to 0 are looked at, however unlikely the noise is there.
    """

    totals: NoisyTotals
    step: float
    lower: float
    marginal: Marginal
    n_prior: NPrior
    from_nothing: bool = False

    def take(self, cells: Cells) -> Self:
        """The given cells, in the given order."""
        return replace(self, totals=self.totals.take(cells))

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.totals.n_cells

    @property
    def change_per_row(self) -> float:
        """Nats by which the noise's distribution changes at most where N changes by 1 and A does not."""
        return float(self.totals.coefficients[:, 0] @ self.totals.rate)

    @property
    def is_sum(self) -> bool:
        """Whether sums are whole numbers of steps."""
        return self.marginal.support is SumSupport.INTEGERS

    @property
    def fall(self) -> float:
        """Nats by which the noise's distribution falls per step, beyond all kinks."""
        return float(np.sum(self.totals.rate))

    def kinks(self, cell: Cells, n: Floats) -> Floats:
        """A at which the slope of the noise's distribution jumps, (n_rows, n_kinks), ascending."""
        return np.stack(self._kinks(cell, n), axis=1)

    def _kinks(self, cell: Cells, n: Floats) -> list[Floats]:
        return functools.reduce(_inserted, self._kinks_of_rows(cell, n), [])

    def _kinks_of_rows(self, cell: Cells, n: Floats) -> list[Floats]:
        """Where the noise of every row of the totals has its kink; n is (n_rows,)."""
        return [
            # |y - A| has its kink at A = y; |y - (R N - A)| at A = R N - y.
            reach * n - value[cell] if reach else value[cell]
            for value, (reach, _) in zip(self.totals.values.T, self.totals.coefficients.tolist(), strict=True)
        ]

    def law(self, cell: Cells, axes: int) -> Marginal:  # noqa: ARG002 - ``SumsOfParameters`` needs both
        """The distribution of S given N in rows of cells, the first of so many axes."""
        return self.marginal

    def log_density(self, cell: Cells, n: Floats, position: Floats) -> Floats:
        """Log of the probability or density of positions given N; n >= 1 and positions broadcast.

        A position is A itself, or its logarithm where S is above 0.
        """
        log_prob = self.law(cell, n.ndim).log_prob(self.total(n, self.amount(position)), n)
        if self.is_sum:
            return np.broadcast_to(log_prob, np.broadcast_shapes(n.shape, position.shape))
        # Of A, not of S: no rows at all have a probability, and it has to be weighed against densities.
        log_prob = np.add(log_prob, np.log(self.step))
        # The density of log A is that of A times dA / d log A = A.
        return log_prob + position if self.marginal.support is SumSupport.POSITIVE else log_prob

    def log_noise(self, cell: Cells, n: Floats, position: Floats) -> Floats:
        """Log density of the noise, unnormalised, at positions (n_rows, n_positions); n is (n_rows, 1)."""
        kinks = self._kinks_of_rows(cell, n[:, 0])
        return log_laplace(self.amount(position), [kink[:, None] for kink in kinks], self.totals.rate)

    def log_weight(self, cell: Cells, n: Floats, position: Floats) -> Floats:
        """Log of p(S | N) times noise, at (n_rows, n_positions); n is (n_rows, 1)."""
        # (1) but for the prior of N.
        return self.log_density(cell, n, position) + self.log_noise(cell, n, position)

    def log_joint(self, cell: Cells, n: Floats, position: Floats) -> Floats:
        """Log of W at positions (n_rows, n_positions), n (n_rows,); where n is 0, every position is S = 0."""
        rows = np.maximum(n, 1.0)[:, None]
        value = self.log_weight(cell, rows, position)
        none = n < 1.0
        if np.any(none):
            # No records have the sum 0 for certain: (1) is the noise at N = 0, A = 0, a probability, not a
            # density.
            value[none] = self.log_weight_of_none(cell[none])[:, None]
        # (1) in full.
        return value + self.n_prior.log_prob(n)[:, None]

    def amount(self, position: Floats) -> Floats:
        """A at a position."""
        return np.exp(position) if self.marginal.support is SumSupport.POSITIVE else position

    def total(self, n: Floats, amount: Floats) -> Floats:
        """S, in T's unit."""
        if self.is_sum:  # the lattice is that of the counts
            return amount
        total: Floats = self.lower * n + self.step * amount
        return total

    def least_n(self, position: Floats) -> Floats:
        """The least N, not only of the integers, with which a position is possible."""
        return position * self.step / self.marginal.most_per_row if self.is_sum else np.zeros_like(position)

    def log_weight_of_none(self, cell: Cells) -> Floats:
        """Log of the noise's distribution where N and A are 0."""
        log_noise: Floats = -self.totals.take(cell).distance(np.zeros(2))
        return log_noise

    def longest(self, left: Floats) -> Floats:
        """How long a block of positions may be for rational functions of S to be smooth in it."""
        if self.marginal.support is SumSupport.INTEGERS:
            return 9.0 * left + 12.0
        return np.full_like(left, _LONGEST_LOG if self.marginal.support is SumSupport.POSITIVE else np.inf)

    def spread(self, n: Floats, position: Floats) -> Floats:
        """How wide positions are given N and a parameter under which this one is expected."""
        spread = self.marginal.spread(self.total(n, self.amount(position)), n)
        if self.marginal.support is SumSupport.INTEGERS:
            return np.maximum(spread, 1.0)
        return spread / self.step if self.marginal.support is SumSupport.REAL else spread

    def breaks(self, cell: Cells, n: Floats) -> Floats:
        """Positions (n_rows, n_positions), ascending: kinks, a typical one, ends with little beyond."""
        kinks = self._kinks(cell, n)
        if self.is_sum:  # where a kink is between two integers, the next one is the first beyond it
            kinks = [np.ceil(kink) for kink in kinks]
        typical = self._typical(cell, n)
        # Beyond the outermost kinks the noise falls by sum(1 / b) nats a step, and p(S | N) is unimodal: so
        # what lies farther out than this has less than e^-NATS of the weight at the kink.
        margin = NATS / self.fall
        first, last = kinks[0] - margin, kinks[-1] + margin
        inner = _inserted([first, *kinks, last], typical)
        columns = [np.minimum(first, typical - margin), *inner, np.maximum(last, typical + margin)]
        if self.from_nothing:
            columns[0] = np.zeros_like(typical)
        if self.marginal.support is SumSupport.POSITIVE:
            least = np.exp(_LOWEST_LOG)
            columns = [np.log(np.maximum(column, least)) for column in columns]
        if self.is_sum:
            most = self.marginal.most_per_row * n / self.step
            columns = [np.minimum(np.maximum(np.rint(column), 0.0), most) for column in columns]
            columns[-1] = columns[-1] + 1.0
            if np.all(np.isfinite(most)):  # near its upper end a distribution may be as steep as near 0
                for distance in _NEAR_END:
                    near_end = np.minimum(np.maximum(most + 1.0 - distance, columns[0]), columns[-1])
                    columns = _inserted(columns, near_end)
        return np.stack(columns, axis=1)

    def _typical(self, cell: Cells, n: Floats) -> Floats:
        """A near the highest p(S | N); where that is at S below ``lower`` N, about the width of its fall."""
        least = self.lower * n
        typical: Floats = (self.law(cell, 1).typical(n) - least) / self.step
        below = np.flatnonzero(typical <= 0.0)
        if self.marginal.support is not SumSupport.POSITIVE or not below.size:
            return typical
        law, n, least = self.law(cell[below], 1), n[below], least[below]
        # All kinks may be below 0 too. Weights then fall from A = 0 on, by the noise and by p(S | N) in
        # turn: log A has its mode at about one over the slope of both.
        width = np.minimum(1.0 / self.fall, least / self.step)
        rise = law.log_prob(least + self.step * width, n) - law.log_prob(least, n)
        typical[below] = width / (self.fall * width + np.maximum(-rise, 0.0))
        return typical

    def profile(self, cell: Cells, n: Floats) -> Floats:
        """Log of the prior of N and of about the sum of W over S: (n_rows,), finite within the support."""
        rows = np.maximum(n, 1.0)
        breaks = self.breaks(cell, rows)
        if self.is_sum:
            breaks = np.minimum(breaks, breaks[:, -1:] - 1.0)
        else:
            breaks[:, 0], breaks[:, -1] = breaks[:, 1], breaks[:, -2]
        mass = self._mass_about(cell, rows, breaks)
        return np.where(n < 1.0, self.log_weight_of_none(cell), mass) + self.n_prior.log_prob(n)

    def _mass_about(self, cell: Cells, n: Floats, breaks: Floats) -> Floats:
        """Log of about the sum of W over S, but for the prior of N, from its values at breaks."""
        rows = n[:, None]
        density, noise = self.log_density(cell, rows, breaks), self.log_noise(cell, rows, breaks)
        weight = density + noise
        # Where prior and noise disagree, the mode may be at none of the breaks.
        # Along a long axis, which is many times as fast as along a short one.
        best, likeliest, nearest = (
            np.max(np.ascontiguousarray(values.T), axis=0) for values in (weight, density, noise)
        )
        apart = np.flatnonzero(likeliest + nearest - best > _CLOSE)
        if apart.size:
            density = density.copy()
            position = self._mode(cell[apart], n[apart], breaks[apart], np.argmax(weight[apart], axis=1))
            breaks[apart, 0] = position
            density[apart, 0] = self.log_density(cell[apart], n[apart, None], position[:, None])[:, 0]
            noise[apart, 0] = self.log_noise(cell[apart], n[apart, None], position[:, None])[:, 0]
        kinks = self.kinks(cell, n)
        wide = np.log(kinks[:, -1] - kinks[:, 0] + 2.0 / self.fall)[:, None]
        if self.marginal.support is SumSupport.POSITIVE:
            wide = wide - breaks
        # Of all of S, as much is about a break as there is room in what the noise leaves.
        # About a kink the noise leaves a width `wide`: within it p(S | N) has about min(1, p wide) of its
        # mass, here smoothly p wide / (1 + p wide).
        scarce = -density - wide
        room = noise - np.maximum(scarce, 0.0) - np.log1p(np.exp(-np.abs(scarce)))
        room = np.ascontiguousarray(room.T)
        top = np.max(room, axis=0)
        about: Floats = top + np.log(np.sum(np.exp(room - top), axis=0))
        return about

    def _mode(self, cell: Cells, n: Floats, breaks: Floats, best: Cells) -> Floats:
        """Where the weight is highest about the best of the breaks."""
        row = np.arange(len(n))
        left = breaks[row, np.maximum(best - 1, 0)]
        right = breaks[row, np.minimum(best + 1, breaks.shape[1] - 1)]
        mode = np.empty(len(n))
        active = row
        for _ in range(_SECTIONS):
            # Where log W is concave its mode is in one of the two eighths beside the best position.
            inner = left[:, None] + (right - left)[:, None] * _EIGHTHS
            value = self.log_weight(cell[active], n[active, None], inner)
            row = np.arange(len(active))
            best = np.argmax(value, axis=1)
            first, last = np.maximum(best - 1, 0), np.minimum(best + 1, 8)
            left, right = inner[row, first], inner[row, last]
            mode[active] = (left + right) / 2.0
            with np.errstate(invalid="ignore"):
                rise = value[row, best] - np.minimum(value[row, first], value[row, last])
            # Of what is concave the mode is no higher above the best than the best above both beside it.
            open_ = np.flatnonzero(~(rise < _LEVEL))
            if not open_.size:
                break
            active, left, right = active[open_], left[open_], right[open_]
        return mode


def _inserted(columns: list[Floats], further: Floats) -> list[Floats]:
    """Columns that ascend, with one more: much faster than sorting along short axes."""
    blocks = []
    for column in columns:
        blocks.append(np.minimum(column, further))
        further = np.maximum(column, further)
    return [*blocks, further]
