"""Loggers that are silent while a client works, and as they were afterwards."""

from __future__ import annotations

import logging
import time

import pytest

from suffice.errors import ClusterError
from suffice.pipeline.cluster import quiet_client as quieting
from suffice.pipeline.cluster.quiet_client import LOGGERS, quiet_client

_SECONDS = 30
"""For what takes a tenth of one on a quiet machine."""


def levels() -> list[int]:
    return [logging.getLogger(name).level for name in LOGGERS]


def is_silent() -> bool:
    return set(levels()) == {logging.CRITICAL + 1}


def lose() -> None:
    message = "lost"
    with pytest.raises(ClusterError), quiet_client():
        raise ClusterError(message)


def test_loggers_get_their_levels_back() -> None:
    before = levels()
    with quiet_client():
        assert is_silent()
        with quiet_client():
            assert is_silent()
        assert is_silent(), "the other one still works"
    assert levels() == before
    with pytest.raises(KeyError), quiet_client():
        raise KeyError
    assert levels() == before


def test_loggers_of_a_lost_client_get_them_back_later(monkeypatch: pytest.MonkeyPatch) -> None:
    before = levels()
    monkeypatch.setattr(quieting, "LATE_SECONDS", 0.2)
    lose()
    assert is_silent(), "its tasks may still end"
    lose()  # before the first is over: what is given back is not this silence
    end = time.monotonic() + _SECONDS
    while levels() != before:
        assert time.monotonic() < end
        time.sleep(0.01)
    with quiet_client():
        assert is_silent()
    assert levels() == before
