"""Specs and plans in rho: what is refused, what a plan shows, and that readers compile the same."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice
from suffice.errors import SpecError, UsageError
from suffice.pipeline.spec.expected import ExpectPlan
from suffice.pipeline.spec.person import PersonLoss, of_release
from suffice.pipeline.spec.plan import compile_plan, plan_document
from suffice.pipeline.spec.recompile import read_canonical_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.delta import DELTAS, epsilon_at
from suffice.pipeline.terms.declaration.domains import Every
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss, PrivacyMeasure
from suffice.pipeline.terms.statistics.sensitivity import NeighboringRelation
from support.catalogue import ANY_STATISTIC

_ROW = "row"
_PERSON = {"column": "person", "max_rows": 3, "type": "text"}


def terms(privacy: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "name": "flights",
        "dataset": "flights",
        "privacy": {"neighboring": "add_or_remove_one", **privacy},
        "groups": {"origin": ["EWR", "JFK"]},
        "statistics": {
            "late": {"family": "bernoulli", "column": "late", "share": 3},
            "delay": {"family": "normal", "column": "delay", "lower": -60, "upper": 180},
            "both": {
                "family": "multivariate_normal",
                "columns": {"x": {"lower": -1, "upper": 1}, "y": {"lower": 0, "upper": 5}},
            },
            "rate": {
                "family": "poisson",
                "column": "stops",
                "upper": 4,
                "sample": {"within": ["0.1", "3"], "grid": 20, "draws": 2},
            },
        },
        **more,
    }


@pytest.mark.parametrize(
    ("privacy", "rule"),
    [
        ({"rho": "0.02", "delta": "1e-6"}, "privacy: takes no delta"),
        ({"epsilon": 1, "delta": "1e-6"}, "privacy: takes no delta"),
        ({"rho": "0.02", "epsilon": 1}, "privacy: needs epsilon: E, or rho: R .* not both"),
        ({}, "privacy: needs epsilon: E, or rho: R"),
        ({"rho": 0}, "privacy.rho: .* not above 0"),
        ({"rho": -1}, "privacy.rho: .* not above 0"),
        ({"rho": "0.0000000000001"}, "privacy.rho: .* more than twelve"),
        ({"rho": "1/3"}, "privacy.rho: .* not a finite decimal"),
        ({"rho": "9007.199254740992"}, r"privacy.rho: .* at most 9007\.199254740991"),
    ],
)
def test_other_losses_are_refused(privacy: dict[str, Any], rule: str) -> None:
    with pytest.raises(SpecError, match=rule):
        load_spec(terms(privacy))


@pytest.mark.parametrize(("stated", "counted"), [("rho", "epsilon"), ("epsilon", "rho")])
def test_a_count_before_the_rest_is_of_the_same_measure(stated: str, counted: str) -> None:
    window = {"column": "day", "every": "month"}
    with pytest.raises(SpecError, match=rf"expect: it states {counted}, and privacy states {stated}"):
        load_spec(terms({stated: "0.5"}, window=window, expect={"rows": 9, counted: "0.1"}))
    spec = load_spec(terms({stated: "0.5"}, window=window, expect={"rows": 9, stated: "0.1"}))
    plan = ExpectPlan.of(spec)
    assert plan is not None
    assert plan.loss.stated == {stated: "0.1"}
    assert (plan.noise.l2_squared == 1) == (stated == "rho")


def test_python_states_rho_alone() -> None:
    late = {"late": suffice.bernoulli()}
    spec = suffice.spec(dataset="flights", statistics=late, rho="0.02")
    assert spec.to_yaml().count("rho: 0.02") == 1
    assert spec.privacy.loss == PrivacyLoss.of_rho(Fraction("0.02"))
    with pytest.raises(UsageError, match="not both"):
        suffice.spec(dataset="flights", statistics=late, rho="0.02", epsilon=1)
    with pytest.raises(UsageError, match="takes no delta: here it is rho="):
        suffice.spec(dataset="flights", statistics=late, rho="0.02", delta=1e-6)
    with pytest.raises(UsageError, match="needs epsilon="):
        suffice.spec(dataset="flights", statistics=late)


def test_blocks_share_rho_and_none_costs_more_than_its_part() -> None:
    plan = compile_plan(load_spec(terms({"rho": "0.02"})))
    assert [block.loss.rho for block in plan.statistics] == [Fraction("0.02") * of / 6 for of in (3, 1, 1, 1)]
    assert plan.rho == Fraction("0.02")
    for block in plan.statistics:
        if block.sample is not None:
            assert block.sample.rho < (block.loss.rho or 0)
            continue
        assert block.l2_squared is not None
        spent = block.l2_squared / (2 * Fraction(block.scale) ** 2)
        assert spent <= (block.loss.rho or 0) < spent * (1 + Fraction(1, 10**14))


@settings(max_examples=30, deadline=None)
@given(entry=ANY_STATISTIC, unit=st.sampled_from([_ROW, _PERSON, {**_PERSON, "max_rows_per_cell": 2}]))
def test_replacing_costs_at_least_twice_as_much_as_adding(entry: dict[str, Any], unit: object) -> None:
    """So a row that leaves one window for another costs half in each; and L2 is at most L1."""
    squares = []
    for relation in NeighboringRelation:
        content = terms({"rho": "1000", "neighboring": str(relation), "unit": unit})
        content |= {"groups": {}, "statistics": {"s": entry}, "window": {"column": "date", "every": "day"}}
        (block,) = compile_plan(load_spec(content)).statistics
        if block.sample is not None:
            squares.append(block.sample.range_sensitivity**2 // 2)
            continue
        assert block.l2_squared is not None
        assert block.l2_squared <= block.l1_sensitivity**2
        squares.append(block.l2_squared)
    assert squares[1] >= 2 * squares[0]


def test_an_epsilon_plan_has_nothing_of_rho() -> None:
    plan = compile_plan(load_spec(terms({"epsilon": "0.5"})))
    printed = plan_document(plan)
    assert not re.search("rho|l2|delta", json.dumps(printed) + str(plan))
    parts = [block.loss.epsilon**2 / 2 for block in plan.statistics[:3]]  # type: ignore[operator]
    sample = plan.statistics[3].sample
    assert sample is not None
    exact = sum(parts) + sample.draws * Fraction(sample.range_sensitivity, sample.scale) ** 2 / 8
    assert 0 <= plan.rho - exact < Fraction(1, 10**12)


def test_a_plan_in_rho_shows_epsilons_and_squares() -> None:
    plan = compile_plan(load_spec(terms({"rho": "0.02"}, window={"column": "day", "every": "day"})))
    text = str(plan)
    assert "(epsilon, delta) at most (0.9, 1e-6), (1.17, 1e-9), (1.38, 1e-12)" in text
    assert "l2^2 and scale: in steps of the lattice" in text
    assert " l1 " not in text
    assert "7.32 in a year of days, with rows in each, (epsilon, delta) at most (26.3, 1e-6)" in text
    assert "loses up to r^2 times as much" in text
    assert "epsilon 0" not in text
    printed = plan_document(plan)
    assert printed["rho"] == printed["rho_per_window"] == "0.02"
    assert "epsilon" not in printed
    assert list(printed["epsilon_at"].values()) == [epsilon_at(Fraction("0.02"), delta) for delta in DELTAS]
    assert [block.get("l2_squared") for block in printed["statistics"]] == [
        block.l2_squared for block in plan.statistics
    ]


@pytest.mark.parametrize("privacy", [{"rho": "0.02"}, {"epsilon": "0.5"}])
def test_readers_compile_the_same_plan(privacy: dict[str, Any]) -> None:
    plan = compile_plan(load_spec(terms(privacy)))
    assert ('"rho"' in plan.canonical) == ("rho" in privacy)
    assert '"l2_squared"' not in plan.canonical, "it follows"
    read = read_canonical_plan(plan.canonical, plan.order)
    assert read.assemble(list(read.statistics())) == plan


@pytest.mark.parametrize(
    "change",
    [
        ('"rho":"0.02"', '"rho":"0.02","delta":"0.001"'),
        ('"rho":"0.02"', '"rho":"0.02","epsilon":"1"'),
        ('"rho":"0.02"', '"rho":"0.0200"'),
        ('"rho":"0.02",', ""),
    ],
)
def test_readers_refuse_other_losses(change: tuple[str, str]) -> None:
    plan = compile_plan(load_spec(terms({"rho": "0.02"})))
    text = plan.canonical.replace(*change)
    assert text != plan.canonical

    def compiled() -> None:
        read = read_canonical_plan(text, plan.order)
        read.assemble(list(read.statistics()))

    with pytest.raises(SpecError):
        compiled()


def test_noise_beyond_64_bits_is_refused() -> None:
    content = terms({"rho": "0.000000000001"})
    content["statistics"]["delay"]["lattice_bits"] = 24
    with pytest.raises(SpecError, match=r"noise scale .* is above 2\^55"):
        compile_plan(load_spec(content))


def test_rows_of_one_window_count_by_the_square() -> None:
    loss = PersonLoss(
        of_all=Fraction(1), windows={"g": {"2013-01-01": Fraction(3), "2013-01-02": Fraction(2)}}
    )
    by = {
        measure: [loss.of_rows(4, number, measure=measure) for number in (1, 2)] for measure in PrivacyMeasure
    }
    assert by[PrivacyMeasure.EPSILON] == [4 * 1 + 4 * 3, 4 * 1 + 3 * 3 + 2]
    assert by[PrivacyMeasure.RHO] == [16 * 1 + 16 * 3, 16 * 1 + 9 * 3 + 2]
    assert loss.of_rows(1, measure=PrivacyMeasure.RHO) == loss.in_windows(1)


def test_what_one_unit_loses_says_its_measure() -> None:
    said = of_release(PrivacyLoss.of_rho(Fraction("0.001")), Every.MONTH, "column:id")
    assert said.startswith("one unit: rho 0.001 in a window; 0.012 in a year of months, with rows in each, (")
    assert "times" not in said
    most = of_release(PrivacyLoss.of_rho(Fraction(10**6)), Every.DAY, "row")
    assert "366000000 in a year of days" in most, "a year of them may be more than a release may lose"
