"""Releases of accounts with a contract: what files hold, lack or are typed as decides no status or text."""

from __future__ import annotations

import itertools
import json
import shutil
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.cli import app
from suffice.errors import GuaranteeError, LedgerCorruptError, SchemaError, StageFailedError, UsageError
from suffice.pipeline.rows.sources import schema_check
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.data_contract import parse_contract
from suffice.releasing.release import carry_out
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.operations.witness import make_witness
from support.paid import copy_database, restore_database
from support.typed_files import NULLS, ROWS, WRITERS, by_pandas, by_pyarrow, with_nulls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from suffice.pipeline.terms.declaration.data_contract import DataContract

FAMILIES = {
    "carrier": "text",
    "cancelled": "boolean",
    "day": "date",
    "customer": "integer",
    "stops": "integer",
    "arr_delay": "floating",
}
STATISTICS = {
    "carrier": {"family": "categorical", "column": "carrier", "categories": ["UA", "DL"], "other": True},
    "cancelled": {"family": "bernoulli", "column": "cancelled"},
    "stops": {"family": "poisson", "column": "stops", "upper": 5},
}
UNITS: dict[str, Any] = {
    "row": "row",
    "drop": {"column": "customer", "max_rows": "2"},
    "own_unit": {"column": "customer", "max_rows": "2", "nulls": "own_unit"},
}


def contract(unit: str = "row", *, kind: str = "parquet", **changes: Any) -> DataContract:
    document = {
        "columns": FAMILIES,
        "unit": "row" if unit == "row" else "column:customer",
        "window": {"column": "day", "time_zone": "UTC"},
        "source": {"kind": kind, **changes.pop("source", {})},
        **changes,
    }
    return parse_contract(json.dumps(document), "contract")


@dataclass(frozen=True)
class Place:
    """A ledger with an account that has a contract, or none, and an empty folder of data."""

    directory: Path
    unit: str = "row"
    hive: bool = False

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def folder(self) -> Path:
        return self.data / "part=a" if self.hive else self.data

    @property
    def ledger(self) -> str:
        return f"sqlite:///{self.directory}/ledger.db"

    def make(self, stated: DataContract | None, **terms: Any) -> Place:
        shutil.rmtree(self.directory, ignore_errors=True)
        self.folder.mkdir(parents=True)
        with create_ledger(self.ledger) as ledger:
            ledger.grant(
                "passengers",
                epsilon=Fraction(10),
                unit="row" if self.unit == "row" else "column:customer",
                reason="tests",
                contract=stated,
                **({"unwitnessed": True} | terms if stated is not None else terms),
            )
        return self

    def document(self, **changes: Any) -> dict[str, Any]:
        source: dict[str, Any] = {"parquet": str(self.data)}
        if self.hive:
            source["hive"] = {"part": "text"}
        return {
            "name": "flights",
            "dataset": "passengers",
            "source": source,
            "window": {"column": "day", "every": "month"},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": UNITS[self.unit]},
            "statistics": STATISTICS,
            **changes,
        }

    def release(self, cluster: str = "threads", *, store: str | None = None, **changes: Any) -> Any:
        return carry_out(
            load_spec(self.document(**changes)),
            store=store or str(self.directory / "releases"),
            ledger=self.ledger,
            cluster=cluster,
            window="2013-01",
            publish_timeout=0,
        )

    def printed(self, capsys: pytest.CaptureFixture[str]) -> tuple[Any, ...]:
        """Return the status of a release, all that it prints but for what is drawn, and what it costs."""
        spec = self.directory / "spec.json"
        spec.write_text(json.dumps(self.document()))
        words = ["release", str(spec), "--window", "2013-01", "--ledger", self.ledger, "--store"]
        with pytest.raises(SystemExit) as caught:
            app.main([*words, str(self.directory / "releases"), "--json"])
        captured = capsys.readouterr()
        document = json.loads(captured.out)
        drawn = document.pop("release_id", ""), document.pop("uri", "")
        document.pop("released", None)  # the hour
        for file in document.get("files", ()):
            file["path"], file["sha256"] = file["path"].removeprefix(drawn[1]), len(file["sha256"])
        with open_ledger(self.ledger) as ledger:
            spent = ledger.account("passengers").spent + ledger.account("passengers").reserved
        return caught.value.code, json.dumps(document), captured.err, spent


def cases(place: Place) -> Iterator[Callable[[], object]]:
    """Give what may be found: nothing, an empty folder, a broken file, and every writer's every column."""
    first = place.folder / "a.parquet"
    for beside in (False, True):
        write = partial(_write, place, beside=beside)
        for writer, column, nulls in itertools.product(WRITERS, ROWS, NULLS):
            yield partial(write, writer, with_nulls(column, nulls))
        for column in ROWS:
            lacking = {name: values for name, values in ROWS.items() if name != column}
            yield partial(write, "pyarrow", lacking)
            yield partial(_write_nested, place, column, beside=beside)
        yield partial(_write_bytes, first, b"", beside and place)
        yield partial(_write_bytes, first, b"PAR1no", beside and place)
    yield tuple
    yield first.mkdir
    yield (place.data / "part=b").mkdir


