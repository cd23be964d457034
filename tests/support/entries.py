"""Entries of specs, by what the family of each says itself: its column, its nulls, its unit."""

from __future__ import annotations

from typing import Any

from suffice.pipeline.families import FAMILIES


def fields_of(family: str) -> set[str]:
    """Return the keys that an entry of a family may have."""
    return set(FAMILIES[family].spec.model_fields)


def entry_of(family: str, keys: dict[str, Any]) -> dict[str, Any]:
    """Return the entry with these keys, over the column x where the family reads one and none is named."""
    column = {"column": "x"} if "column" in fields_of(family) else {}
    return {"family": family, **column, **keys}


def counting_nulls(entry: dict[str, Any], value: str = "0") -> dict[str, Any]:
    """Let nulls count as a number, wherever the entry may say so: every row then counts."""
    counted = {"nulls": {"value": value}} if "nulls" in fields_of(entry["family"]) else {}
    return {
        **{key: _bounded(part, value) if isinstance(part, dict) else part for key, part in entry.items()},
        **counted,
    }


def _bounded(columns: dict[str, Any], value: str) -> dict[str, Any]:
    """Let nulls of every bounded column of several count as a number."""
    return {
        name: {**column, "nulls": {"value": value}}
        if isinstance(column, dict) and "lower" in column
        else column
        for name, column in columns.items()
    }


def privacy_of(family: str, *, epsilon: str, public_n: bool, rho: str | None = None) -> dict[str, Any]:
    """Return the privacy of a spec with one statistic of a family, with a unit where it needs one.

    Where `rho` is stated, it stands in place of epsilon.
    """
    return {
        **({"epsilon": epsilon} if rho is None else {"rho": rho}),
        "neighboring": "replace_one" if public_n else "add_or_remove_one",
        "unit": {"column": "who", "max_rows": "1"} if FAMILIES[family].needs_unit else "row",
    }
