"""``suffice calibrate``: whether posteriors of a release are calibrated, by simulation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import options, output
from suffice.cli.files import OverwriteOption, check_file, new_file
from suffice.cli.output import say
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.documents import CountOrNone, document, printed

if TYPE_CHECKING:
    from suffice.data_files.source import Provenance
    from suffice.pipeline.ask.calibration.calibrate import Calibration
    from suffice.pipeline.ask.calibration.pooled_calibration import PooledCalibration


@printed("source release *calibration seed")
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedAnswer:
    """What ``suffice calibrate`` prints."""

    source: Provenance
    release: str
    calibration: Calibration
    seed: CountOrNone


@printed("source release *calibration seed")
@dataclass(frozen=True, slots=True, kw_only=True)
class PooledCalibratedAnswer:
    """What ``suffice calibrate --pooled`` prints."""

    source: Provenance
    release: str
    calibration: PooledCalibration
    seed: CountOrNone


@options.with_terms(without=("prior", "n_prior", "within_unit"))
def calibrate(
    release: options.ReleaseArgument,
    statistic: options.StatisticArgument,
    terms: options.Terms,
    prior: Annotated[
        str | None, typer.Option("--prior", help="Truths are drawn from it; default: the family's.")
    ] = None,
    n_prior: Annotated[
        str | None,
        typer.Option(
            "--n-prior",
            help="A private N is drawn from it; default: uniform up to twice the cells' median noisy N.",
        ),
    ] = None,
    predictors: Annotated[
        list[str] | None,
        typer.Option(
            "--predictors",
            metavar="TEXT",
            help='What a regression\'s predictors are drawn from: "Normal(0, 1)" for all, or one for each in '
            "turn, or a public .csv or .parquet file; default: their prior.",
        ),
    ] = None,
    worlds: Annotated[
        bool,
        typer.Option("--worlds", help="Measure coverage of records that do not follow the model as well."),
    ] = False,
    pooled: Annotated[
        list[str] | None,
        typer.Option(
            "--pooled",
            metavar="all|POPULATION|KEY",
            help="Coverage of cells that borrow strength, over whole simulated releases. May repeat.",
        ),
    ] = None,
    simulations: Annotated[
        int | None,
        typer.Option(
            "--simulations",
            help="Data sets to draw; default: what a verdict takes, 5000 or more, or 200 if slow. "
            "Of --pooled releases; default: 200, or 50 if slow.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Makes the simulation repeatable.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="A .png or .svg file.")] = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Simulate this release from the priors, and see how often posterior intervals hold the truth."""
    options.check_simulation(simulations, seed)
    if plot is not None:
        from suffice.plots.style import check_plot  # matplotlib is slow to import

        check_plot(plot)
        check_file("--plot", plot, overwrite=overwrite)
        if pooled:
            message = "--plot does not go with --pooled: leave one of them out"
            raise UsageError(message)
    from suffice.pipeline.ask.calibration.calibrate import calibrate

    opened = options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    ask: Any = calibrate  # whose overloads are for people
    calibration = ask(
        opened,
        statistic,
        **terms,
        prior=prior,
        n_prior=n_prior,
        predictors=predictors[0] if predictors and len(predictors) == 1 else predictors,
        worlds=worlds,
        simulations=simulations,
        rng=seed,
        progress=output.Progress("simulating", "releases" if pooled else "data sets"),
        pooled=pooled or False,
    )
    from suffice.data_files.source import calibration_source

    source = calibration_source(opened, statistic, calibration, seed=seed)
    if plot is not None:
        from suffice.plots.calibrations import plot_calibration
        from suffice.plots.style import footer_of

        title = f"{opened.label}: calibration of {statistic}"
        footer = footer_of(source, [opened])
        with new_file("--plot", plot, overwrite=overwrite) as written:
            plot_calibration(calibration, written, title=title, footer=footer)
    if as_json:
        answer = PooledCalibratedAnswer if pooled else CalibratedAnswer
        output.print_json(
            document(answer(source=source, release=opened.label, calibration=calibration, seed=seed))
        )
    else:
        say(calibration)
        output.print_written(plot)
