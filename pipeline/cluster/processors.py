"""How many processors this process may use, in a container too."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUP = Path("/proc/self/cgroup")


def processors(groups: Path = _CONTROL_GROUPS, own_group: Path = _OWN_GROUP) -> int:
    """Return the processors that the scheduler gives this process, at most what its container may use.

    A share of a processor counts as a whole one.

    Parameters
    ----------
    groups, own_group : Path
        Where Linux shows control groups, and that of this process.
    """
    may_run = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = _limit(groups, own_group)
    return may_run if limit is None else min(may_run, limit)


def _limit(groups: Path, own_group: Path) -> int | None:
    """Return the limit that a control group sets, of version 1 or 2; None where none does."""
    for folder in ("cpuacct,cpu", "cpu,cpuacct"):
        with suppress(OSError, ValueError):
            quota = int((groups / folder / "cpu.cfs_quota_us").read_text())
            period = int((groups / folder / "cpu.cfs_period_us").read_text())
            return _rounded_up(quota, period)
    with suppress(OSError, ValueError):
        group = own_group.read_text().strip().rpartition(":")[2].strip("/")
        quota, period = map(int, (groups / group / "cpu.max").read_text().split())  # "max" is no limit
        return _rounded_up(quota, period)
    return None


def _rounded_up(quota: int, period: int) -> int | None:
    """Return microseconds of processor time in each period as processors; -1 is no limit."""
    return -(-quota // period) if quota > 0 and period > 0 else None
