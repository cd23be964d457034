"""Tables of a publication for its page: their rows, forests of intervals, and what contradicts them."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from suffice.data_files.first_rows import MOST_COLUMNS, first_rows, stated_source
from suffice.errors import PublicationCorruptError
from suffice.pages.drawing import DrawnInterval, common_scale, fitted, interval_text, row, row_axis
from suffice.pages.pooled_forest import PairedForest, cell_names, forests_of_parameters
from suffice.pages.release_page import MOST_TABLE_ROWS
from suffice.pages.statistic_picture import ForestRow
from suffice.pipeline.spec.about import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from markupsafe import Markup

    from suffice.pipeline.spec.about import About
    from suffice.storage.publications.publication import Publication, PublishedEntry

LARGEST_PARQUET = 64 * 2**20
LARGEST_JSON = 8 * 2**20
"""In bytes; parsed, JSON takes many times that."""
MOST_TABLES = 16
MOST_PICTURE_ROWS = 60
MOST_PAIRED = 20_000
"""Cells that a picture of pooled ones is made of."""
_UNIDENTIFIED = (
    "The cells do not tell the spread of their population: its hyperprior decides how much they borrow. Each "
    "cell alone is shown first."
)
_LONGEST_TEXT = 200
_LONGEST_NOTE, _MOST_NOTES = 600, 4
_MIDDLES, _ENDS, _SD = ("mean", "median"), ("lower", "upper"), "sd"
_PART = re.compile(r"(.+-summaries)-([0-9]{5})\.parquet", re.ASCII)
_RANK = {"parquet": 0, "json": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """Intervals of one parameter, drawn on one scale.

    Attributes
    ----------
    name : str
        Of the parameter; empty where the table has no such column.
    middle : str
        What the ticks are: ``mean`` or ``median``.
    axis : Markup
    rows : tuple of ForestRow
    n_rows : int
        How many there are; the first stand in `rows`.
    """

    name: str
    middle: str
    axis: Markup
    rows: tuple[ForestRow, ...]
    n_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """A table of summaries.

    Attributes
    ----------
    name : str
        Of its file, without the ending.
    rows : list of dict
        The first ones, texts cut.
    n_rows : int
        How many there are, in all parts together.
    forests : tuple of Forest
        Empty where its rows are no intervals.
    note : str
        Why no rows are shown; else empty.
    conflicts : tuple of str
        What contradicts its intervals, as the file states it.
    words : tuple of str
        Of pooled cells, what was pooled with what.
    paired : tuple of PairedForest
        Of pooled cells, each beside itself alone.
    """

    name: str
    rows: Sequence[Mapping[str, Any]]
    n_rows: int
    forests: tuple[Forest, ...] = ()
    note: str = ""
    title: str = ""
    conflicts: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    paired: tuple[PairedForest, ...] = ()

    @property
    def has_picture(self) -> bool:
        """Whether its rows are drawn."""
        return bool(self.forests or self.paired)


def published_tables(publication: Publication, about: About = NOTHING) -> list[PublishedTable]:
    """Read the first rows of each table of summaries; of parts, those of the first.

    A table is read from Parquet, or from JSON where it is not published as Parquet; bytes are checked before
    they are parsed. Rows are in the words of the release.

    Raises
    ------
    PublicationCorruptError
        Where a file is not what was published, or holds no table.
    StoreError
        Where one cannot be read.
    """
    tables: dict[str, list[PublishedEntry]] = {}
    for entry in publication.files:
        name = _table_of(entry)
        if name is not None:
            tables.setdefault(name, []).append(entry)
    is_pooled = bool(publication.request.get("pooled"))
    shown = []
    for name, entries in [*tables.items()][:MOST_TABLES]:
        pools = tables.get(f"{name.removesuffix('-summaries')}-pools") if is_pooled else None
        if pools is not None and name.endswith("-summaries"):
            shown.append(_pooled_table(publication, about, name, entries, pools))
        else:
            shown.append(_table(publication, about, name, entries))
        if is_pooled and name.endswith("-pools"):
            # What it says in words stands over the picture.
            rows = [
                {column: of for column, of in row.items() if column != "in_words"} for row in shown[-1].rows
            ]
            title = f"{about.label(name.removesuffix('-pools'))}: the populations"
            shown[-1] = replace(shown[-1], rows=rows, title=title)
        if is_pooled and name.endswith("-coefficients"):
            title = f"{about.label(name.removesuffix('-coefficients'))}: covariates"
            shown[-1] = replace(shown[-1], title=title)
    return shown


def _pooled_table(
    publication: Publication,
    about: About,
    name: str,
    entries: Sequence[PublishedEntry],
    pools: Sequence[PublishedEntry],
) -> PublishedTable:
    """Return a table of pooled cells with their pictures, of more rows than it shows."""
    table = _table(publication, about, name, entries)
    statistic = name.removesuffix("-summaries")
    if table.note:
        return table
    rows, of_pools = (
        [
            {cut(column): cut(value) for column, value in row.items()}
            for row in rows_of(publication, each, MOST_PAIRED)
        ]
        for each in (entries, pools)
    )
    keys = [column for column in about.keys if column in rows[0]]
    named, of_pools = (about.rows(statistic, each, keys) for each in (rows, of_pools))
    heading, names = cell_names(named)
    paired = (
        forests_of_parameters(
            named, of_pools, axis=lambda parameter: parameter.replace("_", " "), heading=heading, names=names
        )
        if len(rows) == table.n_rows
        else []
    )
    said = dict.fromkeys(row["in_words"] for row in of_pools if isinstance(row.get("in_words"), str))
    words = tuple(f"{text[0].upper()}{text[1:]}.".replace("own_share", "own share") for text in said if text)
    told = [] if all(row.get("identified") is True for row in of_pools) else [_UNIDENTIFIED]
    return replace(
        table,
        forests=(),
        paired=tuple(paired),
        words=words[:_MOST_NOTES],
        conflicts=(*told, *table.conflicts),
    )


def rows_of(publication: Publication, entries: Sequence[PublishedEntry], most: int) -> list[dict[str, Any]]:
    """Return the first rows of a table: of its Parquet file, or of JSON where there is none.

    Raises
    ------
    PublicationCorruptError, StoreError
        As ``Publication.read``; where it holds no table.
    """
    first = min(entries, key=lambda entry: _RANK[entry.format])
    data = publication.read(first.name)
    if first.format == "json":
        return _json_rows(data)[:most]
    return first_rows(data, most, rows=first.rows)[0]


def _table_of(entry: PublishedEntry) -> str | None:
    """Return which table a file holds, or a part of; None where it holds none that is read here."""
    if entry.rows is None:  # a card, or what describes a CSV file
        return None
    if entry.role == "part":
        match = _PART.fullmatch(entry.name)
        return match[1] if match else None
    return entry.name.rpartition(".")[0] if entry.role == "summaries" and entry.format in _RANK else None


def _table(
    publication: Publication, about: About, name: str, entries: Sequence[PublishedEntry]
) -> PublishedTable:
    statistic = name.removesuffix("-summaries")
    title = about.label(statistic)
    if entries[0].role == "part":
        first, n_rows = min(entries, key=lambda entry: entry.name), sum(entry.rows or 0 for entry in entries)
    else:
        first = min(entries, key=lambda entry: _RANK[entry.format])
        n_rows = first.rows or 0
    if first.size > (LARGEST_JSON if first.format == "json" else LARGEST_PARQUET):
        return PublishedTable(
            name=name,
            title=title,
            rows=[],
            n_rows=n_rows,
            note="This table is too large for a page: download it.",
        )
    data = publication.read(first.name)
    if first.format == "json":
        rows, stated = _json_rows(data)[:MOST_TABLE_ROWS], json.loads(data).get("source")
    else:
        rows, _ = first_rows(data, MOST_TABLE_ROWS, rows=first.rows)
        stated = _parsed(stated_source(data))
    shown = [{cut(column): cut(value) for column, value in row.items()} for row in rows]
    shown = about.rows(statistic, shown, [column for column in about.keys if shown and column in shown[0]])
    return PublishedTable(
        name=name,
        title=title,
        rows=shown,
        n_rows=n_rows,
        forests=tuple(_forests(shown, n_rows)),
        note="" if shown else "This table has no rows.",
        conflicts=_conflicts(stated),
    )


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _conflicts(source: Any) -> tuple[str, ...]:
    """Return what a source notes of conflicts, cut: others may have written it."""
    notes = source.get("notes") if isinstance(source, dict) else None
    said = [note for note in notes if isinstance(note, str)] if isinstance(notes, list) else []
    conflicts = [fitted(note, _LONGEST_NOTE) for note in said if note.startswith("conflict")]
    return tuple(f"{note[0].upper()}{note[1:]}." for note in conflicts[:_MOST_NOTES])


def _json_rows(data: bytes) -> list[dict[str, Any]]:
    """Return the rows of a JSON document of summaries.

    Raises
    ------
    PublicationCorruptError
        Where it holds none.
    """
    try:
        rows = json.loads(data)["rows"]
    except (ValueError, KeyError, TypeError, RecursionError):
        rows = None
    if not _are_rows(rows):
        message = "a table of the publication cannot be read: it is no JSON document of rows"
        raise PublicationCorruptError(message)
    return rows  # type: ignore[no-any-return]


def _are_rows(rows: Any) -> bool:
    """Tell whether these are rows with the same columns, of texts, numbers and nothing."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return False
    return all(
        len(row) <= MOST_COLUMNS
        and row.keys() == rows[0].keys()
        and all(value is None or isinstance(value, str | int | float) for value in row.values())
        for row in rows
    )


