"""Every small data set of one unit beside another, summed by the real tasks; and how far the sums move."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.beside_sums import totals_of
from suffice.pipeline.rows.chunk.exact_sums import combine, to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.spec.compiled_statistics import block_of
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.date_formats import DateFormat
from support.units import KEY, by_customer, partitions_of, sum_tasks, write_row_groups

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from suffice.pipeline.rows.contribution.records import UnitKey


Record = tuple[Any, ...]
MAX_ROWS = 2
MAX_ROWS_OF_CELLS = 3
ROWS_IN_CELL = {"rows in cells": 1, "rows in one cell": 2}
"""By shape, ``max_rows_per_cell`` beside it: of two cells, and of one."""
OF_ROWS: dict[str, tuple[pa.DataType, list[Any], dict[str, Any]]] = {
    "bernoulli": (pa.int64(), [0, 1, None], {"family": "bernoulli"}),
    "bernoulli-nulls": (pa.int64(), [0, 1, None], {"family": "bernoulli", "nulls": {"value": 1}}),
    "categorical": (
        pa.string(),
        ["x", "y", "z"],
        {"family": "categorical", "categories": ["x", "y"], "other": "true"},
    ),
    "poisson": (pa.float64(), [0.0, 2.5, np.inf], {"family": "poisson", "upper": 3}),
    "normal": (
        pa.float64(),
        [-1.0, -0.25, 9.0],
        {"family": "normal", "lower": -1, "upper": 1, "lattice_bits": 2},
    ),
    "exponential": (
        pa.float64(),
        [0.0, 2.0, np.nan],
        {"family": "exponential", "upper": 2, "lattice_bits": 2},
    ),
}
OF_UNITS = {
    name: (kind, values, {**entry, "rows_of": "units"})
    for name, (kind, values, entry) in OF_ROWS.items()
    if entry["family"] in {"bernoulli", "categorical", "poisson", "normal"}
}
WITHIN_UNITS: dict[str, tuple[pa.DataType, list[Any], dict[str, Any]]] = {
    "bernoulli": OF_ROWS["bernoulli"],
    "normal": OF_ROWS["normal"],
    "lognormal": (
        pa.float64(),
        [0.5, 9.0, np.nan],
        {"family": "lognormal", "lower": 1, "upper": 8, "lattice_bits": 2},
    ),
}
COUNTED: dict[str, tuple[pa.DataType, list[Any], dict[str, Any]]] = {
    "normal counted": (
        pa.float64(),
        [-9.0, -0.25, 9.0],
        {**OF_ROWS["normal"][2], "count_clipped": "true"},
    ),
}
UPPER = 3
"""Of rows of a unit that are told apart."""
ROWS_PER_UNIT: dict[str, tuple[pa.DataType, list[Any], dict[str, Any]]] = {
    "rows": (pa.int64(), [0, 1, None], {"family": "rows_per_unit", "upper": UPPER}),
    "rows-histogram": (
        pa.int64(),
        [0, 1, None],
        {"family": "rows_per_unit", "upper": UPPER, "histogram": "true"},
    ),
}
PER_UNIT: dict[str, tuple[pa.DataType, list[Any], dict[str, Any]]] = {
    "visits": (pa.int64(), [0, 1, None], {"family": "poisson", "column": "visits", "upper": UPPER}),
    "busy": (pa.int64(), [0, 1, None], {"family": "bernoulli", "column": "busy"}),
    "spend": (
        pa.float64(),
        [-1.0, -0.25, 9.0],
        {"family": "normal", "column": "spend", "lower": -2, "upper": 2, "lattice_bits": 2},
    ),
    "smallest": (
        pa.float64(),
        [-1.0, np.nan, 9.0],
        {"family": "normal", "column": "smallest", "lower": -1, "upper": 1, "lattice_bits": 2},
    ),
    "largest of busy": (
        pa.float64(),
        [-1.0, -0.25, 9.0],
        {
            "family": "normal",
            "column": "largest",
            "lower": -1,
            "upper": 1,
            "lattice_bits": 2,
            "where": {"column": "visits", "at_least": 2},
        },
    ),
}
COLUMNS_OF_UNITS: dict[str, Any] = {
    "per_unit": {
        "visits": "count",
        "spend": {"sum": "v", "lower": -1, "upper": 1, "step": "0.25", "total": {"lower": -2, "upper": 2}},
        "smallest": {"min": "v"},
        "largest": {"max": "v"},
    },
    "derived": {"busy": {"column": "visits", "at_least": 2}},
}
ENTRIES = {
    **OF_ROWS,
    **{
        name: (kind, values, {**entry, "rows_of": "units"})
        for name, (kind, values, entry) in PER_UNIT.items()
    },
    **ROWS_PER_UNIT,
    **COUNTED,
    **{f"{name} of units": entry for name, entry in OF_UNITS.items()},
    **{
        f"{name} within units": (kind, values, {**entry, "within_unit": "true"})
        for name, (kind, values, entry) in WITHIN_UNITS.items()
    },
}
"""Types and values of a column ``v``, and the entry of its statistic, by name."""
_WRITTEN = DateFormat("%d-%b-%y", 1970)
SPELLINGS = ("{0}", " {1}", "{1}\t")
MANY = [("A", 0), ("A", 1), ("A", 2), ("A", 1), ("A", 0)]
"""Another unit's records, more than it may keep: numbers of values."""


