"""The ledger's state, computed anew from its entries alone: what `verify` holds the tables against."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from suffice.storage.ledger.account import counts_by_window
from suffice.storage.ledger.chain import SALT, EntryKind
from suffice.storage.ledger.charge import ChargeState, release_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from suffice.storage.ledger.chain import Entry

Row = dict[str, Any]
Rows = dict[tuple[str, ...], Row]

_MOVES = {
    EntryKind.DRAWING: (ChargeState.RESERVED, ChargeState.DRAWING),
    EntryKind.STAGED: (ChargeState.DRAWING, ChargeState.STAGED),
    EntryKind.PUBLISHED: (ChargeState.STAGED, ChargeState.PUBLISHED),
}


class RuleBrokenError(Exception):
    """An entry that the ledger's own rules could never have written; caught by :func:`replay`."""


class Books:
    """Rows of every table, keyed by primary key, as the entries so far imply them."""

    def __init__(self) -> None:
        self.ledger_id = ""
        self.accounts: Rows = {}
        self.windows: Rows = {}
        self.names: Rows = {}
        self.charges: Rows = {}
        self.stores: Rows = {}

    def tables(self) -> dict[str, Rows]:
        """Return the rows by table; of plans and staged manifests, which may be large, the hashes."""
        charges = self.charges.values()
        return {
            "accounts": self.accounts,
            "windows": self.windows,
            "names": self.names,
            "charges": self.charges,
            "stores": self.stores,
            "plans": {(charge["plan_hash"],): {"sha256": charge["plan_hash"]} for charge in charges},
            "staged_manifests": {
                (charge["charge_id"],): {"sha256": charge["manifest_sha256"]}
                for charge in charges
                if charge["state"] == ChargeState.STAGED
            },
        }

    def post(self, entry: Entry) -> None:
        """Apply one entry."""
        content = json.loads(entry.payload)
        content.pop(SALT, None)
        kind = EntryKind(entry.kind)
        _require((kind is EntryKind.CREATED) == (entry.sequence == 1), "a ledger is created once, first")
        if kind is EntryKind.CREATED:
            self.ledger_id = content["ledger_id"]
        elif kind is EntryKind.GRANT:
            self._grant(content)
        elif kind is EntryKind.RESERVED:
            self._reserve(entry, content)
        elif kind is EntryKind.STORE_ADOPTED:
            self.stores[content["store_id"],].update(uri=content.get("store_uri"), retired=False)
        elif kind is EntryKind.STORE_RETIRED:
            self.stores[content["store_id"],]["retired"] = True
        else:
            charge = self.charges[content["charge_id"],]
            if kind is EntryKind.TAKEN_OVER:
                _require(content["epoch"] == charge["epoch"] + 1, "a take-over adds one to the epoch")
                charge["epoch"] += 1
            _require(content["epoch"] == charge["epoch"], "the epoch is the charge's")
            if kind is EntryKind.ABANDONED:
                self._abandon(charge, content)
            elif kind is not EntryKind.TAKEN_OVER:
                self._advance(entry, kind, charge, content)

    def _grant(self, content: Row) -> None:
        key = (content["dataset"],)
        balance = self.accounts.get(key, {"micro_spent": 0, "micro_reserved": 0})
        terms = {name: content[name] for name in content if name not in {"reason", "sources", "stores"}}
        places = {name: content.get(name) for name in ("sources", "stores")}
        self.accounts[key] = {**balance, **terms, **places}
        self._require_within_grant(content["dataset"])

    def _reserve(self, entry: Entry, content: Row) -> None:
        dataset, name = content["dataset"], content["name"]
        owner = self.names.setdefault((name,), {"name": name, "dataset": dataset})
        _require(owner["dataset"] == dataset, "a name belongs to one dataset")
        _require(content["release_id"] == release_id(self.ledger_id, content["charge_id"]), "release ids")
        store = self.stores.setdefault(
            (content["store_id"],),
            {
                "store_id": content["store_id"],
                "uri": content.get("store_uri"),
                "first_sequence": entry.sequence,
                "last_marker": 0,
                "retired": False,
            },
        )
        _require(not store["retired"], "a retired store is not charged for")
        self.charges[content["charge_id"],] = {
            **content,
            "state": ChargeState.RESERVED.value,
            "drew": False,
            "epoch": 1,
            "reserved_sequence": entry.sequence,
            "drawing_sequence": None,
            "drawing_hash": None,
            "manifest_sha256": None,
            "created_at": entry.time,
        }
        self._shift(content, reserved=content["micro_epsilon"], spent=0)
        self._require_within_grant(dataset)

    def _advance(self, entry: Entry, kind: EntryKind, charge: Row, content: Row) -> None:
        before, after = _MOVES[kind]
        _require(charge["state"] == before, f"{after} follows {before}")
        charge["state"] = after.value
        if kind is EntryKind.DRAWING:
            charge.update(drew=True, drawing_sequence=entry.sequence, drawing_hash=entry.hash)
            self._shift(charge, reserved=-charge["micro_epsilon"], spent=charge["micro_epsilon"])
            store = self.stores[charge["store_id"],]
            store["last_marker"] = max(store["last_marker"], charge["reserved_sequence"])
        elif kind is EntryKind.STAGED:
            charge["manifest_sha256"] = content["manifest_sha256"]

    def _abandon(self, charge: Row, content: Row) -> None:
        _require(charge["state"] not in {ChargeState.PUBLISHED, ChargeState.ABANDONED}, "an end is an end")
        returned = 0 if charge["drew"] else charge["micro_epsilon"]
        _require(content["micro_returned"] == returned, "epsilon returns if and only if nothing was drawn")
        charge["state"] = ChargeState.ABANDONED.value
        self._shift(charge, reserved=-returned, spent=0)

    def _shift(self, charge: Row, *, reserved: int, spent: int) -> None:
        dataset, window = charge["dataset"], charge["window"]
        row = self.accounts[dataset,]
        if counts_by_window(row["per_window"], window):
            row = self.windows.setdefault(
                (dataset, window),
                {"dataset": dataset, "window": window, "micro_spent": 0, "micro_reserved": 0},
            )
        row["micro_reserved"] += reserved
        row["micro_spent"] += spent

    def _require_within_grant(self, dataset: str) -> None:
        account = self.accounts[dataset,]
        taken = [_taken(row) for (owner, _), row in self.windows.items() if owner == dataset]
        _require(_taken(account) + max(taken, default=0) <= account["micro_granted"], "never over the grant")


