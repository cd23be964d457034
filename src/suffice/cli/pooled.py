"""What ``suffice posterior --pooled`` prints beside the answers of single cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from suffice.cli import output
from suffice.cli.answers import Summaries  # noqa: TC001 - schemas are made of it
from suffice.cli.output import say
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.documents import Count, Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.ask.posterior.pooled_posterior import PooledPosterior


class Population(TypedDict):
    """What is known of one population; means and standard deviations, on the line of the parameter."""

    keys: dict[str, str | int]
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
