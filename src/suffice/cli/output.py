"""What the command line prints and writes: tables, JSON documents, CSV and Parquet files, progress.

All text that commands print goes through here, and shows as it is. Keys and names can come from releases and
specs of others. A control character would move the cursor, colour or erase; a mark of direction would reorder
what is read. What rests on a withdrawn release says so.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Any
from weakref import ref

from suffice.cli.files import check_file, check_local, new_file
from suffice.data_files.tables import (
    METADATA_SUFFIX,
    columns_of,
    csv_bytes,
    csv_metadata,
    parquet_bytes,
    table_of,
)
from suffice.errors import SufficeWarning, UsageError
from suffice.monitoring import records
from suffice.pipeline.ask.posterior import notes
from suffice.pipeline.terms.declaration.documents import document, printed
from suffice.pipeline.terms.declaration.wording import escaped, shortened_name, text_table, wrapped
from suffice.pipeline.terms.released.table import Table, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    import numpy as np

    from suffice.data_files.source import Provenance
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.spec.about import About
    from suffice.pipeline.terms.declaration.documents import ShortId
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.released.withdrawal import Withdrawal
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.storage.operations.withdrawing import RestingRelease

DIGITS = 4
"""Of drawn numbers in a terminal: more of them would be chance."""


def model_source(
    what: str,
    releases: Sequence[Release],
    posterior: Posterior,
    *,
    mass: float | None = None,
    draws: int,
    seed: int | None,
) -> Provenance:
    """Return what the numbers of a model's file rest on."""
    from suffice.data_files.source import posterior_source  # pydantic is slow to import

    return posterior_source(what, releases, posterior, mass=mass, draws=draws, seed=seed)


def print_cells(
    rows: Sequence[Mapping[str, Any]], groups: Mapping[str, Sequence[object]], about: About, statistic: str
) -> None:
    """Print a table of drawn numbers in words; keys that all cells share stand once, above it.

    Parameters
    ----------
    rows : sequence of mapping
    groups : mapping of str to sequence
        The keys of all cells by group column.
    about : About
        What the release calls keys, and categories of the statistic.
    statistic : str
    """
    from suffice.pipeline.math.parameters.contrasts import in_words  # numpy is slow to import

    shared = {column: keys[0] for column, keys in groups.items() if len(set(keys)) == 1}
    if shared:
        called = about.groups({column: [key] for column, key in shared.items()})
        say(f"{in_line(in_words({column: keys[0] for column, keys in called.items()}))}\n")
    kept = [{name: value for name, value in row.items() if name not in shared} for row in rows]
    named = [
        {
            name: about.value(statistic, value) if isinstance(value, str) and name not in groups else value
            for name, value in row.items()
        }
        for row in kept
    ]
    print_rows(
        about.rows(statistic, named, [column for column in groups if column not in shared]), digits=DIGITS
    )


def print_basis(opened: Release, posterior: Posterior, *, draws: int) -> None:
    """Say what numbers rest on, after a table of them."""
    for line in notes.plug_in_lines(posterior):
        say(f"\n{line}")
    print_saturation(opened.statistic(posterior.statistic))
    print_conflicts(posterior)
    print_diagnostics(posterior)
    say(f"\nrelease: {opened.label}")
    print_rows_of(posterior.rows_of)
    say(f"prior: {posterior.prior}")
    if posterior.n_prior is not None:
        say(f"prior of N: {posterior.n_prior}")
    if posterior.predictor_prior is not None:
        say(f"prior of predictors: {posterior.predictor_prior}")
    say(f"numbers are of {draws} posterior draws")


@printed("release release_id *withdrawal")
@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawnSource:
    """A withdrawn release that a document rests on, where its command was told to read it."""

    release: str
    release_id: ShortId
    withdrawal: Withdrawal


_OPENED: ContextVar[tuple[WithdrawnSource, ...]] = ContextVar("opened withdrawn releases", default=())


def note_withdrawn(release: Release, *, warned: bool = False) -> None:
    """Remember a release that was withdrawn, and warn of it, unless that was done."""
    if release.withdrawn is None:
        return
    if _note(release.label, release.release_id, release.withdrawn) and not warned:
        warnings.warn(f"{release.label} was {release.withdrawn}", SufficeWarning, stacklevel=2)


