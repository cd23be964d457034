"""The ledger's state, computed anew from its entries alone: what `verify` holds the tables against.

For the public its chain is exported with one JSON line per entry, verifiable without the ledger. Left out are
addresses of sources and stores, free texts, and minutes; each line has a commitment to what it leaves out, so
that every hash can still be computed from the line alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from dataclasses import asdict, dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from suffice.errors import LedgerCorruptError
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
from suffice.storage.ledger import chain
from suffice.storage.ledger.account import counts_by_window
from suffice.storage.ledger.amounts import read, stated, stated_measure, stated_name
from suffice.storage.ledger.chain import (
    SALT,
    Entry,
    EntryKind,
    Head,
    PublicEntry,
    canonical_json,
    public_entry,
    read_payload,
)
from suffice.storage.ledger.charge import MOST_RETURNED_DRAWS, ChargeState, release_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)
_HOUR = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}Z", re.ASCII)
_FIELDS = {
    "sequence": int,
    "previous_hash": str,
    "kind": str,
    "hour": str,
    "payload": dict,
    "commitment": str,
    "hash": str,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """An exported chain, as it was read; :meth:`verify` says whether it can be trusted.

    Attributes
    ----------
    lines : tuple of PublicEntry
    hashes : tuple of str
        As the lines state them.
    """

    lines: tuple[PublicEntry, ...]
    hashes: tuple[str, ...]

    @property
    def head(self) -> Head:
        """Its end, as it is stated."""
        return Head(sequence=self.lines[-1].sequence, hash=self.hashes[-1]) if self.lines else Head()

    def entries(self) -> Sequence[Entry]:
        """Return the entries, without what is not for the public."""
        return [
            Entry(
                sequence=line.sequence,
                previous_hash=line.previous_hash,
                kind=line.kind,
                time=line.hour,
                payload=chain.canonical_json(line.payload),
                hash=stated,
            )
            for line, stated in zip(self.lines, self.hashes, strict=True)
        ]

    def verify(self) -> tuple[str, ...]:
        """Name what is wrong: lines missing, altered or moved, and rules that the ledger never breaks.

        Whether the export is complete up to the present, nobody can tell from it: compare it with the
        releases, or with a head that was noted before.
        """
        problems, last = [], Head()
        for line, its_hash in zip(self.lines, self.hashes, strict=True):
            if line.sequence != last.sequence + 1 or line.previous_hash != last.hash:
                problems.append(f"entry {line.sequence} does not continue the entry before it")
            elif line.hash != its_hash:
                problems.append(f"entry {line.sequence} was altered: its hash does not fit its content")
            last = Head(sequence=line.sequence, hash=its_hash)
        return tuple(problems) or replay(self.entries())[1]


def export_lines(entries: Iterable[Entry]) -> Iterator[str]:
    """Write entries for the public, one line of canonical JSON each, without its end."""
    for entry in entries:
        yield chain.canonical_json({**public_fields(public_entry(entry)), "hash": entry.hash})


def read_export(text: str) -> Export:
    """Read what :func:`export_lines` writes; what it states is not verified yet.

    Raises
    ------
    LedgerCorruptError
        Where a line is no entry.
    """
    lines, hashes = [], []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        content = _read_line(line)
        if content is None:
            message = f"line {number} of the export is no entry of a ledger"
            raise LedgerCorruptError(message)
        hashes.append(content.pop("hash"))
        lines.append(PublicEntry(**content))
    return Export(lines=tuple(lines), hashes=tuple(hashes))


def _read_line(line: str) -> dict[str, Any] | None:
    """Return a line's fields; None where one is missing, unknown or of another type."""
    try:
        content = json.loads(line)
        if chain.canonical_json(content) != line:
            return None
    except (ValueError, RecursionError):
        return None
    return read_fields(content)


def public_fields(entry: PublicEntry) -> dict[str, Any]:
    """Return what an entry's line states."""
    return {**asdict(entry), "hash": entry.hash}


