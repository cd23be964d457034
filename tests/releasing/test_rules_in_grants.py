"""Raw files to a monthly release, and grants that hold for one way of reading windows and units alone."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice
from suffice.errors import GuaranteeError, SchemaError, SpecError, UsageError
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.parsed_values import parsed
from suffice.pipeline.rows.chunk.rule_fit import rule_fits
from suffice.pipeline.rows.sources.inspecting import inspect
from suffice.pipeline.spec import terms as spec_terms
from suffice.pipeline.spec.contract_fit import check_contract
from suffice.pipeline.terms.declaration.data_contract import parse_contract
from suffice.pipeline.terms.declaration.derived_values import Epoch, Parse, ParsedText
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.ledger.person import person_view

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from suffice.pipeline.terms.declaration.derived_conditions import DerivedColumn

DAY = {"column": "begin_date_time", "parse": "timestamp", "format": "%d-%b-%y %H:%M:%S", "pivot": 1950}
PERSON = {"column": "reporter", "normalize": "NFKC", "trim": True, "case": "lower"}
GRID = f"{json.dumps(DAY)}:month"
UNIT = f"column:{json.dumps(PERSON)}"
LINES = (
    "begin_date_time,reporter,damage",
    "14-NOV-93 18:00:00, Ann ,1",
    "14-nov-93 23:59:59,ANN,2",
    "30-Nov-93 23:59:59,bob,3",
    "01-DEC-93 00:00:00,bob,4",
    "1-DEC-93 00:00:00,Ｂob,5",
    "31-NOV-93 00:00:00,bob,6",
    "sometime in November,ann,7",
    "15-NOV-93 00:00:00,,8",
    ",ann,9",
    "14-NOV-13 18:00:00,ann,0",
)
"""As in raw files: names of months in any case, spaces, two digits of a year, and what is no date."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw").mkdir()
    with gzip.open("raw/storms.csv.gz", "wt", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in LINES))
    return tmp_path


ENTRIES: dict[str, Any] = {
    "name": "storms",
    "dataset": "storms",
    "source": {"csv": "raw/", "columns": {"damage": "number"}},
    "window": {"column": "day", "every": "month"},
    "privacy": {
        "epsilon": "1000",
        "neighboring": "add_or_remove_one",
        "unit": {"column": "who", "max_rows": 2},
    },
    "derived": {"day": DAY, "who": PERSON},
    "statistics": {"damage": {"family": "normal", "column": "damage", "lower": 0, "upper": 10}},
}


def spec_of(day: dict[str, Any] = DAY, person: dict[str, Any] = PERSON, **changes: Any) -> suffice.Spec:
    return suffice.load_spec({**ENTRIES, "derived": {"day": day, "who": person}, **changes})


def granted(**changes: Any) -> None:
    options: dict[str, Any] = {"per_window": GRID, "unit": UNIT, "units_disjoint": True, "sources": ["raw"]}
    suffice.grant("storms", 5000, reason="x", create=True, unwitnessed=True, **{**options, **changes})


def unopened(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object, **__: object) -> Any:
        message = "a source was opened"
        raise AssertionError(message)

    monkeypatch.setattr(sources, "pin", opened)


def test_raw_text_becomes_monthly_releases_with_nothing_preprocessed(place: Path) -> None:
    granted()
    spec = spec_of()
    november = suffice.release(spec, window="1993-11")
    december = suffice.release(spec, window="1993-12")
    assert november.unit == 'column:{"case":"lower","column":"reporter","normalize":"NFKC","trim":true}'
    estimates = [
        {row["quantity"]: row["estimate"] for row in release.table("damage")}
        for release in (november, december)
    ]
    for estimate, (n, total) in zip(estimates, ((3, 6), (2, 9)), strict=True):
        assert estimate["n"] == pytest.approx(n, abs=0.2)
        assert estimate["total"] == pytest.approx(total, abs=1)
    assert place.exists()