def _write_bytes(path: Path, content: bytes, place: Place | bool) -> None:
    if isinstance(place, Place):
        _write(place, "pyarrow", ROWS, beside=True)
    path.write_bytes(content)


def _write(place: Place, writer: str, columns: dict[str, list[Any]], beside: bool) -> None:
    if beside:
        by_pyarrow(ROWS, place.folder / "b.parquet")
    WRITERS[writer](columns, place.folder / "a.parquet")


def _write_nested(place: Place, column: str, beside: bool) -> None:
    _write(place, "pyarrow", ROWS, beside)
    table = pq.read_table(place.folder / "a.parquet").drop_columns([column])
    pq.write_table(table.append_column(column, pa.array([[1]] * 6)), place.folder / "a.parquet")


def outcomes(place: Place, stated: DataContract, capsys: pytest.CaptureFixture[str], step: int) -> set[Any]:
    expected = list(itertools.islice(cases(place), 0, None, step))
    contracts = set()
    for write in expected:
        place.make(stated)
        write()
        contracts.add(place.printed(capsys))
    assert len(expected) > 5
    return contracts


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_no_writer_type_or_null_changes_status_or_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], unit: str
) -> None:
    place = Place(tmp_path / "here", unit)
    (outcome,) = outcomes(place, contract(unit), capsys, step=31)
    assert outcome[0] == 0
    assert outcome[3] == 1


@pytest.mark.audit
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("hive", [False, True])
@pytest.mark.parametrize("unit", UNITS)
def test_all_writers_types_and_nulls_are_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], unit: str, *, hive: bool
) -> None:
    place = Place(tmp_path / "here", unit, hive=hive)
    folders = {"part": {"type": "text", "keys": ["part"], "is_made": False}}
    columns = {**FAMILIES, **({"part": "text"} if hive else {})}
    stated = contract(unit, columns=columns, source={"folders": folders} if hive else {})
    (outcome,) = outcomes(place, stated, capsys, step=1)
    assert (outcome[0], outcome[3]) == (0, 1)


SIX: dict[str, Callable[[Place], object]] = {
    "text": lambda place: by_pandas(with_nulls("carrier", "all"), place.folder / "b.parquet"),
    "boolean": lambda place: by_pandas(with_nulls("cancelled", "all"), place.folder / "b.parquet"),
    "date": lambda place: by_pandas(with_nulls("day", "all"), place.folder / "b.parquet"),
    "unit": lambda place: by_pandas(
        {**ROWS, "customer": [None] * 6, "carrier": [None] * 6}, place.folder / "b.parquet"
    ),
    "folder": lambda place: (place.data / "day=2013-02-30").mkdir(),
    "empty": lambda place: (place.folder / "a.parquet").unlink(),
}
"""What follows from one record, and decided the exit status."""


@pytest.mark.parametrize("case", SIX)
def test_the_six_cases_end_as_a_plain_file_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    place = Place(tmp_path / "here", "drop")
    place.make(contract("drop"))
    by_pandas(ROWS, place.folder / "a.parquet")
    plain = place.printed(capsys)
    assert (plain[0], plain[3]) == (0, 1)
    place.make(contract("drop"))
    by_pandas(ROWS, place.folder / "a.parquet")
    SIX[case](place)
    assert place.printed(capsys) == plain
    if case in {"text", "date", "empty"}:  # the control: today's rules
        place.make(None)
        by_pandas(ROWS, place.folder / "a.parquet")
        SIX[case](place)
        assert place.printed(capsys)[0] in {2, 4}


