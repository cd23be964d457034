"""Which windows of a spec are published, missing or overdue: from calendar, ledger and store alone.

The source is never opened: whether a window has rows is private, and a monitor asks often.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypedDict

from suffice.errors import SpecError
from suffice.pipeline.spec.spec import AnySpec, Spec, load_spec
from suffice.pipeline.spec.windows_and_amendments import (
    ALL,
    amendment_due,
    last_ended,
    latest_complete,
    moment,
    resolve_window,
    window_times,
    windows_between,
)
from suffice.pipeline.terms.declaration.documents import Count, CountOrNone, Exact, Instant, one_of, printed
from suffice.pipeline.terms.declaration.priced import SUFFIX
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.profile.settings import settings
from suffice.releasing.expectation import prices, stopped_windows
from suffice.releasing.row_counts import Rows, compared_windows
from suffice.storage.ledger.charge import ChargeState, newest_published
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.releases.release_store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from suffice.pipeline.spec.windows_and_amendments import Window
    from suffice.storage.ledger.charge import ChargeSummary
    from suffice.storage.ledger.ledger import Ledger


class WindowState(StrEnum):
    """``published``; ``missing``: it has ended, and its lag has not; ``overdue``: both have.

    ``stopped``: it holds fewer rows or units than the spec expects, by the count that was paid for;
    ``withdrawn``: published, and of its editions the newest was withdrawn, so that readers are refused;
    ``not_in_store``: the ledger says that it is published, and the store has no such release.
    """

    PUBLISHED = "published"
    MISSING = "missing"
    OVERDUE = "overdue"
    STOPPED = "stopped"
    WITHDRAWN = "withdrawn"
    NOT_IN_STORE = "not_in_store"


GAPS = frozenset([WindowState.MISSING, WindowState.OVERDUE, WindowState.STOPPED])
"""States of windows that are still to be released."""
ALARMING = frozenset([WindowState.OVERDUE, WindowState.STOPPED, WindowState.NOT_IN_STORE])
"""States that somebody should look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowStatus:
    """One window that has ended.

    Attributes
    ----------
    window : str
    state : WindowState
    ends, complete : datetime, UTC
        When it ended, and when its lag ended or ends.
    charge : str or None
        The state of its first release's newest charge, ``spent`` where that drew and ended without a release;
        None where it was never charged.
    amendment : int
        The number of the newest amendment that is published; 0 where none is.
    rows : Rows or None
        How its released number of rows compares with its neighbours': ``few``, ``many`` or ``alike``. None
        where it is not published, not among the newest, releases no such number, or has too few neighbours.
    """

    window: str
    state: WindowState
    ends: Instant
    complete: Instant
    charge: str | None
    amendment: Count
    rows: Rows | None = None


class AmendmentState(StrEnum):
    """``due``: its time has come; ``overdue``: so long ago as the lag of the spec's windows."""

    DUE = "due"
    OVERDUE = "overdue"


@dataclass(frozen=True, slots=True, kw_only=True)
class AmendmentStatus:
    """An amendment that is still to be released, of a window that is published.

    Attributes
    ----------
    window : str
    amendment : int
        Its number in the spec's calendar: the last that has fallen due.
    state : AmendmentState
    due : datetime, UTC
    charge : str or None
        As for :class:`WindowStatus`.
    """

    window: str
    amendment: Count
    state: AmendmentState
    due: Instant
    charge: str | None


class InEpsilon(TypedDict):
    """What a release costs an account in epsilon, its count before it, and what is left."""

    epsilon: Exact
    expect_epsilon: Exact | None
    remaining_epsilon: Exact


class InRho(TypedDict):
    """The same, of an account in rho."""

    rho: Exact
    expect_rho: Exact | None
    remaining_rho: Exact