def cut(value: Any) -> Any:
    """Cut a text, and an integer that no column holds: pages stay small whatever others wrote."""
    if isinstance(value, str):
        return fitted(value, _LONGEST_TEXT)
    return math.inf if isinstance(value, int) and abs(value) >= 2**64 else value


def _forests(rows: Sequence[Mapping[str, Any]], n_rows: int) -> Iterator[Forest]:
    """Give a picture of each parameter whose rows are intervals; none of a table that goes on elsewhere."""
    columns = rows[0].keys() if rows else ()
    middle = next((name for name in _MIDDLES if name in columns), None)
    if middle is None or not {*_ENDS} <= {*columns} or n_rows > len(rows):
        return
    by_parameter: dict[str, list[Mapping[str, Any]]] = {}
    for record in rows:
        by_parameter.setdefault(str(record.get("parameter", "")), []).append(record)
    for name, parameter_rows in by_parameter.items():
        intervals = [_interval(record, middle) for record in parameter_rows]
        drawn = [
            (record, interval)
            for record, interval in zip(parameter_rows, intervals, strict=True)
            if interval is not None and interval.is_finite
        ][:MOST_PICTURE_ROWS]
        if not drawn:
            continue
        x = common_scale([interval for _, interval in drawn])
        yield Forest(
            name=name,
            middle=middle,
            axis=row_axis(x, name.replace("_", " ")),
            rows=tuple(
                ForestRow(
                    label=_label(record) or name,
                    chart=row(interval, x),
                    middle=interval_text(interval.middle, interval),
                    interval=" to ".join(
                        interval_text(end, interval) for end in (interval.low, interval.high)
                    ),
                )
                for record, interval in drawn
            ),
            n_rows=len(parameter_rows),
        )


def _interval(record: Mapping[str, Any], middle: str) -> DrawnInterval | None:
    marks = [record[name] for name in (_ENDS[0], middle, _ENDS[1])]
    if not all(isinstance(mark, int | float) and math.isfinite(mark) for mark in marks):
        return None
    low, centre, high = map(float, marks)
    return DrawnInterval(low=low, lower_half=centre, middle=centre, upper_half=centre, high=high)


def _label(record: Mapping[str, Any]) -> str:
    """Return the keys and labels of a row: what stands before its numbers."""
    names = []
    for name, value in record.items():
        if name in {*_MIDDLES, *_ENDS, _SD}:
            break
        if name not in {"parameter", "prior"} and value not in (None, ""):
            names.append(str(value) if isinstance(value, str) else f"{name} {value}")
    return ", ".join(names)
