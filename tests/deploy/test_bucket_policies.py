"""The policies of deploy/roles for buckets: each role can do its work on S3, and nothing else.

Those of Google and Azure are not run: no server here enforces them. Their shape is checked.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import obstore
import pytest
from obstore.exceptions import BaseError

from suffice import open_release
from suffice.buckets import connect
from suffice.errors import StoreError
from suffice.storage.ledger.charge import ChargeState
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.operations.recovery import recover
from suffice.storage.operations.verify_store import verify_store
from suffice.storage.operations.withdrawing import withdraw
from suffice.storage.releases.release_store import open_store
from support.bucket_policies import ADMINISTRATOR, Policed, is_allowed, read_policy
from support.buckets import BUCKET, Serialised, serve, variables
from support.paid import Books, open_books, pay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLACES = {
    "SOURCE_BUCKET": "rows",
    "SOURCE_PREFIX": "flights",
    "BUCKET": BUCKET,
    "PREFIX": "policed",
}
ROLES = ("rows-reader", "publisher", "posterior-publisher", "withdrawer", "reader", "publications-reader")
RELEASE = "policed/flights/2013-01/0123456789abcdef"
STANDING = (
    "policed/suffice.json",
    "policed/charges/000/000/000/002",
    *(f"{RELEASE}/{name}" for name in ("manifest.json", "cancelled.parquet", "withdrawn.json")),
    "policed/probe-1",
    "policed/publications/probe-1",
    f"policed/publications/{'a' * 32}/manifest.json",
)
READS_STORE = {"publisher", "posterior-publisher", "withdrawer", "reader"}
MAY: dict[tuple[str, str], set[str]] = {
    ("get", f"{RELEASE}/manifest.json"): READS_STORE,
    ("get", "policed/suffice.json"): READS_STORE,
    ("get", f"policed/publications/{'a' * 32}/manifest.json"): READS_STORE | {"publications-reader"},
    ("list", "policed/"): READS_STORE,
    ("list", "policed/publications/"): READS_STORE | {"publications-reader"},
    ("list", "other/"): set(),
    ("list", ""): set(),
    ("get", "other/object"): set(),
    ("create", "other/object"): set(),
    ("create", f"{RELEASE}/delays.parquet"): {"publisher"},
    ("create", "policed/flights/2013-02/0123456789abcdef/manifest.json"): {"publisher"},
    ("create", "policed/charges/000/000/000/003"): {"publisher"},
    ("create", "policed/flights/2013-02/0123456789abcdef/withdrawn.json"): {"withdrawer"},
    ("create", f"policed/publications/{'b' * 32}/manifest.json"): {"posterior-publisher"},
    ("replace", f"{RELEASE}/manifest.json"): set(),
    ("replace", "policed/suffice.json"): set(),
    ("replace", f"policed/publications/{'a' * 32}/manifest.json"): set(),
    ("delete", "policed/probe-1"): {"publisher"},
    ("delete", "policed/publications/probe-1"): {"posterior-publisher"},
    ("delete", f"{RELEASE}/cancelled.parquet"): {"publisher"},
    ("delete", f"{RELEASE}/manifest.json"): set(),
    ("delete", f"{RELEASE}/withdrawn.json"): set(),
    ("delete", "policed/charges/000/000/000/002"): set(),
    ("delete", "policed/suffice.json"): set(),
    ("delete", f"policed/publications/{'a' * 32}/manifest.json"): set(),
}
"""What is tried, and who may."""


@pytest.fixture(scope="module")
def policies(repository: Path) -> dict[str, Any]:
    folder = repository / "deploy/roles/s3"
    return {path.stem: read_policy(path.read_text(), **PLACES) for path in sorted(folder.glob("*.json"))}


@pytest.fixture
def policed(policies: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Policed]:
    """A bucket behind the policies; `act_as` chooses who asks."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    roles = {name: policies[name] for name in ROLES}
    moto = Serialised(DomainDispatcherApplication(create_backend_app))
    guard = Policed(moto, roles, policies["store-bucket"])
    with serve(guard, as_user=ADMINISTRATOR) as url:
        for name, value in variables(url).items():
            monkeypatch.setenv(name, value)
        act_as(ADMINISTRATOR, monkeypatch)
        yield guard


