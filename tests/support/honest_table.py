"""The table of default answers' coverage: measured setting by setting, kept in a file, written to its page.

``python tests/support/honest_table.py --families exponential normal`` measures, and appends a line for each
parameter to a file of JSON lines. Cells that stand there are not measured again, so a run can be stopped,
and one that asks for more cells adds them. With ``--table`` it writes the section of
``benchmarks/CALIBRATION.md`` from that file.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from suffice.pipeline.families import FAMILIES
from support.honest_coverage import (
    CELLS,
    EPSILONS,
    FEW_CELLS,
    ROWS,
    Covered,
    Setting,
    generator_of,
    is_slow,
    measure,
    settings,
    together,
)
from support.honest_populations import WORLDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TABLE = Path(__file__).resolve().parents[2] / "benchmarks" / "CALIBRATION.md"
SECTION = "## Default options, truths from no prior"


def read(path: Path) -> list[Covered]:
    """Read what was measured, runs of one setting and parameter together."""
    if not path.exists():
        return []
    runs: dict[tuple[Any, ...], list[Covered]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        given: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(line).items()
        }
        row = Covered(**given)
        runs.setdefault((*_key(row), row.parameter), []).append(row)
    return [together(parts) for parts in runs.values()]


def _key(setting: Setting | Covered) -> tuple[str, str, int, str]:
    return setting.family, setting.world, setting.n, setting.epsilon


def measure_all(
    chosen: Sequence[Setting], path: Path, *, cells: int, few: int, seconds: float, seed: int
) -> None:
    """Measure the cells that the file lacks to as many of each setting, and append them."""
    known = {_key(row): row.cells for row in read(path)}
    for setting in chosen:
        done = known.get(_key(setting), 0)
        lacks = (few if is_slow(setting.family) else cells) - done
        if lacks <= 0:
            continue
        begun = time.monotonic()
        try:
            rows = measure(setting, lacks, generator_of(setting, seed, done), seconds, seed + done)
        except Exception as error:  # noqa: BLE001 - one family that fails stops no other
            _say(f"{setting}: {type(error).__name__}: {error}")
            continue
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(row)) + "\n" for row in rows)
        for row in rows:
            _say(
                f"{setting} {row.parameter} ({row.cells}): {_percent(row.noise_aware)}; worst "
                f"{100 * row.worst:.0f}; oracle {_percent(row.oracle)}; plug-in "
                f"{_percent(row.plug_in)}; width {row.widths[0]:.3g} {row.widths[1]:.3g}; "
                f"{time.monotonic() - begun:.1f} s",
            )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _percent(shares: Sequence[float]) -> str:
    return "/".join(f"{100 * share:.0f}" for share in shares)


HEADER = (
    "| family | parameter | world | epsilon | cells | "
    + " | ".join(f"N0 {n}: coverage | oracle | plug-in | width" for n in ROWS)
    + " |"
)


def table_lines(rows: Sequence[Covered], kept: Sequence[str] = ()) -> Iterator[str]:
    """Give the table: for every family, parameter, world and epsilon the three N0 side by side.

    Lines of other families that a page has are kept, in their place.
    """
    yield HEADER
    yield "|---" * HEADER.count(" | ") + "|---|"
    by_place = {(*_key(row), row.parameter): row for row in rows}
    seen = dict.fromkeys((row.family, row.parameter, row.world, row.epsilon) for row in rows)
    measured = {row.family for row in rows}
    lines: dict[str, list[str]] = {}
    for line in kept:
        family = line.split("|")[1].strip()
        if family not in measured:
            lines.setdefault(family, []).append(line)
    for family, parameter, world, epsilon in sorted(
        seen, key=lambda each: (each[1], WORLDS.index(each[2]), each[3])
    ):
        sizes, cells = [], []
        for n in ROWS:
            row = by_place.get((family, world, n, epsilon, parameter))
            if row is None:
                cells.append("|  |  |  |  ")
                continue
            oracle = row.widths[1]
            ratio = f"{row.widths[0] / oracle:.3g}" if oracle > 0.0 else "-"
            sizes.append(row.cells)
            cells.append(
                f"| {_percent(row.noise_aware)} | {_percent(row.oracle)} | {_percent(row.plug_in)} | {ratio} "
            )
        least, most = min(sizes), max(sizes)
        size = f"{least}" if least == most else f"{least} to {most}"
        start = f"| {family} | {parameter} | {world} | {epsilon} | {size} "
        lines.setdefault(family, []).append("".join([start, *cells]) + "|")
    for family in FAMILIES:
        yield from lines.get(family, [])


def section(rows: Sequence[Covered], kept: Sequence[str] = ()) -> str:
    """Return the section of the page, with its table."""
    return "\n".join(
        [
            SECTION,
            "",
            "Coverage of 50/80/95 % intervals in percent by default options, and the cells of each N0.",
            "Truths are those of public populations, not drawn from priors: the entry and the populations",
            "of each family stand in `tests/support/honest_populations.py`, in three worlds: the model, one",
            "that is not the model, and flights of 2013; of six families also adults and fatal crashes",
            "(`people`). A truth is what the family's parameter is of a population as the public bounds",
            "leave it. N is private, uniform on N0/2 to 3 N0/2. The oracle is the plug-in posterior of the",
            "exact sums: what the model says without noise. Width is the median width of 95 % intervals over",
            "the oracle's. A coverage of 95 % from 1,000 cells has a standard error of .7 points, from 200",
            "cells one of 1.5, from 50 cells one of 3; a setting has 1,000 cells where a cell takes a few",
            "milliseconds, and so many as the column says elsewhere. Settings that are missing were not",
            "measured.",
            "",
            "    .venv/bin/python tests/support/honest_table.py --out build/honest.jsonl",
            "    .venv/bin/python tests/support/honest_table.py --out build/honest.jsonl --table",
            "",
            *table_lines(rows, kept),
            "",
        ]
    )


def write_section(rows: Sequence[Covered], page: Path = TABLE) -> None:
    """Put the section at the end of the page, in place of the old one; families not measured keep theirs."""
    text, _, old = page.read_text(encoding="utf-8").partition(SECTION)
    kept = [line for line in old.splitlines() if line.startswith("| ") and not line.startswith("| family")]
    page.write_text(text.rstrip("\n") + "\n\n" + section(rows, kept), encoding="utf-8")


def main() -> None:
    """Measure, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", nargs="*", default=[])
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS))
    parser.add_argument("--rows", nargs="*", type=int, default=list(ROWS))
    parser.add_argument("--epsilons", nargs="*", default=list(EPSILONS))
    parser.add_argument("--cells", type=int, default=CELLS)
    parser.add_argument("--few", type=int, default=FEW_CELLS, help="cells of slow families")
    parser.add_argument("--seconds", type=float, default=np.inf, help="of a setting, at most, roughly")
    parser.add_argument("--seed", type=int, default=26)
    parser.add_argument("--out", type=Path, default=Path("build/honest_coverage.jsonl"))
    parser.add_argument("--table", action="store_true", help="write benchmarks/CALIBRATION.md and stop")
    given = parser.parse_args()
    if given.table:
        write_section(read(given.out))
        return
    given.out.parent.mkdir(parents=True, exist_ok=True)
    chosen = list(settings(given.families, given.worlds, given.rows, given.epsilons))
    measure_all(chosen, given.out, cells=given.cells, few=given.few, seconds=given.seconds, seed=given.seed)


if __name__ == "__main__":
    main()
