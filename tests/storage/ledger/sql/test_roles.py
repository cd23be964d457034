"""The roles of deploy/postgres, on a real server: each can do its work, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from secrets import token_hex
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from suffice.errors import LedgerError
from suffice.storage.ledger.opening import create_ledger, open_ledger
from support.charging import MANIFEST
from support.postgres import as_user, connect, execute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from suffice.storage.ledger.charge import ChargeRequest
    from support.postgres import Server

    MakeRequest = Callable[..., ChargeRequest]

ROLES = ("owner", "publisher", "auditor")
PRIVILEGE = psycopg.errors.InsufficientPrivilege
RULE = psycopg.errors.IntegrityConstraintViolation

FORBIDDEN: dict[str, list[tuple[str, type[psycopg.Error]]]] = {
    "publisher": [
        ("UPDATE accounts SET granted = 9000000", PRIVILEGE),
        ("UPDATE accounts SET sources = '[]'", PRIVILEGE),
        ("UPDATE accounts SET neighboring = 'replace_one'", PRIVILEGE),
        ("UPDATE accounts SET spent = 0 WHERE spent > 0", RULE),
        ("UPDATE accounts SET reserved = 0 WHERE reserved > 0", RULE),
        ("UPDATE windows SET spent = 0 WHERE spent > 0", RULE),
        ("UPDATE windows SET reserved = 0 WHERE reserved > 0", RULE),
        (
            (
                "INSERT INTO accounts SELECT 'mine', neighboring, unit, NULL, false, '[]', NULL, 9, 0, 0 "
                "FROM accounts"
            ),
            PRIVILEGE,
        ),
        ("UPDATE accounts SET checksums = NULL", PRIVILEGE),
        ("UPDATE accounts SET failed_readings = 99", PRIVILEGE),
        ("UPDATE accounts SET max_windows = 1", PRIVILEGE),
        ("UPDATE accounts SET audit_sha256 = 'x', audit_plan_hash = 'x'", PRIVILEGE),
        ("DELETE FROM accounts", PRIVILEGE),
        ("DELETE FROM windows", PRIVILEGE),
        ("UPDATE entries SET payload = '{}'", PRIVILEGE),
        ("DELETE FROM entries", PRIVILEGE),
        ("TRUNCATE entries CASCADE", PRIVILEGE),
        ("INSERT INTO entries SELECT 99, hash, kind, time, payload, 'x' FROM entries LIMIT 1", RULE),
        ("UPDATE ledger SET ledger_id = 'x'", PRIVILEGE),
        ("UPDATE ledger SET head_sequence = 1", RULE),
        ("UPDATE names SET dataset = 'taxis'", PRIVILEGE),
        ("UPDATE charges SET charged = 1", PRIVILEGE),
        ("UPDATE charges SET state = 'reserved', drew = false WHERE state = 'drawing'", RULE),
        ("UPDATE charges SET state = 'abandoned', drew = false WHERE state = 'drawing'", RULE),
        ("UPDATE charges SET state = 'abandoned', draw_returned = true WHERE state = 'drawing'", RULE),
        ("UPDATE charges SET drawing_epoch = 0 WHERE state = 'drawing'", RULE),
        ("UPDATE charges SET witness = 'mine'", PRIVILEGE),
        ("UPDATE charges SET state = 'abandoned' WHERE state = 'published'", RULE),
        ("UPDATE charges SET manifest_sha256 = NULL WHERE state = 'published'", RULE),
        ("DELETE FROM staged_manifests", RULE),
        ("UPDATE staged_manifests SET content = 'x'", PRIVILEGE),
        ("INSERT INTO staged_manifests SELECT charge_id, 'x' FROM charges", RULE),
        ("DELETE FROM staged_files", RULE),
        ("UPDATE staged_files SET content = 'x'", PRIVILEGE),
        ("INSERT INTO staged_files SELECT charge_id, 'x', 'x' FROM charges WHERE state <> 'staged'", RULE),
        ("UPDATE plans SET content = 'x'", PRIVILEGE),
        ("DELETE FROM plans", PRIVILEGE),
        ("INSERT INTO movements VALUES ('account flights', 1, 0)", PRIVILEGE),
        ("DELETE FROM movements", PRIVILEGE),
        ("SELECT * FROM movements", PRIVILEGE),
        ("DELETE FROM charges", PRIVILEGE),
        ("UPDATE stores SET retired = true", PRIVILEGE),
        ("UPDATE stores SET uri = '/elsewhere'", PRIVILEGE),
        ("UPDATE stores SET last_marker = 0 WHERE last_marker > 0", RULE),
        ("DELETE FROM stores", PRIVILEGE),
        ("UPDATE accounts SET stores = '[]'", PRIVILEGE),
        ("UPDATE alembic_version SET version_num = '0'", PRIVILEGE),
        ("ALTER TABLE accounts DISABLE TRIGGER ALL", PRIVILEGE),
        ("DROP TRIGGER accounts_stay_spent ON accounts", PRIVILEGE),
        (
            "CREATE OR REPLACE FUNCTION ledger_refuses() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'",
            PRIVILEGE,
        ),
        ("SET session_replication_role = replica", PRIVILEGE),
        ("CREATE TABLE public.mine (id int)", PRIVILEGE),
        ("CREATE TEMPORARY TABLE ledger (id int)", PRIVILEGE),
        ("SET ROLE suffice_owner", PRIVILEGE),
        ("SELECT lo_create(0)", PRIVILEGE),
        ("SELECT lo_from_bytea(0, 'x')", PRIVILEGE),
    ],
    "owner": [
        ("UPDATE accounts SET spent = 0", PRIVILEGE),
        ("UPDATE accounts SET granted = 1", psycopg.errors.CheckViolation),
        ("UPDATE accounts SET per_window = NULL", PRIVILEGE),
        ("DELETE FROM accounts", PRIVILEGE),
        ("UPDATE windows SET reserved = 0", PRIVILEGE),
        ("UPDATE charges SET state = 'abandoned'", PRIVILEGE),
        ("INSERT INTO names VALUES ('mine', 'flights')", PRIVILEGE),
        ("UPDATE stores SET last_marker = 99", PRIVILEGE),
        ("INSERT INTO stores VALUES ('s', '/s', 1, 0, false)", PRIVILEGE),
        ("DELETE FROM stores", PRIVILEGE),
        ("DELETE FROM entries", PRIVILEGE),
        ("UPDATE entries SET payload = '{}'", PRIVILEGE),
        ("ALTER TABLE accounts DISABLE TRIGGER ALL", PRIVILEGE),
    ],
    "auditor": [
        ("UPDATE accounts SET granted = 9000000", PRIVILEGE),
        ("UPDATE accounts SET spent = 0", PRIVILEGE),
        ("SELECT * FROM accounts FOR UPDATE", PRIVILEGE),
        ("INSERT INTO entries SELECT 99, hash, kind, time, payload, 'x' FROM entries LIMIT 1", PRIVILEGE),
        ("UPDATE ledger SET head_sequence = 1", PRIVILEGE),
        ("UPDATE charges SET state = 'abandoned'", PRIVILEGE),
        ("DELETE FROM charges", PRIVILEGE),
        ("CREATE TABLE public.mine (id int)", PRIVILEGE),
        ("SELECT lo_creat(-1)", PRIVILEGE),
        ("SELECT lo_create(0)", PRIVILEGE),
        ("SELECT lo_from_bytea(0, 'x')", PRIVILEGE),
    ],
}


@pytest.fixture
def urls(postgres_server: Server, postgres_url: str, repository: Path) -> Iterator[dict[str, str]]:
    """A ledger made by its administrator, and the URL of one member of each role."""
    with create_ledger(postgres_url) as ledger:
        ledger.grant("first", epsilon=Fraction(1), reason="x")
    for _ in range(2):  # it may be run again
        execute(postgres_url, (repository / "deploy/postgres/roles.sql").read_text())
    members = {role: f"suffice_test_{role}_{token_hex(4)}" for role in ROLES}
    password = token_hex(8)
    for role, member in members.items():
        statement = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} IN ROLE {}")
        names = (sql.Identifier(member), sql.Literal(password), sql.Identifier(f"suffice_{role}"))
        execute(postgres_server.url, statement.format(*names))
    yield {role: as_user(postgres_url, member, password) for role, member in members.items()}
    for member in members.values():
        execute(postgres_server.url, sql.SQL("DROP ROLE {}").format(sql.Identifier(member)))


def test_each_role_does_its_work(urls: dict[str, str], make_request: MakeRequest) -> None:
    now = datetime(2026, 1, 31, tzinfo=UTC)

    def later() -> datetime:
        return now + timedelta(hours=1)

    with (
        open_ledger(urls["owner"], clock=lambda: now) as owner,
        open_ledger(urls["publisher"], clock=lambda: now) as publisher,
        open_ledger(urls["publisher"], clock=later) as rescuer,
        open_ledger(urls["auditor"], clock=lambda: now) as auditor,
    ):
        owner.grant("flights", epsilon=Fraction(2), reason="first")
        owner.grant("flights", epsilon=Fraction(3), sources=["/data"], reason="more")
        owner.grant(
            "taxis", epsilon=Fraction(3), per_window="day:month:UTC", sources=["/data"], reason="first"
        )
        for fields in ({"name": "a"}, {"dataset": "taxis", "name": "b", "window": "2013-01"}):
            charge = publisher.reserve(make_request(**fields))
            publisher.renew(charge)
            charge = publisher.mark(charge)
            charge = publisher.stage(publisher.enter_drawing(charge), MANIFEST, files={"n.parquet": b"n"})
            assert publisher.publish(charge).state == "published"
        publisher.abandon(publisher.reserve(make_request(name="c")), reason="x")
        zombie = publisher.reserve(make_request(name="d"))
        rescuer.abandon(rescuer.enter_drawing(rescuer.take_over(zombie)), reason="x")
        left = publisher.enter_drawing(publisher.reserve(make_request(name="d2", epsilon=Fraction(1, 2))))
        rescuer.return_draw(rescuer.take_over(left), reason="x")
        auditor.check(make_request(name="e"))
        assert [account.remaining for account in auditor.accounts()] == [1, 1, 2]
        assert auditor.find("flights", "a", "all") is not None
        owner.grant("flights", epsilon=Fraction(3), stores=["/srv"], reason="pin")
        owner.retire_store("store-1", reason="gone")
        owner.adopt_store("store-1", uri="/srv/moved")
        assert [(store.uri, store.retired) for store in publisher.stores()] == [("/srv/moved", False)]
        assert auditor.verify() == owner.verify() == publisher.verify() == ()


def test_no_role_does_anothers_work(urls: dict[str, str], make_request: MakeRequest) -> None:
    with open_ledger(urls["owner"]) as owner:
        owner.grant("flights", epsilon=Fraction(3), reason="first")
        with pytest.raises(LedgerError, match="permission denied"):
            owner.reserve(make_request())
    with open_ledger(urls["publisher"]) as publisher:
        publisher.reserve(make_request())
        for dataset in ("flights", "taxis"):
            with pytest.raises(LedgerError, match="permission denied"):
                publisher.grant(dataset, epsilon=Fraction(9), reason="x")
        with pytest.raises(LedgerError, match="permission denied"):
            publisher.retire_store("store-1", reason="x")
        with pytest.raises(LedgerError, match="permission denied"):
            publisher.adopt_store("store-1", uri="/elsewhere")
        with pytest.raises(LedgerError, match="permission denied"):
            publisher.reconcile((), beyond=99, reason="x")
    with open_ledger(urls["auditor"]) as auditor:
        with pytest.raises(LedgerError, match="permission denied"):
            auditor.reserve(make_request(name="b"))
        with pytest.raises(LedgerError, match="permission denied"):
            auditor.grant("taxis", epsilon=Fraction(9), reason="x")
        assert [account.remaining for account in auditor.accounts()] == [1, 2]
        assert auditor.verify() == ()


def test_direct_sql_gets_no_role_further(
    urls: dict[str, str], postgres_url: str, make_request: MakeRequest
) -> None:
    with create_ledger(postgres_url) as ledger:
        for dataset, grid in (("flights", None), ("taxis", "day:month:UTC")):
            ledger.grant(dataset, epsilon=Fraction(9), per_window=grid, sources=["/data"], reason="x")
            window = "2013-01" if grid else "all"
            a, b, _, d = (
                ledger.reserve(make_request(dataset=dataset, name=f"{dataset}-{name}", window=window))
                for name in "abcd"
            )
            ledger.stage(ledger.enter_drawing(d), MANIFEST, files={"n.parquet": b"n"})
            ledger.publish(ledger.stage(ledger.enter_drawing(a), MANIFEST))
            ledger.enter_drawing(b)
        before = ledger.accounts()
        for role, statements in FORBIDDEN.items():
            with connect(urls[role]) as connection:
                for statement, error in statements:
                    with pytest.raises(error):
                        connection.execute(statement.encode())
        assert ledger.accounts() == before
        assert ledger.verify() == ()


def test_a_publisher_writes_no_grant_into_the_chain(urls: dict[str, str]) -> None:
    statement = (
        "INSERT INTO entries SELECT head_sequence + 1, head_hash, '{}', '', '{{}}', 'x' FROM ledger; "
        "UPDATE ledger SET head_sequence = head_sequence + 1, head_hash = 'x'"
    )
    kinds = ("grant", "created", "skipped", "reconciled")
    for role, kind in (*(("publisher", kind) for kind in kinds), ("owner", "reserved")):
        with connect(urls[role]) as connection, pytest.raises(PRIVILEGE, match="writes no such entries"):
            connection.execute(statement.format(kind).encode())


def test_a_false_entry_of_a_publishers_own_kind_is_found(urls: dict[str, str]) -> None:
    with connect(urls["publisher"]) as connection:
        connection.execute(
            b"INSERT INTO entries SELECT head_sequence + 1, head_hash, 'staged', '', '{}', 'x' FROM ledger; "
            b"UPDATE ledger SET head_sequence = head_sequence + 1, head_hash = 'x'"
        )
    with open_ledger(urls["auditor"]) as auditor:
        assert "was altered" in auditor.verify()[0]
