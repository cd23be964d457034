"""The command that prints posteriors, and draws, plots and cards of them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from suffice.cli import compare, messages, options, output
from suffice.cli.answers import INTERVAL, ModelAnswer, clipping_of, design_effects_of
from suffice.cli.files import OverwriteOption, check_file, new_file
from suffice.cli.output import say
from suffice.cli.pooled import (
    AskedPooling,
    Pooled,
    check_pooled,
    names_alone,
    pooled_document,
    pooling_of,
    print_alone,
    print_misfits,
    series_asked,
    with_pooling,
)
from suffice.errors import AdoptedReleaseError, UsageError
from suffice.pipeline.ask.posterior.notes import default_lines, draws_text, plug_in_lines
from suffice.pipeline.terms.declaration.documents import Measured, Rows, document, printed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.cli.answers import Clipping, DesignEffects, Summaries
    from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.pooling.series import Series
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.released.table import Table


@printed(
    "source release statistic=posterior.statistic family=posterior.family rows_of=posterior.rows_of estimand "
    "method=posterior.method plug_in? prior mass interval n_prior predictor_prior=posterior.predictor_prior "
    "draws seed diagnostics? rows clipping design_effect conflicts decided_by_default comparison? "
    "probability? highest? robustness? pooled?"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class PosteriorAnswer(ModelAnswer):
    """What ``suffice posterior`` prints."""

    estimand: str | None
    rows: Summaries
    clipping: Clipping | None
    design_effect: DesignEffects | None
    decided_by_default: list[str]
    comparison: (
        Annotated[list[dict[str, Any]], Rows(parameter=str, **INTERVAL, probability_above=Measured)] | None
    ) = None
    probability: (
        Annotated[list[dict[str, Any]], Rows(parameter=str, statement=str, probability=Measured)] | None
    ) = None
    highest: (
        Annotated[
            list[dict[str, Any]],
            Rows(parameter=str, mean=Measured, sd=Measured, probability=Measured, conflict=bool | None),
        ]
        | None
    ) = None
    robustness: (
        Annotated[
            list[dict[str, Any]],
            Rows(
                parameter=str,
                prior=str,
                **{
                    f"{what}_{end}": Measured
                    for what in ("mean", "lower", "upper")
                    for end in ("least", "most")
                },
            ),
        ]
        | None
    ) = None
    pooled: Pooled | None = None


@options.with_terms()
@with_pooling
def posterior(  # noqa: C901, PLR0912, PLR0915 - a command and its files, in order
    release: options.ReleaseArgument,
    statistic: options.StatisticArgument,
    terms: options.Terms,
    pooling: AskedPooling,
    mass: options.MassOption = 0.95,
    interval: options.IntervalOption = None,
    draws: options.NumberOfDrawsOption = 4000,
    seed: options.SeedOption = None,
    plot: options.PlotOption = None,
    plot_kind: Annotated[
        str | None,
        typer.Option("--plot-kind", metavar="density|forest|robustness", help="What --plot draws."),
    ] = None,
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
    cells: Annotated[
        str | None,
        typer.Option(
            "--cells",
            metavar="vary|alike",
            help="What pooled cells do: vary about their mean rate (default), or share it.",
        ),
    ] = None,
    highest: Annotated[
        int | None,
        typer.Option("--highest", metavar="K", help="How probable it is that a cell is among the K highest."),
    ] = None,
    robustness: Annotated[
        bool | None,
        typer.Option(
            "--robustness", help="How far the answers move with the prior, one record, and the noise."
        ),
    ] = None,
    out: options.OutOption = None,
    draws_out: options.DrawsOutOption = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    every_cell: options.AllOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Print posterior means and credible intervals under any public prior. Costs no privacy."""
    _check_files(out, draws_out, plot, plot_kind, card, overwrite=overwrite)
    if plot is None and (plot_kind, beside) != (None, None):
        message = "--plot-kind and --beside are options of --plot: give it too"
        raise UsageError(message)
    one_side = {
        "--out": out,
        "--draws-out": draws_out,
        "--card": card,
        "--plot": plot,
        "--highest": highest,
        "--robustness": robustness,
    }
    compare.check_one_side(versus, one_side)
    options.check_draws(draws, seed)
    series = series_asked(pooling, release, store, public_keys)
    try:
        opened = (
            series.releases[-1]
            if series
            else options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
        )
    except AdoptedReleaseError:
        from suffice.cli import adopt  # few releases are adopted

        adopt.posterior(
            adopt.opened(release),
            statistic,
            terms,
            pooled=names_alone(pooling),
            cells=cells,
            mass=mass,
            interval=interval,
            draws=draws,
            seed=seed,
            plot=plot,
            every_cell=every_cell,
            refused={
                "--out": out,
                "--draws-out": draws_out,
                "--highest": highest,
                "--robustness": robustness,
                "--card": card,
                "--versus": versus,
                "--probability": probability,
                "--plot-kind": plot_kind,
                "--beside": beside,
            },
            as_json=as_json,
        )
        return
    if cells:
        message = "--cells is of releases that were adopted; cells of a release are pooled by --pooled"
        raise UsageError(message)
    pooled = pooling_of(pooling)
    if pooled:
        check_pooled({"--versus": versus, "--robustness": robustness, "--beside": beside})
    import numpy as np

    from suffice.pipeline.ask.posterior.summaries import summarise

    terms["where"], pairs = (
        opened.about.in_names(keys, opened.group_columns)
        for keys in (terms["where"], options.parse_pairs("--versus", versus))
    )
    compare.check_versus(terms["where"], pairs)
    statements = compare.parse_statements(probability or [], is_contrast=bool(versus))
    asked = opened.cells(statistic, terms["where"])
    first = None if every_cell or as_json or pooled else output.first_cells(asked.plan)
    chosen = opened.chosen(statistic, terms["where"], first=first)
    is_whole = any(asked_for is not None for asked_for in (out, draws_out, plot, card, highest))
    together: PooledPosterior | None = None
    if pooled:
        asked_of: Release | Series = series or opened
        together = cast("PooledPosterior", asked_of.posterior(statistic, pooled=pooled, **terms))
    shown = together or _posterior(opened, chosen, terms, is_drawn=is_whole or bool(versus or statements))
    n_cells = together.n_groups if together else len(asked) // chosen.cells_summed
    rng = np.random.default_rng(seed)
    kind = shown.interval_kind(interval)
    rows = summarise(shown, mass, draws, rng, messages.cell_progress("intervals"), interval=kind)
    answers: dict[str, Any] = {}
    if versus:
        other = {**terms["where"], **pairs}
        others = opened.chosen(statistic, other, first=first)
        against = _posterior(opened, others, terms, is_drawn=True)
        answers.update(
            compare.comparison(
                shown, against, pairs, statements, mass=mass, interval=kind, draws=draws, rng=rng
            )
        )
    elif statements:
        answers["probability"] = compare.probability(shown, statements, draws, rng)
    drawn_from = shown
    if is_whole and shown.n_groups < n_cells:  # files hold every cell, and the highest may be any
        drawn_from = _posterior(opened, opened.chosen(statistic, terms["where"]), terms, is_drawn=True)
    if highest is not None:
        answers["highest"] = [
            row
            for parameter in drawn_from.parameters
            for row in drawn_from.highest(highest, parameter, draws=draws, rng=rng)
        ]
    moves = [
        shown.robustness(parameter, mass=mass, draws=draws, rng=rng)
        for parameter in (shown.parameters if robustness else ())
    ]
    if moves:
        answers["robustness"] = [row for table in moves for row in table]
    from suffice.data_files.source import DRAWS, SUMMARIES, posterior_source

    stated: dict[str, Any] = {"mass": mass, "interval": kind, "draws": draws, "seed": seed}
    rests_on = series.windows_of(statistic, terms["where"]).releases if series else [opened]
    source = posterior_source(SUMMARIES, rests_on, drawn_from, **stated)
    if out is not None:
        every = rows if drawn_from is shown else summarise(drawn_from, mass, draws, rng, interval=kind)
        output.write_summary(drawn_from, every, out, source, overwrite=overwrite)
    if draws_out is not None:
        drawn = dataclasses.replace(source, what=DRAWS, mass=None, interval=None)
        output.write_draws(drawn_from, draws_out, drawn, draws, rng, overwrite=overwrite)
    if plot is not None:
        by_other_method = compare.other_method(opened, statistic, beside, terms)
        with new_file("--plot", plot, overwrite=overwrite) as written:
            _plot(
                rests_on,
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
    label = f"{series.name}, {len(rests_on)} windows" if series else opened.label
    if as_json:
        answer = PosteriorAnswer(
            source=source,
            release=label,
            posterior=drawn_from,
            estimand=drawn_from.estimand or None,
            **stated,
            rows=rows,
            clipping=clipping_of(drawn_from),
            design_effect=design_effects_of(drawn_from),
            decided_by_default=default_lines(drawn_from),
            pooled=None if together is None else pooled_document(together, mass, kind),
            **answers,
        )
        output.print_json(document(answer))
        return
    from suffice.pipeline.ask.posterior.shown import beside_conflicts
    from suffice.pipeline.math.parameters.arguments import interval_in_words

    output.print_part(shown.n_groups, n_cells)
    named = {
        question: opened.in_words(statistic, answer)
        for question, answer in answers.items()
        if question != "robustness"
    }
    if together is not None:
        rows = together.with_own(rows)
        print_alone(together, mass, kind, every_cell=every_cell)
    marked = beside_conflicts(shown, rows)
    _print_posterior(shown, marked, named, n_cells, every_cell=every_cell, highest=highest)
    _print_moves(moves, mass, kind)
    output.print_saturation(chosen if chosen.cells_summed == 1 else opened.statistic(statistic))
    _print_judgements(shown)
    if together is not None:
        print_misfits(together)
    say(f"\nrelease: {label}")
    _print_terms(drawn_from)
    say(f"intervals: {interval_in_words(kind, mass)}")
    if text := draws_text(drawn_from):
        say(output.folded(drawn_from, f"{text}; these are of {draws} draws"))
    else:
        say(f"quantities computed from draws use {draws} draws")
    output.print_written(plot, card, table=out, draws=draws_out)


def _posterior(opened: Release, chosen: NoisyStatistic, terms: options.Terms, *, is_drawn: bool) -> Posterior:
    """Work out the posterior of some cells; once for cells that are alike, unless each needs its draws."""
    from suffice.pipeline.ask.batches.part_answer import posterior_of_alike  # scipy is slow to import
    from suffice.pipeline.ask.inference.posterior_terms import PosteriorTerms

    stated, progress = PosteriorTerms(**terms), messages.cell_progress("posterior")

    def posterior_of(cells: NoisyStatistic) -> Posterior:
        return opened.posterior_of(cells, stated, progress)

    return posterior_of(chosen) if is_drawn else posterior_of_alike(chosen, posterior_of, 0)


def _check_files(
    out: Path | None,
    draws_out: Path | None,
    plot: Path | None,
    plot_kind: str | None,
    card: Path | None,
    *,
    overwrite: bool,
) -> None:
    """Refuse a file that cannot be written, before any work is done."""
    output.check_out(out, overwrite=overwrite)
    output.check_draws(draws_out, overwrite=overwrite)
    if plot is not None:
        from suffice.plots.posteriors import check_kind  # numpy is slow to import
        from suffice.plots.style import check_plot

        check_plot(plot)
        check_kind(plot_kind)
        check_file("--plot", plot, overwrite=overwrite)
    output.check_card(card, overwrite=overwrite)


def _plot(
    rests_on: Sequence[Release],
    drawn_from: Posterior,
    path: Path,
    *,
    mass: float,
    interval: str,
    **plot_options: Any,
) -> None:
    """Draw a posterior, and its sources below it."""
    from suffice.data_files.source import SUMMARIES, posterior_source
    from suffice.plots.posteriors import plot_posterior  # matplotlib is slow to import
    from suffice.plots.style import footer_of

    title = drawn_from.titled or rests_on[-1].titled(drawn_from.statistic)
    footer = footer_of(
        posterior_source(SUMMARIES, rests_on, drawn_from, mass=mass, interval=interval), rests_on
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


def _print_posterior(
    drawn_from: Posterior,
    rows: Table,
    answers: dict[str, Any],
    n_cells: int,
    *,
    every_cell: bool,
    highest: int | None,
) -> None:
    plug_in = plug_in_lines(drawn_from)
    for line in plug_in:
        say(line)
    if plug_in:
        say("")
    output.print_estimand(drawn_from)
    output.print_rows(rows, limit=len(rows) if every_cell else output.MOST_ROWS)
    output.print_left_out(drawn_from.n_groups, n_cells)
    if any(row["mean"] is None or row["sd"] is None for row in rows):
        say("\nmeans and standard deviations that are left out do not exist")
    compare.print_answers(answers, highest)


def _print_moves(moves: Sequence[Table], mass: float, kind: str) -> None:
    """Print how far every parameter moves, and what the columns and rows are."""
    if not moves:
        return
    from suffice.pipeline.ask.posterior.robustness import robustness_in_words
    from suffice.pipeline.math.distributions.interval_kinds import CENTRAL

    say(f"\n{robustness_in_words(mass)}")
    if kind != CENTRAL:
        say(
            f"(lower and upper are ends of the central interval, with {50 * (1 - mass):g} % of the posterior "
            f"beyond each; the table above has {kind} intervals, of whose ends no ranges are known)"
        )
    for table in moves:
        say("")
        output.print_rows(table)
    say("")
    for line in dict.fromkeys(line for table in moves for line in table.foot):
        say(line)


def _print_judgements(drawn_from: Posterior) -> None:
    output.print_model(drawn_from)
    output.print_conflicts(drawn_from)
    output.print_default(drawn_from)
    output.print_diagnostics(drawn_from)
