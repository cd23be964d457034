r"""Noisy sums of a normal column, and the density of the latent (N, m, E) behind them, with a bound on boxes.

Model: z = (x - centre) / half_range of N rows is normal with mean :math:`\mu` and variance
:math:`\sigma^2`, which have a :math:`\mathrm{NIG}(m_0, k_0, a_0, b_0)` prior. With t the sum of z and q
that of its squares, every released component is :math:`A N + B t + C q` plus Laplace noise. In terms of m =
t / N and the mean square deviation :math:`E = q / N - m^2` the component is

.. math:: L(N, m, E) = N (A + B m + C (m^2 + E)) \qquad (1)

The question is the posterior of the parameters and its evidence. With :math:`\alpha = (N - 1) / 2`,
:math:`\delta = a_0 + 1/2`, :math:`c = k_0 N / (k_0 + N)` and :math:`R = b_0 + c (m - m_0)^2 / 2` the
density of (m, log E) for N >= 2, parameters integrated out, is

.. math::
    \log p(m, \log E \mid N) = \log\frac{\Gamma(\alpha + \delta)}{\Gamma(\alpha)\Gamma(a_0)}
        - \delta \log\frac N 2 + a_0 \log b_0 + \frac 1 2 \log\frac c {2 \pi}
        - \alpha \log\Bigl(1 + \frac{2 R}{N E}\Bigr) - \delta \log\Bigl(\frac{2 R} N + E\Bigr) \qquad (2)

    \log p(N, m, \log E, y) = \log \pi(N) + \log p(m, \log E \mid N) - \sum_j |y_j - L_j| / b_j \qquad (3)

    (\mu, \sigma^2) \mid N, m, E \sim \mathrm{NIG}(m_N, \; k_0 + N, \; a_0 + N / 2, \; R + N E / 2) \qquad (4)

Of a mixture of priors (2) is a sum over the parts, each on boxes of its own. N = 1 has E = 0 and a density
in m alone; N = 0 is a point.

Method and error: on a box the last two terms of (2) are bounded by their values at the least R; in N the
first of them falls and the second rises, and in log E both together are concave, with a root of a quadratic
as the maximum. The noise is bounded through intervals of the ``functionals``. Integrals take two Gauss
nodes a side in every box; given these, moments are averages of closed forms (4). Nothing cancels at any N.

========= ================== ================================== =================== ==================
symbol    in the code        meaning                            shape               unit
========= ================== ================================== =================== ==================
y / b     ``observed``       released components                (n_cells, n_rows)   noise scales
A, B, C   ``rows``           (1) as linear functions            (n_rows, 3)         noise scales/record
m, log E  ``mean``,          mean, log mean square deviation    (n_points,)         half ranges
          ``log_e``
R / N     ``ratio``          residual scale over N              (n_points,)         half ranges^2
========= ================== ================================== =================== ==================
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import gammaln

from suffice.errors import PriorError
from suffice.pipeline.math.engines.multinomial.noisy_counts import log_rising, stirling_tail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
    from suffice.typing import Cells, Floats, Parts, Rows

BERNSTEIN = ((0.25, -0.5, 0.25), (0.5, 0.0, -0.5), (0.25, 0.5, 0.25))
"""(A, B, C) of ((1 - z) / 2)^2, 2 (1 - z) (1 + z) / 4 and ((1 + z) / 2)^2."""
MOMENTS = ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
"""(A, B, C) of t and q, beside a public N."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsPrior:
    """A finite mixture of normal inverse gamma distributions of the mean and the variance of z.

    Attributes
    ----------
    weight, loc, precision, concentration, scale : ndarray of shape (n_parts,) or (1,), float64
        Numbers of every part, or one that all have. Weights sum to 1 over the parts.
    """

    weight: Floats
    loc: Floats
    precision: Floats
    concentration: Floats
    scale: Floats

    @classmethod
    def of(cls, parts: Sequence[tuple[float, float, float, float, float]]) -> Self:
        """Return the mixture of parts, each a weight, loc, precision, concentration and scale.

        Raises
        ------
        PriorError
            Where numbers are too large or too small for quadrature in float64.
        """
        columns = np.array(parts, dtype=np.float64).T
        for name, column in zip(("precision", "concentration", "scale"), columns[2:], strict=True):
            if not np.all((column >= 1e-15) & (column <= 1e12)):
                message = (
                    f"noise-aware posteriors need a prior whose {name} (in half ranges, from the centre) is "
                    "in 1e-15..1e12: choose another prior"
                )
                raise PriorError(message)
        if np.any(np.abs(columns[1]) > 1e6):
            message = (
                "noise-aware posteriors need a prior whose loc is within a million half ranges of the centre"
            )
            raise PriorError(message)
        columns[0] /= np.sum(columns[0])
        # What all parts share is not looked up part by part.
        weight, *others = (column[:1] if np.all(column == column[0]) else column for column in columns)
        loc, precision, concentration, scale = others
        return cls(weight=weight, loc=loc, precision=precision, concentration=concentration, scale=scale)

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return max(len(getattr(self, field.name)) for field in fields(self))

    def at(self, part: Parts) -> Self:
        """Return the numbers of the given parts: arrays like `part`, or (1,) where all share one."""
        return type(self)(
            **{
                field.name: value if len(value := getattr(self, field.name)) == 1 else value[part]
                for field in fields(self)
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMoments:
    """Noisy components and the distribution that they came from, in half ranges about the centre.

    Attributes
    ----------
    totals : NoisyTotals
        In records; coefficients are A, B and C.
    prior : MomentsPrior
        Of the mean and the variance of z.
    n_prior : NPrior
        The prior of N; ``Fixed`` where N is public.
    """

    totals: NoisyTotals
    prior: MomentsPrior
    n_prior: NPrior

    def take(self, cells: Cells) -> Self:
        """The given cells, in the given order."""
        return replace(self, totals=self.totals.take(cells))

    @property
    def least_concentration(self) -> float:
        """The least concentration that the variance's inverse gamma may have, given the latent sums."""
        return float(np.min(self.prior.concentration)) + self.n_prior.support[0] / 2.0

    def functionals(self) -> tuple[Floats, Floats]:
        r"""Functionals (n_rows, 3) and what was observed of them (n_cells, n_rows), in units of the noise.

        First the components, then the sums of each release's with every pattern of signs: as
        :math:`\sum_j |x_j| \ge |\sum_j \pm x_j|`, each of those bounds the log density of its noise as well,
        and one of them is it wherever no component changes sign.
        """
        scaled = self.totals.in_scales()
        rows, observed = scaled.coefficients, scaled.values
        rows_of_release = len(rows) // scaled.releases
        signs = np.array(
            [(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=rows_of_release - 1)]
        )
        signs = np.kron(np.eye(scaled.releases), signs)
        return np.concatenate([rows, signs @ rows]), np.concatenate([observed, observed @ signs.T], axis=1)

    def estimates(self) -> Floats:
        """Unbiased N, t and q, (n_cells, 3): of several releases their mean by inverse variance."""
        scaled = self.totals.in_scales()
        rows, observed = scaled.coefficients, scaled.values
        if len(rows) == 3 * scaled.releases:
            return np.asarray(np.linalg.lstsq(rows, observed.T, rcond=None)[0].T, dtype=np.float64)
        n = float(self.n_prior.support[0])
        sums = np.linalg.lstsq(rows[:, 1:], (observed - n * rows[:, 0]).T, rcond=None)[0].T
        return np.concatenate([np.full((len(sums), 1), n), sums], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Normal inverse gamma distributions given latent sums: arrays of one shape, in half ranges."""

    loc: Floats
    precision: Floats
    concentration: Floats
    scale: Floats

    @classmethod
    def of(cls, prior: MomentsPrior, n: Floats, mean: Floats, log_e: Floats) -> Given:
        """Update the prior, of the part that each point belongs to, with N, m and log E."""
        # (4), with R = b_0 + k_0 N / (k_0 + N) (m - m_0)^2 / 2.
        precision = prior.precision + n
        shift = n / precision * (mean - prior.loc)
        between = prior.precision * shift * (mean - prior.loc) / 2.0
        return cls(
            loc=prior.loc + shift,
            precision=precision,
            concentration=prior.concentration + n / 2.0,
            scale=prior.scale + between + n * np.exp(log_e) / 2.0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Points with weights that stand for a density on boxes, cell by cell."""

    cell: Cells
    weight: Floats
    n: Floats
    given: Given
    log_evidence: Floats


def integrate(weights: MomentWeights, boxes: Boxes, levels: Floats | None = None) -> Nodes:
    """Nodes whose weights sum to 1 in every cell; ``log_evidence`` is the log of their sum before.

    With ``levels`` (n_cells, n_levels), equally likely design effects d, the distributions given the latent
    sums are those of N / d records with the same mean and mean square deviation.
    """
    cells = weights.noisy.totals.n_cells
    middle, half = (boxes.low + boxes.high) / 2.0, (boxes.high - boxes.low) / 2.0
    # Two points: exact for cubic polynomials over the integers of a side, and over an interval.
    half[:, 0] = np.sqrt(np.maximum((2.0 * half[:, 0] + 1.0) ** 2 - 1.0, 0.0) / 12.0)
    half[:, 1:] /= np.sqrt(3.0)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    points = (middle[:, None] + signs * half[:, None]).reshape(-1, 3)
    cell, part = np.repeat(boxes.cell, len(signs)), np.repeat(boxes.part, len(signs))
    log_weight = weights.log_weight(cell, part, *points.T) + np.repeat(boxes.log_volume(), len(signs))
    top = np.full(cells, -np.inf)
    np.maximum.at(top, cell, log_weight)
    weight = np.exp(log_weight - top[cell])
    total = np.bincount(cell, weight, cells)
    n, mean, log_e = points.T
    share = weight / total[cell]
    if levels is not None:  # level by level, so that a box's nodes stay together
        number = levels.shape[1]
        n = np.tile(n, number) / levels[cell].T.ravel()
        mean, log_e, part, share = (np.tile(column, number) for column in (mean, log_e, part, share / number))
        cell = np.tile(cell, number)
    return Nodes(
        cell=cell,
        weight=share,
        n=n,
        given=Given.of(weights.noisy.prior.at(part), n, mean, log_e),
        log_evidence=top + np.log(total) - np.log(len(signs)),
    )


def mean_moments(nodes: Nodes, cells: int) -> tuple[Floats, Floats]:
    """Posterior mean and standard deviation of the mean; infinite where there is no second moment."""
    given = nodes.given
    mean = _averages(nodes, given.loc, cells)
    # Given N, m, E the mean is t: Var = b_N / (k_N (a_N - 1)).
    within = _over(given.scale / given.precision, given.concentration - 1.0)
    between = (given.loc - mean[nodes.cell]) ** 2
    return mean, np.sqrt(_averages(nodes, within + between, cells))


def variance_moments(nodes: Nodes, cells: int) -> tuple[Floats, Floats]:
    """Posterior mean and standard deviation of the variance; infinite where there are none."""
    given = nodes.given
    # An inverse gamma has mean b / (a - 1) and variance mean^2 / (a - 2).
    centre = _over(given.scale, given.concentration - 1.0)
    within = _over(centre**2, given.concentration - 2.0)
    mean = _averages(nodes, centre, cells)
    between = np.full_like(centre, np.inf)
    m = mean[nodes.cell]
    np.subtract(centre, m, out=between, where=np.isfinite(m))
    return mean, np.sqrt(_averages(nodes, within + between**2, cells))


def _over(values: Floats, degrees: Floats) -> Floats:
    """Moments of distributions with so many degrees to spare; infinite where there are none to spare."""
    return np.divide(values, degrees, out=np.full_like(values, np.inf), where=degrees > 0.0)


def _averages(nodes: Nodes, values: Floats, cells: int) -> Floats:
    parts = np.multiply(nodes.weight, values, out=np.zeros_like(values), where=nodes.weight > 0.0)
    return np.asarray(np.bincount(nodes.cell, parts, cells), dtype=np.float64)


LOG_ZERO = -600.0
"""Stands for log E where E is 0."""
_MANY, _STIRLING = 1e4, 16.0
"""Concentrations from which on differences of gamma functions cancel; least number for Stirling's series."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """Boxes of N x m x log E, each of one cell and one part of its prior; both ends belong to the range of N.

    Attributes
    ----------
    cell, part : ndarray of shape (n_boxes,), int64
        The cell that a box is of, and the part of the prior.
    low, high : ndarray of shape (n_boxes, 3), float64
        Its corners, in N, m and log E; N = 1 has one log E, and N = 0 one m as well.
    """

    cell: Cells
    part: Parts
    low: Floats
    high: Floats

    def take(self, boxes: Rows) -> Self:
        """Return the given boxes."""
        low, high = (np.take(corner, boxes, axis=0) for corner in (self.low, self.high))
        return type(self)(cell=self.cell[boxes], part=self.part[boxes], low=low, high=high)

    def log_volume(self) -> Floats:
        """Log of the number of N times the area; a side that has one point counts as 1."""
        sides = self.high - self.low
        sides[:, 0] += 1.0
        sides[:, 1] = np.where(self.high[:, 0] == 0.0, 1.0, sides[:, 1])
        sides[:, 2] = np.where(self.high[:, 0] <= 1.0, 1.0, sides[:, 2])
        volume: Floats = np.sum(np.log(sides), axis=1)
        return volume


@dataclass(frozen=True, slots=True)
class MomentWeights:
    """The log density of (N, m, log E) for the cells of some noisy moments."""

    noisy: NoisyMoments
    rows: Floats
    observed: Floats
    estimates: Floats

    @classmethod
    def of(cls, noisy: NoisyMoments) -> Self:
        """Prepare the functionals, and unbiased N, t and q."""
        return cls(noisy, *noisy.functionals(), noisy.estimates())

    def log_weight(
        self, cell: Cells, part: Parts, n: Floats, mean: Floats, log_e: Floats, of_n: Floats | None = None
    ) -> Floats:
        """Log density at points; N need not be an integer; ``of_n`` is ``log_of_n(n)`` if that is at hand."""
        noisy, prior, square = self.noisy, self.noisy.prior.at(part), np.exp(log_e)
        second = mean * mean + square
        noise = np.zeros_like(n)
        for component in range(len(noisy.totals.scale)):
            a, b, c = self.rows[component]
            # (3): the noise of every component of (1).
            noise -= np.abs(self.observed[cell, component] - n * (a + b * mean + c * second))
        # R / N, so that nothing large cancels.
        ratio = prior.scale / np.maximum(n, 1.0) + _weight_over_n(prior, n) * (mean - prior.loc) ** 2 / 2.0
        # The last two terms of (2).
        data = -np.maximum(n - 1.0, 0.0) / 2.0 * np.log1p(2.0 * ratio / square)
        data -= (prior.concentration + 0.5) * np.log(2.0 * ratio + square)
        return np.where(n == 0.0, 0.0, data) + noise + (self.log_of_n(part, n) if of_n is None else of_n)

    def log_of_n(self, part: Parts, n: Floats) -> Floats:
        """What of the log density depends on N alone."""
        prior = self.noisy.prior.at(part)
        constant = _gammas(prior, n) + _log_side(prior, n) + _log_precision(prior, n)
        return np.where(n == 0.0, 0.0, constant) + np.log(prior.weight) + self.noisy.n_prior.log_prob(n)

    def log_bound(self, boxes: Boxes) -> Floats:
        """Log of an upper bound of the density on every box; equal to it where the box is a point."""
        rounding = 1e-9 + 1e-15 * boxes.high[:, 0] * np.max(self.noisy.totals.rate)
        return self.log_prior_bound(boxes) - self._distance(boxes) + rounding

    def log_prior_bound(self, boxes: Boxes) -> Floats:
        """Log of an upper bound of the density but for the noise."""
        n_prior, prior = self.noisy.n_prior, self.noisy.prior.at(boxes.part)
        first, last = boxes.low[:, 0], boxes.high[:, 0]
        bound = _termwise(prior, boxes, first, last)
        wide = np.flatnonzero((first >= 2.0) & (first < last))
        if wide.size:
            few = boxes.take(wide)
            middle = (few.low[:, 0] + few.high[:, 0]) / 2.0
            prior_of_part = self.noisy.prior.at(few.part)
            # Mean value theorem: the bound in the middle plus the largest slope times half the width.
            falls, rises = _slopes(prior_of_part, few)
            slope = np.maximum(-falls, rises) + 1e-14
            bound[wide] = np.minimum(
                bound[wide], _termwise(prior_of_part, few, middle, middle) + slope * (few.high[:, 0] - middle)
            )
        return bound + np.log(prior.weight) + np.maximum(n_prior.log_prob(first), n_prior.log_prob(last))

    def _distance(self, boxes: Boxes) -> Floats:
        """At least this many nats the noise takes everywhere in a box."""
        first, left, _ = boxes.low.T[:, :, None]
        last, right, _ = boxes.high.T[:, :, None]
        least, most = np.exp(boxes.low[:, 2, None]), np.exp(boxes.high[:, 2, None])
        a, b, c = self.rows.T
        at_left, at_right = a + left * (b + c * left), a + right * (b + c * right)
        with np.errstate(divide="ignore", invalid="ignore"):
            # A + B m + C m^2 over an interval of m is extreme at its ends or at its vertex.
            vertex = np.where(c == 0.0, np.inf, -b / (2.0 * c))
        turned = np.where(
            (vertex > left) & (vertex < right),
            a - np.where(c == 0.0, 0.0, b * b / np.where(c == 0.0, 1.0, 4.0 * c)),
            at_left,
        )
        low = np.minimum(np.minimum(at_left, at_right), turned)
        high = np.maximum(np.maximum(at_left, at_right), turned)
        low = low + np.where(c > 0.0, c * least, c * most)
        high = high + np.where(c > 0.0, c * most, c * least)
        low = low * np.where(low < 0.0, last, first)
        high = high * np.where(high < 0.0, first, last)
        observed = self.observed[boxes.cell]
        distance = np.maximum(np.maximum(low - observed, observed - high), 0.0)
        components, observations = len(self.noisy.totals.scale), self.noisy.totals.releases
        shape = (len(distance), observations)
        each = distance[:, :components].reshape(*shape, components // observations)
        patterns = distance[:, components:].reshape(
            *shape, len(self.rows) // observations - components // observations
        )
        # |x| + |y| >= |x +- y|: the larger of both bounds, release by release.
        together: Floats = np.sum(np.maximum(np.sum(each, axis=2), np.max(patterns, axis=2)), axis=1)
        return together


def _termwise(prior: MomentsPrior, boxes: Boxes, first: Floats, last: Floats) -> Floats:
    """The bound of p(m, log E | N) for N in first..last, term by term."""
    nearest = np.clip(prior.loc, boxes.low[:, 1], boxes.high[:, 1])
    deviation = (nearest - prior.loc) ** 2
    # 2 R / N at either end of N, with m as near to m_0 as the box allows.
    falling = 2.0 * (prior.scale / np.maximum(first, 1.0) + _weight_over_n(prior, first) * deviation / 2.0)
    rising = 2.0 * (prior.scale / np.maximum(last, 1.0) + _weight_over_n(prior, last) * deviation / 2.0)
    alpha, delta = np.maximum(first - 1.0, 0.0) / 2.0, prior.concentration + 0.5
    least, most = np.exp(boxes.low[:, 2]), np.exp(boxes.high[:, 2])
    # The root of delta E^2 + (delta - alpha) k E = alpha k A, k = falling and A = rising.
    half = (delta - alpha) * falling
    root = np.sqrt(half**2 + 4.0 * delta * alpha * falling * rising)
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where(
            half > 0.0, 2.0 * alpha * falling * rising / (half + root), (root - half) / (2.0 * delta)
        )
    best = np.clip(best, least, most)
    data = -alpha * np.log1p(falling / best) - delta * np.log(rising + best)
    constant = np.maximum(_gammas(prior, first), _gammas(prior, last))
    constant += _log_side(prior, last) + _log_precision(prior, last)
    return np.where(last == 0.0, 0.0, data + constant)


def _slopes(prior: MomentsPrior, boxes: Boxes) -> tuple[Floats, Floats]:
    r"""Bounds of the derivative of log p(m, log E | N) in N, for N >= 2.

    With x = 2 R / (N E) and y = 1 / (1 + x) it is

    .. math::
        \tfrac 1 2 (\psi(\alpha + \delta) - \psi(\alpha)) - \tfrac 1 2 \log(1 + x)
        + \frac \alpha N - \frac{\alpha + \delta} N y
        - \frac{(\alpha + \delta) R'}{R + N E / 2} + \frac{k_0}{2 N (k_0 + N)}.
    """
    (first, left, _), (last, right, _) = boxes.low.T, boxes.high.T
    least, most = np.exp(boxes.low[:, 2]), np.exp(boxes.high[:, 2])
    delta = prior.concentration + 0.5
    near = (np.clip(prior.loc, left, right) - prior.loc) ** 2
    far = np.maximum((left - prior.loc) ** 2, (right - prior.loc) ** 2)
    weight_first, weight_last = _weight_over_n(prior, first), _weight_over_n(prior, last)
    # R / N falls in N.
    most_ratio = prior.scale / first + weight_first * far / 2.0
    least_ratio = prior.scale / last + weight_last * near / 2.0
    most_x, least_x = 2.0 * most_ratio / least, 2.0 * least_ratio / most
    alpha_first, alpha_last = (first - 1.0) / 2.0, (last - 1.0) / 2.0
    # psi(alpha + delta) - psi(alpha) falls in alpha.
    gammas_low, gammas_high = (
        _digamma_difference(alpha_last, delta),
        _digamma_difference(alpha_first, delta),
    )
    falls = gammas_low[0] / 2.0 - np.log1p(most_x) / 2.0
    rises = gammas_high[1] / 2.0 - np.log1p(least_x) / 2.0
    falls += alpha_first / first - (alpha_first + delta) / first / (1.0 + least_x)
    rises += alpha_last / last - (alpha_last + delta) / last / (1.0 + most_x)
    pull = (alpha_last + delta) * weight_first**2 * far / 2.0
    falls -= pull / (first * (least_ratio + least / 2.0))
    falls += weight_last / (2.0 * last)
    rises += weight_first / (2.0 * first)
    return falls, rises


def _gammas(prior: MomentsPrior, n: Floats) -> Floats:
    r"""Log of :math:`\Gamma(\alpha + \delta) / \Gamma(\alpha) \alpha^\delta`: monotone in N >= 2."""
    delta = prior.concentration + 0.5
    alpha = np.maximum(n - 1.0, 1.0) / 2.0
    far = alpha + delta
    # Stirling for both gammas; their largest terms are subtracted before rounding.
    log_ratio = (far - 0.5) * np.log1p(delta / alpha) - delta
    log_ratio += stirling_tail(far) - stirling_tail(alpha)
    few, of_one_row = np.flatnonzero(alpha < _STIRLING), np.flatnonzero(n <= 1.0)
    delta_n = np.broadcast_to(delta, n.shape)
    log_ratio[few] = gammaln(far[few]) - gammaln(alpha[few]) - delta_n[few] * np.log(alpha[few])
    if np.any(delta > _MANY):
        ratio = log_rising(delta + 1.0, alpha - 1.0) + gammaln(delta + 1.0) - delta * np.log(alpha)
        log_ratio = np.where(delta > _MANY, ratio, log_ratio)
    log_ratio[of_one_row] = gammaln(delta_n[of_one_row])
    return log_ratio


def _log_side(prior: MomentsPrior, n: Floats) -> Floats:
    """What makes of alpha^delta the (N / 2)^delta of the density; rises with N >= 2."""
    delta = prior.concentration + 0.5
    at_one = delta * np.log(2.0)
    return np.where(n <= 1.0, at_one, delta * np.log1p(-1.0 / np.maximum(n, 2.0)))


def _log_precision(prior: MomentsPrior, n: Floats) -> Floats:
    fixed = prior.concentration * np.log(prior.scale) - gammaln(prior.concentration)
    weight = np.maximum(n, 1.0) * _weight_over_n(prior, n)
    return np.asarray(fixed + np.log(weight / (2.0 * np.pi)) / 2.0, dtype=np.float64)


def _weight_over_n(prior: MomentsPrior, n: Floats) -> Floats:
    """The weight c of the mean's deviation, over N."""
    return prior.precision / (prior.precision + np.maximum(n, 1.0))


def _digamma_difference(x: Floats, step: Floats) -> tuple[Floats, Floats]:
    r"""Bounds of :math:`\psi(x + h) - \psi(x)`, from those of :math:`\psi(x) - \log x` (Alzer 1997)."""
    far = x + step
    tail = (1.0 / x - 1.0 / far) / 2.0 + (1.0 / x**2 - 1.0 / far**2) / 12.0 + np.log1p(step / x)
    return tail - 1.0 / (120.0 * x**4), tail + 1.0 / (120.0 * far**4)