def read_fields(content: object) -> dict[str, Any] | None:
    """Return a line's fields; None where one is missing, unknown or of another type."""
    if not isinstance(content, dict) or content.keys() != _FIELDS.keys():
        return None
    if any(type(content[name]) is not kind for name, kind in _FIELDS.items()):
        return None
    digests = all(_HEX.fullmatch(content[name]) for name in ("previous_hash", "commitment", "hash"))
    return content if digests and _HOUR.fullmatch(content["hour"]) else None


Row = dict[str, Any]
Rows = dict[tuple[str, ...], Row]

_MOVES = {
    EntryKind.DRAWING: (ChargeState.RESERVED, ChargeState.DRAWING),
    EntryKind.STAGED: (ChargeState.DRAWING, ChargeState.STAGED),
    EntryKind.PUBLISHED: (ChargeState.STAGED, ChargeState.PUBLISHED),
}


_ENDS = frozenset({ChargeState.PUBLISHED.value, ChargeState.ABANDONED.value})
_LONGEST_KEY = 200


class RuleBrokenError(Exception):
    """An entry that the ledger's own rules could never have written; caught by :func:`replay`."""


class Books:
    """Rows of every table, keyed by primary key, as the entries so far imply them.

    Parameters
    ----------
    on_end : callable, optional
        Called with the row of each charge that ends, which is then forgotten: so the books of any history
        stay as small as its accounts, windows, names, stores and unfinished charges.
    """

    def __init__(self, *, on_end: Callable[[Row], object] | None = None) -> None:
        self.ledger_id = self.created_at = ""
        self.accounts: Rows = {}
        self.windows: Rows = {}
        self.names: Rows = {}
        self.charges: Rows = {}
        self.stores: Rows = {}
        self.reconciled: dict[str, Row] = {}
        """By charge, what a store names of it: other entries than this chain has."""
        self.n_charges = 0
        self.failed: dict[str, int] = {}
        """By key, as JSON, attempts that did not come to their draw."""
        self.returned: dict[str, int] = {}
        """By key, as JSON, draws that were returned."""
        self._on_end = on_end
        self._fullest: defaultdict[str, _Fullest] = defaultdict(_Fullest)

    def post(self, entry: Entry, content: Row) -> None:
        """Apply one entry, whose payload is `content`."""
        kind = EntryKind(entry.kind)
        _require((kind is EntryKind.CREATED) == (entry.sequence == 1), "a ledger is created once, first")
        if kind is EntryKind.CREATED:
            self.ledger_id, self.created_at = content["ledger_id"], entry.time
        elif kind is EntryKind.GRANT:
            self._grant(content)
        elif kind is EntryKind.RESERVED:
            self._reserve(entry, content)
        elif kind in {EntryKind.STORE_ADOPTED, EntryKind.STORE_RETIRED}:
            self._change_store(kind, content)
        elif kind is EntryKind.CHECKPOINT:
            sealed = content.get("state_sha256")  # not in an export
            _require(sealed in {None, sha256(self.state().encode())}, "a checkpoint is what was")
        elif kind is EntryKind.RECONCILED:
            charge = self.charges[content["charge_id"],]
            _require(charge["state"] == ChargeState.RESERVED, "a charge is reconciled before it is spent")
            self.reconciled[content["charge_id"]] = content
        elif kind is not EntryKind.SKIPPED:
            self._move(entry, kind, content)

    def state(self) -> str:
        """Write all that the entries to come depend on, in canonical JSON: what a checkpoint holds.

        Charges that have ended are counted only, and names left out: their table keeps them for good.
        """
        live = (row for row in self.charges.values() if row["state"] not in _ENDS)
        return canonical_json(
            {
                "ledger_id": self.ledger_id,
                "created_at": self.created_at,
                "n_charges": self.n_charges,
                "failed": self.failed,
                "returned": self.returned,
                "accounts": self._stated(self.accounts.values(), "dataset"),
                "windows": self._stated(self.windows.values(), "dataset", "window"),
                "stores": _in_order(self.stores.values(), "store_id"),
                "charges": self._stated(live, "charge_id"),
            }
        )

    def go_on_from(self, state: str) -> None:
        """Take up what :meth:`state` wrote.

        Raises
        ------
        KeyError, TypeError, ValueError
            Where it wrote something else.
        """
        content = json.loads(state)
        self.ledger_id, self.created_at = content["ledger_id"], content["created_at"]
        self.n_charges = content["n_charges"]
        self.failed = content["failed"]
        self.returned = content["returned"]
        self.accounts = {(row["dataset"],): _account(row) for row in content["accounts"]}
        self.windows = {(row["dataset"], row["window"]): self._read(row) for row in content["windows"]}
        self.stores = {(row["store_id"],): row for row in content["stores"]}
        self.charges = {(row["charge_id"],): self._read(row) for row in content["charges"]}
        for row in self.windows.values():
            self._fullest[row["dataset"]].note(row["window"], _taken(row))

    def _measure(self, dataset: str) -> PrivacyMeasure:
        return PrivacyMeasure(self.accounts[dataset,]["measure"])

    def _read(self, content: Row) -> Row:
        """Return what an entry or a state says of an account's charge or window, as tables name amounts."""
        return read(content, self._measure(content["dataset"]))

    def _stated(self, rows: Iterable[Row], *key: str) -> list[Row]:
        return [stated(row, self._measure(row["dataset"])) for row in _in_order(rows, *key)]

    def _grant(self, content: Row) -> None:
        key = (content["dataset"],)
        granted = _account(content)
        balance = self.accounts.get(key, {"measure": granted["measure"], "spent": 0, "reserved": 0})
        _require(granted["measure"] == balance["measure"], "the first grant fixes the measure of an account")
        places = {name: content.get(name) for name in ("sources", "stores")}
        terms = {name: granted[name] for name in granted if name not in {"reason", SALT, *places}}
        contract = content.get("contract")  # not in an export
        named = contract is None or sha256(contract.encode()) == content.get("contract_sha256")
        _require(named, "a contract is what its hash says")
        kept = self.accounts.get(key, {}).get("contract_sha256") is None or content.get("contract_sha256")
        _require(bool(kept), "an account with a contract keeps one")
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
        _require((content["charge_id"],) not in self.charges, "a charge is reserved once")
        self._require_amended(content)
        content = self._read(content)
        self.n_charges += 1
        self.charges[content["charge_id"],] = {
            **{name: content[name] for name in content if name != SALT},
            "state": ChargeState.RESERVED.value,
            "witness": content.get("witness"),
            "drew": False,
            "draw_returned": False,
            "epoch": 1,
            "reserved_sequence": entry.sequence,
            "drawing_sequence": None,
            "drawing_hash": None,
            "drawing_epoch": None,
            "spool_id": None,
            "spool_host": None,
            "manifest_sha256": None,
            "created_at": entry.time,
        }
        self._shift(content, reserved=content["charged"], spent=0)
        self._require_within_grant(dataset)

    def _require_amended(self, content: Row) -> None:
        """Hold an amendment against what it replaces; where ended charges are not kept, only its form."""
        if content["amendment"] == 0:
            _require(content["amends"] is None is content["amended_sha256"], "a first release amends nothing")
        elif self._on_end is None:
            key = ("dataset", "name", "window", "plan_hash", "store_id")
            fits = any(
                charge["release_id"] == content["amends"]
                and charge["manifest_sha256"] == content["amended_sha256"]
                and charge["state"] == ChargeState.PUBLISHED
                and charge["amendment"] < content["amendment"]
                and all(charge[field] == content[field] for field in key)
                for charge in self.charges.values()
            )
            _require(fits, "an amendment replaces an earlier release of its window")

    def _change_store(self, kind: EntryKind, content: Row) -> None:
        store = self.stores[content["store_id"],]
        if kind is EntryKind.STORE_ADOPTED:
            store.update(uri=content.get("store_uri"), retired=False)
        else:
            store["retired"] = True

    def _move(self, entry: Entry, kind: EntryKind, content: Row) -> None:
        charge = self.charges[content["charge_id"],]
        if kind is EntryKind.TAKEN_OVER:
            _require(content["epoch"] == charge["epoch"] + 1, "a take-over adds one to the epoch")
            charge["epoch"] += 1
            if not charge["drew"]:
                self._fail(charge)
        _require(content["epoch"] == charge["epoch"], "the epoch is the charge's")
        if kind is EntryKind.ABANDONED:
            self._abandon(charge, content)
        elif kind is not EntryKind.TAKEN_OVER:
            self._advance(entry, kind, charge, content)
        if charge["state"] in _ENDS and self._on_end is not None:
            self._on_end(self.charges.pop((content["charge_id"],)))

    def _advance(self, entry: Entry, kind: EntryKind, charge: Row, content: Row) -> None:
        before, after = _MOVES[kind]
        _require(charge["state"] == before, f"{after} follows {before}")
        charge["state"] = after.value
        if kind is EntryKind.DRAWING:
            self._forgive(charge)
            charge.update(drew=True, drawing_sequence=entry.sequence, drawing_hash=entry.hash)
            charge["drawing_epoch"] = charge["epoch"]
            charge.update({name: content.get(name) for name in ("spool_id", "spool_host")})
            store = self.stores[charge["store_id"],]
            store["last_marker"] = max(store["last_marker"], charge["reserved_sequence"])
        elif kind is EntryKind.STAGED:
            charge["manifest_sha256"] = content["manifest_sha256"]
            self._shift(charge, reserved=-charge["charged"], spent=charge["charged"])

    def _abandon(self, charge: Row, content: Row) -> None:
        _require(charge["state"] not in {ChargeState.PUBLISHED, ChargeState.ABANDONED}, "an end is an end")
        if content["draw_returned"]:
            self._return_draw(charge)
        returned = 0 if charge["drew"] and not charge["draw_returned"] else charge["charged"]
        name = stated_name("returned", self._measure(charge["dataset"]))
        _require(content[name] == returned, "a loss returns if and only if nobody saw a draw")
        if not charge["drew"]:
            allowed = self.accounts[charge["dataset"],]["failed_readings"]
            _require(self.failed.get(_key(charge), 0) < allowed, "no more failed readings than are allowed")
            self._fail(charge)
        if charge["state"] != ChargeState.STAGED:
            charged = charge["charged"]
            self._shift(charge, reserved=-charged, spent=charged - returned)
        charge["state"] = ChargeState.ABANDONED.value

    def _return_draw(self, charge: Row) -> None:
        key, before = _key(charge), (charge["drawing_epoch"] or 1) - 1
        _require(charge["state"] == ChargeState.DRAWING, "only a draw is returned")
        _require(charge["epoch"] > charge["drawing_epoch"], "a draw is returned by whoever took it over")
        _require(self.returned.get(key, 0) < MOST_RETURNED_DRAWS, "no more draws are returned than may be")
        allowed = self.accounts[charge["dataset"],]["failed_readings"]
        _require(self.failed.get(key, 0) + before < allowed, "no more failed readings than are allowed")
        self.returned[key] = self.returned.get(key, 0) + 1
        if before:
            self.failed[key] = self.failed.get(key, 0) + before
        charge["draw_returned"] = True

    def _fail(self, charge: Row) -> None:
        self.failed[_key(charge)] = self.failed.get(_key(charge), 0) + 1

    def _forgive(self, charge: Row) -> None:
        """Count a charge's take-overs no longer: it has come to its draw, which pays for them."""
        left = self.failed.pop(_key(charge), 0) - (charge["epoch"] - 1)
        if left:
            self.failed[_key(charge)] = left

    def _shift(self, charge: Row, *, reserved: int, spent: int) -> None:
        dataset, window = charge["dataset"], charge["window"]
        row = self.accounts[dataset,]
        if counts_by_window(row["per_window"], window):
            row = self.windows.setdefault(
                (dataset, window),
                {"dataset": dataset, "window": window, "spent": 0, "reserved": 0},
            )
        row["reserved"] += reserved
        row["spent"] += spent
        if "window" in row:
            self._fullest[dataset].note(window, _taken(row))

    def _require_within_grant(self, dataset: str) -> None:
        account = self.accounts[dataset,]
        taken = _taken(account) + self._fullest[dataset].most()
        _require(taken <= account["granted"], "never over the grant")


