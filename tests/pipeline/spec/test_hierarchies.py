"""Hierarchies: a statistic for every level, whose nodes follow from the spec alone."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import SpecError
from suffice.pipeline.spec.hierarchies import tree_of
from suffice.pipeline.spec.plan import compile_plan, plan_document
from suffice.pipeline.spec.recompile import read_canonical_plan
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.spec.terms import DeclaredOrder

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.terms.declaration.key_tree import KeyTree

STATES = {"Alameda": "CA", "Kern": "CA", "Kings": "NY"}
DAYS = {"from": "2013-01-01", "to": "2013-02-28", "every": "day"}


def content(**changes: Any) -> dict[str, Any]:
    return {
        "name": "visits",
        "dataset": "visits",
        "privacy": {"epsilon": "7", "neighboring": "add_or_remove_one"},
        "derived": {"state": {"column": "county", "map": STATES}},
        "statistics": {
            "visits": {
                "family": "bernoulli",
                "column": "ill",
                "hierarchy": ["nation", "state", "county"],
                "groups": {"county": list(STATES)},
            }
        },
        **changes,
    }


def of_visits(**changes: Any) -> dict[str, Any]:
    """Return a spec whose statistic says something else; what is None it does not say."""
    stated = content()
    entry = {**stated["statistics"]["visits"], **changes}
    stated["statistics"] = {"visits": {key: value for key, value in entry.items() if value is not None}}
    return stated


def tree(spec: Spec, name: str = "visits") -> KeyTree:
    levels = spec.hierarchies[name]
    leaves = spec.statistics[f"{name}.{levels[-1]}"]
    return tree_of("here", levels, spec.groups_of(leaves), spec.derived).keys


def recompiled(spec: Spec, text: str | None = None) -> str:
    plan = read_canonical_plan(spec.canonical_plan() if text is None else text, DeclaredOrder.of(spec))
    return plan.assemble(list(plan.statistics())).plan_hash


def test_every_level_is_a_statistic_of_its_own_groups_and_share() -> None:
    spec = load_spec(content())
    assert list(spec.statistics) == ["visits.nation", "visits.state", "visits.county"]
    assert [list(groups) for groups in spec.all_groups.values()] == [["nation"], ["state"], ["county"]]
    assert [len(next(iter(groups.values()))) for groups in spec.all_groups.values()] == [1, 2, 3]
    plan = compile_plan(spec)
    assert [statistic.loss.epsilon for statistic in plan.statistics] == [1, 2, 4]
    assert [statistic.l1_sensitivity for statistic in plan.statistics] == [1, 1, 1]
    assert recompiled(spec) == spec.plan_hash()
    assert tree(spec).keys == (("true",), ("CA", "NY"), tuple(STATES))
    assert tree(spec).parents == ((0, 0), (0, 0, 1))


def test_a_plan_shows_how_noisy_every_level_is() -> None:
    spec = load_spec(of_visits(level_shares=["1", "1.5", "2.5"]))
    said = str(spec.plan())
    tree_said = said[said.index("visits: a tree") : said.index("\nstate: ")].splitlines()
    assert "visits: a tree whose levels share 1 : 1.5 : 2.5; 95 %" in tree_said[0]
    assert len(tree_said) > 1
    assert max(map(len, tree_said)) <= 80
    (shown,) = plan_document(spec.plan())["trees"]
    assert [level["share"] for level in shown["levels"]] == ["0.2", "0.3", "0.5"]
    assert [level["cells"] for level in shown["levels"]] == [1, 2, 3]
    # at epsilon 1.4: P(|Z| > 2) is .040, and P(|Z| > 1) is .098
    assert shown["levels"][0]["noise_width"] == 4
    assert "trees" not in plan_document(load_spec(of_visits(hierarchy=None)).plan())


def test_shares_of_levels_are_parts_of_the_share_of_the_statistic() -> None:
    stated = content()
    stated["statistics"]["ill"] = {"family": "bernoulli", "column": "ill"}
    plan = compile_plan(load_spec(stated))
    by_name = {statistic.name: statistic.loss.epsilon for statistic in plan.statistics}
    assert by_name["ill"] == Fraction(7, 2)
    assert [by_name[f"visits.{level}"] for level in ("nation", "state", "county")] == [
        Fraction(1, 2),
        Fraction(1),
        Fraction(2),
    ]


def test_a_spec_without_a_hierarchy_has_the_plan_it_had() -> None:
    spec = load_spec(of_visits(hierarchy=None))
    assert "hierarch" not in spec.canonical_plan()
    assert spec.plan_hash() == "f34cab310328fbf4daa5b08e8c96f599e5288105a6c62898bbe92d1f89a284d0"
    assert compile_plan(spec).hierarchies == {}


def test_a_root_may_be_mapped_and_a_level_may_be_mapped_from_any_below() -> None:
    derived = {
        "state": {"column": "county", "map": STATES},
        "region": {"column": "county", "map": {"Alameda": "West", "Kern": "West", "Kings": "East"}},
        "nation": {"column": "region", "map": {"West": "USA", "East": "USA"}},
    }
    stated = of_visits(hierarchy=["nation", "region", "state", "county"])
    spec = load_spec({**stated, "derived": derived})
    assert tree(spec).keys[:2] == (("USA",), ("West", "East"))
    assert recompiled(spec) == spec.plan_hash()
    split = {"Alameda": "North", "Kern": "South", "Kings": "East"}
    with pytest.raises(SpecError, match="a state lies in two keys of 'region'"):
        load_spec({**stated, "derived": {**derived, "region": {"column": "county", "map": split}}})


def test_a_map_has_the_order_of_the_keys_that_it_is_of() -> None:
    """Of keys that a column's type makes equal the first counts, at every level the same."""
    turned = dict(reversed(STATES.items()))
    spec = load_spec(content(derived={"state": {"column": "county", "map": turned}}))
    state: Any = spec.derived["state"]
    assert list(state.map) == list(STATES)
    assert spec.plan_hash() == load_spec(content()).plan_hash()


