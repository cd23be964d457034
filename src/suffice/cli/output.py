"""What the command line prints and writes: tables, JSON documents, CSV and Parquet files, progress."""

from __future__ import annotations

import math
import sys
import time
from typing import TYPE_CHECKING, Any

from suffice.cli.files import check_file, check_local, new_file
from suffice.cli.terminal import in_line, say, say_json, say_progress
from suffice.cli.withdrawn import withdrawn_releases
from suffice.data_files.tables import METADATA_SUFFIX, csv_bytes, csv_metadata, parquet_bytes, table_of
from suffice.errors import UsageError
from suffice.pipeline.ask.posterior.notes import (
    conflict_lines,
    default_lines,
    diagnostics_text,
    model_lines,
    unsettled_warning,
)
from suffice.pipeline.terms.declaration.wording import text_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy as np

    from suffice.data_files.source import Provenance
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic


def print_json(document: object) -> None:
    """Print one JSON document on standard output; it names the withdrawn releases that it rests on."""
    named = withdrawn_releases()
    say_json({**document, "withdrawn": named} if named and isinstance(document, dict) else document)


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


def print_estimand(posterior: Posterior) -> None:
    """Say which records numbers are of, above them."""
    if text := posterior.estimand:
        say(f"{text}\n")


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


def print_default(posterior: Posterior, name: str = "") -> None:
    """Say which intervals a default prior decides, after the name of its release if one is given."""
    for line in default_lines(posterior):
        say(f"\n{name}: {line}" if name else f"\n{line}")


def print_diagnostics(posterior: Posterior, name: str = "") -> None:
    """Say what a sampled posterior rests on, after the name of its release if one is given."""
    text = ", ".join(f"{name} {value}" for name, value in diagnostics_text(posterior).items())
    for line in filter(None, [text, unsettled_warning(posterior)]):
        say(f"\n{name}: {line}" if name else f"\n{line}")


def clipping_document(posterior: Posterior) -> dict[str, Any] | None:
    """Return clipping cell by cell as JSON states it; None where nothing is clipped or it is not known."""
    clipping = posterior.clipping
    if clipping is None:
        return None
    columns = (clipping.share, clipping.bias, clipping.is_modelled, clipping.is_warned)
    cells = zip(*(column.tolist() for column in columns), strict=True)
    return {
        "is_warned": bool(clipping.is_warned.any()),
        "cells": [
            {
                **{column: keys[cell] for column, keys in posterior.groups.items()},
                "share": share if math.isfinite(share) else None,
                "bias": bias if math.isfinite(bias) else None,
                "is_modelled": is_modelled,
                "is_warned": is_warned,
            }
            for cell, (share, bias, is_modelled, is_warned) in enumerate(cells)
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
    _check_ending(path, (".csv", ".parquet"), overwrite=overwrite)


def check_draws(path: Path | None, *, overwrite: bool) -> None:
    """Refuse a file of draws that is neither CSV nor Parquet nor netCDF, before any work is done."""
    _check_ending(path, (".csv", ".parquet", ".nc"), overwrite=overwrite)


def _check_ending(path: Path | None, endings: tuple[str, ...], *, overwrite: bool) -> None:
    if path is None:
        return
    check_local("--out", path)
    if path.suffix not in endings:
        message = f"--out {path}: the file's name must end in {', '.join(endings[:-1])} or {endings[-1]}"
        raise UsageError(message)
    check_file("--out", path, overwrite=overwrite)
    if path.suffix == ".csv":
        check_file("--out", _metadata_path(path), overwrite=overwrite)


def check_picture(path: Path | None, *, overwrite: bool) -> None:
    """Refuse a picture's file that is neither PNG nor SVG, or may not be written, before any work is done."""
    if path is None:
        return
    from suffice.plots.style import check_plot  # few commands draw

    check_local("--plot", path)
    check_plot(path)
    check_file("--plot", path, overwrite=overwrite)


def check_card(path: Path | None, *, overwrite: bool) -> None:
    """Refuse a card's file whose name does not end in ``.html``, or that may not be written."""
    if path is None:
        return
    check_local("--card", path)
    if path.suffix != ".html":
        message = f"--card {path}: the file's name must end in .html"
        raise UsageError(message)
    check_file("--card", path, overwrite=overwrite)


def write_draws(
    posterior: Posterior,
    path: Path,
    source: Provenance,
    draws: int,
    rng: np.random.Generator,
    *,
    overwrite: bool,
) -> None:
    """Write posterior draws: tidy CSV or Parquet, or netCDF for ArviZ, by the file's ending."""
    if path.suffix == ".nc":
        write_netcdf(posterior.to_arviz(draws, rng), path, source, overwrite=overwrite)
        return
    from suffice.pipeline.ask.publication.answer import draw_columns  # numpy is slow to import

    write_table(draw_columns(posterior, draws, rng), path, source, overwrite=overwrite)


def write_netcdf(drawn: Any, path: Path, source: Provenance, *, overwrite: bool) -> None:
    """Write a container of ArviZ to a netCDF file."""
    from suffice.data_files.source import write_netcdf as write  # only writing needs it

    with new_file("--out", path, overwrite=overwrite) as written:
        write(drawn, written, source)


def write_table(columns: Mapping[str, Any], path: Path, source: Provenance, *, overwrite: bool) -> None:
    """Write columns to a tidy CSV or Parquet file, by its ending; beside CSV stands what it comes from."""
    table = table_of(columns)
    if path.suffix == ".csv":
        with new_file("--out", path, overwrite=overwrite) as written:
            written.write_bytes(csv_bytes(table))
        beside = _metadata_path(path)
        with new_file("--out", beside, overwrite=overwrite) as written:
            written.write_bytes(csv_metadata(table, source, path.name))
    else:
        with new_file("--out", path, overwrite=overwrite) as written:
            written.write_bytes(parquet_bytes(table, source))


def _metadata_path(path: Path) -> Path:
    return path.with_name(path.name + METADATA_SUFFIX)


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
