"""Count tables for simulations: entries of a spec, true probabilities, and rows drawn from them."""

from __future__ import annotations

from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.families.naive_bayes import estimated_tables
from suffice.pipeline.terms.statistics.count_table import released_tables

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.count_table import CountTable
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats


TWO, THREE = ["0", "1"], ["0", "1", "2"]
TABLES: dict[str, dict[str, Any]] = {
    "contingency": {"family": "contingency", "columns": {"a": TWO, "b": THREE}},
    "naive_bayes": {
        "family": "naive_bayes",
        "outcome": {"y": TWO},
        "features": {"a": THREE, "b": TWO, "c": THREE},
    },
    "star": {
        "family": "bayesian_network",
        "nodes": {
            "a": {"categories": THREE, "parents": ["y"]},
            "y": TWO,
            "b": {"categories": TWO, "parents": ["y"]},
            "alone": THREE,
        },
    },
    "markov_chain": {
        "family": "markov_chain",
        "column": "state",
        "categories": THREE,
        "order": "when",
        "transitions": "5",
    },
    "chain": {
        "family": "bayesian_network",
        "nodes": {
            "a": TWO,
            "b": {"categories": THREE, "parents": ["a"]},
            "c": {"categories": TWO, "parents": ["b"]},
        },
    },
    "collider": {
        "family": "bayesian_network",
        "nodes": {
            "a": TWO,
            "b": TWO,
            "c": {"categories": TWO, "parents": ["b", "a"]},
            "d": {"categories": THREE, "parents": ["a", "b"]},
        },
    },
}


STEPS = 5
"""Transitions of every unit of a Markov chain."""


def conditional_tables(plan: StatisticPlan) -> tuple[CountTable, ...]:
    """Return the tables of probabilities, in the order of the posterior."""
    tables = plan.parameters.tables
    return estimated_tables(plan.parameters) if plan.family == "naive_bayes" else tables


def true_probabilities(plan: StatisticPlan, rng: np.random.Generator) -> dict[str, Floats]:
    """Draw each table's probabilities from the uniform prior, of its last variable given the others."""
    drawn = {}
    for table in conditional_tables(plan):
        if plan.family == "contingency":
            drawn[table.name] = rng.dirichlet(np.ones(table.size)).reshape(table.shape)
        else:
            rows = rng.dirichlet(np.ones(table.shape[-1]), table.size // table.shape[-1])
            drawn[table.name] = rows.reshape(table.shape)
    return drawn


def simulate_counts(
    plan: StatisticPlan, probabilities: dict[str, Floats], n_rows: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw rows, and count them in every released table, one table beside the other."""
    rows: dict[str, NDArray[np.int64]] = {}
    tables = {table.name: table for table in conditional_tables(plan)}
    if plan.family == "contingency":
        (joint,) = probabilities.values()
        return rng.multinomial(n_rows, joint.ravel())
    if plan.family == "markov_chain":
        return _walks(probabilities["transitions"], n_rows // STEPS, rng)
    parents = {name: [variable.name for variable in table.variables[:-1]] for name, table in tables.items()}
    for name in TopologicalSorter(parents).static_order():
        of_rows = probabilities[name][tuple(rows[parent] for parent in parents[name])]
        chances = np.broadcast_to(of_rows, (n_rows, tables[name].shape[-1]))
        rows[name] = np.sum(rng.random((n_rows, 1)) > np.cumsum(chances, axis=1)[:, :-1], axis=1)
    parts = []
    for table in released_tables(plan.parameters.tables):
        codes = np.ravel_multi_index([rows[variable.name] for variable in table.variables], table.shape)
        parts.append(np.bincount(codes, minlength=table.size))
    return np.concatenate(parts)


def _walks(probability: Floats, n_units: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Let units walk from states that are equally likely, and count their transitions."""
    states = len(probability)
    counts = np.zeros(states**2, np.int64)
    at = rng.integers(0, states, n_units)
    for _ in range(STEPS):
        following = np.sum(rng.random((n_units, 1)) > np.cumsum(probability[at], axis=1)[:, :-1], axis=1)
        counts += np.bincount(at * states + following, minlength=states**2)
        at = following
    return counts
