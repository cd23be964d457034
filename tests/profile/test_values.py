"""When two URLs name one ledger, and what is shown of an address."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from suffice.profile.values import is_inside, ledger_identity, redacted, same_ledger

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("given", "pinned", "same"),
    [
        ("postgresql+psycopg://u@db/ledger", "postgresql://u@db:5432/ledger", True),
        ("postgresql://u:secret@DB/ledger", "postgresql://u@db/ledger", True),
        ("postgresql://u@db/ledger?password=x", "postgresql://db/ledger", True),
        ("postgresql://v@db/ledger", "postgresql://u@db/ledger", False),
        ("postgresql://db/ledger", "postgresql://u@db/ledger", False),
        ("postgresql://u@db/other", "postgresql://u@db/ledger", False),
        ("postgresql://u@db2/ledger", "postgresql://u@db/ledger", False),
        ("postgresql://u@db:5433/ledger", "postgresql://u@db/ledger", False),
        ("postgresql://u@db/ledger?host=evil", "postgresql://u@db/ledger", False),
        ("postgresql://u@db/ledger?hostaddr=10.0.0.1", "postgresql://u@db/ledger", False),
        ("postgresql://u@db/ledger?service=evil", "postgresql://u@db/ledger", False),
        ("postgresql:///ledger", "postgresql://u@db/ledger", False),
        ("sqlite:////srv/a.db", "postgresql://u@db/ledger", False),
        ("sqlite:////srv/x/../a.db", "sqlite:////srv/a.db", True),
        ("sqlite:////srv/b.db", "sqlite:////srv/a.db", False),
        ("postgresql://u@db:99999999/ledger", "postgresql://u@db/ledger", False),
        ("nonsense", "sqlite:////srv/a.db", False),
    ],
)
def test_the_same_ledger(given: str, pinned: str, *, same: bool) -> None:
    assert same_ledger(given, pinned) is same


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").touch()
    (tmp_path / "link.db").symlink_to(tmp_path / "ledger.db")
    assert same_ledger(f"sqlite:///{tmp_path}/link.db", f"sqlite:///{tmp_path}/ledger.db")
    assert not ledger_identity(f"sqlite:///{tmp_path}/ledger.db").is_relative
    assert ledger_identity("sqlite:///ledger.db").is_relative


def test_the_directory_of_a_socket_names_a_server() -> None:
    url = "postgresql://u@/ledger?host=/run/postgresql"
    assert not ledger_identity(url).is_relative
    assert same_ledger("postgresql://u@/ledger?host=%2Frun%2Fpostgresql", url)
    assert not same_ledger("postgresql://u@/ledger?host=/tmp/mine", url)
    assert not same_ledger("postgresql://u@/ledger", url)


def test_a_store_is_inside_by_path_components() -> None:
    assert is_inside("/srv/releases", "/srv/releases")
    assert is_inside("/srv/releases/team", "/srv/releases")
    assert is_inside("/anything", "/")
    assert not is_inside("/srv/releases-of-others", "/srv/releases")
    assert is_inside("s3://lake/releases", "s3://lake")
    assert not is_inside("s3://lake2/releases", "s3://lake")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://u:hunter2@db/ledger", "postgresql://u:hunter2@db/ledger"),
        (
            "postgresql://db/ledger?sslmode=require&password=hunter2&x=1",
            "postgresql://db/ledger?sslmode=require",
        ),
        ("s3://key:hunter2/a@bucket/x", "s3://"),
        ("https://h/x?sig=hunter2", "https://h/x?sig="),
        ("https://h/x?X-Amz-Signature=hunter2", "https://h/x?X-Amz-Signature="),
        ("https://h/x?X-Amz-Security-Token=hunter2", "https://h/x?X-Amz-Security-Token="),
        ("postgresql://u:a hunter2@db/ledger", "postgresql://"),
        ("/srv/releases", "/srv/releases"),
    ],
)
def test_secrets_are_not_shown(address: str, shown: str) -> None:
    text = redacted(address)
    assert "hunter2" not in text
    assert text == redacted(shown) or text.startswith(shown)
