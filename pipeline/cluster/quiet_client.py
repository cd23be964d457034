"""A client of a cluster that writes no log: what it lost is told by one error of ours."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from suffice.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterator

LOGGERS = (
    "distributed",
    "distributed.client",
    "distributed.gc",
    "tornado",
    "tornado.application",
    "asyncio",
)
"""Of what a client runs on. The last says of tasks that nobody waits for when they are collected, late."""


@contextmanager
def quiet_client() -> Iterator[None]:
    """Let a client write no log: one error of ours says that a scheduler is lost, and no traceback before it.

    Of a lost one tasks end later, so that the loggers stay silent then.
    """
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    is_lost = False
    try:
        yield
    except ClusterError:
        is_lost = True
        raise
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(logging.CRITICAL + 1 if is_lost else level)
