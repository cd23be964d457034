"""Verification: every kind of damage has its sentence, and the ledger tells a forged release apart."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import ReleaseMissingError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.ledger.opening import create_ledger
from suffice.storage.operations.verify_release import verify_release
from suffice.storage.releases.manifest import checksum
from suffice.storage.releases.release_store import ReleaseStore, open_store
from support.paid import open_books, pay
from support.releases import flip_bit, make_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from suffice.pipeline.spec.plan import Plan
    from suffice.storage.ledger.charge import Charge
    from suffice.storage.ledger.ledger import Ledger


@dataclass(frozen=True)
class Published:
    """A release that a ledger paid for."""

    plan: Plan
    ledger: Ledger
    store: ReleaseStore
    charge: Charge

    @property
    def directory(self) -> Path:
        return Path(self.store.release_uri(self.charge.name, self.charge.window, self.charge.release_id))

    def rewrite(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the manifest, and make its checksum right again."""
        path = self.directory / "manifest.json"
        content = json.loads(path.read_bytes())
        change(content)
        path.write_bytes(canonical_json.encode({**content, "checksum": checksum(content)}))


@pytest.fixture
def staged(tmp_path: Path) -> Iterator[Published]:
    books = open_books(tmp_path)
    with books.ledger as ledger:
        charge = pay(books, "flights", until="put")
        yield Published(plan=make_plan(), ledger=ledger, store=books.store, charge=charge)


@pytest.fixture
def published(staged: Published) -> Published:
    staged.ledger.publish(staged.charge)
    return staged


def problems(
    published: Published, *, with_ledger: bool = True, reference: str | None = None
) -> tuple[str, ...]:
    verification = verify_release(
        reference or str(published.directory), ledger=published.ledger if with_ledger else None
    )
    assert verification.ok == (not verification.problems)
    unread = any("manifest is corrupt" in sentence for sentence in verification.problems)
    assert verification.ledger == ("checked" if with_ledger and not unread else "not_checked")
    assert verification.signature == ("not_checked" if unread else "unsigned")
    return verification.problems


def test_a_published_release_has_no_problem(published: Published) -> None:
    assert problems(published) == ()
    assert problems(published, with_ledger=False) == ()
    assert verify_release("flights", store=published.store.uri, ledger=published.ledger).ok


def test_every_damaged_file_is_named(published: Published) -> None:
    (published.directory / "carrier.parquet").unlink()
    stops = published.directory / "stops.parquet"
    stops.write_bytes(flip_bit(stops.read_bytes(), 5000))
    with (published.directory / "cancelled.parquet").open("ab") as file:
        file.write(b"x")
    (published.directory / "notes.txt").write_text("x")
    (published.directory / "sub").mkdir()
    (published.directory / "sub" / "more.parquet").write_text("x")
    (published.directory / ".hidden").write_text("a writer's temporary file")
    told = problems(published)
    for sentence, text in zip(
        told,
        [
            "carrier.parquet is missing",
            "cancelled.parquet does not have the",
            "stops.parquet does not have the SHA-256",
            "'notes.txt'",
            "'sub/more.parquet'",
        ],
        strict=True,
    ):
        assert text in sentence


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff" * 100, b"PAR1"])
def test_a_manifest_of_anything_is_a_problem_and_no_exception(published: Published, content: bytes) -> None:
    (published.directory / "manifest.json").write_bytes(content)
    (sentence,) = problems(published)
    assert "manifest is corrupt" in sentence


def test_no_flipped_bit_of_the_manifest_verifies(published: Published) -> None:
    path = published.directory / "manifest.json"
    data = path.read_bytes()
    for position in range(0, 8 * len(data), 61):
        path.write_bytes(flip_bit(data, position))
        assert problems(published, with_ledger=False) != ()
        assert problems(published) != ()


FORGED: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another hour": (lambda content: content.update(created="2026-01-31T09Z"), "manifest is not"),
    "other versions": (lambda content: content.update(versions={}), "manifest is not"),
    "another drawing": (lambda content: content.update(drawing_sequence=1), "drawing entry"),
    "another hash": (lambda content: content.update(drawing_hash="0" * 64), "hash of that entry"),
    "another ledger": (lambda content: content.update(ledger_id="0" * 32), "belongs to ledger"),
}


@pytest.mark.parametrize(("change", "text"), FORGED.values(), ids=FORGED.keys())
def test_a_forged_manifest_is_told_by_the_ledger(
    published: Published, change: Callable[[dict[str, Any]], object], text: str
) -> None:
    published.rewrite(change)
    assert any(text in sentence for sentence in problems(published))


def test_a_manifest_that_contradicts_its_plan_is_told_without_a_ledger(published: Published) -> None:
    published.rewrite(
        lambda content: content["statistics"][0]["quantities"][0].update(public_n_coefficient="3")
    )
    (sentence,) = problems(published, with_ledger=False)
    assert "statistics.carrier.quantities.0.public_n_coefficient" in sentence


def test_a_release_that_the_ledger_never_paid_for_is_told(published: Published, tmp_path: Path) -> None:
    forged = tmp_path / "forged"
    shutil.copytree(published.directory, forged)
    with create_ledger(f"sqlite:///{tmp_path}/other.db") as other:
        verification = verify_release(str(forged), ledger=other)
    assert not verification.ok
    assert "belongs to ledger" in verification.problems[0]

    def rename(content: dict[str, Any]) -> None:
        content["name"] = content["plan"]["name"] = "others"
        content["plan_hash"] = hashlib.sha256(canonical_json.encode(content["plan"])).hexdigest()

    published.rewrite(rename)
    shutil.rmtree(forged)
    shutil.copytree(published.directory, forged)
    assert problems(published, reference=str(forged)) == ("the ledger has no charge for this release",)


def test_a_release_staged_but_not_marked_published_is_said_to_be(staged: Published) -> None:
    (sentence,) = problems(staged)
    assert sentence == "the ledger has its charge as staged, not as published"


def test_a_release_in_another_store_is_told(published: Published, tmp_path: Path) -> None:
    other = open_store(str(tmp_path / "other"), ledger_id=published.ledger.ledger_id, create=True)
    copy = Path(other.release_uri("flights", "all", published.charge.release_id))
    shutil.copytree(published.directory, copy)
    (sentence,) = problems(published, reference=str(copy))
    assert f"charged for the store {published.store.store_id} at {published.store.uri}" in sentence
    assert f"`suffice store adopt {other.uri}`" in sentence
    assert problems(published, with_ledger=False, reference=str(copy)) == ()
    foreign = open_store(str(tmp_path / "foreign"), ledger_id="0" * 32, create=True)
    copy = Path(foreign.release_uri("flights", "all", published.charge.release_id))
    shutil.copytree(published.directory, copy)
    (sentence,) = problems(published, with_ledger=False, reference=str(copy))
    assert "the store belongs to ledger" in sentence


def test_where_no_release_stands_there_is_nothing_to_verify(published: Published) -> None:
    with pytest.raises(ReleaseMissingError):
        verify_release("delays", store=published.store.uri)
    published.store.put_tombstone("flights", "all", "0" * 16)
    with pytest.raises(ReleaseMissingError, match="abandoned"):
        verify_release(published.store.release_uri("flights", "all", "0" * 16))