def test_other_groups_have_a_tree_each() -> None:
    groups = {"year": {"range": ["2013", "2014"]}, "county": list(STATES)}
    spec = load_spec(of_visits(groups=groups))
    assert list(spec.all_groups["visits.state"]) == ["year", "state"]
    assert [level["cells"] for level in plan_document(spec.plan())["trees"][0]["levels"]] == [2, 4, 6]
    assert recompiled(spec) == spec.plan_hash()
    turned = load_spec(of_visits(groups=dict(reversed(groups.items()))))
    assert list(turned.all_groups["visits.state"]) == ["state", "year"]
    shared = {**of_visits(groups=None), "groups": groups}
    assert load_spec(shared).all_groups == spec.all_groups


def test_periods_are_levels_of_their_dates() -> None:
    spec = load_spec(of_visits(hierarchy=["all", "month", "day"], groups={"day": DAYS}))
    assert tree(spec).keys[1] == ("2013-01", "2013-02")
    assert [len(keys) for keys in tree(spec).keys] == [1, 2, 59]
    assert spec.statistics["visits.month"].groups is not None
    assert list(spec.statistics["visits.month"].groups) == ["day"]
    cells = "1 cell by all: visits.all; 2 cells by month: visits.month; 59 cells by day: visits.day"
    assert cells in str(spec.plan())
    assert cells in repr(spec)
    assert recompiled(spec) == spec.plan_hash()
    year = {"from": "2013-01", "to": "2013-12", "every": "month"}
    assert tree(load_spec(of_visits(hierarchy=["year", "at"], groups={"at": year}))).keys[0] == ("2013",)
    weeks = {"from": "2013-01-07", "to": "2013-01-20", "every": "day"}
    spec = load_spec(of_visits(hierarchy=["all", "week", "at"], groups={"at": weeks}))
    assert tree(spec).parents == ((0, 0), (0,) * 7 + (1,) * 7)


def test_levels_come_from_a_table_of_keys(tmp_path: Path) -> None:
    keys = {"levels": ["nation", "state", "county"], "keys": {"file": "counties.csv"}}
    stated = {key: value for key, value in of_visits(hierarchy=keys, groups=None).items() if key != "derived"}
    (tmp_path / "spec.json").write_text(json.dumps(stated))
    table = tmp_path / "counties.csv"
    table.write_text("state,county\n" + "".join(f"{state},{county}\n" for county, state in STATES.items()))
    spec = load_spec(tmp_path / "spec.json")
    assert spec.plan_hash() == load_spec(content()).plan_hash()
    table.write_text("nation,state,county\nUSA,CA,Alameda\nUSA,NY,Kings\n")
    assert tree(load_spec(tmp_path / "spec.json")).keys[0] == ("USA",)
    for text, rule in {
        "county,state\nAlameda,CA\n": "its levels in their order, as 'nation,state,county'.*line is another",
        "State,county\nCA,Alameda\n": "begins with its levels .*: its first line lacks state",
        "nation,state,county\nUSA,CA,Alameda\nUSA,NY\n": "needs 3 columns: line 3 has another number",
        "state,county\nCA,Alameda\nNY,Alameda\n": "lines 2 and 3 are duplicates.*below one parent",
        "nation,state,county\nUSA,CA,Alameda\nMexico,CA,Kern\n": "a state below two keys of nation",
        "state,county\nCA,Alameda\n,Kings\n": "a key in line 3 is empty",
        "state,county\n": "is empty",
    }.items():
        table.write_text(text)
        with pytest.raises(SpecError, match=rule) as raised:
            load_spec(tmp_path / "spec.json")
        assert "Alameda" not in str(raised.value)
    table.write_text("state,county\nCA,Alameda\n")
    (tmp_path / "spec.json").write_text(json.dumps({**stated, "groups": {"county": ["Alameda"]}}))
    with pytest.raises(SpecError, match="the keys of 'county' are stated twice"):
        load_spec(tmp_path / "spec.json")


