"""Tables of distribution functions between limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import scipy.stats

from suffice.pipeline.math.distributions import within_limits
from suffice.pipeline.math.distributions.gamma import GammaDistribution
from suffice.pipeline.math.distributions.merged import Components
from suffice.pipeline.math.distributions.within_limits import Tabulated, WithinLimits, within
from suffice.pipeline.math.engines.one_sum.noisy_sum import GammaPoisson, NoisySums
from suffice.pipeline.math.engines.one_sum.sum_posterior import LatentSumPosterior
from suffice.pipeline.math.priors.record_count import Reciprocal
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals

if TYPE_CHECKING:
    from suffice.typing import Floats


def rate_given(n: Floats, total: Floats) -> GammaDistribution:
    return GammaDistribution(concentration=4.0 + total, rate=1.0 + n)


def test_a_density_does_not_fall_to_0_where_knots_meet() -> None:
    """Of an exponential cut off at 0 and 1, with knots that are there twice, or again but for rounding."""
    law = scipy.stats.truncexpon(1.0)
    even, levels = np.linspace(0.0, 1.0, 65), law.ppf(np.linspace(0.0, 1.0, 257))
    knots = np.sort(np.concatenate([even, levels, np.nextafter(even[1:], 0.0)]))[None]
    nothing = np.full(len(knots), np.nan)
    table = Tabulated(name="rate", knots=knots, below=law.cdf(knots), moments=lambda: (nothing, nothing))
    points = np.linspace(-0.1, 1.1, 4801)[None]
    inside = (points > 0.0) & (points < 1.0)
    density = table.density("rate", points)
    assert density[inside] == pytest.approx(law.pdf(points[inside]), rel=0.005)
    assert not density[(points < 0.0) | (points > 1.0)].any()


def test_tails_are_worked_out_where_a_table_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """All cells are within 8 standard deviations of a limit; three lie within both all the same."""
    values = np.array([[60.0, 540.0], [150.0, 450.0], [270.0, 330.0], [20.0, 580.0], [290.0, 310.0]])
    totals = NoisyTotals(
        values=values, scale=np.full(2, 4.0), coefficients=np.array([[0.0, 1.0], [20.0, -1.0]]), releases=1
    )
    marginal = GammaPoisson(concentration=4.0, rate=1.0)
    sums = NoisySums(totals=totals, step=1.0, lower=0.0, marginal=marginal, n_prior=Reciprocal(10**6))
    asked, ends_of = [], within_limits._ends

    def ends(known: LatentSumPosterior, name: str) -> Floats:
        asked.append(known.n_cells)
        return ends_of(known, name)

    monkeypatch.setattr(within_limits, "_ends", ends)
    plain = LatentSumPosterior.of(sums, rate_given)
    law = within(plain, (0.0, 10.0))
    assert isinstance(law, WithinLimits)
    beyond = 1.0 - plain.cdf(np.full((5, 1), 10.0))[:, 0]
    assert list(law.cut) == list(beyond > within_limits.NEGLIGIBLE)
    assert np.count_nonzero(law.cut) == 2
    law.quantiles("rate", [0.1, 0.9], 0, np.random.default_rng(0))
    assert asked == []
    # Draws are from the table of the cells that limits cut off.
    law.sample(10, np.random.default_rng(0))
    assert asked == [2]


def test_distribution_functions_at_ends_of_the_range_are_known() -> None:
    """Beside points within; what is no number stays none."""
    unit = np.ones(1)
    merged = Components(
        cell=np.zeros(1, dtype=np.int64), n=3.0 * unit, total=2.0 * unit, weight=unit, scatter=0.0 * unit
    )
    below = merged.cdf(rate_given, np.array([[-1.0, 0.0, 1.5, np.inf, np.nan]]))
    assert below[0, :4] == pytest.approx(
        [0.0, 0.0, scipy.stats.gamma.cdf(1.5, 6.0, scale=0.25), 1.0], abs=2e-4
    )
    assert np.isnan(below[0, 4])
