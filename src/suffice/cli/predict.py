"""``suffice model predict`` and ``classify``: released models, applied to rows that a caller has.

The rows come from a CSV or Parquet file; they are never released.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from suffice.cli import options, output
from suffice.cli.answers import FOOT, HEAD, MODEL, OF_A_MODEL, Answer, ModelAnswer, answer_terms
from suffice.cli.files import OverwriteOption  # noqa: TC001 - Typer reads it
from suffice.cli.output import say
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.documents import Count, Measured, Rows, document, printed
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from suffice.pipeline.ask.models.classifier import Classification, Score
    from suffice.pipeline.ask.models.regression import PredictedCounts, Prediction, Regression

DataOption = Annotated[
    Path, typer.Option("--data", metavar="FILE", help="Rows of your own, in a .csv or .parquet file.")
]

MOST_SHOWN = 200


@printed(f"{OF_A_MODEL} outcome counts rows?")
@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedAnswer(ModelAnswer):
    """What ``suffice model predict`` prints."""

    outcome: str
    counts: PredictedCounts
    rows: (
        Annotated[
            list[dict[str, Any]],
            Rows(
                row=Count,
                **dict.fromkeys(("mean", "lower", "upper", "predictive_lower", "predictive_upper"), Measured),
                is_extrapolated=bool,
            ),
        ]
        | None
    )


class ClassifiedCounts(TypedDict):
    """How many rows there are, how many have a class, and how many lack which feature."""

    rows: Count
    classified: Count
    left_out: dict[str, Count]
    absent: list[str]


@printed(f"{HEAD} {FOOT} classes counts score rows?")
@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifiedAnswer(Answer):
    """What ``suffice model classify`` prints."""

    release: str
    classes: tuple[str, ...]
    counts: ClassifiedCounts
    score: Score | None
    rows: Annotated[list[dict[str, Any]], Rows(row=Count)] | None


@options.with_terms(without=("clipping", "within_unit"))
def predict(
    release: options.ReleaseArgument,
    statistic: options.StatisticArgument,
    data: DataOption,
    terms: options.Terms,
    mass: options.MassOption = 0.95,
    draws: options.NumberOfDrawsOption = 4000,
    seed: options.SeedOption = None,
    out: options.OutOption = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Predict outcomes of rows of your own by a linear regression, with intervals. Costs no privacy."""
    check_data(data)
    output.check_out(out, overwrite=overwrite)
    options.check_draws(draws, seed)
    opened = options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    from suffice.pipeline.ask.models.regression import regression

    fit = regression(opened, statistic, **terms, draws=draws, rng=seed)
    groups = list(fit.posterior.groups)
    names = [column.name for column in fit.bounds]
    prediction = fit.predict(read_data(data, [*names, *groups], texts=groups), mass)
    if out is not None:
        source = output.model_source(
            "predictions for a caller's rows", [opened], fit.posterior, mass=mass, draws=draws, seed=seed
        )
        output.write_table(_columns(prediction), out, source, overwrite=overwrite)
    if as_json:
        answer = PredictedAnswer(
            **answer_terms(opened, fit.posterior, mass=mass, draws=draws, seed=seed),
            outcome=fit.outcome.name,
            counts=prediction.counts,
            rows=None if out is not None else prediction.rows(),
        )
        output.print_json(document(answer))
        return
    if out is None and prediction.counts["rows"]:
        output.print_cells(prediction.rows(MOST_SHOWN), prediction.groups, opened.about, statistic)
        if prediction.counts["rows"] > MOST_SHOWN:
            say(f"... and {prediction.counts['rows'] - MOST_SHOWN} more rows: use --json or --out")
        say("")
    for line in _predicted_lines(fit, prediction, partial(opened.about.value, statistic)):
        say(line)
    output.print_basis(opened, fit.posterior, draws=draws)
    output.print_written(out)


def _columns(prediction: Prediction) -> dict[str, Any]:
    """Return columns of predictions, null where there is no number."""
    import pyarrow as pa  # only writing needs it

    return {name: pa.array(values, from_pandas=True) for name, values in prediction.columns().items()}


