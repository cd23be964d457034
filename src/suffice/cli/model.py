"""``suffice model``: what rows, conditions, steps and hidden states follow from a release."""

from __future__ import annotations

import typer

from suffice.cli import classify, hidden_markov, predict, query, transitions

app = typer.Typer(
    help="Models over a release: predict, query, follow over time. Costs no privacy.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
app.command()(classify.classify)
app.command()(predict.predict)
app.command()(query.query)
app.command()(transitions.transitions)
app.command("hidden-markov")(hidden_markov.hidden_markov)
