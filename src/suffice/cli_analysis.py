"""What the command line asks of posteriors beyond intervals: comparisons and probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice import rendering
from suffice.cli_options import (
    DEFAULT_STORE,
    ClippingOption,
    JsonOption,
    MassOption,
    NumberOfDrawsOption,
    PriorOfNOption,
    PriorOption,
    PublicKeyOption,
    SeedOption,
    StoreOption,
    WhereOption,
    check_draws,
    open_for_reading,
    parse_pairs,
    parse_prior_of_n,
)
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


def check_versus(where: Mapping[str, str], versus: Sequence[str] | None) -> None:
    """Refuse --versus where --where does not say which cells to compare with."""
    for column, key in parse_pairs("--versus", versus).items():
        if column not in where:
            message = (
                f"--versus {column}={key} needs --where {column}=KEY beside it: --where names the cells that "
                "are compared with those of --versus"
            )
            raise UsageError(message)


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
    asked = {parameter: {"probability": shares}}
    rows = tidy_rows(posterior.groups, posterior.label_columns, asked, posterior.components)
    return [{**row, "statement": statement} for row in rows]


def print_answers(answers: Mapping[str, list[dict[str, Any]]]) -> None:
    """Print what was asked beyond the intervals."""
    titles = {"comparison": "difference", "probability": "probability"}
    for question, title in titles.items():
        if question in answers:
            print(f"\n{title}\n")
            rendering.print_rows(answers[question])


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="A release: path, URI or NAME[@WINDOW].")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another, of disjoint data.")],
    statistic: Annotated[str, typer.Argument(help="A statistic of both.")],
    prior: PriorOption = None,
    n_prior: PriorOfNOption = None,
    clipping: ClippingOption = "modelled",
    where: WhereOption = None,
    mass: MassOption = 0.95,
    draws: NumberOfDrawsOption = 4000,
    seed: SeedOption = None,
    store: StoreOption = DEFAULT_STORE,
    public_keys: PublicKeyOption = None,
    *,
    vouched: Annotated[
        bool, typer.Option("--vouched", help="You know that the two hold disjoint data.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say how a statistic changed from release A to release B, and what noise alone would do."""
    check_draws(draws, seed)
    from suffice.pipeline.pooling.comparison import compare as compare_releases  # noqa: PLC0415

    one, other = (open_for_reading(reference, store, public_keys) for reference in (first, second))
    found = compare_releases(
        one,
        other,
        statistic,
        prior=prior,
        n_prior=parse_prior_of_n(n_prior),
        clipping=clipping,
        where=parse_pairs("--where", where),
        vouched=vouched,
        draws=draws,
        rng=seed,
    )
    rows = found.rows(mass)
    both = {"first": found.before, "second": found.after}
    if as_json:
        diagnostics = {which: posterior.diagnostics for which, posterior in both.items()}
        document = {
            "statistic": statistic,
            "first": found.first,
            "second": found.second,
            "method": found.before.method,
            "prior": str(found.before.prior),
            "n_prior": str(found.before.n_prior),
            "mass": mass,
            "draws": draws,
            "seed": seed,
            **({"diagnostics": diagnostics} if any(diagnostics.values()) else {}),
            "rows": rows,
            "clipping": {which: rendering.clipping_document(posterior) for which, posterior in both.items()},
        }
        rendering.print_json(document)
        return
    print(f"{statistic}: from {found.first} to {found.second}\n")
    rendering.print_rows(rows)
    print(
        "\napparent: change of the estimates as they stand; noise_sd: what noise alone gives to it; "
        "noise_probability: how often noise alone moves them as far"
    )
    for name, posterior in ((found.first, found.before), (found.second, found.after)):
        for line in rendering.clipping_lines(posterior):
            print(f"\n{name}: {line}")
        rendering.print_diagnostics(posterior, name)
    n_priors = dict.fromkeys(str(posterior.n_prior) for posterior in both.values())
    print(f"\nmethod: {found.before.method}")
    print(f"prior: {found.before.prior}")
    print(f"prior of N: {', '.join(n_priors)}")
    print(f"intervals: central, {100 * mass:g} % posterior probability each")
