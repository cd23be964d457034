"""What the command line prints and writes: tables, JSON documents, CSV and Parquet files, progress."""

from __future__ import annotations

import math
import re
import sys
import time
from typing import TYPE_CHECKING, Any

from suffice.cli.files import MARK, check_file
from suffice.cli.terminal import in_line, say, say_json, say_progress
from suffice.errors import UsageError
from suffice.pipeline.posterior.notes import (
    conflict_lines,
    diagnostics_text,
    model_lines,
    unsettled_warning,
)
from suffice.pipeline.released.text_table import text_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from suffice.pipeline.posterior.posterior import Posterior
    from suffice.pipeline.released.noisy_statistic import NoisyStatistic

_RUN = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
"""How a cell begins that spreadsheets take for a formula; the last four are the signs in full width."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def print_json(document: object) -> None:
    """Print one JSON document on standard output."""
    say_json(document)


def print_rows(rows: Sequence[Mapping[str, Any]], *, limit: int = 200, digits: int = 6) -> None:
    """Print rows as a text table; past `limit` rows, say how many are left out."""
    say(rows_text(rows[:limit], digits=digits))
    if len(rows) > limit:
        say(f"... and {len(rows) - limit} more rows: use --where, --json or --out")


def print_written(*files: Path | None) -> None:
    """Say which files there are now."""
    for file in files:
        if file is not None:
            say(f"wrote {file}")


def print_saturation(statistic: NoisyStatistic) -> None:
    """Say that values stand at an end of their type, and so are no unbiased estimates."""
    if statistic.n_saturated:
        say(
            f"\n{statistic.n_saturated} values are saturated: there were more records than max_total_rows "
            f"({statistic.max_total_rows}), and what rests on them is too small"
        )


def print_rows_of(sentence: str | None, what: str = "parameters") -> None:
    """Say which rows or units, of those of a column unit, numbers are of."""
    if sentence is not None:
        say(f"{what}: {sentence}")


def print_model(posterior: Posterior) -> None:
    """Say what clipping does to a posterior, and what rows of one unit do."""
    for line in model_lines(posterior):
        say(f"\n{line}")


def design_effect_document(posterior: Posterior) -> list[dict[str, Any]] | None:
    """Return design effects cell by cell as JSON states them; None where rows are taken for independent."""
    if posterior.design_effect is None:
        return None
    return [
        {**{column: keys[cell] for column, keys in posterior.groups.items()}, "design_effect": effect}
        for cell, effect in enumerate(posterior.design_effect.tolist())
    ]


def print_conflicts(posterior: Posterior, name: str = "") -> None:
    """Say where released quantities and priors disagree, after the name of its release if one is given."""
    for line in conflict_lines(posterior):
        say(f"\n{name}: {line}" if name else f"\n{line}")


def print_diagnostics(posterior: Posterior, name: str = "") -> None:
    """Say what a sampled posterior rests on, after the name of its release if one is given."""
    told = ", ".join(f"{name} {value}" for name, value in diagnostics_text(posterior).items())
    for line in filter(None, [told, unsettled_warning(posterior)]):
        say(f"\n{name}: {line}" if name else f"\n{line}")


def clipping_document(posterior: Posterior) -> dict[str, Any] | None:
    """Return clipping cell by cell as JSON states it; None where nothing is clipped or it is not known."""
    from suffice.pipeline.posterior.clipping_report import THRESHOLD  # noqa: PLC0415 - numpy is slow to import

    found = posterior.clipping
    if found is None:
        return None
    columns = (found.share, found.bias, found.is_modelled, found.is_known, found.is_warned)
    cells = zip(*(column.tolist() for column in columns), strict=True)
    return {
        "threshold": THRESHOLD,
        "is_known": bool(found.is_known.all()),
        "is_warned": bool(found.is_warned.any()),
        "cells": [
            {
                **{column: keys[cell] for column, keys in posterior.groups.items()},
                "share": share if math.isfinite(share) else None,
                "bias": bias if math.isfinite(bias) else None,
                "is_modelled": is_modelled,
                "is_known": is_known,
                "is_warned": is_warned,
            }
            for cell, (share, bias, is_modelled, is_known, is_warned) in enumerate(cells)
        ],
    }


def rows_text(rows: Sequence[Mapping[str, Any]], *, digits: int = 6) -> str:
    """Return rows as a text table, numbers with so many significant digits."""
    columns = list(rows[0])
    cells = [[_cell(row[column], digits) for column in columns] for row in rows]
    return text_table([in_line(column) for column in columns], cells)


def _cell(value: object, digits: int) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else "" if value is None else in_line(value)


def check_out(path: Path | None, *, overwrite: bool) -> None:
    """Refuse a table's file of another ending, or that may not be written, before any work is done."""
    if path is not None:
        _check_ending(path)
        check_file("--out", path, overwrite=overwrite)