def _predicted_lines(fit: Regression, prediction: Prediction, called: Callable[[str], str]) -> list[str]:
    """Return what there is to say of the rows: how many are predicted, and what of the others."""
    numbers = prediction.counts
    rows = {name: counted(number, "row") for name, number in numbers.items()}
    said = [f"{called(fit.outcome.name)} is predicted for {numbers['predicted']} of {rows['rows']}"]
    if numbers["incomplete"]:
        said.append(f"no prediction for {rows['incomplete']} without some predictor")
    if numbers["of_no_cell"]:
        said.append(f"no prediction for {rows['of_no_cell']} of no selected cell")
    if numbers["extrapolated"]:
        bounds = ", ".join(
            f"{called(column.name)} {float(column.lower):g}..{float(column.upper):g}" for column in fit.bounds
        )
        said.append(
            f"extrapolated for {rows['extrapolated']} beyond the public bounds of predictors ({bounds}): the "
            "release clipped its rows to them, so the line is carried on where nothing was seen"
        )
    return said


MOST_CLASSES = 4
"""In a terminal: with more classes rows have the largest chance alone."""


@options.with_terms(without=("clipping", "within_unit", "predictor_prior"))
def classify(
    release: options.ReleaseArgument,
    statistic: options.StatisticArgument,
    data: DataOption,
    terms: options.Terms,
    draws: options.NumberOfDrawsOption = 1000,
    seed: options.SeedOption = None,
    out: options.OutOption = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Classify rows of your own by naive Bayes; score them where their class is there. Costs no privacy."""
    check_data(data)
    output.check_out(out, overwrite=overwrite)
    options.check_draws(draws, seed)
    opened = options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    from suffice.pipeline.ask.models.classifier import classifier

    fit = classifier(opened, statistic, **terms, draws=draws, rng=seed)
    (outcome,) = fit.entry.outcome.values()
    wanted = (*fit.columns, outcome.column)
    rows = read_data(data, wanted, texts=wanted)
    classified = fit.classify(rows)
    scored = classified.score(rows[outcome.column]) if outcome.column in rows.column_names else None
    if out is not None:
        source = output.model_source(
            "classes of a caller's rows", [opened], fit.posterior, draws=draws, seed=seed
        )
        output.write_table(_without_nan(classified.columns()), out, source, overwrite=overwrite)
    if as_json:
        answer = ClassifiedAnswer(
            source=output.model_source(MODEL, [opened], fit.posterior, draws=draws, seed=seed),
            release=opened.label,
            posterior=fit.posterior,
            draws=draws,
            seed=seed,
            classes=fit.classes,
            counts=_counts(classified),
            score=scored,
            rows=None if out is not None else _rows(classified.columns()),
        )
        output.print_json(document(answer))
        return
    if out is None and len(classified.cell):
        output.print_cells(_rows(_shown_columns(classified)), classified.groups, opened.about, statistic)
        if len(classified.cell) > MOST_SHOWN:
            say(f"... and {len(classified.cell) - MOST_SHOWN} more rows: use --json or --out")
        if len(classified.classes) > MOST_CLASSES:
            say("--json and --out have the chance of every class")
        say("")
    for line in _classified_lines(classified, scored, outcome.column):
        say(line)
    output.print_basis(opened, fit.posterior, draws=draws)
    output.print_written(out)


def _shown_columns(classified: Classification) -> dict[str, Any]:
    """Return columns for a terminal: the chance of each class, or of many classes the largest alone."""
    columns = classified.columns(MOST_SHOWN)
    if len(classified.classes) <= MOST_CLASSES:
        del columns["class_probability"]
        return columns
    return {name: values for name, values in columns.items() if not name.startswith("probability[")}


def _without_nan(columns: dict[str, Any]) -> dict[str, pa.Array]:
    """Return columns as Arrow arrays, null where there is no number."""
    import pyarrow as pa  # only commands that get so far need it

    return {name: pa.array(values, from_pandas=True) for name, values in columns.items()}


def _rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    values = [column.to_pylist() for column in _without_nan(columns).values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


def _counts(classified: Classification) -> ClassifiedCounts:
    return {
        "rows": len(classified.cell),
        "classified": classified.n_predicted,
        "left_out": dict(classified.left_out),
        "absent": list(classified.absent),
    }


def _classified_lines(classified: Classification, scored: Score | None, outcome: str) -> list[str]:
    """Return what there is to say of the rows: how many are classified, without what, and how well."""
    n_rows = len(classified.cell)
    verb = "is" if classified.n_predicted == 1 else "are"
    said = [f"{classified.n_predicted} of {counted(n_rows, 'row')} {verb} classified"]
    if classified.n_predicted < n_rows:
        said.append(f"no class for {counted(n_rows - classified.n_predicted, 'row')} of no selected cell")
    for name, number in classified.left_out.items():
        if number and name not in classified.absent:
            said.append(f"{name} is left out of {counted(number, 'row')}: null, or no declared category")
    if scored is not None:
        said.append(
            f"accuracy {scored.accuracy:.4f}, mean log score {scored.mean_log_score:.4f} nats, of "
            f"{counted(scored.n_rows, 'row')} whose {outcome} is a class"
        )
    return said


_NO_NUMBER = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""How CSV files write that a number is missing."""


def check_data(path: Path) -> None:
    """Refuse a file that is not there, or is neither CSV nor Parquet, before any work is done."""
    if path.suffix not in {".csv", ".parquet"}:
        message = f"--data {path}: the file's name must end in .csv or .parquet"
        raise UsageError(message)
    try:
        is_there = path.exists()
    except (OSError, ValueError):
        is_there = False
    if not is_there:
        message = f"--data {path}: there is no such file"
        raise UsageError(message)


def read_data(path: Path, columns: Sequence[str], *, texts: Sequence[str] = ()) -> pa.Table:
    """Read those of some columns that a file has.

    Parameters
    ----------
    path : Path
        Ends in ``.csv`` or ``.parquet``.
    columns : sequence of str
        That are wanted; those that are absent are left out.
    texts : sequence of str
        Those of them that are texts in a CSV file, whatever they look like: ``01`` stays ``01``.

    Raises
    ------
    UsageError
        Where the file is not there, or is of another format.
    """
    import pyarrow as pa

    check_data(path)
    try:
        table = _read_csv(path, columns, texts) if path.suffix == ".csv" else _read_parquet(path, columns)
    except (OSError, ValueError, pa.ArrowException):
        kind = "CSV in UTF-8 with one row of column names" if path.suffix == ".csv" else "Parquet"
        message = f"--data {path}: the file cannot be read as {kind}"
        raise UsageError(message) from None
    twice = [name for name in columns if table.column_names.count(name) > 1]
    if twice:
        message = f"--data {path}: more than one column is called {', '.join(twice)}"
        raise UsageError(message)
    return table


def _read_csv(path: Path, columns: Sequence[str], texts: Sequence[str]) -> pa.Table:
    """Read wanted columns as a release reads CSV: an empty field is null, a quoted one is a text."""
    import pyarrow as pa
    from pyarrow import csv

    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(columns, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    table = csv.read_csv(path, convert_options=convert)
    table = table.select([place for place, name in enumerate(table.column_names) if name in columns])
    for place, name in enumerate(table.column_names):
        if name not in texts:
            table = table.set_column(place, name, _numbers(table.column(place)))
    return table


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts as numbers, null where they say that there is none; as they are where they are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_none = pc.is_in(column, value_set=pa.array(_NO_NUMBER))
    try:
        return pc.cast(pc.if_else(is_none, pa.scalar(None, pa.string()), column), pa.float64())
    except pa.ArrowInvalid:
        return column


def _read_parquet(path: Path, columns: Sequence[str]) -> pa.Table:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        present = [name for name in file.schema_arrow.names if name in columns]
        return file.read(columns=list(dict.fromkeys(present)))
