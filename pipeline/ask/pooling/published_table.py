"""A published noisy table: read as texts, and held against its declared law.

Messages may quote what was published. What is not declared is refused, never guessed.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import AdoptedTableError
from suffice.pipeline.ask.pooling.published_number import number_in, read_published
from suffice.pipeline.terms.declaration.declared_law import (
    ABSENT,
    AS_PUBLISHED,
    ByLevel,
    CountStatistic,
    DeclaredLaw,
    OfColumn,
    RateStatistic,
    ShareStatistic,
    noisy_columns,
)
from suffice.pipeline.terms.declaration.domains import MOST_CELLS, too_many_cells
from suffice.pipeline.terms.declaration.wording import counted, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.ask.pooling.published_number import Columns
    from suffice.pipeline.math.engines.noise_laws import NoiseLaw

_LARGEST_FILE = 1 << 31
_IMPOSSIBLE = math.log(1e-9)
"""Of the noise that a table would need: it is refused, as the law or the table is another one."""


def table_bytes(columns: Columns) -> bytes:
    """Return the file of a table: CSV, nothing where there is no value."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    writer.writerows(
        ["" if value is None else value for value in row] for row in zip(*columns.values(), strict=True)
    )
    return text.getvalue().encode()


def read_table(table: object) -> tuple[Columns, str]:
    """Return the columns of a CSV or Parquet file, or of a frame, as texts; and what messages call it.

    Raises
    ------
    AdoptedTableError
        Where it cannot be read.
    """
    if not isinstance(table, str | Path) and not hasattr(table, "__fspath__"):
        return _of_frame(table, "the frame"), "the frame"
    path = Path(table)
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise AdoptedTableError(path.name, "the table is larger than 2 GiB")
        if path.suffix in {".parquet", ".pq"}:
            import pyarrow as pa
            import pyarrow.parquet as pq

            try:
                return _of_frame(pq.read_table(path), path.name), path.name
            except pa.ArrowException:
                raise AdoptedTableError(path.name, "it is no Parquet file") from None
        return columns_of_csv(path.read_bytes(), path.name), path.name
    except OSError:
        raise AdoptedTableError(str(path), "TABLE cannot be read", "name a CSV or Parquet file") from None


def columns_of_csv(data: bytes, origin: str) -> Columns:
    """Return the columns of a CSV file; an empty field has no value.

    Raises
    ------
    AdoptedTableError
    """
    try:
        lines = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error):
        raise AdoptedTableError(origin, "it is no CSV file in UTF-8") from None
    rows = [line for line in lines if line]
    if not rows:
        raise AdoptedTableError(origin, "it has no header")
    names, *records = rows
    if len(set(names)) < len(names):
        raise AdoptedTableError(origin, "two columns have the same name")
    for number, record in enumerate(records, start=2):
        if len(record) != len(names):
            rule = f"it has {counted(len(record), 'field')}, and the header {len(names)}"
            raise AdoptedTableError(f"{origin}: line {number}", rule)
    return {name: [record[place] or None for record in records] for place, name in enumerate(names)}


def _of_frame(frame: Any, origin: str) -> Columns:
    """Return the columns of a frame of Arrow, pandas or Polars, or a mapping of lists, as texts."""
    from suffice.arrays import frame_table  # pyarrow is slow to import

    table = frame_table(frame)
    if table is None:
        raise AdoptedTableError(
            origin, "it is no table", "give a path, or a frame of pandas, Polars or Arrow"
        )
    return {name: [_text(value) for value in table.column(name).to_pylist()] for name in table.column_names}


def _text(value: Any) -> str | None:
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 2.0**53 else repr(value)
    if hasattr(value, "isoformat"):
        text: str = value.isoformat()
        return text.removesuffix("T00:00:00")
    return str(value)


