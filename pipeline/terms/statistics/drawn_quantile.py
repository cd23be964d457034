r"""One quantile of a column, drawn among the public bins of a histogram by the exponential mechanism.

.. math::
    P(b) \propto e^{-d_b / \tau}, \qquad
    d_b = \max(0,\; C_{b-1} - q n,\; q n - C_b)

n counts the records of a cell, :math:`C_b` those in bin b or below it, and q is the quantile, a public
fraction: :math:`d_b`, the rank error, says how many records the quantile is away from the bin b, and is 0 for
the bin that it is in. The scores are :math:`-2^{20} m d_b` with m the denominator of q, and so integers. All
bins have the same weight: whoever states them states where the quantile may be. Claims and proof in
`sensitivity.md`: quantile-range.

Symbols: q: ``quantile``; :math:`\tau`: ``rank_scale``, in records; C: the sums of ``counts``.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise

from suffice.pipeline.terms.declaration.documents import printed
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.statistics.exponential_draws import LOWEST_SCORE, SCORE_BITS, ExponentialDraws
from suffice.pipeline.terms.statistics.histogram_bins import HistogramBins  # noqa: TC001 - schemas read types
from suffice.pipeline.terms.statistics.sensitivity import NeighboringRelation

LEVEL = 0.95
"""The probability of bounds and intervals where none is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileScores:
    """What draws of a quantile are scored by.

    Parameters
    ----------
    quantile : Fraction
        Above 0 and below 1.
    n_bins : int, >= 2
    """

    quantile: Fraction
    n_bins: int

    def range_sensitivity(self, neighboring: NeighboringRelation, *, records: int, n_cells: int) -> int:
        r"""Return the largest range of a change of all scores between neighbours, in units of the scores.

        .. math:: 2^{20} m \, k \, \min(2, B - 1) \max(q, 1 - q)

        of B bins and k records; twice that under ``replace_one``, or, where there is a single cell, with 1 in
        the place of :math:`2 \max(q, 1 - q)`.

        Parameters
        ----------
        neighboring : NeighboringRelation
        records : int
            How many records a unit adds at most.
        n_cells : int
        """
        # proof: quantile-range
        part, whole = self.quantile.as_integer_ratio()
        moved = max(part, whole - part)
        if neighboring is NeighboringRelation.REPLACE_ONE:
            moved = whole if n_cells == 1 else 2 * moved
        return (moved * records * min(2, self.n_bins - 1)) << SCORE_BITS

    def scores(self, *counts: int) -> list[int]:
        """Return the scores of a cell: the highest is 0, none is below -2**62.

        Parameters
        ----------
        *counts : int
            The records in each bin.
        """
        # proof: quantile-range
        part, whole = self.quantile.as_integer_ratio()
        target = part * sum(counts)
        below = [0, *(whole * count for count in accumulate(counts))]
        return [
            max(-(max(0, begins - target, target - ends) << SCORE_BITS), LOWEST_SCORE)
            for begins, ends in pairwise(below)
        ]


