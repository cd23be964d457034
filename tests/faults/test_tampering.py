"""What somebody changes in a signed release or in the ledger is found, whatever and wherever it is."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import LedgerCorruptError, ReleaseCorruptError, SignatureError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.releasing.release import carry_out
from suffice.storage.ledger.chain import Entry, Head, check_chain, public_entry
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.ledger.replay import replay
from suffice.storage.operations.verify_ledger import compare_with_store
from suffice.storage.operations.verify_release import verify_release
from suffice.storage.releases.manifest import checksum
from suffice.storage.releases.release_parquet import encode_statistic
from suffice.storage.releases.release_store import open_release, open_store
from suffice.storage.releases.store_identity import MARKERS, marker_sequence
from suffice.storage.signatures.signing import Signer, load_signer, new_keys
from support.making import make_workspace
from support.paid import Books, copy_database, open_books, pay, restore_database, steps
from support.releases import flip_bit, make_plan, publish, some_values

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

N_BITS = 2000
N_EDITS = 500
N_COPIES = 20


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return load_signer(new_keys(tmp_path / "key.pem").private_key)


def is_refused(reference: Path, keys: list[str] | None) -> bool:
    try:
        open_release(str(reference), public_keys=keys)
    except (ReleaseCorruptError, SignatureError):
        return True
    return False


def read_without_checks(path: Path, data: bytes) -> bool:
    """Read a file as a program would that trusts it."""
    try:
        if path.suffix == ".parquet":
            pq.read_table(pa.BufferReader(data))
        else:
            json.loads(data)
    except (pa.ArrowException, OSError, ValueError):
        return False
    return True


@pytest.mark.slow
def test_no_changed_bit_of_a_signed_release_is_read(tmp_path: Path, signer: Signer) -> None:
    release = publish(tmp_path / "store", make_plan(), signer=signer)
    keys = [signer.public_key.raw.hex()]
    contents = [(path, path.read_bytes()) for path in sorted(release.iterdir())]
    bit_positions = [(path, data, bit) for path, data in contents for bit in range(8 * len(data))]
    chosen = [bit_positions[index * len(bit_positions) // N_BITS] for index in range(N_BITS)]
    assert not is_refused(release, keys)
    accepted, silent, unpinned = [], 0, []
    for number, (path, data, bit) in enumerate(chosen):
        changed = flip_bit(data, bit)
        path.write_bytes(changed)
        if not is_refused(release, keys):
            accepted.append((path.name, bit))
        if number % 20 == 0:
            assert not verify_release(str(release), public_keys=keys).ok
        silent += read_without_checks(path, changed)
        if path.name == "manifest.json" and not is_refused(release, None):
            unpinned.append((bit // 8, data.index(b'"signature":')))
        path.write_bytes(data)
    assert accepted == []
    assert not is_refused(release, keys)
    # Controls: readers that check nothing take most of it; and what a reader who pins no key lets pass
    # is the signature itself, which is not checked then.
    assert silent > N_BITS / 2
    assert all(byte > signature for byte, signature in unpinned)


@pytest.mark.slow
def test_every_bit_of_the_signature_itself_counts(tmp_path: Path, signer: Signer) -> None:
    path = publish(tmp_path / "store", make_plan(), signer=signer) / "manifest.json"
    data, keys = path.read_bytes(), [signer.public_key.raw.hex()]
    start = data.index(b'"signature":')
    for bit in range(8 * start, 8 * data.index(b"}", start)):
        path.write_bytes(flip_bit(data, bit))
        assert is_refused(path, keys), bit
    path.write_bytes(data)
    assert not is_refused(path, keys)


def forge(release: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a manifest, and make right whatever can be made right without the private key."""
    path = release / "manifest.json"
    content = json.loads(path.read_bytes())
    change(content)
    for file in content["files"]:
        data = release.joinpath(file["path"]).read_bytes()
        file["sha256"], file["size"] = hashlib.sha256(data).hexdigest(), len(data)
    path.write_bytes(canonical_json.encode({**content, "checksum": checksum(content)}))


