"""What one unit of an account loses, from the ledger and the calendar alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.errors import UsageError
from suffice.pipeline.spec.contract_fit import floating_unit_warning
from suffice.pipeline.spec.person import PersonLoss, loss_of, windows_in_a_year
from suffice.pipeline.terms.declaration.delta import shown_epsilons
from suffice.pipeline.terms.declaration.documents import Count, document, printed
from suffice.pipeline.terms.declaration.domains import Every
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss, PrivacyMeasure
from suffice.pipeline.terms.declaration.row_rules import in_words, rule_text
from suffice.pipeline.terms.declaration.time_zones import window_grid
from suffice.storage.ledger.account import ROW

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from suffice.storage.ledger.account import Account
    from suffice.storage.ledger.ledger import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """What a grant allows one unit to lose in a window, in twelve months, and in all; None: no limit."""

    in_a_window: Fraction
    in_a_year: Fraction
    in_every_window: Fraction | None


@printed(
    "so_far=loss so_far_epsilon_at? granted windows units_disjoint=account.units_disjoint "
    "max_windows=account.max_windows assumptions"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class PersonView:
    """What one unit of an account loses: of what was charged, and of what the grant allows.

    Attributes
    ----------
    account : Account
    loss : PersonLoss
        Of every charge that is spent or reserved.
    """

    account: Account
    loss: PersonLoss

    @property
    def granted(self) -> Granted:
        """What the grant allows."""
        granted = self.account.granted
        if self.account.per_window is None:
            return Granted(in_a_window=granted, in_a_year=granted, in_every_window=granted)
        windows = windows_in_a_year(Every(self.account.per_window.rsplit(":", 2)[1]))
        in_a_year = granted * min(windows, self.account.max_windows or windows)
        return Granted(in_a_window=granted, in_a_year=in_a_year, in_every_window=None)

    @property
    def so_far_epsilon_at(self) -> dict[str, float] | None:
        """The epsilon of what is lost in all by delta, rounded up; None of an account in epsilon."""
        return PrivacyLoss(self.account.measure, self.loss.in_every_window).epsilon_at

    @property
    def windows(self) -> dict[str, Count]:
        """How many windows were charged, by grid."""
        return {grid: len(windows) for grid, windows in sorted(self.loss.windows.items())}

    def lost_by(self, rows: int | None, windows: int | None) -> Fraction:
        """Return what is lost by a unit in so many windows, or by so many rows where the unit is a row.

        Raises
        ------
        UsageError
            Where rows are asked for of an account whose unit is a column, or rows and windows do not fit.
        """
        if rows is None:
            return self.loss.in_windows(1 if windows is None else windows)
        if self.account.unit != ROW:
            unit = in_words(self.account.unit)
            message = f"--rows: the unit is {unit}, whose rows lose together what one unit loses"
            raise UsageError(message)
        return self.loss.of_rows(rows, windows, measure=self.account.measure)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the numbers rest on beside the ledger, as sentences."""
        account, sentences = self.account, []
        if account.unit == ROW:
            times = "r" if account.measure is PrivacyMeasure.EPSILON else "r^2"
            sentences.append(f"a unit is one row: a person with r rows loses up to {times} times as much")
        else:
            sentences.append(
                f"a unit is all rows with one value of {in_words(account.unit).removeprefix('column:')}"
            )
        if account.per_window is not None and account.unit != ROW:
            sentences.append(
                "the owner states that no unit has rows in two windows (units disjoint); the numbers above "
                "do not rely on it: a unit that has loses in each of them"
            )
        floating = None if account.contract is None else floating_unit_warning(account.contract)
        if floating is not None:
            sentences.append(floating.removeprefix("privacy.unit.column: "))
        if account.max_windows is not None:
            sentences.append(
                f"the owner assumes that a unit has rows in at most {account.max_windows} windows of twelve "
                "months; nothing enforces it"
            )
        sentences.append("a row whose date is corrected between two releases counts in both windows")
        return tuple(sentences)

    @property
    def lines(self) -> tuple[str, ...]:
        """Say it as people read it: so far, and under the grant."""
        so_far, granted = document(self.loss), document(self.granted)
        of = "" if self.account.measure is PrivacyMeasure.EPSILON else f"{self.account.measure} "
        total = granted["in_every_window"]
        limit = f"at most {total} in all" if total is not None else "without limit over all windows"
        if self.account.max_windows is not None and self.account.per_window is not None:
            limit += f"; the year assumes at most {self.account.max_windows} windows"
        worst = f"{so_far['in_a_year']} in a year (the worst twelve months)"
        so_far_line = (
            f"one unit: so far at most {of}{so_far['in_a_window']} in a window, {worst}, "
            f"{so_far['in_every_window']} in all"
        )
        grant_line = (
            f"one unit: the grant allows {of}{granted['in_a_window']} in a window, {granted['in_a_year']} "
            f"in a year, {limit}"
        )
        measure = self.account.measure
        return so_far_line, *_epsilons(measure, self.loss), grant_line, *_epsilons(measure, self.granted)


