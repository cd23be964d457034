"""A withdrawal: those who published a release say that it is faulty, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suffice.pipeline.terms.declaration.documents import Hour, ShortId, SignatureState


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """What stands beside the manifest of a release that was withdrawn. Its charge is not affected.

    Attributes
    ----------
    reason : str
        In the words of those who withdrew it.
    created : str
        The hour, in UTC, as ``2026-01-31T08Z``.
    signed_by : str or None
        The id of the key that signed it.
    signature : str
        ``checked`` against keys that the reader demands; ``wrong`` where none of these signed it;
        ``not_checked`` where none are demanded; ``unsigned``.
    """

    reason: str
    created: Hour
    signed_by: ShortId | None
    signature: SignatureState

    def __str__(self) -> str:
        who = {
            "checked": f"signed by {self.signed_by}",
            "wrong": "not signed by a key that is demanded",
            "not_checked": f"signed by {self.signed_by}, not checked",
            "unsigned": "unsigned",
        }[self.signature]
        return f"withdrawn at {self.created} ({who}): {self.reason}"
