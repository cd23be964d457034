"""Quantiles of a histogram's column, as several commands ask for and print them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from suffice.cli import output
from suffice.cli.output import say
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.documents import Measured, Rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.ask.pooling.comparison import ReleaseComparison
    from suffice.pipeline.math.engines.histogram.column_law import Estimate
    from suffice.pipeline.spec.about import About

QUANTILES = ("0.5", "0.9")
"""Where nothing is asked for."""
AtOption = Annotated[
    list[str] | None,
    typer.Option(
        "--at", metavar="Q", help="Quantiles of a histogram, as .5 or .25,.5,.75; default: .5,.9. May repeat."
    ),
]
_ENDS: dict[str, Any] = {"lower": Measured, "upper": Measured, "is_refused": bool}
QuantileRows: TypeAlias = Annotated[list[dict[str, Any]], Rows(quantity=str, median=Measured, **_ENDS)]
ChangedQuantiles: TypeAlias = Annotated[
    list[dict[str, Any]],
    Rows(quantity=str, **dict.fromkeys(("before", "after", "change"), Measured), **_ENDS),
]


def levels_of(levels: list[float], family: str) -> list[float]:
    """Return which quantiles to print of a statistic: of a histogram those asked for, of others none.

    Raises
    ------
    UsageError
        Where quantiles of another family were asked for.
    """
    if family == "histogram":
        return levels or quantiles_of(list(QUANTILES))
    if levels:
        message = f"--at is of histograms, and this statistic is {family}: leave it out"
        raise UsageError(message)
    return []


def quantiles_of(texts: list[str] | None) -> list[float]:
    """Return the quantiles of ``--at``, each above 0 and below 1.

    Raises
    ------
    UsageError
    """
    levels = numbers_of("--at", texts)
    for level in levels:
        if not 0.0 < level < 1.0:
            message = f"--at {level:g}: a quantile is above 0 and below 1, as in --at .9"
            raise UsageError(message)
    return levels


def numbers_of(option: str, texts: list[str] | None) -> list[float]:
    """Return the numbers of an option that may repeat, or have commas between them.

    Raises
    ------
    UsageError
    """
    numbers = []
    for text in ",".join(texts or []).split(",") if texts else []:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            message = f"{option} {text!r} is no number: write it as {option} .9, or {option} .5,.9"
            raise UsageError(message)
        numbers.append(number)
    return numbers


def estimate_rows(
    groups: Mapping[str, Sequence[str | int]], asked: Sequence[tuple[str, Estimate]]
) -> list[dict[str, Any]]:
    """Return a row for each cell and quantity; nothing in place of a refused estimate."""
    return [
        {
            **cell,
            "quantity": name,
            "median": _kept(of, number),
            "lower": float(of.lower[number]),
            "upper": float(of.upper[number]),
            "is_refused": bool(of.refused[number]),
        }
        for number, cell in enumerate(_cells(groups))
        for name, of in asked
    ]


def change_rows(
    comparison: ReleaseComparison, levels: Sequence[float], *, mass: float, draws: int, rng: int | None
) -> list[dict[str, Any]]:
    """Return a row for each cell and quantile: its medians before and after, and by how much it rose."""
    change = comparison.column(draws=draws, rng=rng)
    asked = [
        (q, change.before.quantile(q, mass), change.after.quantile(q, mass), change.quantile(q, mass))
        for q in levels
    ]
    return [
        {
            **cell,
            "quantity": f"quantile {q:g}",
            "before": _kept(before, number),
            "after": _kept(after, number),
            "change": _kept(of, number),
            "lower": float(of.lower[number]),
            "upper": float(of.upper[number]),
            "is_refused": bool(of.refused[number]),
        }
        for number, cell in enumerate(_cells(comparison.before.groups))
        for q, before, after, of in asked
    ]


def _kept(of: Estimate, number: int) -> float | None:
    return None if of.refused[number] else float(of.median[number])


def _cells(groups: Mapping[str, Sequence[str | int]]) -> list[dict[str, str | int]]:
    return [dict(zip(groups, key, strict=True)) for key in zip(*groups.values(), strict=True)] or [{}]


def print_quantiles(
    rows: Sequence[Mapping[str, Any]],
    groups: Mapping[str, Sequence[object]],
    about: About,
    statistic: str,
    mass: float,
) -> None:
    """Print quantiles in place of the shares of bins, and what intervals hold."""
    shown = [{name: value for name, value in row.items() if name != "is_refused"} for row in rows]
    output.print_cells(shown, groups, about, statistic)
    if any(row["is_refused"] for row in rows):
        say("\nleft out: what an interval that spans half of what it can be says nothing of")
    say(f"\nof the law that rows come from; intervals hold {100 * mass:g} % or more: bins have widths")
    say("the share of every bin: --json")
