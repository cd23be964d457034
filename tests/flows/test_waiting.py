"""How long a run waits for its dataset, and a stop for anything, whatever Prefect's server does."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import pytest
from prefect.exceptions import ObjectAlreadyExists
from prefect.runner import Runner
from prefect.settings import (
    PREFECT_API_REQUEST_TIMEOUT,
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    temporary_settings,
)

from suffice.flows import endings, running, serve

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Logger:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, text: str, *_: object) -> None:
        self.lines.append(text)


@pytest.fixture
def logger(monkeypatch: pytest.MonkeyPatch) -> _Logger:
    made = _Logger()
    monkeypatch.setattr(endings, "get_run_logger", lambda: made)
    return made


@pytest.mark.slow
def test_a_server_that_hangs_is_not_waited_for(logger: _Logger, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes connections, and answers nothing: by default each call would take minutes."""
    monkeypatch.setitem(running.SHORT_CALLS, PREFECT_API_REQUEST_TIMEOUT, 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/api"
        with temporary_settings({PREFECT_API_URL: url}):
            run = running.Run()
            started = time.monotonic()
            run.hold("passengers")
            assert time.monotonic() - started < 20.0
    (line,) = logger.lines
    assert line.startswith("the concurrency limit suffice-passengers is not held (")


@pytest.mark.parametrize("fails", [False, True])
def test_a_stop_of_what_serves_waits_for_no_server(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    async def pause(_: object) -> None:
        if fails:
            raise OSError
        await asyncio.sleep(1000)

    monkeypatch.setattr(Runner, "_pause_schedules", pause)
    monkeypatch.setattr(serve, "PAUSING_S", 0.05)
    started = time.monotonic()
    asyncio.run(serve._Serving()._pause_schedules())
    assert time.monotonic() - started < 10.0


def test_what_is_left_of_the_half_hour_is_waited_for_the_limit(
    logger: _Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    class Client:
        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def upsert_global_concurrency_limit_by_name(self, *_: object) -> None:
            clock[0] += 100.0

    @contextmanager
    def concurrency(_name: str, *, timeout_seconds: float, **_: Any) -> Iterator[None]:
        waited.append(timeout_seconds)
        yield

    def made_by_another(*_: object) -> None:
        raise ObjectAlreadyExists(http_exc=ValueError())

    clock = [0.0]
    monkeypatch.setattr(running, "get_client", lambda **_: Client())
    monkeypatch.setattr(running, "concurrency", concurrency)
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    run = running.Run()
    clock[0] = 250.0  # asked for earlier runs
    run.hold("passengers")
    clock[0] = 5000.0
    monkeypatch.setattr(Client, "upsert_global_concurrency_limit_by_name", made_by_another)
    run.hold("passengers")
    assert waited == [running.LONGEST_WAIT_S - 350.0, 1.0]
    assert logger.lines == []


def test_calls_before_the_work_are_short() -> None:
    assert running.SHORT_CALLS[PREFECT_CLIENT_MAX_RETRIES] == 1
    # Three calls that ask for earlier runs, and one that makes the limit: each twice.
    assert 4 * 2 * running.SHORT_CALLS[PREFECT_API_REQUEST_TIMEOUT] < running.LONGEST_WAIT_S / 10
