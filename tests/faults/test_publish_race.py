"""Of six processes that publish at once, one wins every round, and what it wrote stands whole."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from suffice.storage.objects.address import read_address
from support.buckets import Serialised, s3_server, variables
from support.racing import content, key, winners

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

N_WRITERS, N_ROUNDS = 6, 20


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serialised]:
    """Serve S3; the writers' processes inherit the environment that leads there."""
    with s3_server() as (url, application):
        for name, value in variables(url).items():
            monkeypatch.setenv(name, value)
        yield application


def check(uri: str) -> None:
    objects = read_address(uri).objects()
    for number, won in enumerate(winners(uri, n_writers=N_WRITERS, n_rounds=N_ROUNDS)):
        assert len(won) == 1
        assert objects.get(key(number), at_most=10**6) == content(won[0])
    assert objects.keys("") == sorted(map(key, range(N_ROUNDS)))


def test_one_of_six_wins_on_local_files(tmp_path: Path) -> None:
    check(str(tmp_path))
    assert sum(len(files) for _, _, files in os.walk(tmp_path)) == N_ROUNDS


@pytest.mark.slow
@pytest.mark.usefixtures("s3")
def test_one_of_six_wins_on_s3() -> None:
    check("s3://bucket/race")


def test_the_race_tells_a_server_that_replaces_objects(s3: Serialised) -> None:
    s3.honest = False
    won = winners("s3://bucket/race", n_writers=3, n_rounds=3)
    assert any(len(writers) > 1 for writers in won)


def test_the_race_tells_files_that_are_replaced(tmp_path: Path) -> None:
    won = winners(str(tmp_path), n_writers=3, n_rounds=3, renames=True)
    assert any(len(writers) > 1 for writers in won)
