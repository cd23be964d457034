"""The how-to about buckets and hive folders, as it is written: from nothing to a release, and its rerun."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore import put

from suffice.buckets import connect
from suffice.errors import SpecError, UsageError
from suffice.pipeline.spec.spec import load_spec
from suffice.releasing.granting import source_prefix
from support.buckets import BUCKET, SECRET, variables
from support.source_page import PAGE, section

if TYPE_CHECKING:
    from pathlib import Path


SPEC = {
    "name": "test",
    "dataset": "test",
    "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
    "statistics": {"flag": {"family": "bernoulli", "column": "flag"}},
}


@pytest.mark.slow
def test_the_how_to_works_as_written(
    tmp_path: Path, repository: Path, s3_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables(s3_url).items():
        monkeypatch.setenv(name, value)
    bucket = connect(f"s3://{BUCKET}", retries=0)
    text = section((repository / PAGE).read_text(), "Parquet in buckets and hive folders")
    spec = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0]
    (tmp_path / "cancelled.yaml").write_text(spec)
    written = pa.BufferOutputStream()
    pq.write_table(pa.table({"cancelled": [True, False] * 500}), written)
    keys = re.findall(rf"s3://{BUCKET}/(\S+\.parquet)", text)
    assert len(keys) == 2
    put(bucket, keys[0], written.getvalue().to_pybytes())
    put(bucket, keys[1], b"no Parquet file, and no part of the window")
    commands = re.findall(r"^(suffice (?:ledger grant|release) .*)$", text, re.MULTILINE)
    assert len(commands) == 2
    said = [run(command, tmp_path) for command in (*commands, f"{commands[1]} --json")]
    assert "published" in said[1]
    rerun = json.loads(said[2])
    assert rerun["status"] == "already_published"
    assert rerun["remaining_epsilon"] == "0.5"
    empty = json.loads(run(f"{commands[1].replace('2013-01', '2013-03')} --json", tmp_path))
    assert empty["status"] == "published", "a month without a folder is one without rows"
    for output in said:
        assert SECRET not in output


@pytest.mark.parametrize(
    ("text", "prefix"),
    [("s3a://bucket/flights/", "s3://bucket/flights"), ("az://box@shop/a", "az://box@shop/a"), ("/", "/")],
)
def test_an_owner_grants_urls_as_specs_state_them(text: str, prefix: str) -> None:
    assert source_prefix(text, str) == prefix


@pytest.mark.parametrize("text", [f"s3://me:{SECRET}@bucket/a", f"s3://bucket/a?key={SECRET}", "gs://"])
def test_urls_that_may_hold_credentials_are_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(UsageError) as granted:
        source_prefix(text, str)
    spec = {**SPEC, "source": {"parquet": text}}
    with pytest.raises(SpecError, match=r"source\.parquet") as stated:
        load_spec(spec)
    for error in (granted.value, stated.value):
        assert SECRET not in str(error)


def run(command: str, directory: Path) -> str:
    words = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(words, cwd=directory, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
