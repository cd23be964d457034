"""The command that fits hidden Markov models to releases."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import messages, options, output
from suffice.cli.files import OverwriteOption, check_file, new_file
from suffice.cli.output import in_line, say
from suffice.cli.publication_output import PublishToOption, publish_model
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.documents import CountOrNone, document, printed
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.data_files.source import Provenance
    from suffice.pipeline.ask.models.hidden_markov import StateComparison
    from suffice.pipeline.ask.models.hidden_markov_fit import FitSummary, HiddenMarkovFit
    from suffice.pipeline.ask.pooling.release import Release


@printed("source *summary seed")
@dataclass(frozen=True, slots=True, kw_only=True)
class FitAnswer:
    """What ``suffice model hidden-markov`` prints of one number of states."""

    source: Provenance
    summary: FitSummary
    seed: CountOrNone


@printed("source *comparison seed")
@dataclass(frozen=True, slots=True, kw_only=True)
class StatesAnswer:
    """What it prints of several."""

    source: Provenance
    comparison: StateComparison
    seed: CountOrNone


def hidden_markov(
    releases: Annotated[
        list[str],
        typer.Argument(
            metavar="RELEASE...",
            help="A path or URI, or NAME[@WINDOW]; several windows of a series are time.",
        ),
    ],
    states: Annotated[
        list[int],
        typer.Option("--states", metavar="K", help="How many states; repeat to compare numbers of states."),
    ],
    statistic: Annotated[
        list[str] | None,
        typer.Option("--statistic", help="A feature; may repeat; default: all that fit."),
    ] = None,
    chain: Annotated[
        list[str] | None,
        typer.Option("--chain", metavar="COLUMN", help="Its keys are chains; may repeat."),
    ] = None,
    time: Annotated[
        list[str] | None,
        typer.Option("--time", metavar="COLUMN", help="Its keys are time; may repeat, the slowest first."),
    ] = None,
    method: options.MethodOption = "noise-aware",
    project: Annotated[
        str | None,
        typer.Option("--project", metavar="simplex|clip|none", help="Of plug-in: how counts are projected."),
    ] = None,
    sampler: Annotated[
        str | None, typer.Option("--sampler", metavar="ffbs|single-site", help="Of plug-in.")
    ] = None,
    restarts: Annotated[int, typer.Option("--restarts", help="Chains of the sampler.")] = 4,
    sweeps: Annotated[
        int | None,
        typer.Option("--sweeps", help="Of each restart; default: 400, doubled until restarts agree."),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            "--draws", help="That are kept of each restart; default: 100, or one a sweep of its second half."
        ),
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option("--holdout", help="Of comparisons: the share of cells held out; default 0.1."),
    ] = None,
    splits: Annotated[
        int | None, typer.Option("--splits", help="Of comparisons: how often; default 10.")
    ] = None,
    alpha: Annotated[float, typer.Option("--alpha", help="Of the Dirichlet prior of transitions.")] = 1.0,
    beta: Annotated[float, typer.Option("--beta", help="Of the Dirichlet prior of emissions.")] = 1.0,
    rate: Annotated[
        float, typer.Option("--rate", help="Of the prior Gamma(1, rate) of a cell's expected rows.")
    ] = 0.001,
    where: options.WhereOption = None,
    mass: options.MassOption = 0.95,
    seed: options.SeedOption = None,
    draws_out: options.DrawsOutOption = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="DIR", help="Write four .png files into this folder.")
    ] = None,
    publish_to: PublishToOption = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Find hidden states of cells over time, noise included; or how many there are. Costs no privacy."""
    if len(states) > 1 and (draws_out, plot) != (None, None):
        message = "--draws-out and --plot are of one number of states: give --states once"
        raise UsageError(message)
    options.check_draws(1 if draws is None else draws, seed)
    pictures = _check_files(draws_out, plot, overwrite=overwrite)
    opened = [
        options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
        for release in releases
    ]
    if publish_to is not None:
        from suffice.pipeline.ask.models.chain_tables import feature_names

        publish_model(
            opened,
            feature_names(opened[0], statistic),
            {
                "name": "hidden_markov",
                "states": states,
                "chain": chain or [],
                "time": time,
                "project": project,
                "sampler": sampler,
                "restarts": restarts,
                "sweeps": sweeps,
                "holdout": None if holdout is None else repr(holdout),
                "splits": splits,
                "alpha": repr(alpha),
                "beta": repr(beta),
                "rate": repr(rate),
            },
            publish_to,
            out=draws_out or plot,
            as_json=as_json,
            where=options.parse_pairs("--where", where),
            method=method,
            mass=mass,
            draws=draws,
            seed=seed,
        )
        return
    from suffice.pipeline.ask.models.hidden_markov import hidden_markov as fit_model
    from suffice.pipeline.ask.models.hidden_markov_fit import FitSummary, HiddenMarkovFit
    from suffice.pipeline.math.parameters.arguments import ends_of

    ends_of(mass)
    number: Any = states[0] if len(states) == 1 else states
    fit: HiddenMarkovFit | StateComparison = fit_model(
        opened if len(opened) > 1 else opened[0],
        statistic,
        chain=chain or (),
        time=time,
        states=number,
        method=method,
        project=project,
        sampler=sampler,
        restarts=restarts,
        sweeps=sweeps,
        draws=draws,
        holdout=holdout,
        splits=splits,
        alpha=alpha,
        beta=beta,
        rate=rate,
        where=options.parse_pairs("--where", where),
        rng=seed,
        progress=messages.progress("sampling", "sweeps"),
    )
    if not isinstance(fit, HiddenMarkovFit):
        _show_comparison(fit, opened, seed=seed, as_json=as_json)
        return
    from suffice.data_files.source import fit_source

    source = fit_source("draws of a hidden Markov model", opened, fit, seed=seed)
    if draws_out is not None:
        if draws_out.suffix == ".nc":
            output.write_netcdf(fit.to_arviz(), draws_out, source, overwrite=overwrite)
        else:
            columns = fit.draw_columns()
            output.write_table(columns, draws_out, source, overwrite=overwrite, option=output.DRAWS_OUT)
    if pictures:
        _write_pictures(fit, pictures, opened[0].name, source, overwrite=overwrite)
    if as_json:
        source = fit_source("hidden Markov model", opened, fit, seed=seed)
        answer = FitAnswer(source=source, summary=FitSummary(fit=fit, mass=mass), seed=seed)
        output.print_json(document(answer))
        return
    _print_fit(fit)
    _print_basis(opened, fit)
    output.print_written(*pictures.values(), draws=draws_out)


