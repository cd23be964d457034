"""Commands that simulate: what a release would be worth, and whether its posteriors are calibrated."""

from __future__ import annotations

import warnings
from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli import output
from suffice.cli.files import OverwriteOption, check_file, new_file
from suffice.cli.options import (
    DEFAULT_STORE,
    AllowWithdrawnOption,
    ClippingOption,
    JsonOption,
    PredictorPriorOption,
    PublicKeyOption,
    ReleaseArgument,
    SpecArgument,
    StatisticArgument,
    StoreOption,
    WhereOption,
    open_for_reading,
    parse_pairs,
)
from suffice.cli.terminal import say
from suffice.errors import SufficeWarning, UsageError

if TYPE_CHECKING:
    from suffice.pipeline.spec.spec import Spec

_MOST_SIMULATIONS = 1_000_000


def plan(
    spec: SpecArgument,
    target: Annotated[
        str | None,
        typer.Option("--target", help='Find the smallest epsilon for it, as "arr_delay mean width 2".'),
    ] = None,
    n: Annotated[int | None, typer.Option("--n", help="Records in a cell, for --target.")] = None,
    prior: Annotated[str | None, typer.Option("--prior", help="Of the parameters, for --target.")] = None,
    n_prior: Annotated[
        str | None, typer.Option("--n-prior", help="Of a private N, for --target; default: up to twice --n.")
    ] = None,
    simulations: Annotated[
        int | None,
        typer.Option(
            "--simulations", help="Data sets to draw for --target; default: 200, or 40 under a density."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Makes --target repeatable.")] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show what would be released and how noisy it would be; reads no data, spends nothing."""
    from suffice.pipeline.spec.plan import compile_plan  # noqa: PLC0415 - each command imports what it needs
    from suffice.pipeline.spec.spec import load_spec  # noqa: PLC0415
    from suffice.storage.releases.manifest import require_manifest  # noqa: PLC0415

    read = load_spec(spec)
    compiled = compile_plan(read)
    require_manifest(compiled)
    _warn_of_units(read)
    if target is None:
        if {n, prior, n_prior, simulations, seed} != {None}:
            message = "--n, --prior, --n-prior, --simulations and --seed are options of --target: give it too"
            raise UsageError(message)
        if as_json:
            output.print_json(compiled.to_dict())
        else:
            say(compiled)
        return
    if n is None:
        message = "--target needs --n: the records that a cell is expected to have"
        raise UsageError(message)
    _check_simulation(simulations, seed)
    from suffice.pipeline.planning.smallest_epsilon import smallest_epsilon  # noqa: PLC0415

    needed = smallest_epsilon(
        read,
        target,
        n=n,
        prior=prior,
        n_prior=n_prior,
        simulations=simulations,
        rng=seed,
        progress=None if as_json else output.Progress("planning", "posteriors"),
    )
    if as_json:
        output.print_json({**compiled.to_dict(), "target": {**needed.to_dict(), "seed": seed}})
    else:
        say(f"{compiled}\n\n{needed}")


def _warn_of_units(spec: Spec) -> None:
    """Warn of files whose units cannot be told to be equal: from schemas, where the source is in sight."""
    if spec.privacy.column_unit is None:
        return
    from suffice.pipeline import sources  # noqa: PLC0415
    from suffice.pipeline.sources.schema_check import unit_warnings  # noqa: PLC0415

    try:
        texts = unit_warnings(spec, sources.schema(sources.pin(spec)))
    except UsageError:
        texts = ("no schema: the source is not in sight, so the types of its unit column were not compared",)
    for text in texts:
        warnings.warn(text, SufficeWarning, stacklevel=2)


def calibrate(
    release: ReleaseArgument,
    statistic: StatisticArgument,
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
    clipping: ClippingOption = "modelled",
    predictor_prior: PredictorPriorOption = None,
    predictors: Annotated[
        list[str] | None,
        typer.Option(
            "--predictors",
            metavar="TEXT",
            help='What a regression\'s predictors are drawn from: "Normal(0, 1)" for all, or one for each in '
            "turn, or a public .csv or .parquet file; default: their prior.",
        ),
    ] = None,
    where: WhereOption = None,
    method: Annotated[str, typer.Option("--method", metavar="noise-aware|plug-in")] = "noise-aware",
    simulations: Annotated[
        int | None,
        typer.Option(
            "--simulations",
            help="Data sets to draw; default: what a verdict takes, 5000 or more, or 200 if slow.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Makes the simulation repeatable.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="A .png or .svg file.")] = None,
    store: StoreOption = DEFAULT_STORE,
    public_keys: PublicKeyOption = None,
    *,
    allow_withdrawn: AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Simulate this release from the priors, and see how often posterior intervals hold the truth."""
    _check_simulation(simulations, seed)
    if plot is not None:
        from suffice.plots.style import check_plot  # noqa: PLC0415 - each command imports what it needs

        check_plot(plot)
        check_file("--plot", plot, overwrite=overwrite)
    from suffice.pipeline.calibration.calibrate import calibrate  # noqa: PLC0415

    opened = open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    found = calibrate(
        opened,
        statistic,
        where=parse_pairs("--where", where),
        method=method,
        prior=prior,
        n_prior=n_prior,
        clipping=clipping,
        predictor_prior=predictor_prior,
        predictors=predictors[0] if predictors and len(predictors) == 1 else predictors,
        simulations=simulations,
        rng=seed,
        progress=output.Progress("simulating", "data sets"),
    )
    from suffice.data_files.source import calibration_source  # noqa: PLC0415

    source = calibration_source(opened, statistic, found, seed=seed)
    if plot is not None:
        from suffice.plots.calibrations import plot_calibration  # noqa: PLC0415
        from suffice.plots.style import footer_of  # noqa: PLC0415

        title = f"{opened.label}: calibration of {statistic}"
        footer = footer_of(source, [opened])
        with new_file("--plot", plot, overwrite=overwrite) as written:
            plot_calibration(found, written, title=title, footer=footer)
    if as_json:
        basis = {"source": source.document(), "release": opened.label}
        output.print_json({**basis, **found.to_dict(), "seed": seed})
    else:
        say(found)
        output.print_written(plot)


def _check_simulation(simulations: int | None, seed: int | None) -> None:
    if simulations is not None and not 1 <= simulations <= _MOST_SIMULATIONS:
        message = f"--simulations {simulations}: a number in 1..{_MOST_SIMULATIONS}"
        raise UsageError(message)
    if seed is not None and seed < 0:
        message = f"--seed {seed}: a seed is an integer of at least 0"
        raise UsageError(message)
