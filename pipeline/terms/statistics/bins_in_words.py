"""What a plan says of a histogram's bins: how many, how narrow, how noisy sums of them are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from suffice.pipeline.terms.declaration.exact_numbers import format_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.terms.statistics.histogram_bins import HistogramBins
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


def bins_line(statistic: StatisticPlan, bins: HistogramBins) -> str:
    """Say which bins there are, and how noisy sums of them are."""
    lower, upper, width = map(format_number, (bins.edges[0], bins.edges[-1], bins.narrowest))
    half = len(bins) // 2
    sd = statistic.component_noise_sd * math.sqrt(half)
    return (
        f"{statistic.name}: {len(bins)} bins of {lower}..{upper}, the narrowest {width} wide; rows in the "
        f"first {half} together have noise of standard deviation {sd:.4g}"
    )


_WAY_OUT = (
    "state more bins, which costs no privacy, or narrow ones where rows are expected, as "
    "bins: {body: [-60, 180], equal: 96, tail: 32}"
)


def coarse_line(
    statistic: StatisticPlan, bins: HistogramBins, rows: float | None = None, shares: Sequence[float] = ()
) -> str:
    r"""Warn of bins that are too wide to answer for quantiles; empty where they are not.

    Where the number of rows n is known, it is judged at the median: of k rows in a bin nobody knows which is
    where, which hides as much as a standard deviation of :math:`k / \sqrt{12}` of the median's rank, and
    sampling and the noise of half of the B bins, each of the variance :math:`\sigma^2`, hide

    .. math:: \sqrt{n / 4 + B \sigma^2 / 4}.

    Where it is not, bins are too wide if even the narrowest takes more than a hundredth of the range.

    Parameters
    ----------
    statistic : StatisticPlan
    bins : HistogramBins
    rows : float, optional
        About how many a cell has.
    shares : sequence of float, optional
        Of rows, in each bin; where left out, they are even over the bins. Of an atom the value is known.
    """
    width = format_number(bins.narrowest)
    if rows is None:
        if not bins.are_coarse:
            return ""
        return (
            f"{statistic.name}: warning: {width} is more than a hundredth of the range, and no quantile is "
            f"known better than its bin is narrow: {_WAY_OUT}"
        )
    fullest = rows / len(bins)
    if shares:
        fullest = rows * max(
            (share for share, is_atom in zip(shares, bins.is_atom, strict=True) if not is_atom), default=0.0
        )
    hidden = fullest / math.sqrt(12.0)
    known = 0.5 * math.sqrt(rows + len(bins) * statistic.component_noise_sd**2)
    if hidden <= known:
        return ""
    where = "its fullest bin" if shares else "a bin"
    spread = "as its typical shares are" if shares else "even over the bins"
    return (
        f"{statistic.name}: warning: of {rows:,.0f} rows, {spread}, {where} holds {fullest:,.0f}, so that "
        f"its width hides more of the median's rank ({hidden:,.0f} rows) than sampling and noise together "
        f"({known:,.0f}): {_WAY_OUT}"
    )
