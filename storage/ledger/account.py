"""Accounts: what an owner granted for a protected population, and what a release must match.

An account may demand a contract of the data. It may also demand guards against an older copy of the ledger,
which could be charged again: a witness, or a store that every release goes to and that both copies know.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.errors import GuaranteeError, UsageError
from suffice.pipeline.terms.declaration.delta import shown_epsilons
from suffice.pipeline.terms.declaration.documents import (
    Count,
    CountOrNone,
    LongId,
    Neighboring,
    Sha256,
    document,
    printed,
)
from suffice.pipeline.terms.declaration.exact_numbers import parse_rho
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss, PrivacyMeasure
from suffice.pipeline.terms.declaration.row_rules import in_words, is_rule, read_unit, read_window_grid
from suffice.pipeline.terms.declaration.wording import counted
from suffice.storage.ledger.charge import ALL
from suffice.storage.ledger.places import MOST_SHOWN, check_store, is_under

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.storage.ledger.charge import ChargeRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownStore:
    """A store that a ledger has charged for.

    Attributes
    ----------
    store_id : str
        32 hex digits, as its ``suffice.json`` says.
    uri : str
        Where it stands: where it was first charged for, or was adopted since.
    first_sequence : int
        The entry of the first charge.
    last_marker : int
        The highest sequence whose marker the ledger knows to stand there; 0 before the first draw.
    retired : bool
        Whether the owner gave it up: it is asked no longer, and charged for no more.
    """

    store_id: LongId
    uri: str
    first_sequence: Count
    last_marker: Count
    retired: bool


UNGUARDED = (
    "nothing guards the account {} against an older copy of its ledger beside a fresh store, which would "
    "spend its budget again: grant it with --witness URI, or with --store URI and a --contract"
)


def is_guarded(*, witness: str | None, stores: Sequence[str], contract: DataContract | str | None) -> bool:
    """Tell whether an older copy of the ledger would be refused: by a witness, or at the one place of stores.

    Without a contract a release may go to any place below an allowed one, where a fresh store may stand.
    """
    return witness is not None or (bool(stores) and contract is not None)


def check_new_contract(
    dataset: str, terms: AccountTerms, before: DataContract | None, now: DataContract
) -> None:
    """Refuse a contract of another unit or windows than the account's, or one that takes something back.

    A contract can gain columns, and a window where it had none. What it states of a column, of the unit, of
    windows and of files decides which rows are whose and of when: otherwise one row could count twice.

    Raises
    ------
    UsageError
        Where its unit or window is not the account's.
    GuaranteeError
        Where it takes something back.
    """
    if now.unit_name != terms.unit:
        message = (
            f"the contract has the unit {in_words(now.unit_name)}, the account {dataset} "
            f"{in_words(terms.unit)}: a grant takes the unit from its contract where it states none"
        )
        raise UsageError(message)
    if terms.per_window is not None and not _fits(now, terms.per_window):
        message = (
            f"the account {dataset} is granted per window of {in_words(terms.per_window)}: its contract "
            "states that column and time zone under window"
        )
        raise UsageError(message)
    if before is None:
        return
    lost = sorted(name for name, family in before.columns.items() if now.columns.get(name) is not family)
    changed = [f"the column {name}" for name in lost[:1]]
    is_windowed = before.window is not None
    is_other = (now.window, now.window_column) != (before.window, before.window_column)
    changed += ["the window"] if is_windowed and is_other else []
    changed += ["the source"] if now.source != before.source else []
    if changed:
        message = (
            f"the contract of {dataset} fixed {changed[0]}: it can gain columns, and takes nothing back; "
            "another contract needs an account of its own, whose loss adds to this one's"
        )
        raise GuaranteeError(message)


def check_same_contract(dataset: str, granted: str | None, read_by: str | None) -> None:
    """Refuse a charge of a run that read by another contract than the account has now.

    Raises
    ------
    GuaranteeError
    """
    if granted != read_by:
        message = f"the contract of the account {dataset} changed since this run began: run it again"
        raise GuaranteeError(message)


def chosen_witness(dataset: str, pinned: str | None, given: str | None) -> str | None:
    """Return the witness that a run asks: the account's, which it cannot replace.

    Raises
    ------
    GuaranteeError
        Where the run names another one.
    """
    if pinned is None or given is None or given == pinned:
        return pinned or given
    message = f"the account {dataset} has the witness {pinned}: leave --witness and SUFFICE_WITNESS out"
    raise GuaranteeError(message)


def _fits(contract: DataContract, grid: str) -> bool:
    column, _every, zone = grid.rsplit(":", 2)
    rule = contract.window
    return rule is not None and (contract.window_column, rule.time_zone) == (column, zone)


NEIGHBORING = ("add_or_remove_one", "replace_one")
ROW = "row"
_COLUMN = "column:"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountTerms:
    """What the first grant fixes for good.

    Attributes
    ----------
    measure : PrivacyMeasure
        What the account counts: an account of epsilon takes no release whose loss is in rho.
    neighboring : str
        ``add_or_remove_one`` or ``replace_one``.
    unit : str
        ``row``, or ``column:`` and the column whose values are the protected units.
    per_window : str or None
        The grid, ``flight_date:month:Europe/Berlin``, over whose windows the grant holds separately.
    units_disjoint : bool
        Whether the owner says that no unit has rows in two windows.

    Raises
    ------
    UsageError
        Where a field breaks its rule, or a grant per window of a column unit lacks `units_disjoint`.
    """

    measure: PrivacyMeasure
    neighboring: str
    unit: str
    per_window: str | None
    units_disjoint: bool

    def __post_init__(self) -> None:
        if self.neighboring not in NEIGHBORING:
            message = f"neighboring {self.neighboring!r} is neither add_or_remove_one nor replace_one"
            raise UsageError(message)
        column = self.unit.removeprefix(_COLUMN) if self.unit.startswith(_COLUMN) else ""
        if self.unit != ROW and not column:
            message = f"the unit {self.unit!r} is neither row nor column:NAME"
            raise UsageError(message)
        if is_rule(column) and _of_rule(self.unit) != self.unit:
            message = f"the unit {self.unit!r} is a rule that is not written as accounts do, or is no unit's"
            raise UsageError(message)
        if self.per_window is not None:
            _check_grid(self.per_window)
            if self.unit != ROW and not self.units_disjoint:
                message = (
                    f"a grant per window holds for {self.unit} only if no unit has rows in two windows: "
                    "confirm it with --units-disjoint, or grant without --per-window"
                )
                raise UsageError(message)


def _check_grid(grid: str) -> None:
    try:
        written = read_window_grid(grid)
    except ValueError as error:
        message = f"per window: {error}"
        raise UsageError(message) from None
    if written != grid:
        message = f"the grid {grid!r} names no time zone: write it as {written}"
        raise UsageError(message)


def _of_rule(unit: str) -> str | None:
    """Return a unit with a rule as accounts write it; None where it is no unit's."""
    try:
        return read_unit(unit)
    except ValueError:
        return None


