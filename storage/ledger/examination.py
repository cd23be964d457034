"""What an examination of a ledger found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suffice.storage.ledger.chain import Head


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What an examination of a ledger found.

    Attributes
    ----------
    problems : tuple of str
        One sentence each; of many, the first 100. Empty where there are none.
    head : Head
        The end of the chain that was examined.
    since : int
        The entry of the checkpoint that it went on from; 0 where everything was recomputed.
    """

    problems: tuple[str, ...]
    head: Head
    since: int
