"""What a manifest states that follows from the plan: by field, as JSON holds it, statistic by statistic."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.pipeline.terms.declaration.domains import Domain, DomainKind
from suffice.pipeline.terms.declaration.exact_numbers import format_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.terms.statistics.block import ColumnBounds, Parameters, Quantity
    from suffice.pipeline.terms.statistics.count_table import CountTable
    from suffice.pipeline.terms.statistics.sample_plan import SamplePlan
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


def declared_fields(plan: Plan) -> dict[str, Any]:
    """Return the fields that follow from a plan without its statistics."""
    return {
        "name": plan.name,
        "dataset": plan.dataset,
        "epsilon": format_number(plan.epsilon),
        "neighboring": str(plan.neighboring),
        "unit": plan.unit,
        **(plan.column_unit.bound() if plan.column_unit else {}),
        "max_total_rows": plan.max_total_rows,
        "cells": plan.n_cells,
        "groups": [_group(column, domain) for column, domain in plan.groups.items()],
    }


def statistic_fields(statistic: StatisticPlan) -> dict[str, Any]:
    """Return a statistic's entry; its quantities are made one after another, as there may be many."""
    weight = statistic.moment_weight
    if statistic.sample is not None:
        return _sampled_fields(statistic, statistic.sample)
    return {
        "name": statistic.name,
        "family": statistic.family,
        "columns": list(statistic.columns),
        "rows_of": statistic.rows_of,
        "design": str(statistic.design),
        "components": list(statistic.components),
        "epsilon": format_number(statistic.epsilon),
        "l1_sensitivity": str(statistic.l1_sensitivity),
        "mechanism": "discrete_laplace",
        "scale": format_number(Fraction(statistic.scale)),
        "partition_total": _optional(statistic.partition_total),
        "value_type": statistic.value_type,
        "quantities": (_quantity(quantity, statistic.components) for quantity in statistic.quantities),
        **({"moment_weight": format_number(weight)} if weight is not None else {}),
        **_within_unit(statistic),
        **_count_clipped(statistic),
        "parameters": _parameters(statistic.parameters),
    }


def _sampled_fields(statistic: StatisticPlan, sample: SamplePlan) -> dict[str, Any]:
    """Return the entry of a statistic of which draws are released: it has no components."""
    return {
        "name": statistic.name,
        "family": statistic.family,
        "columns": list(statistic.columns),
        "rows_of": statistic.rows_of,
        "design": str(statistic.design),
        "epsilon": format_number(statistic.epsilon),
        "mechanism": "exponential",
        "parameter": sample.parameter,
        "draws": sample.draws,
        "grid": sample.grid,
        "within": [format_number(end) for end in sample.within],
        "prior": sample.prior,
        "range_sensitivity": str(sample.range_sensitivity),
        "scale": str(sample.scale),
        "temperature": format_number(sample.temperature),
        "parameters": _parameters(statistic.parameters),
    }


def _parameters(parameters: Parameters) -> dict[str, Any]:
    return {
        "categories": list(parameters.categories),
        "lower": _optional(parameters.lower),
        "upper": _optional(parameters.upper),
        "lattice_bits": parameters.lattice_bits,
        **_constants(parameters.constants),
        **_columns(parameters.columns),
        **_tables(parameters.tables),
    }


def _within_unit(statistic: StatisticPlan) -> dict[str, Any]:
    """Return how rows and units share the block, where they do."""
    shared = statistic.within_unit
    if shared is None:
        return {}
    return {
        "within_unit": {
            "max_rows": str(shared.max_rows),
            "row_weight": str(shared.row_weight),
            "row_components": list(statistic.components[: shared.rows]),
            "unit_total": str(shared.unit_total),
        }
    }


def _count_clipped(statistic: StatisticPlan) -> dict[str, Any]:
    """Return how sums and counts share the block, where they do."""
    shared = statistic.counted
    if shared is None:
        return {}
    return {
        "count_clipped": {
            "weight": str(shared.weight),
            "sum_components": list(statistic.components[: shared.sums]),
            "sum_partition_total": _optional(shared.partition_total),
        }
    }


def _group(column: str, domain: Domain) -> dict[str, Any]:
    head = {"column": column, "kind": str(domain.kind)}
    if domain.kind is DomainKind.RANGE:
        return {**head, "first": str(domain[0]), "last": str(domain[-1])}
    return {**head, "every": str(domain.every) if domain.every else None, "keys": list(domain)}


def _columns(columns: Sequence[ColumnBounds]) -> dict[str, Any]:
    """Return the columns' entry of statistics of several columns."""
    if not columns:
        return {}
    return {
        "columns": [
            {"name": of.name, "lower": format_number(of.lower), "upper": format_number(of.upper)}
            for of in columns
        ]
    }


def _constants(constants: Mapping[str, Fraction]) -> dict[str, Any]:
    """Return the constants' entry where there are any: manifests without one say the same as ever."""
    if not constants:
        return {}
    return {"constants": {name: format_number(number) for name, number in constants.items()}}


def _tables(tables: Sequence[CountTable]) -> dict[str, Any]:
    """Return the tables' entry where there are any: each table's variables, each variable's categories."""
    if not tables:
        return {}
    return {
        "tables": [
            {
                "name": table.name,
                "variables": [
                    {"name": variable.name, "categories": list(variable.categories)}
                    for variable in table.variables
                ],
            }
            for table in tables
        ]
    }


def _quantity(quantity: Quantity, components: Sequence[str]) -> dict[str, Any]:
    return {
        "name": quantity.name,
        "category": quantity.category,
        **({"component": quantity.component} if quantity.component is not None else {}),
        **({"labels": [list(label) for label in quantity.labels]} if quantity.labels else {}),
        "coefficients": {
            components[component]: format_number(weight)
            for component, weight in quantity.coefficients.items()
        },
        "public_n_coefficient": format_number(quantity.public_n_coefficient),
    }


def _optional(number: Fraction | int | None) -> str | None:
    return None if number is None else format_number(number)
