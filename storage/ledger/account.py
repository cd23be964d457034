"""Accounts: what an owner granted for a protected population, and what a release must match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.errors import GuaranteeError, UsageError
from suffice.storage.ledger.charge import ALL

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from suffice.storage.ledger.charge import ChargeRequest

NEIGHBORING = ("add_or_remove_one", "replace_one")
ROW = "row"
_COLUMN = "column:"
_EVERY = ("day", "month", "year")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the first grant fixes for good.

    Attributes
    ----------
    neighboring : str
        ``add_or_remove_one`` or ``replace_one``.
    unit : str
        ``row``, or ``column:`` and the column whose values are the protected units.
    per_window : str or None
        The grid, ``flight_date:month``, over whose windows the grant holds separately.
    units_disjoint : bool
        Whether the owner says that no unit has rows in two windows.

    Raises
    ------
    UsageError
        Where a field breaks its rule, or a grant per window of a column unit lacks `units_disjoint`.
    """

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
        if self.per_window is not None:
            column, _, every = self.per_window.rpartition(":")
            if not column or every not in _EVERY:
                message = f"the grid {self.per_window!r} is not COLUMN:day, COLUMN:month or COLUMN:year"
                raise UsageError(message)
            if self.unit != ROW and not self.units_disjoint:
                message = (
                    f"a grant per window holds for {self.unit} only if no unit has rows in two windows: "
                    "confirm it with --units-disjoint, or grant without --per-window"
                )
                raise UsageError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowBalance:
    """One window of a grant per window; `remaining` has the charges of ``all`` taken off."""

    window: str
    spent: Fraction
    reserved: Fraction
    remaining: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The budget of one protected population, as the ledger held it at one moment.

    What it costs to read does not grow with the number of its charges and windows, which
    :meth:`suffice.storage.ledger.ledger.Ledger.charges` and ``windows`` list.

    Attributes
    ----------
    dataset : str
    neighboring, unit, per_window, units_disjoint
        See :class:`Terms`.
    sources : tuple of str
        Allowed prefixes; empty where any source is.
    granted, spent, reserved : Fraction, nats
        For a grant per window, `spent` and `reserved` are what charges of ``all`` take.
    remaining : Fraction, nats
        What a release of ``all`` could still take: the least over the windows.
    """

    dataset: str
    neighboring: str
    unit: str
    per_window: str | None
    units_disjoint: bool
    sources: tuple[str, ...]
    granted: Fraction
    spent: Fraction
    reserved: Fraction
    remaining: Fraction


def counts_by_window(per_window: str | None, window: str) -> bool:
    """Tell whether a charge is held against its window rather than against the whole account."""
    return per_window is not None and window != ALL


def check_guarantee(request: ChargeRequest, terms: Terms, sources: Sequence[str]) -> None:
    """Refuse a release whose guarantee is not the account's.

    Raises
    ------
    GuaranteeError
        Where relation, unit, window grid or source are others than the owner granted.
    """
    account = f"the account {request.dataset}"
    if request.neighboring != terms.neighboring:
        message = f"{account} is granted for {terms.neighboring}, the spec has {request.neighboring}"
        raise GuaranteeError(message)
    if request.unit != terms.unit:
        message = f"{account} protects the unit {terms.unit}, the spec {request.unit}"
        raise GuaranteeError(message)
    if counts_by_window(terms.per_window, request.window) and request.grid != terms.per_window:
        message = f"{account} is granted per window of {terms.per_window}, the spec has {request.grid}"
        raise GuaranteeError(message)
    if sources and not any(_is_under(prefix, request.source) for prefix in sources):
        message = f"{account} does not allow this source: the owner granted {', '.join(sources)}"
        raise GuaranteeError(message)


def _is_under(prefix: str, source: str) -> bool:
    """Compare on the boundaries of path components; a path that climbs is under nothing."""
    stem = prefix.rstrip("/")
    if ".." in source.split("/"):
        return False
    return source in {stem, prefix} or source.startswith(f"{stem}/")
