"""The plan: a pure function of the public spec. Cells, blocks, sensitivities, scales, expected error.

``suffice plan`` prints it, for people and for programs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.pipeline.spec.chosen_noise import PredictedNoise, predicted_noise
from suffice.pipeline.spec.compiled_statistics import OF_KEPT_ROWS, compile_statistics, measure_of
from suffice.pipeline.spec.planned_trees import PlannedTree
from suffice.pipeline.spec.terms import DeclaredOrder
from suffice.pipeline.terms.declaration.delta import shown_epsilons
from suffice.pipeline.terms.declaration.derived_columns import needed, physical
from suffice.pipeline.terms.declaration.documents import Count, Sha256, document, printed
from suffice.pipeline.terms.declaration.domains import cell_count, cells_in_words, key_columns
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.hierarchy import by_level
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss, PrivacyMeasure
from suffice.pipeline.terms.declaration.row_rules import in_words
from suffice.pipeline.terms.declaration.time_zones import UTC, zone_data_version
from suffice.pipeline.terms.declaration.wording import text_table, wrapped
from suffice.pipeline.terms.released.table import card, html_table, markup
from suffice.pipeline.terms.statistics.bins_in_words import bins_line
from suffice.pipeline.terms.statistics.drawn_quantile import QuantilePlan, quantile_line
from suffice.pipeline.terms.statistics.measure import columns_of
from suffice.pipeline.terms.statistics.sample_plan import SamplePlan
from suffice.pipeline.terms.statistics.sensitivity import Design, NeighboringRelation
from suffice.pipeline.terms.statistics.statistic_plan import (
    StatisticPlan,
    long_draws,
    quantity_rows,
    sample_line,
    statistic_dict,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from suffice.pipeline.spec.spec import AnySpec, Spec
    from suffice.pipeline.spec.terms import Terms
    from suffice.pipeline.terms.declaration.column_unit import ColumnUnit
    from suffice.pipeline.terms.declaration.derived_conditions import DerivedColumn
    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.declaration.priced import Expectation
    from suffice.pipeline.terms.declaration.scalars import Duration
    from suffice.pipeline.terms.statistics.measure import Measure


_TEXTS = {"family", "quantity"}
_UNITS = (
    "noise sd: of n and counts in rows or units, of totals in the column's own unit, of squares in its "
    "square; {} and scale: in steps of the lattice"
)


def plan_text(plan: Plan, *, says_unit: bool = True) -> str:
    """Return the text of a plan: its heading, a table of noisy quantities, and sentences."""
    noisy = [statistic for statistic in plan.statistics if statistic.sample is None]
    columns = _columns_of(plan)
    rows = [row for statistic in noisy for row in quantity_rows(statistic)]
    parts = [f"{_heading(plan)}\n"]
    if rows:
        parts.append(text_table(columns, rows))
    return "\n".join([*parts, *_lines(plan, wrapped), *([plan.one_unit] if says_unit else [])])


def plan_html(plan: Plan) -> str:
    """Return what a plan shows in a notebook: the same."""
    noisy = [statistic for statistic in plan.statistics if statistic.sample is None]
    cells = [list(map(markup, row)) for statistic in noisy for row in quantity_rows(statistic)]
    title, *lead = _heading(plan).split("\n")
    columns = _columns_of(plan)
    table = html_table(columns, cells, [name != "statistic" and name not in _TEXTS for name in columns])
    return card(
        title,
        lead="; ".join(lead),
        warnings=[plan.one_unit],
        body=table if cells else "",
        foot=[*_lines(plan), *filter(None, [plan.expects])],
    )


def _columns_of(plan: Plan) -> list[str]:
    return ["statistic", "family", str(plan.loss.measure), "quantity", "noise sd", _norm(plan), "scale"]


def _norm(plan: Plan) -> str:
    """Name the sensitivity that scales follow from."""
    return "l1" if plan.loss.rho is None else "l2^2"


def _lines(plan: Plan, fold: Callable[[str], str] = str) -> list[str]:
    """Say what the table does not; of trees, histograms and drawn quantiles, folded."""
    noisy = [statistic for statistic in plan.statistics if statistic.sample is None]
    return [
        *([_UNITS.format(_norm(plan))] if noisy else []),
        *(
            _drawn_line(statistic, statistic.sample, fold)
            for statistic in plan.statistics
            if statistic.sample is not None
        ),
        *(
            f"{statistic.name}: second moments weigh {format_number(statistic.moment_weight)} "
            "beside first ones"
            for statistic in noisy
            if statistic.moment_weight is not None
        ),
        *(fold(str(tree)) for tree in plan.trees),
        *(
            fold(bins_line(statistic, statistic.parameters.bins))
            for statistic in noisy
            if statistic.parameters.bins is not None
        ),
        *map(fold, plan.judged),
        *(fold(str(of)) for of in plan.predicted_noise),
        *_sentences(plan),
        *(f"{place}: {of}" for place, of in plan.conditions.items()),
        *(f"{name}: {of}" for name, of in plan.derived.items()),
    ]


def _drawn_line(
    statistic: StatisticPlan, sample: SamplePlan | QuantilePlan, fold: Callable[[str], str]
) -> str:
    """Say what is drawn."""
    if isinstance(sample, SamplePlan):
        return sample_line(statistic, sample)
    heading = f"{statistic.name}: {statistic.family}, {statistic.loss}"
    return fold(quantile_line(heading, sample) + long_draws(statistic, sample))


def _heading(plan: Plan) -> str:
    unit = f"unit {in_words(plan.unit)}"
    if plan.column_unit is not None:
        keeps_rows = any((statistic.rows_of or "").startswith(OF_KEPT_ROWS) for statistic in plan.statistics)
        unit += f", {plan.column_unit}" if keeps_rows else f"; {plan.column_unit.without}"
    window = f", released per window of {in_words(plan.grid)}" if plan.grid else ""
    heading = f"{plan.name}: {plan.loss} of {plan.dataset}, {plan.neighboring}, {unit}{window}"
    if plan.loss.rho is not None:
        heading += f"\n(epsilon, delta) at most {shown_epsilons(plan.loss.rho)}"
    heading += f"\n{plan.cells_text}"
    if not plan.amend:
        return heading
    after = " and ".join(map(str, plan.amend))
    return (
        f"{heading}\namended {after} after a window is complete, each for "
        f"{plan.loss} again: {plan.window_loss.text} a window in all"
    )


def _sentences(plan: Plan) -> list[str]:
    """Say what statistics' parameters are of, under a column unit."""
    of: dict[str, list[str]] = {}
    for statistic in plan.statistics:
        if statistic.rows_of is not None:
            of.setdefault(statistic.rows_of, []).append(statistic.name)
    return [f"{', '.join(names)}: {sentence}" for sentence, names in of.items()]


