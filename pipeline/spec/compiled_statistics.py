"""Statistics compiled one by one: what each measures, its block, its scale or sample, and what it is of.

The plan is of all of them together.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from suffice.errors import SpecError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.beside_sums import block_within, measure_counting, measure_within
from suffice.pipeline.spec.checks import sampled_parameter
from suffice.pipeline.terms.declaration.derived_columns import of_units
from suffice.pipeline.terms.declaration.domains import cell_count
from suffice.pipeline.terms.declaration.exact_numbers import LARGEST_SCALE, format_number
from suffice.pipeline.terms.declaration.fields import QuantileEntry, RowsOf, sample_entry
from suffice.pipeline.terms.statistics.beside_sums import beside_sums
from suffice.pipeline.terms.statistics.drawn_quantile import QuantilePlan, QuantileScores
from suffice.pipeline.terms.statistics.exponential_draws import (
    LARGEST_RANGE,
    LARGEST_SAMPLE_SCALE,
    smallest_scale,
)
from suffice.pipeline.terms.statistics.measure import columns_of
from suffice.pipeline.terms.statistics.noise_scale import noise_scale
from suffice.pipeline.terms.statistics.sample_plan import SamplePlan, grid_points
from suffice.pipeline.terms.statistics.sensitivity import Design, NeighboringRelation, cone_records
from suffice.pipeline.terms.statistics.statistic_plan import DECIMAL, INT64, NOISE_REACH, StatisticPlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from suffice.pipeline.spec.terms import Terms
    from suffice.pipeline.terms.declaration.contribution import Contribution
    from suffice.pipeline.terms.declaration.fields import SampleEntry, StatisticSpec
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    from suffice.pipeline.terms.statistics.histogram_bins import HistogramBins
    from suffice.pipeline.terms.statistics.measure import Measure
    from suffice.pipeline.terms.statistics.sample_plan import ScoreTables
    from suffice.pipeline.terms.statistics.sensitivity import Block

OF_KEPT_ROWS = "of rows kept"
"""How the sentence begins of a statistic of so many rows of each unit, and of no other."""


def compile_statistics(
    terms: Terms, entries: Iterable[tuple[str, StatisticSpec]], shares: Fraction
) -> Iterator[StatisticPlan]:
    """Compile statistics one after another, each when it is asked for.

    Parameters
    ----------
    terms : Terms
        What they stand among; its own statistics are not looked at.
    entries : iterable of (str, StatisticSpec)
    shares : Fraction
        The sum of all statistics' shares.
    """
    for name, entry in entries:
        loss = terms.privacy.loss * (entry.share / shares)
        yield _compile_statistic(terms, name, entry, loss, n_may_be_public=n_may_be_public(terms, entry))


def n_may_be_public(terms: Terms, entry: StatisticSpec) -> bool:
    """Return whether the number of records is public for a statistic in which every row counts."""
    # proof: conditions
    return (
        terms.privacy.neighboring is NeighboringRelation.REPLACE_ONE
        and terms.privacy.column_unit is None
        and terms.window is None
        and terms.where is None
        and entry.where is None
        and not terms.groups_of(entry)
    )


def measure_of(entry: StatisticSpec) -> Measure:
    """Return what a pass over the data computes for a statistic: of rows, or of units."""
    family = FAMILIES[entry.family]
    measure = family.measure(entry)
    if entry.rows_of is RowsOf.UNITS and family.of_units is not None:
        return family.of_units.measure(measure)
    if entry.count_clipped is not None:
        return measure_counting(family, entry)
    return measure if entry.within_unit is None else measure_within(measure)


def block_of(entry: StatisticSpec, *, n_may_be_public: bool) -> Block:
    """Return the block that a statistic releases; a unit that counts once adds what a record would."""
    family = FAMILIES[entry.family]
    block = family.block(entry, n_may_be_public)
    if entry.within_unit is not None:
        return block_within(family, entry, block)
    if entry.count_clipped is not None:
        return beside_sums(block, entry.count_clipped.weight)
    # proof: one-row-a-unit
    # proof: unit-means
    return replace(block, unit_l1=block.record_l1) if entry.rows_of is RowsOf.UNITS else block


def rows_sentence(
    entry: StatisticSpec,
    contribution: Contribution | None,
    *,
    has_groups: bool,
    is_filtered: bool,
    of_units: bool = False,
) -> str | None:
    """Say what a statistic's parameters are of; None where every row counts."""
    sentence = _unit_sentence(entry, contribution, has_groups=has_groups)
    if of_units:
        sentence = "of units: one value of each unit, over all of its rows" + ", in a cell" * has_groups
    if not is_filtered:
        return sentence
    return f"{sentence or 'of rows'}, where the spec's condition holds"


