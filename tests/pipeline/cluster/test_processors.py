"""How many processors a process may use: what the scheduler gives, and what a container allows."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

import dask.system
import pytest

from suffice.pipeline.cluster.processors import processors

if TYPE_CHECKING:
    from pathlib import Path


def test_here_it_is_what_dask_counts() -> None:
    assert processors() == dask.system.cpu_count()


@pytest.mark.parametrize(
    ("quota", "most"), [("50000 100000", 1), ("100000 100000", 1), ("150000 100000", 2), ("max 100000", None)]
)
def test_a_control_group_of_version_2_limits_them(quota: str, most: int | None, tmp_path: Path) -> None:
    (tmp_path / "own").write_text("0::/box\n")
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "cpu.max").write_text(f"{quota}\n")
    here = len(os.sched_getaffinity(0))
    assert processors(tmp_path, tmp_path / "own") == min(here, most or math.inf)


@pytest.mark.parametrize(("quota", "most"), [("50000", 1), ("150000", 2), ("-1", None)])
def test_a_control_group_of_version_1_limits_them(quota: str, most: int | None, tmp_path: Path) -> None:
    folder = tmp_path / "cpu,cpuacct"
    folder.mkdir()
    (folder / "cpu.cfs_quota_us").write_text(f"{quota}\n")
    (folder / "cpu.cfs_period_us").write_text("100000\n")
    here = len(os.sched_getaffinity(0))
    assert processors(tmp_path, tmp_path / "own") == min(here, most or math.inf)


def test_without_control_groups_it_is_what_the_scheduler_gives(tmp_path: Path) -> None:
    assert processors(tmp_path, tmp_path / "own") == len(os.sched_getaffinity(0))