def check_sources(
    dataset: str, terms: AccountTerms, before: Sequence[str] | None, now: Sequence[str]
) -> None:
    """Refuse sources for which a grant per window would not bound what a row loses.

    A row lies in one window of one source. Another source may hold the same row under another date, so that
    it would count in two windows: a grant per window names its sources, and keeps them.

    Parameters
    ----------
    dataset : str
    terms : Terms
    before : sequence of str or None
        The sources allowed so far; None for the first grant.
    now : sequence of str
        The sources allowed from now on.

    Raises
    ------
    UsageError
        Where the first grant names none.
    GuaranteeError
        Where a later one would change them.
    """
    if terms.per_window is None:
        return
    if before is None and not now:
        message = (
            "a grant per window names its sources, for another one may hold the same rows under other dates: "
            "state them with --source, as data/flights, s3://BUCKET/PREFIX, postgresql:SCHEMA.TABLE or "
            "iceberg:CATALOG/NAMESPACE.TABLE"
        )
        raise UsageError(message)
    if before is not None and sorted(now) != sorted(before):
        message = (
            f"the first grant of {dataset} fixed its windows and their sources: {', '.join(before)}; "
            "grant a data set of its own for others"
        )
        raise GuaranteeError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedAudit:
    """An audit of a spec that found nothing, as a grant names it.

    Attributes
    ----------
    sha256 : str
        Of its file.
    plan_hash : str
        Of the plan that was audited: it says nothing of another.
    """

    sha256: Sha256
    plan_hash: Sha256


