"""Options of commands whose cells borrow strength, and what is printed beside the answers of single cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypedDict

import typer

from suffice.cli import options, output
from suffice.cli.answers import Summaries  # noqa: TC001 - schemas are made of it
from suffice.cli.output import say
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.documents import Count, Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
    from suffice.pipeline.ask.borrowing.pooling import Pooling


AskedPooling: TypeAlias = dict[str, Any]
"""Options of pooled cells that a command was given."""
_OPTIONS: dict[str, Any] = {
    "pooled": Annotated[
        list[str] | None,
        typer.Option(
            "--pooled",
            metavar="all|POPULATION|KEY",
            help="Cells borrow strength: all, from a population by name, within a key's cells. May repeat. "
            "Of an adopted release: a key over which cells have one parameter.",
        ),
    ],
    "covariates": Annotated[
        str | None,
        typer.Option("--covariates", metavar="FILE", help="Public numbers of cells: CSV or Parquet."),
    ],
    "formula": Annotated[
        str | None,
        typer.Option("--formula", metavar="FORMULA", help='Of --covariates, as "~ income + C(state)".'),
    ],
    "over": Annotated[
        str | None,
        typer.Option("--over", metavar="COLUMN", help="Cells next to each other in its order are alike."),
    ],
    "adjacency": Annotated[
        str | None,
        typer.Option("--adjacency", metavar="FILE", help="Pairs of neighbouring keys: CSV or Parquet."),
    ],
}
with_pooling = options.together(
    "pooling", {name: (option, None) for name, option in _OPTIONS.items()}, lambda asked: asked
)
"""Give a command the options of pooled cells; it gets them as ``pooling``."""


def pooling_of(asked: AskedPooling) -> list[str] | Pooling | None:
    """Return what cells are to have in common; None where each is alone."""
    names, further = asked["pooled"], {name: asked[name] for name in _OPTIONS if name != "pooled"}
    if not any(further.values()):
        return names or None
    from suffice.pipeline.ask.borrowing.pooling import Pooling  # numpy is slow to import

    return Pooling.of_names(names or [], **further)


def names_alone(asked: AskedPooling) -> list[str]:
    """Return the names of ``--pooled``, where nothing else was asked for.

    Raises
    ------
    UsageError
    """
    given = [name for name in _OPTIONS if name != "pooled" and asked[name]]
    if given:
        message = f"--{given[0]} is of releases, not of ones that were adopted: leave it out"
        raise UsageError(message)
    return asked["pooled"] or []


class Population(TypedDict):
    """What is known of one population; means and standard deviations, on the line of the parameter.

    Of means and of log standard deviations, `parameter` says which; of categories, `category` says of which.
    """

    keys: dict[str, str | int]
    parameter: str
    category: str
    cells: Count
    location: float
    location_sd: float
    spread: float
    spread_sd: float
    slope: float
    slope_sd: float
    typical_size: float | None
    identified: bool


class Pooled(TypedDict):
    """What was pooled with what, and how far; each cell alone where a spread is not identified."""

    population: str
    pools: list[Population]
    cells: Annotated[list[dict[str, Any]], Rows(own_share=float, outside=float)]
    alone: Summaries | None


def check_pooled(refused: Mapping[str, object]) -> None:
    """Refuse options that pooled cells do not have.

    Raises
    ------
    UsageError
    """
    given = [option for option, value in refused.items() if value]
    if given:
        message = f"{given[0]} does not go with --pooled: leave one of them out"
        raise UsageError(message)


def pooled_document(together: PooledPosterior, mass: float, kind: str) -> Pooled:
    """Return what a document says of pools."""
    from suffice.pipeline.ask.posterior.summaries import summarise  # numpy is slow to import

    cells = [
        {
            **{column: keys[cell] for column, keys in together.groups.items()},
            "own_share": own_share,
            "outside": outside,
        }
        for cell, (own_share, outside) in enumerate(
            zip(together.own_share.tolist(), together.outside.tolist(), strict=True)
        )
    ]
    return Pooled(
        population=together.population,
        pools=[
            Population(
                keys=pool.keys,
                parameter=pool.parameter,
                category=pool.category,
                cells=pool.n_cells,
                location=pool.location[0],
                location_sd=pool.location[1],
                spread=pool.spread[0],
                spread_sd=pool.spread[1],
                slope=pool.slope[0],
                slope_sd=pool.slope[1],
                typical_size=pool.typical_size,
                identified=pool.identified,
            )
            for pool in together.pools
        ],
        cells=cells,
        alone=None if together.is_identified else summarise(together.alone, mass, interval=kind),
    )


def print_alone(together: PooledPosterior, mass: float, kind: str, *, every_cell: bool) -> None:
    """Print each cell alone above the pooled answers, where a spread is not identified."""
    if together.is_identified:
        return
    from suffice.pipeline.ask.posterior.summaries import summarise  # numpy is slow to import

    rows = summarise(together.alone, mass, interval=kind)
    say("each cell alone:\n")
    output.print_rows(rows, limit=len(rows) if every_cell else output.MOST_ROWS)
    say("\npooled:\n")
