"""Releases of other people: a published noisy table with its declared law, and the posteriors that it gives.

No ledger knows an adopted release, nothing is charged, and its messages may quote what was published.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from suffice.errors import AdoptedReleaseError, UnknownNameError
from suffice.pipeline.ask.pooling.published_number import read_published
from suffice.pipeline.ask.pooling.published_table import absent_rows, fitted, read_table, table_bytes
from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.declaration.declared_law import (
    ByLevel,
    DeclaredLaw,
    OfColumn,
    load_law,
    noisy_columns,
)
from suffice.pipeline.terms.declaration.wording import counted
from suffice.pipeline.terms.released.table import Table, card, html_table, markup, text_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.pooling.adopted_posterior import AdoptedPosterior
    from suffice.pipeline.ask.pooling.published_number import Columns, Published
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.declaration.declared_law import PublishedColumn

_NO_LEDGER = (
    "adopted: of other people's data, in no ledger, at no charge; the law is as declared, not checked"
)


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
            message = (
                f"the adopted release has no statistic {name!r}: it has {', '.join(self.law.statistics)}"
            )
            raise UnknownNameError(message)
        return AdoptedStatistic(release=self, name=name)

    def __fspath__(self) -> str:
        """Refuse: what takes a release of one's own data or its path does not take this one."""
        raise AdoptedReleaseError(self.label)

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
        said += [f"{name}: {in_words(column)}" for name, column in law.columns.items()]
        public = dict.fromkeys(filter(None, (statistic.filled for statistic in self.values())))
        return [*said, *public]

    def __repr__(self) -> str:
        return (
            f"<AdoptedRelease {self.name} {self.release_id}: {counted(len(self), 'statistic')}, in no ledger>"
        )

    def __str__(self) -> str:
        return "\n".join([self.label, *self.about, "", str(self.statistics)])

    def _repr_html_(self) -> str:
        rows = self.statistics
        cells = [[markup(text_of(value)) for value in row.values()] for row in rows]
        numbers = [name in {"cells", "suppressed"} for name in rows.columns]
        adopted, *rest = self.about
        return card(
            self.label,
            lead="; ".join(rest),
            warnings=[adopted],
            body=html_table(rows.columns, cells, numbers),
        )

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
        cells: Literal["vary", "alike"] | None = None,
    ) -> AdoptedPosterior:
        """Return the posterior of a statistic's parameter; see :meth:`AdoptedStatistic.posterior`."""
        return self[statistic].posterior(prior, where=where, pooled=pooled, n_prior=n_prior, cells=cells)


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
    def filled(self) -> str:
        """Say which public numbers were taken from other rows, as theirs are absent; or nothing."""
        release = self.release
        column = getattr(self.entry, "exposure", None) or getattr(self.entry, "total", None)
        rows = absent_rows(release.law, release.columns) if column in release.columns else []
        if not rows or column in release.law.columns:
            return ""
        first = [f"{key}={release.columns[key][rows[0]]}" for key in release.key_columns]
        return (
            f"{column} of {counted(len(rows), 'absent row')} ({', '.join(first)} first) is taken to be that "
            "of published rows, which agree: if it is not, give the table rows for them, with an empty count"
        )

    @property
    def plan(self) -> SimpleNamespace:
        """The columns that pictures name, which those of a release find in its plan."""
        return SimpleNamespace(columns=noisy_columns(self.entry))

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
            each.status == "suppressed"
            for column in columns
            for each in self.published(column, range(self.release.n_rows))
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
        cells: Literal["vary", "alike"] | None = None,
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
            Keys, as a date, over which cells have one mean rate, or share one probability.
        n_prior : optional
            Of a noisy total: ``"Reciprocal(1000000)"``, ``"Uniform(0, 500)"`` or a number.
        cells : {"vary", "alike"}, optional
            Whether pooled cells vary about their mean rate, by a spread that is estimated, or share it. Rates
            vary where it is left out; probabilities are alike.

        Raises
        ------
        UsageError, PriorError
            Where a prior or a key does not fit.
        """
        from suffice.pipeline.ask.pooling.adopted_posterior import (
            adopted_posterior,  # scipy is slow to import
        )

        return adopted_posterior(self, prior, where=where, pooled=pooled, n_prior=n_prior, cells=cells)


def refuse_adopted(*given: object) -> None:
    """Refuse releases that were adopted, and their statistics, by name.

    Raises
    ------
    AdoptedReleaseError
    """
    for each in given:
        release = each.release if isinstance(each, AdoptedStatistic) else each
        if isinstance(release, AdoptedRelease):
            raise AdoptedReleaseError(release.label)


def finite(value: float) -> float | None:
    """Return a number, None in the place of an infinite one."""
    return value if math.isfinite(value) else None


def in_words(declared: PublishedColumn) -> str:
    """Return the law of a column in words: the noise, and what was done to the noisy numbers."""

    def amount(value: object) -> str:
        if isinstance(value, OfColumn):
            return f"as the column {value.column} has it"
        if isinstance(value, ByLevel):
            return (
                "by "
                + value.by
                + ": "
                + ", ".join(f"{level} {number:g}" for level, number in value.values.items())
            )
        return f"{value:g}"

    noise, suppressed, rounded = declared.noise, declared.suppressed, declared.rounded
    kind = next(name for name in ("scale", "sd", "variance") if getattr(noise, name) is not None)
    said = {
        "noise": f"{noise.law.replace('_', ' ')} noise, {kind} {amount(noise.spread)}",
        "clamp": "clamped at 0",
    }
    if suppressed is not None:
        said["threshold"] = f"suppressed below {amount(suppressed.below)} ({suppressed.shown_as})"
    if rounded is not None:
        how = (
            f"ties {rounded.ties.replace('_', ' ')}" if rounded.direction == "nearest" else rounded.direction
        )
        said["round"] = f"rounded to {rounded.to:g} ({how})"
    return "; then ".join(said[step] for step in declared.order)


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
