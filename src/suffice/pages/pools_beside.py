"""Pools that were published of a release, as its page shows them: each cell together beside itself alone.

Files are of a store that others write to: rows and numbers are looked at, and what does not fit is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.errors import SufficeError
from suffice.pages.published_tables import LARGEST_PARQUET, MOST_PAIRED, cut, rows_of
from suffice.pipeline.ask.borrowing.side_by_side import ALONE
from suffice.pipeline.ask.borrowing.walk import WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.storage.publications.publication import Publication

_NUMBERS = ("mean", "sd", "lower", "upper")
_OF_CELLS = frozenset(
    {"parameter", "own_share", "outside", *_NUMBERS, *(f"{ALONE}{name}" for name in _NUMBERS)}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolBeside:
    """The cells of one statistic of a release, pooled and published.

    Attributes
    ----------
    publication_id : str
    mass : float
        Of the intervals.
    kind : str
        Of the intervals.
    rows : list of dict
        Of the release's cells, as ``beside_alone`` returns them.
    n_pooled : int
        Cells, parameters and entries that were pooled.
    over_windows : bool
        Whether cells of other windows are among them.
    is_identified : bool
        Whether the cells tell the spread of every population.
    """

    publication_id: str
    mass: float
    kind: str
    rows: Sequence[Mapping[str, Any]]
    n_pooled: int
    over_windows: bool
    is_identified: bool

    def explored(self, columns: Sequence[str], root: str, uri: str) -> dict[str, Any]:
        """Return what the explorer reads of it.

        Parameters
        ----------
        columns : sequence of str
            Groups of the statistic, in the manifest's order.
        root : str
            The way from the page to the catalogue's root.
        uri : str
            Of the publication, for lines that readers copy.
        """
        rows = [_explored(row, columns) for row in self.rows]
        entries = len({tuple(row["of"][len(columns) :]) for row in rows})
        return {
            "link": f"{root}publications/{self.publication_id}/index.html",
            "uri": uri,
            "mass": self.mass,
            "kind": self.kind,
            "others": self.n_pooled // max(entries, 1) - 1,
            "over_windows": self.over_windows,
            "is_identified": self.is_identified,
            "rows": rows,
        }


def pools_beside(release: Release, publications: Sequence[Publication]) -> dict[str, PoolBeside]:
    """Return the pools of a release's statistics; of several of one, the first of those with the most cells.

    Parameters
    ----------
    release : Release
    publications : sequence of Publication
        That rest on it, the newest first. What cannot be read is left out: its own page says so.
    """
    pools: dict[str, PoolBeside] = {}
    for publication in publications:
        request = publication.request
        if not request.get("pooled"):
            continue
        for asked in request["statistics"]:
            name = asked["statistic"]
            try:
                pool = _pool(release, publication, asked) if name in release.noisy else None
            except SufficeError:
                continue
            if pool is not None and (name not in pools or len(pool.rows) > len(pools[name].rows)):
                pools[name] = pool
    return pools


def _pool(release: Release, publication: Publication, asked: Mapping[str, Any]) -> PoolBeside | None:
    request, name = publication.request, asked["statistic"]
    columns = list(release.plan_of(name).groups)
    every = _rows(publication, f"{name}-summaries")
    populations = _rows(publication, f"{name}-pools")
    rows = [row for row in every if _is_cell(row, columns)]
    over_windows = len(request["releases"]) > 1
    if over_windows:
        rows = [row for row in rows if row.get(WINDOW) == release.window]
    if not rows or not populations:
        return None
    return PoolBeside(
        publication_id=publication.publication_id,
        mass=float(request["mass"]),
        kind=asked["interval"],
        rows=rows,
        n_pooled=len(every),
        over_windows=over_windows,
        is_identified=all(row.get("identified") is True for row in populations),
    )


def _rows(publication: Publication, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table, whole; none where it is too large or not published as Parquet."""
    entries = [
        file
        for file in publication.files
        if file.name == f"{table}.parquet" and file.role == "summaries" and file.size <= LARGEST_PARQUET
    ]
    if not entries or (entries[0].rows or 0) > MOST_PAIRED:
        return []
    rows = rows_of(publication, entries, MOST_PAIRED)
    return [{cut(column): cut(value) for column, value in row.items()} for row in rows]


def _is_cell(row: Mapping[str, Any], columns: Sequence[str]) -> bool:
    numbers = [row.get(name) for name in _NUMBERS]
    return all(column in row for column in columns) and all(
        isinstance(number, int | float) and math.isfinite(number) for number in numbers
    )


def _explored(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """Return a row by its keys and its entry, as the explorer names it."""
    entry = str(row.get("parameter", ""))
    labels = "".join(f"[{value}]" for value in _labels(row, columns))
    own_share = row.get("own_share")
    is_share = isinstance(own_share, float) and 0.0 <= own_share <= 1.0
    return {
        "of": [*(str(row[column]) for column in columns), f"{entry}{labels}"],
        "numbers": [*(float(row[name]) for name in _NUMBERS), own_share if is_share else None],
    }


def _labels(row: Mapping[str, Any], columns: Sequence[str]) -> Iterator[str]:
    for column, value in row.items():
        if column not in columns and column not in _OF_CELLS and column != WINDOW and value not in (None, ""):
            yield str(value)