def fitted(law: DeclaredLaw, table: Columns, origin: str) -> Columns:
    """Return the rows of every cell, in the order of the keys, checked against the law.

    Raises
    ------
    AdoptedTableError
        Naming the row and the column.
    """
    missing = [column for column in _needed_columns(law) if column not in table]
    if missing:
        has = ", ".join(list(table)[:20])
        raise AdoptedTableError(origin, f"the law names the column {missing[0]!r}, and the table has {has}")
    domains = _domains(law, table)
    places = _places(law, table, domains, origin)
    size = math.prod(len(domain) for domain in domains.values())
    if size > MOST_CELLS:
        raise AdoptedTableError(origin, too_many_cells(size))
    if size == 0:
        raise AdoptedTableError(origin, "it has no rows, and the keys are those that occur")
    made = _filled(law, table, places, domains, origin)
    for column, declared in law.columns.items():
        for row in range(len(made[column])):
            try:
                read_published(made, column, declared, row)
            except ValueError as error:
                raise AdoptedTableError(_cell(law, made, row, column, origin), str(error)) from None
    _check_sizes(law, made, origin)
    _check_possible(law, made, origin)
    return made


def _places(
    law: DeclaredLaw, table: Columns, domains: Mapping[str, dict[str, None]], origin: str
) -> dict[tuple[str, ...], int]:
    """Return the row of every combination of keys that the table has."""
    keys = tuple(law.keys)
    places: dict[tuple[str, ...], int] = {}
    for row in range(len(next(iter(table.values())))):
        key = tuple(table[column][row] or "" for column in keys)
        for column, value in zip(keys, key, strict=True):
            if value not in domains[column] or not value:
                rule = f"{value!r} is no key that the law declares for {column!r}"
                raise AdoptedTableError(_row(origin, row), rule)
        if key in places:
            what = f"the keys {_keyed(keys, key)}" if keys else "the only cell"
            raise AdoptedTableError(_row(origin, row), f"{what} already stand in row {places[key] + 1}")
        places[key] = row
    return places


def _needed_columns(law: DeclaredLaw) -> list[str]:
    names = [*law.keys, *law.columns]
    for declared in law.columns.values():
        amounts = [declared.noise.spread, declared.suppressed.below if declared.suppressed else None]
        names += [amount.column for amount in amounts if isinstance(amount, OfColumn)]
        names += [amount.by for amount in amounts if isinstance(amount, ByLevel)]
    for statistic in law.statistics.values():
        names += [
            getattr(statistic, each) for each in ("exposure", "total") if getattr(statistic, each, None)
        ]
    return list(dict.fromkeys(names))


def _domains(law: DeclaredLaw, table: Columns) -> dict[str, dict[str, None]]:
    """Return the keys of every key column, in order."""
    return {
        column: dict.fromkeys(
            [str(value) for value in table[column]]
            if domain == AS_PUBLISHED
            else [str(key) for key in domain]
        )
        for column, domain in law.keys.items()
    }


def _filled(
    law: DeclaredLaw,
    table: Columns,
    places: Mapping[tuple[str, ...], int],
    domains: Mapping[str, dict[str, None]],
    origin: str,
) -> Columns:
    """Return a row for every combination of keys; those without one are suppressed, if that may be absent."""
    needed = _needed_columns(law)
    absent: set[int] = set()
    made: Columns = {column: [] for column in needed}
    for number, key in enumerate(itertools.product(*domains.values())):
        row = places.get(key)
        if row is None:
            absent.add(number)
            for column, declared in law.columns.items():
                if declared.suppressed is None or declared.suppressed.shown_as != ABSENT:
                    rule = f"the cell {_keyed(tuple(domains), key)} is not there"
                    hint = f"if it was suppressed, columns.{column}.suppressed says so: shown_as: absent"
                    raise AdoptedTableError(origin, rule, hint)
        for column in needed:
            if row is not None:
                made[column].append(table[column][row])
            else:
                made[column].append(key[tuple(domains).index(column)] if column in domains else None)
    for column in needed:
        if column not in domains and column not in law.columns:
            _fill_public(made, column, tuple(domains), absent)
    return made