def act_as(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", who)


def test_every_role_is_tried_and_nobody_else_has_a_policy(policies: dict[str, Any]) -> None:
    assert policies.keys() == {*ROLES, "store-bucket"}


@pytest.mark.slow
def test_each_role_may_do_what_is_listed_and_no_more(
    policed: Policed, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stock()
    for (what, key), allowed in MAY.items():
        for who in (*ROLES, "nobody"):
            act_as(who, monkeypatch)
            done = _is_done(what, key)
            assert done == (who in allowed), (who, what, key)
            if done and what not in {"get", "list"}:
                act_as(ADMINISTRATOR, monkeypatch)
                _restore(what, key)
    assert policed.denied


def _stock() -> None:
    """Put what every attempt finds, and nothing else."""
    bucket = connect(f"s3://{BUCKET}", retries=0)
    _empty()
    for key in STANDING:
        obstore.put(bucket, key, b"x")


def _empty() -> None:
    bucket = connect(f"s3://{BUCKET}", retries=0)
    for page in obstore.list(bucket, "policed"):
        obstore.delete(bucket, [entry["path"] for entry in page])


def _restore(what: str, key: str) -> None:
    bucket = connect(f"s3://{BUCKET}", retries=0)
    if what == "create":
        obstore.delete(bucket, key)
    else:
        obstore.put(bucket, key, b"x")


def _is_done(what: str, key: str) -> bool:
    bucket = connect(f"s3://{BUCKET}", retries=0)
    try:
        if what == "get":
            obstore.get(bucket, key).bytes()
        elif what == "list":
            list(obstore.list(bucket, key or None))
        elif what == "delete":
            obstore.delete(bucket, key)
        else:
            obstore.put(bucket, key, b"y", mode="create" if what == "create" else "overwrite")
    except (BaseError, OSError) as error:
        assert "403" in str(error) or "AccessDenied" in str(error) or "denied" in str(error).lower(), error  # noqa: PT017
        return False
    return True


def test_the_reader_of_rows_reads_rows_only(policies: dict[str, Any]) -> None:
    mine, rows = [policies["rows-reader"]], "arn:aws:s3:::rows"
    assert is_allowed(mine, "s3:GetObject", f"{rows}/flights/2013-01.parquet", {})
    assert is_allowed(mine, "s3:ListBucket", rows, {"s3:prefix": "flights/"})
    assert not is_allowed(mine, "s3:ListBucket", rows, {"s3:prefix": "people/"})
    for action in ("s3:PutObject", "s3:DeleteObject", "s3:GetBucketPolicy", "s3:PutBucketPolicy"):
        assert not is_allowed(mine, action, f"{rows}/flights/2013-01.parquet", {})
    for who in set(ROLES) - {"rows-reader"}:
        assert not is_allowed([policies[who]], "s3:GetObject", f"{rows}/flights/2013-01.parquet", {}), who
    anybody = [policies["reader"], policies["store-bucket"]]
    plain: dict[str, str | None] = {"aws:SecureTransport": "false"}
    assert not is_allowed(anybody, "s3:GetObject", f"arn:aws:s3:::{BUCKET}/{RELEASE}/manifest.json", plain)


@pytest.mark.audit
def test_the_work_is_done_under_the_policies(
    policed: Policed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release, a recovery that removes files, a reader, a withdrawal: by those who may, and by no other."""
    uri = f"s3://{BUCKET}/policed"
    _empty()
    made = open_books(tmp_path)
    act_as("publisher", monkeypatch)
    with made.ledger as ledger:
        store = open_store(uri, ledger_id=ledger.ledger_id, create=True)
        books = Books(directory=tmp_path, ledger=ledger, store=store)
        charge = pay(books, "flights")
        left = pay(books, "left", until="written")
    from datetime import UTC, datetime, timedelta

    later = datetime.now(UTC) + timedelta(hours=1)
    with open_ledger(f"sqlite:///{books.database}", clock=lambda: later) as ledger:
        report = recover(ledger, lambda place: open_store(place, ledger_id=ledger.ledger_id))
        assert report.ok, str(report)
        (done,) = report.charges
        assert (done.charge_id, done.after) == (left.charge_id, ChargeState.ABANDONED)
        assert done.removed
        assert policed.denied == []
        where = store.release_uri(charge.name, charge.edition, charge.release_id)
        for who in ("publisher", "reader", "publications-reader", "rows-reader"):
            act_as(who, monkeypatch)
            with pytest.raises(StoreError):
                withdraw(where, reason="wrong", created=later)
        act_as("reader", monkeypatch)
        assert open_release(where).name == "flights"
        assert verify_store(open_store(uri)).problems == ()
        act_as("publications-reader", monkeypatch)
        with pytest.raises(StoreError):
            open_release(where)
        act_as("withdrawer", monkeypatch)
        withdraw(where, reason="wrong", created=later)
        act_as("reader", monkeypatch)
        assert open_release(where, allow_withdrawn=True).name == "flights"


def test_a_policy_that_forgets_its_denials_is_seen(policies: dict[str, Any]) -> None:
    """The control: without what they deny, the same requests pass."""
    manifest = f"arn:aws:s3:::{BUCKET}/{RELEASE}/manifest.json"
    replacing: dict[str, str | None] = {"s3:if-none-match": None}
    assert not is_allowed([policies["publisher"]], "s3:PutObject", manifest, replacing)
    forgetful = [
        {
            "Statement": [
                statement
                for statement in policies["publisher"]["Statement"]
                if statement["Effect"] == "Allow"
            ]
        }
    ]
    assert is_allowed(forgetful, "s3:PutObject", manifest, replacing)


def test_google_bindings_have_the_shape_of_a_policy_and_bound_every_write(repository: Path) -> None:
    folder = repository / "deploy/roles/google"
    known = {"storage.objectViewer", "storage.objectCreator", "sufficeObjectRemover"}
    seen = set()
    for path in (folder / "store-bucket.json", folder / "rows-bucket.json"):
        policy = json.loads(path.read_text())
        assert policy.keys() == {"version", "bindings"}
        assert policy["version"] == 3, "conditions need version 3"
        for binding in policy["bindings"]:
            assert binding.keys() == {"role", "members", "condition"}
            assert binding["role"].rpartition("roles/")[2] in known
            (member,) = binding["members"]
            seen.add(re.fullmatch(r"serviceAccount:([a-z-]+)@PROJECT\.iam\.gserviceaccount\.com", member)[1])  # type: ignore[index]
            expression = binding["condition"]["expression"]
            assert len(binding["condition"]["title"]) <= 100
            assert expression.count("(") == expression.count(")")
            for part in expression.split(" || "):
                assert "PREFIX/" in part, "nothing is granted on the whole bucket"
    assert seen == set(ROLES)
    remover = json.loads((folder / "object-remover.json").read_text())
    assert remover["includedPermissions"] == ["storage.objects.delete"]


def test_azure_assignments_name_defined_roles_and_bound_every_path(repository: Path) -> None:
    folder = repository / "deploy/roles/azure"
    definitions = json.loads((folder / "role-definitions.json").read_text())
    actions = {definition["Name"]: definition["DataActions"] for definition in definitions}
    assert all(not definition["Actions"] for definition in definitions), "none manages the account"
    assignments = json.loads((folder / "role-assignments.json").read_text())
    for assignment in assignments:
        assert assignment.keys() == {"principal", "role", "scope", "conditionVersion", "condition"}
        assert assignment["conditionVersion"] == "2.0"
        assert assignment["scope"].startswith("/subscriptions/")
        assert assignment["condition"].count("(") == assignment["condition"].count(")")
        assert "PREFIX/" in assignment["condition"]
        (action,) = actions[assignment["role"]]
        assert (
            f"ActionMatches{{'{action}'}}" in assignment["condition"]
            or "Blob.List" in assignment["condition"]
        )
        assert not action.endswith("/write"), "which would replace blobs"
    assert {assignment["principal"] for assignment in assignments} == set(ROLES)