def _check_files(out: Path | None, plot: Path | None, *, overwrite: bool) -> dict[str, Path]:
    """Refuse a file that cannot be written, before any work is done; return the pictures' paths by name."""
    output.check_draws(out, overwrite=overwrite)
    if plot is None:
        return {}
    from suffice.plots.states import FIGURES  # matplotlib is slow to import
    from suffice.plots.style import check_plot

    paths = {name: plot / f"{name}.png" for name in FIGURES}
    for path in paths.values():
        check_plot(path)
        check_file("--plot", path, overwrite=overwrite)
    return paths


def _write_pictures(
    fit: HiddenMarkovFit, paths: dict[str, Path], title: str, source: Provenance, *, overwrite: bool
) -> None:
    from suffice.plots.states import state_figures  # matplotlib is slow to import
    from suffice.plots.style import footer_of, save

    for name, figure in state_figures(fit, title, footer_of(source)).items():
        path = paths[name]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            message = f"--plot {path.parent}: the folder cannot be made"
            raise UsageError(message) from None
        with new_file("--plot", path, overwrite=overwrite) as written:
            save(figure, written)


def _print_fit(fit: HiddenMarkovFit) -> None:
    """Print a line for each state: its share of cells, how it stays, what tells it from the others."""
    share, matrix = fit.state_share.mean(axis=0), fit.transitions.mean(axis=0)
    emissions = {name: sample.mean(axis=0) for name, sample in fit.emissions.items()}
    rows: list[dict[str, Any]] = []
    for state in range(fit.n_states):
        row: dict[str, Any] = {
            "state": state + 1,
            "cells": f"{100 * share[state]:.1f} %",
            "stays": f"{matrix[state, state]:.3f}",
        }
        for feature in fit.table.features:
            emission = emissions[feature.name][state]
            if fit.n_states == 1:
                most = int(emission.argmax())
                row[feature.name] = f"{feature.categories[most]}: {emission[most]:.2f}"
                continue
            above = emission - share @ emissions[feature.name]
            most = int(above.argmax())
            row[feature.name] = f"{feature.categories[most]}: {emission[most]:.2f} ({above[most]:+.2f})"
        rows.append(row)
    output.print_rows(rows)
    if fit.n_states == 1:
        say("\nof each feature the most probable category; --json and --draws-out have all numbers")
        return
    say("\nof each feature the category that is most above all cells: its probability, and")
    say("by how much it is above; --json and --draws-out have all numbers")


def _show_comparison(
    comparison: StateComparison, opened: Sequence[Release], *, seed: int | None, as_json: bool
) -> None:
    if as_json:
        from suffice.data_files.source import fit_source  # pydantic is slow to import

        source = fit_source("held-out scores of numbers of states", opened, comparison, seed=seed)
        output.print_json(document(StatesAnswer(source=source, comparison=comparison, seed=seed)))
        return
    from suffice.pipeline.ask.models.state_sampling import LARGEST_R_HAT

    output.print_rows(comparison.rows(), digits=output.DIGITS)
    say("\nscore: mean log likelihood of a held-out cell's noisy counts")
    say(f"difference: from one state; sd: of the difference over {counted(comparison.n_splits, 'split')}")
    say(f"held out in each split: {100 * comparison.holdout:g} % of cells")
    if max(row["r_hat"] for row in comparison.rows()) > LARGEST_R_HAT:
        say(f"r_hat above {LARGEST_R_HAT}: restarts do not agree in some split; more --sweeps may help")
    say(f"highest score: {counted(comparison.best, 'state')}")
    for line in comparison.settings[0].lines:
        say(line)
    _print_releases(opened, [feature.name for feature in comparison.table.features])


def _print_basis(opened: Sequence[Release], fit: HiddenMarkovFit) -> None:
    say("")
    for line in (*fit.diagnostics.lines, *fit.settings.lines):
        say(line)
    _print_releases(opened, [feature.name for feature in fit.table.features])


def _print_releases(opened: Sequence[Release], names: Sequence[str]) -> None:
    for release in opened:
        for name in names:
            output.print_saturation(release.statistic(name))
    say(f"statistics: {', '.join(map(in_line, names))}")
    labels = [release.label for release in opened]
    shown = ", ".join(labels) if len(labels) <= 4 else f"{labels[0]} to {labels[-1]}, {len(labels)} windows"
    say(f"releases: {shown}" if len(labels) > 1 else f"release: {shown}")