OTHER_DAYS = ({**DAY, "pivot": 1990}, {**DAY, "format": "%d-%B-%y %H:%M:%S"}, {**DAY, "parse": "date"})
OTHER_PEOPLE = ({**PERSON, "case": "upper"}, {"column": "reporter", "case": "lower"})


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("day", OTHER_DAYS, ids=["pivot", "format", "parse"])
def test_another_rule_of_the_window_is_refused_unopened(
    day: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    granted()
    unopened(monkeypatch)
    with pytest.raises(
        GuaranteeError, match=r"granted per window of \(begin_date_time as timestamp, written"
    ):
        suffice.release(spec_of(day), window="1993-11")
    with open_ledger("sqlite:///ledger.db") as ledger:
        assert ledger.count_charges("storms") == 0


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("person", OTHER_PEOPLE, ids=["case", "trim"])
def test_another_rule_of_the_unit_is_refused_unopened(
    person: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    granted()
    unopened(monkeypatch)
    with pytest.raises(
        GuaranteeError, match=r"protects the unit column:\(reporter in form NFKC, trimmed, in"
    ):
        suffice.release(spec_of(person=person), window="1993-11")


@pytest.mark.usefixtures("place")
def test_a_grant_that_compared_names_alone_would_let_a_row_into_two_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The attack that rules are there for: 14-NOV-13 is in 2013 by one pivot, in 1913 by another."""

    def name_alone(column: str, derived: Mapping[str, DerivedColumn]) -> str:
        del derived
        return column

    early = {**DAY, "pivot": 1900}
    monkeypatch.setattr(spec_terms, "column_or_rule", name_alone)
    granted(per_window="day:month", unit="column:who")
    counts = []
    for day, window in ((DAY, "2013-11"), (early, "1913-11")):
        released = suffice.release(spec_of(day, name=f"in-{window}"), window=window)
        counts += [row["estimate"] for row in released.table("damage") if row["quantity"] == "n"]
    assert counts == pytest.approx([1, 1], abs=0.2), "one row, in two windows of one grant"


@pytest.mark.usefixtures("place")
def test_what_the_columns_are_called_is_no_part_of_the_rule() -> None:
    granted()
    renamed = spec_of(
        name="again",
        derived={"at": DAY, "somebody": PERSON},
        window={"column": "at", "every": "month"},
        privacy={
            "epsilon": "1",
            "neighboring": "add_or_remove_one",
            "unit": {"column": "somebody", "max_rows": 2},
        },
    )
    assert (renamed.grid, renamed.unit_name) == (spec_of().grid, spec_of().unit_name)
    assert suffice.release(renamed, window="1993-11").window == "1993-11"


@pytest.mark.usefixtures("place")
def test_a_contract_states_the_rules_and_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    stated = inspect(spec_of()).contract
    document = stated.document()
    assert document["derived"] == {"day": {**DAY, "pivot": "1950"}, "who": PERSON}
    assert (document["unit"], document["window"]["column"]) == ("column:who", "day")
    assert parse_contract(stated.canonical, "contract") == stated
    terms: dict[str, Any] = {"per_window": None, "units_disjoint": False}
    granted(contract=stated, **terms)
    assert suffice.release(spec_of(), window="1993-11").window == "1993-11"
    unopened(monkeypatch)
    with pytest.raises(SchemaError, match="could lie in another window"):
        suffice.release(spec_of({**DAY, "pivot": 1990}), window="1993-12")
    with pytest.raises(SchemaError, match=r"contract has the unit column:\(reporter in form NFKC"):
        check_contract(spec_of(person={**PERSON, "case": "upper"}), stated)
    for changed, error in (
        ({"day": {**DAY, "pivot": 1990}, "who": PERSON}, GuaranteeError),
        ({"day": DAY, "who": {**PERSON, "case": "upper"}}, UsageError),
    ):
        other = parse_contract(json.dumps({**document, "derived": changed}), "contract")
        with pytest.raises(error):
            granted(contract=other, **terms)


def test_a_grant_may_use_the_names_of_its_contract(place: Path) -> None:
    contract = inspect(spec_of()).contract
    granted(contract=contract, unit="column:who", per_window="day:month")
    with open_ledger(f"sqlite:///{place}/ledger.db") as ledger:
        account = ledger.account("storms")
    assert account.unit == spec_of().unit_name
    assert account.per_window == spec_of().grid


def test_what_a_rule_of_units_does_not_read_is_no_unit_of_its_own() -> None:
    unit = {"column": "who", "max_rows": 2, "nulls": "own_unit"}
    privacy = {**ENTRIES["privacy"], "unit": unit}
    assert spec_of(privacy=privacy).privacy.column_unit is not None
    with pytest.raises(SpecError, match="would be a unit of its own each time"):
        spec_of(person={"column": "reporter", "parse": "number"}, privacy=privacy)


@pytest.mark.usefixtures("place")
def test_a_first_contract_after_charges_by_window_is_refused() -> None:
    granted()
    suffice.release(spec_of(), window="1993-11")
    with pytest.raises(GuaranteeError, match="read without a contract"):
        granted(contract=inspect(spec_of()).contract)


@pytest.mark.parametrize("kind", [pa.float64(), pa.decimal128(20, 0)])
def test_a_number_that_may_have_been_rounded_is_no_time(kind: pa.DataType) -> None:
    """A double next to midnight is the next day's; the same integer, or its text, is of the day before."""
    of = ParsedText(column="raw", parse=Parse.TIMESTAMP, epoch=Epoch.NANOSECONDS)
    stored = [1_385_855_999_999_999_999, 2**53 - 1]
    read = parsed(pa.array(stored, pa.int64()).cast(kind, safe=False), of).to_pylist()
    exact = parsed(pa.array(stored, pa.int64()), of).to_pylist()
    assert read == [None, exact[1]]
    assert exact[0] is not None


def test_a_relative_witness_is_the_one_that_was_granted(place: Path) -> None:
    terms: dict[str, Any] = {"unit": UNIT, "per_window": GRID, "units_disjoint": True, "sources": ["raw"]}
    suffice.grant("storms", 5000, reason="x", create=True, witness="witness.json", **terms)
    assert suffice.release(spec_of(), window="1993-11", witness="witness.json").window == "1993-11"
    assert (place / "witness.json").exists()


@pytest.mark.parametrize("key", ["Ann", " ann"])
def test_keys_that_no_derived_text_is_equal_to_are_refused(key: str) -> None:
    counted = {"family": "categorical", "column": "who", "categories": [key, "bob"], "other": True}
    of_bernoulli = {"family": "bernoulli", "column": "damage", "groups": {"who": [key]}}
    for changes, where in (
        ({"groups": {"who": [key]}}, "groups.who"),
        ({"statistics": {"s": counted}}, "statistics.s"),
        ({"statistics": {"s": of_bernoulli}}, "statistics.s.groups.who"),
    ):
        with pytest.raises(SpecError, match="as 'who' is derived") as caught:
            spec_of(**changes)
        assert where in str(caught.value)
    assert spec_of(groups={"who": ["ann", "ünal", "İ"]}).groups


@pytest.mark.usefixtures("place")
def test_rows_in_memory_are_read_by_the_same_rules() -> None:
    rows = [line.split(",") for line in LINES[1:]]
    names = LINES[0].split(",")
    frame = {name: [row[at] or None for row in rows] for at, name in enumerate(names)}
    data = pa.table({**frame, "damage": [float(row[2]) for row in rows]})
    columns = {"begin_date_time": "text", "reporter": "text", "damage": "floating"}
    terms: dict[str, Any] = {"per_window": None, "units_disjoint": False, "sources": ["data:"]}
    granted(contract=columns, **terms)
    with open_ledger("sqlite:///ledger.db") as ledger:
        stated = ledger.contract("storms")
    assert stated is not None
    assert (stated.unit, stated.unit_column, stated.unit_name) == (
        "column:unit",
        "reporter",
        spec_of().unit_name,
    )
    entries = {key: value for key, value in ENTRIES.items() if key not in {"source", "window"}}
    released = suffice.release({**entries, "derived": {"who": PERSON}}, data=data)
    n = next(row["estimate"] for row in released.table("damage") if row["quantity"] == "n")
    assert n == pytest.approx(2 + 2, abs=0.2), "two of Ann's rows, and two of Bob's"


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"derived": {"day": DAY}}, "which columns does not name"),
        ({"derived": {"day": DAY, "who": PERSON, "more": DAY}}, "neither the unit's column nor the window's"),
        ({"derived": {"day": DAY, "who": {"column": "damage", "parse": "number"}}}, "read from text"),
        ({"derived": {"day": DAY, "who": {"column": "reporter", "in": ["a"]}}}, "derived in another way"),
        ({"derived": {"day": {"column": "damage", "above": 1}, "who": PERSON}}, "derived in another way"),
        ({"derived": {"day": {**DAY, "pivot": None}, "who": PERSON}}, "missing"),
        ({"derived": {"day": DAY, "who": PERSON, "damage": DAY}}, "columns names it, too"),
    ],
)
def test_a_contract_with_other_rules_is_refused(changes: dict[str, Any], rule: str) -> None:
    document = {
        "columns": {"begin_date_time": "text", "reporter": "text", "damage": "floating"},
        "derived": {"day": DAY, "who": PERSON},
        "unit": "column:who",
        "window": {"column": "day", "time_zone": "UTC"},
        "source": {"kind": "parquet"},
    }
    assert parse_contract(json.dumps(document), "contract").unit_column == "reporter"
    with pytest.raises(UsageError, match=rule):
        parse_contract(json.dumps({**document, **changes}), "contract")


