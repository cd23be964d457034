"""Levels of a tree: no neighbour moves one further than declared, and in every data set children add up.

Small trees by public maps and by the calendar, both relations, rows and units, epsilon and rho: units of one
to three rows, in and out of the tree, are summed by the engine, beside others.
"""

from __future__ import annotations

import datetime as dt
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.beside_sums import totals_of
from suffice.pipeline.rows.chunk.exact_sums import combine, to_python
from suffice.pipeline.rows.chunk.partition import chunk, chunk_job
from suffice.pipeline.spec.hierarchies import tree_of
from suffice.pipeline.spec.plan import compile_plan
from support.hostile import bernoulli, categorical, make_spec, poisson
from support.units import by_customer, partitions_of, sum_tasks, write_row_groups

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from suffice.pipeline.spec.spec import Spec

Row = tuple[Any, ...]
TYPES = {
    "flag": pa.bool_(),
    "code": pa.string(),
    "stops": pa.int64(),
    "county": pa.string(),
    "day": pa.date32(),
    "u": pa.int64(),
}
STATES = {"a": "north", "b": "north", "c": "south"}
DAYS = {"from": "2013-01-28", "to": "2013-02-10", "every": "day"}
DERIVED = {"state": {"column": "county", "map": STATES}}
STATISTICS: dict[str, dict[str, Any]] = {
    "flags": {
        **bernoulli("flag"),
        "hierarchy": ["nation", "state", "county"],
        "groups": {"county": list(STATES)},
    },
    "codes": {
        **categorical("code", ["p", "q"]),
        "hierarchy": ["all", "week", "day"],
        "groups": {"day": DAYS},
        "level_shares": ["2", "1", "1"],
    },
}
TOTALS = {
    **poisson("stops", "3"),
    "hierarchy": ["nation", "state", "county"],
    "groups": {"county": list(STATES)},
}
STATISTICS["stops"] = TOTALS
OF_UNITS = {**STATISTICS["flags"], "rows_of": "units"}
PLACES = list(
    zip(
        ["a", "b", "c", "z", None],
        map(dt.date.fromisoformat, ["2013-01-28", "2013-02-03", "2013-02-04", "2013-02-11", "2013-01-27"]),
        strict=True,
    )
)
"""A county and a day each; the last two are in no tree."""


def levels_spec(directory: Path, neighboring: str, measure: str, unit: Any, **more: Any) -> Spec:
    privacy = {measure: "1", "neighboring": neighboring, "unit": unit}
    statistics = STATISTICS if unit == "row" else {**STATISTICS, "first": OF_UNITS}
    return make_spec(directory, statistics, **{"privacy": privacy, "derived": DERIVED, **more})


def components(directory: Path, spec: Spec, rows: Sequence[Row]) -> dict[str, Any]:
    """Return what is released of rows in many tasks, but for the noise."""
    columns = {
        name: pa.array([row[at] for row in rows], kind) for at, (name, kind) in enumerate(TYPES.items())
    }
    write_row_groups(directory, pa.table(columns), [1] * len(rows))
    job, partitions = chunk_job(spec), partitions_of(spec)
    by_row = spec.privacy.column_unit is None
    totals = combine([chunk(each, job) for each in partitions]) if by_row else sum_tasks(job, partitions)
    exact = to_python(totals)
    plans = {plan.name: plan for plan in compile_plan(spec).statistics}
    return {
        name: np.asarray(totals_of(FAMILIES[entry.family], entry, plans[name], exact[name]), dtype=np.int64)
        for name, entry in spec.statistics.items()
    }


def contradictions(spec: Spec, released: dict[str, Any]) -> list[str]:
    """Return the levels at which some node is not the sum of its children."""
    wrong = []
    for name, levels in spec.hierarchies.items():
        leaves = spec.statistics[f"{name}.{levels[-1]}"]
        keys = tree_of("here", levels, spec.groups_of(leaves), spec.derived).keys
        for depth in range(1, len(levels)):
            below, above = (released[f"{name}.{levels[at]}"] for at in (depth, depth - 1))
            summed = np.zeros_like(above)
            np.add.at(summed, keys.parent_of(depth), below)
            wrong += [f"{name}.{levels[depth - 1]}"] if (summed != above).any() else []
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["epsilon", "rho"])
@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("unit", ["row", by_customer(2)])
def test_no_neighbour_moves_a_level_further_than_declared(
    tmp_path: Path, neighboring: str, measure: str, unit: Any
) -> None:
    spec = levels_spec(tmp_path, neighboring, measure, unit)
    others: list[Row] = [(at % 2 == 0, "p", at, *place, 1) for at, place in enumerate(PLACES)]
    rest = components(tmp_path, spec, others)
    assert contradictions(spec, rest) == []
    values = [(True, "p", 0), (False, "q", 9), (None, "other", None)]
    kinds = [(*value, *place) for value in values for place in PLACES]
    units: list[Any] = [(kind,) for kind in kinds]
    if unit != "row":  # some of three rows, and all of two rows that are alike
        units += [*itertools.islice(itertools.combinations(kinds, 3), 0, None, 13), *((k, k) for k in kinds)]
    moved: dict[str, list[Any]] = {name: [] for name in spec.statistics}
    for rows in units:
        released = components(tmp_path, spec, [*others, *((*row, 2) for row in rows)])
        assert contradictions(spec, released) == []
        for name, of in released.items():
            moved[name].append((of - rest[name]).ravel())
    for statistic in compile_plan(spec).statistics:
        vectors = np.unique(moved[statistic.name], axis=0)
        seconds = 0 * vectors[:1] if neighboring == "add_or_remove_one" else vectors
        change = vectors[:, None, :] - seconds[None, :, :]
        assert np.abs(change).sum(axis=-1).max() == statistic.l1_sensitivity, statistic.name
        if measure == "rho":
            assert (change**2).sum(axis=-1).max() == statistic.l2_squared, statistic.name


def test_a_map_of_keys_that_the_leaves_lack_would_contradict_them(tmp_path: Path) -> None:
    """What a spec is refused for: the comparison of levels sees it."""
    spec = levels_spec(tmp_path, "add_or_remove_one", "epsilon", "row")
    rows: list[Row] = [
        (True, "p", 2, "z", dt.date(2013, 2, 1), 1),
        (True, "p", 2, "a", dt.date(2013, 2, 11), 1),
    ]
    state = spec.derived["state"]
    wider = state.model_copy(update={"map": {**STATES, "z": "south"}})
    forged = spec.model_copy(update={"derived": {**spec.derived, "state": wider}})
    released, of_forged = (components(tmp_path, of, rows) for of in (spec, forged))
    assert contradictions(spec, released) == []
    assert contradictions(spec, of_forged) == ["flags.state", "stops.state"]


def test_rows_of_a_cell_would_contradict_them(tmp_path: Path) -> None:
    """What a spec is refused for: a unit keeps three rows of two counties, and two of their state."""
    spec = levels_spec(tmp_path, "add_or_remove_one", "epsilon", by_customer(4))
    unit = spec.privacy.column_unit
    assert unit is not None
    in_cells = unit.model_copy(update={"max_rows_per_cell": 2})
    forged = spec.model_copy(update={"privacy": spec.privacy.model_copy(update={"unit": in_cells})})
    bound = {name: forged.bound(entry) for name, entry in forged.statistics.items()}
    rows: list[Row] = [(True, "p", 2, county, dt.date(2013, 2, 1), 1) for county in "aab"]
    released = components(tmp_path, forged.model_copy(update={"statistics": bound}), rows)
    assert contradictions(spec, released) == ["flags.state", "stops.state"]
