"""What a dataset's releases spent over time: published releases, or all charges of an export."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.pages.charts import steps
from suffice.pipeline.declaration.exact_numbers import format_epsilon
from suffice.pipeline.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup


_HEIGHT_OF_WIDE = 150
_MOST_NAMED = 20
"""Releases that a note names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """One charge, as the public may know it.

    Attributes
    ----------
    hour : str
        ``2026-01-31T08Z``.
    what : str
        Name and edition of the release, or what is known of a charge without one.
    epsilon : Fraction
    state : str
    granted : Fraction or None
        All that was granted by then; None where it is not known.
    release_id : str or None
        Of the release that it is for.
    """

    hour: str
    what: str
    epsilon: Fraction
    state: str
    granted: Fraction | None = None
    release_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What was charged to a dataset.

    Attributes
    ----------
    guarantee : str
        Who is protected, as a sentence.
    charges : tuple of Charged
        In order of time.
    per_window : str or None
        The window grid where the grant holds for each window by itself.
    complete : bool
        Whether a ledger's export lists every charge, and not the published releases alone.
    uncounted : tuple of str
        Published releases that the export does not list: it is older than they are, or of another ledger.
    export_is_of_others : bool
        Whether there is an export, and it knows nothing of this dataset.
    """

    guarantee: str
    charges: tuple[Charged, ...]
    per_window: str | None = None
    complete: bool = False
    uncounted: tuple[str, ...] = ()
    export_is_of_others: bool = False
    rows: list[dict[str, Any]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        total, rows = Fraction(0), []
        for charge in self.charges:
            total += charge.epsilon
            rows.append(
                {
                    "hour": charge.hour,
                    "release": charge.what,
                    "state": charge.state,
                    "epsilon": format_epsilon(charge.epsilon),
                    "in all": format_epsilon(total),
                }
            )
        object.__setattr__(self, "rows", rows)

    @property
    def total(self) -> Fraction:
        """Epsilon of all charges together."""
        return sum((charge.epsilon for charge in self.charges), Fraction(0))

    @property
    def sentence(self) -> str:
        """What was spent, in words."""
        what = "charge" if self.complete else "published release"
        spent = f"Epsilon {format_epsilon(self.total)} in {counted(len(self.charges), what)}"
        granted = self.charges[-1].granted if self.charges else None
        if granted is not None and self.per_window is not None:
            spent += f"; granted are {format_epsilon(granted)} for each window by itself"
        elif granted is not None:
            spent += f", of {format_epsilon(granted)} granted"
        if self.uncounted:
            spent += f". Not counted: {counted(len(self.uncounted), 'release')} that the export does not list"
        return f"{spent}."

    @property
    def caption(self) -> str:
        """What the picture shows."""
        if self.complete:
            charges = "charges that the ledger's public export lists" if self.uncounted else "all charges"
            by = "" if self.uncounted else ", by the ledger's public export"
            dashed = "; dashed: what was granted" if self._limits() else ""
            return f"Epsilon of {charges} over time{by}{dashed}."
        why = (
            "the ledger's export that this page was made with knows nothing of this dataset."
            if self.export_is_of_others
            else "a ledger's export would show it."
        )
        return (
            "Epsilon of published releases over time. What was charged and never published is not in it: "
            f"{why}"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What has to be said beside the picture."""
        notes = []
        if self.uncounted:
            shown = ", ".join(self.uncounted[:_MOST_NAMED])
            more = len(self.uncounted) - _MOST_NAMED
            notes.append(
                f"Published, but not in the ledger's export that this page was made with: {shown}"
                + (f" and {more} more" if more > 0 else "")
                + ". The export is older than they are, or of another ledger: the sum lacks what they spent."
            )
        if self.per_window is not None:
            notes.append(
                f"The grant holds for each window of {self.per_window} by itself. Their rows are disjoint: "
                "what one record can lose is bounded by the grant of its window, not by the sum shown here."
            )
        return tuple(notes)

    def _limits(self) -> tuple[Fraction, ...]:
        granted = [charge.granted for charge in self.charges]
        if self.per_window is not None or None in granted:
            return ()
        return tuple(limit for limit in granted if limit is not None)

    def chart(self, name: str, height: int) -> Markup:
        """Return the picture."""
        hours = [_hour(charge) for charge in self.charges]
        span = (hours[-1] - hours[0]).total_seconds() if hours else 0.0
        times = [
            0.03 + 0.9 * ((hour - hours[0]).total_seconds() / span if span else place / len(hours))
            for place, hour in enumerate(hours)
        ]
        totals, total = [], Fraction(0)
        for charge in self.charges:
            total += charge.epsilon
            totals.append(float(total))
        ends = (f"{hours[0]:%Y-%m-%d}", f"{hours[-1]:%Y-%m-%d}") if hours else ("", "")
        if hours and not span:
            ends = (f"in order, all within an hour of {ends[0]}", "")
        return steps(
            times,
            totals,
            labels=ends,
            title=f"Epsilon charged to {name} over time",
            description=f"{self.sentence} The axis: {ends[0]} {ends[1]}",
            limits=[float(limit) for limit in self._limits()],
            height=height,
            is_wide=height > _HEIGHT_OF_WIDE,
        )


def _hour(charge: Charged) -> dt.datetime:
    return dt.datetime.strptime(charge.hour, "%Y-%m-%dT%HZ").replace(tzinfo=dt.UTC)


def budget_chart(budget: Budget, name: str, height: int) -> Markup:
    """Return the picture of what a dataset spent."""
    return budget.chart(name, height)


def guarantee(neighboring: str, unit: str, max_rows: Sequence[int]) -> str:
    """Return in a sentence what is protected."""
    what = "row" if unit == "row" else f"{unit.removeprefix('column:')}"
    most = f" (at most {max(max_rows)} rows of each)" if max_rows else ""
    how = "adding or removing" if neighboring == "add_or_remove_one" else "replacing"
    return f"Protects every {what}{most}: the guarantee is about {how} one."
