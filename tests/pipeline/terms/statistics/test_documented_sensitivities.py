"""The documented tables of sensitivities are those of the blocks."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.compiled_statistics import block_of
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.statistics.count_table import released_tables
from suffice.pipeline.terms.statistics.sensitivity import Design, NeighboringRelation
from support.entries import counting_nulls
from support.units import by_customer

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.statistics.sensitivity import Block

BOX = {"lower": "-1", "upper": "1", "nulls": {"value": "0"}}
OTHER = {"categories": ["x"], "other": "true"}


def normal_of(size: int) -> dict[str, Any]:
    columns = dict.fromkeys("abcdefgh"[:size], BOX)
    return {"family": "multivariate_normal", "columns": columns, "noise": "laplace"}


def regression_of(size: int) -> dict[str, Any]:
    predictors = dict.fromkeys("abcdefgh"[: size - 1], BOX)
    return {
        "family": "linear_regression",
        "intercept": "false",
        "outcome": {"y": BOX},
        "predictors": predictors,
        "noise": "laplace",
    }


ENTRIES: dict[str, dict[str, Any]] = {
    **{name: {"family": name, **FAMILIES[name].example.entry} for name in FAMILIES},
    "two columns, with first moments": normal_of(2),
    **{f"d = {size} columns": normal_of(size) for size in range(2, 6)},
    **{f"a regression without an intercept, d = {size}": regression_of(size) for size in (2, 3)},
    "`rows_per_unit`, C = 40 and `max_rows` 8": {"family": "rows_per_unit", "upper": 40},
    "`rows_per_unit`, a histogram": {"family": "rows_per_unit", "upper": 40, "histogram": "true"},
}
"""By the words of the tables, where they are not names of families."""
TABLES_OF_ROWS: dict[str, dict[str, Any]] = {
    "categorical": {"family": "categorical", "column": "x", **OTHER},
    "contingency": {"family": "contingency", "columns": dict.fromkeys("ab", OTHER)},
    "naive_bayes": {
        "family": "naive_bayes",
        "outcome": {"a": OTHER},
        "features": dict.fromkeys("bcd", OTHER),
    },
}
"""With `other` everywhere, so that every row enters."""
PUBLIC = {
    "one sum of values in a range of R steps": ("poisson", "exponential", "normal_known_variance"),
    "V tables": ("contingency", "naive_bayes"),
}


def documented(repository: Path, heading: str) -> list[list[str]]:
    """Return the rows of a table by its heading."""
    text = (repository / "docs/reference/families.md").read_text(encoding="utf-8")
    _, _, after = text.partition(f"| {heading} | L1 | L2 squared |\n|---|---|---|\n")
    rows = itertools.takewhile(lambda line: line.startswith("|"), after.splitlines())
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def evaluated(formula: str, letters: dict[str, int]) -> Fraction:
    """Return what a product of numbers and powers of letters is."""
    product = Fraction(1)
    for factor in formula.split():
        base, _, power = factor.partition("^")
        product *= Fraction(letters.get(base) or base) ** int(power or 1)
    return product


def compiled(entry: dict[str, Any], neighboring: str, *, n_is_public: bool) -> tuple[StatisticSpec, Block]:
    needs_unit = FAMILIES[entry["family"]].needs_unit
    unit = by_customer(8) if needs_unit else "row"
    privacy = {"epsilon": "1", "neighboring": neighboring, "unit": unit}
    spec = load_spec(
        {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": "/x"},
            "privacy": privacy,
            "statistics": {"s": entry},
        }
    )
    statistic = spec.statistics["s"]
    return statistic, block_of(statistic, n_may_be_public=n_is_public)


def letters_of(statistic: Any) -> dict[str, int]:
    """Return what the tables' letters stand for."""
    tables = FAMILIES[statistic.family].parameters(statistic).tables
    return {
        "M": 1 << getattr(statistic, "lattice_bits", 0),
        "C": int(getattr(statistic, "trials", getattr(statistic, "upper", 1))),
        "V": len(released_tables(tables)),
        "L": getattr(statistic, "transitions", 1),
    }


def test_what_a_row_or_a_unit_adds(repository: Path) -> None:
    families = set()
    for words, l1, squared in documented(repository, "statistic"):
        for name in [words] if words in ENTRIES else re.findall(r"`(\w+)`", words.partition(" of ")[0]):
            statistic, block = compiled(ENTRIES[name], "add_or_remove_one", n_is_public=False)
            letters = letters_of(statistic)
            for times, relation in enumerate(NeighboringRelation, start=1):
                assert block.l1_sensitivity(relation) == times * evaluated(l1, letters), name
                assert block.l2_squared(relation) == times * evaluated(squared, letters), name
            families.add(statistic.family)
    assert families == set(FAMILIES)


def test_what_a_replaced_row_moves_beside_a_public_number(repository: Path) -> None:
    rows = documented(repository, "beside a public number of rows, `replace_one`")
    assert len(rows) == 7
    for words, l1, squared in rows:
        for name in PUBLIC.get(words) or ([words] if words in ENTRIES else re.findall(r"`(\w+)`", words)):
            entry = TABLES_OF_ROWS.get(name) or counting_nulls(ENTRIES[name], "1")
            statistic, block = compiled(entry, "replace_one", n_is_public=True)
            assert block.design is Design.MINIMAL
            letters = {**letters_of(statistic), "R": block.minimal_sensitivity or 0}
            replaced = NeighboringRelation.REPLACE_ONE
            for formula, moved in (
                (l1, block.l1_sensitivity(replaced)),
                (squared, block.l2_squared(replaced)),
            ):
                assert float(evaluated(formula, letters)) == pytest.approx(moved, rel=2e-4), name
