"""One row a cell, as maps and spreadsheets join it: keys, estimates and the noise of each, as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.data_files.source import ESTIMATES, ReleaseSource, Source, sample_source
from suffice.data_files.tables import csv_bytes, csv_metadata, table_of

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.terms.released.sample import ReleasedSample
    from suffice.pipeline.terms.statistics.block import Quantity

MOST_COLUMNS = 200
"""Columns of a table that people read; a statistic with more has a file of its components alone."""


def keyed_files(release: Release, name: str) -> list[tuple[str, str, bytes]]:
    """Return a statistic's table with one row a cell, and the document that says where it is from.

    Parameters
    ----------
    release : Release
    name : str
        Of the statistic.

    Returns
    -------
    list of (str, str, bytes)
        Name, description and content; empty where there would be too many columns.
    """
    if name in release.sampled:
        return _sample_files(release, release.sampled[name])
    statistic = release.statistic(name)
    quantities = statistic.plan.quantities
    if len(quantities) * 2 + len(statistic.groups) > MOST_COLUMNS:
        return []
    columns: dict[str, Any] = dict(statistic.groups)
    for quantity in quantities:
        label = _label(quantity)
        while label in columns:  # a group column may be called so
            label = f"{label} "
        columns[label] = statistic.estimates(quantity)
        columns[f"{label} noise_sd"] = [statistic.plan.quantity_noise_sd(quantity)] * len(statistic.values)
    source = Source(what=ESTIMATES, releases=(ReleaseSource.of(release),), statistic=name)
    return _files(name, columns, source, "unbiased estimates, one row a cell: to join with maps")


def _sample_files(release: Release, sample: ReleasedSample) -> list[tuple[str, str, bytes]]:
    """Return a sample's draws side by side, one row a cell."""
    n_draws = sample.sample.draws
    if n_draws + len(sample.groups) > MOST_COLUMNS:
        return []
    columns: dict[str, Any] = dict(sample.groups)
    for draw in range(n_draws):
        label = f"{sample.parameter} draw {draw}"
        while label in columns:  # a group column may be called so
            label = f"{label} "
        columns[label] = sample.values[:, draw]
    what = "draws of the posterior, one row a cell: to join with maps"
    return _files(sample.plan.name, columns, sample_source(release, sample), what)


def _files(name: str, columns: dict[str, Any], source: Source, what: str) -> list[tuple[str, str, bytes]]:
    table, path = table_of(columns), f"{name}.csv"
    return [
        (path, what, csv_bytes(table)),
        (f"{path}-metadata.json", f"what {path} is, and where it is from", csv_metadata(table, source, path)),
    ]


def _label(quantity: Quantity) -> str:
    labels = [f"{name}={key}" for name, key in quantity.labels if name != "table"]
    of = ",".join(filter(None, [quantity.category, quantity.component, *labels]))
    return f"{quantity.name}[{of}]" if of else quantity.name
