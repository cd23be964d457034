"""Releases of other people: a published noisy table with its declared law, and the posteriors that it gives.

An adopted release is public through and through: no ledger knows it, nothing is charged, and its messages may
quote what was published. What is not declared is refused, never guessed.
"""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from suffice.errors import AdoptedTableError, UnknownNameError, UsageError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.declaration.declared_law import (
    ABSENT,
    AS_PUBLISHED,
    EMPTY,
    ByLevel,
    DeclaredLaw,
    OfColumn,
    Rounded,
    load_law,
    noisy_columns,
)
from suffice.pipeline.terms.declaration.domains import MOST_CELLS, too_many_cells
from suffice.pipeline.terms.declaration.wording import counted, shown
from suffice.pipeline.terms.released.table import Table, card, html_table, markup, text_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.posterior.adopted_posterior import AdoptedPosterior
    from suffice.pipeline.math.engines.published_counts import PublishedCount
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.declaration.declared_law import PublishedColumn

Columns: TypeAlias = dict[str, list[str | None]]
"""A table as texts, column by column; None where it has no value."""
_NO_LEDGER = "adopted: of other people's data, in no ledger, at no charge; the law is as declared, not checked"
_LARGEST_FILE = 1 << 31


@dataclass(frozen=True, slots=True)
class Published:
    """What was published of one count, in words and as the noisy numbers that it may have come from.

    Attributes
    ----------
    text : str
        As published; empty where nothing was.
    status : str
        ``published``, ``rounded``, ``clamped`` or ``suppressed``.
    count : PublishedCount
    """

    text: str
    status: str
    count: PublishedCount


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AdoptedRelease(Mapping[str, "AdoptedStatistic"]):
    """A published noisy table and its declared law; made by ``suffice.adopt`` or ``suffice.open_adopted``.

    A mapping of the statistics' names to what can be asked: ``release["views"].posterior()``.

    Attributes
    ----------
    law : DeclaredLaw
    columns : dict of str to list
        The table as texts, with a row for every cell: keys, then what the law names. None where nothing was
        published.
    release_id : str
        16 hex digits of the SHA-256 of law and table.
    uri : str
        Where it stands; empty where it was never written.
    """

    law: DeclaredLaw
    columns: Columns = field(repr=False)
    release_id: str
    uri: str = ""

    @property
    def name(self) -> str:
        """What the law calls it."""
        return self.law.name

    @property
    def label(self) -> str:
        """Its name, marked as adopted."""
        return f"{self.name} (adopted)"

    @property
    def named(self) -> str:
        """Label and id, as files of posteriors name it."""
        return f"{self.label} {self.release_id}"

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns whose values name a cell."""
        return tuple(self.law.keys)

    @property
    def n_rows(self) -> int:
        """How many rows of keys there are, those included that were not published."""
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> AdoptedStatistic:
        """Return a statistic to ask."""
        if name not in self.law.statistics:
            message = f"the adopted release has no statistic {name!r}: it has {', '.join(self.law.statistics)}"
            raise UnknownNameError(message)
        return AdoptedStatistic(release=self, name=name)

    def __iter__(self) -> Iterator[str]:
        """Give the names of statistics."""
        return iter(self.law.statistics)

    def __len__(self) -> int:
        """Return how many statistics there are."""
        return len(self.law.statistics)

    @property
    def statistics(self) -> Table:
        """One row for each statistic: what it is of, and how much of it was suppressed."""
        return Table(statistic.row for statistic in self.values())

    @property
    def about(self) -> list[str]:
        """Who published it, under which law, and that it was adopted: a sentence each."""
        law = self.law
        said = [
            f"{_NO_LEDGER}",
            f"published by {law.publisher}: {law.source} ({law.licence})",
            f"privacy, in its publisher's words: {law.privacy}",
        ]
        return [*said, *(f"{name}: {in_words(column)}" for name, column in law.columns.items())]

    def __repr__(self) -> str:
        return f"<AdoptedRelease {self.name} {self.release_id}: {counted(len(self), 'statistic')}, in no ledger>"

    def __str__(self) -> str:
        return "\n".join([self.label, *self.about, "", str(self.statistics)])

    def _repr_html_(self) -> str:
        rows = self.statistics
        cells = [[markup(text_of(value)) for value in row.values()] for row in rows]
        numbers = [name in {"cells", "suppressed"} for name in rows.columns]
        adopted, *rest = self.about
        return card(self.label, lead="; ".join(rest), warnings=[adopted], body=html_table(rows.columns, cells, numbers))

    def table(self, statistic: str, where: Mapping[str, object] | None = None) -> Table:
        """Return what was published for a statistic, cell by cell, with what was done to it."""
        return self[statistic].table(where)

    def posterior(
        self,
        statistic: str,
        prior: AnyPrior = None,
        *,
        where: Mapping[str, object] | None = None,
        pooled: Sequence[str] | str = (),
        n_prior: NPrior | int | str | None = None,
    ) -> AdoptedPosterior:
        """Return the posterior of a statistic's parameter; see :meth:`AdoptedStatistic.posterior`."""
        return self[statistic].posterior(prior, where=where, pooled=pooled, n_prior=n_prior)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AdoptedStatistic:
    """One statistic of an adopted release; ``release["views"]``.

    Attributes
    ----------
    release : AdoptedRelease
    name : str
    """

    release: AdoptedRelease
    name: str

    @property
    def entry(self) -> Any:
        """What the law states of it."""
        return self.release.law.statistics[self.name]

    @property
    def family(self) -> str:
        """Its family."""
        family: str = self.entry.family
        return family

    @property
    def noisy(self) -> tuple[str, ...]:
        """The noisy columns that it is of, a noisy total last."""
        names = noisy_columns(self.entry)
        total = getattr(self.entry, "total", None)
        return (*names, total) if total in self.release.law.columns else names

    @property
    def categories(self) -> tuple[str, ...]:
        """The names of its categories; empty where it has none."""
        if self.family != "categorical":
            return ()
        if self.entry.columns is not None:
            return tuple(self.entry.columns)
        keys = self.release.columns[self.entry.category]
        return tuple(dict.fromkeys(str(key) for key in keys))

    @property
    def row(self) -> dict[str, Any]:
        """What a table of statistics says of it."""
        columns = self.noisy
        suppressed = sum(
            each.status == "suppressed" for column in columns for each in self.published(column, range(self.release.n_rows))
        )
        return {
            "statistic": self.name,
            "family": self.family,
            "columns": ", ".join(columns),
            "cells": self.release.n_rows * len(columns),
            "suppressed": suppressed,
        }

    def __repr__(self) -> str:
        return f"<AdoptedStatistic {self.name} of {self.release.label}: {self.family}>"

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def published(self, column: str, rows: Sequence[int]) -> list[Published]:
        """Return what was published in some rows of a noisy column."""
        declared = self.release.law.columns[column]
        return [read_published(self.release.columns, column, declared, row) for row in rows]

    def rows(self, where: Mapping[str, object] | None = None) -> list[int]:
        """Return the rows with these keys.

        Raises
        ------
        UnknownNameError
            Where there is no such column or key.
        """
        release = self.release
        wanted = {column: str(key) for column, key in (where or {}).items()}
        for column, key in wanted.items():
            if column not in release.key_columns:
                message = f"{column!r} is no key: the keys are {', '.join(release.key_columns) or 'none'}"
                raise UnknownNameError(message)
            if key not in release.columns[column]:
                message = f"{column} has no key {key!r}"
                raise UnknownNameError(message)
        return [
            row
            for row in range(release.n_rows)
            if all(release.columns[column][row] == key for column, key in wanted.items())
        ]

    def table(self, where: Mapping[str, object] | None = None) -> Table:
        """Return a row for every cell and noisy column: what was published, and the interval it came from."""
        rows = self.rows(where)
        columns = self.release.columns
        made = [
            {
                **{key: columns[key][row] for key in self.release.key_columns},
                "column": column,
                "published": each.text,
                "status": each.status,
                "noisy_from": finite(each.count.low),
                "noisy_to": finite(each.count.high),
                "noise_sd": each.count.law.sd,
            }
            for column in self.noisy
            for row, each in zip(rows, self.published(column, rows), strict=True)
        ]
        return Table(made, title=f"{self.release.label}: {self.name}")

    def to_frame(self, library: str | None = None, *, where: Mapping[str, object] | None = None) -> Any:
        """Return the table as a frame of pandas or Polars; see :meth:`Table.to_frame`."""
        return self.table(where).to_frame(library)

    def posterior(
        self,
        prior: AnyPrior = None,
        *,
        where: Mapping[str, object] | None = None,
        pooled: Sequence[str] | str = (),
        n_prior: NPrior | int | str | None = None,
    ) -> AdoptedPosterior:
        """Return the posterior of the parameter in every cell; suppressed cells enter as censored.

        Parameters
        ----------
        prior : prior object or str, optional
            Of a rate or a probability any prior of one number, of categories a ``Dirichlet``; of a count one
            of whole numbers, as ``"Uniform(0, 500)"``. Otherwise what the law's ``upper`` makes the default.
        where : mapping, optional
            Keep the cells with these keys.
        pooled : str or sequence of str, optional
            Keys, as a date, over which cells share one rate or probability.
        n_prior : optional
            Of a noisy total: ``"Reciprocal(1000000)"``, ``"Uniform(0, 500)"`` or a number.

        Raises
        ------
        UsageError, PriorError
            Where a prior or a key does not fit.
        """
        from suffice.pipeline.ask.posterior.adopted_posterior import adopted_posterior  # scipy is slow to import

        return adopted_posterior(self, prior, where=where, pooled=pooled, n_prior=n_prior)


