"""What becomes of a charge whose run failed, and the fixed text that says so.

Before the draw its epsilon is returned; from then on unknown means spent, and what is complete in the spool
waits to be published.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from suffice.errors import (
    ChargeLostError,
    ClusterError,
    LedgerCorruptError,
    LedgerError,
    ReleaseInterruptedError,
    StageFailedError,
    StorageError,
    StoreError,
)
from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon
from suffice.storage.ledger.charge import ChargeState
from suffice.storage.operations.publishing import forget
from suffice.storage.operations.settling import abandon, remove_orphans

if TYPE_CHECKING:
    from suffice.errors import SufficeError
    from suffice.storage.ledger.charge import Charge
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.releases.release_store import ReleaseStore
    from suffice.storage.releases.spool import Spool


def give_back(
    ledger: Ledger, store: ReleaseStore, spool: Spool, charge: Charge, stage: str, error: BaseException
) -> SufficeError:
    """Abandon a charge that never drew, and say what happened.

    Parameters
    ----------
    ledger, store, spool
        Of the charge.
    charge : Charge
        In state ``reserved``.
    stage : str
        Where its run failed.
    error : BaseException
        What came of it; its own text is kept only where it is one of ours that knows no data.

    Returns
    -------
    SufficeError
        To be raised by the caller.
    """
    try:
        if isinstance(error, LedgerCorruptError):  # another copy may have drawn for this charge
            forget(spool, charge)
            fate = "until `suffice ledger recover` its epsilon stays reserved"
            return StageFailedError(stage, f"{error}; {fate}")
        charge = abandon(ledger, store, charge, reason=f"{stage} failed")
        forget(spool, charge)
        fate = "nothing was drawn, and its epsilon was returned"
        if charge.drew:
            fate = (
                f"nothing was drawn, and epsilon {format_epsilon(charge.epsilon)} is spent: as many attempts "
                "of this release failed before as the owner allows (`suffice ledger grant --failed-readings`)"
            )
    except StoreError:  # of one whose epsilon is to be spent, the marker or the tombstone cannot be put
        fate = "nothing was drawn, and its epsilon stays reserved until `suffice ledger recover` spends it"
    except LedgerError:
        fate = "nothing was drawn; its epsilon returns when the next run finds the charge expired"
    if isinstance(error, KeyboardInterrupt):
        return ReleaseInterruptedError(f"interrupted: the charge is abandoned, {fate}")
    if isinstance(error, StageFailedError | ClusterError | StorageError):
        return StageFailedError(stage, f"{error}; {fate}")
    what = "the data could not be read" if stage == "reading" else "the release could not be prepared"
    return StageFailedError(stage, f"{what}; {fate}")


def published_by_another(ledger: Ledger, charge: Charge, error: Exception) -> Charge | None:
    """Return the charge where another run took it over and published what this one drew."""
    if not isinstance(error, ChargeLostError):
        return None
    with suppress(LedgerError):
        current = ledger.find(charge.dataset, charge.name, charge.window, amendment=charge.amendment)
        if current is not None and current.state is ChargeState.PUBLISHED:
            return current if current.charge_id == charge.charge_id else None
    return None


def spend(
    ledger: Ledger, store: ReleaseStore, spool: Spool, charge: Charge, stage: str, error: Exception
) -> SufficeError:
    """Fence off and abandon a charge that may have drawn; leave one that is complete to be published.

    Parameters and what is returned are those of :func:`give_back`; the charge is in any state from
    ``drawing`` on.
    """
    why = f"{error}; " if isinstance(error, StorageError) else ""
    return StageFailedError(stage, why + _fate(ledger, store, spool, charge, stage, error))


def _fate(
    ledger: Ledger, store: ReleaseStore, spool: Spool, charge: Charge, stage: str, error: Exception
) -> str:
    """Do what has to be done about a charge that may have drawn, and say what becomes of it."""
    again = "nothing is lost: run the same command again, or `suffice ledger recover`, on this host"
    rerun = "the charge counts as spent until a rerun on this host settles it"
    if stage == "publishing":
        return f"staged, not published: {again}"
    if isinstance(error, ChargeLostError):
        return "another run has taken over this charge, and decides what becomes of it"
    try:
        if spool.complete(charge) is not None:
            return f"drawn, not staged: {again}"
        if isinstance(error, LedgerError):  # unknown how far the ledger came
            return rerun
        charge = abandon(ledger, store, charge, reason=f"{stage} failed")
    except StorageError:
        return rerun
    forget(spool, charge)
    clean_up(store, charge)
    epsilon = format_epsilon(charge.epsilon)
    return f"epsilon {epsilon} is spent, for noise may have been drawn: the charge is abandoned"


def clean_up(store: ReleaseStore, charge: Charge) -> None:
    """Remove the data files of an abandoned charge, as far as that goes: recovery tries again."""
    with suppress(StorageError):
        remove_orphans(store, charge)
