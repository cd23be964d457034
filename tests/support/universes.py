"""Tiny universes of records: what exhaustive neighbours are made of.

The example of every family is over one; cases beside it are harder.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.contract import ColumnType
from support.entries import counting_nulls, fields_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """A universe of values of one column, and the statistic over it."""

    type: pa.DataType
    values: Sequence[Any]
    entry: dict[str, Any]

    @property
    def several(self) -> bool:
        """Whether a value is one of v and one of u."""
        return isinstance(self.values[0], tuple)

    @property
    def columns(self) -> dict[str, pa.DataType]:
        """The columns' types."""
        return dict.fromkeys("vu" if self.several else "v", self.type)

    @property
    def records(self) -> list[Row]:
        """The values of every record, by column."""
        return [value if self.several else (value,) for value in self.values]

    @property
    def statistic(self) -> dict[str, Any]:
        """The statistic's entry in a spec."""
        return self.entry if self.several else {**self.entry, "column": "v"}


@dataclass(frozen=True)
class Cases:
    """Universes of values of several columns, whose combinations are the records."""

    entry: dict[str, Any]
    values: Mapping[str, Sequence[Any]]
    types: Mapping[str, pa.DataType] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, pa.DataType]:
        """The columns' types: text where none is stated."""
        return {name: self.types.get(name, pa.string()) for name in self.values}

    @property
    def records(self) -> list[Row]:
        """Every combination of the columns' values."""
        return list(itertools.product(*self.values.values()))

    @property
    def statistic(self) -> dict[str, Any]:
        """The statistic's entry in a spec."""
        return self.entry