@pytest.mark.parametrize(
    "changes",
    [
        {"groups": {"origin": ["EWR"]}},
        {"groups": {"carrier": {"from": "2013-01", "to": "2013-02", "every": "month"}}},
        {"window": {"column": "day", "every": "month", "time_zone": "Europe/Berlin"}},
        {"window": {"column": "stops", "every": "month"}},
        {"derived": {"carrier": {"column": "stops", "above": "1"}}},
        {"source": {"csv": "data"}},
        {"statistics": {"x": {"family": "normal", "column": "carrier", "lower": 0, "upper": 1}}},
        {"statistics": {"x": {"family": "bernoulli", "column": "Cancelled"}}},
    ],
)
def test_a_spec_that_does_not_fit_is_refused_and_nothing_is_opened(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    """The folder of the data is not there: looking at it would be another error."""
    place = Place(tmp_path / "here").make(contract())
    place.data.rmdir()
    with pytest.raises(SchemaError) as caught:
        place.release(**changes)
    assert caught.value.exit_status == 4
    assert "contract" in str(caught.value)
    with pytest.raises(UsageError, match="no Parquet file"):
        place.release()
    with open_ledger(place.ledger) as ledger:
        assert ledger.count_charges("passengers") == 0


def test_a_pattern_and_a_file_have_roots_of_their_own(tmp_path: Path) -> None:
    place = Place(tmp_path / "here").make(contract())
    assert place.release(source={"parquet": f"{place.data}/*/*.parquet"}, name="none").status == "published"
    for missing in (f"{place.data}/a.parquet", f"{place.directory}/other/*.parquet"):
        with pytest.raises(UsageError):
            place.release(source={"parquet": missing}, name="absent")


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["threads", "local"])
def test_threads_and_processes_sum_the_same(tmp_path: Path, cluster: str) -> None:
    """With hardly any noise, what all writers wrote of the same rows is the same sums."""
    place = Place(tmp_path / "here", "drop").make(contract("drop"))
    with open_ledger(place.ledger) as ledger:
        ledger.grant("passengers", epsilon=Fraction(10**6), reason="exact", unwitnessed=True)
    for number, (name, write) in enumerate(WRITERS.items()):
        customers = [100 * number + customer for customer in ROWS["customer"]]
        write({**ROWS, "customer": customers}, place.folder / f"{name.replace(' ', '-')}.parquet")
    privacy = {"epsilon": "100000", "neighboring": "add_or_remove_one", "unit": UNITS["drop"]}
    release = place.release(cluster, privacy=privacy).release
    counts = {row["category"]: row["estimate"] for row in release.table("carrier")}
    assert {key: round(value) for key, value in counts.items()} == {"UA": 15, "DL": 10, "other": 5}


@pytest.mark.slow
def test_an_older_ledger_and_a_fresh_store_are_refused(tmp_path: Path) -> None:
    """A copy from before the first charge: with today's rules exit 0, and epsilon 2 for 1."""
    witness = str(tmp_path / "elsewhere" / "witness")
    (tmp_path / "elsewhere").mkdir()
    guards: dict[str, dict[str, Any]] = {
        "witness": {"witness": witness},
        "store": {},
        "nothing": {"unwitnessed": True},
    }
    for name, terms in guards.items():
        place = Place(tmp_path / name)
        stores = [str(place.directory / "releases"), str(place.directory / "second")]
        pins = {"stores": stores, "unwitnessed": False} if name == "store" else {"unwitnessed": False} | terms
        place.make(contract(), **pins)
        by_pyarrow(ROWS, place.folder / "a.parquet")
        with open_ledger(place.ledger) as ledger:
            assert ledger.account("passengers").is_guarded == (name != "nothing")
            if name == "witness":
                make_witness(ledger, witness)
        copy_database(place.directory / "ledger.db", place.directory / "copy.db")
        assert place.release().status == "published"
        restore_database(place.directory / "copy.db", place.directory / "ledger.db")
        if name == "nothing":
            assert place.release(store=str(place.directory / "second")).status == "published"
            continue
        with pytest.raises(LedgerCorruptError):
            place.release(store=str(place.directory / "second"))
        with pytest.raises((LedgerCorruptError, GuaranteeError)):
            place.release(store=f"{place.directory}/releases/fresh")


def test_a_run_names_no_other_witness(tmp_path: Path) -> None:
    place = Place(tmp_path / "here")
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    place.make(None, witness=first)
    by_pyarrow(ROWS, place.folder / "a.parquet")
    with open_ledger(place.ledger) as ledger:
        make_witness(ledger, first)
        make_witness(ledger, second)
    arguments: dict[str, Any] = {
        "store": str(tmp_path / "releases"),
        "ledger": place.ledger,
        "window": "2013-01",
    }
    with pytest.raises(GuaranteeError, match="leave --witness"):
        carry_out(load_spec(place.document()), witness=second, **arguments)
    assert carry_out(load_spec(place.document()), witness=first, **arguments).status == "published"
    with open_ledger(place.ledger) as ledger:
        assert ledger.head() == make_witness(ledger, first).head


def test_a_contract_that_changed_meanwhile_stops_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path / "here").make(contract())
    by_pyarrow(ROWS, place.folder / "a.parquet")
    of_columns = schema_check.check_columns

    def granting(*arguments: Any) -> Any:
        with open_ledger(place.ledger) as ledger:
            more = contract(columns={**FAMILIES, "gate": "text"})
            ledger.grant("passengers", epsilon=Fraction(10), contract=more, reason="x", unwitnessed=True)
        return of_columns(*arguments)

    monkeypatch.setattr(schema_check, "check_columns", granting)
    with pytest.raises(GuaranteeError, match="changed since this run began"):
        place.release()
    monkeypatch.undo()
    assert place.release().release.manifest["contract"] != contract().sha256


