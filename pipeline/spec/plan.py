"""The plan: a pure function of the public spec. Cells, blocks, sensitivities, scales, expected error.

``suffice plan`` prints it, for people and for programs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.errors import SpecError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.beside_sums import block_within, measure_counting, measure_within
from suffice.pipeline.spec.checks import sampled_parameter
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.spec.terms import DeclaredOrder
from suffice.pipeline.terms.declaration.derived_columns import physical
from suffice.pipeline.terms.declaration.documents import Count, Sha256, document, printed
from suffice.pipeline.terms.declaration.domains import cell_count, cells_in_words, key_columns
from suffice.pipeline.terms.declaration.exact_numbers import (
    LARGEST_SCALE,
    format_epsilon,
    format_number,
    scale_rounded_up,
)
from suffice.pipeline.terms.declaration.fields import RowsOf, sample_entry
from suffice.pipeline.terms.declaration.time_zones import UTC, zone_data_version
from suffice.pipeline.terms.declaration.wording import text_table
from suffice.pipeline.terms.released.table import card, html_table, markup
from suffice.pipeline.terms.statistics.beside_sums import beside_sums
from suffice.pipeline.terms.statistics.measure import columns_of
from suffice.pipeline.terms.statistics.sensitivity import Design, NeighboringRelation
from suffice.pipeline.terms.statistics.statistic_plan import (
    DECIMAL,
    INT64,
    LARGEST_RANGE,
    LARGEST_SAMPLE_SCALE,
    NOISE_REACH,
    SamplePlan,
    StatisticPlan,
    grid_points,
    quantity_rows,
    sample_line,
    smallest_scale,
    statistic_dict,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from suffice.pipeline.spec.spec import AnySpec, Spec
    from suffice.pipeline.spec.terms import Terms
    from suffice.pipeline.terms.declaration.derived_conditions import DerivedColumn
    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.declaration.fields import ColumnUnit, Expectation, SampleEntry, StatisticSpec
    from suffice.pipeline.terms.declaration.scalars import Duration
    from suffice.pipeline.terms.statistics.beside_sums import WithinUnit
    from suffice.pipeline.terms.statistics.measure import Measure
    from suffice.pipeline.terms.statistics.sensitivity import Block
    from suffice.pipeline.terms.statistics.statistic_plan import ScoreTables

_COLUMNS = ["statistic", "family", "epsilon", "quantity", "noise sd", "l1 (lattice)", "scale (lattice)"]


_TEXTS = {"family", "quantity"}
_UNITS = (
    "noise sd: of n and counts in rows or units, of totals in the column's own unit, of squares in its square"
)


def plan_text(plan: Plan, *, says_unit: bool = True) -> str:
    """Return the text of a plan: its heading, a table of noisy quantities, and sentences."""
    noisy = [statistic for statistic in plan.statistics if statistic.sample is None]
    rows = [row for statistic in noisy for row in quantity_rows(statistic)]
    parts = [f"{_heading(plan)}\n"]
    if rows:
        parts.append(text_table(_COLUMNS, rows))
    return "\n".join([*parts, *_lines(plan), *([plan.one_unit] if says_unit else [])])


def plan_html(plan: Plan) -> str:
    """Return what a plan shows in a notebook: the same."""
    noisy = [statistic for statistic in plan.statistics if statistic.sample is None]
    cells = [list(map(markup, row)) for statistic in noisy for row in quantity_rows(statistic)]
    title, *lead = _heading(plan).split("\n")
    table = html_table(_COLUMNS, cells, [name != "statistic" and name not in _TEXTS for name in _COLUMNS])
    return card(
        title,
        lead="; ".join(lead),
        warnings=[plan.one_unit],
        body=table if cells else "",
        foot=[*_lines(plan), *filter(None, [plan.expects])],
    )


def _lines(plan: Plan) -> list[str]:
    """Say what the table does not."""
    noisy = [statistic for statistic in plan.statistics if statistic.sample is None]
    return [
        *([_UNITS] if noisy else []),
        *(
            sample_line(statistic, statistic.sample)
            for statistic in plan.statistics
            if statistic.sample is not None
        ),
        *(
            f"{statistic.name}: second moments weigh {format_number(statistic.moment_weight)} "
            "beside first ones"
            for statistic in noisy
            if statistic.moment_weight is not None
        ),
        *_sentences(plan),
        *(f"{place}: {of}" for place, of in plan.conditions.items()),
        *(f"{name}: {of}" for name, of in plan.derived.items()),
    ]


def _heading(plan: Plan) -> str:
    unit = f"unit {plan.unit}" if plan.column_unit is None else f"unit {plan.unit}, {plan.column_unit}"
    window = f", released per window of {plan.grid}" if plan.grid else ""
    heading = (
        f"{plan.name}: epsilon {format_epsilon(plan.epsilon)} of {plan.dataset}, {plan.neighboring}, "
        f"{unit}{window}\n{plan.cells_text}"
    )
    if not plan.amend:
        return heading
    after = " and ".join(map(str, plan.amend))
    return (
        f"{heading}\namended {after} after a window is complete, each for epsilon "
        f"{format_epsilon(plan.epsilon)} again: {format_epsilon(plan.window_epsilon)} a window in all"
    )


def _sentences(plan: Plan) -> list[str]:
    """Say what statistics' parameters are of, under a column unit."""
    of: dict[str, list[str]] = {}
    for statistic in plan.statistics:
        if statistic.rows_of is not None:
            of.setdefault(statistic.rows_of, []).append(statistic.name)
    return [f"{', '.join(names)}: {sentence}" for sentence, names in of.items()]


