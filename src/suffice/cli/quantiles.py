"""``suffice quantiles``: what a histogram says of its column, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli import messages, options, output
from suffice.cli.answers import FOOT, HEAD, Answer
from suffice.cli.column_quantiles import (
    QUANTILES,
    AtOption,
    QuantileRows,
    estimate_rows,
    numbers_of,
    quantiles_of,
)
from suffice.cli.files import OverwriteOption, check_file, new_file
from suffice.cli.output import say
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.documents import document, printed
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.wording import wrapped

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.engines.histogram.column_law import ColumnLaw, Estimate


@printed(f"{HEAD} of mass rows {FOOT}")
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantilesAnswer(Answer):
    """What ``suffice quantiles`` prints."""

    release: str
    of: str
    mass: float
    rows: QuantileRows


@options.with_terms(without=("method", "clipping", "within_unit", "predictor_prior", "n_prior"))
def quantiles(
    release: options.ReleaseArgument,
    statistic: options.StatisticArgument,
    terms: options.Terms,
    at: AtOption = None,
    at_least: Annotated[
        list[str] | None,
        typer.Option("--at-least", metavar="X", help="The share of values of X or more. May repeat."),
    ] = None,
    mass: options.MassOption = 0.95,
    draws: options.NumberOfDrawsOption = 4000,
    seed: options.SeedOption = None,
    plot: options.PlotOption = None,
    out: options.OutOption = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    spread: Annotated[
        bool, typer.Option("--spread", help="How far the upper quartile is above the lower one.")
    ] = False,
    mean: Annotated[
        bool, typer.Option("--mean", help="The mean of the column as its bounds leave it.")
    ] = False,
    gini: Annotated[bool, typer.Option("--gini", help="Gini's index, of values of 0 or more.")] = False,
    of_rows: Annotated[
        bool, typer.Option("--of-rows", help="Of the rows that were counted, not of the law they come from.")
    ] = False,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Print quantiles, tail shares, mean and spread of a histogram's column. Costs no privacy."""
    levels, numbers = quantiles_of(at), numbers_of("--at-least", at_least)
    output.check_out(out, overwrite=overwrite)
    options.check_draws(draws, seed)
    if plot is not None:
        from suffice.plots.style import check_plot  # numpy is slow to import

        check_plot(plot)
        check_file("--plot", plot, overwrite=overwrite)
    if not levels and not numbers and not (spread or mean or gini):
        levels = quantiles_of(list(QUANTILES))
    opened = options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    plan = opened.plan_of(statistic)
    lowest = plan.parameters.lower
    if gini and lowest is not None and lowest < 0:
        message = (
            f"--gini is of values of 0 or more, and the lowest bound of {statistic} is "
            f"{format_number(lowest)}: leave it out"
        )
        raise UsageError(message)
    terms["where"] = opened.about.in_names(terms["where"], opened.group_columns)
    posterior = opened.posterior(statistic, **terms, progress=messages.cell_progress("posterior"))
    of = "rows" if of_rows else "law"
    law = posterior.column(of, draws=draws, rng=seed)
    asked = _estimates(law, levels, numbers, spread=spread, mean=mean, gini=gini, mass=mass)
    rows = estimate_rows(posterior.groups, asked)
    source = output.model_source(
        f"quantiles of a column, of the {of}", [opened], posterior, mass=mass, draws=draws, seed=seed
    )
    if out is not None:
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        output.write_table(columns, out, source, overwrite=overwrite)
    if plot is not None:
        with new_file("--plot", plot, overwrite=overwrite) as written:
            _plot(posterior, written, draws=draws, seed=seed, mass=mass)
    if as_json:
        answer = QuantilesAnswer(
            source=source,
            release=opened.label,
            posterior=posterior,
            of=of,
            mass=mass,
            rows=rows,
            draws=draws,
            seed=seed,
        )
        output.print_json(document(answer))
        return
    shown = [{name: value for name, value in row.items() if name != "is_refused"} for row in rows]
    output.print_cells(shown, posterior.groups, opened.about, statistic)
    say("")
    for note in dict.fromkeys(estimate.note for _, estimate in asked if estimate.note):
        say(wrapped(note))
    what = "the rows that were counted" if of_rows else "the law that rows come from"
    hold = f"intervals hold {100 * mass:g} % or more: bins have widths"
    say(wrapped(f"of {what}, as the bounds leave values; {hold}"))
    output.print_basis(opened, posterior, draws=draws)
    output.print_written(plot, table=out)


def _estimates(
    law: ColumnLaw,
    levels: list[float],
    numbers: list[float],
    *,
    spread: bool,
    mean: bool,
    gini: bool,
    mass: float,
) -> list[tuple[str, Estimate]]:
    """Return what is asked for, by what it is called."""
    asked = [(f"quantile {q:g}", law.quantile(q, mass)) for q in levels]
    asked += [(f"share of {x:g} or more", law.tail_share(x, mass)) for x in numbers]
    asked += [("interquartile range", law.interquantile_range(mass=mass))] if spread else []
    asked += [("mean", law.mean(mass))] if mean else []
    asked += [("Gini index", law.gini(mass))] if gini else []
    return asked


def _plot(posterior: Posterior, path: Path, *, draws: int, seed: int | None, mass: float) -> None:
    import numpy as np  # help needs no numbers

    from suffice.plots.columns import plot_column  # matplotlib is slow to import
    from suffice.plots.style import footer_of_posterior

    title = posterior.titled or posterior.statistic
    footer = footer_of_posterior(posterior)
    rng = np.random.default_rng(seed)
    plot_column(posterior, path, title=title, footer=footer, draws=draws, rng=rng, mass=mass)
