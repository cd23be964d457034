"""The command that measures whether posteriors of a release are calibrated."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import Annotated

import typer

from suffice import rendering
from suffice.cli_options import (
    DEFAULT_STORE,
    JsonOption,
    PublicKeyOption,
    ReleaseArgument,
    StoreOption,
    WhereOption,
    parse_where,
)
from suffice.errors import UsageError


def calibrate(
    release: ReleaseArgument,
    statistic: Annotated[str, typer.Argument(help="A statistic of the release.")],
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
    where: WhereOption = None,
    method: Annotated[str, typer.Option("--method", metavar="noise-aware|plug-in")] = "noise-aware",
    simulations: Annotated[int, typer.Option("--simulations", help="Data sets to draw.")] = 1000,
    seed: Annotated[int | None, typer.Option("--seed", help="Makes the simulation repeatable.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="A .png or .svg file.")] = None,
    store: StoreOption = DEFAULT_STORE,
    public_keys: PublicKeyOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Simulate this release from the priors, and see how often posterior intervals hold the truth."""
    if simulations < 1:
        message = f"--simulations {simulations}: a number above 0"
        raise UsageError(message)
    if seed is not None and seed < 0:
        message = f"--seed {seed}: a seed is an integer of at least 0"
        raise UsageError(message)
    if plot is not None:
        from suffice.plotting import check_plot  # noqa: PLC0415 - each command imports what it needs

        check_plot(plot)
    from suffice.pipeline.calibration import calibrate  # noqa: PLC0415
    from suffice.storage.release_store import open_release  # noqa: PLC0415

    opened = open_release(release, store=store, public_keys=public_keys)
    found = calibrate(
        opened,
        statistic,
        where=parse_where(where),
        method=method,
        prior=prior,
        n_prior=n_prior,
        simulations=simulations,
        rng=seed,
        progress=rendering.Progress("simulating", "data sets"),
    )
    if plot is not None:
        from suffice.plotting import plot_calibration  # noqa: PLC0415

        plot_calibration(found, plot, title=f"{opened.name}: {statistic}")
    if as_json:
        rendering.print_json({**found.to_dict(), "seed": seed})
    else:
        print(found)