BITS = {"lattice_bits": 2}
JOINT = ["multivariate_normal", "linear_regression"]
SCALAR: dict[str, Case] = {
    "bernoulli": Case(pa.int64(), [0, 1, 2, None], {"family": "bernoulli"}),
    "bernoulli-nulls": Case(pa.float64(), [0.0, 1.0, None], {"family": "bernoulli", "nulls": {"value": 1}}),
    "bernoulli-boolean": Case(
        pa.bool_(), [True, False, None], {"family": "bernoulli", "nulls": {"value": 0}}
    ),
    "categorical": Case(
        pa.string(), ["x", "y", "z", None], {"family": "categorical", "categories": ["x", "y"]}
    ),
    "categorical-other": Case(
        pa.string(), ["x", "y", None], {"family": "categorical", "categories": ["x", "y"], "other": "true"}
    ),
    "categorical-one": Case(pa.string(), ["x", "z"], {"family": "categorical", "categories": ["x"]}),
    "poisson": Case(pa.float64(), [-1.0, 0.0, 2.5, 3.0, np.inf, np.nan], {"family": "poisson", "upper": 3}),
    "poisson-nulls": Case(
        pa.int32(), [0, 1, 9, None], {"family": "poisson", "upper": 3, "nulls": {"value": 2}}
    ),
    "normal": Case(
        pa.float64(),
        [-9.0, -1.0, -0.25, 0.0, 1.0, np.nan],
        {"family": "normal", "lower": -1, "upper": 1, "lattice_bits": 2},
    ),
    "normal-nulls": Case(
        pa.float64(),
        [*(step / 4 for step in range(-4, 5)), None],
        {"family": "normal", "lower": -1, "upper": 1, "lattice_bits": 2, "nulls": {"value": "-0.25"}},
    ),
    "binomial": Case(pa.int64(), [-1, 0, 2, 9, None], {"family": "binomial", "trials": 3}),
    "geometric": Case(pa.float64(), [-np.inf, 0.0, 1.5, 3.0, np.nan], {"family": "geometric", "upper": 3}),
    "negative_binomial": Case(
        pa.int64(), [0, 2, 9, None], {"family": "negative_binomial", "successes": "0.5", "upper": 3}
    ),
    "exponential": Case(
        pa.float64(), [-1.0, 0.0, 0.7, 2.0, np.inf, np.nan], {"family": "exponential", "upper": 2, **BITS}
    ),
    "gamma": Case(
        pa.float64(), [-1.0, 0.0, 0.7, 3.0, np.nan], {"family": "gamma", "shape": 3, "upper": 2, **BITS}
    ),
    "weibull": Case(
        pa.float64(),
        [-np.inf, -1.0, 0.0, 0.7, 2.0, np.inf, np.nan],
        {"family": "weibull", "shape": "1.5", "upper": 2, **BITS},
    ),
    "pareto": Case(
        pa.float64(),
        [-np.inf, -1.0, 0.0, 2.0, 3.0, np.inf, np.nan],
        {"family": "pareto", "minimum": 2, "upper": 9, **BITS},
    ),
    "laplace": Case(
        pa.float64(),
        [-np.inf, -2.0, 1.0, 1.7, 4.0, np.inf, np.nan],
        {"family": "laplace", "location": 1, "half_range": 2, **BITS},
    ),
    "normal_known_mean": Case(
        pa.float64(),
        [-np.inf, -2.0, 1.0, 1.7, 4.0, np.inf, np.nan],
        {"family": "normal_known_mean", "mean": 1, "half_range": 2, **BITS},
    ),
    "normal_known_variance": Case(
        pa.float64(),
        [-np.inf, 1.0, 1.7, 4.0, np.nan],
        {"family": "normal_known_variance", "variance": 1, "lower": 1, "upper": 3, **BITS},
    ),
    "lognormal": Case(
        pa.float64(),
        [-np.inf, -1.0, 0.0, 0.25, 1.0, 1.3, 4.0, np.inf, np.nan],
        {"family": "lognormal", "lower": "0.25", "upper": 4, **BITS},
    ),
}
SCALAR |= {
    f"{name}-nulls": Case(case.type, case.values, {**case.entry, "nulls": {"value": "1"}})
    for name, case in SCALAR.items()
    if "nulls" in fields_of(name.partition("-")[0]) and f"{name}-nulls" not in SCALAR and "-" not in name
}
SCALAR["lognormal-nulls"] = Case(
    pa.float64(),
    [*(float(np.exp(step / 4 * np.log(4.0))) for step in range(-4, 5)), None],
    {**SCALAR["lognormal"].entry, "nulls": {"value": "1"}},
)
COUNTED = {"count_clipped": "true"}
SCALAR |= {
    "normal-counted": Case(
        pa.float64(),
        [-9.0, -1.0, -0.25, 0.0, 1.0, float(np.nextafter(1.0, 2.0)), np.inf, np.nan],
        {**SCALAR["normal"].entry, **COUNTED},
    ),
    "normal-counted-nulls": Case(
        pa.float64(),
        [-1.5, *(step / 4 for step in range(-4, 5)), 1.5, None],
        {**SCALAR["normal-nulls"].entry, **COUNTED},
    ),
    "normal-counted-heavily-nulls": Case(
        pa.float64(),
        [-1.5, *(step / 4 for step in range(-4, 5)), 1.5, None],
        {**SCALAR["normal-nulls"].entry, "nulls": {"value": "2"}, "count_clipped": {"weight": "1"}},
    ),
    "lognormal-counted": Case(
        pa.float64(), SCALAR["lognormal"].values, {**SCALAR["lognormal"].entry, **COUNTED}
    ),
    "poisson-counted": Case(pa.float64(), SCALAR["poisson"].values, {**SCALAR["poisson"].entry, **COUNTED}),
    "poisson-counted-nulls": Case(
        pa.int32(), [-1, 0, 1, 9, None], {**SCALAR["poisson-nulls"].entry, **COUNTED}
    ),
    "pareto-counted": Case(
        pa.float64(),
        [*SCALAR["pareto"].values, 9.5],
        {**SCALAR["pareto"].entry, "count_clipped": {"weight": "0.3"}},
    ),
}
PAIRS = [
    (1.0, 1.0),
    (-1.0, 1.0),
    (-9.0, 9.0),
    (0.0, 0.0),
    (1.0, 0.0),
    (1.0, -0.25),
    (-0.25, -0.25),
    (0.25, np.nan),
    (None, 1.0),
]
BOUNDS: dict[str, Any] = {"lower": -1, "upper": 1}
for suffix, bounds in (("", BOUNDS), ("-nulls", {**BOUNDS, "nulls": {"value": "-0.25"}})):
    regression = {"family": "linear_regression", "predictors": {"v": bounds}, **BITS}
    SCALAR |= {
        f"multivariate_normal{suffix}": Case(
            pa.float64(),
            PAIRS,
            {"family": "multivariate_normal", "columns": {"v": bounds, "u": bounds}, **BITS},
        ),
        f"linear_regression{suffix}": Case(pa.float64(), PAIRS, {**regression, "outcome": {"u": bounds}}),
        f"linear_regression-origin{suffix}": Case(
            pa.float64(),
            PAIRS,
            {
                **regression,
                "outcome": {"u": {**bounds, "lower": "-0.3"}},
                "intercept": "false",
                "noise": "laplace",
            },
        ),
    }