@printed("sha256=contract.sha256 *contract")
@dataclass(frozen=True, slots=True, kw_only=True)
class StatedContract:
    """A contract with its SHA-256."""

    contract: DataContract


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowBalance:
    """One window of a grant per window; `remaining` has the charges of ``all`` taken off."""

    window: str
    spent: Fraction
    reserved: Fraction
    remaining: Fraction


@printed(
    "dataset neighboring unit measure granted granted_epsilon_at? spent reserved remaining sources "
    "checksums stores witness guarded=is_guarded contract=stated_contract audit per_window units_disjoint "
    "failed_readings_allowed=failed_readings max_windows"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The budget of one protected population, as the ledger held it at one moment.

    What it costs to read does not grow with the number of its charges and windows, which
    :meth:`suffice.storage.ledger.ledger.Ledger.charges` and ``windows`` list.

    Attributes
    ----------
    dataset : str
    measure, neighboring, unit, per_window, units_disjoint
        See :class:`AccountTerms`.
    sources : tuple of str
        Allowed prefixes; empty where any source is.
    checksums : str or None
        The owner's list of the input files' SHA-256, where every release must fit one.
    stores : tuple of str
        Prefixes of the stores that releases may go to; empty where any store is allowed.
    witness : str or None
        The URI of the witness that every run asks.
    contract : DataContract or None
        What the owner says that the data are.
    audit : NamedAudit or None
        The audit that the last grant with one named.
    failed_readings : int
        How many attempts of a key may end before their draw and give their epsilon back.
    max_windows : int or None
        In how many windows of twelve months a unit has rows, as the owner assumes; nothing enforces it.
    granted, spent, reserved : Fraction
        In the account's measure. For a grant per window, `spent` and `reserved` are what charges of ``all``
        take.
    remaining : Fraction
        What a release of ``all`` could still take: the least over the windows.
    """

    dataset: str
    measure: PrivacyMeasure
    neighboring: Neighboring
    unit: str
    per_window: str | None
    units_disjoint: bool
    sources: tuple[str, ...]
    checksums: str | None
    stores: tuple[str, ...]
    witness: str | None
    contract: DataContract | None
    audit: NamedAudit | None
    failed_readings: Count
    max_windows: CountOrNone
    granted: Fraction
    spent: Fraction
    reserved: Fraction
    remaining: Fraction

    @property
    def granted_epsilon_at(self) -> dict[str, float] | None:
        """The epsilon of what is granted by delta, rounded up; None of an account in epsilon."""
        return PrivacyLoss(self.measure, self.granted).epsilon_at

    @property
    def stated_contract(self) -> StatedContract | None:
        """The contract and its SHA-256."""
        return None if self.contract is None else StatedContract(contract=self.contract)

    def __str__(self) -> str:
        return "\n".join(account_lines(document(self)))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - IPython calls it so
        printer.text(str(self))

    @property
    def is_guarded(self) -> bool:
        """Whether an older copy of the ledger beside a fresh store would be refused."""
        return is_guarded(witness=self.witness, stores=self.stores, contract=self.contract)


def account_lines(shown: dict[str, Any]) -> list[str]:
    """Return the head of an account's document as people read it."""
    lines: list[str] = []
    lines.append(
        f"{shown['dataset']}  ({shown['neighboring']}, unit {in_words(shown['unit'])}"
        + (f", per window of {in_words(shown['per_window'])})" if shown["per_window"] else ")")
    )
    # Of a grant per window these are the numbers of releases that have none; windows have lines of their own.
    of = "rho " if shown["measure"] == PrivacyMeasure.RHO else ""
    scope = " in each window; without a window:" if shown["per_window"] else ","
    lines.append(
        f"  granted {of}{shown['granted']}{scope} spent {shown['spent']}, reserved {shown['reserved']}, "
        f"remaining {shown['remaining']}"
        + (f" (returned {shown['returned']})" if "returned" in shown else "")
    )
    if shown["measure"] == PrivacyMeasure.RHO:
        lines.append(f"  (epsilon, delta) of what is granted: {shown_epsilons(parse_rho(shown['granted']))}")
    if shown["per_window"] and shown["units_disjoint"]:
        lines.append(
            "  units disjoint: the owner states that no unit has rows in two windows; one that has loses in "
            "each of them"
        )
    if shown["sources"]:
        lines.append(f"  sources below {', '.join(shown['sources'])}")
    if shown["checksums"] is not None:
        lines.append(f"  input checked against {shown['checksums']}")
    if shown["stores"]:
        lines.append(f"  releases go to {', '.join(shown['stores'])}")
    contract = shown["contract"]
    if contract is None:
        lines.append("  no contract: how files are typed, and which there are, may decide a status")
    else:
        lines.append(f"  contract {contract['sha256'][:16]}: {counted(len(contract['columns']), 'column')}")
    if shown["audit"] is not None:
        audit = shown["audit"]
        lines.append(f"  audit {audit['sha256'][:16]} of the plan {audit['plan_hash'][:16]}")
    if shown["witness"] is not None:
        lines.append(f"  witness {shown['witness']}")
    elif not shown["guarded"]:
        lines.append(
            "  unwitnessed: an older copy of this ledger beside a fresh store could spend this again"
        )
    return lines


def counts_by_window(per_window: str | None, window: str) -> bool:
    """Tell whether a charge is held against its window rather than against the whole account."""
    return per_window is not None and window != ALL


def check_guarantee(
    request: ChargeRequest, terms: AccountTerms, sources: Sequence[str], stores: Sequence[str]
) -> None:
    """Refuse a release whose guarantee is not the account's.

    Raises
    ------
    GuaranteeError
        Where measure, relation, unit, window grid, source or store are others than the owner granted.
    """
    account = f"the account {request.dataset}"
    check_measure(request, terms.measure)
    if request.neighboring != terms.neighboring:
        message = (
            f"{account} is granted for {terms.neighboring}, the spec has {request.neighboring}: "
            f"{_fixed_by('neighboring')}"
        )
        raise GuaranteeError(message)
    if request.unit != terms.unit:
        message = (
            f"{account} protects the unit {in_words(terms.unit)}, the spec {in_words(request.unit)}: "
            f"{_fixed_by('unit')}: suffice.grant(NAME, {request.loss.measure}=TOTAL, reason=TEXT, "
            f"unit={json.dumps(request.unit, ensure_ascii=False)})"
        )
        raise GuaranteeError(message)
    if counts_by_window(terms.per_window, request.window) and request.grid != terms.per_window:
        message = (
            f"{account} is granted per window of {in_words(terms.per_window or '')}, the spec has "
            f"{in_words(request.grid or 'none')}: {_fixed_by('window')}"
        )
        raise GuaranteeError(message)
    if sources and not any(is_under(prefix, request.source) for prefix in sources):
        shown = ", ".join(sources[:MOST_SHOWN]) + ", ..." * (len(sources) > MOST_SHOWN)
        way_out = (
            "have the owner grant another with --source"
            if terms.per_window is None
            else "have the owner make an account of its own for it, for a grant per window keeps its sources"
        )
        message = (
            f"{account} does not allow this source: the owner granted {shown}; read from one of these, or "
            f"{way_out}"
        )
        raise GuaranteeError(message)
    check_store(request.dataset, request.store_uri, stores)


def check_measure(request: ChargeRequest | Plan, measure: PrivacyMeasure) -> PrivacyLoss:
    """Return what a request, or a release of a plan, costs an account of a measure.

    Raises
    ------
    GuaranteeError
        Where it cannot be charged there.
    """
    loss = request.loss_in(measure)
    if loss is None:
        message = (
            f"the account {request.dataset} counts {measure}, the spec states {request.loss.measure}, from "
            f"which no {measure} follows: state privacy.{measure} in the spec; the first grant fixed the "
            "measure, and another one takes an account of its own, whose loss adds to this one's"
        )
        raise GuaranteeError(message)
    return loss


def _fixed_by(key: str) -> str:
    """Say what to do about a guarantee that differs in this key of a spec."""
    return (
        f"state the account's {key} in the spec; the first grant fixed it, and another one takes an account "
        "of its own, whose loss adds to this one's"
    )
