"""The posterior card: one self-contained page on what was inferred, from what, and what it does not say.

Names, keys and categories come from other people's specs: every text is escaped, and the page forbids itself
scripts and anything from elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.data_files.tables import MARK
from suffice.errors import UsageError
from suffice.pages.card_texts import does_not_say, posterior_facts, release_facts, says, warnings_of
from suffice.pages.posterior_figures import parameter_figure
from suffice.pages.rendering import markup, render
from suffice.pipeline.ask.posterior.posterior import summarise
from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior

MOST_ROWS = 400
"""Rows of intervals on one card; a page with more is not read."""
_NUMBERS = ("mean", "sd", "lower", "upper")


def card(
    release: Release,
    posterior: Posterior,
    *,
    mass: float,
    interval: str | None = None,
    draws: int,
    seed: int | None,
    rng: np.random.Generator,
) -> str:
    """Return the page of a posterior, HTML text without any reference to elsewhere.

    Parameters
    ----------
    release : Release
        What the posterior was computed from.
    posterior : Posterior
    mass : float
        Of the credible intervals.
    interval : {"central", "highest-density"}, optional
        Their kind, the posterior's default otherwise.
    draws : int
        Posterior draws per cell that quantiles rest on.
    seed : int or None
        Of the draws, where there is one.
    rng : numpy.random.Generator
        For the draws.

    Raises
    ------
    UsageError
        Where there are more than ``MOST_ROWS`` intervals.
    """
    count = posterior.n_groups * sum(max(1, len(posterior.labels(name)[1])) for name in posterior.parameters)
    if count > MOST_ROWS:
        message = f"--card: {count} intervals are too many for one page: keep some cells with --where"
        raise UsageError(message)
    statistic = release.statistic(posterior.statistic)
    kind = posterior.interval_kind(interval)
    rows = summarise(posterior, mass, draws, rng, interval=kind)
    figures = [
        parameter_figure(
            posterior, name, mass=mass, interval=kind, draws=draws, rng=rng, most_intervals=MOST_ROWS
        )
        for name in posterior.parameters
    ]
    return render(
        "card.html",
        styles=("style.css", "figures.css", "card.css"),
        mark=MARK,
        title=f"{release.name}: {posterior.statistic}",
        release=release,
        posterior=posterior,
        epsilon=format_epsilon(statistic.plan.epsilon),
        interval=f"{100 * mass:g} % {kind}",
        intervals=count,
        warnings=warnings_of(posterior, statistic),
        figures=[(figure, markup(figure.svg)) for figure in figures],
        columns=[*_columns(rows)],
        rows=[_cells(row) for row in rows],
        posterior_facts=posterior_facts(posterior, mass, kind, draws, seed),
        release_facts=release_facts(release, statistic),
        says=list(says(posterior, statistic, mass)),
        does_not_say=list(does_not_say(posterior)),
    )


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, bool]]:
    """Names of columns, and whether they hold numbers: the last four do."""
    names = list(rows[0])
    return [(name, position >= len(names) - len(_NUMBERS)) for position, name in enumerate(names)]


def _cells(row: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """What cells of a row say, and whether they are numbers."""
    labels, numbers = list(row.values())[: -len(_NUMBERS)], list(row.values())[-len(_NUMBERS) :]
    return [
        *(("" if value is None else str(value), False) for value in labels),
        *(("none" if value is None else f"{value:.6g}", True) for value in numbers),
    ]