class UnitEngine:
    """Sums data sets of one statistic by unit."""

    def __init__(
        self, directory: Path, name: str, neighboring: str, shape: str = "plain", key: UnitKey = KEY
    ) -> None:
        self.kind, self.values, entry = ENTRIES[name]
        spec: dict[str, Any] = {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": str(directory)},
            "privacy": {"epsilon": "1", "neighboring": neighboring, "unit": by_customer(MAX_ROWS)},
            "statistics": {"s": entry if name in ROWS_PER_UNIT else {"column": "v", **entry}},
            **(COLUMNS_OF_UNITS if name in PER_UNIT else {}),
        }
        keys, days = ["a"], [dt.date(2013, 1, 31)]
        if shape == "own units":
            spec["privacy"]["unit"] = by_customer(MAX_ROWS, nulls="own_unit")
        if shape in {"groups", "rows in cells"}:
            spec["groups"] = {"g": ["a", "b"]}
            keys = ["a", "b", "unknown"]
        if shape in {"rows in cells", "rows in one cell"}:
            spec["privacy"]["unit"] = by_customer(
                MAX_ROWS_OF_CELLS, max_rows_per_cell=str(ROWS_IN_CELL[shape])
            )
        if shape == "window":
            spec["window"] = {"column": "t", "every": "month"}
            days.append(dt.date(2013, 2, 1))
        self.is_spelled = shape in {"parsed", "spelled"}
        if self.is_spelled:
            spec["derived"] = {
                "at": {"column": "t", "parse": "date", "format": "%d-%b-%y", "pivot": "1970"},
                "who": {"column": "u", "trim": "true", "case": "lower"},
            }
            spec["window"] = {"column": "at", "every": "month"}
            days.append(dt.date(2013, 2, 1))
        if shape == "parsed":
            spec["privacy"]["unit"] = {**by_customer(MAX_ROWS), "column": "who"}
        self.directory, self.key = directory, key
        self.spec = load_spec(spec)
        self.plan = compile_plan(self.spec)
        self.job = chunk_job(self.spec, "2013-01" if "window" in spec else "all")
        # The cell's ends and a middle, in every key: enough to attain every bound.
        self.universe = list(itertools.product(self.values, keys, days))[:6]

    @property
    def declared(self) -> int:
        return self.plan.statistics[0].l1_sensitivity

    @property
    def declared_squared(self) -> int:
        """The squared L2 sensitivity of the block."""
        statistic = self.plan.statistics[0]
        block = block_of(self.spec.statistics["s"], n_may_be_public=False)
        kept = statistic.contribution
        rows, in_cell = (1, None) if kept is None else (kept.rows, kept.rows_in_cell)
        return block.l2_squared(self.plan.neighboring, rows, in_cell)

    def many(self) -> list[tuple[str | None, Record]]:
        return [(unit, (self.values[number], "a", dt.date(2013, 1, 31))) for unit, number in MANY]

    def write(self, rows: Sequence[tuple[str | None, Record]]) -> None:
        units, records = [unit for unit, _ in rows], [record for _, record in rows]
        values, keys, days = zip(*records, strict=True) if records else ((), (), ())
        of_days = pa.date32()
        if self.is_spelled:  # each row names its unit and its day in another way
            units = [
                SPELLINGS[at % 3].format(unit or "", (unit or "").lower()) for at, unit in enumerate(units)
            ]
            days, of_days = (
                tuple(_WRITTEN.text(dt.datetime.combine(day, dt.time())) for day in days),
                pa.string(),
            )
        table = pa.table(
            {
                "u": pa.array(units, pa.string()),
                "v": pa.array(list(values), self.kind, from_pandas=False),
                "g": pa.array(list(keys), pa.string()),
                "t": pa.array(list(days), of_days),
            }
        )
        write_row_groups(self.directory, table, [1] * len(rows))

    def sums(self, rows: Sequence[tuple[str | None, Record]]) -> NDArray[Any]:
        """Return the exact sums, shape (n_cells, n_sums)."""
        self.write(rows)
        return to_python(sum_tasks(self.job, partitions_of(self.spec), self.key))["s"]

    def totals(self, rows: Sequence[tuple[str | None, Record]], *, each: bool = False) -> NDArray[Any]:
        """Return the totals; with `each`, of the partitions bounded one by one."""
        self.write(rows)
        partitions = partitions_of(self.spec)
        if each:
            sums = combine([sum_tasks(self.job, [partition], self.key) for partition in partitions])
        else:
            sums = sum_tasks(self.job, partitions, self.key)
        entry = self.spec.statistics["s"]
        exact = to_python(sums)["s"]
        return totals_of(FAMILIES[entry.family], entry, self.plan.statistics[0], exact).ravel()

    def of_every_unit(self, unit: str | None = "B", most: int = 3, **how: bool) -> NDArray[Any]:
        """Return the totals beside the other unit, of every multiset that a unit may hold."""
        return np.array(
            [
                self.totals([*[(unit, record) for record in records], *self.many()], **how)
                for size in range(most + 1)
                for records in itertools.combinations_with_replacement(self.universe, size)
            ]
        )


def farthest(vectors: NDArray[Any], neighboring: str) -> int:
    """Return the largest L1 change: from no unit to any, or from any unit to any."""
    others = vectors[:1] if neighboring == "add_or_remove_one" else vectors
    return int(max(np.abs(vectors - other).sum(axis=1).max() for other in others))
