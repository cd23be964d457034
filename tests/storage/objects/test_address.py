"""Where objects are kept: what names a place, what is refused, and that nothing secret is repeated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from suffice.errors import StoreError, UsageError
from suffice.storage.objects.address import read_address
from suffice.storage.objects.local_files import LocalFiles

if TYPE_CHECKING:
    from pathlib import Path


def test_local_paths_and_file_uris_are_read_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_address("a b").uri == str(tmp_path.resolve() / "a b")
    assert read_address(f"file://{tmp_path}/a%20b").uri == str(tmp_path.resolve() / "a b")
    assert read_address(f"file://localhost{tmp_path}/./a b/").uri == str(tmp_path.resolve() / "a b")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert read_address("link").uri == str(tmp_path.resolve() / "target")
    files = read_address("link").objects()
    assert isinstance(files, LocalFiles)
    assert files.root == tmp_path.resolve() / "target"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://my.bucket-1/a//b/", "s3://my.bucket-1/a/b"),
        ("S3A://bucket/a", "s3://bucket/a"),
        ("gs://some_bucket/a=1/B.c+d", "gs://some_bucket/a=1/B.c+d"),
        ("az://container/a", "az://container/a"),
        ("azure://container/a", "az://container/a"),
        ("adl://container/a", "az://container/a"),
        ("abfs://container/a", "az://container/a"),
        ("abfss://container@account.dfs.core.windows.net/a", "az://container@account/a"),
        ("abfs://container@account.blob.core.windows.net", "az://container@account"),
        ("az://container@account/a", "az://container@account/a"),
    ],
)
def test_every_spelling_of_a_bucket_has_one_uri_that_reads_back(written: str, read: str) -> None:
    address = read_address(written)
    assert address.uri == read
    assert read_address(read) == address


def test_parents_end_at_the_bucket() -> None:
    address = read_address("s3://bucket/a/b")
    assert [address.parent.uri, address.parent.parent.uri] == ["s3://bucket/a", "s3://bucket"]
    assert address.parent.parent.parent == address.parent.parent


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "\0",
        "file://",
        "file://host/path",
        "file:///path?secret=1",
        "s3://key:secret@bucket/x",
        "s3://secret@bucket/x",
        "s3://bucket/x?X-Amz-Signature=secret",
        "s3://bucket/x?",
        "s3://bucket/x#secret",
        "s3://bucket:9000/secret",
        "s3://Bucket/secret",
        "s3:///secret",
        "s3:/secret/x",
        "s3://bucket/a/../secret",
        "s3://bucket/./secret",
        "s3://bucket/sec%20ret",
        "s3://bucket/secret key",
        "s3://bucket/secret\nx",
        "s3://[secret/x",
        "gs://secret@bucket/x",
        "az://container:secret@account/x",
        "az://Secret+/=@account/x",
        "abfss://container@secret.example.com/x",
        "abfss://container:secret@account.dfs.core.windows.net/x",
        "az://container/x?sv=2024&sig=secret",
        "https://x:secret@y",
        "https://bucket.s3.amazonaws.com/x?X-Amz-Signature=secret",
        "memory:///secret",
    ],
)
def test_other_places_are_refused_without_repeating_what_may_be_secret(uri: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_address(uri)
    assert "secret" not in str(caught.value).lower()
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("uri", ["s3://secret@bucket/x", "gs://bucket/x?sig=secret", "az://c/x#secret"])
def test_who_writes_credentials_is_told_where_they_belong(uri: str) -> None:
    with pytest.raises(UsageError, match="come from the environment"):
        read_address(uri)


def test_settings_that_cannot_be_used_are_an_error_without_their_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ALLOW_HTTP", "a-secret")
    with pytest.raises(StoreError, match="settings for s3:// cannot be used") as caught:
        read_address("s3://bucket/x").objects()
    assert "a-secret" not in str(caught.value)
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(StoreError, match="settings for az:// cannot be used"):
        read_address("az://container/x").objects()
    read_address("az://container@account/x").objects()


def test_buckets_need_no_client_before_they_are_opened() -> None:
    script = (
        "import json, sys\n"
        "from suffice.storage.objects.address import read_address\n"
        "read_address('s3://bucket/x'), read_address('x').objects()\n"
        "print(json.dumps('obstore' in sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, env={**os.environ}
    )
    assert json.loads(done.stdout) is False
