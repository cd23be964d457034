"""What a histogram answers of its column, beside the same numbers by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from suffice.errors import UsageError
from suffice.pipeline.math.distributions.dirichlet import DirichletDistribution
from suffice.pipeline.math.engines.histogram.column_law import ColumnLaw, column_law
from suffice.pipeline.math.engines.histogram.histogram_posterior import histogram_posterior
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals


def known(counts: list[float]) -> ColumnLaw:
    """Return a column that is known exactly: 0 as an atom, then (0, 10), (10, 20), (20, 100)."""
    return ColumnLaw(
        weights=np.array([[counts]] * 3),
        lower=np.array([0.0, 0.0, 10.0, 20.0]),
        upper=np.array([0.0, 10.0, 20.0, 100.0]),
        of="law",
    )


def test_intervals_hold_the_whole_bin_and_atoms_are_exact() -> None:
    column = known([40.0, 30.0, 20.0, 10.0])
    middle = column.quantile(0.55)
    assert (middle.lower[0], middle.upper[0]) == (0.0, 10.0)
    assert middle.median[0] == pytest.approx(5.0)
    atom = column.quantile(0.3)
    assert (atom.lower[0], atom.median[0], atom.upper[0]) == (0.0, 0.0, 0.0)
    assert column.median().median[0] == pytest.approx(10.0 / 3.0)


def test_a_percentage_is_refused_and_said_as_a_share() -> None:
    with pytest.raises(UsageError, match=r"not 90\.0: of 90 % it is 0\.9"):
        known([40.0, 30.0, 20.0, 10.0]).quantile(90.0)


def test_a_column_is_said_in_a_line() -> None:
    assert repr(known([40.0, 30.0, 20.0, 10.0])) == "ColumnLaw(of law: 4 bins of 0..100, 1 cells, 3 draws)"


def test_a_bin_of_half_the_bounds_is_refused() -> None:
    column = known([40.0, 30.0, 20.0, 10.0])
    refused = column.quantile(0.95)
    assert refused.refused[0]
    assert np.isnan(refused.mean[0])
    assert (refused.lower[0], refused.upper[0]) == (20.0, 100.0)
    assert "1 of 1" in refused.note
    assert not column.quantile(0.5).note


def test_shares_below_and_above() -> None:
    column = known([40.0, 30.0, 20.0, 10.0])
    assert column.cdf(0.0).mean[0] == pytest.approx(0.4)
    assert column.tail_share(0.0).mean[0] == pytest.approx(1.0)
    assert column.tail_share(10.0).lower[0] == pytest.approx(0.3)
    inside = column.cdf(12.0)
    assert inside.mean[0] == pytest.approx(0.74)
    assert (inside.lower[0], inside.upper[0]) == pytest.approx((0.7, 0.9))
    assert column.tail_share(12.0).lower[0] == pytest.approx(0.1)
    assert column.cdf(-5.0).upper[0] == 0.0
    uneven = known([0.1, 0.2, 0.3, 0.1])  # whose shares do not add up to 1 exactly
    assert (uneven.tail_share(1000.0).lower[0], uneven.tail_share(1000.0).upper[0]) == (0.0, 0.0)
    assert column.cdf(100.0).lower[0] == pytest.approx(1.0)
    assert column.distribution_function().mean[0] == pytest.approx([0.4, 0.7, 0.9, 1.0])
    assert column.density().mean[0] == pytest.approx([0.4, 0.03, 0.02, 0.00125])


def test_values_of_the_upper_bound_or_more_may_be_all_of_the_last_bin() -> None:
    """Those beyond were moved to the bound, which the last bin holds; as an atom it is exact."""
    topped = known([40.0, 30.0, 20.0, 10.0])
    at_bound = topped.tail_share(100.0)
    assert (at_bound.lower[0], at_bound.upper[0]) == pytest.approx((0.0, 0.1))
    assert topped.tail_share(100.5).upper[0] == pytest.approx(0.0)
    heaped = known([10.0, 10.0, 10.0, 70.0])
    assert heaped.tail_share(100.0).refused[0]
    assert heaped.cdf(100.0).lower[0] == pytest.approx(1.0)
    atom = ColumnLaw(
        weights=np.array([[[60.0, 40.0]]] * 3),
        lower=np.array([0.0, 100.0]),
        upper=np.array([100.0, 100.0]),
        of="law",
    )
    exact = atom.tail_share(100.0)
    assert (exact.lower[0], exact.upper[0]) == pytest.approx((0.4, 0.4))


def test_of_an_empty_column_no_quantile_and_no_mean_is_known() -> None:
    """Shares as wide as bins are would put the median of nothing in the middle of the bounds."""
    edges = np.linspace(0.0, 100.0, 65)
    empty = ColumnLaw(weights=np.zeros((20, 1, 64)), lower=edges[:-1], upper=edges[1:], of="rows")
    for answer in (empty.median(), empty.mean(), empty.mean(is_even=True), empty.quantile(0.01)):
        assert answer.refused[0]
        assert (answer.lower[0], answer.upper[0]) == (0.0, 100.0)


def test_ranges_and_means_lie_between_ends_of_bins() -> None:
    column = known([40.0, 30.0, 20.0, 10.0])
    spread = column.interquantile_range(0.1, 0.8)
    assert (spread.lower[0], spread.upper[0]) == (10.0, 20.0)
    mean = column.mean()
    assert (mean.lower[0], mean.upper[0]) == pytest.approx((4.0, 17.0))
    assert mean.lower[0] < column.mean(is_even=True).mean[0] < mean.upper[0]
    assert column.n().mean[0] == 100.0


def test_gini_of_an_even_column_is_a_third() -> None:
    edges = np.linspace(0.0, 1.0, 201)
    even = ColumnLaw(weights=np.ones((200, 1, 200)), lower=edges[:-1], upper=edges[1:], of="law")
    assert even.gini().mean[0] == pytest.approx(1.0 / 3.0, abs=2e-3)
    assert even.mean(is_even=True).mean[0] == pytest.approx(0.5, abs=2e-3)
    below = ColumnLaw(weights=np.ones((2, 1, 1)), lower=np.array([-1.0]), upper=np.array([1.0]), of="law")
    with pytest.raises(UsageError, match="0 or more"):
        below.gini()


def test_cells_without_records_in_common_add_up() -> None:
    two = ColumnLaw(
        weights=np.array([[[3.0, 1.0], [1.0, 3.0]]] * 2),
        lower=np.array([0.0, 1.0]),
        upper=np.array([1.0, 2.0]),
        of="law",
    )
    assert two.summed().cdf(1.0).mean == pytest.approx([0.5])


@pytest.mark.parametrize("of", ["law", "rows"])
def test_known_rows_are_narrower_than_the_law(of: str) -> None:
    rng = np.random.default_rng(1)
    bins = SimpleNamespace(
        lower=np.arange(20.0), upper=np.arange(1.0, 21.0), is_atom=np.zeros(20, dtype=bool)
    )
    counts = rng.poisson(50.0, (2, 20)).astype(np.float64)
    posterior = histogram_posterior(NoisyTotals.of_counts([counts], [0.05]), bins)
    of_law, of_rows = (column_law(posterior, 400, rng, of=each).cdf(10.0) for each in ("law", "rows"))
    assert np.all(of_rows.upper - of_rows.lower < 0.1 * (of_law.upper - of_law.lower))
    shares = counts[:, :10].sum(axis=1) / counts.sum(axis=1)
    assert of_rows.mean == pytest.approx(shares, abs=1e-6)
    assert column_law(posterior, 5, rng, of=of).of == of


def test_what_cannot_be_asked_is_refused() -> None:
    column = known([1.0, 1.0, 1.0, 1.0])
    for wrong in (0.0, 1.0, 2.0):
        with pytest.raises(UsageError, match="q must"):
            column.quantile(wrong)
    with pytest.raises(UsageError, match="mass"):
        column.median(mass=1.0)
    with pytest.raises(UsageError, match="below b"):
        column.interquantile_range(0.5, 0.5)
    for never in (np.nan, np.inf, "x", None):
        with pytest.raises(UsageError, match="finite"):
            column.cdf(never)  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    other = DirichletDistribution(concentration=np.ones((1, 3)))
    with pytest.raises(UsageError, match="histograms"):
        column_law(other, 5, rng)
    with pytest.raises(UsageError, match="of must"):
        column_law(other, 5, rng, of="sample")


def test_nothing_released_says_nothing() -> None:
    column = known([0.0, 0.0, 0.0, 0.0])
    assert column.shares[0, 0] == pytest.approx([0.0, 0.1, 0.1, 0.8])
