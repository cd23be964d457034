"""The command that classifies rows by a released naive Bayes model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.cli import model_output, output
from suffice.cli.data_file import DataOption, check_data, read_data
from suffice.cli.files import OverwriteOption  # noqa: TC001 - Typer reads it
from suffice.cli.options import (
    DEFAULT_STORE,
    AllowWithdrawnOption,
    JsonOption,
    MethodOption,
    NumberOfDrawsOption,
    OutOption,
    PriorOfNOption,
    PriorOption,
    PublicKeyOption,
    ReleaseArgument,
    SeedOption,
    StatisticArgument,
    StoreOption,
    WhereOption,
    check_draws,
    open_for_reading,
    parse_pairs,
    parse_prior_of_n,
)
from suffice.cli.terminal import say
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from suffice.pipeline.ask.models.classification import Classification, Score

MOST_SHOWN, MOST_CLASSES = 200, 4
"""Rows in a terminal; with more classes they have the largest chance alone."""


def classify(
    release: ReleaseArgument,
    statistic: StatisticArgument,
    data: DataOption,
    prior: PriorOption = None,
    n_prior: PriorOfNOption = None,
    where: WhereOption = None,
    method: MethodOption = "noise-aware",
    draws: NumberOfDrawsOption = 1000,
    seed: SeedOption = None,
    out: OutOption = None,
    store: StoreOption = DEFAULT_STORE,
    public_keys: PublicKeyOption = None,
    *,
    allow_withdrawn: AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Classify rows of your own by naive Bayes; score them where their class is there. Costs no privacy."""
    check_data(data)
    output.check_out(out, overwrite=overwrite)
    check_draws(draws, seed)
    opened = open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    from suffice.pipeline.ask.models.classifier import classifier

    fit = classifier(
        opened,
        statistic,
        prior=prior,
        where=parse_pairs("--where", where),
        method=method,
        n_prior=parse_prior_of_n(n_prior),
        draws=draws,
        rng=seed,
    )
    (outcome,) = fit.entry.outcome.values()
    wanted = (*fit.columns, outcome.column)
    rows = read_data(data, wanted, texts=wanted)
    classified = fit.classify(rows)
    scored = classified.score(rows[outcome.column]) if outcome.column in rows.column_names else None
    if out is not None:
        source = model_output.source(
            "classes of a caller's rows", [opened], fit.posterior, draws=draws, seed=seed
        )
        output.write_table(_without_nan(classified.columns()), out, source, overwrite=overwrite)
    if as_json:
        basis = model_output.basis_document(opened, fit.posterior, mass=None, draws=draws, seed=seed)
        score = None if scored is None else _score_document(scored)
        listed = {} if out is not None else {"rows": _rows(classified.columns())}
        document = {**basis, "classes": list(fit.classes), "counts": _counts(classified), "score": score}
        output.print_json({**document, **listed})
        return
    if out is None and len(classified.cell):
        model_output.print_cells(_rows(_shown_columns(classified)), classified.groups)
        if len(classified.cell) > MOST_SHOWN:
            say(f"... and {len(classified.cell) - MOST_SHOWN} more rows: use --json or --out")
        if len(classified.classes) > MOST_CLASSES:
            say("--json and --out have the chance of every class")
        say("")
    for line in _lines(classified, scored, outcome.column):
        say(line)
    model_output.print_basis(opened, fit.posterior, draws=draws)
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


def _counts(classified: Classification) -> dict[str, Any]:
    """Return the numbers of rows as JSON states them: all, classified, and without each feature."""
    return {
        "rows": len(classified.cell),
        "classified": classified.n_predicted,
        "left_out": dict(classified.left_out),
        "absent": list(classified.absent),
    }


def _score_document(scored: Score) -> dict[str, float]:
    return {
        "accuracy": scored.accuracy,
        "mean_log_score": scored.mean_log_score,
        "rows": scored.n_rows,
    }


def _lines(classified: Classification, scored: Score | None, outcome: str) -> list[str]:
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
