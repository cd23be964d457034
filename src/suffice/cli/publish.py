"""The command that publishes posteriors."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli import messages, options, publication_output
from suffice.cli.files import read_priors
from suffice.cli.pooled import AskedPooling, pooling_of, series_asked, with_pooling
from suffice.errors import UsageError
from suffice.profile.settings import pinned_profile, setting

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release


@options.with_terms(without=("prior",))
@with_pooling
def publish(
    release: options.ReleaseArgument,
    statistics: Annotated[
        list[str], typer.Argument(metavar="STATISTIC...", help="Statistics of the release.")
    ],
    terms: options.Terms,
    pooling: AskedPooling,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="posterior|likelihood",
            help="A likelihood takes any prior afterwards; it has no draws and no intervals.",
        ),
    ] = "posterior",
    prior: Annotated[
        list[str] | None,
        typer.Option(
            "--prior",
            metavar="[STATISTIC=]PRIOR",
            help='As "Beta(1, 9)", or "cancelled=Beta(1, 9)" for one of several statistics; may repeat.',
        ),
    ] = None,
    priors: Annotated[
        Path | None,
        typer.Option(
            "--priors",
            metavar="FILE",
            help="Several priors by name, in YAML, TOML or JSON: publishes a sensitivity table.",
        ),
    ] = None,
    disjoint: Annotated[
        list[str] | None,
        typer.Option("--disjoint", metavar="RELEASE", help="Pool with this one, of separate data; repeat."),
    ] = None,
    same_data: Annotated[
        list[str] | None,
        typer.Option(
            "--same-data", metavar="RELEASE", help="Pool with this one, of the same data again; repeat."
        ),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option("--compare", metavar="RELEASE", help="Publish how statistics changed to this one."),
    ] = None,
    roll_up: Annotated[
        list[str] | None,
        typer.Option("--roll-up", metavar="COLUMN", help="Merge cells over this group column; repeat."),
    ] = None,
    assume: Annotated[
        str | None,
        typer.Option(
            "--assume", metavar="ASSUMPTION", help='"one parameter": merged cells share their parameters.'
        ),
    ] = None,
    mass: options.MassOption = 0.95,
    interval: options.IntervalOption = None,
    draws: Annotated[
        int | None,
        typer.Option(
            "--draws", help="Posterior draws per cell, 4000 if not said; 0 publishes summaries alone."
        ),
    ] = None,
    seed: options.SeedOption = None,
    formats: Annotated[
        str | None,
        typer.Option(
            "--formats",
            metavar="FORMAT[,FORMAT...]",
            help="Of parquet, csv, json, netcdf and card; default: parquet, and a card where it fits.",
        ),
    ] = None,
    to: publication_output.ToOption = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    publication_keys: options.PublicationKeyOption = None,
    publish_timeout: publication_output.PublishTimeoutOption = 600.0,
    cluster: options.ClusterOption = "threads",
    *,
    vouched: Annotated[
        bool, typer.Option("--vouched", help="You vouch for how the releases are related.")
    ] = False,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Publish posteriors once, where anyone can read them; asking again finds them. Costs no privacy."""
    publication_output.check_publication_draws(draws or 0, seed)
    if prior and priors is not None:
        message = (
            "--prior and --priors: a posterior has one prior, a sensitivity table several; leave one out"
        )
        raise UsageError(message)
    from suffice.publishing.publish import carry_out, destination, publications_of  # each imports its own

    destination(to)
    placed = setting("cluster", cluster, profile=pinned_profile()).value or cluster
    chosen = None if formats is None else [name.strip() for name in formats.split(",")]
    named = None if priors is None else read_priors(priors)

    def opened(*references: str) -> list[Release]:
        return [
            options.open_for_reading(reference, store, public_keys, allow_withdrawn=allow_withdrawn)
            for reference in references
        ]

    series = series_asked(pooling, release, store, public_keys)
    from suffice.publishing.asking import question_of

    question = question_of(
        series or opened(release)[0],
        statistics,
        disjoint=opened(*(disjoint or ())),
        same_data=opened(*(same_data or ())),
        compare=None if compare is None else opened(compare)[0],
        pooled=pooling_of(pooling) or False,
        kind=kind,
        roll_up=roll_up or (),
        assume=assume,
        prior=_prior(prior, statistics),
        priors=named,
        **terms,
        vouched=vouched,
        mass=mass,
        interval=interval,
        draws=draws,
        seed=seed,
        formats=chosen,
    )
    publications = publications_of(
        question,
        to,
        publication_keys=publication_keys,
        publish_timeout=publish_timeout,
        notice=messages.notice,
    )
    progress = messages.cell_progress("posterior")
    published = carry_out(question, publications, cluster=placed, progress=progress)
    publication_output.print_published(published, as_json=as_json)


def _prior(given: list[str] | None, statistics: list[str]) -> dict[str, str] | str | None:
    """Read repeated [STATISTIC=]PRIOR: one of all statistics, or one by statistic."""
    if not given:
        return None
    priors_by_name: dict[str, str] = {}
    for text in given:
        name, equals, prior = text.partition("=")
        is_named = bool(equals) and name.strip() in statistics
        if not is_named and len(given) > 1:
            message = (
                f"--prior {text}: of several priors each names its statistic, as "
                f'"{statistics[0]}=Beta(1, 9)"; --priors FILE sets several side by side'
            )
            raise UsageError(message)
        if not is_named:
            return text
        if name.strip() in priors_by_name:
            message = f"--prior {text}: {name.strip()} is given twice: state it once"
            raise UsageError(message)
        priors_by_name[name.strip()] = prior
    return priors_by_name
