"""Published cells that borrow strength, read again: each beside itself alone, and their populations."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.errors import PublicationCorruptError, UsageError
from suffice.pipeline.terms.released.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SUMMARIES, _POOLS, _COEFFICIENTS = "-summaries.parquet", "-pools.parquet", "-coefficients.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPool:
    """Cells that borrow strength, as they were published.

    Attributes
    ----------
    cells : Table
        One row a cell, parameter and entry of it: keys, ``mean``, ``sd``, ``lower``, ``upper``;
        ``own_share``, ``outside``; and ``alone_mean`` to ``alone_upper`` of the cell alone.
    populations : Table
        One row a population: ``location``, ``spread``, ``slope`` and ``spread_slope`` with their standard
        deviations on the log scale, ``typical_size``, that location and spread are of, ``of_map`` of cells
        with neighbours, ``identified``; of a walk ``series``, ``times`` and ``step``. ``in_words`` says what
        was pooled with what.
    coefficients : Table
        One row a covariate of each population; empty where there are none.
    """

    cells: Table
    populations: Table
    coefficients: Table

    def __str__(self) -> str:
        return "\n\n".join(str(table) for table in (self.cells, self.populations, self.coefficients) if table)


def read_pool(
    names: Sequence[str], read: Callable[[str], bytes], origin: str, statistic: str | None = None
) -> PublishedPool:
    """Read the pooled cells of a publication, of its Parquet files.

    Parameters
    ----------
    names : sequence of str
        Of its files.
    read : callable
        Returns a file's bytes, by its name.
    origin : str
        What messages call the publication.
    statistic : str, optional
        Whose cells; may be left out where there are those of one.

    Raises
    ------
    UsageError
        Where it has no such pooled cells, has several and `statistic` is left out, or has them in other
        formats alone.
    PublicationCorruptError
        Where one of these files is no table.
    """
    pooled = [name.removesuffix(_POOLS) for name in names if name.endswith(_POOLS)]
    if not pooled:
        message = (
            f"the publication {origin} has no pooled cells as Parquet: publish with pooled, and parquet "
            "among the formats"
        )
        raise UsageError(message)
    wanted = pooled[0] if statistic is None and len(pooled) == 1 else statistic
    if wanted not in pooled:
        message = f"name the statistic whose pooled cells are wanted: {', '.join(pooled)}"
        raise UsageError(message)

    def table(ending: str, title: str) -> Table:
        name = f"{wanted}{ending}"
        rows = _rows(read(name), name, origin) if name in names else []
        return Table(rows, title=f"{wanted}: {title}")

    return PublishedPool(
        cells=table(_SUMMARIES, "each together, and alone"),
        populations=table(_POOLS, "the populations"),
        coefficients=table(_COEFFICIENTS, "covariates"),
    )


def _rows(data: bytes, name: str, origin: str) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(data)).to_pylist()
    except (pa.ArrowException, OSError, ValueError):
        message = f"the publication {origin} is corrupt: {name} is no table"
        raise PublicationCorruptError(message) from None
    return rows