PAIR = ["x", "y"]
WITH_OTHER = {"categories": PAIR, "other": "true"}
STRUCTURED: dict[str, Cases] = {
    "contingency": Cases(
        {"family": "contingency", "columns": {"a": PAIR, "b": WITH_OTHER}},
        {"a": ["x", "y", "z", None], "b": ["x", "y", "z", None]},
    ),
    "contingency-other": Cases(
        {"family": "contingency", "columns": {"a": WITH_OTHER, "b": WITH_OTHER}},
        {"a": ["x", "y", None], "b": ["x", "z", None]},
    ),
    "naive_bayes": Cases(
        {"family": "naive_bayes", "outcome": {"a": PAIR}, "features": {"b": PAIR, "c": WITH_OTHER}},
        {"a": ["x", "y", None], "b": ["x", "y", "z"], "c": ["x", "y", None]},
    ),
    "naive_bayes-other": Cases(
        {
            "family": "naive_bayes",
            "outcome": {"a": WITH_OTHER},
            "features": {"b": WITH_OTHER, "c": WITH_OTHER, "again": {"column": "c", **WITH_OTHER}},
        },
        {"a": ["x", "y", None], "b": ["x", "z"], "c": ["x", "y", None]},
    ),
    "bayesian_network": Cases(
        {
            "family": "bayesian_network",
            "nodes": {
                "c": {"categories": PAIR, "parents": ["b", "a"]},
                "a": PAIR,
                "b": {**WITH_OTHER, "parents": ["a"]},
            },
        },
        {"a": ["x", "y", None], "b": ["x", "y", None], "c": ["x", "y", "z"]},
    ),
    "bayesian_network-other": Cases(
        {
            "family": "bayesian_network",
            "nodes": {"a": WITH_OTHER, "b": {**WITH_OTHER, "parents": ["a"]}, "c": WITH_OTHER},
        },
        {"a": ["x", None], "b": ["x", "y", None], "c": ["x", "z"]},
    ),
}
CASES: dict[str, Case | Cases] = {**SCALAR, **STRUCTURED}
"""Harder cases than the families' examples, by name."""

TYPES: dict[ColumnType, tuple[pa.DataType, Sequence[Any]]] = {
    ColumnType.BOOLEAN: (pa.bool_(), [False, True, None]),
    ColumnType.NUMBER: (pa.float64(), [-np.inf, -3.0, 0.0, 0.1, 1.0, 3.0, 100.0, np.inf, np.nan]),
    ColumnType.TEXT: (pa.string(), ["0", "1", "a", "z", None]),
}


def of_example(family: str, *, every_row_counts: bool = False) -> Cases:
    """Return a family's example over all combinations of a few values, on the coarsest lattice."""
    example = FAMILIES[family].example
    entry = {"family": family, **example.entry, **(BITS if "lattice_bits" in fields_of(family) else {})}
    return Cases(
        counting_nulls(entry, "1") if every_row_counts else entry,
        {name: TYPES[kind][1] for name, kind in example.columns.items()},
        {name: TYPES[kind][0] for name, kind in example.columns.items()},
    )
