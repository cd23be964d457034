"""What the ledger says of a run's charge when the run has ended: what its log is correlated by."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from suffice.errors import SufficeError
from suffice.pipeline.spec.calendar import moment, resolve_window
from suffice.storage.ledger.opening import open_ledger

if TYPE_CHECKING:
    from suffice.pipeline.spec.spec import Spec
    from suffice.storage.ledger.charge import Charge


def newest_charge(ledger: str, dataset: str, name: str, window: str, amendment: int = 0) -> Charge | None:
    """Return the newest charge of a key, where the ledger can be asked and has one."""
    try:
        with open_ledger(ledger, reading_only=True) as opened:
            return opened.find(dataset, name, window, amendment=amendment)
    except SufficeError:
        return None


def window_of(spec: Spec, window: str, *, as_of: str | None, allow_open: bool) -> str | None:
    """Return the label of the window that a run is about; None where it is about none."""
    try:
        instant = moment(as_of, datetime.now(UTC))
        return resolve_window(spec, window, as_of=instant, allow_open=allow_open)
    except SufficeError:
        return None


def charge_fields(charge: Charge | None) -> dict[str, str]:
    """Return the fields of a log's line that name a charge; none where there is none."""
    if charge is None:
        return {}
    return {"charge": charge.charge_id, "release_id": charge.release_id, "state": str(charge.state)}
