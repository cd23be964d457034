"""The command that asks a joint model of categories for a conditional distribution."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import options, output
from suffice.cli.answers import INTERVAL, MODEL, OF_A_MODEL, ModelAnswer, answer_terms
from suffice.cli.files import OverwriteOption  # noqa: TC001 - Typer reads it
from suffice.cli.output import in_line, say
from suffice.cli.publication_output import PublishToOption, publish_model
from suffice.data_files.tables import columns_of
from suffice.pipeline.terms.declaration.documents import Measured, Rows, document, printed

if TYPE_CHECKING:
    from collections.abc import Mapping


@printed(f"{OF_A_MODEL} target given do rows undefined_share")
@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAnswer(ModelAnswer):
    """What ``suffice model query`` prints."""

    target: list[str]
    given: Mapping[str, str]
    do: Mapping[str, str]
    rows: Annotated[list[dict[str, Any]], Rows(parameter=str, **INTERVAL, median=Measured)]
    undefined_share: float


@options.with_terms(without=("clipping", "within_unit", "predictor_prior"))
def query(
    release: options.ReleaseArgument,
    statistic: options.StatisticArgument,
    target: Annotated[
        list[str],
        typer.Option("--target", metavar="VARIABLE", help="What is asked for; repeat for several together."),
    ],
    terms: options.Terms,
    given: Annotated[
        list[str] | None,
        typer.Option("--given", metavar="VARIABLE=CATEGORY", help="What is observed; may repeat."),
    ] = None,
    do: Annotated[
        list[str] | None,
        typer.Option(
            "--do", metavar="VARIABLE=CATEGORY", help="What is set, whatever its parents; may repeat."
        ),
    ] = None,
    mass: options.MassOption = 0.95,
    draws: options.NumberOfDrawsOption = 4000,
    seed: options.SeedOption = None,
    out: options.OutOption = None,
    draws_out: options.DrawsOutOption = None,
    publish_to: PublishToOption = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Print what a network says of some variables, given or set others, with intervals. Costs no privacy."""
    output.check_out(out, overwrite=overwrite)
    output.check_draw_table(draws_out, overwrite=overwrite)
    options.check_draws(draws, seed)
    observed, chosen = options.parse_pairs("--given", given), options.parse_pairs("--do", do)
    opened = options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    if publish_to is not None:
        publish_model(
            [opened],
            [statistic],
            {"name": "query", "target": target, "given": observed, "do": chosen},
            publish_to,
            out=out or draws_out,
            as_json=as_json,
            mass=mass,
            draws=draws,
            seed=seed,
            **terms,
        )
        return
    from suffice.pipeline.ask.models.network import network

    fit = network(opened, statistic, draws=draws, rng=seed, **terms)
    answer = fit.query(target, observed, chosen, mass)
    undefined = float(answer.probability.undefined_share.max())
    source = output.model_source(MODEL, [opened], fit.posterior, mass=mass, draws=draws, seed=seed)
    if out is not None:
        output.write_table(columns_of(answer.rows()), out, source, overwrite=overwrite)
    if draws_out is not None:
        drawn = dataclasses.replace(source, what="draws of a query", mass=None, interval=None)
        output.write_table(
            answer.draw_columns(), draws_out, drawn, overwrite=overwrite, option=output.DRAWS_OUT
        )
    if as_json:
        asked = QueryAnswer(
            **answer_terms(opened, fit.posterior, mass=mass, draws=draws, seed=seed),
            target=target,
            given=observed,
            do=chosen,
            rows=answer.rows(),
            undefined_share=undefined,
        )
        output.print_json(document(asked))
        return
    rows = [{name: value for name, value in row.items() if name != "parameter"} for row in answer.rows()]
    output.print_cells(rows, answer.groups, opened.about, statistic)
    if observed or chosen:
        say("")
    for name, stated in (("given", observed), ("do", chosen)):
        if stated:
            say(
                f"{name}: "
                + in_line(", ".join(f"{column}={category}" for column, category in stated.items()))
            )
    if chosen:
        say("do: holds in the world only where the declared graph does")
    if undefined > 0.0:
        share = f"{100 * undefined:.3g} %"
        say(f"what is given has no chance in up to {share} of draws: numbers are of the others")
    output.print_basis(opened, fit.posterior, draws=draws)
    output.print_written(table=out, draws=draws_out)