class _Fullest:
    """The most that any window of an account takes, found without looking at every window."""

    def __init__(self) -> None:
        self._now: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []

    def note(self, window: str, taken: int) -> None:
        """Let a window take this much from now on."""
        if self._now.get(window) != taken:
            self._now[window] = taken
            heappush(self._heap, (-taken, window))

    def most(self) -> int:
        """Return the most; 0 where there is no window."""
        while self._heap and -self._heap[0][0] != self._now[self._heap[0][1]]:
            heappop(self._heap)
        return -self._heap[0][0] if self._heap else 0


def replay(entries: Iterable[Entry]) -> tuple[Books, tuple[str, ...]]:
    """Compute the ledger's state from its entries.

    Returns
    -------
    tuple
        The books, and what is wrong with an entry, at which the replay then stops.
    """
    books = Books()
    for entry in entries:
        problem = post(books, entry)
        if problem:
            return books, (problem,)
    return books, ()


def post(books: Books, entry: Entry, content: Row | None = None) -> str:
    """Apply one entry; return what is wrong with it, or nothing. `content` is its payload, if it was read."""
    try:
        books.post(entry, read_payload(entry) if content is None else content)
    except RuleBrokenError as error:
        return f"entry {entry.sequence} breaks a rule of the ledger: {error}"
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return f"entry {entry.sequence} does not fit the entries before it"
    return ""


