"""From what cells are to have in common to what a request states of it: names, and files by their content."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from suffice.errors import UsageError, shortened
from suffice.pipeline.ask.borrowing.pooling import Pooling
from suffice.pipeline.ask.inference.pooled_sources import line_of
from suffice.pipeline.ask.pooling.series import pooling_of_windows
from suffice.pipeline.ask.publication.request import LONGEST, PooledTerms
from suffice.pipeline.terms.released.noisy_statistic import rows_alone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

_FILES = ("covariates", "adjacency")


def read_pooling(
    statistics: Sequence[NoisyStatistic], pooled: Any, *, are_windows: bool = False
) -> tuple[Pooling, PooledTerms]:
    """Return what cells of some statistics have in common, and the same as a request states it.

    Parameters
    ----------
    statistics : sequence of NoisyStatistic
        At least one cell of each.
    pooled : True, str, sequence of str or Pooling
        As ``Release.posterior`` takes it; tables have to be files.
    are_windows : bool
        Whether the cells are of all windows of a series, as ``Series.posterior`` takes them.

    Raises
    ------
    UsageError
        Where a name is none, a table is in memory, or a file cannot be read.
    """
    read_one = pooling_of_windows if are_windows else Pooling.of
    read = [
        read_one(rows_alone(statistic), pooled, line_of(rows_alone(statistic))) for statistic in statistics
    ]
    pooling = read[0]
    files = {name: _sha256(name, table) for name in _FILES if (table := getattr(pooling, name)) is not None}
    over = None if pooling.over is None else str(pooling.over)
    stated: dict[str, Any] = {
        "population": pooling.population,
        "within": pooling.within,
        "formula": pooling.formula,
        "over": over,
        **files,
    }
    try:
        return pooling, PooledTerms(**stated)
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"])
        message = f"pooled, {place}: a publication states it in 1 to {LONGEST:,} characters: write it shorter"
        raise UsageError(message) from None


def require_unchanged(pooling: Pooling, terms: PooledTerms) -> None:
    """Refuse an answer whose files have other bytes than the request states.

    Raises
    ------
    UsageError
    """
    for name in _FILES:
        stated = getattr(terms, name)
        if stated is not None and _sha256(name, getattr(pooling, name)) != stated:
            message = f"{name}: the file has changed while it was read: publish again"
            raise UsageError(message)


def _sha256(name: str, table: object) -> str:
    if not isinstance(table, str | os.PathLike):
        message = (
            f"{name}: a publication states its tables by their bytes, and this one is in memory: write it to "
            "a file, and name that"
        )
        raise UsageError(message)
    try:
        with Path(table).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        message = f"{name}: {shortened(str(table), 200)} cannot be read: {error.strerror}"
        raise UsageError(message) from None
