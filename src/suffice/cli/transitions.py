"""The command that follows Markov chains over their steps."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from suffice.cli import options, output
from suffice.cli.answers import INTERVAL, MODEL, OF_A_MODEL, ModelAnswer, answer_terms
from suffice.cli.files import OverwriteOption, check_file, new_file
from suffice.cli.output import say
from suffice.cli.publication_output import PublishToOption, publish_model
from suffice.data_files.tables import columns_of
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.documents import Measured, Rows, document, printed


@printed(f"{OF_A_MODEL} states rows undefined_share")
@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionsAnswer(ModelAnswer):
    """What ``suffice model transitions`` prints."""

    states: list[str]
    rows: Annotated[list[dict[str, Any]], Rows(quantity=str, **INTERVAL, median=Measured)]
    undefined_share: float


@options.with_terms(without=("clipping", "within_unit", "predictor_prior"))
def transitions(
    release: options.ReleaseArgument,
    statistic: options.StatisticArgument,
    terms: options.Terms,
    steps: Annotated[
        list[int] | None,
        typer.Option("--steps", metavar="K", help="Give the law of the state after K steps; may repeat."),
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="STATE", help="Where --steps start; default: each state.")
    ] = None,
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to", metavar="STATE", help="Give expected steps to it; may repeat; default: each state."
        ),
    ] = None,
    mass: options.MassOption = 0.95,
    draws: options.NumberOfDrawsOption = 4000,
    seed: options.SeedOption = None,
    out: options.OutOption = None,
    draws_out: options.DrawsOutOption = None,
    plot: options.PlotOption = None,
    publish_to: PublishToOption = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Print a Markov chain's transitions, long run and expected steps, with intervals. Costs no privacy."""
    if start is not None and not steps:
        message = "--from says where --steps starts: give it too, as --steps 3"
        raise UsageError(message)
    output.check_out(out, overwrite=overwrite)
    output.check_draw_table(draws_out, overwrite=overwrite)
    if plot is not None:
        from suffice.plots.style import check_plot  # matplotlib is slow to import

        check_plot(plot)
        check_file("--plot", plot, overwrite=overwrite)
    options.check_draws(draws, seed)
    opened = options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    if publish_to is not None:
        publish_model(
            [opened],
            [statistic],
            {"name": "transitions", "steps": steps or [], "start": start, "to": to},
            publish_to,
            out=out or draws_out or plot,
            as_json=as_json,
            mass=mass,
            draws=draws,
            seed=seed,
            **terms,
        )
        return
    from suffice.pipeline.ask.models.chain import chain

    fit = chain(opened, statistic, draws=draws, rng=seed, **terms)
    rows = fit.rows(mass, steps=steps or (), to=to, start=start)
    undefined = float(fit.undefined_share.max())
    source = output.model_source("draws of a chain", [opened], fit.posterior, draws=draws, seed=seed)
    if out is not None:
        summaries = dataclasses.replace(source, what=MODEL, mass=mass)
        output.write_table(columns_of(rows), out, summaries, overwrite=overwrite)
    if draws_out is not None:
        columns = fit.draw_columns(steps=steps or (), to=to, start=start)
        output.write_table(columns, draws_out, source, overwrite=overwrite, option=output.DRAWS_OUT)
    if plot is not None:
        from suffice.plots.states import plot_chain
        from suffice.plots.style import footer_of

        title, footer = opened.titled(statistic), footer_of(source, [opened])
        with new_file("--plot", plot, overwrite=overwrite) as written:
            plot_chain(fit, written, title=title, footer=footer, mass=mass)
    if as_json:
        answer = TransitionsAnswer(
            **answer_terms(opened, fit.posterior, mass=mass, draws=draws, seed=seed),
            states=list(fit.states),
            rows=rows,
            undefined_share=undefined,
        )
        output.print_json(document(answer))
        return
    output.print_cells(rows, fit.posterior.groups, opened.about, statistic)
    say("\nexpected_steps have medians and intervals: their means need not exist")
    if undefined > 0.0:
        say(
            f"the stationary distribution is not defined in up to {100 * undefined:.3g} % of draws, and is "
            "of the others: several parts of the chain cannot be left there, and the long run depends on "
            "the start"
        )
    output.print_basis(opened, fit.posterior, draws=draws)
    output.print_written(plot, table=out, draws=draws_out)