def compare(table: str, expected: Rows, stored: Rows) -> list[str]:
    """Name the rows of one table that differ from what the entries imply, and the columns in which."""
    problems = []
    for key in sorted(expected.keys() | stored.keys(), key=_text):
        location = f"{table} {_text(key)}"
        if key not in stored:
            problems.append(f"{location}: the entries have it, the table does not")
        elif key not in expected:
            problems.append(f"{location}: the table has it, the entries do not")
        else:
            columns = [name for name in expected[key] if expected[key][name] != stored[key].get(name)]
            if columns:
                problems.append(f"{location}: {', '.join(sorted(columns))} differ from the entries")
    return problems


def _text(key: tuple[object, ...]) -> str:
    """Write a key as a message can hold it, whatever a damaged row has in its place."""
    return " ".join(ascii(str(part))[1:-1] for part in key)[:_LONGEST_KEY]


def sha256(content: bytes | None) -> str | None:
    """Return the SHA-256 of some bytes in hex, if there are any."""
    return None if content is None else hashlib.sha256(content).hexdigest()


def _account(content: Row) -> Row:
    """Return what a grant or a state says of an account, as its table does."""
    measure = stated_measure(content)
    return {**read(content, measure), "measure": str(measure)}


def _key(charge: Row) -> str:
    return canonical_json([charge[name] for name in ("dataset", "name", "window", "amendment")])


def _in_order(rows: Iterable[Row], *key: str) -> list[Row]:
    return sorted(rows, key=lambda row: tuple(row[name] for name in key))


def _taken(row: Mapping[str, int]) -> int:
    return row["spent"] + row["reserved"]


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise RuleBrokenError(rule)
