"""What one unit loses over many windows: exact sums over the calendar, in epsilon or in rho.

With s(w) what was charged in window w, amendments and all series included, and s(all) what was charged for no
window, a unit with rows in a set W of windows loses at most the sum of s(w) over W, and s(all).

Proof in `sensitivity.md`: units-over-windows.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from suffice.errors import UsageError
from suffice.pipeline.spec.terms import ROW
from suffice.pipeline.terms.declaration.delta import shown_epsilons
from suffice.pipeline.terms.declaration.documents import printed
from suffice.pipeline.terms.declaration.domains import Every, is_period, period_end, period_start
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss

_MONTHS = 12
_IN_TWELVE_MONTHS = {Every.DAY: 366, Every.WEEK: 54, Every.MONTH: 12, Every.YEAR: 2}
"""Most windows that share a day with twelve consecutive months: 366 days touch up to 54 weeks."""


@printed("without_window=of_all in_a_window in_a_year in_every_window")
@dataclass(frozen=True, slots=True, kw_only=True)
class PersonLoss:
    """What one unit of an account loses, by the windows that it has rows in.

    Windows of different grids are told apart: a row lies in one window of each grid.

    Attributes
    ----------
    of_all : Fraction
        What was charged for no window: everybody loses it.
    windows : mapping of str to mapping of str to Fraction
        By grid, what was charged in each window.
    """

    of_all: Fraction = Fraction(0)
    windows: Mapping[str, Mapping[str, Fraction]] = field(default_factory=dict)

    @property
    def in_a_window(self) -> Fraction:
        """The most that a unit with rows in one window loses."""
        return self.in_windows(1)

    # proof: units-over-windows
    def in_windows(self, number: int) -> Fraction:
        """Return the most that a unit with rows in so many windows loses: the largest sums, of each grid."""
        return self.of_all + sum(
            (
                sum(sorted(grid.values(), reverse=True)[:number], Fraction(0))
                for grid in self.windows.values()
            ),
            Fraction(0),
        )

    # proof: units-over-windows
    def of_rows(self, rows: int, windows: int | None = None, *, measure: PrivacyMeasure) -> Fraction:
        """Return the most that so many rows lose where the unit is a row: each row loses for itself.

        Of rows in so many windows, one is in each of the windows that cost most, and all others in the first.
        Rows of one window add up in epsilon; in rho it is the square of their number that counts.

        Raises
        ------
        UsageError
            Where there are fewer rows than windows.
        """
        windows = 1 if windows is None else windows
        if not 1 <= windows <= rows:
            message = f"{rows} rows lie in 1 to {rows} windows, not in {windows}"
            raise UsageError(message)
        power = 1 if measure is PrivacyMeasure.EPSILON else 2
        together = rows - windows + 1
        first, each = (self.in_windows(number) - self.of_all for number in (1, windows))
        more: int = together**power - 1
        return int(rows**power) * self.of_all + each + more * first

    @property
    def in_a_year(self) -> Fraction:
        """The most that a unit loses by rows in any twelve consecutive calendar months."""
        changes: defaultdict[int, Fraction] = defaultdict(Fraction)
        for grid in self.windows.values():
            for label, loss in grid.items():
                first, last = months_of(label)
                # it shares a day with the twelve months from `a` on where first - 11 <= a <= last
                changes[first - _MONTHS + 1] += loss
                changes[last + 1] -= loss
        held = most = Fraction(0)
        for month in sorted(changes):
            held += changes[month]
            most = max(most, held)
        return self.of_all + most

    @property
    def in_every_window(self) -> Fraction:
        """The most that any unit loses: with rows in every window that was charged."""
        return self.in_windows(max(map(len, self.windows.values()), default=0))


def months_of(label: str) -> tuple[int, int]:
    """Return the first and the last month of a window, counted from year 0."""
    every = every_of(label)
    start = period_start(label, every)
    last = type(start).fromordinal(period_end(start, every) - 1)
    return _MONTHS * start.year + start.month, _MONTHS * last.year + last.month


def every_of(label: str) -> Every:
    """Return the period that a canonical label is of: no two have the same form."""
    return next(every for every in Every if is_period(label, every))


def windows_in_a_year(every: Every) -> int:
    """Return the most windows that share a day with twelve consecutive calendar months."""
    return _IN_TWELVE_MONTHS[every]


def loss_of(held: Iterable[tuple[str | None, str, Fraction]]) -> PersonLoss:
    """Return what one unit loses of what an account holds.

    Parameters
    ----------
    held : iterable of (str or None, str, Fraction)
        The grid of a charge, its window, and what it holds, all in one measure; the grid is None where the
        window is ``all``.
    """
    of_all = Fraction(0)
    windows: defaultdict[str, defaultdict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for grid, window, amount in held:
        if grid is None:
            of_all += amount
        else:
            windows[grid][window] += amount
    return PersonLoss(of_all=of_all, windows=windows)


def loss_for_a_year(
    per_year: PrivacyLoss,
    every: Every,
    *,
    max_windows: int | None = None,
    before: PrivacyLoss | None = None,
    n: int = 1,
) -> PrivacyLoss:
    """Return the largest loss of a release with which a unit loses at most so much in twelve months.

    Parameters
    ----------
    per_year : PrivacyLoss
        What a unit may lose in twelve consecutive calendar months.
    every : Every
        The period of the windows.
    max_windows : int, optional
        In how many of them a unit has rows, as an officer assumes; in all of them otherwise.
    before : PrivacyLoss, optional
        What each window is charged besides, whatever the loss of a release is; of the same measure.
    n : int
        Releases of a window: the first, and amendments.

    Raises
    ------
    UsageError
        Where nothing is left, or no unit has rows in so many windows of a year.
    """
    most = windows_in_a_year(every)
    if max_windows is not None and not 1 <= max_windows <= most:
        message = f"twelve months have 1 to {most} windows of a {every}, not {max_windows}"
        raise UsageError(message)
    measure, windows = per_year.measure, max_windows or most
    besides = Fraction(0) if before is None else before.amount
    count = int((per_year.amount / windows - besides) / n * measure.parts)  # rounded down
    if count < 1:
        least = measure.loss(1)
        message = f"less than {least.text} would be left for a release in each of {windows} windows"
        raise UsageError(message)
    return measure.loss(count)


def of_release(loss: PrivacyLoss, every: Every | None, unit: str, amendment: int = 0) -> str:
    """Say what one unit loses by a release, and by its series in a year, from what a manifest states.

    Parameters
    ----------
    loss : PrivacyLoss
        Of the release.
    every : Every or None
        The period of its windows; None where it has none.
    unit : str
        As accounts name it.
    amendment : int
        Its number; earlier editions of the window were charged as much.

    Examples
    --------
    >>> from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    >>> print(of_release(PrivacyLoss.of_epsilon(Fraction(1)), Every.YEAR, "column:id"))
    one unit: epsilon 1 in a window; other charges of the account add to it
    """
    parts = []
    if every is None:
        parts.append(f"one unit: {loss}")
    else:
        window = loss * (1 + amendment)
        amended = f" with its {1 + amendment} editions" if amendment else ""
        parts.append(f"one unit: {window} in a window{amended}")
        if every is not Every.YEAR:
            year = window * windows_in_a_year(every)
            epsilons = "" if year.rho is None else f", (epsilon, delta) at most {shown_epsilons(year.rho)}"
            parts.append(f"{year.text} in a year of {every}s, with rows in each{epsilons}")
    parts.append("other charges of the account add to it")
    if unit == ROW:
        times = "r" if loss.rho is None else "r^2"
        parts.append(f"a unit is one row: a person with r rows loses up to {times} times as much")
    return "; ".join(parts)
