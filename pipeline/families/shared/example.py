"""What a family shows of itself: an entry of a spec, and a case in which its posterior can be calibrated."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class ColumnType(StrEnum):
    """What a column of an example holds."""

    BOOLEAN = "boolean"
    NUMBER = "number"
    TEXT = "text"
    TIME = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A small statistic, as a spec states it.

    Parameters
    ----------
    entry : dict
        The entry without ``family``; numbers are text, as YAML gives them.
    columns : dict of str to ColumnType
        The columns that it reads, and what they hold.
    """

    entry: Mapping[str, Any]
    columns: Mapping[str, ColumnType]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerativeCase:
    """A statistic and a prior under which fewer than one record in 10^5 is clipped.

    Posteriors are calibrated in it: clipping decides nothing there. The predictors of a regression are the
    exception; their prior is as wide as their bounds.

    Parameters
    ----------
    entry : dict
        The entry without ``family``, as in ``Example``.
    prior : str or None
        The prior that parameters are drawn from, as text; None for the default prior.
    """

    entry: Mapping[str, Any]
    prior: str | None = None
