"""Cells of an adopted release that are pooled: which rows they are, what may be pooled, and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.ask.pooling.published_number import Published

CELLS = ("vary", "alike")
"""What pooled cells do: vary about a mean rate, or share it."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Which rows are pooled, the keys of those that are, and whether they vary or share a parameter."""

    groups: dict[str, list[str | int]]
    rows: tuple[tuple[int, ...], ...]
    over: tuple[str, ...]
    vary: bool

    @classmethod
    def of(cls, statistic: Any, rows: Sequence[int], over: tuple[str, ...], how: str) -> Cells:
        """Group rows by the keys that are not pooled over."""
        columns = statistic.release.columns
        category = getattr(statistic.entry, "category", None)
        kept = [key for key in statistic.release.key_columns if key not in {*over, category}]
        shared: dict[tuple[str, ...], list[int]] = {}
        for row in rows:
            shared.setdefault(tuple(str(columns[key][row]) for key in kept), []).append(row)
        groups: dict[str, list[str | int]] = {
            column: [key[place] for key in shared] for place, column in enumerate(kept)
        }
        return cls(groups, tuple(map(tuple, shared.values())), over, how == "vary")

    def published(self, statistic: Any, column: str) -> list[list[Published]]:
        """Return what was published in every cell."""
        return [statistic.published(column, rows) for rows in self.rows]

    def public(self, statistic: Any, column: str) -> list[list[float]]:
        """Return the numbers of a public column."""
        texts = statistic.release.columns[column]
        return [[float(str(texts[row])) for row in rows] for rows in self.rows]


def check_pooled(statistic: Any, over: tuple[str, ...]) -> None:
    """Refuse keys that the release does not have, and pools of categories."""
    keys = statistic.release.key_columns
    unknown = [key for key in over if key not in keys]
    if unknown:
        message = f"{unknown[0]!r} is no key to pool over: the keys are {', '.join(keys) or 'none'}"
        raise UsageError(message)
    if over and statistic.family == "categorical":
        message = (
            f"{statistic.name} is categorical: cells are pooled where they share a rate or a probability: "
            "declare its columns as poisson or bernoulli"
        )
        raise UsageError(message)


def how_cells_are(statistic: Any, over: tuple[str, ...], cells: str | None) -> str:
    """Return whether pooled cells vary or are alike; of rates they vary unless it is said otherwise."""
    if cells not in {None, *CELLS}:
        message = f"cells is {' or '.join(CELLS)}, not {cells!r}"
        raise UsageError(message)
    if cells is not None and not over:
        message = f"{statistic.name}: cells is of cells that are pooled: leave it out, or give pooled"
        raise UsageError(message)
    is_counted = statistic.family in {"count", "poisson"}
    if cells == "vary" and not is_counted:
        message = (
            f"{statistic.name} is {statistic.family}: only rates may vary over cells; pooled probabilities "
            "are alike"
        )
        raise UsageError(message)
    return (cells or "vary") if over and is_counted else "alike"


def pooled_in_words(cells: Cells, parameter: str) -> str:
    """Say over what is pooled, and what pooled cells are taken to share."""
    over, most = ", ".join(cells.over), max(map(len, cells.rows))
    if parameter == "total":
        how = "vary about a mean rate, by a spread that is estimated" if cells.vary else "share a rate"
        return f"pooled over {over}: the total of up to {most} cells, whose counts {how}; the prior is of it"
    if cells.vary:
        return (
            f"pooled over {over}: the mean {parameter} of up to {most} cells, which may vary about it; their "
            "spread is estimated"
        )
    return f"pooled over {over}: up to {most} cells are taken to share a {parameter}, and not to vary"
