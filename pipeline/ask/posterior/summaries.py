"""Mean, standard deviation and interval of every parameter, as rows and as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.composite import RepeatedCells, are_apart, blocks_of
from suffice.pipeline.math.distributions.interval_kinds import CENTRAL
from suffice.pipeline.math.distributions.intervals import shortest_intervals
from suffice.pipeline.math.distributions.many_cells import side_by_side
from suffice.pipeline.math.parameters.arguments import checked_draws, ends_of, generator
from suffice.pipeline.math.parameters.contrasts import tidy_rows
from suffice.pipeline.math.parameters.parameter_posterior import DRAWS, MASS

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.composite import CellProgress
    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.parameters.parameter_posterior import ParameterPosterior
    from suffice.typing import Floats


def summarise(
    posterior: ParameterPosterior,
    mass: float = MASS,
    draws: int = DRAWS,
    rng: np.random.Generator | int | None = None,
    progress: CellProgress | None = None,
    *,
    interval: str | None = None,
) -> list[dict[str, Any]]:
    """One row for every cell, parameter and entry of it: keys, parameter, labels, mean, sd, lower, upper.

    Labels are ``category``; or ``table`` and one key per variable, None where the table lacks the variable.
    Where parameters are of several columns, ``component`` names the column, or the pair as ``x, y``; it is
    empty for the others.

    Intervals are of the kind that ``credible_interval`` is asked for.
    Numbers that do not exist (the mean of a heavy-tailed posterior) are None. Large posteriors are summed up
    a block of cells at a time; ``progress`` gets the number of cells that are done, and of all, after each.
    """
    parameters = summaries(posterior, mass, draws, rng, progress, interval=interval)
    return tidy_rows(posterior.groups, posterior.label_columns, parameters, posterior.components)


def summaries(
    posterior: ParameterPosterior,
    mass: float = MASS,
    draws: int = DRAWS,
    rng: np.random.Generator | int | None = None,
    progress: CellProgress | None = None,
    *,
    interval: str | None = None,
) -> dict[str, dict[str, Floats]]:
    """Return mean, sd, lower and upper of every parameter, by parameter: shaped as its means.

    Numbers that do not exist are infinite or no numbers; else as ``summarise``.
    """
    source = generator(rng)
    ends, kind = ends_of(mass), posterior.interval_kind(interval)
    draws, n_cells, done = checked_draws(draws), posterior.n_groups, 0
    distribution, of_cell = posterior.distribution, None
    if isinstance(distribution, RepeatedCells):  # cells that are alike have one interval, worked out once
        of_cell, distribution = distribution.of_cell, distribution.distribution
        n_cells = int(of_cell.max()) + 1

    def of_block(block: Distribution) -> dict[str, dict[str, Floats]]:
        numbers = {}
        for parameter in posterior.parameters:
            if kind == CENTRAL:
                between = block.quantiles(parameter, ends, draws, source)
            else:
                between = shortest_intervals(
                    block, parameter, mass, posterior.ends_of(parameter), draws, source
                )
            lower, upper = np.moveaxis(between, -1, 0)
            moments = {"mean": block.mean(parameter), "sd": block.sd(parameter)}
            numbers[parameter] = {**moments, "lower": lower, "upper": upper}
        return numbers

    def count(numbers: dict[str, dict[str, Floats]]) -> None:
        nonlocal done
        done += len(next(iter(numbers.values()))["mean"])
        if progress is not None:
            progress(done, n_cells)

    together = are_apart(distribution)
    blocks = side_by_side(of_block, blocks_of(distribution), count, together=together)
    joined = {
        parameter: {
            name: np.concatenate([numbers[parameter][name] for numbers in blocks])
            for name in blocks[0][parameter]
        }
        for parameter in posterior.parameters
    }
    if of_cell is None:
        return joined
    return {
        parameter: {name: numbers[of_cell] for name, numbers in values.items()}
        for parameter, values in joined.items()
    }
