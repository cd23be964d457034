"""``suffice model``: what rows, conditions, steps and hidden states follow from a release."""

from __future__ import annotations

import typer

from suffice.cli import model_hidden_markov, transitions

app = typer.Typer(
    help="Models over a release: predict, query, follow over time. Costs no privacy.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
app.command()(transitions.transitions)
app.command("hidden-markov")(model_hidden_markov.hidden_markov)
