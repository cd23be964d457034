"""How an installation stands: its accounts, its series of releases, and what waits in a spool.

It comes from the ledger, one listing of a store for each series, the specs in the profile's folders and the
calendar; a source is never opened. What changes while a release reads rows is left out: an account's `spent`
has what running releases hold, and a charge is counted once it has drawn.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from suffice.errors import SpecError, SufficeError, UsageError
from suffice.monitoring.records import Counted, read_counts
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.spec.windows_and_amendments import moment
from suffice.pipeline.terms.declaration.documents import Count, CountOrNone, counts_by, printed
from suffice.profile.settings import pinned_profile, settings
from suffice.releasing.expectation import prices
from suffice.releasing.gap_report import GAPS, AmendmentState, WindowState, gaps
from suffice.storage.ledger.charge import ChargeState, is_held
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.releases.release_store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from fractions import Fraction

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
    from suffice.storage.ledger.account import Account
    from suffice.storage.ledger.ledger import Ledger

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
MOST_SPECS = 10_000


def pinned_specs() -> tuple[Path, ...]:
    """Return every YAML and JSON file in the profile's ``spec_folders``, at any depth, sorted.

    Names that begin with a dot are left out, and links to folders are not followed. Whether a file is a spec
    is not asked: one that is none is a problem to be told, not to be passed over.

    Raises
    ------
    UsageError
        Where no profile names such folders, one of them cannot be read, or they hold very many files.
    """
    profile = pinned_profile()
    if profile is None or profile.spec_folders is None:
        message = (
            "--all: no deployment profile names spec_folders: name specs one by one, or pin their folders "
            '(the documentation\'s page "How to pin a deployment")'
        )
        raise UsageError(message)
    specs: set[Path] = set()
    for folder in profile.spec_folders:
        specs |= _files(folder)
    return tuple(sorted(specs))


def _files(folder: str) -> set[Path]:
    def refuse(_: OSError) -> None:
        message = f"--all: a folder below {folder}, which spec_folders names, cannot be read"
        raise UsageError(message) from None

    files: set[Path] = set()
    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files |= {
            Path(place, name) for name in names if not name.startswith(".") and Path(name).suffix in SUFFIXES
        }
        if len(files) > MOST_SPECS:
            message = f"--all: {folder} holds more than {MOST_SPECS} files: pin the folder of the specs alone"
            raise UsageError(message)
    return files


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountStanding:
    """The budget of a protected population.

    Attributes
    ----------
    dataset : str
    measure : PrivacyMeasure
        What the account counts.
    per_window : bool
        Whether the grant holds for each window; then `spent` is that of the window that was charged most, and
        `remaining` that of a window that was never charged.
    granted, spent, remaining : Fraction
        What a running release holds counts as spent. Without windows `spent` and `remaining` sum to
        `granted`.
    """

    dataset: str
    measure: PrivacyMeasure
    per_window: bool
    granted: Fraction
    spent: Fraction
    remaining: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesStanding:
    """The releases of one spec.

    Attributes
    ----------
    spec : str
        The path of the spec.
    dataset, name : str
    releases : int
        How many the ledger has as published, amendments too.
    windows : mapping of str to int
        How many windows there are by state; a spec without windows has one, which is never overdue.
    amendments : mapping of str to int
        How many amendments are still to be released, by state.
    due : int
        How many releases are still to come now: windows that are missing or overdue, and amendments.
    covered : int or None
        How many releases the budget still covers, those that are due first; None: every one, as the grant
        holds for each window and covers all that are due, or none is to come.
    ok : bool
        Whether nothing is overdue, and no release gone from the store.
    """

    spec: str
    dataset: str
    name: str
    releases: Count
    windows: Annotated[Mapping[str, int], counts_by(WindowState)]
    amendments: Annotated[Mapping[str, int], counts_by(AmendmentState)]
    due: Count
    covered: CountOrNone
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A spec whose series cannot be judged: it, its account or its store cannot be read."""

    spec: str
    type: str
    message: str
    exit_status: Count