def finite(value: float) -> float | None:
    """Return a number, None in the place of an infinite one."""
    return value if math.isfinite(value) else None


def in_words(declared: PublishedColumn) -> str:
    """Return the law of a column in words: the noise, and what was done to the noisy numbers."""

    def amount(value: object) -> str:
        if isinstance(value, OfColumn):
            return f"as the column {value.column} has it"
        if isinstance(value, ByLevel):
            return "by " + value.by + ": " + ", ".join(f"{level} {number:g}" for level, number in value.values.items())
        return f"{value:g}"

    noise = declared.noise
    kind = next(name for name in ("scale", "sd", "variance") if getattr(noise, name) is not None)
    said = [f"{noise.law.replace('_', ' ')} noise, {kind} {amount(noise.spread)}"]
    if declared.suppressed is not None:
        said.append(f"suppressed below {amount(declared.suppressed.below)} ({declared.suppressed.shown_as})")
    if declared.clamped_at_zero:
        said.append("clamped at 0")
    if declared.rounded is not None:
        rounded = declared.rounded
        how = f"ties {rounded.ties.replace('_', ' ')}" if rounded.direction == "nearest" else rounded.direction
        said.append(f"rounded to {rounded.to:g} ({how})")
    return "; then ".join(said)


def adopt(
    table: str | os.PathLike[str] | object,
    law: str | os.PathLike[str] | dict[str, Any] | DeclaredLaw,
) -> AdoptedRelease:
    """Read a published noisy table with its declared law as a release, of which posteriors can be asked.

    Nothing is charged, and no ledger is needed: the data are somebody else's, and public already.

    Parameters
    ----------
    table : path or frame
        A CSV or Parquet file, or a frame of pandas, Polars or Arrow.
    law : path, dict or DeclaredLaw
        What its publisher says of the noise; a YAML or JSON file.

    Returns
    -------
    AdoptedRelease

    Raises
    ------
    LawError
        Where the law breaks a rule.
    AdoptedTableError
        Where the table does not fit its law: keys that occur twice or lie outside, values that the law makes
        impossible.
    """
    declared = load_law(law if isinstance(law, dict | DeclaredLaw) else str(law))
    read, origin = read_table(table)
    return adopted_release(declared, fitted(declared, read, origin))