def test_releases_say_by_which_contract_they_were_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_one, without = Place(tmp_path / "one").make(contract()), Place(tmp_path / "none").make(None)
    for place, stated in ((with_one, contract().sha256), (without, None)):
        by_pyarrow(ROWS, place.folder / "a.parquet")
        release = place.release().release
        assert release.manifest.get("contract") == stated
        spec = place.directory / "spec.json"
        spec.write_text(json.dumps(place.document()))
        shown = {}
        for words in (("show", release.uri), ("ledger", "show", "--ledger", place.ledger)):
            with pytest.raises(SystemExit):
                app.main(words)
            shown[words[0]] = capsys.readouterr().out
        with pytest.raises(SystemExit):
            app.main(["plan", str(spec), "--ledger", place.ledger])
        shown["plan"] = capsys.readouterr().out
        for text in shown.values():
            assert (stated[:16] if stated else "typed, and which there are, ") in text


def test_a_damaged_page_is_still_a_failure(tmp_path: Path) -> None:
    """A footer decides nothing; bytes that cannot be decoded end the run, and its epsilon returns."""
    place = Place(tmp_path / "here").make(contract())
    by_pyarrow(ROWS, place.folder / "a.parquet")
    content = bytearray((place.folder / "a.parquet").read_bytes())
    content[4:40] = b"\xff" * 36
    (place.folder / "a.parquet").write_bytes(content)
    with pytest.raises(StageFailedError):
        place.release()


CSV = {"columns": {"stops": "integer", "day": "date", "cancelled": "boolean", "customer": "integer"}}
HEAD = "customer,carrier,cancelled,stops,day\n"
CSV_FILES = {
    "rows": HEAD + "3,UA,true,1,2013-01-05\n",
    "nothing": "",
    "one blank": "\n",
    "no unit": "carrier,cancelled,stops,day\nUA,true,1,2013-01-05\n",
    "units twice": "customer,customer,cancelled,stops,day\n1,2,true,1,2013-01-05\n",
    "no column": "customer,day\n3,2013-01-05\n",
    "dirty": HEAD + "id of a person,UA,maybe,many,2013-02-30\n",
    "malformed": HEAD + '"3,UA\n3\n',
}


@pytest.mark.parametrize("lines", [*CSV_FILES, None])
def test_lines_of_text_decide_nothing_either(tmp_path: Path, lines: str | None) -> None:
    place = Place(tmp_path / "here", "drop")
    delimited = {"delimiter": ",", "quote": '"'}
    place.make(contract("drop", kind="csv", source={"delimited": delimited, "dates": "iso_8601"}))
    (place.data / "a.csv").write_text(CSV_FILES["rows"])
    if lines is None:
        (place.data / "a.csv").unlink()
    else:
        (place.data / "b.csv").write_text(CSV_FILES[lines])
    source = {"csv": str(place.data), **CSV}
    assert place.release(source=source).status == "published"
    if lines == "rows":
        for other in (
            {**source, "delimiter": ";"},
            {**source, "columns": {**CSV["columns"], "stops": "text"}},
        ):
            with pytest.raises(SchemaError, match="by the account's contract"):
                place.release(source=other, name="other")


def test_what_a_folder_states_of_units_is_read_or_enters_nothing(tmp_path: Path) -> None:
    """A folder without a unit may hold anybody's rows; under own_unit each of them would be one."""
    place = Place(tmp_path / "here", "own_unit")
    folders = {"customer": {"type": "integer", "keys": ["customer"], "is_made": False}}
    place.make(contract("own_unit", source={"folders": folders}))
    with open_ledger(place.ledger) as ledger:
        ledger.grant("passengers", epsilon=Fraction(10**6), reason="exact", unwitnessed=True)
    rows = {name: values for name, values in ROWS.items() if name != "customer"}
    for folder in ("customer=7", "customer=nobody", "customer=__HIVE_DEFAULT_PARTITION__", "other=1"):
        (place.data / folder).mkdir(exist_ok=True)
        by_pyarrow(rows, place.data / folder / "a.parquet")
    by_pyarrow({**rows, "customer": [1] * 6}, place.data / "customer=7" / "b.parquet")
    privacy = {"epsilon": "100000", "neighboring": "add_or_remove_one", "unit": UNITS["own_unit"]}
    source = {"parquet": str(place.data), "hive": {"customer": "integer"}}
    release = place.release(source=source, privacy=privacy).release
    assert sum(round(row["estimate"]) for row in release.table("carrier")) == 2