def _check_ending(path: Path) -> None:
    if path.suffix not in {".csv", ".parquet"}:
        message = f"--out {path}: the file's name must end in .csv or .parquet"
        raise UsageError(message)


def check_draws(path: Path) -> None:
    """Refuse a file of draws that is neither CSV nor Parquet nor netCDF, before any work is done."""
    if path.suffix not in {".csv", ".parquet", ".nc"}:
        message = f"--out {path}: the file's name must end in .csv, .parquet or .nc"
        raise UsageError(message)


def write_draws(posterior: Posterior, path: Path, draws: int, rng: np.random.Generator) -> None:
    """Write posterior draws: tidy CSV or Parquet, or netCDF for ArviZ, by the file's ending."""
    if path.suffix == ".nc":
        posterior.to_netcdf(path, draws, rng)
    else:
        write_table(draw_columns(posterior, draws, rng), path)


def write_table(columns: Mapping[str, Any], path: Path) -> None:
    """Write columns to a tidy CSV or Parquet file, by its ending."""
    import pyarrow as pa  # noqa: PLC0415 - only writing needs it
    import pyarrow.csv  # noqa: PLC0415
    import pyarrow.parquet  # noqa: PLC0415

    _check_ending(path)
    table = pa.table(dict(columns)).replace_schema_metadata({MARK: "written by suffice"})
    try:
        if path.suffix == ".csv":
            pa.csv.write_csv(_inert(table), path)
        else:
            pa.parquet.write_table(table, path)
    except OSError:
        message = f"--out {path}: the file cannot be written"
        raise UsageError(message) from None


def _inert(table: pa.Table) -> pa.Table:
    """Put a ``'`` before texts that a spreadsheet would run as a formula; numbers, also as text, stay."""
    import pyarrow as pa  # noqa: PLC0415 - only writing needs it

    names = [inert_text(name) for name in table.column_names]
    columns = []
    for column in table.columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            distinct = column.dictionary_encode().combine_chunks()
            texts = [None if text is None else inert_text(text) for text in distinct.dictionary.to_pylist()]
            columns.append(pa.array(texts, type=column.type).take(distinct.indices))
        else:
            columns.append(column)
    return pa.table(columns, names=names)


def inert_text(text: str) -> str:
    """Return a text as a spreadsheet shows it, and does not run it."""
    return f"'{text}" if _RUN.match(text) and not _NUMBER.fullmatch(text) else text


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Turn rows into columns."""
    return {column: [row[column] for row in rows] for column in rows[0]}


def draw_columns(posterior: Posterior, draws: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return draws as tidy columns: group columns, labels if any, draw, parameter, value."""
    import numpy as np  # noqa: PLC0415 - only writing draws needs it

    parts: list[dict[str, NDArray[Any]]] = []
    for parameter, sample in posterior.sample(draws, rng).items():
        draw, cell, entry = np.indices((*sample.shape, 1)[:3]).reshape(3, -1)
        part = {column: np.array(keys)[cell] for column, keys in posterior.groups.items()}
        if posterior.components:
            names = posterior.components.get(parameter, ("",))
            part["component"] = np.array(names, dtype=object)[entry]
        for name, values in posterior.label_columns.items():
            part[name] = np.array(values, dtype=object)[entry]
        part["draw"] = draw
        part["parameter"] = np.full(draw.size, parameter)
        part["value"] = sample.ravel()
        parts.append(part)
    return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}


_WORTH_SAYING = 5
"""Seconds that are left."""
_WIDTH = 60
"""Width of a line of progress, so that a shorter line covers the one before."""


class Progress:
    """Progress on standard error, on a terminal only.

    Parameters
    ----------
    doing, unit : str
        What is done, and what is counted.
    only_parts : bool
        Whether to show nothing of what is done in one go.
    """

    def __init__(self, doing: str = "reading", unit: str = "tasks", *, only_parts: bool = False) -> None:
        self._shown = sys.stderr.isatty()
        self._is_one_go = only_parts
        self._doing, self._unit = doing, unit
        self._started = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Show that `done` of `total` have ended."""
        self._is_one_go = self._is_one_go and done == total
        if self._shown and not self._is_one_go:
            seconds = (time.monotonic() - self._started) / max(done, 1) * (total - done)
            left = f", about {seconds:.0f} s left" if seconds >= _WORTH_SAYING else ""
            text = f"{self._doing}: {done} of {total} {self._unit}{left}"
            say_progress(f"{text:<{_WIDTH}}", done=done == total)
