"""What a sample tells of a spec: values that parse, fall into domains, lie within bounds."""

from __future__ import annotations

import datetime as dt
import gzip
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import UsageError
from suffice.pipeline.rows.chunk.sample_fit import SampleFit, sample_fit
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.source_specs import Declared
from support.hostile import categorical, normal

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.spec import Spec

CANARY = "CANARY-7f31"


def spec_of(source: dict[str, Any], **changes: Any) -> Spec:
    return load_spec(
        {
            "name": "test",
            "dataset": "test",
            "source": source,
            "window": {"column": "day", "every": "month"},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "derived": {"is_late": {"column": "delay", "above": "15"}},
            "groups": {"is_late": ["true", "false"]},
            "statistics": {"delay": normal("delay", "-60", "180"), "code": categorical("code", ["a", "b"])},
            **changes,
        }
    )


def counts(fit: SampleFit) -> dict[tuple[str, str], tuple[int, int]]:
    return {(check.column, check.use): (check.values, check.fit) for check in fit.checks}


@pytest.mark.parametrize("name", ["sample.csv", "sample.csv.gz"])
def test_a_sample_of_texts(tmp_path: Path, name: str) -> None:
    lines = [b"day,delay,code", b"2013-01-05,20,a", b"05-JAN-13,25K,c", b",900,b", b"2013-02-30,-4,"]
    text = b"\n".join(lines)
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    spec = spec_of({"csv": "rows/", "columns": {"day": "date", "delay": "number"}})
    fit = sample_fit(spec, str(tmp_path / name), Declared.SYNTHETIC)
    assert fit.rows == 4
    assert counts(fit) == {
        ("day", "read as date"): (3, 1),
        ("is_late", "derived: delay above 15"): (4, 3),
        ("is_late", "a key of groups"): (3, 3),
        ("delay", "read as number"): (4, 3),
        ("delay", "within -60..180 of delay"): (3, 2),
        ("code", "read as text"): (3, 3),
        ("code", "a key of code"): (3, 2),
    }
    assert fit.unchecked(spec) == ()


def test_a_sample_of_typed_columns(tmp_path: Path) -> None:
    path = tmp_path / "sample.parquet"
    pq.write_table(pa.table({"day": ["2013-01-05"], "delay": [5], "other": [1]}), path)
    spec = spec_of({"postgresql": "public.flights"})
    fit = sample_fit(spec, str(path), Declared.PUBLIC)
    assert counts(fit)["day", "read as date or timestamp"] == (1, 0)
    assert counts(fit)["delay", "within -60..180 of delay"] == (1, 1)
    assert fit.unchecked(spec) == ("code",)


def test_columns_of_units_are_aggregated_of_columns_that_a_sample_has(tmp_path: Path) -> None:
    path = tmp_path / "sample.parquet"
    day = dt.date(2013, 1, 5)
    pq.write_table(pa.table({"day": [day, day], "u": [1, 1], "amount": [5.0, 99.0]}), path)
    spec = spec_of(
        {"parquet": "rows/"},
        groups={},
        privacy={
            "epsilon": "1",
            "neighboring": "add_or_remove_one",
            "unit": {"column": "u", "max_rows": "2"},
        },
        per_unit={"spend": {"sum": "amount", "lower": "0", "upper": "10"}},
        derived={"dear": {"column": "spend", "above": "5"}},
        statistics={"spend": {**normal("spend", "0", "50"), "rows_of": "units", "where": "dear"}},
    )
    fit = sample_fit(spec, str(path), Declared.PUBLIC)
    assert counts(fit) == {
        ("day", "read as date or timestamp"): (2, 2),
        ("u", "read"): (2, 2),
        ("amount", "read as numeric"): (2, 2),
        ("amount", "within 0..10 of spend"): (2, 1),
    }
    assert fit.unchecked(spec) == ()


def test_what_is_no_sample_is_refused(tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    rows.mkdir()
    (rows / "a.parquet").write_text(CANARY)
    (tmp_path / "b.parquet").write_text(CANARY)
    (tmp_path / "link.parquet").symlink_to(rows / "a.parquet")
    spec = spec_of({"parquet": str(rows)})
    for name, rule in (
        ("rows/a.parquet", "a file of the source"),
        ("link.parquet", "a file of the source"),
        ("b.parquet", "cannot be read"),
        ("absent.parquet", "cannot be read"),
        ("b.csv", "a local .parquet file"),
    ):
        with pytest.raises(UsageError, match=rule) as caught:
            sample_fit(spec, str(tmp_path / name), Declared.PUBLIC)
        assert CANARY not in str(caught.value)