@printed(
    "name dataset epsilon neighboring unit max_rows?=column_unit.max_rows unit_nulls?=column_unit.nulls "
    "window=grid amend=calendar epsilon_per_window=window_epsilon where?=in_words derived=computed "
    "groups=sizes "
    "cells=n_cells plan_hash"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything about a release that is known before any data are read.

    Attributes
    ----------
    name, dataset : str
        The release series, and the account that pays.
    epsilon : Fraction
        Of the whole release, in nats; the blocks' epsilons add up to it exactly.
    neighboring : NeighboringRelation
        The neighbouring relation of the guarantee.
    unit : str
        The privacy unit, as accounts name it: ``row`` or ``column:NAME``.
    column_unit : ColumnUnit or None
        The bound on a column unit's rows, and what becomes of rows without one.
    grid : str or None
        The window grid, ``column:every:time_zone``.
    amend : tuple of Duration
        How long after a window is complete its amendments fall due; not part of the canonical plan, so that a
        published release's plan has none.
    conditions : dict of str to (str or DerivedColumn)
        Under which rows enter, by the place that states them: ``where``, or ``statistics.NAME.where``.
    derived : dict of str to DerivedColumn
        Columns that are computed from others of their row.
    groups : dict of str to Domain
        The public group keys, in declared order, of statistics that state none of their own.
    statistics : tuple of StatisticPlan
        In declared order.
    max_total_rows : int
        Public bound on the number of records.
    canonical : str
        The canonical plan, JSON text.
    plan_hash : str
        Its SHA-256, in hex.
    order : DeclaredOrder
        The order of what the canonical plan sorts.
    expects : str
        What the spec expects, in words: a release of its own. Empty where nothing.
    """

    name: str
    dataset: str
    epsilon: Fraction
    neighboring: NeighboringRelation
    unit: str
    column_unit: ColumnUnit | None
    grid: str | None
    amend: tuple[Duration, ...]
    conditions: dict[str, str | DerivedColumn]
    derived: dict[str, DerivedColumn]
    groups: dict[str, Domain]
    statistics: tuple[StatisticPlan, ...]
    max_total_rows: int
    canonical: str
    plan_hash: Sha256
    order: DeclaredOrder
    expects: str = field(default="", compare=False, repr=False)

    @property
    def n_cells(self) -> Count:
        """Number of cells of these groups: the product of their sizes."""
        return cell_count(self.groups)

    @property
    def cells_text(self) -> str:
        """How many cells there are, in words; where statistics differ, of which and by which columns."""
        return cells_in_words({statistic.name: statistic.groups for statistic in self.statistics})

    @property
    def key_columns(self) -> dict[str, list[Domain]]:
        """The columns that statistics are grouped by, each with its domains."""
        return key_columns([self.groups, *(statistic.groups for statistic in self.statistics)])

    @property
    def zone_data(self) -> str | None:
        """The version of this host's time zone data, where the release needs some; None where all is in UTC.

        It is no part of the canonical plan: an upgrade changes no release's identity.
        """
        computed = [
            *self.derived.values(),
            *(of for of in self.conditions.values() if not isinstance(of, str)),
        ]
        zones = {zone for of in computed for zone in of.time_zones}
        if self.grid is not None:
            zones.add(self.grid.rsplit(":", 1)[1])
        return zone_data_version() if zones - {UTC} else None

    @property
    def n_is_public(self) -> bool:
        """Whether some statistic is released beside a public number of records."""
        return any(statistic.design is Design.MINIMAL for statistic in self.statistics)

    @property
    def window_epsilon(self) -> Fraction:
        """What a window is charged in all, in nats, with every amendment of the calendar."""
        return self.epsilon * (1 + len(self.amend))

    @property
    def calendar(self) -> tuple[str, ...]:
        """How long after a window its amendments fall due, in words."""
        return tuple(map(str, self.amend))

    @property
    def sizes(self) -> dict[str, Count]:
        """How many keys every group has."""
        return {name: len(domain) for name, domain in self.groups.items()}

    @property
    def in_words(self) -> dict[str, str] | None:
        """Under which conditions rows enter, by place; None where all do."""
        return {place: str(of) for place, of in self.conditions.items()} or None

    @property
    def computed(self) -> dict[str, str]:
        """How columns are derived, in words."""
        return {name: str(of) for name, of in self.derived.items()}

    @property
    def one_unit(self) -> str:
        """What one unit loses by the release, and by its series in a year."""
        from suffice.pipeline.spec.person import of_release  # it imports numpy
        from suffice.pipeline.terms.declaration.domains import Every

        every = None if self.grid is None else Every(self.grid.rsplit(":", 2)[1])
        return of_release(self.epsilon, every, self.unit)

    def __str__(self) -> str:
        return "\n".join(filter(None, (plan_text(self), self.expects)))

    def _repr_html_(self) -> str:
        return plan_html(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - IPython calls it so
        printer.text(str(self))


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return what ``suffice plan --json`` prints of a plan."""
    return {
        **document(plan),
        "statistics": [statistic_dict(statistic) for statistic in plan.statistics],
    }


def compile_plan(spec: AnySpec) -> Plan:
    r"""Compile a spec into its plan. Reads no data and spends nothing.

    Block ``j`` gets

    .. math:: \varepsilon_j = \varepsilon \frac{\text{share}_j}{\sum_i \text{share}_i}, \qquad
              b_j = \Delta_j / \varepsilon_j \text{ rounded up}

    Parameters
    ----------
    spec : Spec
        A validated spec.

    Returns
    -------
    Plan

    Raises
    ------
    SpecError
        Where a scale is above 2**55, or values could not be stored in 38 digits.
    """
    spec = load_spec(spec)
    # proof: block-split
    shares = sum((statistic.share for statistic in spec.statistics.values()), Fraction(0))
    plan = assemble(spec, compile_statistics(spec, spec.statistics.items(), shares))
    return replace(plan, expects="" if spec.expect is None else _expectation(spec.expect))


def _expectation(expect: Expectation) -> str:
    """Say what is counted and charged before a plan's own release."""
    return (
        f"expect: a noisy count of {expect.counts} is released first, for epsilon "
        f"{format_epsilon(expect.epsilon)} more; below {expect.floor} nothing else is"
    )


def assemble(terms: Terms, statistics: Iterable[StatisticPlan]) -> Plan:
    """Return the plan of terms whose statistics are compiled."""
    return Plan(
        name=terms.name,
        dataset=terms.dataset,
        epsilon=terms.privacy.epsilon,
        neighboring=terms.privacy.neighboring,
        unit=terms.privacy.unit_name,
        column_unit=terms.privacy.column_unit,
        grid=terms.grid,
        amend=terms.window.amend if terms.window else (),
        conditions=terms.conditions,
        derived=dict(terms.derived),
        groups=dict(terms.groups),
        statistics=tuple(statistics),
        max_total_rows=terms.max_total_rows,
        canonical=terms.canonical_plan(),
        plan_hash=terms.plan_hash(),
        order=DeclaredOrder.of(terms),
    )


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
    n_may_be_public = (
        terms.privacy.neighboring is NeighboringRelation.REPLACE_ONE
        and terms.privacy.column_unit is None
        and terms.window is None
        and terms.where is None
    )
    for name, entry in entries:
        epsilon = terms.privacy.epsilon * entry.share / shares
        # proof: conditions
        every_row = n_may_be_public and entry.where is None and not terms.groups_of(entry)
        yield _compile_statistic(terms, name, entry, epsilon, n_may_be_public=every_row)


def measures(spec: Spec) -> dict[str, Measure]:
    """Return what one pass over the data computes, by statistic."""
    return {name: measure_of(entry) for name, entry in spec.statistics.items()}


def source_columns(spec: Spec) -> tuple[str, ...]:
    """Return the columns of the source that a spec reads, each once: none that is derived."""
    window = (spec.window.column,) if spec.window else ()
    unit = (spec.privacy.column_unit.column,) if spec.privacy.column_unit else ()
    statistics = (column for measure in measures(spec).values() for column in columns_of(measure))
    conditions = spec.condition_columns.values()
    return physical((*window, *spec.key_columns, *unit, *statistics, *conditions), spec.computed)


def measure_of(entry: StatisticSpec) -> Measure:
    """Return what a pass over the data computes for a statistic: of rows, or of units."""
    family = FAMILIES[entry.family]
    measure = family.measure(entry)
    if entry.rows_of is RowsOf.UNITS and family.of_units is not None:
        return family.of_units.measure(measure)
    if entry.count_clipped is not None:
        return measure_counting(family, entry)
    return measure if entry.within_unit is None else measure_within(measure)


def block_of(entry: StatisticSpec, *, n_may_be_public: bool) -> tuple[Block, WithinUnit | None]:
    """Return the block that a statistic releases, and how rows and units share it where both are in it.

    A unit that counts once adds what a record would.
    """
    family = FAMILIES[entry.family]
    block = family.block(entry, n_may_be_public)
    if entry.within_unit is not None:
        return block_within(family, entry, block)
    if entry.count_clipped is not None:
        return beside_sums(block, entry.count_clipped.weight), None
    # proof: one-row-a-unit
    # proof: unit-means
    return (replace(block, unit_l1=block.record_l1) if entry.rows_of is RowsOf.UNITS else block), None


def rows_sentence(
    entry: StatisticSpec, max_rows: int | None, *, has_groups: bool, is_filtered: bool
) -> str | None:
    """Say what a statistic's parameters are of; None where every row counts."""
    sentence = _unit_sentence(entry, max_rows, has_groups=has_groups)
    if not is_filtered:
        return sentence
    return f"{sentence or 'of rows'}, where the spec's condition holds"


def _unit_sentence(entry: StatisticSpec, max_rows: int | None, *, has_groups: bool) -> str | None:
    """Say what a statistic's parameters are of, under a column unit."""
    family = FAMILIES[entry.family]
    if max_rows is None:
        return None
    if family.of_whole_units is not None:
        return family.of_whole_units(entry)
    if entry.rows_of is RowsOf.UNITS and family.of_units is not None:
        return family.of_units.sentence_in_cells if has_groups else family.of_units.sentence
    return f"of rows kept: at most {max_rows} of each unit"


def _sentence(terms: Terms, entry: StatisticSpec) -> str | None:
    is_filtered = terms.where is not None or entry.where is not None
    max_rows = terms.privacy.max_rows
    return rows_sentence(entry, max_rows, has_groups=bool(terms.groups_of(entry)), is_filtered=is_filtered)


def score_tables(statistic: StatisticSpec, entry: SampleEntry) -> ScoreTables:
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
    sensitivity = score_tables(statistic, entry).range_sensitivity(
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
        parameter=sampled_parameter(statistic).name,
        draws=entry.draws,
        grid=entry.grid,
        within=entry.within,
        prior=str(entry.prior),
        range_sensitivity=sensitivity,
        scale=scale,
    )


def _compile_statistic(
    terms: Terms, name: str, entry: StatisticSpec, epsilon: Fraction, *, n_may_be_public: bool
) -> StatisticPlan:
    family = FAMILIES[entry.family]
    block, within_unit = block_of(entry, n_may_be_public=n_may_be_public)
    max_rows = terms.privacy.max_rows
    sample = compile_sample(
        name,
        entry,
        epsilon,
        terms.privacy.neighboring,
        records=1 if block.unit_l1 is not None else max_rows or 1,
        n_cells=cell_count(terms.groups_of(entry)),
        n_is_public=block.design is Design.MINIMAL,
    )
    if sample is not None:
        return StatisticPlan(
            name=name,
            family=entry.family,
            columns=columns_of(measure_of(entry)),
            groups=dict(terms.groups_of(entry)),
            states_groups=entry.groups is not None,
            design=block.design,
            components=(),
            epsilon=epsilon,
            l1_sensitivity=0,
            scale=0.0,
            partition_total=None,
            value_type=INT64,
            quantities=(),
            parameters=family.parameters(entry),
            max_rows=max_rows,
            rows_of=_sentence(terms, entry),
            sample=sample,
        )
    l1_sensitivity = block.l1_sensitivity(terms.privacy.neighboring, max_rows or 1)
    scale = scale_rounded_up(l1_sensitivity, epsilon)
    position = f"statistics.{name}"
    if getattr(entry, "moment_weight", None) is not None and block.moment_weight is None:
        rule = "it weights moments beside a public number of records, but that number is private here"
        raise SpecError(f"{position}.moment_weight", rule, "leave it out")
    if scale > LARGEST_SCALE:
        raise SpecError(
            position,
            f"its noise scale {scale:.3g} is above 2^55, where noise of 64 bits would be cut off too often",
            "give it more epsilon or a greater share, fewer lattice_bits or a lower upper bound",
        )
    reach = block.largest_value * terms.max_total_rows + NOISE_REACH * Fraction(scale)
    if reach >= 10**38:
        raise SpecError(
            position, "its totals could need more than 38 digits", "lower max_total_rows or lattice_bits"
        )
    return StatisticPlan(
        name=name,
        family=entry.family,
        columns=columns_of(measure_of(entry)),
        groups=dict(terms.groups_of(entry)),
        states_groups=entry.groups is not None,
        design=block.design,
        components=block.components,
        epsilon=epsilon,
        l1_sensitivity=l1_sensitivity,
        scale=scale,
        partition_total=block.partition_total,
        value_type=INT64 if reach < 2**63 else DECIMAL,
        quantities=block.quantities,
        parameters=family.parameters(entry),
        moment_weight=block.moment_weight,
        within_unit=within_unit,
        counted=block.counted,
        max_rows=max_rows,
        rows_of=_sentence(terms, entry),
    )