def _fill_public(made: Columns, column: str, keys: tuple[str, ...], absent: set[int]) -> None:
    """Give absent rows the public number of their column, where some of the keys determine it.

    They do where two published rows at least agree for each of these keys, and none disagrees; what is not
    determined stays empty, and is refused. Published rows are left as they are.
    """
    values = made[column]
    there = [row for row in range(len(values)) if row not in absent]
    if not absent or any(values[row] is None for row in there):
        return
    for chosen in itertools.chain.from_iterable(
        itertools.combinations(keys, size) for size in range(len(keys))
    ):
        known: dict[tuple[str | None, ...], list[str | None]] = {}
        for row in there:
            known.setdefault(tuple(made[key][row] for key in chosen), []).append(values[row])
        if all(len(each) > 1 and len({*each}) == 1 for each in known.values()):
            for row in absent:
                values[row] = known.get(tuple(made[key][row] for key in chosen), [None])[0]
            return


def _check_sizes(law: DeclaredLaw, made: Columns, origin: str) -> None:
    for name, statistic in law.statistics.items():
        for what in ("exposure", "total"):
            column = getattr(statistic, what, None)
            if column is None or column in law.columns:
                continue
            for row, text in enumerate(made[column]):
                number = number_in(text)
                is_wrong = number is None or not 0.0 < number <= 1e15
                if is_wrong or (what == "total" and not float(str(text)).is_integer()):
                    kind = "a whole number" if what == "total" else "a number"
                    rule = f"{text!r} is no {what} of {name}: it must be {kind} above 0"
                    raise AdoptedTableError(_cell(law, made, row, column, origin), rule)


@dataclass(frozen=True, slots=True)
class FarOut:
    """Published numbers of a statistic that only rare noise can reach, and how rare all of it is together.

    Attributes
    ----------
    cells : list of str
        The cells, the farthest first.
    rule : str
        What they are beyond.
    log_chance : float
        Of noise as far out in as many of the cells that were looked at.
    is_of_rate : bool
        Whether they are beyond what the ``upper`` of a rate leaves: that is no bound of a count.
    """

    cells: list[str]
    rule: str
    log_chance: float
    is_of_rate: bool

    def __str__(self) -> str:
        more = f" and {len(self.cells) - 4} more" if len(self.cells) > 4 else ""
        chance = "below 1e-300" if self.log_chance < -690.0 else f"{math.exp(self.log_chance):.2g}"
        return (
            f"{'; '.join(self.cells[:4])}{more}: {self.rule}, and the declared noise reaches so far with a "
            f"chance of {chance} in all: check the spread of the noise, what was done to it and the table"
            + (", or state a larger upper, or a prior" if self.is_of_rate else "")
        )


def far_out(law: DeclaredLaw, made: Columns, name: str, rows: Sequence[int]) -> list[FarOut]:
    """Return where published numbers are above what a statistic admits, and where they are below 0."""
    statistic = law.statistics[name]
    is_rate = isinstance(statistic, RateStatistic)
    above: dict[str, float] = {}
    below: dict[str, float] = {}
    rule = ""
    for column in noisy_columns(statistic):
        for row in rows:
            count = read_published(made, column, law.columns[column], row).count
            largest, what = _largest_count(law, statistic, made, row)
            rule = what if what and row == rows[0] else rule
            cell = (
                f"{made[column][row]} at {_keyed(tuple(law.keys), [str(made[key][row]) for key in law.keys])}"
            )
            largest += 0.0 if count.rounded is None else count.rounded.to
            if count.low > largest:
                above[cell] = _log_reach(count.law, count.low, largest, is_rate=is_rate)
            if count.high < 0.0:
                below[cell] = _log_reach(count.law, -count.high, 0.0, is_rate=False)
    size = len(rows) * len(noisy_columns(statistic))
    rules = (
        (above, f"{name} has {rule}", is_rate),
        (below, f"{name} counts, and no count is below 0", False),
    )
    return [
        FarOut(
            sorted(chances, key=chances.__getitem__),
            said,
            _log_together(list(chances.values()), size),
            is_of_rate,
        )
        for chances, said, is_of_rate in rules
        if chances
    ]


