"""Words for the public: no term of the plan, in one form, for what a release has, shown in place of names."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import SpecError, UsageError
from suffice.pipeline.spec.about import NOTHING, About, is_address, read_about
from suffice.pipeline.spec.expected import expect_spec
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_about, load_spec
from suffice.pipeline.terms.declaration import canonical_json
from support.making import mapping

GROUPS = {"origin": ["EWR", "JFK"], "month": {"range": [1, 12]}}
STATISTICS = {
    "cancelled": {"family": "bernoulli", "column": "c"},
    "delay": {"family": "normal", "column": "d", "lower": -60, "upper": 180},
    "carrier": {"family": "categorical", "column": "k", "categories": ["UA", "DL"], "other": True},
}
ABOUT: dict[str, Any] = {
    "title": "Flights",
    "description": "All of them.",
    "licence": "CC0-1.0",
    "contact": "data@example.org",
    "source": "https://example.org/data",
    "statistics": {
        "delay": {"label": "Arrival delay", "unit": "minutes", "digits": 1, "description": "How late."},
        "carrier": {
            "label": "Airline",
            "values": {"UA": "United", "other": "all others"},
            "parameters": {"probability": {"label": "Share of flights", "digits": 3}},
        },
    },
    "keys": {"origin": {"label": "Airport", "values": {"EWR": "Newark"}}, "month": {"label": "Month"}},
}
SHOWN = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=40)
WORDS = st.fixed_dictionaries(
    {}, optional={"label": SHOWN, "unit": SHOWN, "digits": st.integers(0, 12), "description": SHOWN}
)
ABOUTS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("title", "description", "licence", "contact", "source"), SHOWN),
        "statistics": st.dictionaries(st.sampled_from(sorted(STATISTICS)), WORDS, max_size=3),
        "keys": st.dictionaries(
            st.sampled_from(["origin", "month"]), st.fixed_dictionaries({}, optional={"label": SHOWN})
        ),
    },
)


def _spec(about: object = None, **changes: Any) -> dict[str, Any]:
    stated = {"groups": GROUPS, "statistics": STATISTICS, **changes}
    return mapping("data", **stated, **({} if about is None else {"about": about}))


@pytest.mark.slow
@given(ABOUTS)
def test_no_wording_changes_what_is_charged(about: dict[str, Any]) -> None:
    try:
        spec = load_spec(_spec(about))
    except SpecError:  # words of blanks, or of what cannot be seen
        return
    plain = load_spec(_spec())
    assert spec.canonical_plan() == plain.canonical_plan()
    assert compile_plan(spec) == compile_plan(plain)
    document = spec.about.document()
    assert read_about(document) == spec.about
    assert canonical_json.decode(canonical_json.encode(document)) == document


def test_words_are_read_as_they_are_written() -> None:
    about = load_spec(_spec(ABOUT)).about
    assert about.document() == ABOUT
    assert about
    assert not NOTHING
    assert load_spec(_spec({"title": " a\n  b "})).about.title == "a b"


def test_the_count_before_a_window_has_no_words() -> None:
    spec = load_spec(_spec(ABOUT, expect={"rows": 10, "epsilon": "0.1"}))
    assert not expect_spec(spec).about


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"titel": "x"}, "about.titel: unknown key"),
        ({"title": ""}, "about.title: needs 1 to 100"),
        ({"title": "x" * 101}, "about.title: needs 1 to 100"),
        ({"title": "a\u202eb"}, "about.title: needs 1 to 100"),
        ({"title": "a\x1b[31mb"}, "about.title: needs 1 to 100"),
        ({"title": "a\u200bb"}, "about.title: needs 1 to 100"),
        ({"title": ["x"]}, "about.title: needs one value"),
        ({"statistics": {"other": {"label": "x"}}}, "about.statistics.other: there is no such statistic"),
        ({"statistics": {"delay": {"digits": 13}}}, "about.statistics.delay.digits: digits after the point"),
        (
            {"statistics": {"delay": {"label": "x", "lable": "y"}}},
            "about.statistics.delay.lable: unknown key",
        ),
        ({"statistics": {"carrier": {"values": {"AA": "x"}}}}, "about.statistics.carrier.values.AA"),
        (
            {"statistics": {"delay": {"parameters": {"rate": {"unit": "x"}}}}},
            "about.statistics.delay.parameters",
        ),
        ({"keys": {"hour": {"label": "x"}}}, "about.keys.hour: there is no such group"),
        (
            {"keys": {"month": {"values": {"13": "x"}}}},
            "about.keys.month.values.13: the group has no such key",
        ),
        ({"keys": {"origin": {"label": "month"}}}, "about.keys.origin.label: this is the name of another"),
        (
            {"keys": {"origin": {"values": {"EWR": "JFK"}}}},
            "about.keys.origin.values.EWR: this is the name of another",
        ),
        ({"title": {}}, "about.title: needs one value"),
        ("words", "about: must be a mapping"),
    ],
)
def test_words_that_fit_nothing_are_refused_with_their_place(about: object, said: str) -> None:
    with pytest.raises(SpecError) as raised:
        load_spec(_spec(about))
    assert said in str(raised.value)


def test_more_words_than_readers_read_are_refused() -> None:
    keys = [f"k{number}" for number in range(2000)]
    about = {"keys": {"name": {"values": dict.fromkeys(keys, "x" * 100)}}}
    with pytest.raises(SpecError, match="about: words take more than"):
        load_spec(_spec(about, groups={"name": keys}))


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {"title": 3},
        {"title": " a"},
        {"keys": {}},
        {"title": None},
        {"statistics": {"delay": {"digits": "1"}}},
        {"statistics": {"delay": {"digits": True}}},
        {"title": {"a": {"b": {}}}},
    ],
)
def test_another_form_of_words_is_no_document(content: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whoever reads a file says what is wrong
        read_about(content)


def test_names_stand_for_themselves_where_nothing_is_said() -> None:
    about = load_spec(_spec(ABOUT)).about
    assert about.label("cancelled") == "cancelled"
    assert about.key("origin", "JFK") == "JFK"
    assert about.value("carrier", "DL") == "DL"
    assert about.axis("delay", "mean") == "Arrival delay, mean (minutes)"
    assert about.axis("delay", "variance") == "Arrival delay, variance (minutes²)"
    assert about.axis("carrier", "probability") == "Share of flights"
    assert about.digits("delay", "mean") == 1
    assert about.digits("delay", "variance") is None
    assert about.digits("carrier", "probability") == 3


def test_rows_for_people_have_labels_and_keep_their_number() -> None:
    about = load_spec(_spec(ABOUT)).about
    row = {"origin": "EWR", "month": 3, "parameter": "probability", "category": "UA", "mean": 0.25}
    (shown,) = about.rows("carrier", [row], ["origin", "month"])
    assert shown == {
        "Airport": "Newark",
        "Month": 3,
        "parameter": "Share of flights",
        "category": "United",
        "mean": 0.25,
    }


@pytest.mark.parametrize("label", ["Mean", "origin", "month"])
def test_labels_that_would_be_taken_for_another_column_are_not_shown(label: str) -> None:
    about = About.model_validate({"keys": {"month": {"label": label}}})
    (shown,) = about.rows("delay", [{"origin": "EWR", "month": "3", "mean": 1.0}], ["origin", "month"])
    assert len(shown) == 3
    assert set(shown) == {"origin", "month", "mean"}


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("https://example.org/a?b=c#d", True),
        ("http://example.org", False),
        ("javascript:alert(1)", False),
        ("https://example.org/ onclick=x", False),
        ('https://example.org/"x', False),
        ("https://exämple.org", False),
    ],
)
def test_a_page_leads_to_plain_addresses_alone(text: str, is_one: bool) -> None:
    assert is_address(text) is is_one


def test_words_stand_in_a_spec_or_alone(tmp_path: Any) -> None:
    alone, spec = tmp_path / "about.yaml", tmp_path / "spec.yaml"
    alone.write_text("title: Flights\nkeys: {origin: {label: Airport}}\n", encoding="utf-8")
    spec.write_text(
        "name: flights\nabout: {title: Flights, keys: {origin: {label: Airport}}}\n", encoding="utf-8"
    )
    assert load_about(alone) == load_about(spec)
    alone.write_text("titel: Flights\n", encoding="utf-8")
    with pytest.raises(SpecError, match="titel: unknown key"):
        load_about(alone)


def test_keys_are_named_by_their_labels() -> None:
    about = load_spec(_spec(ABOUT)).about
    asked: dict[str, object] = {"Airport": "Newark", "month": 3}
    assert about.in_names(asked, GROUPS) == {"origin": "EWR", "month": 3}
    assert about.in_names({"origin": "JFK", "Month": "3"}, GROUPS) == {"origin": "JFK", "month": "3"}
    assert about.in_names({"other": "x"}, GROUPS) == {"other": "x"}
    assert NOTHING.in_names({"origin": ["JFK"]}, GROUPS) == {"origin": ["JFK"]}
    with pytest.raises(UsageError, match="names origin twice"):
        about.in_names({"Airport": "Newark", "origin": "EWR"}, GROUPS)


def test_a_label_of_several_is_refused_with_the_choices() -> None:
    keys = {
        "origin": {"label": "Place", "values": {"EWR": "here", "JFK": "here"}},
        "month": {"label": "Place"},
    }
    about = load_spec(_spec({"keys": keys})).about
    with pytest.raises(UsageError, match=r"'here' is what several keys of origin are called.*'EWR' or 'JFK'"):
        about.in_names({"origin": "here"}, GROUPS)
    with pytest.raises(UsageError, match=r"'Place' is what several groups are called.*'origin' or 'month'"):
        about.in_names({"Place": "EWR"}, GROUPS)


def test_quantities_are_called_by_their_categories() -> None:
    about = load_spec(_spec(ABOUT)).about
    assert about.quantity("carrier", "count[UA], release 2") == "count[United], release 2"
    assert about.quantity("carrier", "n") == "n"
