"""What holds of every kind of source: the suite runs over the registry."""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import hashlib
import json
import os
import pickle
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from suffice.errors import InputNotVerifiedError, SchemaError, StageFailedError, UsageError
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.sources import SOURCES
from suffice.pipeline.rows.sources.contract import Pin, Split, join, pack, unpack
from suffice.pipeline.rows.sources.schema_check import check_schema, type_family
from suffice.pipeline.rows.sources.skeleton import skeleton
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.terms.declaration.column_types import TypeFamily
from suffice.pipeline.terms.declaration.source_specs import SOURCE_SPECS
from support.hostile import bernoulli, normal
from support.source_makers import MAKERS, VARIANTS, maker_of
from support.splits import HELD, splits_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.source_makers import SourceMaker

CANARY = "CANARY-3e80"
SECRET = "SECRET-77c1"  # noqa: S105 - stands for one
N_ROWS = 9871
COLUMNS = ("amount", "city", "flag")
CREDENTIALS = ("KEY", "TOKEN", "POSTGRESQL")
"""Words in the names of environment variables whose values nothing may show."""
FAMILIES = {
    "amount": TypeFamily.NUMERIC,
    "city": TypeFamily.TEXT,
    "flag": TypeFamily.BOOLEAN,
    "day": TypeFamily.DATE,
    "instant": TypeFamily.TIMESTAMP,
    "unused": TypeFamily.TEXT,
}

pytestmark = pytest.mark.parametrize("made_as", [*SOURCES, *VARIANTS])


def rows(n_rows: int = 100) -> pa.Table:
    """Rows of every type family, nulls among them; no two are equal."""
    day = dt.date(2013, 1, 1)
    return pa.table(
        {
            "amount": pa.array(
                [None if number % 7 == 3 else number * 0.5 for number in range(n_rows)], pa.float64()
            ),
            "city": pa.array(
                [None if number % 5 == 1 else f"{CANARY}-{number}" for number in range(n_rows)], pa.string()
            ),
            "flag": pa.array([number % 2 == 0 for number in range(n_rows)], pa.bool_()),
            "day": pa.array([day + dt.timedelta(number % 31) for number in range(n_rows)], pa.date32()),
            "instant": pa.array(
                [dt.datetime.combine(day, dt.time(number % 24)) for number in range(n_rows)],
                pa.timestamp("us"),
            ),
            "unused": pa.array([CANARY] * n_rows, pa.string()),
        }
    )


def spec_of(entry: dict[str, Any], **changes: Any) -> Spec:
    spec = {
        "name": "test",
        "dataset": "test",
        "source": entry,
        "window": {"column": "day", "every": "month"},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
        "groups": {"city": ["a", "b"]},
        "statistics": {"amount": normal("amount", "0", "10"), "flag": bernoulli("flag")},
    }
    return load_spec({**spec, **changes})


@pytest.fixture
def kind(made_as: str) -> str:
    return made_as.partition(" ")[0]