@printed("name dataset as_of first_from ok windows amendments *in_epsilon *in_rho per_window covered further")
@dataclass(frozen=True, slots=True, kw_only=True)
class GapReport:
    """The windows of a spec from the first that is expected to the last that has ended.

    Attributes
    ----------
    name, dataset : str
    as_of : datetime, UTC
    first_from : str
        Where the first window is stated: ``parameter``, ``spec``, ``ledger`` (the earliest that was charged),
        or ``calendar`` (nothing was charged yet: the latest complete one).
    windows : tuple of WindowStatus
        Oldest first.
    amendments : tuple of AmendmentStatus
        Those that are due, by window.
    loss : PrivacyLoss
        What each release is charged, of a window for the first time or as an amendment; in the account's
        measure, as all losses here.
    expected : PrivacyLoss or None
        What the count before a window's first release is charged besides; None where nothing is expected. The
        budget is taken to cover a count for every release.
    remaining : PrivacyLoss
        What the account has left; of a grant per window, what a window that was never charged has.
    per_window : bool
        Whether the grant holds for each window.
    covered : int
        How many of the windows that are missing or overdue, and of the amendments that are due, the budget
        covers.
    further : int or None
        How many releases after those it covers; None: every one, as the grant holds for each window.
    """

    name: str
    dataset: str
    as_of: Instant
    first_from: Annotated[str, one_of("parameter", "spec", "ledger", "calendar")]
    windows: tuple[WindowStatus, ...]
    amendments: tuple[AmendmentStatus, ...]
    loss: PrivacyLoss
    expected: PrivacyLoss | None
    remaining: PrivacyLoss
    per_window: bool
    covered: Count
    further: CountOrNone

    @property
    def ok(self) -> bool:
        """Whether nothing is overdue or stopped, and no release gone from the store."""
        late = any(amendment.state is AmendmentState.OVERDUE for amendment in self.amendments)
        return not late and not any(window.state in ALARMING for window in self.windows)

    @property
    def in_epsilon(self) -> InEpsilon | None:
        """The losses of an account in epsilon, as documents name them."""
        if self.loss.epsilon is None:
            return None
        expected = None if self.expected is None else self.expected.text
        return {
            "epsilon": self.loss.text,
            "expect_epsilon": expected,
            "remaining_epsilon": self.remaining.text,
        }

    @property
    def in_rho(self) -> InRho | None:
        """The losses of an account in rho, as documents name them."""
        if self.loss.rho is None:
            return None
        expected = None if self.expected is None else self.expected.text
        return {"rho": self.loss.text, "expect_rho": expected, "remaining_rho": self.remaining.text}


def status(
    spec: AnySpec,
    first: str | None = None,
    *,
    store: str | os.PathLike[str] | None = None,
    ledger: str | None = None,
    as_of: str | datetime | None = None,
) -> GapReport:
    """Report which windows of a spec are published, missing or overdue, and what the budget still covers.

    Parameters
    ----------
    spec : Spec
        With windows.
    first : str, optional
        The label of the first window that is expected. Left out, the spec's ``first``; else the earliest that
        was ever charged; else the latest complete one.
    store, ledger : str, optional
        As for :func:`suffice.release`. The ledger is only read.
    as_of : str or datetime, optional
        The moment reported on, with its offset from UTC; now, where it is left out.

    Raises
    ------
    SpecError
        Where the spec has no windows, or `first` is none of them.
    AccountMissingError
        Where nothing was granted for the data set.
    StorageError
        The store or the ledger.
    """
    report, newest = gaps(spec, first, store=store, ledger=ledger, as_of=as_of)
    rows = compared_windows(newest)
    compared = tuple(replace(window, rows=rows.get(window.window)) for window in report.windows)
    return replace(report, windows=compared)


def gaps(
    spec: AnySpec,
    first: str | None = None,
    *,
    store: str | os.PathLike[str] | None = None,
    ledger: str | None = None,
    as_of: str | datetime | None = None,
) -> tuple[GapReport, dict[str, str]]:
    """Return the report without reading a release, and where each published window's newest one stands."""
    spec = load_spec(spec)
    if spec.window is None:
        raise SpecError("window", "the spec has no window key", "as window: {column: day, every: month}")
    chosen = settings(
        store=None if store is None else os.fspath(store), ledger=ledger, spec_path=spec.directory
    )
    instant = moment(as_of, datetime.now(UTC))
    if first is not None:
        first = resolve_window(spec, first, as_of=instant, allow_open=True, place="--from")
    with open_ledger(chosen.ledger, reading_only=True) as opened, opened.at_one_moment():
        account = opened.account(spec.dataset)
        charges = opened.editions(spec.dataset, spec.name)
        start, first_from = _first(spec.window, first, charges, instant)
        labels = _labels(spec, start, instant)
        standing: Mapping[tuple[str, str], bool] = {}
        if any(newest_published(charges.get(label, ())) for label in labels):
            standing = open_store(chosen.store).standing(spec.name)
        windows = _with_stopped(
            spec,
            opened,
            chosen.store,
            tuple(
                _window_status(spec.window, label, charges.get(label, ()), standing, instant)
                for label in labels
            ),
        )
        amendments = tuple(
            amendment
            for label in labels
            for amendment in _amendment_status(spec.window, label, charges.get(label, ()), instant)
        )
        gaps = [window.window for window in windows if window.state in GAPS]
        gaps += [amendment.window for amendment in amendments]
        loss, expected = prices(spec, account.measure)
        price = (loss if expected is None else loss + expected).amount
        further: int | None
        if account.per_window is None:
            affordable = account.remaining // price
            covered = min(affordable, len(gaps))
            remaining, further = account.remaining, affordable - covered
        else:
            remaining = account.granted - account.spent - account.reserved
            covered = sum(opened.remaining(spec.dataset, window) >= price for window in gaps)
            further = None if remaining >= price else 0
    report = GapReport(
        name=spec.name,
        dataset=spec.dataset,
        as_of=instant,
        first_from=first_from,
        windows=windows,
        amendments=amendments,
        loss=loss,
        expected=expected,
        remaining=PrivacyLoss(account.measure, remaining),
        per_window=account.per_window is not None,
        covered=covered,
        further=further,
    )
    return report, _newest_releases(chosen.store, spec.name, windows, charges)