@printed("quantile draws range_sensitivity scale rank_scale")
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantilePlan(ExponentialDraws):
    """Draws of the bin that one quantile is in.

    Attributes
    ----------
    quantile : Fraction
        Above 0 and below 1.
    bins : HistogramBins
        Among which is drawn.
    """

    quantile: Fraction
    bins: HistogramBins

    @property
    def n_points(self) -> int:
        """How many bins there are."""
        return len(self.bins)

    @property
    def parameter(self) -> str:
        """What is drawn: ``quantile 0.9``."""
        return f"quantile {format_number(self.quantile)}"

    @property
    def within(self) -> tuple[Fraction, Fraction]:
        """The first edge and the last."""
        return self.bins.edges[0], self.bins.edges[-1]

    @property
    def law(self) -> str:
        """What each draw is, in a sentence without its subject."""
        lower, upper = map(format_number, self.within)
        return (
            f"is one of {self.n_points} bins of {lower}..{upper}, drawn by the exponential mechanism: a bin "
            f"that is {float(self.rank_scale):.6g} records farther from the {self.parameter} of the cell is "
            "e times less probable"
        )

    @property
    def rank_scale(self) -> Fraction:
        r""":math:`\tau`, in records: a bin that is farther off by so many is e times less probable."""
        return Fraction(self.scale, self.quantile.denominator << SCORE_BITS)

    def rank_bound(self, level: float = LEVEL) -> float:
        r"""Return a number of records that a draw's rank error exceeds with at most ``1 - level``.

        .. math:: r = \tau \log \bigl( (B - 1) \, \ell / (1 - \ell) \bigr)

        whatever the data are: one of the B bins has the rank error 0, and the others have at most the weight
        :math:`(B - 1) e^{-r / \tau}` beside its 1 where their rank errors exceed r.

        Parameters
        ----------
        level : float
            The probability :math:`\ell`, above 0 and below 1.

        Raises
        ------
        ValueError
            Where the level is not between 0 and 1.
        """
        if not 0.0 < level < 1.0:
            message = f"level: a probability above 0 and below 1, not {level!r}"
            raise ValueError(message)
        return max(0.0, float(self.rank_scale) * math.log((self.n_points - 1) * level / (1.0 - level)))


def expected_rank_error(plan: QuantilePlan, rows: float) -> float:
    r"""Return the mean rank error of a draw, in records, where rows are spread evenly over the bins.

    .. math:: \sum_b d_b \, e^{-d_b / \tau} \Big/ \sum_b e^{-d_b / \tau}
    """
    target, each = float(plan.quantile) * rows, rows / plan.n_points
    places = range(plan.n_points)
    errors = [max(0.0, place * each - target, target - (place + 1) * each) for place in places]
    weights = [math.exp(-error / float(plan.rank_scale)) for error in errors]
    return math.fsum(map(operator.mul, errors, weights)) / math.fsum(weights)


def counted_rank_error(plan: QuantilePlan, noise_sd: float) -> float:
    r"""Return the mean rank error of a quantile that noisy counts of the bins give, in records.

    .. math:: \sqrt{2 / \pi} \, \sigma \sqrt{B q (1 - q)}

    with :math:`\sigma` the standard deviation of the noise of one count: a normal approximation to the noise
    of the share below a bin, added up bin by bin. A posterior that smooths over bins does better.
    """
    share = float(plan.quantile)
    return noise_sd * math.sqrt(2.0 / math.pi * plan.n_points * share * (1.0 - share))


def quantile_line(heading: str, plan: QuantilePlan) -> str:
    """Say what is drawn, after a statistic's heading, and how far off it may be."""
    lower, upper = map(format_number, plan.within)
    draws = "1 draw" if plan.draws == 1 else f"{plan.draws} draws"
    return (
        f"{heading}: {draws} of the bin of the "
        f"{plan.parameter} among {plan.n_points} bins of {lower}..{upper}; rank scale "
        f"{float(plan.rank_scale):.6g} records: whatever the data are, a draw is within "
        f"{math.ceil(plan.rank_bound())} records of that rank with probability {LEVEL:g} at least"
    )


def bargain_line(name: str, plan: QuantilePlan, noise_sd: float, rows: float) -> str:
    """Compare with the histogram at the same price: all numbers are public.

    Parameters
    ----------
    name : str
    plan : QuantilePlan
    noise_sd : float
        Of every count, if counts were released.
    rows : float
        About how many records a cell has.
    """
    drawn, counted = expected_rank_error(plan, rows), counted_rank_error(plan, noise_sd)
    better = "the draw" if drawn < counted else "the histogram"
    return (
        f"{name}: of {rows:,.0f} records, even over the bins, a draw misses the rank by {drawn:.3g} on "
        f"average; the histogram (without sample) at the same price by {counted:.3g}, before its posterior "
        f"smooths, and it has every quantile: for this one alone, {better} is the better bargain"
    )
