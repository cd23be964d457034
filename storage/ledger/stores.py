"""Stores as a ledger remembers them: each that it ever charged for, and how far it knows its markers."""

from __future__ import annotations

from dataclasses import dataclass


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

    store_id: str
    uri: str
    first_sequence: int
    last_marker: int
    retired: bool