@pytest.mark.parametrize("what", ["values", "time", "signature removed", "signed by another"])
def test_a_consistent_forgery_is_read_without_a_pinned_key_and_refused_with_one(
    tmp_path: Path, signer: Signer, what: str
) -> None:
    plan = make_plan()
    release = publish(tmp_path / "store", plan, signer=signer)
    forger = load_signer(new_keys(tmp_path / "forger.pem").private_key)

    def sign_anew(content: dict[str, Any]) -> None:
        content["created"] = "2020-01-01T00Z"
        content["checksum"] = checksum(content)
        content["signature"] = forger.sign(content)

    changes: dict[str, Callable[[dict[str, Any]], object]] = {
        "values": lambda _content: None,
        "time": lambda content: content.update(created="2020-01-01T00Z"),
        "signature removed": lambda content: content.update(signature=None),
        "signed by another": sign_anew,
    }
    if what == "values":
        statistic = plan.statistics[0]
        values = some_values(plan, seed=2)[statistic.name]
        release.joinpath(f"{statistic.name}.parquet").write_bytes(encode_statistic(statistic, values))
    forge(release, changes[what])
    assert not is_refused(release, None)
    assert is_refused(release, [signer.public_key.raw.hex()])
    assert is_refused(release, [forger.public_key.raw.hex()]) == (what != "signed by another")


def test_an_old_release_in_the_place_of_a_new_one_is_refused(tmp_path: Path, signer: Signer) -> None:
    plan, keys = make_plan(window={"column": "day", "every": "month"}), [signer.public_key.raw.hex()]
    windows = [f"{year}-{month:02d}" for year in (2013, 2014) for month in range(1, 13)][:21]
    releases = [publish(tmp_path / "store", plan, window=window, signer=signer) for window in windows]
    for old, new in itertools.pairwise(releases):
        assert open_release(str(new), public_keys=keys).window == new.parent.name
        shutil.move(new, tmp_path / "kept")
        shutil.copytree(old, new)
        assert is_refused(new, keys)
        shutil.rmtree(new)
        shutil.move(tmp_path / "kept", new)
    # A copy outside of a store is read as what it says it is.
    shutil.copytree(releases[0], tmp_path / "copy")
    assert open_release(str(tmp_path / "copy"), public_keys=keys).window == "2013-01"


# The ledger


def filled(directory: Path) -> Books:
    """Return a ledger with all kinds of entries."""
    books = open_books(directory)
    for name in ("a", "b", "c"):
        pay(books, name)
    books.ledger.abandon(pay(books, "d", until="reserved"), reason="tests")
    pay(books, "e", until="staged")
    return books


def write_entries(connection: sqlite3.Connection, entries: list[Entry]) -> None:
    with connection:
        connection.execute("DELETE FROM entries")
        connection.executemany(
            "INSERT INTO entries (sequence, previous_hash, kind, time, payload, hash) VALUES (?,?,?,?,?,?)",
            [(e.sequence, e.previous_hash, e.kind, e.time, e.payload, e.hash) for e in entries],
        )


def changed_entries(entries: list[Entry], rng: random.Random) -> list[Entry]:
    """Return a chain with a random edit, deletion or reordering; renumbered every other time."""
    changed, kind = list(entries), rng.choice(["edit", "number", "delete", "swap", "rotate"])
    first, second = sorted(rng.sample(range(len(entries)), 2))
    if kind == "edit":
        name = rng.choice(["previous_hash", "kind", "time", "payload", "hash"])
        text = getattr(entries[first], name)
        position = rng.randrange(len(text))
        other = rng.choice([letter for letter in "0123456789abcdef{}" if letter != text[position]])
        changed[first] = replace(entries[first], **{name: text[:position] + other + text[position + 1 :]})
        return changed
    if kind == "number":
        payload = json.loads(entries[first].payload)
        for name in payload:
            if isinstance(payload[name], int):
                payload[name] += 1
        text = json.dumps(payload, sort_keys=True, separators=(",", ":"))
        changed[first] = replace(entries[first], payload=text)
        return changed
    if kind == "delete":
        del changed[first:second]
    elif kind == "swap":
        changed[first], changed[second] = changed[second], changed[first]
    else:
        changed[first : second + 1] = [entries[second], *entries[first:second]]
    if rng.random() < 0.5 or kind != "delete":
        changed = [replace(entry, sequence=number) for number, entry in enumerate(changed, start=1)]
    return changed


def problems_but_triggers(books: Books) -> list[str]:
    """Return what else is wrong with a ledger whose triggers are out of the way."""
    return [problem for problem in books.ledger.verify() if "trigger" not in problem]


