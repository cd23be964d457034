"""Event logs: the shape of the crashes, of generated logs, and what is written of them."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from studies.event_logs import FILES, Kind, crash_log, event_log, generated_log
from support.real_data import real_data

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("kind", "shape", "n_rows", "median", "n_categories"),
    [("many", (51, 31), 1_153_687, 549, 21), ("few", (51, 36), 92_424, 35, 76)],
)
def test_the_crashes_have_the_shape_that_the_page_states(
    kind: Kind, shape: tuple[int, int], n_rows: int, median: int, n_categories: int
) -> None:
    log = crash_log(kind, real_data("fars") / FILES[kind])
    assert log.shape == shape
    assert log.n_rows == n_rows
    assert log.median_rows == median
    assert [len(each) for each in log.categories] == [each.shape[-1] for each in log.counts]
    assert sum(len(each) for each in log.categories) == n_categories
    assert all(each.sum() == n_rows for each in log.counts)
    assert all(len(set(names)) == len(names) for names in log.categories)


@pytest.mark.parametrize("kind", ["many", "few"])
def test_generated_logs_stand_in_where_there_are_no_data(
    kind: Kind, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SUFFICE_SHARED_DATA", str(tmp_path))
    rng = np.random.default_rng(secrets.randbits(32))
    if kind == "few":
        whole = event_log(kind, rng)
        assert (whole.source, whole.shape, whole.median_rows) == ("generated", (18, 70), 58)
        assert [each.shape[-1] for each in whole.counts] == [10, 60, 2, 2, 2]
    log = generated_log(kind, rng, shape=(4, 6), n_categories=(3, 2))
    assert log.median_rows == pytest.approx({"many": 972, "few": 58}[kind], abs=1)
    totals = [each.sum(axis=-1) for each in log.counts]
    assert np.array_equal(totals[0], totals[1])


def test_what_is_written_has_the_counts_of_the_log(tmp_path: Path) -> None:
    log = generated_log("few", np.random.default_rng(1), shape=(4, 6), n_categories=(3, 2)).part(3, 5)
    log.write(tmp_path / "log.parquet")
    rows = pq.read_table(tmp_path / "log.parquet").to_pydict()
    assert len(rows["region"]) == log.n_rows
    for name, names, counts in zip(log.features, log.categories, log.counts, strict=False):
        found = np.zeros_like(counts)
        for region, time, value in zip(rows["region"], rows["time"], rows[name], strict=True):
            found[log.regions.index(region), log.times.index(time), names.index(value)] += 1
        assert np.array_equal(found, counts)
