r"""Markov chain: transitions between declared states along the rows of each unit.

.. math:: p(x_1, \dots, x_{L + 1} \mid x_1) = \prod_t P_{x_t x_{t + 1}}, \quad T(x) = \sum_t e_{x_t x_{t + 1}}

A unit is a sequence: its first L transitions in a declared order, ties broken by state. Sensitivity in
`sensitivity.md`: first-transitions and bounded-units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.families import categorical
from suffice.pipeline.families.categorical import CategoricalSpec
from suffice.pipeline.families.shared import counted_tables
from suffice.pipeline.families.shared.contract import ColumnType, Example, Family, GenerativeCase
from suffice.pipeline.families.shared.counted_tables import code_column, default_prior, names, totals
from suffice.pipeline.families.shared.smoothness import of_tables
from suffice.pipeline.math.distributions.dirichlet import Dirichlet
from suffice.pipeline.math.distributions.interval_kinds import HIGHEST_DENSITY
from suffice.pipeline.terms.declaration.fields import Column, Count
from suffice.pipeline.terms.statistics.count_table import CountTable, Variable
from suffice.pipeline.terms.statistics.measure import TransitionCounts
from suffice.pipeline.terms.statistics.sensitivity import Block, Constants
from suffice.pipeline.terms.statistics.simulated_sums import transition_counts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.simulated_sums import SimulatedSums
    from suffice.typing import Floats


_TABLE = "transitions"


class MarkovChainSpec(CategoricalSpec):
    """A column of states, the column that orders a unit's rows, and a unit's most transitions."""

    order: Column
    transitions: Count


def measure(spec: MarkovChainSpec) -> TransitionCounts:
    """Count the transitions of each pair of states."""
    return TransitionCounts(of=code_column(spec), order=spec.order, most=spec.transitions)


def tables(spec: MarkovChainSpec) -> tuple[CountTable, ...]:
    """Return the table of (from, to)."""
    states = names(spec)
    variables = tuple(
        Variable(name=f"{direction}_{spec.column}", categories=states) for direction in ("from", "to")
    )
    return (CountTable(name=_TABLE, variables=variables),)


def block(spec: MarkovChainSpec, _n_is_public: bool) -> Block:
    """Release one count per pair of states; a record is a transition, of which a unit has a few."""
    released = tables(spec)
    shared = counted_tables.block(released, {}, n_is_public=False)
    return Block(
        design=shared.design,
        components=shared.components,
        largest_value=1,
        record_l1=1,
        unit_l1=spec.transitions,
        quantities=shared.quantities,
    )


def project(statistic: NoisyStatistic) -> Floats:
    """Return counts of at least 0, (n_cells, n_probabilities)."""
    return np.maximum(statistic.values.astype(np.float64), 0.0)


def plug_in(statistic: NoisyStatistic, prior: Dirichlet) -> Distribution:
    """Update the prior of the next state given each state, of projected counts."""
    return counted_tables.plug_in_distribution(statistic.plan.parameters.tables, prior, project(statistic))


def noise_aware(statistic: NoisyStatistic, prior: Dirichlet, n_prior: NPrior) -> Distribution:
    """Return the exact posterior of the next state given each state, all counts being latent.

    N is the number of transitions. How often each state is left has a flat prior over the states; that a
    state is entered about as often as it is left is not used.
    """
    from suffice.pipeline.math.distributions.composite import PiecewiseTables, Probabilities
    from suffice.pipeline.math.engines.multinomial.class_counts import StarCounts, star_posterior

    released = statistic.plan.parameters.tables
    states, _ = released[0].shape
    posterior = star_posterior(
        StarCounts(
            features=tuple(counted_tables.noisy_tables(statistic)),
            class_concentration=np.ones(states),
            feature_concentrations=tuple(counted_tables.concentrations(prior, released)),
            n_prior=n_prior,
        )
    )
    positions = np.arange(released[0].size)
    return PiecewiseTables(pieces=((Probabilities(posterior), states + positions, positions),))


def jax_likelihood(
    statistic: NoisyStatistic, n_prior: NPrior, given: Mapping[str, Any], _latent: None
) -> Any:
    """Return the log likelihood of every cell; the states left have a flat prior, as in the posterior."""
    from suffice.pipeline.math.engines.jax_sums import entries, star  # an extra

    noisy = counted_tables.tables_of(statistic)
    probability = entries(given["probability"], len(noisy[0]), noisy[0][0].size)
    return star(noisy, [probability], statistic.plan.scale, n_prior)


def simulate(
    spec: MarkovChainSpec, truth: Floats, sizes: NDArray[np.int64], rng: np.random.Generator
) -> SimulatedSums:
    """Let units walk from states that are equally likely, each its most transitions but for the last unit."""
    states = len(names(spec))
    return transition_counts(truth.reshape(-1, states, states), spec.transitions, sizes, rng)


FAMILY = Family(
    name="markov_chain",
    spec=MarkovChainSpec,
    measure=measure,
    block=block,
    totals=totals,
    parameters=lambda spec: Constants(tables=tables(spec)),
    prior=Dirichlet,
    default_prior=default_prior,
    plug_in=plug_in,
    log_likelihood=categorical.log_likelihood,
    noise_aware=noise_aware,
    simulate=simulate,
    truth=lambda prior, constants, size, rng: counted_tables.truth(prior, constants.tables, size, rng),
    predicts=False,
    of_whole_units=lambda spec: f"of transitions kept: at most {spec.transitions} of each unit",
    n_categories=lambda spec: measure(spec).width,
    tables=tables,
    labels=lambda constants: counted_tables.labels_of(constants.tables),
    interval=HIGHEST_DENSITY,
    parameter_spaces=lambda parameters: counted_tables.probabilities_of(parameters.tables),
    jax_likelihood=jax_likelihood,
    smoothness=of_tables(
        lambda parameters: (parameters.tables[0].shape[-1],), distance="transitions that differ"
    ),
    example=Example(
        entry={"column": "x", "categories": ["a", "b", "c"], "order": "when", "transitions": "5"},
        columns={"x": ColumnType.TEXT, "when": ColumnType.TIME},
    ),
    generative_case=GenerativeCase(
        entry={"column": "x", "categories": ["a", "b"], "order": "when", "transitions": "4"}
    ),
)