@pytest.fixture
def maker(
    made_as: str, kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> SourceMaker:
    found = VARIANTS.get(made_as) or maker_of(kind)
    environment = {**found.environment, **found.prepare(request)}
    for name, value in {**environment, "SUFFICE_TEST_PASSWORD": SECRET}.items():
        monkeypatch.setenv(name, value)
    hidden = {name: value for name, value in environment.items() if any(word in name for word in CREDENTIALS)}
    return dataclasses.replace(found, environment=hidden)


@pytest.fixture
def made(maker: SourceMaker, tmp_path: Path) -> Spec:
    return spec_of(maker.write(tmp_path, rows()))


def read_rows(splits: list[Split] | tuple[Split, ...], columns: tuple[str, ...], block: int) -> Counter[Any]:
    """Count equal rows of all splits: their order is not promised."""
    found: Counter[Any] = Counter()
    for split in splits:
        batches = list(sources.read(split, columns, block))
        assert all(0 <= batch.num_rows <= block for batch in batches)
        assert all(tuple(batch.schema.names) == columns for batch in batches)
        for batch in batches:
            found.update(zip(*(batch.column(name).to_pylist() for name in columns), strict=True))
    return found


def as_counter(table: pa.Table, columns: tuple[str, ...]) -> Counter[Any]:
    return Counter(zip(*(table[name].to_pylist() for name in columns), strict=True))


def assert_says_no_value(error: BaseException, maker: SourceMaker) -> None:
    said = f"{error!r} {error}"
    for hidden in (CANARY, SECRET, *maker.environment.values()):
        assert hidden not in said
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__


def test_a_skeleton_has_the_source_and_its_columns_and_no_value(maker: SourceMaker, tmp_path: Path) -> None:
    entry = maker.write(tmp_path, rows())
    text = skeleton(json.dumps(entry), relative_to=tmp_path)
    head, statistics = text.split("statistics:\n")
    assert f"source: {json.dumps(entry)}\n" in head
    assert "  amount: {family: normal, column: amount, lower: , upper: }\n" in statistics
    assert "  flag: {family: bernoulli, column: flag}\n" in statistics
    assert "window: {column: day, every: month}" in statistics
    assert CANARY not in text


def test_it_is_declared_read_and_made_under_one_key(kind: str) -> None:
    assert list(SOURCES) == list(SOURCE_SPECS), "each kind has a declaration and a reader"
    assert kind == SOURCES[kind].KIND
    model = SOURCE_SPECS[kind]
    assert model.kind == kind
    assert next(iter(model.model_fields)) == kind
    assert model.model_fields[kind].is_required()
    assert maker_of(kind) is MAKERS[kind]


def test_a_kind_without_a_maker_fails_with_a_sentence(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(MAKERS, kind)
    with pytest.raises(
        pytest.fail.Exception, match=rf"the source '{kind}' has no maker: add one to MAKERS in"
    ):
        maker_of(kind)


def test_nobody_else_imports_a_reader(kind: str, repository: Path) -> None:
    reader = SOURCES[kind]
    name = getattr(reader, "__name__", type(reader).__module__).rpartition(".")[2]
    imported = re.compile(
        rf"suffice\.pipeline\.sources\.{name}\b|from suffice\.pipeline\.sources import .*\b{name}\b"
    )
    allowed = {"pipeline/rows/sources", "tests/pipeline/rows/sources"}
    found = [
        path.relative_to(repository).as_posix()
        for top in ("benchmarks", "flows", "pipeline", "src/suffice/cli", "storage", "tests")
        for path in sorted((repository / top).rglob("*.py"))
        if imported.search(path.read_text(encoding="utf-8"))
    ]
    found += [
        path.name for path in (repository / "src/suffice").glob("*.py") if imported.search(path.read_text())
    ]
    assert [path for path in found if path.rpartition("/")[0] not in allowed] == []


@pytest.mark.slow
def test_the_splits_hold_every_row_once(maker: SourceMaker, tmp_path: Path, kind: str) -> None:
    table = rows()
    spec = spec_of(maker.write(tmp_path, table))
    for split_values in (1, 100, 10**9):
        splits = splits_of(spec, split_values)
        assert all(split.kind == kind and split.n_rows > 0 for split in splits)
        assert sources.row_count(HELD[-1], splits) == table.num_rows
        for block in (1, 16, 1 << 17):
            assert read_rows(splits, COLUMNS, block) == as_counter(table, COLUMNS)


def test_numbers_of_rows_are_known_or_counted_apart(maker: SourceMaker, tmp_path: Path) -> None:
    for split in splits_of(spec_of(maker.write(tmp_path, rows())), 100):
        if HELD[-1].count_rows is None:
            assert split.n_rows == sum(read_rows([split], COLUMNS, 16).values())


def test_joined_splits_hold_every_row_once(maker: SourceMaker, tmp_path: Path) -> None:
    table = rows()
    splits = splits_of(spec_of(maker.write(tmp_path, table)), 1)
    for most in (1, 2, 3):
        joined = join(splits, most)
        assert len(joined) <= most
        assert read_rows(joined, COLUMNS, 16) == as_counter(table, COLUMNS)


@pytest.mark.parametrize("columns", [("amount",), ("flag", "amount"), ("day", "city", "instant")])
def test_only_the_columns_asked_for_are_read_in_their_order(made: Spec, columns: tuple[str, ...]) -> None:
    assert read_rows(splits_of(made), columns, 16) == as_counter(rows(), columns)


def test_the_schema_names_columns_and_their_type_families(made: Spec) -> None:
    parts = sources.schema(sources.pin(made))
    assert parts
    for part in parts:
        assert part.part
        assert {column.name: type_family(column.type) for column in part.columns} == FAMILIES
    check_schema(made, parts)


def test_the_schema_check_finds_what_is_missing(made: Spec, maker: SourceMaker) -> None:
    parts = sources.schema(sources.pin(made))
    spec = made.model_copy(update={"groups": {"planet": made.groups["city"]}})
    with pytest.raises(
        SchemaError,
        match=r"^groups\.planet: .*: no column 'planet'; (its columns are|of the columns that the) ",
    ) as caught:
        check_schema(spec, parts)
    assert_says_no_value(caught.value, maker)


def test_a_source_without_rows(maker: SourceMaker, tmp_path: Path) -> None:
    pin = sources.pin(spec_of(maker.write(tmp_path, rows(0))))
    splits = sources.splits(pin)
    assert sources.row_count(pin, splits) == 0
    assert read_rows(splits, COLUMNS, 16) == Counter()
    for part in sources.schema(pin):
        assert {column.name: type_family(column.type) for column in part.columns} == FAMILIES
    sources.check(pin)


def test_what_is_not_there_is_a_usage_error(maker: SourceMaker, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        sources.pin(spec_of(maker.absent(tmp_path)))
    assert_says_no_value(caught.value, maker)


@pytest.mark.parametrize("event", ["change", "lose"])
def test_what_is_no_longer_the_pinned_source_is_noticed(
    maker: SourceMaker, tmp_path: Path, event: str
) -> None:
    pin = sources.pin(spec_of(maker.write(tmp_path, rows())))
    splits = sources.splits(pin)
    sources.check(pin)
    read_rows(splits, COLUMNS, 16)
    sources.check(pin)
    getattr(maker, event)(tmp_path)
    if event == "change" and maker.keeps_its_snapshot:
        assert read_rows(splits, COLUMNS, 16) == as_counter(rows(), COLUMNS)
        sources.check(pin)
        return
    with pytest.raises(StageFailedError) as caught:
        sources.check(pin)
    assert caught.value.stage == "reading"
    assert_says_no_value(caught.value, maker)
    with pytest.raises(StageFailedError) as caught:
        read_rows(splits, COLUMNS, 16)
    assert caught.value.stage == "reading"
    assert_says_no_value(caught.value, maker)


def write_list(directory: Path, files: list[Any]) -> str:
    """Write what ``sha256sum`` does, and return its path."""
    path = directory.parent / f"{directory.name}.sha256"
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file}\n" for file in files]
    path.write_text("".join(lines))
    return str(path)


def test_a_closed_pin_is_no_longer_held(maker: SourceMaker, tmp_path: Path) -> None:
    pin = sources.pin(spec_of(maker.write(tmp_path, rows())))
    sources.close(pin)
    sources.close(pin)
    if "SUFFICE_POSTGRESQL" in maker.environment:  # what a connection holds
        with pytest.raises(StageFailedError):
            sources.check(pin)
        assert pin.count_rows is not None
        with pytest.raises(StageFailedError):
            pin.count_rows()


@pytest.mark.parametrize("event", ["change", "lose", "add", "forget"])
def test_what_an_owner_listed_is_what_is_there(maker: SourceMaker, tmp_path: Path, event: str) -> None:
    entry = maker.write(tmp_path, rows(50))
    if maker.files is None:
        with pytest.raises(InputNotVerifiedError, match="has none") as without:
            sources.verify(sources.pin(spec_of(entry)), write_list(tmp_path, [Path(__file__)]))
        assert_says_no_value(without.value, maker)
        return
    files = maker.files(tmp_path)
    checksums = write_list(tmp_path, files)
    sources.verify(sources.pin(spec_of(entry)), checksums)
    if event in {"change", "lose"}:
        getattr(maker, event)(tmp_path)
    else:
        write_list(tmp_path, files[:-1] if event == "forget" else [*files, Path(__file__)])
    if event == "add":  # other data may be listed too
        sources.verify(sources.pin(spec_of(entry)), checksums)
        return
    # A table that lists a lost file cannot even be pinned.
    refusals = (InputNotVerifiedError, UsageError) if event == "lose" else InputNotVerifiedError
    with pytest.raises(refusals) as caught:
        sources.verify(sources.pin(spec_of(entry)), checksums)
    assert_says_no_value(caught.value, maker)
    for file in files:
        if str(file) not in entry.values():  # what the spec names is public
            assert str(file) not in str(caught.value)


def test_what_changed_since_it_was_pinned_is_not_verified(maker: SourceMaker, tmp_path: Path) -> None:
    pin = sources.pin(spec_of(maker.write(tmp_path, rows(50))))
    maker.change(tmp_path)
    files = maker.files(tmp_path) if maker.files else [Path(__file__)]
    with pytest.raises(InputNotVerifiedError):
        sources.verify(pin, write_list(tmp_path, files))


def test_what_a_pin_shows_follows_from_the_spec_alone(maker: SourceMaker, tmp_path: Path, kind: str) -> None:
    few = sources.pin(spec_of(maker.write(tmp_path, rows(50))))
    many = sources.pin(spec_of(maker.write(tmp_path, rows(N_ROWS))))
    assert few.public == many.public
    assert json.loads(json.dumps(dict(many.public))) == many.public
    assert few.private != many.private
    assert repr(few.private) == repr(many.private)
    assert repr(few) == repr(many) == str(many) == f"Pin(kind={kind!r}, public={many.public!r})"
    for hidden in (CANARY, SECRET, *maker.environment.values(), str(N_ROWS)):
        assert hidden not in repr(many)


SHOWING: tuple[Callable[[Any], Any], ...] = (dataclasses.asdict, dataclasses.astuple, vars)


def test_a_pin_stays_in_its_process(made: Spec) -> None:
    pin = sources.pin(made)
    for take in (pickle.dumps, copy.copy, copy.deepcopy, pack):
        with pytest.raises(TypeError, match="a Pin holds exact data"):
            take(pin)
    for show in SHOWING:
        with pytest.raises(TypeError):
            show(pin)


def test_splits_travel_packed_alone(made: Spec) -> None:
    for split in splits_of(made, 1)[:1]:
        for held in (split, *split.pieces):
            for take in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(TypeError, match="holds exact data and is neither pickled nor copied"):
                    take(held)
            for show in SHOWING:
                with pytest.raises(TypeError):
                    show(held)


def test_splits_show_nothing_and_hold_neither_values_nor_credentials(
    maker: SourceMaker, tmp_path: Path
) -> None:
    spec = spec_of(maker.write(tmp_path, rows(N_ROWS)))
    for split in splits_of(spec, 10**9):
        assert repr(split) == str(split) == "Split(...)"
        # What is printed of a piece by itself tells no count either.
        assert not re.search(r"n_rows|\b9871\b|mtime|size", repr(split.pieces))
        for held in (pack(split), repr(unpack(pack(split))).encode()):
            for hidden in (CANARY, SECRET, *maker.environment.values()):
                assert hidden.encode() not in held


READER = """
import os, pickle, sys
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.sources.contract import unpack
while True:
    sys.path[:], environment, packed = pickle.load(sys.stdin.buffer)
    os.environ.clear()
    os.environ.update(environment)
    batches = (batch for split in unpack(packed) for batch in sources.read(split, ("amount",), 16))
    print(sum(batch.num_rows for batch in batches), flush=True)
"""
"""Counts the rows of splits, given what a worker has of its own: where modules are, and the environment."""


@pytest.fixture(scope="module")
def reader() -> Iterator[subprocess.Popen[bytes]]:
    """Start another process, once for all kinds: what takes longest is what it imports."""
    with subprocess.Popen(
        [sys.executable, "-c", READER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        yield process
        process.kill()


@pytest.mark.slow
def test_splits_are_read_in_another_process(made: Spec, reader: subprocess.Popen[bytes]) -> None:
    splits = splits_of(made, 1)
    assert unpack(pack(splits)) == splits
    assert reader.stdin is not None
    assert reader.stdout is not None
    pickle.dump((sys.path, dict(os.environ), pack(splits)), reader.stdin)
    reader.stdin.flush()
    assert int(reader.stdout.readline()) == rows().num_rows


def test_a_pin_and_its_splits_cannot_be_changed(made: Spec) -> None:
    pin = sources.pin(made)
    assert isinstance(pin, Pin)
    with pytest.raises(AttributeError):
        pin.private = None  # type: ignore[misc]
    for split in sources.splits(pin):
        assert hash(split) == hash(unpack(pack(split)))
        with pytest.raises(AttributeError):
            split.n_rows = 0  # type: ignore[misc]
