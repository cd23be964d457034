"""The command that predicts outcomes of rows by a released regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.cli import model_output, output
from suffice.cli.data_file import DataOption, check_data, read_data
from suffice.cli.files import OverwriteOption  # noqa: TC001 - Typer reads it
from suffice.cli.options import (
    DEFAULT_STORE,
    AllowWithdrawnOption,
    JsonOption,
    MassOption,
    MethodOption,
    NumberOfDrawsOption,
    OutOption,
    PredictorPriorOption,
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
    from suffice.pipeline.ask.models.regression import Prediction, Regression

MOST_SHOWN = 200


def predict(
    release: ReleaseArgument,
    statistic: StatisticArgument,
    data: DataOption,
    prior: PriorOption = None,
    n_prior: PriorOfNOption = None,
    predictor_prior: PredictorPriorOption = None,
    where: WhereOption = None,
    method: MethodOption = "noise-aware",
    mass: MassOption = 0.95,
    draws: NumberOfDrawsOption = 4000,
    seed: SeedOption = None,
    out: OutOption = None,
    store: StoreOption = DEFAULT_STORE,
    public_keys: PublicKeyOption = None,
    *,
    allow_withdrawn: AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Predict outcomes of rows of your own by a linear regression, with intervals. Costs no privacy."""
    check_data(data)
    output.check_out(out, overwrite=overwrite)
    check_draws(draws, seed)
    opened = open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    from suffice.pipeline.ask.models.regression import regression

    fit = regression(
        opened,
        statistic,
        prior=prior,
        where=parse_pairs("--where", where),
        method=method,
        n_prior=parse_prior_of_n(n_prior),
        predictor_prior=predictor_prior,
        draws=draws,
        rng=seed,
    )
    groups = list(fit.posterior.groups)
    names = [column.name for column in fit.bounds]
    prediction = fit.predict(read_data(data, [*names, *groups], texts=groups), mass)
    if out is not None:
        source = model_output.source(
            "predictions for a caller's rows", [opened], fit.posterior, mass=mass, draws=draws, seed=seed
        )
        output.write_table(_columns(prediction), out, source, overwrite=overwrite)
    if as_json:
        basis = model_output.basis_document(opened, fit.posterior, mass=mass, draws=draws, seed=seed)
        rows = {} if out is not None else {"rows": prediction.rows()}
        output.print_json({**basis, "outcome": fit.outcome.name, "counts": prediction.counts, **rows})
        return
    if out is None and prediction.counts["rows"]:
        model_output.print_cells(prediction.rows(MOST_SHOWN), prediction.groups)
        if prediction.counts["rows"] > MOST_SHOWN:
            say(f"... and {prediction.counts['rows'] - MOST_SHOWN} more rows: use --json or --out")
        say("")
    for line in _lines(fit, prediction):
        say(line)
    model_output.print_basis(opened, fit.posterior, draws=draws)
    output.print_written(out)


def _columns(prediction: Prediction) -> dict[str, Any]:
    """Return columns of predictions, null where there is no number."""
    import pyarrow as pa  # only writing needs it

    return {name: pa.array(values, from_pandas=True) for name, values in prediction.columns().items()}


def _lines(fit: Regression, prediction: Prediction) -> list[str]:
    """Return what there is to say of the rows: how many are predicted, and what of the others."""
    numbers = prediction.counts
    rows = {name: counted(number, "row") for name, number in numbers.items()}
    said = [f"{fit.outcome.name} is predicted for {numbers['predicted']} of {rows['rows']}"]
    if numbers["incomplete"]:
        said.append(f"no prediction for {rows['incomplete']} without some predictor")
    if numbers["of_no_cell"]:
        said.append(f"no prediction for {rows['of_no_cell']} of no selected cell")
    if numbers["extrapolated"]:
        bounds = ", ".join(
            f"{column.name} {float(column.lower):g}..{float(column.upper):g}" for column in fit.bounds
        )
        said.append(
            f"extrapolated for {rows['extrapolated']} beyond the public bounds of predictors ({bounds}): the "
            "release clipped its rows to them, so the line is carried on where nothing was seen"
        )
    return said
