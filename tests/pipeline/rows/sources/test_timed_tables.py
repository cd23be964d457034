"""Warehouses that show tables as they were, against stand-ins for their drivers, which insist on a time."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from suffice.errors import MissingExtraError, StageFailedError, UsageError
from suffice.pipeline.rows import sources
from suffice.pipeline.spec.spec import load_spec
from support.hostile import normal
from support.source_makers import maker_of
from support.timed_tables import NAMES, lose_timed, write_timed

if TYPE_CHECKING:
    from suffice.pipeline.spec.spec import Spec

pytestmark = pytest.mark.parametrize("kind", ["snowflake", "bigquery"])
ROWS = pa.table({"n": pa.array([None, *range(50)], pa.int64()), "flag": [True] * 51})


def spec_of(kind: str, **source: object) -> Spec:
    return load_spec(
        {
            "name": "test",
            "dataset": "test",
            "source": {kind: NAMES[kind], **source},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "statistics": {"x": normal("n", "0", "10")},
        }
    )


@pytest.fixture(autouse=True)
def service(kind: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    maker = maker_of(kind)
    for name, value in {**maker.environment, **maker.prepare(request)}.items():
        monkeypatch.setenv(name, value)


def test_public_keys_divide_it(kind: str) -> None:
    write_timed(kind, ROWS)
    pin = sources.pin(spec_of(kind, split_by={"column": "n", "at": ["10", "40"]}))
    splits = sources.splits(pin)
    found = [
        [value for batch in sources.read(split, ("n",), 7) for value in batch.column(0).to_pylist()]
        for split in splits
    ]
    assert [len(values) for values in found] == [11, 30, 10]
    assert Counter(value for values in found for value in values) == Counter(ROWS["n"].to_pylist())
    assert sources.row_count(pin, splits) == ROWS.num_rows
    with pytest.raises(UsageError, match=r"split_by: .* has no column 'flag' of integers"):
        sources.pin(spec_of(kind, split_by={"column": "flag", "at": ["1"]}))


def test_a_time_that_is_no_longer_kept_is_noticed(kind: str) -> None:
    write_timed(kind, ROWS)
    pin = sources.pin(spec_of(kind))
    sources.check(pin)
    lose_timed()
    write_timed(kind, ROWS)
    for fails in (
        lambda: sources.check(pin),
        lambda: sources.row_count(pin, ()),
        lambda: list(sources.read(sources.splits(pin)[0], ("n",), 7)),
    ):
        with pytest.raises(StageFailedError, match="keeps that time no longer"):
            fails()


def test_without_its_driver_the_extra_is_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, f"adbc_driver_{kind}.dbapi", None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'suffice\[{kind}\]'"):
        sources.pin(spec_of(kind))