def _unit_sentence(
    entry: StatisticSpec, contribution: Contribution | None, *, has_groups: bool
) -> str | None:
    """Say what a statistic's parameters are of, under a column unit."""
    family = FAMILIES[entry.family]
    if contribution is None:
        return None
    if family.of_whole_units is not None:
        return family.of_whole_units(entry)
    if entry.rows_of is RowsOf.UNITS and family.of_units is not None:
        return family.of_units.sentence_in_cells if has_groups else family.of_units.sentence
    return f"{OF_KEPT_ROWS}: {contribution}"


def _sentence(terms: Terms, entry: StatisticSpec) -> str | None:
    is_filtered = terms.where is not None or entry.where is not None
    return rows_sentence(
        entry,
        terms.contribution_to(entry),
        has_groups=bool(terms.groups_of(entry)),
        is_filtered=is_filtered,
        of_units=not of_units(terms.derived).isdisjoint(columns_of(measure_of(entry))),
    )


def score_tables(statistic: StatisticSpec, entry: SampleEntry) -> ScoreTables:
    """Return the tables that a sampled statistic's scores are made with."""
    family = FAMILIES[statistic.family]
    if family.sampled is None:
        message = f"{family.name} is not sampled"
        raise ValueError(message)
    width = family.block(statistic, False).record_l1  # noqa: FBT003 - whether N is public
    points = grid_points(entry.within, entry.grid)
    return family.sampled.tables(points, family.parameters(statistic), width or 1)


def quantile_scores(statistic: StatisticSpec, entry: QuantileEntry) -> QuantileScores:
    """Return what draws of a statistic's quantile are scored by."""
    return QuantileScores(quantile=entry.quantile, n_bins=len(_bins(statistic)))


def scores_of(statistic: StatisticSpec, entry: SampleEntry | QuantileEntry) -> ScoreTables | QuantileScores:
    """Return what a statistic's draws are scored by, whatever is drawn."""
    if isinstance(entry, QuantileEntry):
        return quantile_scores(statistic, entry)
    return score_tables(statistic, entry)


def _bins(statistic: StatisticSpec) -> HistogramBins:
    bins = FAMILIES[statistic.family].parameters(statistic).bins
    if bins is None:
        message = f"{statistic.family} has no bins"
        raise ValueError(message)
    return bins


