"""Entries of every family over the columns of `hostile.hostile_table`, for tests that take any statistic."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.contract import ColumnType
from support.entries import fields_of

NUMBERS = ["tiny", "integer", "unsigned", "float", "single", "price", "precise", "measure", "whole"]
HOSTILE = {
    ColumnType.NUMBER: NUMBERS,
    ColumnType.BOOLEAN: ["flag", "tiny"],
    ColumnType.TEXT: ["text", "dictionary", "digits"],
}
"""Columns by what they hold."""
NULLS = st.sampled_from(["drop", {"value": "1"}])
BITS = st.integers(2, 24).map(str)
BOUNDS = st.fixed_dictionaries(
    {"lower": st.sampled_from(["-3", "1"]), "upper": st.sampled_from(["3", "100"]), "nulls": NULLS}
)
"""Of one column of several."""


VARIABLES: dict[str, dict[str, Any]] = {
    "colour": {"column": "text", "categories": ["a", "b", "", "01"]},
    "number": {"column": "tiny", "categories": {"range": ["0", "3"]}, "other": "true"},
    "sign": {"column": "flag", "categories": ["true", "false"]},
    "date": {"column": "day", "categories": {"from": "2013-01", "to": "2013-02", "every": "month"}},
}
FIRST, SECOND, THIRD, FOURTH = ({name: entry} for name, entry in VARIABLES.items())

VARIED: dict[str, dict[str, list[str]]] = {
    "poisson": {"upper": ["3", "1000000000"]},
    "exponential": {"upper": ["0.3", "100"]},
    "weibull": {"shape": ["0.7", "1.7"]},
    "normal": {"upper": ["3", "100"]},
}
"""Values beside those of a family's example that are worth trying."""

SHAPED: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "categorical": st.fixed_dictionaries(
        {
            "family": st.just("categorical"),
            "column": st.sampled_from(["text", "dictionary", "digits", "integer", "day"]),
            "categories": st.sampled_from([["a", "b", ""], ["0", "1", "12"], ["1970-01-01"]]),
            "other": st.sampled_from(["true", "false"]),
        }
    ),
    "contingency": st.fixed_dictionaries(
        {
            "family": st.just("contingency"),
            "columns": st.sampled_from([FIRST, {**SECOND, **THIRD}, {**FOURTH, **FIRST, **SECOND}]),
        }
    ),
    "naive_bayes": st.fixed_dictionaries(
        {
            "family": st.just("naive_bayes"),
            "outcome": st.sampled_from([FIRST, SECOND]),
            "features": st.sampled_from([THIRD, {**FOURTH, **THIRD}]),
        }
    ),
    "bayesian_network": st.fixed_dictionaries(
        {
            "family": st.just("bayesian_network"),
            "nodes": st.sampled_from(
                [
                    VARIABLES,
                    {
                        **SECOND,
                        "colour": {**VARIABLES["colour"], "parents": ["sign", "number"]},
                        "sign": {**VARIABLES["sign"], "parents": ["number"]},
                    },
                ]
            ),
        }
    ),
    "multivariate_normal": st.fixed_dictionaries(
        {
            "family": st.just("multivariate_normal"),
            "columns": st.dictionaries(st.sampled_from(NUMBERS), BOUNDS, min_size=2, max_size=7),
            "lattice_bits": BITS,
        }
    ),
    "linear_regression": st.fixed_dictionaries(
        {
            "family": st.just("linear_regression"),
            "outcome": st.fixed_dictionaries({"whole": BOUNDS}),
            "predictors": st.dictionaries(st.sampled_from(NUMBERS[:-1]), BOUNDS, min_size=1, max_size=6),
            "intercept": st.sampled_from(["true", "false"]),
            "lattice_bits": BITS,
        }
    ),
}
"""Entries over columns that are no numbers, or over several: harder ones than the families' examples."""


def _from_example(family: str) -> st.SearchStrategy[dict[str, Any]]:
    """Put a family's example over hostile columns of the same types; nulls and the lattice vary."""
    example, fields = FAMILIES[family].example, fields_of(family)
    left = {kind: list(names) for kind, names in HOSTILE.items()}
    hostile = {name: left[kind].pop(0) for name, kind in example.columns.items()}
    varied: dict[str, st.SearchStrategy[Any]] = {
        key: st.sampled_from(values) for key, values in VARIED.get(family, {}).items()
    }
    if "column" in fields:
        varied["column"] = st.sampled_from(HOSTILE[example.columns[example.entry["column"]]])
    if "nulls" in fields:
        varied["nulls"] = NULLS
    if "lattice_bits" in fields:
        varied["lattice_bits"] = BITS
    same = {key: st.just(_renamed(value, hostile)) for key, value in example.entry.items()}
    return st.fixed_dictionaries({"family": st.just(family), **same, **varied})


def _renamed(part: Any, names: dict[str, str]) -> Any:
    """Call the columns of a part of an entry otherwise."""
    if isinstance(part, dict):
        return {names.get(key, key): _renamed(value, names) for key, value in part.items()}
    if isinstance(part, list):
        return [_renamed(value, names) for value in part]
    return names.get(part, part)


ENTRIES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    name: SHAPED[name] if name in SHAPED else _from_example(name)
    for name, family in FAMILIES.items()
    if not family.needs_unit
}
"""Entries by family, as a spec's mapping states them."""

ANY_STATISTIC: st.SearchStrategy[dict[str, Any]] = st.sampled_from(sorted(ENTRIES)).flatmap(
    ENTRIES.__getitem__
)
"""Any statistic of any family."""