def replay(entries: Iterable[Entry]) -> tuple[Books, tuple[str, ...]]:
    """Compute the ledger's state from its entries.

    Returns
    -------
    tuple
        The books, and what is wrong with an entry, at which the replay then stops.
    """
    books = Books()
    for entry in entries:
        try:
            books.post(entry)
        except RuleBrokenError as error:
            return books, (f"entry {entry.sequence} breaks a rule of the ledger: {error}",)
        except (KeyError, TypeError, ValueError):
            return books, (f"entry {entry.sequence} does not fit the entries before it",)
    return books, ()


def compare(table: str, expected: Rows, found: Rows) -> list[str]:
    """Name the rows of one table that differ from what the entries imply, and the columns in which."""
    problems = []
    for key in sorted(expected.keys() | found.keys()):
        location = f"{table} {' '.join(key)}"
        if key not in found:
            problems.append(f"{location}: the entries have it, the table does not")
        elif key not in expected:
            problems.append(f"{location}: the table has it, the entries do not")
        else:
            columns = [name for name in expected[key] if expected[key][name] != found[key].get(name)]
            if columns:
                problems.append(f"{location}: {', '.join(sorted(columns))} differ from the entries")
    return problems


def sha256(content: bytes | None) -> str | None:
    """Return the SHA-256 of some bytes in hex, if there are any."""
    return None if content is None else hashlib.sha256(content).hexdigest()


def _taken(row: Mapping[str, int]) -> int:
    return row["micro_spent"] + row["micro_reserved"]


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise RuleBrokenError(rule)