def _log_reach(law: NoiseLaw, value: float, largest: float, is_rate: bool) -> float:
    """Return the log chance of a noisy number of this size or more, of the largest count or rate."""
    counts, log_weight = np.array([largest]), np.zeros(1)
    if is_rate:
        from scipy.stats import poisson

        reach = 12.0 * math.sqrt(largest) + 40.0
        counts = np.unique(np.rint(np.linspace(max(largest - reach, 0.0), largest + reach, 4001)))
        log_weight = poisson.logpmf(counts, largest)
        log_weight -= np.logaddexp.reduce(log_weight)
    beyond = np.ceil(value - counts) if law.is_whole else value - counts
    return min(float(np.logaddexp.reduce(log_weight + law.log_tail(beyond))), 0.0)


def _log_together(log_chances: list[float], size: int) -> float:
    """Return the log chance of any k of so many cells as far out as the k-th, k = 1, 2, ...: Bonferroni."""
    from scipy.special import gammaln

    ordered = np.sort(log_chances)
    k = np.arange(1.0, len(ordered) + 1.0)
    log_ways = gammaln(size + 1.0) - gammaln(k + 1.0) - gammaln(size - k + 1.0)
    return min(float(np.min(log_ways + k * ordered)) + math.log(len(ordered)), 0.0)


def _check_possible(law: DeclaredLaw, made: Columns, origin: str) -> None:
    """Refuse what a count's ``upper``, a public total or 0 makes impossible but for noise of chance 1e-9.

    Cell by cell, and all cells of the table together. The ``upper`` of a rate is no bound of counts.
    """
    rows = range(len(next(iter(made.values()))))
    for name in law.statistics:
        for far in far_out(law, made, name, rows):
            if far.log_chance < _IMPOSSIBLE and not far.is_of_rate:
                raise AdoptedTableError(origin, str(far))


def _largest_count(law: DeclaredLaw, statistic: Any, made: Columns, row: int) -> tuple[float, str]:
    """Return the largest count that a statistic admits in a row, of a rate the largest mean; and why."""
    if isinstance(statistic, CountStatistic):
        return math.floor(statistic.upper), f"upper: {statistic.upper:g}"
    if isinstance(statistic, RateStatistic):
        exposure = number_in(made[statistic.exposure][row]) if statistic.exposure else 1.0
        return statistic.upper * (exposure or 1.0), f"upper: {statistic.upper:g}"
    if isinstance(statistic, ShareStatistic) and statistic.total not in law.columns:
        total = number_in(made[statistic.total][row])
        return (math.inf if total is None else total), f"the total {statistic.total}"
    return math.inf, ""


def absent_rows(law: DeclaredLaw, made: Columns) -> list[int]:
    """Return the rows of which nothing was published, where the law leaves suppressed ones out."""
    if any(each.suppressed is None or each.suppressed.shown_as != ABSENT for each in law.columns.values()):
        return []
    rows = range(len(next(iter(made.values()))))
    return [row for row in rows if all(made[column][row] is None for column in law.columns)]


def _cell(law: DeclaredLaw, made: Columns, row: int, column: str, origin: str) -> str:
    """Name a cell by its keys: rows that are filled in have no number in the table."""
    keys = [str(made[key][row]) for key in law.keys]
    return f"{origin}: {_keyed(tuple(law.keys), keys)}: {column}"


def _row(origin: str, row: int) -> str:
    return f"{origin}: row {row + 1}"


def _keyed(columns: Sequence[str], key: Sequence[str]) -> str:
    return (
        ", ".join(f"{column}={shown(value)}" for column, value in zip(columns, key, strict=True))
        or "the only cell"
    )
