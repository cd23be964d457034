"""Statistics that are released as draws of a posterior: what is refused of them, and their plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.errors import PriorError, SpecError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.parameter_space import ParameterSpace, Support
from suffice.pipeline.math.priors.mixtures import canonical_prior, log_prior_on_points
from suffice.pipeline.terms.declaration.domains import MOST_CELLS
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.fields import sample_entry
from suffice.pipeline.terms.statistics.statistic_plan import (
    LARGEST_RANGE,
    LARGEST_SAMPLE_SCALE,
    SamplePlan,
    grid_points,
    grid_values,
    smallest_scale,
)

if TYPE_CHECKING:
    from fractions import Fraction

    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.terms.declaration.document import Document
    from suffice.pipeline.terms.declaration.fields import SampleEntry, StatisticSpec
    from suffice.pipeline.terms.statistics.sensitivity import NeighboringRelation
    from suffice.pipeline.terms.statistics.statistic_plan import ScoreTables


def refuse_sample(document: Document, name: str, family: Family) -> None:
    """Refuse draws of a family with several parameters.

    Raises
    ------
    SpecError
    """
    sampled = ", ".join(name for name, each in FAMILIES.items() if each.sampled is not None)
    rule = f"{family.name} has several parameters, and a sample is of one, on a grid: {sampled}"
    way_out = "leave it out: from the noisy statistics anyone draws any number of posterior samples"
    raise SpecError(document.location(("statistics", name, "sample")), rule, way_out)


def with_prior(document: Document, name: str, statistic: StatisticSpec) -> StatisticSpec:
    """Return a statistic whose sample states its prior: the family's default where none is given.

    Raises
    ------
    SpecError
        Where the prior cannot be read.
    """
    entry = sample_entry(statistic)
    if entry is None:
        return statistic
    family = FAMILIES[statistic.family]
    prior = entry.prior
    if prior is None:
        prior = str(family.default_prior(family.parameters(statistic)))
    try:
        stated = canonical_prior(prior)
    except PriorError as error:
        raise SpecError(document.location(("statistics", name, "sample", "prior")), str(error)) from None
    return statistic.model_copy(update={"sample": entry.model_copy(update={"prior": stated})})


def check_sample(document: Document, name: str, statistic: StatisticSpec, n_cells: int) -> None:
    """Check a sample against its family and the statistic that it stands in.

    Raises
    ------
    SpecError
    """
    entry = sample_entry(statistic)
    if entry is None:
        return
    path = ("statistics", name, "sample")
    if statistic.within_unit is not None:
        rule = "a sample has nothing of units beside it"
        raise SpecError(
            document.location(("statistics", name, "within_unit")), rule, "leave one of the two out"
        )
    if n_cells * entry.draws > MOST_CELLS:
        rule = f"{n_cells * entry.draws} draws are declared in all cells, at most {MOST_CELLS} are released"
        raise SpecError(document.location((*path, "draws")), rule, "draw fewer, or coarsen a domain")
    space = _space(statistic)
    lower, upper = entry.within
    outside = {
        Support.REAL: None,
        Support.POSITIVE: "above 0" if lower <= 0 else None,
        Support.PROBABILITY: "above 0 and below 1" if lower <= 0 or upper >= 1 else None,
    }[space.support]
    if outside is not None:
        rule = (
            f"both ends of a {space.name} are {outside}: elsewhere one record could move the log likelihood "
            "without bound"
        )
        raise SpecError(document.location((*path, "within")), rule, "as [0.005, 0.5]")
    values = grid_values(entry.within, entry.grid)
    distinct = set(values.tolist())
    if len(distinct) < entry.grid or (space.support is Support.PROBABILITY and 1.0 in distinct):
        rule = "its points are not distinct in float64, in which they are read, or the last one is 1 there"
        raise SpecError(document.location((*path, "within")), rule, "widen it, or take fewer points")
    try:
        log_prior_on_points(str(entry.prior), values)
    except PriorError as error:
        way_out = "choose within and a prior that leave every point a chance"
        raise SpecError(document.location((*path, "prior")), str(error), way_out) from None


def tables_of(statistic: StatisticSpec, entry: SampleEntry) -> ScoreTables:
    """Return the tables that a sampled statistic's scores are made with."""
    family = FAMILIES[statistic.family]
    if family.sampled is None:
        message = f"{family.name} is not sampled"
        raise ValueError(message)
    width = family.block(statistic, False).record_l1  # noqa: FBT003 - whether N is public
    points = grid_points(entry.within, entry.grid)
    return family.sampled.tables(points, family.parameters(statistic), width or 1)


def compile_sample(
    name: str,
    statistic: StatisticSpec,
    epsilon: Fraction,
    neighboring: NeighboringRelation,
    *,
    records: int,
    n_cells: int,
    n_is_public: bool,
) -> SamplePlan | None:
    """Return the plan of a statistic's sample, None where it has none.

    Parameters
    ----------
    name, statistic, epsilon, neighboring
        The statistic, and what it may cost.
    records : int
        How many records a unit adds at most.
    n_cells : int
    n_is_public : bool
        Whether the number of records is public for it.

    Raises
    ------
    SpecError
        Where the data would hardly count any more, or a unit moves scores beyond 64 bits.
    """
    entry = sample_entry(statistic)
    if entry is None:
        return None
    sensitivity = tables_of(statistic, entry).range_sensitivity(
        neighboring, records=records, n_cells=n_cells, n_is_public=n_is_public
    )
    place = f"statistics.{name}.sample"
    if sensitivity > LARGEST_RANGE:
        rule = "one unit could move the log likelihood by more than 2^42 nats"
        raise SpecError(place, rule, "narrow within, or lower the bounds of the column")
    scale = smallest_scale(sensitivity, entry.draws, epsilon)
    if scale > LARGEST_SAMPLE_SCALE:
        rule = f"its temperature {format_number(scale >> 20)} is above 2^26: the data would hardly count"
        raise SpecError(place, rule, "narrow within, draw less often, or give it more epsilon")
    return SamplePlan(
        parameter=_space(statistic).name,
        draws=entry.draws,
        grid=entry.grid,
        within=entry.within,
        prior=str(entry.prior),
        range_sensitivity=sensitivity,
        scale=scale,
    )


def _space(statistic: StatisticSpec) -> ParameterSpace:
    """Return the one parameter of a sampled statistic."""
    family = FAMILIES[statistic.family]
    (space,) = family.parameter_spaces(family.parameters(statistic))
    return space
