"""Draws of the probabilities of a statistic's count tables, a table at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.families.naive_bayes import estimated_tables

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.statistics.count_table import CountTable
    from suffice.typing import Floats


def tables_of(posterior: Posterior) -> tuple[CountTable, ...]:
    """Return the tables whose probabilities a posterior is of, in the order of its entries."""
    if posterior.constants is None:
        message = f"{posterior.statistic} has no count tables"
        raise UsageError(message)
    if posterior.family == "naive_bayes":
        return estimated_tables(posterior.constants)
    return posterior.constants.tables


def drawn_tables(posterior: Posterior, draws: int, rng: np.random.Generator) -> list[Floats]:
    """Draw all tables jointly, each of shape (draws, n_cells, *table.shape).

    A table is of its last variable given the others; the only one of a contingency table is of all.
    """
    tables = tables_of(posterior)
    drawn = posterior.sample(draws, rng)["probability"]
    parts = np.split(drawn, np.cumsum([table.size for table in tables])[:-1], axis=2)
    return [part.reshape(*part.shape[:2], *table.shape) for part, table in zip(parts, tables, strict=True)]
