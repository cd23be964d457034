"""What stands beside the page of a release: facts as JSON, and tables with one row a cell as CSV.

Other pages are made of the facts; maps and spreadsheets join the tables.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from typing import TYPE_CHECKING, Any

from suffice.data_files.source import ESTIMATES, Provenance, ReleaseSource, sample_source
from suffice.data_files.tables import csv_bytes, csv_metadata, table_of
from suffice.pipeline.spec.windows_and_amendments import Window, edition, window_times
from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pages.statistic_view import StatisticView
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.terms.released.sample import ReleasedSample
    from suffice.pipeline.terms.statistics.sensitivity import Quantity

MOST_FOLLOWED = 24
"""Intervals of a statistic that the page of a series follows from window to window."""
MOST_WORDS = 400
"""Columns, keys and categories that search finds a release by."""


def release_facts(release: Release, manifest: bytes, views: Sequence[StatisticView]) -> dict[str, Any]:
    """Return what pages state of a release, fit for JSON.

    Parameters
    ----------
    release : Release
    manifest : bytes
        As it stands in the store.
    views : sequence of StatisticView
        Of its statistics, in order.
    """
    content = release.manifest
    signature = content["signature"]
    return {
        "label": release.label,
        "name": release.name,
        "dataset": release.dataset,
        "window": release.window,
        "edition": edition(release.window, release.amendment),
        "amendment": release.amendment,
        "amends": content["amends"]["release_id"] if release.amendment else None,
        "release_id": release.release_id,
        "manifest_sha256": hashlib.sha256(manifest).hexdigest(),
        "created": content["created"],
        "epsilon": format_epsilon(release.epsilon),
        "neighboring": str(release.neighboring),
        "unit": release.unit,
        "max_rows": content.get("max_rows"),
        "unit_nulls": content.get("unit_nulls"),
        "one_unit": release.one_unit,
        "public_n": release.public_n,
        "input_verified": content["input_verified"],
        "contract": content.get("contract"),
        "audit": content.get("audit"),
        "signed_by": signature["key_id"] if signature else None,
        "plan_hash": content["plan_hash"],
        "withdrawn": release.withdrawn.to_dict() if release.withdrawn else None,
        "versions": dict(content["versions"]),
        "window_of": _window(release),
        "groups": {column: len(dict.fromkeys(keys)) for column, keys in _groups(release).items()},
        "cells": views[0].n_cells if views else 0,
        "files": [
            {name: file[name] for name in ("statistic", "path", "size", "sha256", "rows")}
            for file in content["files"]
        ],
        "words": _words(release),
        "statistics": [_statistic(release, view) for view in views],
    }


def ordered_groups(release: Release) -> list[str]:
    """Return the groups whose keys have an order: ranges of numbers, and periods."""
    return [
        column for column, domain in release.manifest["plan"]["groups"].items() if isinstance(domain, dict)
    ]


def _groups(release: Release) -> Mapping[str, list[str | int]]:
    """Return the key of each cell, by group column: all statistics have the same cells."""
    if release.statistics:
        return next(iter(release.statistics.values())).groups
    return next(iter(release.sampled.values())).groups


def _words(release: Release) -> list[str]:
    """Return the group columns, the keys and the categories that search finds a release by."""
    of_cells = _groups(release)
    plans = [release.plan_of(file["statistic"]) for file in release.files]
    keys = [str(key) for of in of_cells.values() for key in dict.fromkeys(of)]
    categories = [quantity.category for plan in plans for quantity in plan.quantities if quantity.category]
    columns = [column for plan in plans for column in plan.columns]
    groups = list(of_cells)
    return list(dict.fromkeys([*groups, *columns, *categories, *keys]))[:MOST_WORDS]


def _window(release: Release) -> dict[str, Any] | None:
    """Return the column and the length of windows, and whether this one had ended; None without windows."""
    grid = release.manifest["plan"]["window"]
    if grid is None:
        return None
    ends = window_times(Window.model_validate(grid), release.window).ends
    created = dt.datetime.strptime(release.manifest["created"], "%Y-%m-%dT%HZ").replace(tzinfo=dt.UTC)
    return {
        "column": grid["column"],
        "every": grid["every"],
        "ends": f"{ends:%Y-%m-%dT%H:%MZ}",
        "closed": created + dt.timedelta(hours=1) > ends,
    }


def _statistic(release: Release, view: StatisticView) -> dict[str, Any]:
    plan = release.plan_of(view.name)
    bounds = [plan.parameters.lower, plan.parameters.upper]
    followed = [
        {
            "label": ", ".join(filter(None, (view.cell_label(cell), entry))) or view.shown_of,
            "marks": [interval.low, interval.lower_half, interval.middle, interval.upper_half, interval.high]
            if interval.is_finite
            else None,
        }
        for cell, entries in enumerate(view.intervals)
        for entry, interval in zip(view.entries, entries, strict=True)
    ]
    return {
        "name": view.name,
        "family": view.family,
        "columns": list(plan.columns),
        "epsilon": format_epsilon(plan.epsilon),
        "mechanism": "discrete_laplace" if plan.sample is None else "exponential",
        "scale": float(plan.scale if plan.sample is None else plan.sample.temperature),
        "components": len(plan.components),
        "bounds": None if None in bounds else [float(bound) for bound in bounds if bound is not None],
        "kind": view.kind,
        "shown_of": view.shown_of,
        "facts": dict(view.facts),
        "n_followed": len(followed) if not view.selection else 0,
        "followed": followed[:MOST_FOLLOWED] if not view.selection else [],
    }


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
    source = Provenance(what=ESTIMATES, releases=(ReleaseSource.of(release),), statistic=name)
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


def _files(name: str, columns: dict[str, Any], source: Provenance, what: str) -> list[tuple[str, str, bytes]]:
    table, path = table_of(columns), f"{name}.csv"
    return [
        (path, what, csv_bytes(table)),
        (f"{path}-metadata.json", f"what {path} is, and where it is from", csv_metadata(table, source, path)),
    ]


def _label(quantity: Quantity) -> str:
    labels = [f"{name}={key}" for name, key in quantity.labels if name != "table"]
    of = ",".join(filter(None, [quantity.category, quantity.component, *labels]))
    return f"{quantity.name}[{of}]" if of else quantity.name