@pytest.mark.slow
def test_every_edit_deletion_and_reordering_of_entries_is_found(tmp_path: Path) -> None:
    rng = random.Random(2013)  # noqa: S311 - chooses what to damage
    books = filled(tmp_path)
    with books.ledger, closing(sqlite3.connect(books.database)) as connection:
        entries = list(books.ledger.entries())
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in names:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        tried = noticed = naive = 0
        while tried < N_EDITS:
            changed = changed_entries(entries, rng)
            if changed == entries:
                continue
            tried += 1
            write_entries(connection, changed)
            noticed += problems_but_triggers(books) != []
            whole = [entry.sequence for entry in changed] == [entry.sequence for entry in entries]
            naive += not whole or replay(changed)[1] != ()
        assert noticed == N_EDITS
        # The control: gaps and the ledger's own rules alone, without hashes, miss some of the very same.
        assert naive < N_EDITS
        write_entries(connection, entries)
        assert problems_but_triggers(books) == []


def reseal(entries: list[Entry]) -> list[Entry]:
    """Make a chain's hashes right again, as whoever can write to the database could."""
    sealed: list[Entry] = []
    for number, entry in enumerate(entries, start=1):
        previous = sealed[-1].hash if sealed else Head().hash
        linked = replace(entry, sequence=number, previous_hash=previous)
        sealed.append(replace(linked, hash=public_entry(linked).hash))
    return sealed


class Rewritten:
    """A chain that its forger made right again from the first entry to the last."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = reseal(entries)
        last = self._entries[-1]
        assert check_chain(self._entries, Head(sequence=last.sequence, hash=last.hash)) == ()

    def entries(self) -> list[Entry]:
        return self._entries


def test_a_chain_that_was_rewritten_whole_or_cut_off_is_found_by_the_releases(tmp_path: Path) -> None:
    books = filled(tmp_path)
    with books.ledger:
        entries = list(books.ledger.entries())
        assert compare_with_store(books.ledger, books.store).problems == ()
        assert compare_with_store(Rewritten(entries), books.store).problems == ()
        marked = {marker_sequence(key) for key in books.store.objects.keys_after(MARKERS, "")}
        for length in range(1, len(entries)):
            chain = Rewritten(entries[:length])
            lost = [entry for entry in entries[length:] if entry.kind == "drawing"]
            problems = compare_with_store(chain, books.store).problems
            if lost:
                assert problems, length
        for index, entry in enumerate(entries):
            later = [other for other in entries[index:] if other.kind == "drawing"]
            payload = canonical_json.encode({**json.loads(entry.payload), "salt": "0" * 32}).decode()
            chain = Rewritten([*entries[:index], replace(entry, payload=payload), *entries[index + 1 :]])
            problems = compare_with_store(chain, books.store).problems
            told = any(_is_released(other, entries) for other in later)
            told = told or any(other.sequence in marked for other in entries[index:])
            assert bool(problems) == told, index
            if problems:
                assert "rewritten" in problems[0]


def _is_released(drawing: Entry, entries: list[Entry]) -> bool:
    charge_id = json.loads(drawing.payload)["charge_id"]
    return any(
        entry.kind == "published" and json.loads(entry.payload)["charge_id"] == charge_id for entry in entries
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_an_older_copy_of_the_ledger_is_refused_at_the_start(tmp_path: Path) -> None:
    rng = random.Random(2013)  # noqa: S311 - chooses when the copy was made
    for trial in range(N_COPIES):
        directory = tmp_path / str(trial)
        directory.mkdir()
        workspace = make_workspace(directory, granted="100")
        ledger = create_ledger(workspace.ledger)
        store = open_store(workspace.store, ledger_id=ledger.ledger_id, create=True)
        books = Books(directory=directory, ledger=ledger, store=store)
        copies = []
        for number in range(rng.randint(1, 3)):
            for step, _charge in steps(books, f"r{number}"):
                copies.append((number, step, directory / f"{number}-{step}.db"))
                copy_database(books.database, copies[-1][2])
        # Older than the last draw of which something is in the store.
        last = number
        older = [copy for at, step, copy in copies if at < last or step in {"reserved", "drawing"}]
        ledger.close()
        restore_database(rng.choice(older), books.database)
        with open_ledger(workspace.ledger) as restored:
            before = restored.accounts()
        with pytest.raises(LedgerCorruptError, match="older copy"):
            carry_out(workspace.spec(), store=workspace.store, ledger=workspace.ledger)
        with open_ledger(workspace.ledger) as restored:
            assert restored.accounts() == before
            assert restored.verify() == ()
        if trial < 3:
            restore_database(copies[-1][2], books.database)
            assert (
                carry_out(workspace.spec(), store=workspace.store, ledger=workspace.ledger).status
                == "published"
            )
