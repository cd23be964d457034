"""The releases of many windows, oldest first: one charge each, until they are done or the budget is."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated

from suffice import errors
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import AnySpec, Spec, load_spec, require_source
from suffice.pipeline.spec.windows_and_amendments import (
    LATEST_COMPLETE,
    amendment_due,
    edition,
    moment,
    window_times,
    windows_between,
)
from suffice.pipeline.terms.declaration.documents import Count, one_of, printed
from suffice.pipeline.terms.declaration.wording import counted
from suffice.profile.settings import settings
from suffice.releasing.expectation import prices
from suffice.releasing.release import PUBLISH_TIMEOUT, carry_out
from suffice.releasing.run import ALREADY_PUBLISHED, PUBLISHED
from suffice.storage.ledger.account import check_measure
from suffice.storage.ledger.charge import ChargeState, newest_published
from suffice.storage.ledger.opening import open_ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.cluster.addresses import AnyCluster
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    from suffice.releasing.release import Outcome
    from suffice.storage.ledger.charge import Charge
    from suffice.storage.ledger.ledger import Ledger

    Progress = Callable[[int, int], None]
    Notice = Callable[[str], None]
    Work = Callable[[], Outcome]

FAILED = "failed"
LEFT = "left"
STOPPED = "stopped"
_DONE = frozenset({PUBLISHED, ALREADY_PUBLISHED})


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfilledWindow:
    """What became of one window's first release, or of its amendment.

    Attributes
    ----------
    window : str
    amendment : int
        0 for the first release.
    status : str
        ``published`` now, ``already_published`` before, ``stopped``: it holds fewer rows or units than the
        spec expects, ``failed``: its run ended without a release, or ``left``: the backfill did not come to
        it.
    uri : str or None
        Where its release stands, of one whose run came to its end now.
    """

    window: str
    amendment: Count
    status: Annotated[str, one_of(PUBLISHED, ALREADY_PUBLISHED, STOPPED, FAILED, LEFT)]
    uri: str | None = None

    @property
    def edition(self) -> str:
        """The window, with the number of an amendment."""
        return edition(self.window, self.amendment)


@printed(
    "windows epsilon?=loss.epsilon rho?=loss.rho stopped=stopped_because refusal needed_grant=needed "
    "error=failure"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """What became of every window.

    Attributes
    ----------
    windows : tuple of BackfilledWindow
        In the order in which they were due, oldest first.
    loss : PrivacyLoss
        What each release is charged, in the account's measure; what is counted before it is charged besides.
    stopped : ExpectationNotMetError or None
        Why the last window that is stopped is; None where none is.
    refusal : str or None
        Why the account refused the first window that is left; None where none is.
    needed : Fraction or None
        The total that a grant has to state for all windows that are left; None where none was refused, or
        nothing is left of a dry run.
    granted : Fraction or None
        The total that was granted, of a dry run.
    failure : SufficeError or None
        What else ended it, an interrupt too, at the window before those that are left.
    """

    windows: tuple[BackfilledWindow, ...]
    loss: PrivacyLoss
    stopped: errors.ExpectationNotMetError | None
    refusal: str | None
    needed: Fraction | None
    failure: errors.SufficeError | None
    granted: Fraction | None = None

    @property
    def stopped_because(self) -> str | None:
        """Why the last window that is stopped is, in words."""
        return None if self.stopped is None else str(self.stopped)

    def named(self, status: str) -> tuple[str, ...]:
        """Return the editions with a status."""
        return tuple(window.edition for window in self.windows if window.status == status)


def backfill(
    spec: AnySpec,
    first: str,
    last: str = LATEST_COMPLETE,
    *,
    store: str | os.PathLike[str] | None = None,
    ledger: str | None = None,
    cluster: AnyCluster | None = None,
    as_of: str | datetime | None = None,
    by_calendar: bool = False,
    allow_open: bool = False,
    publish_timeout: float = PUBLISH_TIMEOUT,
    wait: bool = False,
    witness: str | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
    notice: Notice | None = None,
) -> Backfill:
    """Release every window from `first` to `last`, and amendments that are due, oldest first.

    Each is a charge of its own. Of a window that is published, the last amendment of the spec's calendar that
    has fallen due is released too, unless what is published was read after that.

    A window that is published is skipped: the ledger says so, and the source is not opened for it. Where the
    account refuses a window for lack of epsilon, the backfill ends, and says what it would take to go on. A
    window whose epsilon is spent, or whose rows cannot be read, is left: the others are released, and the
    error of the first such window is raised at the end. A window with fewer rows or units than the spec
    expects is stopped, and the backfill goes on with the next.

    The same call again goes on where this one ended, however that was.

    Parameters
    ----------
    spec : Spec
        With windows.
    first, last : str
        Labels, both included; `last` may be ``latest-complete``.
    store, ledger, cluster, as_of, allow_open, publish_timeout, wait, witness, progress
        As for :func:`suffice.release`.
    by_calendar : bool
        Release the last amendment that is due at `as_of` also where the window was charged, and so read,
        after it fell due, as every window that is released now. It reads the same rows again for another
        charge: it rehearses a schedule on windows that are past.
    dry_run : bool
        Charge and read nothing: say which windows and amendments are left now.
    notice : callable, optional
        Called with a sentence about every window and every wait.

    Returns
    -------
    Backfill

    Raises
    ------
    SpecError
        Where the spec has no windows, or one of them has not ended; nothing was charged.
    ReleaseInterruptedError
        Saying what is published, and what became of the charge of the window at hand.
    SufficeError
        As :func:`suffice.release`; what was published before stays so.
    """
    loaded = load_spec(spec)
    if dry_run:
        return plan_backfill(
            loaded,
            first,
            last,
            ledger=ledger,
            as_of=as_of,
            by_calendar=by_calendar,
            allow_open=allow_open,
        )
    done = carry_out_backfill(
        loaded,
        first,
        last,
        store=None if store is None else os.fspath(store),
        ledger=ledger,
        cluster=cluster,
        as_of=as_of,
        by_calendar=by_calendar,
        allow_open=allow_open,
        publish_timeout=publish_timeout,
        wait=wait,
        witness=witness,
        progress=progress,
        notice=notice,
    )
    if done.failure is not None:
        raise done.failure
    return done


def plan_backfill(
    spec: Spec,
    first: str,
    last: str,
    *,
    ledger: str | None = None,
    as_of: str | datetime | None = None,
    by_calendar: bool = False,
    allow_open: bool = False,
) -> Backfill:
    """Say what :func:`backfill` would release, by the ledger alone; ``needed`` is of all that is left."""
    chosen = settings(ledger=ledger, spec_path=spec.directory)
    instant, plan = moment(as_of, datetime.now(UTC)), compile_plan(spec)
    labels = windows_between(spec, first, last, as_of=instant, allow_open=allow_open)
    with open_ledger(chosen.ledger, reading_only=True) as opened, opened.at_one_moment():
        account = opened.account(spec.dataset)
        loss = check_measure(plan, account.measure)
        releases = _expected(opened, spec, plan, labels, instant, by_calendar=by_calendar)
    return Backfill(
        granted=account.granted,
        windows=tuple(releases),
        loss=loss,
        stopped=None,
        refusal=None,
        needed=_needed(chosen.ledger, spec, releases),
        failure=None,
    )


def carry_out_backfill(
    spec: Spec,
    first: str,
    last: str,
    *,
    store: str | None = None,
    ledger: str | None = None,
    cluster: AnyCluster | None = None,
    as_of: str | datetime | None = None,
    by_calendar: bool = False,
    allow_open: bool = False,
    publish_timeout: float = PUBLISH_TIMEOUT,
    wait: bool = False,
    witness: str | None = None,
    progress: Progress | None = None,
    notice: Notice | None = None,
    attempt: Callable[[Work], Outcome] | None = None,
) -> Backfill:
    """Do what :func:`backfill` does, and say what was done also where a window's run failed.

    Parameters
    ----------
    attempt : callable, optional
        Called with the run of a window; calls it, more than once where it wants to.

    The others are those of :func:`backfill`.
    """
    require_source(spec)
    chosen = settings(store=store, ledger=ledger, cluster=cluster, witness=witness, spec_path=spec.directory)
    instant = moment(as_of, datetime.now(UTC))
    labels = windows_between(spec, first, last, as_of=instant, allow_open=allow_open)
    plan = compile_plan(spec)
    say = notice or (lambda _: None)
    with open_ledger(chosen.ledger, reading_only=True) as opened, opened.at_one_moment():
        releases = _expected(opened, spec, plan, labels, instant, by_calendar=by_calendar)
        account = opened.account(spec.dataset)
        per_window, loss = account.per_window is not None, check_measure(plan, account.measure)
    refusal: str | None = None
    failure: errors.SufficeError | None = None
    stopped: errors.ExpectationNotMetError | None = None
    for position, release in enumerate(releases):
        if release.status == ALREADY_PUBLISHED or _amends_nothing(release, releases):
            continue
        work = partial(
            carry_out,
            spec,
            store=chosen.store,
            ledger=chosen.ledger,
            cluster=chosen.cluster,
            window=release.window,
            amendment=release.amendment,
            as_of=instant,
            allow_open=allow_open,
            publish_timeout=publish_timeout,
            wait=wait,
            witness=chosen.witness,
            progress=progress,
            notice=notice,
        )
        ended: BaseException | None = None
        outcome: Outcome | None = None
        try:
            outcome = work() if attempt is None else attempt(work)
        except errors.BudgetExceededError as error:
            refusal = refusal or str(error)
        except errors.ExpectationNotMetError as error:
            releases[position], stopped = replace(release, status=STOPPED), error
            say(f"{release.edition}: stopped ({_count(releases)})")
            continue
        except (errors.SufficeError, KeyboardInterrupt) as error:
            ended = error
        if ended is not None:
            releases[position], reported = _ended(ended, chosen.ledger, plan, release, releases)
            failure = failure or reported
            if _is_of_the_window(ended):
                say(f"{release.edition}: failed ({_count(releases)})")
                continue
            break
        if outcome is not None:
            releases[position] = replace(release, status=outcome.status, uri=outcome.release.uri)
            say(f"{release.edition}: {outcome.status.replace('_', ' ')} ({_count(releases)})")
        elif not per_window:  # else other windows have epsilon of their own
            break
    return Backfill(
        windows=tuple(releases),
        loss=loss,
        stopped=stopped,
        refusal=refusal,
        needed=None if refusal is None else _needed(chosen.ledger, spec, releases),
        failure=failure,
    )


def is_anything_left(spec: Spec, labels: Sequence[str], *, ledger: str, as_of: datetime) -> bool:
    """Tell whether a window, or an amendment that is due, is not published yet, as the ledger says."""
    with open_ledger(ledger, reading_only=True) as opened, opened.at_one_moment():
        releases = _expected(opened, spec, compile_plan(spec), labels, as_of)
    return any(release.status != ALREADY_PUBLISHED for release in releases)


def _amends_nothing(release: BackfilledWindow, releases: Sequence[BackfilledWindow]) -> bool:
    """Tell whether a release amends a window that this backfill could not release first."""
    return bool(release.amendment) and any(
        other.window == release.window and other.amendment == 0 and other.status not in _DONE
        for other in releases
    )


def _is_of_the_window(error: BaseException) -> bool:
    """Tell whether an error says nothing of other windows: one is spent, or its rows are unreadable."""
    return isinstance(error, errors.ChargeSpentError) or (
        isinstance(error, errors.StageFailedError) and error.stage == "reading"
    )


def _expected(
    ledger: Ledger,
    spec: Spec,
    plan: Plan,
    labels: Sequence[str],
    as_of: datetime,
    *,
    by_calendar: bool = False,
) -> list[BackfilledWindow]:
    """Return the first release of every window, and the amendments that are due, by when each was.

    What is published counts where it is of this very plan; another plan's is left to be refused.
    """
    assert spec.window is not None  # noqa: S101 - the windows were listed
    editions = ledger.editions(spec.dataset, spec.name)
    expected = []
    for label in labels:
        times = window_times(spec.window, label)
        charge = ledger.find(spec.dataset, spec.name, label)
        published = charge is not None and charge.state is ChargeState.PUBLISHED
        published = published and charge is not None and charge.plan_hash == plan.plan_hash
        status = ALREADY_PUBLISHED if published else LEFT
        expected.append((times.complete, BackfilledWindow(window=label, amendment=0, status=status)))
        newest = newest_published(editions.get(label, ())) if published else None
        if newest is None and not by_calendar:
            continue  # what is released now is read after all that is due
        number = 0 if newest is None else newest.amendment
        read = None if newest is None or by_calendar else newest.created
        due = amendment_due(times, as_of, newest=number, charged=read)
        if due:
            amended = BackfilledWindow(window=label, amendment=due, status=LEFT)
            expected.append((times.amendments[due - 1], amended))
    return [release for _, release in sorted(expected, key=lambda pair: pair[0])]


def _needed(ledger: str, spec: Spec, releases: Sequence[BackfilledWindow]) -> Fraction | None:
    """Return the total that covers the releases that are left, besides what is taken; None of none.

    The count before a first release is taken for one that is still to be charged.
    """
    left = [release for release in releases if release.status == LEFT]
    if not left:
        return None
    asked: defaultdict[str, Fraction] = defaultdict(Fraction)
    with open_ledger(ledger, reading_only=True) as opened, opened.at_one_moment():
        account = opened.account(spec.dataset)
        each, counted_before = prices(spec, account.measure)
        for release in left:
            asked[release.window] += each.amount
            if counted_before is not None and not release.amendment:
                asked[release.window] += counted_before.amount
        if account.per_window is None:
            lacking = sum(asked.values(), Fraction(0)) - account.remaining
        else:
            lacking = max(amount - opened.remaining(spec.dataset, window) for window, amount in asked.items())
        return account.granted + max(lacking, Fraction(0))


def _count(releases: Sequence[BackfilledWindow]) -> str:
    done = sum(release.status in _DONE for release in releases)
    return f"{done} of {counted(len(releases), 'release')}"


def _ended(
    error: BaseException, url: str, plan: Plan, window: BackfilledWindow, releases: Sequence[BackfilledWindow]
) -> tuple[BackfilledWindow, errors.SufficeError]:
    """Say what became of the release at hand whose run ended in an error, and what to tell of the error.

    A run may end in one after it published, as by an interrupt: so the ledger is asked.
    """
    charge: Charge | None = None
    try:
        with open_ledger(url, reading_only=True) as ledger:
            charge = ledger.find(plan.dataset, plan.name, window.window, amendment=window.amendment)
        state = _state(charge)
    except errors.StorageError:
        state = "may have a charge: the ledger does not answer"
    published = (
        charge is not None and charge.state is ChargeState.PUBLISHED and charge.plan_hash == plan.plan_hash
    )
    now = replace(window, status=PUBLISHED if published else FAILED)
    if isinstance(error, errors.SufficeError) and not isinstance(error, errors.ReleaseInterruptedError):
        return now, error
    count = _count([now if each == window else each for each in releases])
    text = f"interrupted: {window.edition} {state}; {count} are published; run it again to go on"
    return now, errors.ReleaseInterruptedError(text)


def _state(charge: Charge | None) -> str:
    """Return what became of the charge of a window."""
    if charge is None:
        return "was not charged"
    if charge.state is ChargeState.ABANDONED:
        return "is spent, not published" if charge.counts_as == "spent" else "was charged nothing"
    return f"is {charge.state}"