MAPPED = {"column": "county", "map": STATES}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "one level": (of_visits(hierarchy=["county"]), "has 2 to 20 levels"),
    "no list": (of_visits(hierarchy="county"), "a hierarchy is a list of levels"),
    "a level twice": (of_visits(hierarchy=["county", "state", "County"]), "occurs twice"),
    "a reserved name": (of_visits(hierarchy=["value", "county"]), "is reserved"),
    "no leaf": (
        of_visits(hierarchy=["nation", "county", "state"]),
        "'state', is no group of the statistic",
    ),
    "two leaves": (
        of_visits(groups={"county": list(STATES), "state": ["CA", "NY"]}),
        "the level 'state' is a group too",
    ),
    "stored": (content(derived={}), "the level 'state' is no derived column.*derive it, as derived: {state:"),
    "no map": (
        content(derived={"state": {"column": "county", "equals": "Kern"}}),
        "'state' is a column already, derived or the root",
    ),
    "of another column": (
        content(derived={"state": {"column": "city", "map": STATES}}),
        "mapped from 'city', which is no level of keys below it",
    ),
    "a cycle": (
        of_visits(hierarchy=["state", "nation", "county"])
        | {"derived": {"state": MAPPED, "nation": {"column": "state", "map": {"CA": "x", "NY": "x"}}}},
        "'nation' is mapped from 'state', which is no level of keys below it",
    ),
    "no parent": (
        content(derived={"state": {"column": "county", "map": {"Alameda": "CA", "Kings": "NY"}}}),
        "1 key of county without a parent in the map of 'state', the first of them key number 2",
    ),
    "no leaf of a parent": (
        content(derived={"state": {"column": "county", "map": {**STATES, "Erie": "NY"}}}),
        "the map of 'state' has 1 key that county lacks",
    ),
    "otherwise": (content(derived={"state": {**MAPPED, "otherwise": "CA"}}), "has otherwise"),
    "equal numbers": (
        content(
            derived={"state": {"column": "county", "map": dict(zip(STATES, ["1", "1.0", "2"], strict=True))}}
        ),
        "duplicates, as text or as numbers",
    ),
    "several roots": (of_visits(hierarchy=["state", "county"]), "'state', has 2 keys: it is the root"),
    "duplicate leaves": (of_visits(groups={"county": ["Kern", "Kern"]}), "are duplicates"),
    "week in month": (
        of_visits(
            hierarchy=["all", "month", "week", "day"],
            groups={"day": DAYS | {"from": "2012-12-31", "to": "2013-03-03"}},
        ),
        "a week does not lie in one month: the levels month and week do not nest",
    ),
    "week in year": (
        of_visits(
            hierarchy=["year", "at"], groups={"at": {"from": "2013-W01", "to": "2013-W52", "every": "week"}}
        ),
        "a week does not lie in one year",
    ),
    "part of a month": (
        of_visits(hierarchy=["all", "month", "day"], groups={"day": DAYS | {"to": "2013-02-15"}}),
        "are no whole months.*as from 2013-01-01 to 2013-02-28",
    ),
    "the rest of a month": (
        of_visits(hierarchy=["all", "month", "day"], groups={"day": DAYS | {"from": "2013-01-15"}}),
        "are no whole months",
    ),
    "periods by a map": (
        of_visits(hierarchy=["all", "state", "county"], groups={"county": DAYS}),
        "state periods by the calendar",
    ),
    "a column of periods": (
        of_visits(hierarchy=["all", "season", "day"], groups={"day": DAYS}),
        "above periods stand week, month and year",
    ),
    "another family": (
        of_visits(family="pareto", minimum="1", upper="9"),
        "totals from 0 on, which add up, and pareto has neither: bernoulli, categorical count, and binomial",
    ),
    "another family, whose bounds are not stated yet": (
        of_visits(family="normal"),
        "a hierarchy holds counts of rows, or totals from 0 on, which add up, and normal has neither",
    ),
    "a sample": (
        of_visits(sample={"draws": "1", "within": ["0.1", "0.9"], "grid": "9"}),
        "a sample has no counts that add up",
    ),
    "rows in cells": (
        content(
            privacy={
                "epsilon": "7",
                "neighboring": "add_or_remove_one",
                "unit": {"column": "id", "max_rows": "9", "max_rows_per_cell": "2"},
            }
        ),
        "max_rows_per_cell keeps other rows of a unit at every level",
    ),
    "shares without levels": (of_visits(hierarchy=None, level_shares=["1"]), "of the levels of a hierarchy"),
    "too few shares": (of_visits(level_shares=["1", "2"]), "there are 3 levels and 2 shares"),
    "no share": (of_visits(level_shares=["1", "0", "2"]), "a share lies between"),
    "extreme shares": (
        of_visits(level_shares=["0.000001", "1", "999999.999999"], share="1000000"),
        "rounder",
    ),
    "stated by a plan": (content(hierarchies={"visits": ["nation", "county"]}), "unknown key"),
    "another key": (of_visits(hierarchy={"levels": ["nation", "county"]}), "a hierarchy is a list of levels"),
    "no name": (
        of_visits(hierarchy=["the nation", "state", "county"]),
        "'visits.the nation', which is no name",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_tree_is_refused(case: str) -> None:
    stated, rule = REFUSED[case]
    with pytest.raises(SpecError, match=f"(?s){rule}"):
        load_spec(stated)


def test_no_other_statistic_has_the_name_of_a_level() -> None:
    stated = content()
    stated["statistics"]["Visits.State"] = {"family": "bernoulli", "column": "ill"}
    with pytest.raises(SpecError, match=r"'visits\.state', and another one has this name"):
        load_spec(stated)


def test_levels_of_different_trees_with_one_name_are_alike() -> None:
    stated = content()
    twin = dict(stated["statistics"]["visits"], column="well")
    stated["statistics"]["twin"] = twin
    assert len(load_spec(stated).statistics) == 6
    twin["hierarchy"], twin["groups"] = ["nation", "city"], {"city": ["Oakland"]}
    with pytest.raises(SpecError, match=r"'nation' is a column already.*or call it otherwise"):
        load_spec(stated)


def changed(spec: Spec, change: Any) -> str:
    plan = json.loads(spec.canonical_plan())
    change(plan)
    return json.dumps(plan, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


FORGED: dict[str, Any] = {
    "levels swapped": lambda plan: plan["hierarchies"].update(visits=["state", "nation", "county"]),
    "a level left out": lambda plan: plan["hierarchies"].update(visits=["nation", "county"]),
    "another name": lambda plan: plan.update(hierarchies={"other": ["nation", "state", "county"]}),
    "a key's parent": lambda plan: plan["derived"]["state"]["map"].update(Kern="NV"),
    "another order": lambda plan: plan["statistics"]["visits.state"]["groups"].update(state=["NY", "CA"]),
    "another column": lambda plan: plan["statistics"]["visits.state"].update(column="well"),
    "another root": lambda plan: plan["derived"].update(nation={"column": "state", "in": ["CA"]}),
    "no root": lambda plan: plan["derived"].pop("nation"),
    "no trees": lambda plan: plan.update(hierarchies={}),
    "no mapping": lambda plan: plan.update(hierarchies=[]),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_plan_whose_statistics_are_no_tree_is_refused(case: str) -> None:
    spec = load_spec(content())
    with pytest.raises(SpecError):
        recompiled(spec, changed(spec, FORGED[case]))


@st.composite
def nested(draw: st.DrawFn) -> list[list[int]]:
    """Draw the parents of every level below the root: each node above has a child."""
    parents, width = [], 1
    for _ in range(draw(st.integers(1, 4))):
        more = draw(st.lists(st.integers(0, width - 1), max_size=4))
        parents.append(draw(st.permutations([*range(width), *more])))
        width = len(parents[-1])
    return parents


@pytest.mark.slow
@given(nested())
def test_any_nested_maps_are_the_tree_that_they_say(parents: list[list[int]]) -> None:
    depth = len(parents)
    names = [f"level{at}" for at in range(depth + 1)]
    keys = [["0.0"], *([f"{at}-{node}" for node in range(len(of))] for at, of in enumerate(parents, 1))]
    derived = {
        names[at]: {
            "column": names[at + 1],
            "map": {keys[at + 1][node]: keys[at][parent] for node, parent in enumerate(parents[at])},
        }
        for at in range(depth)
    }
    spec = load_spec(
        content(derived=derived)
        | {"statistics": of_visits(hierarchy=names, groups={names[-1]: keys[-1]})["statistics"]}
    )
    built = tree(spec)
    for at in range(depth):
        lies_in = {
            built.keys[at + 1][node]: built.keys[at][parent] for node, parent in enumerate(built.parents[at])
        }
        assert lies_in == derived[names[at]]["map"]
    assert recompiled(spec) == spec.plan_hash()
