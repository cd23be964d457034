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
        row = Covered(**{key: _tuples(value) for key, value in json.loads(line).items()})
        runs.setdefault((*_key(row), row.parameter), []).append(row)
    return [together(parts) for parts in runs.values()]


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


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
                f"{100 * min(map(min, row.by_entry)):.0f}; oracle {_percent(row.oracle)}; plug-in "
                f"{_percent(row.plug_in)}; width {row.widths[0]:.3g} {row.widths[1]:.3g}; "
                f"{time.monotonic() - begun:.1f} s",
            )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _percent(shares: Sequence[float]) -> str:
    return "/".join(f"{100 * share:.0f}" for share in shares)


HEADER = (
    "| family | parameter | world | epsilon | "
    + " | ".join(f"N0 {n}: coverage | oracle | plug-in | width" for n in ROWS)
    + " |"
)


def table_lines(rows: Sequence[Covered]) -> Iterator[str]:
    """Give the table: for every family, parameter, world and epsilon the three N0 side by side."""
    yield HEADER
    yield "|---" * HEADER.count(" | ") + "|---|"
    found = {(*_key(row), row.parameter): row for row in rows}
    seen = dict.fromkeys((row.family, row.parameter, row.world, row.epsilon) for row in rows)
    order = {family: position for position, family in enumerate(FAMILIES)}
    for family, parameter, world, epsilon in sorted(
        seen, key=lambda each: (order[each[0]], each[1], WORLDS.index(each[2]), each[3])
    ):
        cells = [f"| {family} | {parameter} | {world} | {epsilon} "]
        for n in ROWS:
            row = found.get((family, world, n, epsilon, parameter))
            if row is None:
                cells.append("|  |  |  |  ")
                continue
            oracle = row.widths[1]
            ratio = f"{row.widths[0] / oracle:.3g}" if oracle > 0.0 else "-"
            cells.append(
                f"| {_percent(row.noise_aware)} | {_percent(row.oracle)} | {_percent(row.plug_in)} | {ratio} "
            )
        yield "".join(cells) + "|"


def section(rows: Sequence[Covered]) -> str:
    """Return the section of the page, with its table."""
    counts = sorted({row.cells for row in rows})
    sizes = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
    return "\n".join(
        [
            SECTION,
            "",
            f"Coverage of 50/80/95 % intervals in percent, {sizes} cells a setting, by default options.",
            "Truths are those of public populations, not drawn from priors: the entry and the populations",
            "of each family stand in `tests/support/honest_populations.py`, in three worlds: the model, one",
            "that is not the model, and flights of 2013. A truth is what the family's parameter is of a",
            "population as the public bounds leave it. N is private, uniform on N0/2 to 3 N0/2. The oracle",
            "is the plug-in posterior of the exact sums: what the model says without noise. Width is the",
            "median width of 95 % intervals over the oracle's. Families that are missing were not measured.",
            "",
            "    .venv/bin/python tests/support/honest_table.py --out build/honest.jsonl",
            "    .venv/bin/python tests/support/honest_table.py --out build/honest.jsonl --table",
            "",
            *table_lines(rows),
            "",
        ]
    )


def write_section(rows: Sequence[Covered], page: Path = TABLE) -> None:
    """Put the section at the end of the page, in place of the old one."""
    text = page.read_text(encoding="utf-8").split(SECTION)[0].rstrip("\n")
    page.write_text(f"{text}\n\n{section(rows)}", encoding="utf-8")


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
