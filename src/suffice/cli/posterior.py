"""The command that prints posteriors, and draws, plots and cards of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import analysis, messages, options, output
from suffice.cli.files import OverwriteOption, check_file, new_file
from suffice.cli.output import say
from suffice.errors import UsageError
from suffice.pipeline.ask.posterior.notes import conflict_lines, default_lines, draws_text, plug_in_lines

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior


@options.with_terms()
def posterior(  # noqa: PLR0915 - a command and its files, in order
    release: options.ReleaseArgument,
    statistic: options.StatisticArgument,
    terms: options.Terms,
    mass: options.MassOption = 0.95,
    interval: options.IntervalOption = None,
    draws: options.NumberOfDrawsOption = 4000,
    seed: options.SeedOption = None,
    plot: options.PlotOption = None,
    plot_kind: Annotated[str | None, typer.Option("--plot-kind", metavar="density|forest")] = None,
    beside: Annotated[
        str | None,
        typer.Option("--beside", metavar="noise-aware|plug-in", help="Draw this method's beside it."),
    ] = None,
    card: Annotated[
        Path | None, typer.Option("--card", metavar="FILE", help="A self-contained .html page.")
    ] = None,
    versus: Annotated[
        list[str] | None,
        typer.Option("--versus", metavar="COLUMN=KEY", help="Compare what --where keeps with these cells."),
    ] = None,
    probability: Annotated[
        list[str] | None,
        typer.Option(
            "--probability",
            metavar="STATEMENT",
            help='As "mean > 10" or "10 < mean < 20"; of --versus "difference > 0", "ratio < 1"; may repeat.',
        ),
    ] = None,
    out: options.DrawsOption = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Print posterior means and credible intervals under any public prior. Costs no privacy."""
    _check_files(out, plot, plot_kind, card, overwrite=overwrite)
    if plot is None and (plot_kind, beside) != (None, None):
        message = "--plot-kind and --beside are options of --plot: give it too"
        raise UsageError(message)
    analysis.check_one_side(versus, {"--out": out, "--card": card, "--plot": plot})
    options.check_draws(draws, seed)
    opened = options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    import numpy as np

    from suffice.pipeline.ask.posterior.posterior import summarise

    analysis.check_versus(terms["where"], versus)
    statements = analysis.parse_statements(probability or [], is_contrast=bool(versus))
    drawn_from = opened.posterior(statistic, **terms, progress=messages.cell_progress("posterior"))
    rng = np.random.default_rng(seed)
    kind = drawn_from.interval_kind(interval)
    rows = summarise(drawn_from, mass, draws, rng, messages.cell_progress("intervals"), interval=kind)
    answers: dict[str, Any] = {}
    if versus:
        other = {**terms, "where": {**terms["where"], **options.parse_pairs("--versus", versus)}}
        against = opened.posterior(statistic, **other, progress=messages.cell_progress("posterior"))
        answers.update(
            analysis.comparison(
                drawn_from, against, versus, statements, mass=mass, interval=kind, draws=draws, rng=rng
            )
        )
    elif statements:
        answers["probability"] = analysis.probability(drawn_from, statements, draws, rng)
    from suffice.data_files.source import DRAWS, SUMMARIES, posterior_source

    source = posterior_source(
        SUMMARIES, [opened], drawn_from, mass=mass, interval=kind, draws=draws, seed=seed
    )
    if out is not None:
        drawn = dataclasses.replace(source, what=DRAWS, mass=None, interval=None)
        output.write_draws(drawn_from, out, drawn, draws, rng, overwrite=overwrite)
    if plot is not None:
        by_other_method = analysis.other_method(opened, statistic, beside, terms)
        with new_file("--plot", plot, overwrite=overwrite) as written:
            _plot(
                opened,
                drawn_from,
                written,
                draws=draws,
                rng=rng,
                mass=mass,
                interval=kind,
                kind=plot_kind,
                beside=by_other_method,
            )
    if card is not None:
        from suffice.pages.card import card as make_card

        page = make_card(opened, drawn_from, mass=mass, interval=kind, draws=draws, seed=seed, rng=rng)
        with new_file("--card", card, overwrite=overwrite) as written:
            written.write_text(page, encoding="utf-8")
    if as_json:
        output.print_json(
            {
                "source": source.document(),
                "release": opened.label,
                "statistic": statistic,
                "family": drawn_from.family,
                "rows_of": drawn_from.rows_of,
                "estimand": drawn_from.estimand or None,
                "method": drawn_from.method,
                **({"plug_in": lines} if (lines := plug_in_lines(drawn_from)) else {}),
                "prior": str(drawn_from.prior),
                "mass": mass,
                "interval": kind,
                "n_prior": None if drawn_from.n_prior is None else str(drawn_from.n_prior),
                "predictor_prior": drawn_from.predictor_prior,
                "draws": draws,
                "seed": seed,
                **({"diagnostics": drawn_from.diagnostics} if drawn_from.diagnostics else {}),
                "rows": rows,
                "clipping": output.clipping_document(drawn_from),
                "design_effect": output.design_effect_document(drawn_from),
                "conflicts": conflict_lines(drawn_from),
                "decided_by_default": default_lines(drawn_from),
                **answers,
            }
        )
        return
    from suffice.pipeline.math.parameters.parameter_posterior import interval_in_words

    _print_posterior(drawn_from, rows, answers)
    output.print_saturation(opened.statistic(statistic))
    _print_judgements(drawn_from)
    say(f"\nrelease: {opened.label}")
    _print_terms(drawn_from)
    say(f"intervals: {interval_in_words(kind, mass)}")
    if text := draws_text(drawn_from):
        say(f"{text}; these are of {draws} draws")
    else:
        say(f"quantities computed from draws use {draws} draws")
    output.print_written(out, plot, card)


