"""What ``suffice plan`` says of one unit over the windows of a year."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError
from suffice.pipeline.spec.person import epsilon_for_a_year, windows_in_a_year
from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon, parse_epsilon

if TYPE_CHECKING:
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.domains import Every


@dataclass(frozen=True, slots=True, kw_only=True)
class YearOfPerson:
    """What one unit loses in twelve months of a series, and which epsilon would keep it to a number.

    Attributes
    ----------
    every : Every
    in_a_window : Fraction, nats
        With every amendment of the calendar, and the count before the first release.
    max_windows : int or None
        In how many windows of twelve months a unit has rows, as somebody assumes.
    per_year, epsilon : Fraction or None, nats
        What a unit may lose in twelve months, and the epsilon of a release for it, where that is asked.
    """

    every: Every
    in_a_window: Fraction
    max_windows: int | None
    per_year: Fraction | None
    epsilon: Fraction | None

    @property
    def windows(self) -> int:
        """In how many windows of twelve months a unit is taken to have rows."""
        return self.max_windows or windows_in_a_year(self.every)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``suffice plan --json`` prints."""
        return {
            "in_a_window": format_epsilon(self.in_a_window),
            "in_a_year": format_epsilon(self.in_a_window * self.windows),
            "windows_in_a_year": windows_in_a_year(self.every),
            "max_windows": self.max_windows,
            "per_year": None if self.per_year is None else format_epsilon(self.per_year),
            "epsilon": None if self.epsilon is None else format_epsilon(self.epsilon),
        }

    def __str__(self) -> str:
        year = format_epsilon(self.in_a_window * self.windows)
        window = f"{format_epsilon(self.in_a_window)} in a window, with all that the calendar charges"
        lines = [f"one unit: {window}; {year} in twelve months with rows in {self.windows} windows"]
        if self.epsilon is not None and self.per_year is not None:
            lines.append(
                f"epsilon {format_epsilon(self.epsilon)} for each release leaves it at most "
                f"{format_epsilon(self.per_year)} in twelve months"
            )
        if self.max_windows is not None:
            lines.append(
                f"assumed, and enforced by nothing: no unit has rows in over {self.max_windows} windows of "
                "twelve months"
            )
        return "\n".join(lines)


def year_of(spec: Spec, plan: Plan, per_year: str | None, max_windows: int | None) -> YearOfPerson | None:
    """Return what a plan says of a year; None of a spec without windows.

    Raises
    ------
    UsageError
        Where it is asked of a spec without windows, or nothing is left for a release.
    """
    if spec.window is None:
        if per_year is not None or max_windows is not None:
            message = "--per-year and --max-windows: the spec has no windows, so its one release is all"
            raise UsageError(message)
        return None
    if max_windows is not None and per_year is None:
        message = "--max-windows is of use with --per-year alone: give that too"
        raise UsageError(message)
    before = spec.expect.epsilon if spec.expect else Fraction(0)
    asked = epsilon = None
    if per_year is not None:
        try:
            asked = parse_epsilon(per_year)
        except ValueError as error:
            message = f"--per-year: {error}"
            raise UsageError(message) from None
        n = 1 + len(plan.amend)
        epsilon = epsilon_for_a_year(asked, spec.window.every, max_windows=max_windows, before=before, n=n)
    return YearOfPerson(
        every=spec.window.every,
        in_a_window=plan.window_epsilon + before,
        max_windows=max_windows,
        per_year=asked,
        epsilon=epsilon,
    )