@pytest.mark.usefixtures("place")
def test_the_owner_learns_how_many_do_not_read() -> None:
    spec = spec_of()
    fits = rule_fits(spec, inspect(spec).contract)
    assert {name: (fit.values, fit.fit) for name, fit in fits.items()} == {"day": (9, 7), "who": (9, 9)}
    assert rule_fits(
        spec_of(window={"column": "begin_date_time", "every": "month"}, derived={"who": PERSON}),
        inspect(spec).contract,
    ).keys() == {"who"}


@pytest.mark.parametrize(
    ("derived", "place", "rule"),
    [
        ({"day": {"column": "x", "parse": "number"}}, "window.column", "derived in another way"),
        ({"day": {"column": "x", "part": "day"}}, "window.column", "derived in another way"),
        (
            {"day": {**DAY, "column": "tidy"}, "tidy": {"column": "x", "trim": True}},
            "window.column",
            "another",
        ),
        (
            {"day": {"column": "x", "parse": "date", "epoch": "seconds"}},
            "window.column",
            "write parse: timestamp",
        ),
        ({"who": {"column": "reporter", "map": {"a": "b"}}}, "privacy.unit.column", "derived in another way"),
        ({"who": {"coalesce": ["reporter", "x"]}}, "privacy.unit.column", "derived in another way"),
    ],
)
def test_what_no_grant_can_name_is_refused(derived: dict[str, Any], place: str, rule: str) -> None:
    window = {"column": "day", "every": "month", "time_zone": "America/New_York"}
    with pytest.raises(SpecError, match=rule) as caught:
        spec_of(derived={"day": DAY, "who": PERSON, **derived}, window=window)
    assert place in str(caught.value)