def _first(window: Window, first: str | None, charged: Iterable[str], as_of: datetime) -> tuple[str, str]:
    """Return the first window that is expected, and where that is stated."""
    if first is not None:
        return first, "parameter"
    if window.first is not None:
        return window.first, "spec"
    labels = (label for label in charged if label != ALL)  # it was released before it had windows
    if earliest := min(labels, default=None):  # labels of one grid are in the order of time
        return earliest, "ledger"
    return latest_complete(window, as_of), "calendar"


def _labels(spec: Spec, first: str, as_of: datetime) -> tuple[str, ...]:
    """Return the windows from the first to the last that has ended; none where the first has not."""
    if spec.window is None or window_times(spec.window, first).ends > as_of:
        return ()
    return windows_between(spec, first, last_ended(spec.window, as_of), as_of=as_of)


def _window_status(
    window: Window,
    label: str,
    editions: Sequence[ChargeSummary],
    standing: Mapping[tuple[str, str], bool],
    as_of: datetime,
) -> WindowStatus:
    times = window_times(window, label)
    published = [charge for charge in editions if charge.state is ChargeState.PUBLISHED]
    if published:
        newest = max(published, key=lambda charge: charge.amendment)
        if not all((charge.edition, charge.release_id) in standing for charge in published):
            state = WindowState.NOT_IN_STORE
        elif standing[newest.edition, newest.release_id]:
            state = WindowState.WITHDRAWN
        else:
            state = WindowState.PUBLISHED
    else:
        state = WindowState.OVERDUE if times.complete <= as_of else WindowState.MISSING
    return WindowStatus(
        window=label,
        state=state,
        ends=times.ends,
        complete=times.complete,
        charge=_stands(editions, 0),
        amendment=max((charge.amendment for charge in published), default=0),
    )


def _newest_releases(
    store: str, name: str, windows: Sequence[WindowStatus], charges: Mapping[str, Sequence[ChargeSummary]]
) -> dict[str, str]:
    """Return where each published window's newest edition stands."""
    published = [window.window for window in windows if window.state is WindowState.PUBLISHED]
    if not published:
        return {}
    opened = open_store(store)
    newest = {label: newest_published(charges[label]) for label in published}
    return {
        label: opened.release_uri(name, charge.edition, charge.release_id)
        for label, charge in newest.items()
        if charge is not None
    }


def _with_stopped(
    spec: Spec, ledger: Ledger, store: str, windows: tuple[WindowStatus, ...]
) -> tuple[WindowStatus, ...]:
    """Tell windows whose count is below what is expected from those that nobody came to."""
    gaps = [window.window for window in windows if window.state in GAPS]
    if spec.expect is None or not gaps or not ledger.editions(spec.dataset, spec.name + SUFFIX):
        return windows
    stopped = stopped_windows(spec, ledger, open_store(store), gaps)
    return tuple(
        replace(window, state=WindowState.STOPPED) if window.window in stopped else window
        for window in windows
    )


def _amendment_status(
    window: Window, label: str, editions: Sequence[ChargeSummary], as_of: datetime
) -> tuple[AmendmentStatus, ...]:
    """Return the amendment of a window that is due, if one is."""
    times, newest = window_times(window, label), newest_published(editions)
    number = 0
    if newest is not None:
        number = amendment_due(times, as_of, newest=newest.amendment, charged=newest.created)
    if not number:
        return ()
    due = times.amendments[number - 1]
    late = as_of - due >= times.complete - times.ends
    return (
        AmendmentStatus(
            window=label,
            amendment=number,
            state=AmendmentState.OVERDUE if late else AmendmentState.DUE,
            due=due,
            charge=_stands(editions, number),
        ),
    )


def _stands(editions: Sequence[ChargeSummary], amendment: int) -> str | None:
    """Say how the newest charge of an edition stands; None where it was never charged."""
    charge = next((summary for summary in editions if summary.amendment == amendment), None)
    if charge is None:
        return None
    is_spent = charge.state is ChargeState.ABANDONED and charge.counts_as == "spent"
    return "spent" if is_spent else str(charge.state)