@printed(
    "name dataset epsilon?=loss.epsilon rho?=loss.rho epsilon_at?=loss.epsilon_at neighboring unit "
    "max_rows?=column_unit.max_rows max_rows_per_cell?=column_unit.max_rows_per_cell "
    "unit_nulls?=column_unit.nulls window=grid amend=calendar epsilon_per_window?=window_loss.epsilon "
    "rho_per_window?=window_loss.rho where?=in_words derived=computed "
    "groups=sizes "
    "cells=n_cells trees?=stated_trees predicted_noise?=stated_noise plan_hash"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything about a release that is known before any data are read.

    Attributes
    ----------
    name, dataset : str
        The release series, and the account that pays.
    loss : PrivacyLoss
        Of the whole release; those of the blocks add up to it exactly.
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
    hierarchies : dict of str to tuple of str
        The levels of every tree, root first; each is a statistic, ``NAME.LEVEL``.
    expects : str
        What the spec expects, in words: a release of its own. Empty where nothing.
    judged : tuple of str
        What the spec says of the number of rows makes of bins and of drawn quantiles, a sentence each.
    predicted_noise : tuple of PredictedNoise
        Which noise statistics have that may have either; empty of a published release's plan.
    """

    name: str
    dataset: str
    loss: PrivacyLoss
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
    hierarchies: dict[str, tuple[str, ...]] = field(default_factory=dict)
    expects: str = field(default="", compare=False, repr=False)
    judged: tuple[str, ...] = field(default=(), compare=False, repr=False)
    predicted_noise: tuple[PredictedNoise, ...] = field(default=(), compare=False, repr=False)

    @property
    def n_cells(self) -> Count:
        """Number of cells of these groups: the product of their sizes."""
        return cell_count(self.groups)

    @property
    def cells_text(self) -> str:
        """How many cells there are, in words; where statistics differ, of which and by which columns."""
        groups = {statistic.name: statistic.groups for statistic in self.statistics}
        return cells_in_words(by_level(groups, self.hierarchies))

    @property
    def key_columns(self) -> dict[str, list[Domain]]:
        """The columns that statistics are grouped by, each with its domains."""
        return key_columns([self.groups, *(statistic.groups for statistic in self.statistics)])

    @property
    def trees(self) -> list[PlannedTree]:
        """Which statistics are the levels of a tree, and how noisy a count is at each."""
        plans = {statistic.name: statistic for statistic in self.statistics}
        return [PlannedTree.of(name, levels, plans) for name, levels in self.hierarchies.items()]

    @property
    def stated_trees(self) -> list[PlannedTree] | None:
        """The trees; None where there are none."""
        return self.trees or None

    @property
    def stated_noise(self) -> list[PredictedNoise] | None:
        """Which noise statistics have that may have either; None where there are none."""
        return list(self.predicted_noise) or None

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
    def rho(self) -> Fraction:
        """What the release costs an account of rho: the sum over its blocks, rounded up to what it counts."""
        # proof: pure-in-rho
        blocks = sum((statistic.rho for statistic in self.statistics), Fraction(0))
        return PrivacyLoss.of_rho(self.loss.rho or blocks).rounded_up.amount

    def loss_in(self, measure: PrivacyMeasure) -> PrivacyLoss | None:
        """Return what the release costs an account of a measure; None where it cannot be charged there."""
        if measure is PrivacyMeasure.RHO:
            return PrivacyLoss.of_rho(self.rho)
        return None if self.loss.epsilon is None else self.loss

    @property
    def window_loss(self) -> PrivacyLoss:
        """What a window is charged in all, with every amendment of the calendar."""
        return self.loss * (1 + len(self.amend))

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
        return of_release(self.loss, every, self.unit)

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

    or, of a spec in rho, its part of rho and :math:`b_j = \Delta_{2,j} / \sqrt{2 \rho_j}`.

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
    from suffice.pipeline.spec.judged_bins import judged_bins  # a plan that stands in a release needs no spec
    from suffice.pipeline.spec.spec import load_spec

    spec = load_spec(spec)
    # proof: block-split
    shares = sum((statistic.share for statistic in spec.statistics.values()), Fraction(0))
    plan = assemble(spec, compile_statistics(spec, spec.statistics.items(), shares))
    predicted = (predicted_noise(spec, name, statistic) for name, statistic in spec.statistics.items())
    return replace(
        plan,
        expects="" if spec.expect is None else _expectation(spec.expect),
        judged=judged_bins(spec, plan.statistics, shares),
        predicted_noise=tuple(of for of in predicted if of is not None),
    )


def _expectation(expect: Expectation) -> str:
    """Say what is counted and charged before a plan's own release."""
    return (
        f"expect: a noisy count of {expect.counts} is released first, for "
        f"{expect.loss} more; below {expect.floor} nothing else is"
    )


def assemble(terms: Terms, statistics: Iterable[StatisticPlan]) -> Plan:
    """Return the plan of terms whose statistics are compiled."""
    return Plan(
        name=terms.name,
        dataset=terms.dataset,
        loss=terms.privacy.loss,
        neighboring=terms.privacy.neighboring,
        unit=terms.unit_name,
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
        hierarchies=terms.trees,
    )


def measures(spec: Spec) -> dict[str, Measure]:
    """Return what one pass over the data computes, by statistic."""
    return {name: measure_of(entry) for name, entry in spec.statistics.items()}


def source_columns(spec: Spec) -> tuple[str, ...]:
    """Return the columns of the source that a spec reads, each once: none that is derived."""
    return physical(_columns_in_use(spec), spec.computed)


def derived_in_use(spec: Spec) -> tuple[str, ...]:
    """Return the derived columns that something reads, as the spec orders them."""
    used = needed(_columns_in_use(spec), spec.computed)
    return tuple(name for name in spec.derived if name in used)


def _columns_in_use(spec: Spec) -> tuple[str, ...]:
    window = (spec.window.column,) if spec.window else ()
    unit = (spec.privacy.column_unit.column,) if spec.privacy.column_unit else ()
    statistics = (column for measure in measures(spec).values() for column in columns_of(measure))
    conditions = spec.condition_columns.values()
    return (*window, *spec.key_columns, *unit, *statistics, *conditions)