@printed("as_of=minute ok accounts series unreadable in_spool refusals=counted.refusals audit=counted.audit")
@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How an installation stands.

    Attributes
    ----------
    as_of : datetime, UTC
    accounts : tuple of AccountStanding
    series : tuple of SeriesStanding
        By dataset and name.
    unreadable : tuple of Unreadable
    in_spool : int
        Charges that were drawn and are not published yet.
    counted : Counted or None
        Refusals and the last audit, where a folder for them is named.
    """

    as_of: datetime
    accounts: tuple[AccountStanding, ...]
    series: tuple[SeriesStanding, ...]
    unreadable: tuple[Unreadable, ...]
    in_spool: Count
    counted: Counted | None

    @property
    def ok(self) -> bool:
        """Whether every series could be judged, and is well."""
        return not self.unreadable and all(series.ok for series in self.series)

    @property
    def minute(self) -> str:
        """The moment it is of, to the minute."""
        return f"{self.as_of:%Y-%m-%dT%H:%MZ}"


def standing(
    specs: Iterable[Path],
    *,
    store: str | None = None,
    ledger: str | None = None,
    as_of: str | datetime | None = None,
) -> Standing:
    """Return how an installation stands.

    Parameters
    ----------
    specs : iterable of path
        A spec that cannot be judged does not keep the others from it.
    store, ledger : str, optional
        As for :func:`suffice.release`. The ledger is only read.
    as_of : str or datetime, optional
        The moment reported on; now, where it is left out.

    Raises
    ------
    UsageError
        Where `as_of` is no moment, or a place lies outside of the profile.
    StorageError
        The ledger, or the folder of counts.
    """
    places = settings(store=store, ledger=ledger)
    instant = moment(as_of, datetime.now(UTC))
    series: dict[tuple[str, str], SeriesStanding] = {}
    unreadable = []
    with open_ledger(places.ledger, reading_only=True) as opened:
        with opened.at_one_moment():
            accounts = tuple(map(_account, opened.accounts()))
            in_spool = _in_spool(opened)
        for path in specs:
            try:
                spec = load_spec(path)
                if (key := (spec.dataset, spec.name)) in series:
                    rule = f"{series[key].spec} states the same series"
                    raise SpecError(str(path), rule, "keep one of them")
                series[key] = _series(path, spec, opened, store=store, ledger=ledger, as_of=instant)
            except SufficeError as error:
                unreadable.append(_unreadable(path, error))
    return Standing(
        as_of=instant,
        accounts=accounts,
        series=tuple(series[key] for key in sorted(series)),
        unreadable=tuple(unreadable),
        in_spool=in_spool,
        counted=read_counts(),
    )


def _account(account: Account) -> AccountStanding:
    # Of a grant for each window, what charges without one take of every window; ``Account.remaining`` is the
    # least over the windows.
    in_any_window = account.spent + account.reserved
    return AccountStanding(
        dataset=account.dataset,
        measure=account.measure,
        per_window=account.per_window is not None,
        granted=account.granted,
        spent=account.granted - account.remaining,
        remaining=account.granted - in_any_window,
    )


def _in_spool(ledger: Ledger) -> int:
    """Count charges that are staged, or that a run left in ``drawing`` when it died."""
    count = 0
    for summary in ledger.unsettled():
        if summary.state is ChargeState.STAGED:
            count += 1
        elif summary.state is ChargeState.DRAWING:
            charge = ledger.charge(summary.charge_id)
            count += charge is not None and not is_held(charge, ledger.now())
    return count


def _series(
    path: Path, spec: Spec, opened: Ledger, *, store: str | None, ledger: str | None, as_of: datetime
) -> SeriesStanding:
    editions = opened.editions(spec.dataset, spec.name)
    charges = [charge for several in editions.values() for charge in several]
    releases = sum(charge.state is ChargeState.PUBLISHED for charge in charges)
    if spec.window is None:
        return _without_windows(path, spec, opened, releases=releases, store=store, ledger=ledger)
    report, _ = gaps(spec, store=store, ledger=ledger, as_of=as_of)
    windows = Counter(window.state for window in report.windows)
    amendments = Counter(amendment.state for amendment in report.amendments)
    due = sum(windows[state] for state in GAPS) + amendments.total()
    further = report.further
    if further is None and report.covered < due:  # later windows have a budget of their own; these have not
        further = 0
    return SeriesStanding(
        spec=str(path),
        dataset=spec.dataset,
        name=spec.name,
        releases=releases,
        windows={str(state): windows[state] for state in WindowState},
        amendments={str(state): amendments[state] for state in AmendmentState},
        due=due,
        covered=None if further is None else report.covered + further,
        ok=report.ok,
    )


def _without_windows(
    path: Path, spec: Spec, opened: Ledger, *, releases: int, store: str | None, ledger: str | None
) -> SeriesStanding:
    """Judge the one release of a spec without windows."""
    places = settings(store=store, ledger=ledger, spec_path=spec.directory)
    remaining = opened.remaining(spec.dataset, "all")
    price, _ = prices(spec, opened.account(spec.dataset).measure)
    state = WindowState.MISSING
    charge = opened.find(spec.dataset, spec.name, "all")
    if charge is not None and charge.state is ChargeState.PUBLISHED:
        listed = open_store(places.store).standing(spec.name)
        is_withdrawn = listed.get((charge.edition, charge.release_id))
        state = WindowState.NOT_IN_STORE if is_withdrawn is None else WindowState.PUBLISHED
        state = WindowState.WITHDRAWN if is_withdrawn else state
    return SeriesStanding(
        spec=str(path),
        dataset=spec.dataset,
        name=spec.name,
        releases=releases,
        windows={str(each): int(each is state) for each in WindowState},
        amendments={str(each): 0 for each in AmendmentState},
        due=int(state is WindowState.MISSING),
        covered=int(remaining >= price.amount) if state is WindowState.MISSING else None,
        ok=state is not WindowState.NOT_IN_STORE,
    )


def _unreadable(path: Path, error: SufficeError) -> Unreadable:
    return Unreadable(
        spec=str(path),
        type=type(error).__name__,
        message=str(error),
        exit_status=error.exit_status,
    )
