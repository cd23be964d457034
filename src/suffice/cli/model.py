"""``suffice model``: what rows, conditions, steps and hidden states follow from a release."""

from __future__ import annotations

import typer

from suffice.cli import hidden_markov, predict, transitions

app = typer.Typer(
    help="Models over a release: predict, query, follow over time. Costs no privacy.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
app.command()(predict.predict)
app.command()(transitions.transitions)
app.command("hidden-markov")(hidden_markov.hidden_markov)