def adopted_release(law: DeclaredLaw, columns: Columns, uri: str = "") -> AdoptedRelease:
    """Return the release of a table that fits its law."""
    digest = hashlib.sha256(canonical_json.encode(law.content()) + table_bytes(columns))
    return AdoptedRelease(law=law, columns=columns, release_id=digest.hexdigest()[:16], uri=uri)


def table_bytes(columns: Columns) -> bytes:
    """Return the file of a table: CSV, nothing where there is no value."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    writer.writerows(["" if value is None else value for value in row] for row in zip(*columns.values(), strict=True))
    return text.getvalue().encode()


def read_table(table: object) -> tuple[Columns, str]:
    """Return the columns of a CSV or Parquet file, or of a frame, as texts; and what messages call it.

    Raises
    ------
    AdoptedTableError
        Where it cannot be read.
    """
    if not isinstance(table, str | Path) and not hasattr(table, "__fspath__"):
        return _of_frame(table, "the frame"), "the frame"
    path = Path(table)
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise AdoptedTableError(path.name, "the table is larger than 2 GiB")
        if path.suffix in {".parquet", ".pq"}:
            import pyarrow as pa
            import pyarrow.parquet as pq

            try:
                return _of_frame(pq.read_table(path), path.name), path.name
            except pa.ArrowException:
                raise AdoptedTableError(path.name, "it is no Parquet file") from None
        return columns_of_csv(path.read_bytes(), path.name), path.name
    except OSError:
        raise AdoptedTableError(str(path), "the table cannot be read", "name a CSV or Parquet file") from None


def columns_of_csv(data: bytes, origin: str) -> Columns:
    """Return the columns of a CSV file; an empty field has no value.

    Raises
    ------
    AdoptedTableError
    """
    try:
        lines = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error):
        raise AdoptedTableError(origin, "it is no CSV file in UTF-8") from None
    rows = [line for line in lines if line]
    if not rows:
        raise AdoptedTableError(origin, "it has no header")
    names, *records = rows
    if len(set(names)) < len(names):
        raise AdoptedTableError(origin, "two columns have the same name")
    for number, record in enumerate(records, start=2):
        if len(record) != len(names):
            rule = f"it has {counted(len(record), 'field')}, and the header {len(names)}"
            raise AdoptedTableError(f"{origin}: line {number}", rule)
    return {name: [record[place] or None for record in records] for place, name in enumerate(names)}


def _of_frame(frame: Any, origin: str) -> Columns:
    """Return the columns of a frame of Arrow, pandas or Polars, or a mapping of lists, as texts."""
    import pyarrow as pa

    try:
        if isinstance(frame, Mapping):
            table = pa.table(dict(frame))
        elif isinstance(frame, pa.Table):
            table = frame
        elif hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
        else:
            table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, AttributeError):
        raise AdoptedTableError(origin, "it is no table", "give a path, or a frame of pandas, Polars or Arrow") from None
    return {name: [_text(value) for value in table.column(name).to_pylist()] for name in table.column_names}


def _text(value: Any) -> str | None:
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 2.0**53 else repr(value)
    if hasattr(value, "isoformat"):
        text: str = value.isoformat()
        return text.removesuffix("T00:00:00")
    return str(value)


def fitted(law: DeclaredLaw, table: Columns, origin: str) -> Columns:
    """Return the rows of every cell, in the order of the keys, checked against the law.

    Raises
    ------
    AdoptedTableError
        Naming the row and the column.
    """
    needed = _needed_columns(law)
    missing = [column for column in needed if column not in table]
    if missing:
        has = ", ".join(list(table)[:20])
        raise AdoptedTableError(origin, f"the law names the column {missing[0]!r}, and the table has {has}")
    keys = tuple(law.keys)
    n_rows = len(next(iter(table.values())))
    places: dict[tuple[str, ...], int] = {}
    for row in range(n_rows):
        key = tuple(table[column][row] or "" for column in keys)
        if "" in key:
            rule = f"it has no value of the key {keys[key.index('')]!r}"
            raise AdoptedTableError(_row(origin, row), rule)
        if key in places:
            what = f"the keys {_keyed(keys, key)}" if keys else "the only cell"
            raise AdoptedTableError(_row(origin, row), f"{what} already stand in row {places[key] + 1}")
        places[key] = row
    domains = _domains(law, table)
    for key, row in places.items():
        for column, value in zip(keys, key, strict=True):
            if value not in domains[column]:
                rule = f"{value!r} is no key that the law declares for {column!r}"
                raise AdoptedTableError(_row(origin, row), rule)
    size = math.prod(len(domain) for domain in domains.values())
    if size > MOST_CELLS:
        raise AdoptedTableError(origin, too_many_cells(size))
    made = _filled(law, table, places, domains, origin)
    for column, declared in law.columns.items():
        for row in range(len(made[column])):
            try:
                read_published(made, column, declared, row)
            except ValueError as error:
                place = places.get(tuple(str(made[key][row]) for key in keys))
                where = _row(origin, place) if place is not None else f"{origin}: {_keyed(keys, [str(made[key][row]) for key in keys])}"
                raise AdoptedTableError(f"{where}: {column}", str(error)) from None
    _check_sizes(law, made, origin)
    return made


def _needed_columns(law: DeclaredLaw) -> list[str]:
    names = [*law.keys, *law.columns]
    for declared in law.columns.values():
        amounts = [declared.noise.spread, declared.suppressed.below if declared.suppressed else None]
        names += [amount.column for amount in amounts if isinstance(amount, OfColumn)]
        names += [amount.by for amount in amounts if isinstance(amount, ByLevel)]
    for statistic in law.statistics.values():
        names += [getattr(statistic, each) for each in ("exposure", "total") if getattr(statistic, each, None)]
    return list(dict.fromkeys(names))


def _domains(law: DeclaredLaw, table: Columns) -> dict[str, dict[str, None]]:
    """Return the keys of every key column, in order."""
    return {
        column: dict.fromkeys(
            [str(value) for value in table[column]] if domain == AS_PUBLISHED else [str(key) for key in domain]
        )
        for column, domain in law.keys.items()
    }


def _filled(
    law: DeclaredLaw,
    table: Columns,
    places: Mapping[tuple[str, ...], int],
    domains: Mapping[str, dict[str, None]],
    origin: str,
) -> Columns:
    """Return a row for every combination of keys; those without one are suppressed, if that may be absent."""
    needed = _needed_columns(law)
    made: Columns = {column: [] for column in needed}
    for key in itertools.product(*domains.values()):
        row = places.get(key)
        if row is None:
            for column, declared in law.columns.items():
                if declared.suppressed is None or declared.suppressed.shown_as != ABSENT:
                    rule = f"the cell {_keyed(tuple(domains), key)} is not there"
                    hint = f"where absent rows were suppressed, columns.{column} says: suppressed: {{below: ..., shown_as: absent}}"
                    raise AdoptedTableError(origin, rule, hint)
        for column in needed:
            if row is not None:
                made[column].append(table[column][row])
            else:
                made[column].append(key[tuple(domains).index(column)] if column in domains else None)
    for column in needed:
        if column not in domains and column not in law.columns:
            _fill_public(made, column, tuple(domains))
    return made


def _fill_public(made: Columns, column: str, keys: tuple[str, ...]) -> None:
    """Give absent rows the public number of their column, where some of the keys determine it."""
    values = made[column]
    if None not in values:
        return
    for chosen in itertools.chain.from_iterable(itertools.combinations(keys, size) for size in range(len(keys))):
        known: dict[tuple[str | None, ...], set[str]] = {}
        for row, value in enumerate(values):
            if value is not None:
                known.setdefault(tuple(made[key][row] for key in chosen), set()).add(value)
        if all(len(each) == 1 for each in known.values()):
            for row, value in enumerate(values):
                if value is None:
                    values[row] = next(iter(known.get(tuple(made[key][row] for key in chosen), {None})))
            return


def _check_sizes(law: DeclaredLaw, made: Columns, origin: str) -> None:
    for name, statistic in law.statistics.items():
        for what in ("exposure", "total"):
            column = getattr(statistic, what, None)
            if column is None or column in law.columns:
                continue
            for row, text in enumerate(made[column]):
                number = _number(text)
                if number is None or not 0.0 < number <= 1e15 or (what == "total" and not number.is_integer()):
                    where = f"{origin}: {_keyed(tuple(law.keys), [str(made[key][row]) for key in law.keys])}: {column}"
                    kind = "a whole number" if what == "total" else "a number"
                    raise AdoptedTableError(where, f"{text!r} is no {what} of {name}: it must be {kind} above 0")


def read_published(columns: Columns, column: str, declared: PublishedColumn, row: int) -> Published:
    """Return what was published in a row.

    Raises
    ------
    ValueError
        Where the law makes it impossible.
    """
    from suffice.pipeline.math.engines.noise_laws import LAWS
    from suffice.pipeline.math.engines.published_counts import PublishedCount

    noise = declared.noise
    spread = _amount(columns, noise.spread, row, "the spread of the noise")
    if not 0.0 < spread <= 1e12:
        message = f"the spread of the noise is {spread:g}, and must be above 0"
        raise ValueError(message)
    law = LAWS[noise.law](math.sqrt(spread) if noise.variance is not None else spread)
    text = columns[column][row]
    below = -math.inf
    if declared.suppressed is not None:
        below = _amount(columns, declared.suppressed.below, row, "the threshold")
        shown_as = declared.suppressed.shown_as
        if text == shown_as or (text is None and shown_as in {ABSENT, EMPTY}):
            # Whole numbers below the threshold end at the last one before it.
            high = math.ceil(below) - 1.0 if law.is_whole else below
            return Published(text or "", "suppressed", PublishedCount(law, -math.inf, high))
    value = _number(text)
    if value is None or abs(value) > 1e15:
        message = "there is no value" if text is None else f"{shown(text)!r} is no number up to 1e15"
        hint = "" if declared.suppressed is not None else ": where that means suppressed, the law has to say so"
        raise ValueError(message + hint)
    low, high, status = _before(declared, law.is_whole, value)
    if max(low, below) > high:
        message = f"{text} was published, and noisy numbers below {below:g} were suppressed"
        raise ValueError(message)
    return Published(str(text), status, PublishedCount(law, max(low, math.ceil(below) if law.is_whole and math.isfinite(below) else below), high))


def _before(declared: PublishedColumn, is_whole: bool, value: float) -> tuple[float, float, str]:  # noqa: FBT001
    """Return the noisy numbers that rounding and clamping turn into a value: both ends, and what was done."""
    low = high = value
    status = "published"
    if declared.rounded is not None:
        low, high = _unrounded(declared.rounded, is_whole, value)
        status = "rounded"
    elif is_whole and not value.is_integer():
        message = f"{value:g} was published, and {declared.noise.law.replace('_', ' ')} noise leaves whole numbers"
        raise ValueError(message)
    if declared.clamped_at_zero:
        if value < 0.0:
            message = f"{value:g} was published, and numbers below 0 were set to 0"
            raise ValueError(message)
        if value == 0.0:
            return -math.inf, max(high, 0.0), "clamped"
    return low, high, status


def _unrounded(rounded: Rounded, is_whole: bool, value: float) -> tuple[float, float]:  # noqa: FBT001
    step = rounded.to
    multiple = round(value / step)
    if abs(value / step - multiple) > 1e-9 * max(1.0, abs(value / step)):
        message = f"{value:g} was published, which is no multiple of {step:g}"
        raise ValueError(message)
    if rounded.direction == "down":
        low, high, has_low, has_high = value, value + step, True, False
    elif rounded.direction == "up":
        low, high, has_low, has_high = value - step, value, False, True
    else:
        low, high = value - step / 2.0, value + step / 2.0
        if rounded.ties == "even":
            has_low = has_high = multiple % 2 == 0
        elif rounded.ties == "up":
            has_low, has_high = True, False
        else:
            has_low, has_high = value > 0.0, value < 0.0
    if not is_whole:
        return low, high
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    if abs(first - low) < 1e-9 and not has_low:
        first += 1
    if abs(last - high) < 1e-9 and not has_high:
        last -= 1
    if first > last:
        message = f"no whole number is rounded to {value:g}"
        raise ValueError(message)
    return float(first), float(last)


def _amount(columns: Columns, amount: float | OfColumn | ByLevel, row: int, what: str) -> float:
    """Return a number in a row: the constant, the column's, or that of the level.

    Raises
    ------
    ValueError
        Where there is none.
    """
    if isinstance(amount, OfColumn):
        number = _number(columns[amount.column][row])
        if number is None:
            message = f"{what} is in the column {amount.column!r}, which has no number there"
            raise ValueError(message)
        return number
    if isinstance(amount, ByLevel):
        level = columns[amount.by][row]
        if level not in amount.values:
            message = f"{what} goes by {amount.by!r}, and the law has none for {level!r}"
            raise ValueError(message)
        return amount.values[level]
    return amount


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _row(origin: str, row: int) -> str:
    return f"{origin}: row {row + 1}"


def _keyed(columns: Sequence[str], key: Sequence[str]) -> str:
    return ", ".join(f"{column}={shown(value)}" for column, value in zip(columns, key, strict=True)) or "the only cell"
