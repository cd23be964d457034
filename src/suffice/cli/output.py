"""What the command line prints and writes: tables, JSON documents, CSV and Parquet files, progress."""

from __future__ import annotations

import math
import re
import sys
import time
from typing import TYPE_CHECKING, Any

from suffice.cli.files import MARK, check_file
from suffice.cli.terminal import in_line, say, say_json, say_progress
from suffice.cli.withdrawn import withdrawn_releases
from suffice.errors import UsageError
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
LARGEST_R_HAT, FEWEST_EFFECTIVE_DRAWS = 1.05, 400
"""Of chains that posteriors can rest on."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


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


def print_model(posterior: Posterior) -> None:
    """Say what clipping does to a posterior, and what rows of one unit do."""
    for line in model_lines(posterior):
        say(f"\n{line}")


def design_effect_text(posterior: Posterior) -> str:
    """Return in words what rows of one unit do to a posterior; empty where they are taken for independent."""
    effects = posterior.design_effect
    if effects is None:
        return ""
    least, most = (f"{float(end):.3g}" for end in (effects.min(), effects.max()))
    found = f"a design effect of {least}" if least == most else f"design effects of {least} to {most}"
    return f"rows of one unit are not independent: intervals are widened by {found} (approximate)"


def design_effect_document(posterior: Posterior) -> list[dict[str, Any]] | None:
    """Return design effects cell by cell as JSON states them; None where rows are taken for independent."""
    if posterior.design_effect is None:
        return None
    return [
        {**{column: keys[cell] for column, keys in posterior.groups.items()}, "design_effect": effect}
        for cell, effect in enumerate(posterior.design_effect.tolist())
    ]


def model_lines(posterior: Posterior) -> list[str]:
    """Return all that there is to say of clipping and of rows of one unit, a sentence each."""
    said = [clipping_model(posterior), *clipping_warnings(posterior), design_effect_text(posterior)]
    return [line for line in said if line]


def plug_in_lines(posterior: Posterior) -> list[str]:
    """Return what a plug-in posterior leaves out of account, a sentence each; nothing of any other."""
    from suffice.pipeline.families import FAMILIES  # noqa: PLC0415 - numpy is slow to import

    if posterior.method != "plug-in":
        return []
    said = ["plug-in: takes the noisy statistics for exact; its intervals are not calibrated"]
    if FAMILIES[posterior.family].of_release:
        said.append(
            "plug-in: takes each row or unit for drawn by itself: its intervals are not of these data"
        )
    return said


def print_conflicts(posterior: Posterior, name: str = "") -> None:
    """Say where released quantities and priors disagree, after the name of its release if one is given."""
    for line in conflict_lines(posterior):
        say(f"\n{name}: {line}" if name else f"\n{line}")


def conflict_lines(posterior: Posterior) -> list[str]:
    """Return all that there is to say of conflicts, and of what could not be judged, a sentence each."""
    found = posterior.conflict
    if not found.not_judged:
        return found.lines()
    names = ", ".join(found.not_judged[:4])
    more = f" and {len(found.not_judged) - 4} more" if len(found.not_judged) > 4 else ""
    return [*found.lines(), f"conflict with the prior of the parameters is not judged for {names}{more}"]


def print_diagnostics(posterior: Posterior, name: str = "") -> None:
    """Say what a sampled posterior rests on, after the name of its release if one is given."""
    told = ", ".join(f"{name} {value}" for name, value in diagnostics_text(posterior).items())
    for line in filter(None, [told, unsettled_warning(posterior)]):
        say(f"\n{name}: {line}" if name else f"\n{line}")


def unsettled_warning(posterior: Posterior) -> str:
    """Say that chains disagree or are worth few draws; empty where they are not, or draws are independent."""
    r_hat, effective = (
        posterior.diagnostics.get(name) for name in ("largest_r_hat", "fewest_effective_draws")
    )
    if r_hat is None or effective is None:
        return ""
    if r_hat > LARGEST_R_HAT:
        return (
            f"do not rely on these intervals: the chains do not agree with each other (R-hat {r_hat}, above "
            f"{LARGEST_R_HAT}); a stronger prior, or fewer cells with --where, may help"
        )
    if effective < FEWEST_EFFECTIVE_DRAWS:
        return (
            f"the ends of intervals are rough: the chains are worth {effective:.0f} independent draws, fewer "
            f"than {FEWEST_EFFECTIVE_DRAWS}"
        )
    return ""


def diagnostics_text(posterior: Posterior) -> dict[str, str]:
    """Return diagnostics as people read them; empty where draws are independent."""
    return {
        name.replace("_", " ").replace("r hat", "R-hat"): (
            f"{value:.0f}" if name == "fewest_effective_draws" else str(value)
        )
        for name, value in posterior.diagnostics.items()
    }


def clipping_model(posterior: Posterior) -> str:
    """Say in how many cells records are treated as clipped; empty where there are none."""
    modelled = posterior.models_clipping
    if modelled is None or not modelled.any():
        return ""
    others = "" if modelled.all() else "; in the others it makes no difference"
    from suffice.pipeline.families import FAMILIES  # noqa: PLC0415 - numpy is slow to import

    how = "" if FAMILIES[posterior.family].mean_and_variance is None else ", approximately, by four moments"
    return (
        f"clipping is modelled in {modelled.sum()} of {posterior.n_groups} cells: their records are treated "
        f"as clipped to the public bounds{how}{others}"
    )


def clipping_warnings(posterior: Posterior) -> list[str]:
    """Return in words where clipping matters, and where that could not be judged; empty where neither is."""
    found = posterior.clipping
    said: list[str] = []
    if found is None:
        return said
    if found.is_warned.any():
        share, bias = (float(values[found.is_warned].max()) for values in (found.share, found.bias))
        said.append(
            f"clipping matters in {found.is_warned.sum()} of {posterior.n_groups} cells: the fitted model "
            f"puts up to {100 * share:.3g} % of records beyond the bounds, and clipping them moves a "
            f"parameter by up to {bias:.3g} posterior standard deviations; wider bounds would help"
        )
    if not found.is_known.all():
        said.append(
            f"clipping could not be judged in {(~found.is_known).sum()} of {posterior.n_groups} cells: that "
            "takes a posterior mean, and there is none; clipping may matter there"
        )
    return said


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
