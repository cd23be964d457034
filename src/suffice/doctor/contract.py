"""The contract of a check: it looks at a place, gives findings, changes nothing and shows no secret."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from suffice.errors import bounded_message
from suffice.pipeline.terms.declaration.documents import printed
from suffice.pipeline.terms.declaration.wording import escaped

if TYPE_CHECKING:
    from suffice.profile.settings import Settings


class State(StrEnum):
    """``ok``; ``warning``: it works, and should not stay so; ``problem``; ``skipped``: nothing to look at."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What a check saw, before it is known whose finding it is.

    Attributes
    ----------
    state : State
    observed : str
        What is there, in one line.
    remedy : str
        What to do; empty where nothing is.
    """

    state: State
    observed: str
    remedy: str = ""


@printed("check state found=observed remedy")
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Fact):
    """A fact, and the name of its check."""

    check: str

    @classmethod
    def of(cls, check: str, fact: Fact) -> Self:
        """Return what a check saw, in lines that can be printed."""
        return cls(check=check, state=fact.state, observed=_line(fact.observed), remedy=_line(fact.remedy))


def ok(observed: str) -> Fact:
    """Return what is as it should be."""
    return Fact(state=State.OK, observed=observed)


def warning(observed: str, remedy: str) -> Fact:
    """Return what works, and should not stay so."""
    return Fact(state=State.WARNING, observed=observed, remedy=remedy)


def problem(observed: str, remedy: str) -> Fact:
    """Return what keeps an installation from its work, or breaks a promise."""
    return Fact(state=State.PROBLEM, observed=observed, remedy=remedy)


def skipped(observed: str) -> Fact:
    """Return that there was nothing to look at."""
    return Fact(state=State.SKIPPED, observed=observed)


Check = Callable[["Settings"], Iterator[Fact]]
"""Looks at one part of a place. An error of ours that it raises is a problem that says what to do."""


def _line(text: str) -> str:
    return escaped(bounded_message(text))
