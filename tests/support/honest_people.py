"""Columns of real records beside flights: adults of a census, and fatal crashes; where they are at hand."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from support.real_data import REAL_DATA

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from support.honest_flights import Column

_ADULT = REAL_DATA / "adult" / "adult.parquet"
_CRASHES = REAL_DATA / "fars" / "crash_monthly_2013_2015.parquet"
RACES = ["Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"]


def are_at_hand() -> bool:
    """Tell whether both files are there: beside the project, or where SUFFICE_SHARED_DATA says."""
    return _ADULT.exists() and _CRASHES.exists()


@cache
def _read(path: Path) -> pa.Table:
    return pq.read_table(path)


def _adults(name: str) -> Column:
    return np.asarray(_read(_ADULT)[name])


def _of_each(group: Column, values: Column, chosen: int) -> list[Column]:
    """Return a column of each of the largest groups."""
    keys, counts = np.unique(group, return_counts=True)
    return [values[group == key] for key in keys[np.argsort(-counts)[:chosen]]]


def ages() -> list[Column]:
    """Ages of adults, by marital status."""
    return _of_each(_adults("marital-status"), _adults("age"), 4)


def weights() -> list[Column]:
    """How many people an adult of the census stands for, by race."""
    return _of_each(_adults("race"), _adults("fnlwgt"), 3)


def gains() -> list[Column]:
    """Capital gains of adults, nine in ten of them 0, by sex."""
    return _of_each(_adults("sex"), _adults("capital-gain"), 2)


def incomes() -> list[Column]:
    """Whether an adult has more than 50,000, by education."""
    above = np.char.startswith(_adults("income").astype(str), ">").astype(int)
    return _of_each(_adults("education"), above, 5)


def races() -> list[Column]:
    """Codes of the races of adults, by sex."""
    return _of_each(_adults("sex"), np.searchsorted(RACES, _adults("race").astype(str)), 2)


def persons() -> list[Column]:
    """How many persons were in a fatal crash, by the day of the week."""
    crashes = _read(_CRASHES)
    return _of_each(np.asarray(crashes["DAY_WEEK"]), np.asarray(crashes["PERSONS"]), 7)