def note_resting(releases: Iterable[RestingRelease]) -> None:
    """Remember those of the releases that a publication rests on which were withdrawn."""
    for release in releases:
        if release.withdrawal is not None:
            _note(release.label, release.release_id, release.withdrawal)


def _note(label: str, release_id: str, withdrawal: Withdrawal) -> bool:
    """Remember a withdrawn release; return whether it is named for the first time."""
    named = WithdrawnSource(release=label, release_id=release_id, withdrawal=withdrawal)
    is_new = named not in _OPENED.get()
    if is_new:
        _OPENED.set((*_OPENED.get(), named))
    return is_new


def forget_withdrawn() -> None:
    """Begin a command: none is opened yet."""
    _OPENED.set(())


def say(*parts: object, sep: str = " ", end: str = "\n", error: bool = False, flush: bool = False) -> None:
    """Print text, on standard output or standard error; what cannot be seen is written as its code.

    Newlines are kept: whoever puts foreign text into a line escapes those first, with :func:`in_line`.
    """
    stream = sys.stderr if error else sys.stdout
    text = escaped(sep.join(map(str, parts)) + end, keep_newlines=True)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    if flush:
        stream.flush()


def say_json(document: object, *, indent: int | None = 2) -> None:
    """Print one JSON document: what is escaped in it is escaped as JSON does, and reads back the same."""
    say(json.dumps(document, indent=indent, ensure_ascii=False))


def shows_output() -> bool:
    """Tell whether a terminal shows what is printed, and no file or pipe takes it."""
    return sys.stdout.isatty()


def say_line(line: str) -> None:
    """Print a line that programs compare byte by byte: into a file or a pipe it goes unchanged."""
    if shows_output():
        say(line)
    else:
        sys.stdout.write(f"{line}\n")


def say_progress(text: str, *, done: bool) -> None:
    """Write a line of progress over the one before, on standard error."""
    sys.stderr.write("\r" + escaped(text) + ("\n" if done else ""))
    sys.stderr.flush()


def in_line(value: object) -> str:
    """Return a value as text that cannot leave its line."""
    return escaped(str(value))


def print_json(content: object) -> None:
    """Print one JSON document on standard output; it names the withdrawn releases that it rests on."""
    named = _OPENED.get()
    say_json({**content, "withdrawn": document(named)} if named and isinstance(content, dict) else content)


MOST_ROWS = 200
"""Of a table in a terminal, unless all are asked for."""