def person_view(ledger: Ledger, account: Account) -> PersonView:
    """Return what one unit of an account loses.

    Parameters
    ----------
    ledger : Ledger
    account : Account
        Of this ledger, read at the same moment.
    """
    return PersonView(account=account, loss=loss_of(_held(ledger, account)))


@printed("accounts measure so_far=loss")
@dataclass(frozen=True, slots=True, kw_only=True)
class LossTogether:
    """What a unit loses that has rows in several accounts.

    Attributes
    ----------
    accounts : tuple of str
    measure : PrivacyMeasure
        Rho where one of the accounts counts rho.
    loss : PersonLoss
        Of every charge that is spent or reserved.
    """

    accounts: tuple[str, ...]
    measure: PrivacyMeasure
    loss: PersonLoss

    @property
    def lines(self) -> tuple[str, ...]:
        """Say it as people read it."""
        told = document(self.loss)
        of = "" if self.measure is PrivacyMeasure.EPSILON else f"{self.measure} "
        line = (
            f"one unit with rows in {' and '.join(self.accounts)}: so far at most {of}{told['in_a_window']} "
            f"in a window, {told['in_a_year']} in a year (the worst twelve months), "
            f"{told['in_every_window']} in all"
        )
        return line, *_epsilons(self.measure, self.loss)


def loss_together(ledger: Ledger, accounts: Sequence[Account]) -> LossTogether:
    r"""Return what a unit loses that has rows in several accounts: their losses add.

    Where one of the accounts counts rho, all are added in rho: a charge of epsilon is
    :math:`\varepsilon^2 / 2` there, exactly.

    Parameters
    ----------
    ledger : Ledger
    accounts : sequence of Account
        Of this ledger, read at the same moment.

    Raises
    ------
    UsageError
        Where one is named twice, or they protect different units or by different relations.
    """
    names = tuple(account.dataset for account in accounts)
    if len(set(names)) < len(names):
        message = "an account is named twice: each adds its charges once"
        raise UsageError(message)
    if len({(account.unit, account.neighboring) for account in accounts}) > 1:
        message = (
            f"{' and '.join(names)} differ in unit or neighbouring relation: their charges bound losses of "
            "different neighbours, and have no common sum"
        )
        raise UsageError(message)
    in_rho = any(account.measure is PrivacyMeasure.RHO for account in accounts)
    held = (charge for account in accounts for charge in _held(ledger, account, in_rho=in_rho))
    measure = PrivacyMeasure.RHO if in_rho else PrivacyMeasure.EPSILON
    return LossTogether(accounts=names, measure=measure, loss=loss_of(held))


def _epsilons(measure: PrivacyMeasure, loss: PersonLoss | Granted) -> tuple[str, ...]:
    """Say what is lost in all, or in a year, in approximate privacy; nothing of an account in epsilon."""
    in_all = loss.in_every_window is not None
    amount = loss.in_every_window if loss.in_every_window is not None else loss.in_a_year
    if measure is PrivacyMeasure.EPSILON or amount <= 0:
        return ()
    return (f"  (epsilon, delta) {'in all' if in_all else 'in a year'}: {shown_epsilons(amount)}",)


def _held(
    ledger: Ledger, account: Account, *, in_rho: bool = False
) -> Iterator[tuple[str | None, str, Fraction]]:
    """Give the grid, the window and the amount of what charges hold of an account."""
    grids: dict[str, str | None] = {}
    for each in ledger.held(account.dataset):
        if each.plan_hash not in grids:
            grids[each.plan_hash] = _grid(ledger.plan(each.plan_hash))
        amount = each.loss.amount
        if in_rho and each.loss.epsilon is not None:
            amount = amount**2 / 2
        yield grids[each.plan_hash], each.window, each.number * amount


def _grid(plan: str) -> str | None:
    """Return the window grid of a canonical plan; None where it has no windows."""
    content = json.loads(plan)
    window = content.get("window")
    if window is None:
        return None
    derived, column = content.get("derived", {}), window["column"]
    named = rule_text(derived[column]) if column in derived else column
    return window_grid(named, Every(window["every"]), window["time_zone"])
