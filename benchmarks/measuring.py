"""Wall and processor time of contenders, run in turn, so that a busy moment of the machine hits all alike."""

from __future__ import annotations

import platform
import resource
import statistics
import time
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PACKAGES = (
    "suffice", "numpy", "pyarrow", "numba", "opendp", "duckdb", "polars", "dask", "distributed", "pandas",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Contenders for one piece of work, the first of them ours.

    Parameters
    ----------
    title : str
        What is computed.
    contenders : mapping of str to callable
        Each does the work once and returns a checksum.
    goals : mapping of str to float
        The largest ratio of our time to a contender's that is good enough, by contender.
    same_answer : frozenset of str
        The contenders whose checksums have to be equal.
    """

    title: str
    contenders: Mapping[str, Callable[[], int]]
    goals: Mapping[str, float] = field(default_factory=dict)
    same_answer: frozenset[str] = frozenset()


@dataclass(slots=True)
class Times:
    """Seconds of each repetition."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


def compare(comparison: Comparison, repetitions: int) -> dict[str, Times]:
    """Run all contenders once to warm up, check their answers, then run them in turn."""
    checksums = {name: run() for name, run in comparison.contenders.items()}
    answers = {checksums[name] for name in comparison.same_answer}
    if len(answers) > 1:
        message = f"{comparison.title}: the answers differ: {checksums}"
        raise SystemExit(message)
    times = {name: Times() for name in comparison.contenders}
    for _ in range(repetitions):
        for name, run in comparison.contenders.items():
            wall, processor = time.perf_counter(), processor_seconds()
            run()
            times[name].wall.append(time.perf_counter() - wall)
            times[name].processor.append(processor_seconds() - processor)
    return times


def processor_seconds() -> float:
    """Return the processor time of this process and of its children, living and dead."""
    # `os.times` counts in hundredths: a short step would take none at all.
    dead = resource.getrusage(resource.RUSAGE_CHILDREN)
    living = (child.cpu_times() for child in psutil.Process().children(recursive=True))
    return (
        time.process_time()
        + dead.ru_utime
        + dead.ru_stime
        + sum(times.user + times.system for times in living)
    )


def peak_megabytes() -> float:
    """Return the most memory that this process has held so far.

    On Linux `getrusage` starts from what the process held that started this one.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def print_comparison(comparison: Comparison, times: Mapping[str, Times]) -> None:
    """Print medians, and our times as ratios of each."""
    print(f"\n{comparison.title}")
    print(f"{'':24}{'wall s':>9}{'least':>9}{'CPU s':>9}{'ours/it':>9}{'by CPU':>9}{'goal':>7}")
    ours = next(iter(times.values()))
    for name, taken in times.items():
        wall, processor = statistics.median(taken.wall), statistics.median(taken.processor)
        line = f"{name:24}{wall:9.3f}{min(taken.wall):9.3f}{processor:9.2f}"
        if taken is not ours:
            ratio = statistics.median(ours.wall) / wall
            line += f"{ratio:9.2f}{statistics.median(ours.processor) / max(processor, 1e-9):9.2f}"
            goal = comparison.goals.get(name)
            if goal is not None:
                line += f"{goal:7.2f}  {'met' if ratio <= goal else 'MISSED'}"
        print(line)


def versions() -> str:
    """Return the interpreter, and the packages that are installed, with their versions."""
    installed = []
    for name in PACKAGES:
        try:
            installed.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return f"Python {platform.python_version()}, " + ", ".join(installed)
