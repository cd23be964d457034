"""What a plan says of a histogram's bins: how many, how narrow, how noisy sums of them are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from suffice.pipeline.terms.declaration.exact_numbers import format_number

if TYPE_CHECKING:
    from suffice.pipeline.terms.statistics.histogram_bins import HistogramBins
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


def bins_line(statistic: StatisticPlan, bins: HistogramBins) -> str:
    """Say which bins there are, how noisy sums of them are, and whether they can answer for quantiles."""
    lower, upper, width = map(format_number, (bins.edges[0], bins.edges[-1], bins.narrowest))
    half = len(bins) // 2
    sd = statistic.component_noise_sd * math.sqrt(half)
    line = (
        f"{statistic.name}: {len(bins)} bins of {lower}..{upper}, the narrowest {width} wide; rows in the "
        f"first {half} together have noise of standard deviation {sd:.4g}"
    )
    if bins.are_coarse:
        line += (
            f"; warning: {width} is more than a hundredth of the range, and no quantile is known better than "
            "its bin is narrow: state more bins, which costs no privacy, or narrow ones where rows are "
            "expected, as bins: {body: [-60, 180], equal: 96, tail: 32}"
        )
    return line
