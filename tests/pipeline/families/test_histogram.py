"""Histograms from their specs: which bins there are, what is refused, and what is released of rows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from suffice.errors import SpecError
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families.shared.chosen_bins import tail_widths
from suffice.pipeline.math.priors.bin_walk import BinWalk
from suffice.pipeline.math.priors.by_name import parse_prior
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.recompile import read_canonical_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.fields import canonical
from support.noisy import noisy_statistic
from support.record_vectors import record_vectors

if TYPE_CHECKING:
    from suffice.pipeline.spec.spec import Spec

DELAY: dict[str, Any] = {"family": "histogram", "column": "x", "lower": "-60", "upper": "1500"}


def spec_of(bins: Any, **more: Any) -> Spec:
    return load_spec(
        {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": "/x"},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "statistics": {"delay": {**DELAY, "bins": bins, **more}},
        }
    )


def edges_of(bins: Any, **more: Any) -> list[Fraction]:
    (plan,) = compile_plan(spec_of(bins, **more)).statistics
    assert plan.parameters.bins is not None
    return list(plan.parameters.bins.edges)


def widths(edges: list[Fraction]) -> list[float]:
    return [float(after - before) for before, after in pairwise(edges)]


def test_a_count_makes_equal_bins() -> None:
    edges = edges_of(96)
    assert [edges[0], edges[-1]] == [-60, 1500]
    assert widths(edges) == [16.25] * 96
    # A third is no decimal: edges are within half of the unit that they are rounded to.
    thirds = edges_of(3, lower="0", upper="1")
    assert thirds == [0, Fraction("0.3333"), Fraction("0.6667"), 1]


def test_bins_thin_out_beyond_a_body() -> None:
    edges = edges_of({"body": [-60, 180], "equal": 96, "tail": 32})
    of = widths(edges)
    assert of[:96] == [2.5] * 96
    assert len(of) == 128
    assert edges[-1] == 1500
    ratios = [after / before for before, after in pairwise(of[95:])]
    assert min(ratios) > 1.1
    assert max(ratios) / min(ratios) < 1.002  # but for rounding


def test_a_body_of_guessed_quantiles_has_as_many_bins_between_any_two() -> None:
    edges = edges_of({"body": [-20, -5, 10, 60], "equal": 30, "tail": 4})
    assert len(edges) == 30 + 8 + 1
    assert [edges[4], edges[14], edges[24], edges[34]] == [-20, -5, 10, 60]
    assert widths(edges)[4:34] == [1.5] * 20 + [5.0] * 10
    assert widths(edges)[0] > widths(edges)[1] > widths(edges)[2] > widths(edges)[3] > 1.5


def test_tails_of_more_bins_than_fit_are_equal() -> None:
    assert tail_widths(Fraction(10), Fraction(15), 3) == [Fraction(15, 2)] * 2
    assert tail_widths(Fraction(10), Fraction(30), 3) == [10] * 3
    of = tail_widths(Fraction(1), Fraction(1000), 8)
    assert float(sum(of)) == pytest.approx(1000, rel=1e-12)
    assert float(of[0]) > 1


@pytest.mark.parametrize(
    ("bins", "more", "rule"),
    [
        (1, {}, r"2\.\.4096, not 1"),
        (5000, {}, r"2\.\.4096, not 5000"),
        ("many", {}, "bins are a number of equal bins"),
        ([-60, 1499], {}, "the last is upper, 1500"),
        ([-60, 3, 2, 1500], {}, "above the one before"),
        ([-60], {}, "2 to 4097 numbers"),
        ([-60, 1500], {}, "2 to 4096 bins"),
        ({"body": [-70, 180], "equal": 8, "tail": 2}, {}, "body lies from lower, -60"),
        ({"body": [-60, 0, 180], "equal": 9, "tail": 2}, {}, "multiple of that, not 9"),
        ({"body": [-60, 180], "equal": 8}, {}, "state it"),
        ({"body": [-60, 1500], "equal": 8, "tail": 2}, {}, "leave tail out"),
        ({"body": [-60, 180], "equal": 8, "tails": 2}, {}, "body: "),
        (8, {"atoms": [2000]}, "atoms lie from the first edge"),
        (8, {"atoms": [0, 0]}, "each atom is above"),
        (8, {"atoms": 0}, "atoms is a list"),
        (8, {"lower": "1500"}, "lower must be below upper"),
        ({"body": [-60, 180], "equal": 4096, "tail": 2}, {}, "not 4098"),
    ],
)
def test_what_makes_no_bins_is_refused(bins: Any, more: dict[str, Any], rule: str) -> None:
    with pytest.raises(SpecError, match=rule):
        spec_of(bins, **more)


def test_the_canonical_plan_states_every_edge_and_recompiles() -> None:
    short = spec_of({"body": [-60, 180], "equal": 96, "tail": 32}, atoms=[0])
    plan = compile_plan(short)
    stated: Any = canonical(short.statistics["delay"])
    assert len(stated["bins"]) == 129
    again = spec_of(stated["bins"], atoms=stated["atoms"])
    assert again.plan_hash() == short.plan_hash()
    read = read_canonical_plan(plan.canonical, plan.order)
    assert read.text == plan.canonical
    other = spec_of({"body": [-60, 180], "equal": 96, "tail": 33}, atoms=[0])
    assert other.plan_hash() != short.plan_hash()


def test_plans_warn_of_bins_that_cannot_answer() -> None:
    coarse, fine = (str(compile_plan(spec_of(bins))) for bins in (64, 128))
    assert "warning: 24.37 is more than a hundredth of the range" in coarse
    assert "warning" not in fine
    assert "count of each of 128 bins  1.35696" in fine
    line = "rows in the first 64 together have noise of standard deviation 10.86"
    assert line in " ".join(fine.split())
    assert "warning" not in str(compile_plan(spec_of({"body": [-60, 180], "equal": 48, "tail": 8})))


def test_every_number_counts_once_whatever_the_type_of_its_column() -> None:
    spec = spec_of([-60, 0, 15, 1500], atoms=[0], nulls={"value": "15"})
    values = [-100, -60, -1, 0, 14, 15, 1500, 9999, None]
    expected = [0, 0, 0, 1, 2, 3, 3, 3, 3]
    for kind in (pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 2)):
        added = record_vectors(spec, pa.record_batch({"x": pa.array(values, kind)}))
        assert np.argmax(added, axis=1).tolist() == expected, kind
        assert np.all(np.sum(added, axis=1) == 1)


def test_the_prior_is_of_steps_and_reads_as_it_is_written() -> None:
    prior = BinWalk(0.1, 0.4)
    assert parse_prior(str(prior)) == prior
    (plan,) = compile_plan(spec_of(16)).statistics
    statistic = noisy_statistic(plan, np.full((1, 16), 40))
    rough = posterior_of(statistic, prior="BinWalk(0.8)", n_prior=None)
    smooth = posterior_of(statistic, prior="BinWalk(0.05)", n_prior=None)
    assert np.all(smooth.sd("probability") < rough.sd("probability"))
    # The noise of two cells hides more than that of one.
    of_two = posterior_of(replace(statistic, cells_summed=2), prior="BinWalk(0.8)")
    assert np.all(of_two.sd("probability") > rough.sd("probability"))
