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
    from suffice.pipeline.ask.pooling.series import Series


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
        typer.Option(
            "--over",
            metavar="COLUMN|window",
            help="Walk over a column in order; of posterior NAME, window: over its windows. With terms as "
            '"month jumps=0".',
        ),
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


def ways_to_pool(asked: AskedPooling) -> list[list[str] | Pooling]:
    """Return ways to pool: one for each ``--pooled``, whose names have commas between them.

    Covariates with their formula, an order and neighbours are one more way each, and the last two together
    where they are of different columns.
    """
    ways: list[list[str] | Pooling] = [each.split(",") for each in asked["pooled"] or []]
    together = [("over", "adjacency")] if _has_places_over_time(asked) else []
    for names in (("covariates", "formula"), ("over",), ("adjacency",), *together):
        further = {name: asked[name] for name in names}
        if any(further.values()):
            from suffice.pipeline.ask.borrowing.pooling import Pooling  # numpy is slow to import

            ways.append(Pooling.of_names([], **further))
    return ways


def _has_places_over_time(asked: AskedPooling) -> bool:
    """Whether cells have both an order and neighbours, by different columns."""
    if not (asked["over"] and asked["adjacency"]):
        return False
    from suffice.pipeline.ask.borrowing.neighbours import named_column  # numpy is slow to import

    return named_column(asked["adjacency"]) not in asked["over"].split()[:1]


def series_asked(
    asked: AskedPooling, reference: str, store: str, public_keys: list[str] | None
) -> Series | None:
    """Open the series that a command is to walk over; None where it names none, or one window of it."""
    if (asked["over"] or "").split()[:1] != ["window"]:
        return None
    from suffice.storage.releases.release_series import is_series, open_series  # numpy is slow to import

    if not is_series(reference, asked["over"]):
        return None
    return open_series(reference, store=store, public_keys=public_keys)


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


COEFFICIENT: dict[str, Any] = {
    "covariate": str,
    **dict.fromkeys(("mean", "sd", "lower", "upper", "step"), float),
    "in_words": str,
}
"""Of a covariate: of the logit or the logarithm, for one unit; and in words, for a step."""


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
    spread_slope: float | None
    spread_slope_sd: float | None
    typical_size: float | None
    identified: bool
    of_map: float | None
    of_map_sd: float | None
    coefficients: Annotated[list[dict[str, Any]], Rows(**COEFFICIENT)]


class Checked(TypedDict):
    """Cells under the population of all others, each held out."""

    method: str
    false_alarm: float
    said: list[str]
    uniformity: float | None
    keys: Annotated[list[dict[str, Any]], Rows(column=str, key=str | int, cells=int, score=float, tail=float)]
    cells: Annotated[
        list[dict[str, Any]],
        Rows(log_predictive=float, place=float | None, tail=float | None, misfit=bool),
    ]


class WalkedOver(TypedDict):
    """What is known of the steps of the series of one pool; means and standard deviations.

    ``coefficient`` is of kind=ar1, ``slope_step`` of order=2, ``season`` the spread of a season's effects,
    ``common_step`` of the walk of all places on a map, of which ``pools`` says the rest.
    """

    keys: dict[str, str | int]
    over: str
    series: Count
    cells: Count
    times: Count
    step: float
    step_sd: float
    jumps: float
    coefficient: float | None
    coefficient_sd: float | None
    slope_step: float | None
    slope_step_sd: float | None
    season: float | None
    season_sd: float | None
    common_step: float | None
    common_step_sd: float | None
    identified: bool
    settled: bool


class Pooled(TypedDict):
    """What was pooled with what, and how far; each cell alone where a spread or step is not identified.

    Of a walk without a map ``population`` is ``walk``; of all walks ``outside`` is how probable it is that a
    jump leads to a cell.
    """

    population: str
    pools: list[Population]
    walks: list[WalkedOver]
    cells: Annotated[list[dict[str, Any]], Rows(own_share=float, outside=float)]
    alone: Summaries | None
    check: Checked | None
    doubtful: Annotated[
        list[dict[str, Any]],
        Rows(why=str, lower=float, upper=float, alone_lower=float, alone_upper=float),
    ]


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
    from suffice.pipeline.ask.borrowing.covariates import coefficients_table  # numpy is slow to import
    from suffice.pipeline.ask.borrowing.over_time import WalkedPosterior  # numpy is slow to import
    from suffice.pipeline.ask.posterior.summaries import summarise

    walked = together if isinstance(together, WalkedPosterior) else None
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
                spread_slope=pool.spread_slope[0] if pool.spread_slope else None,
                spread_slope_sd=pool.spread_slope[1] if pool.spread_slope else None,
                typical_size=pool.typical_size,
                identified=pool.identified,
                coefficients=list(coefficients_table([pool])),
                of_map=pool.of_map[0] if pool.of_map else None,
                of_map_sd=pool.of_map[1] if pool.of_map else None,
            )
            for pool in together.pools
        ],
        walks=[]
        if walked is None
        else [
            WalkedOver(
                keys=steps.keys,
                over=walked.walk.over,
                series=steps.n_series,
                cells=steps.n_cells,
                times=steps.n_times,
                step=steps.step[0],
                step_sd=steps.step[1],
                jumps=walked.walk.share_of_jumps,
                identified=steps.identified,
                settled=steps.settled,
                coefficient=steps.further["coefficient"],
                coefficient_sd=steps.further["coefficient_sd"],
                slope_step=steps.further["slope_step"],
                slope_step_sd=steps.further["slope_step_sd"],
                season=steps.further["season"],
                season_sd=steps.further["season_sd"],
                common_step=steps.further["common_step"],
                common_step_sd=steps.further["common_step_sd"],
            )
            for steps in walked.steps
        ],
        cells=cells,
        alone=None if together.is_identified else summarise(together.alone, mass, interval=kind),
        check=_checked(together),
        doubtful=list(together.doubtful(mass)),
    )


def _checked(together: PooledPosterior) -> Checked | None:
    from suffice.pipeline.ask.borrowing.population_check import FALSE_ALARM  # numpy is slow to import

    if not together.is_checked:
        return None
    check = together.check_population()
    return Checked(
        method=check.method,
        false_alarm=FALSE_ALARM,
        said=together.misfits(),
        uniformity=check.uniformity,
        keys=[dict(each) for each in check.keys],
        cells=check.rows(),
    )


def print_misfits(together: PooledPosterior) -> None:
    """Say what the population does not fit, each cell held out."""
    for line in together.misfits():
        say(f"\n{line}")


def print_alone(together: PooledPosterior, mass: float, kind: str, *, every_cell: bool) -> None:
    """Print each cell alone above the pooled answers, where a spread is not identified."""
    if together.is_identified:
        return
    from suffice.pipeline.ask.posterior.summaries import summarise  # numpy is slow to import

    rows = summarise(together.alone, mass, interval=kind)
    say("each cell alone:\n")
    output.print_rows(rows, limit=len(rows) if every_cell else output.MOST_ROWS)
    say("\npooled:\n")