def test_a_units_type_is_that_of_its_rule() -> None:
    unit = {"column": "who", "max_rows": 2, "type": "integer"}
    privacy = {"epsilon": 1, "neighboring": "add_or_remove_one", "unit": unit}
    with pytest.raises(SpecError, match="is text, not integer"):
        spec_of(privacy=privacy)
    numbered = spec_of(person={"column": "reporter", "parse": "number"}, privacy=privacy)
    assert numbered.unit_name == 'column:{"column":"reporter","parse":"number"}'


def test_names_of_files_and_folders_serve_beside_a_rule(place: Path) -> None:
    """A row is in a window by its file's name and by the day that its text reads as."""
    for folder, lines in {"1993/11": (1, 2, 4), "1993/12": (3, 4, 5)}.items():
        (place / "by_month" / folder).mkdir(parents=True)
        text = "".join(f"{LINES[at]}\n" for at in (0, *lines))
        (place / "by_month" / folder / "a.csv").write_text(text, encoding="utf-8")
    window = {"column": "day", "every": "month", "files_by_window": "{yyyy}/{mm}"}
    spec = spec_of(source={"csv": "by_month/", "columns": {"damage": "number"}}, window=window)
    granted(sources=["by_month"])
    for label, n in (("1993-11", 2), ("1993-12", 2)):
        released = suffice.release(spec, window=label)
        damaged = next(row["estimate"] for row in released.table("damage") if row["quantity"] == "n")
        assert damaged == pytest.approx(n, abs=0.2)
    day = {"column": "dt", "parse": "date", "format": "%Y%m%d"}
    stated = place / "in_folders" / "dt=19931114"
    stated.mkdir(parents=True)
    pq.write_table(pa.table({"reporter": ["a", "b"], "damage": [1.0, 2.0]}), stated / "a.parquet")
    source = {"parquet": "in_folders/", "hive": {"dt": "text"}}
    suffice.grant("folders", 5000, reason="x", unit=UNIT, sources=["in_folders"], unwitnessed=True)
    spec = spec_of(day, dataset="folders", name="folders", source=source)
    released = suffice.release(spec, window="1993-11")
    damaged = next(row["estimate"] for row in released.table("damage") if row["quantity"] == "n")
    assert damaged == pytest.approx(2, abs=0.2)


@pytest.mark.usefixtures("place")
def test_what_one_unit_loses_is_counted_by_the_rule() -> None:
    """Windows of another name and the same rule are windows of one grid."""
    granted()
    suffice.release(spec_of(), window="1993-11")
    window = {"column": "at", "every": "month"}
    renamed = spec_of(name="again", derived={"at": DAY, "who": PERSON}, window=window)
    suffice.release(renamed, window="1993-11")
    with open_ledger("sqlite:///ledger.db") as ledger:
        account = ledger.account("storms")
        view = person_view(ledger, account)
        assert view.windows == {renamed.grid: 1}
        assert view.loss.in_a_window == 2000
        assert "one value of (reporter in form NFKC, trimmed, in lower case)" in " ".join(view.assumptions)
        assert ledger.verify() == ()
    shown = str(account)
    assert "unit column:(reporter in form NFKC, trimmed, in lower case)" in shown
    assert "(begin_date_time as timestamp, written %d-%b-%y %H:%M:%S with years from 1950):month:UTC" in shown