def _check_files(
    out: Path | None, plot: Path | None, plot_kind: str | None, card: Path | None, *, overwrite: bool
) -> None:
    """Refuse a file that cannot be written, before any work is done."""
    output.check_draws(out, overwrite=overwrite)
    if plot is not None:
        from suffice.plots.posteriors import check_kind  # numpy is slow to import
        from suffice.plots.style import check_plot

        check_plot(plot)
        check_kind(plot_kind)
        check_file("--plot", plot, overwrite=overwrite)
    output.check_card(card, overwrite=overwrite)


def _plot(
    opened: Release, drawn_from: Posterior, path: Path, *, mass: float, interval: str, **plot_options: Any
) -> None:
    """Draw a posterior, and its sources below it."""
    from suffice.data_files.source import SUMMARIES, posterior_source
    from suffice.plots.posteriors import plot_posterior  # matplotlib is slow to import
    from suffice.plots.style import footer_of

    title = f"{opened.label}: {drawn_from.statistic}"
    footer = footer_of(
        posterior_source(SUMMARIES, [opened], drawn_from, mass=mass, interval=interval), [opened]
    )
    plot_posterior(drawn_from, path, title=title, footer=footer, mass=mass, interval=interval, **plot_options)


def _print_terms(drawn_from: Posterior) -> None:
    """Say what the parameters are of, and the priors."""
    output.print_rows_of(drawn_from.rows_of)
    say(f"prior: {drawn_from.prior}")
    if drawn_from.n_prior is not None:
        say(f"prior of N: {drawn_from.n_prior}")
    if drawn_from.predictor_prior is not None:
        say(f"prior of predictors: {drawn_from.predictor_prior}")


def _print_posterior(drawn_from: Posterior, rows: list[dict[str, Any]], answers: dict[str, Any]) -> None:
    plug_in = plug_in_lines(drawn_from)
    for line in plug_in:
        say(line)
    if plug_in:
        say("")
    output.print_estimand(drawn_from)
    output.print_rows(rows)
    if any(row["mean"] is None or row["sd"] is None for row in rows):
        say("\nmeans and standard deviations that are left out do not exist")
    analysis.print_answers(answers)


def _print_judgements(drawn_from: Posterior) -> None:
    output.print_model(drawn_from)
    output.print_conflicts(drawn_from)
    output.print_default(drawn_from)
    output.print_diagnostics(drawn_from)
