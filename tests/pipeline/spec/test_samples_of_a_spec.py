"""What a spec may say of a sample, what its plan says of it, and that plans without one are as ever."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import pytest

from suffice.errors import SpecError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.plan import compile_plan, plan_document
from suffice.pipeline.spec.recompile import read_canonical_plan
from suffice.pipeline.terms.statistics.sensitivity import Design
from support.making import mapping
from support.releases import make_plan
from support.samples import drawn, sample_of, sampled_spec

NOT_SAMPLED: dict[str, dict[str, Any]] = {
    "categorical": {"column": "k", "categories": ["a", "b"]},
    "normal": {"column": "x", "lower": "0", "upper": "1"},
    "rows_per_unit": {"upper": "40"},
}
UNIT = {"column": "who", "max_rows": "4"}


def plan_of(statistic: dict[str, Any], **others: Any) -> Any:
    return compile_plan(sampled_spec({"flag": statistic}, **others))


def test_a_plan_without_a_sample_has_the_hash_that_it_always_had() -> None:
    """Written down before statistics could be sampled."""
    assert make_plan().plan_hash == "9db0b183683701cfc687bba000cc9cc5ec535770b627eac0881139d184c1ddcb"
    spec = {"groups": None, "statistics": {"flag": {"family": "bernoulli", "column": "flag"}}}
    assert make_plan(**spec).plan_hash == "6f39986d9cfeda7fc88b21bcb378a429e76ee282c98deaf2f69fd08e694457a5"
    assert "sample" not in make_plan().canonical


def test_a_sample_is_part_of_what_is_charged() -> None:
    """Every key of it, and a prior however it is written."""
    base = plan_of(drawn())
    assert plan_of({"family": "bernoulli", "column": "flag"}).plan_hash != base.plan_hash
    for change in (
        {"draws": "3"},
        {"grid": "34"},
        {"within": ["0.2", "0.81"]},
        {"prior": "Beta(2, 1.5)"},
    ):
        assert plan_of(drawn(**change)).plan_hash != base.plan_hash
    for written in ("Beta(2,1)", "Beta(concentration1=2.0, concentration0=1)"):
        assert plan_of(drawn(prior=written)).plan_hash == base.plan_hash
    assert plan_of(drawn(within=["0.20", "8e-1"])).plan_hash == base.plan_hash


def test_a_default_prior_is_stated() -> None:
    entry = drawn()
    del entry["sample"]["prior"]
    stated = plan_of(entry)
    assert sample_of(stated).prior == "Beta(1, 1)"
    assert stated.plan_hash == plan_of(drawn(prior="Beta(1, 1)")).plan_hash


def test_readers_compile_the_same_plan_from_its_canonical_form() -> None:
    plan = make_plan(statistics={**mapping("")["statistics"], "drawn": drawn("c")})
    read = read_canonical_plan(plan.canonical, plan.order)
    assert read.assemble(list(read.statistics())) == plan
    other = plan.canonical.replace("Beta(2, 1)", "Beta(2,1)")
    read = read_canonical_plan(other, plan.order)
    with pytest.raises(SpecError, match="canonical form"):
        read.assemble(list(read.statistics()))


def test_components_and_quantities_are_of_noisy_statistics_alone() -> None:
    statistic = plan_of(drawn(draws="7")).statistics[0]
    assert (statistic.components, statistic.quantities, statistic.n_values) == ((), (), 7)
    assert (statistic.l1_sensitivity, statistic.scale, statistic.partition_total) == (0, 0.0, None)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"within": ["0", "0.5"]}, "both ends of a probability are above 0 and below 1"),
        ({"within": ["0.5", "1"]}, "one record could move the log likelihood without bound"),
        ({"within": ["0.5", "0.2"]}, "first end of within must be below"),
        ({"within": ["0.5"]}, "two ends of an interval"),
        ({"within": "0.5"}, "two ends of an interval"),
        ({"within": ["0.3", "0.30000000000000001"]}, "not distinct in float64"),
        ({"within": ["0.3", "0.300000000000001"]}, "not distinct in float64"),
        ({"within": ["0.5", "0.99999999999999999999"]}, "the last one is 1"),
        ({"grid": "2"}, "grid lies in 3..4097"),
        ({"grid": "4098"}, "grid lies in 3..4097"),
        ({"grid": "3.5"}, "grid"),
        ({"draws": "0"}, "draws lies in 1..1000"),
        ({"draws": "1001"}, "draws lies in 1..1000"),
        ({"prior": "Beta(1)"}, "Beta takes exactly"),
        ({"prior": "Uniform(0.3, 0.9)"}, "density is 0 at the grid's point 0.2"),
        ({"prior": "Beta(100000, 1)"}, "density is 0 at the grid's point 0.2"),
        ({"prior": "Independent(mean=Normal(0, 1), sd=HalfNormal(1))"}, "not of one number"),
        ({"prior": "__import__('os')"}, "not known"),
        ({"prior": f"Mixture({', '.join(['1, Beta(2, 3)'] * 80)})"}, "at most 1000 characters"),
        ({"seed": "1"}, "unknown key"),
    ],
)
def test_what_no_sample_may_say(change: dict[str, Any], rule: str) -> None:
    with pytest.raises(SpecError, match=rule) as refused:
        sampled_spec({"flag": drawn(**change)})
    assert "statistics.flag.sample" in refused.value.location
    assert len(str(refused.value)) <= 500


@pytest.mark.parametrize("missing", ["draws", "within", "grid"])
def test_what_decides_the_result_has_no_default(missing: str) -> None:
    entry = drawn()
    del entry["sample"][missing]
    with pytest.raises(SpecError, match=f"the key '{missing}' is missing"):
        sampled_spec({"flag": entry})


def test_a_prior_may_be_infinite_at_an_end_of_its_support_but_not_on_the_grid() -> None:
    entry = {"family": "exponential", "column": "x", "upper": "10"}
    sample: dict[str, Any] = {"draws": "1", "within": ["0.5", "4"], "grid": "9"}
    ends: dict[str, Any] = {
        "family": "normal_known_variance",
        "column": "x",
        "variance": "1",
        "lower": "0",
        "upper": "4",
    }
    spec = sampled_spec({"x": {**entry, "sample": {**sample, "prior": "Gamma(0.5, 1)"}}})
    assert sample_of(compile_plan(spec)).prior == "Gamma(0.5, 1)"
    with pytest.raises(SpecError, match="density is infinite at the grid's point 0"):
        sampled_spec({"x": {**ends, "sample": {**sample, "within": ["0", "4"], "prior": "Gamma(0.5, 1)"}}})


@pytest.mark.parametrize("family", NOT_SAMPLED)
def test_other_families_say_what_to_use_instead(family: str) -> None:
    entry = {"family": family, **NOT_SAMPLED[family], "sample": drawn()["sample"]}
    with pytest.raises(SpecError, match="has several parameters, and a sample is of one") as refused:
        sampled_spec({"x": entry})
    assert all(name in str(refused.value) for name, each in FAMILIES.items() if each.sampled is not None)
    assert "noisy statistics" in str(refused.value)


def test_a_sample_stands_beside_nothing_of_units() -> None:
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": UNIT}
    with pytest.raises(SpecError, match="nothing of units beside it"):
        sampled_spec({"flag": {**drawn(), "within_unit": "true"}}, privacy=privacy)


@pytest.mark.parametrize(("rows_of", "records"), [("rows", 4), ("units", 1)])
@pytest.mark.parametrize(("neighboring", "times"), [("add_or_remove_one", 1), ("replace_one", 2)])
def test_units_multiply_the_range(rows_of: str, records: int, neighboring: str, times: int) -> None:
    groups = {"g": {"range": ["1", "100"]}}
    row = sample_of(plan_of(drawn(), groups=groups)).range_sensitivity
    privacy = {"epsilon": "1", "neighboring": neighboring, "unit": UNIT}
    plan = plan_of({**drawn(), "rows_of": rows_of}, privacy=privacy, groups=groups)
    assert row * records * times - 2 <= sample_of(plan).range_sensitivity <= row * records * times


def test_with_a_public_number_of_records_slopes_alone_count() -> None:
    entry = {**drawn(within=["0.005", "0.5"]), "nulls": {"value": "0"}}
    public = plan_of(entry, neighboring="replace_one")
    private = plan_of(entry, neighboring="replace_one", groups={"g": ["a", "b"]})
    assert public.statistics[0].design is Design.MINIMAL
    assert public.n_is_public
    assert not private.n_is_public
    assert sample_of(public).range_sensitivity < 0.6 * sample_of(private).range_sensitivity


def test_shares_divide_epsilon_between_samples_and_noise() -> None:
    statistics = {"noisy": {"family": "bernoulli", "column": "f", "share": "3"}, "flag": drawn()}
    plan = compile_plan(sampled_spec(statistics, epsilon="2"))
    assert [statistic.loss.epsilon for statistic in plan.statistics] == [Fraction(3, 2), Fraction(1, 2)]
    sample = sample_of(plan, 1)
    assert sample.privacy_loss < Fraction(1, 2)
    assert Fraction(sample.draws * sample.range_sensitivity, sample.scale - 1) >= Fraction(1, 2)


def test_what_a_temperature_of_1_leaves_unused_is_said() -> None:
    plan = plan_of(drawn(), epsilon="100")
    sample = sample_of(plan)
    assert sample.temperature == 1
    unused = 100 - 2 * Fraction(sample.range_sensitivity, 2**20)
    (entry,) = plan_document(plan)["statistics"]
    assert Fraction(entry["sample"]["epsilon_unused"]) == unused
    assert f"{float(unused):.6g} of its epsilon are unused" in str(plan)
    assert "charged all the same" in str(plan)
    assert "unused" not in str(plan_of(drawn()))
    assert "temperature 2.77" in str(plan_of(drawn()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cells", "grid", "draws", "said"),
    [
        (1_000_000, "1025", "3", "3,075,000,000 candidates (cells x grid x draws): about 4 h of one core"),
        (25_000, "4000", "1", "100,000,000 candidates (cells x grid x draws): about 8 min of one core"),
        (24_999, "4000", "1", None),
    ],
)
def test_a_plan_says_what_takes_long_before_it_is_charged(
    cells: int, grid: str, draws: str, said: str | None
) -> None:
    plan = plan_of(drawn(grid=grid, draws=draws), groups={"g": {"range": ["1", str(cells)]}})
    (entry,) = plan_document(plan)["statistics"]
    assert entry["sample"]["candidates"] == cells * int(grid) * int(draws)
    assert (said or "nothing") in f"{plan} nothing"
    assert ("candidates" in str(plan)) == (said is not None)


def test_a_sample_that_says_nothing_of_the_data_is_refused() -> None:
    with pytest.raises(SpecError, match="above 2\\^26: the data would hardly count"):
        plan_of(drawn(within=["1e-150", "0.5"], draws="1000"), epsilon="0.000001")


def test_the_work_of_a_hostile_plan_is_bounded() -> None:
    """Points of all grids count as components do, and draws as cells."""
    many = {f"s{number}": drawn(grid="4097") for number in range(16)}
    with pytest.raises(SpecError, match="components are declared"):
        sampled_spec(many)
    with pytest.raises(SpecError, match="draws are declared in all cells"):
        plan_of(drawn(draws="1000"), groups={"g": {"range": ["1", "20000"]}})


def test_a_noisy_plans_scale_is_no_samples() -> None:
    statistic = plan_of({"family": "bernoulli", "column": "flag"}).statistics[0]
    assert statistic.sample is None
    assert statistic.n_values == 2
    assert dataclasses.replace(statistic, sample=sample_of(plan_of(drawn()))).n_values == 2
