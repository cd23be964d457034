"""What the command line asks of posteriors beyond intervals: comparisons and probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice import rendering
from suffice.cli_options import parse_pairs
from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from suffice.pipeline.posterior import Posterior
    from suffice.pipeline.release import Release


def other_method(
    release: Release, statistic: str, where: Mapping[str, str], method: str | None, terms: Mapping[str, Any]
) -> Posterior | None:
    """Return the posterior to draw beside another, if one is asked for."""
    if method is None:
        return None
    used = {**terms, "n_prior": None} if method == "plug-in" else terms
    return release.posterior(statistic, where=where, method=method, **used)


def comparison(
    first: Posterior,
    second: Posterior,
    versus: Sequence[str],
    mass: float,
    draws: int,
    rng: np.random.Generator,
) -> list[dict[str, Any]]:
    """Return rows of every parameter's difference between what --where and --versus keep."""
    from suffice.pipeline.contrasts import DIFFERENCE, contrast_between  # noqa: PLC0415

    keys = parse_pairs("--versus", versus)
    if dict(first.groups) == dict(second.groups):
        message = "--versus names the cells that --where keeps: name others"
        raise UsageError(message)
    return [
        row
        for parameter in first.parameters
        for row in contrast_between(
            DIFFERENCE, parameter, first, second, apart_from=set(keys), draws=draws, rng=rng
        ).rows(mass)
    ]


def probability(
    posterior: Posterior, statement: str, draws: int, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Return one row a cell and category with the probability that a statement holds."""
    from suffice.pipeline.contrasts import parse_statement, tidy_rows  # noqa: PLC0415

    parameter, above, below = parse_statement(statement)
    shares = posterior.probability(parameter, above=above, below=below, draws=draws, rng=rng)
    rows = tidy_rows(posterior.groups, posterior.categories, {parameter: {"probability": shares}})
    return [{**row, "statement": statement} for row in rows]


def print_answers(answers: Mapping[str, list[dict[str, Any]]]) -> None:
    """Print what was asked beyond the intervals."""
    titles = {"comparison": "difference", "probability": "probability"}
    for question, title in titles.items():
        if question in answers:
            print(f"\n{title}\n")
            rendering.print_rows(answers[question])
