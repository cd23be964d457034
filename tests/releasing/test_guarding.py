"""Waiting for another run, and interrupts that end a wait."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from suffice.errors import ChargeInProgressError, StoreError, WrongStoreError
from suffice.releasing.guarding import deferred_interrupts, uncharged, wait_for
from support.bucket_server import bucket_server
from support.buckets import variables
from support.making import make_workspace

if TYPE_CHECKING:
    from pathlib import Path


def test_a_run_waits_until_the_other_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("suffice.releasing.guarding.time.sleep", slept.append)
    others = [ChargeInProgressError("in progress", seconds=seconds) for seconds in (118.0, 0.5)]
    said: list[str] = []

    def work() -> str:
        if others:
            raise others.pop(0)
        return "published"

    assert wait_for(work, wait=True, notice=said.append) == "published"
    assert said == ["waiting: in progress"] * 2
    assert slept == [2.0, 0.7]


def test_without_wait_it_is_told_at_once() -> None:
    def work() -> None:
        message = "in progress"
        raise ChargeInProgressError(message, seconds=118)

    with pytest.raises(ChargeInProgressError) as caught:
        wait_for(work, wait=False, notice=lambda _: None)
    assert caught.value.seconds == 118


def test_an_interrupt_ends_the_wait_and_not_the_block() -> None:
    with deferred_interrupts() as interrupts:
        assert interrupts.sleep(0.01)
        assert not interrupts
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
        began = time.monotonic()
        assert not interrupts.sleep(60)
        assert time.monotonic() - began < 30
        assert interrupts


@pytest.mark.slow
def test_a_store_that_is_away_before_the_charge_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = replace(make_workspace(tmp_path), store="s3://bucket/releases")
    with bucket_server() as server:
        for name, value in variables(server.url).items():
            monkeypatch.setenv(name, value)
        server.fail(503, b"a signed address")
        with pytest.raises(StoreError) as caught:
            workspace.run()
        text = str(caught.value)
        assert "unavailable (status 503)" in text
        assert text.endswith("this run charged nothing: run the same command again once that has passed")
        assert workspace.charge() is None
        server.recover()
        workspace.run()


@pytest.mark.parametrize("error", [WrongStoreError("moved"), StoreError("full of others")])
def test_what_does_not_pass_is_left_as_it_is(error: StoreError) -> None:
    with pytest.raises(type(error)) as caught, uncharged():
        raise error
    assert caught.value is error
