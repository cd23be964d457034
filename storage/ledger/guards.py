"""What an account demands of the data and of the places beside its terms: a contract, and what guards it.

An older copy of a ledger could be charged again. A witness tells it apart; so does a store that every
release has to go to, for it stands at one place, which both copies know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.errors import GuaranteeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.storage.ledger.account import Terms

UNGUARDED = (
    "nothing guards the account {} against an older copy of its ledger beside a fresh store, which would "
    "spend its epsilon again: grant it with --witness URI, or with --store URI and a --contract"
)


def is_guarded(*, witness: str | None, stores: Sequence[str], contract: DataContract | str | None) -> bool:
    """Tell whether an older copy of the ledger would be refused: by a witness, or at the one place of stores.

    Without a contract a release may go to any place below an allowed one, where a fresh store may stand.
    """
    return witness is not None or (bool(stores) and contract is not None)


def check_new_contract(dataset: str, terms: Terms, before: DataContract | None, now: DataContract) -> None:
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
    if now.unit != terms.unit:
        message = f"the contract has the unit {now.unit}, the account {dataset} {terms.unit}"
        raise UsageError(message)
    if terms.per_window is not None and not _fits(now, terms.per_window):
        message = (
            f"the account {dataset} is granted per window of {terms.per_window}: its contract states that "
            "column and time zone under window"
        )
        raise UsageError(message)
    if before is None:
        return
    lost = sorted(name for name, family in before.columns.items() if now.columns.get(name) is not family)
    changed = [f"the column {name}" for name in lost[:1]]
    changed += ["the window"] if before.window is not None and now.window != before.window else []
    changed += ["the source"] if now.source != before.source else []
    if changed:
        message = (
            f"the contract of {dataset} fixed {changed[0]}: it can gain columns, and takes nothing back; "
            "another contract needs an account of its own, whose epsilon adds to this one's"
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
    return rule is not None and (rule.column, rule.time_zone) == (column, zone)