def first_cells(plan: StatisticPlan) -> int:
    """Return of how many cells a table shows the parameters; at least one."""
    # A cell has about as many parameters as quantities besides n.
    return max(1, MOST_ROWS // max(1, sum(quantity.name != "n" for quantity in plan.quantities)))


def print_part(shown: int, n_cells: int) -> None:
    """Say above a table that only these cells of all that were asked for are computed."""
    if shown < n_cells:
        said = (
            f"the first {shown} of {n_cells} cells are computed, and all that is said here is of these: "
            "--where chooses others, --all takes every one"
        )
        say(f"{wrapped(said)}\n")


def print_left_out(shown: int, n_cells: int) -> None:
    """Say below a table how many cells are not in it."""
    if shown < n_cells:
        say(f"... and {n_cells - shown} more cells, not computed: use --where, --all or --json")


def print_rows(
    rows: Sequence[Mapping[str, Any]],
    *,
    limit: int = MOST_ROWS,
    digits: int = 6,
    others: str = "--where, --json or --out",
) -> None:
    """Print rows as a text table; past `limit` rows, say how many are left out, and which options tell."""
    say(rows_text(rows, digits=digits, limit=limit))
    if len(rows) > limit:
        say(f"... and {len(rows) - limit} more rows: use {others}")


def print_written(*files: Path | None, table: Path | None = None, draws: Path | None = None) -> None:
    """Say which files there are now, and of tables what is in them."""
    named = [*((file, "") for file in files), (table, ": the table"), (draws, ": posterior draws")]
    for file, what in named:
        if file is not None:
            say(f"wrote {file}{what}")


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
    for line in notes.model_lines(posterior):
        say(f"\n{folded(posterior, line)}")


def print_conflicts(posterior: Posterior, name: str = "") -> None:
    """Say where released quantities and priors disagree, after the name of its release if one is given."""
    for line in _in_time("comparing with the prior", notes.conflict_lines, posterior):
        say("\n" + folded(posterior, f"{name}: {line}" if name else line))


def print_default(posterior: Posterior, name: str = "") -> None:
    """Say which intervals a default prior decides, after the name of its release if one is given."""
    for line in _in_time("comparing priors", notes.default_lines, posterior):
        say("\n" + folded(posterior, f"{name}: {line}" if name else line))


def folded(posterior: Posterior, line: str) -> str:
    """Return a sentence, of a histogram on lines of a terminal's width."""
    return wrapped(line) if posterior.family == notes.HISTOGRAM else line


def _in_time(doing: str, work: Callable[[Posterior], Sequence[str]], posterior: Posterior) -> Sequence[str]:
    """Work out what may take minutes, and show the time meanwhile."""
    progress = Progress(doing, "answers", only_parts=True)
    lines = work(posterior)
    progress(1, 1)
    return lines


def print_diagnostics(posterior: Posterior, name: str = "") -> None:
    """Say what a sampled posterior rests on, after the name of its release if one is given."""
    text = ", ".join(f"{name} {value}" for name, value in notes.diagnostics_text(posterior).items())
    for line in filter(None, [text, notes.unsettled_warning(posterior)]):
        say(f"\n{name}: {line}" if name else f"\n{line}")


def rows_text(rows: Sequence[Mapping[str, Any]], *, digits: int = 6, limit: int = MOST_ROWS) -> str:
    """Return the first rows as a text table; those of a `Table` in its words.

    Numbers beside a standard deviation have as many digits as that tells, others `digits` significant ones.
    """
    first = [dict(row) for row in rows[:limit]]
    named: list[dict[str, Any]] = first
    after_point: list[int | None] = [None] * len(first)
    if isinstance(rows, Table):
        named, after_point = rows.in_words(first), [rows.digits(row.get("parameter", "")) for row in first]
    cells = [_cells(row, digits, number) for row, number in zip(named, after_point, strict=True)]
    return text_table([in_line(column) for column in named[0]], cells)


def _cells(row: Mapping[str, Any], digits: int, after_point: int | None) -> list[str]:
    if isinstance(row.get("sd", row.get("noise_sd")), float):
        return [in_line(text) for text in texts_of(row, after_point)]
    return [
        f"{value:.{digits}g}" if isinstance(value, float) else "" if value is None else in_line(value)
        for value in row.values()
    ]


def check_out(path: Path | None, *, overwrite: bool) -> None:
    """Refuse a table's file of another ending, or that may not be written, before any work is done."""
    _check_ending(path, (".csv", ".parquet"), overwrite=overwrite)


DRAWS_OUT = "--draws-out"


def check_draws(path: Path | None, *, overwrite: bool) -> None:
    """Refuse a file of draws that is neither CSV nor Parquet nor netCDF, before any work is done."""
    _check_ending(path, (".csv", ".parquet", ".nc"), overwrite=overwrite, option=DRAWS_OUT)


def check_draw_table(path: Path | None, *, overwrite: bool) -> None:
    """Refuse a file of draws that have no form for ArviZ, and is neither CSV nor Parquet."""
    _check_ending(path, (".csv", ".parquet"), overwrite=overwrite, option=DRAWS_OUT)


def _check_ending(
    path: Path | None, endings: tuple[str, ...], *, overwrite: bool, option: str = "--out"
) -> None:
    if path is None:
        return
    check_local(option, path)
    if path.suffix not in endings:
        message = f"{option} {path}: the file's name must end in {', '.join(endings[:-1])} or {endings[-1]}"
        raise UsageError(message)
    check_file(option, path, overwrite=overwrite)
    if path.suffix == ".csv":
        check_file(option, _metadata_path(path), overwrite=overwrite)


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


def write_summary(
    posterior: Posterior,
    rows: Sequence[Mapping[str, Any]],
    path: Path,
    source: Provenance,
    *,
    overwrite: bool,
) -> None:
    """Write the rows of every cell, each with whether it is in conflict with a prior."""
    from suffice.pipeline.ask.posterior.shown import marked  # numpy is slow to import

    columns = columns_of(marked(posterior, rows, posterior.n_groups))
    write_table(columns, path, source, overwrite=overwrite)


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

    write_table(draw_columns(posterior, draws, rng), path, source, overwrite=overwrite, option=DRAWS_OUT)


def write_netcdf(drawn: Any, path: Path, source: Provenance, *, overwrite: bool) -> None:
    """Write a container of ArviZ to a netCDF file."""
    from suffice.data_files.source import write_netcdf as write  # only writing needs it

    with new_file(DRAWS_OUT, path, overwrite=overwrite) as written:
        write(drawn, written, source)


def write_table(
    columns: Mapping[str, Any],
    path: Path,
    source: Provenance,
    *,
    overwrite: bool,
    option: str = "--out",
) -> None:
    """Write columns to a tidy CSV or Parquet file, by its ending; beside CSV stands what it comes from."""
    table = table_of(columns)
    if path.suffix == ".csv":
        with new_file(option, path, overwrite=overwrite) as written:
            written.write_bytes(csv_bytes(table))
        beside = _metadata_path(path)
        with new_file(option, beside, overwrite=overwrite) as written:
            written.write_bytes(csv_metadata(table, source, path.name))
    else:
        with new_file(option, path, overwrite=overwrite) as written:
            written.write_bytes(parquet_bytes(table, source))


def _metadata_path(path: Path) -> Path:
    return path.with_name(path.name + METADATA_SUFFIX)


_WORTH_SAYING = 5
"""Seconds that are left."""
_WIDTH = 60
"""Width of a line of progress, so that a shorter line covers the one before."""


class Progress:
    """Progress on standard error, on a terminal only; of what takes long, also the seconds so far.

    Parameters
    ----------
    doing, unit : str
        What is done, and what is counted.
    only_parts : bool
        Whether to show nothing of what is done in one go.
    """

    def __init__(self, doing: str = "reading", unit: str = "tasks", *, only_parts: bool = False) -> None:
        self._shown = sys.stderr.isatty() and not records.wants_lines()
        self._is_one_go = only_parts
        self._doing, self._unit = doing, unit
        self._started = time.monotonic()
        self._said = f"{doing}:"
        self._is_over = False
        if self._shown:
            Thread(target=_show_time, args=(ref(self),), daemon=True).start()

    def say_time(self) -> bool:
        """Show how long all this has taken, while nothing else is known; tell whether it goes on."""
        if not self._is_over:
            self._is_one_go = False  # what was begun on the terminal is ended there
            text = f"{self._said} {time.monotonic() - self._started:.0f} s so far"
            say_progress(f"{text:<{_WIDTH}}", done=False)
        return not self._is_over

    def __call__(self, done: int, total: int) -> None:
        """Show that `done` of `total` have ended."""
        self._is_over = done == total
        self._said = f"{self._doing}: {done} of {total} {self._unit},"
        self._is_one_go = self._is_one_go and done == total
        if self._shown and not self._is_one_go:
            seconds = (time.monotonic() - self._started) / max(done, 1) * (total - done)
            left = f", about {seconds:.0f} s left" if seconds >= _WORTH_SAYING else ""
            text = f"{self._doing}: {done} of {total} {self._unit}{left}"
            say_progress(f"{text:<{_WIDTH}}", done=done == total)


def _show_time(shown: ref[Progress]) -> None:
    """Let progress show the time every few seconds: one block of cells may take minutes."""
    goes_on = True
    while goes_on:
        time.sleep(_WORTH_SAYING)
        progress = shown()
        goes_on = progress is not None and progress.say_time()
        del progress  # it ends with the command that has it


_MOST_COLUMNS = 20


def unchecked_text(columns: Sequence[str]) -> str:
    """Say of which columns nobody has compared a value with what the spec says."""
    if not columns:
        return "checked: the sample has values of every column that the spec reads"
    names = ", ".join(map(shortened_name, columns[:_MOST_COLUMNS])) + ", ..." * (len(columns) > _MOST_COLUMNS)
    return (
        f"nobody has checked that values fit: {names} (suffice rehearse --sample does, by a public or "
        "synthetic file)"
    )
