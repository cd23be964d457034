"""Keys of S3 from a file of credentials: which count, and what is said where the file cannot be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from suffice.buckets import _keys_of_file
from suffice.errors import StoreError
from suffice.storage.releases.release_store import open_store

if TYPE_CHECKING:
    from pathlib import Path

VARIABLE = "AWS_SHARED_CREDENTIALS_FILE"
KEYS = """\
[default]
aws_access_key_id = of-the-file
aws_secret_access_key = a%secret

[other]
aws_access_key_id = of-another
aws_secret_access_key = s
aws_session_token = t

[half]
aws_access_key_id = alone
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file of credentials that the environment names, and nothing else."""
    path = tmp_path / "aws"
    path.write_text(KEYS, encoding="utf-8")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(VARIABLE, str(path))
    return path


def test_the_section_that_is_named_counts(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert file.exists()
    assert _keys_of_file() == {"access_key_id": "of-the-file", "secret_access_key": "a%secret"}
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert _keys_of_file() == {"access_key_id": "of-another", "secret_access_key": "s", "session_token": "t"}


def test_the_environment_comes_first(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.unlink()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-environment")
    assert _keys_of_file() == {}


@pytest.mark.parametrize(
    "broken", ["", "[default", "[default]\nx", "[half]\n", "absent", "\udcff", "profile"]
)
def test_a_file_that_cannot_be_used_is_refused(
    file: Path, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if broken == "absent":
        file.unlink()
    elif broken == "profile":
        monkeypatch.setenv("AWS_PROFILE", "half")
    else:
        file.write_bytes(f"{broken}\naws_secret_access_key secret-7f3a".encode(errors="surrogateescape"))
    with pytest.raises(StoreError) as caught:
        open_store("s3://bucket/releases")
    assert "secret-7f3a" not in str(caught.value)
    assert caught.value.__suppress_context__
