"""The command that prints one posterior from several releases."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import options, output
from suffice.cli.answers import Answer, clipping_of
from suffice.cli.column_quantiles import (
    AtOption,
    QuantileRows,
    estimate_rows,
    levels_of,
    print_quantiles,
    quantiles_of,
)
from suffice.cli.files import OverwriteOption, new_file
from suffice.cli.output import say
from suffice.pipeline.ask.posterior.notes import default_lines
from suffice.pipeline.terms.declaration.documents import document, printed

if TYPE_CHECKING:
    from suffice.cli.answers import Clipping, IntervalKind, Summaries
    from suffice.pipeline.ask.pooling.release import Release

_REFERENCE = "RELEASE"


@printed(
    "source statistic=posterior.statistic family=posterior.family rows_of=posterior.rows_of estimand "
    "method=posterior.method disjoint? same_data? prior n_prior predictor_prior=posterior.predictor_prior "
    "mass interval draws seed diagnostics? rows quantiles? clipping conflicts decided_by_default"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class PooledAnswer(Answer):
    """What ``suffice pool`` prints."""

    estimand: str | None
    disjoint: list[str] | None = None
    same_data: list[str] | None = None
    mass: float
    interval: IntervalKind
    rows: Summaries
    quantiles: QuantileRows | None = None
    clipping: Clipping | None
    decided_by_default: list[str]


@options.with_terms(without=("method", "within_unit"))
def pool(  # noqa: C901, PLR0915 - a command and its files, in order
    statistic: Annotated[str, typer.Argument(help="A statistic of every release.")],
    terms: options.Terms,
    disjoint: Annotated[
        list[str] | None,
        typer.Option("--disjoint", metavar=_REFERENCE, help="Of separate data, as windows; repeat."),
    ] = None,
    same_data: Annotated[
        list[str] | None,
        typer.Option("--same-data", metavar=_REFERENCE, help="Of the same data, released again; repeat."),
    ] = None,
    at: AtOption = None,
    mass: options.MassOption = 0.95,
    interval: options.IntervalOption = None,
    draws: options.NumberOfDrawsOption = 4000,
    seed: options.SeedOption = None,
    out: options.OutOption = None,
    draws_out: options.DrawsOutOption = None,
    plot: options.PlotOption = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    vouched: Annotated[
        bool, typer.Option("--vouched", help="You vouch for this relation of the releases.")
    ] = False,
    overwrite: OverwriteOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Print one posterior from several releases of separate data, or of the same data. Costs no privacy."""
    output.check_out(out, overwrite=overwrite)
    output.check_draws(draws_out, overwrite=overwrite)
    output.check_picture(plot, overwrite=overwrite)
    options.check_draws(draws, seed)
    at_levels = quantiles_of(at)
    import numpy as np

    from suffice.pipeline.ask.pooling.pool import pool as pool_releases
    from suffice.pipeline.ask.posterior.summaries import summarise
    from suffice.pipeline.math.parameters.arguments import interval_in_words

    def opened(references: list[str] | None) -> list[Release] | None:
        if not references:
            return None
        return [
            options.open_for_reading(reference, store, public_keys, allow_withdrawn=allow_withdrawn)
            for reference in references
        ]

    related: dict[str, Any] = {"disjoint": opened(disjoint), "same_data": opened(same_data)}
    rng = np.random.default_rng(seed)
    posterior = pool_releases(statistic, **related, vouched=vouched, rng=rng, **terms)
    kind = posterior.interval_kind(interval)
    levels = levels_of(at_levels, posterior.family)
    rows = summarise(posterior, mass, draws, rng, interval=kind)
    quantiles = None
    if levels:
        law = posterior.column(draws=draws, rng=seed)
        asked = [(f"quantile {q:g}", law.quantile(q, mass)) for q in levels]
        quantiles = estimate_rows(posterior.groups, asked)
    from suffice.data_files.source import DRAWS, SUMMARIES, posterior_source

    every = [release for group in related.values() for release in group or ()]
    source = posterior_source(SUMMARIES, every, posterior, mass=mass, interval=kind, draws=draws, seed=seed)
    if out is not None:
        output.write_summary(posterior, rows, out, source, overwrite=overwrite)
    if draws_out is not None:
        drawn = dataclasses.replace(source, what=DRAWS, mass=None, interval=None)
        output.write_draws(posterior, draws_out, drawn, draws, rng, overwrite=overwrite)
    if plot is not None:
        from suffice.plots.comparisons import plot_pool
        from suffice.plots.style import footer_of

        parts = [(release.label, release.posterior(statistic, **terms)) for release in every]
        footer = footer_of(source, every)
        title = f"{every[-1].about.label(statistic)}, pooled from {len(every)} releases"
        with new_file("--plot", plot, overwrite=overwrite) as written:
            texts = {"title": title, "footer": footer}
            plot_pool(posterior, parts, written, **texts, draws=draws, rng=rng, mass=mass, interval=kind)
    pooled = {
        relation: [release.label for release in releases]
        for relation, releases in related.items()
        if releases
    }
    if as_json:
        answer = PooledAnswer(
            source=source,
            posterior=posterior,
            estimand=posterior.estimand or None,
            **pooled,
            mass=mass,
            interval=kind,
            draws=draws,
            seed=seed,
            rows=rows,
            quantiles=quantiles,
            clipping=clipping_of(posterior),
            decided_by_default=default_lines(posterior),
        )
        output.print_json(document(answer))
        return
    from suffice.pipeline.ask.posterior.shown import beside_conflicts

    output.print_estimand(posterior)
    if quantiles is None:
        output.print_rows(beside_conflicts(posterior, rows))
    else:
        print_quantiles(quantiles, posterior.groups, posterior.about, statistic, mass)
    output.print_model(posterior)
    output.print_conflicts(posterior)
    output.print_default(posterior)
    output.print_diagnostics(posterior)
    say(f"\nmethod: {posterior.method}")
    for relation, names in pooled.items():
        say(f"{relation.replace('_', ' ')}: {', '.join(names)}")
    output.print_rows_of(posterior.rows_of)
    say(f"prior: {posterior.prior}")
    say(f"prior of N: {posterior.n_prior}")
    if posterior.predictor_prior is not None:
        say(f"prior of predictors: {posterior.predictor_prior}")
    if quantiles is None:
        say(f"intervals: {interval_in_words(kind, mass)}")
    output.print_written(plot, table=out, draws=draws_out)