def compile_sample(
    name: str,
    statistic: StatisticSpec,
    loss: PrivacyLoss,
    neighboring: NeighboringRelation,
    *,
    records: int,
    n_cells: int,
    n_is_public: bool,
) -> SamplePlan | QuantilePlan | None:
    """Return the plan of a statistic's sample, None where it has none.

    Parameters
    ----------
    name, statistic, loss, neighboring
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
    place = f"statistics.{name}.sample"
    if isinstance(entry, QuantileEntry):
        of_bins = quantile_scores(statistic, entry)
        sensitivity = of_bins.range_sensitivity(neighboring, records=records, n_cells=n_cells)
        rule = "one unit could move the quantile's rank by more than 2^42 records"
        _require_range(place, sensitivity, rule, "let fewer rows of a unit enter")
        scale = smallest_scale(sensitivity, entry.draws, loss, least=1)
        rule = "its rank scale is above 2^46 in the unit of its scores: the data would hardly count"
        _require_scale(place, scale, rule, "draw less often, or give it more epsilon")
        return QuantilePlan(
            quantile=entry.quantile,
            draws=entry.draws,
            bins=_bins(statistic),
            range_sensitivity=sensitivity,
            scale=scale,
        )
    sensitivity = score_tables(statistic, entry).range_sensitivity(
        neighboring, records=records, n_cells=n_cells, n_is_public=n_is_public
    )
    rule = "one unit could move the log likelihood by more than 2^42 nats"
    _require_range(place, sensitivity, rule, "narrow within, or lower the bounds of the column")
    scale = smallest_scale(sensitivity, entry.draws, loss)
    rule = f"its temperature {format_number(scale >> 20)} is above 2^26: the data would hardly count"
    _require_scale(place, scale, rule, "narrow within, draw less often, or give it more epsilon")
    return SamplePlan(
        parameter=sampled_parameter(statistic).name,
        draws=entry.draws,
        grid=entry.grid,
        within=entry.within,
        prior=str(entry.prior),
        range_sensitivity=sensitivity,
        scale=scale,
    )


def _require_range(place: str, sensitivity: int, rule: str, way_out: str) -> None:
    if sensitivity > LARGEST_RANGE:
        raise SpecError(place, rule, way_out)


def _require_scale(place: str, scale: int, rule: str, way_out: str) -> None:
    if scale > LARGEST_SAMPLE_SCALE:
        raise SpecError(place, rule, way_out)


def _compile_statistic(
    terms: Terms, name: str, entry: StatisticSpec, loss: PrivacyLoss, *, n_may_be_public: bool
) -> StatisticPlan:
    family = FAMILIES[entry.family]
    block = block_of(entry, n_may_be_public=n_may_be_public)
    contribution = terms.contribution_to(entry)
    kept_rows = 1 if contribution is None else contribution.rows
    sample = compile_sample(
        name,
        entry,
        loss,
        terms.privacy.neighboring,
        records=1 if block.unit_l1 is not None else kept_rows,
        n_cells=cell_count(terms.groups_of(entry)),
        n_is_public=block.design is Design.MINIMAL,
    )
    plan = partial(
        StatisticPlan,
        name=name,
        family=entry.family,
        columns=columns_of(measure_of(entry)),
        groups=dict(terms.groups_of(entry)),
        states_groups=entry.groups is not None,
        design=block.design,
        loss=loss,
        parameters=family.parameters(entry),
        contribution=contribution,
        rows_of=_sentence(terms, entry),
    )
    if sample is not None:
        return plan(
            components=(),
            l1_sensitivity=0,
            scale=0.0,
            partition_total=None,
            value_type=INT64,
            quantities=(),
            sample=sample,
        )
    position = f"statistics.{name}"
    if block.cone is not None:
        if loss.rho is not None:
            raise SpecError(f"{position}.noise", "noise on a cone is of epsilon, and not of rho")
        # proof: cone-units
        records = cone_records(terms.privacy.neighboring, kept_rows)
        cone = replace(block.cone, rate=loss.amount / records)  # exact: nothing is rounded
        return plan(
            components=block.components,
            l1_sensitivity=0,
            scale=0.0,
            partition_total=None,
            value_type=_value_type(terms, block, cone.reach, position),
            quantities=block.quantities,
            cone=cone,
        )
    l1_sensitivity = block.l1_sensitivity(terms.privacy.neighboring, kept_rows)
    l2_squared = None
    if loss.rho is not None:
        # proof: laplace-in-rho
        in_cell = None if contribution is None else contribution.rows_in_cell
        l2_squared = block.l2_squared(terms.privacy.neighboring, kept_rows, in_cell)
    scale = noise_scale(loss, l1_sensitivity=l1_sensitivity, l2_squared=l2_squared)
    if getattr(entry, "moment_weight", None) is not None and block.moment_weight is None:
        rule = "it weights moments beside a public number of records, but that number is private here"
        raise SpecError(f"{position}.moment_weight", rule, "leave it out")
    if scale > LARGEST_SCALE:
        raise SpecError(
            position,
            f"its noise scale {scale:.3g} is above 2^55, where noise of 64 bits would be cut off too often",
            "give it more epsilon or a greater share, fewer lattice_bits or a lower upper bound",
        )
    return plan(
        components=block.components,
        l1_sensitivity=l1_sensitivity,
        l2_squared=l2_squared,
        scale=scale,
        partition_total=block.partition_total,
        value_type=_value_type(terms, block, NOISE_REACH * Fraction(scale), position),
        quantities=block.quantities,
        moment_weight=block.moment_weight,
        within_unit=block.within_unit,
        counted=block.counted,
    )


def _value_type(terms: Terms, block: Block, reach_of_noise: Fraction | int, position: str) -> str:
    """Return the type that totals and noise fit into."""
    reach = block.largest_value * terms.max_total_rows + reach_of_noise
    if reach >= 10**38:
        way_out = "lower max_total_rows or lattice_bits, or give it more epsilon"
        raise SpecError(position, "its totals could need more than 38 digits", way_out)
    return INT64 if reach < 2**63 else DECIMAL
