r"""Naive Bayes: a class, and features that are independent given the class.

.. math:: p(y, x) = \pi_y \prod_d \theta_{d y x_d}, \quad T(y, x) = (e_{y x_1}, \dots, e_{y x_D})

One table of (class, feature) for each of D features. The class counts are a margin of every one of them,
and are not released again. Sensitivity in `sensitivity.md`: partition-of-unity or minimal-tables.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from pydantic import AfterValidator, model_validator

from suffice.pipeline.families import categorical
from suffice.pipeline.families.shared import counted_tables
from suffice.pipeline.families.shared.contract import ColumnType, Example, Family, GenerativeCase
from suffice.pipeline.families.shared.counted_tables import ZERO_OR_OTHER, Variables, default_prior, totals
from suffice.pipeline.families.shared.smoothness import of_tables
from suffice.pipeline.math.distributions.dirichlet import Dirichlet, project_simplex
from suffice.pipeline.math.distributions.interval_kinds import HIGHEST_DENSITY
from suffice.pipeline.terms.declaration.fields import StatisticSpec
from suffice.pipeline.terms.statistics.count_table import CountTable
from suffice.pipeline.terms.statistics.sensitivity import Block, Constants, Design, Quantity
from suffice.pipeline.terms.statistics.simulated_sums import table_counts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from suffice.pipeline.families.shared.counted_tables import VariableSpec
    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.measure import TableCounts
    from suffice.pipeline.terms.statistics.simulated_sums import SimulatedSums
    from suffice.typing import Floats


def _one(variables: dict[str, VariableSpec]) -> dict[str, VariableSpec]:
    if len(variables) != 1:
        message = "the outcome is one variable: the class"
        raise ValueError(message)
    return variables


class NaiveBayesSpec(StatisticSpec):
    """The outcome, which is the class, and the features."""

    outcome: Annotated[Variables, AfterValidator(_one)]
    features: Variables

    @model_validator(mode="after")
    def _the_outcome_is_no_feature(self) -> Self:
        for name in self.outcome.keys() & self.features.keys():
            message = f"the outcome {name!r} cannot be a feature too"
            raise ValueError(message)
        return self

    @property
    def variables(self) -> dict[str, VariableSpec]:
        """The outcome, then the features."""
        return {**self.outcome, **self.features}


def _layout(spec: NaiveBayesSpec) -> dict[str, tuple[str, str]]:
    (outcome,) = spec.outcome
    return {feature: (outcome, feature) for feature in spec.features}


def measure(spec: NaiveBayesSpec) -> TableCounts:
    """Count each feature within each class."""
    return counted_tables.measure(spec.variables, list(_layout(spec).values()))


def tables(spec: NaiveBayesSpec) -> tuple[CountTable, ...]:
    """Return one table for each feature."""
    return counted_tables.count_tables(spec.variables, _layout(spec))


def block(spec: NaiveBayesSpec, n_is_public: bool) -> Block:
    """Release the features' tables; class counts are means of their margins, by inverse variance."""
    released = tables(spec)
    precisions = [Fraction(1, table.shape[1]) for table in released]
    weights = [precision / sum(precisions) for precision in precisions]
    ends = list(accumulate((table.size for table in released), initial=0))
    classes = outcome_table(released)
    quantities = tuple(
        Quantity(
            name="count",
            labels=label,
            coefficients={
                start + index * table.shape[1] + position: weight
                for table, weight, start in zip(released, weights, ends, strict=False)
                for position in range(table.shape[1])
            },
        )
        for index, label in enumerate(classes.labels())
    )
    return counted_tables.block(released, spec.variables, n_is_public=n_is_public, derived=quantities)


def outcome_table(released: tuple[CountTable, ...]) -> CountTable:
    """Return the table of class counts, which every released table has as its margin."""
    outcome = released[0].variables[0]
    return CountTable(name=outcome.name, variables=(outcome,))


def parameters(spec: NaiveBayesSpec) -> Constants:
    """Return the released tables."""
    return Constants(tables=tables(spec))


def estimated_tables(constants: Constants) -> tuple[CountTable, ...]:
    """Return the tables of probabilities: of the class, then of each feature given the class."""
    return (outcome_table(constants.tables), *constants.tables)


def project(statistic: NoisyStatistic) -> Floats:
    """Return possible counts (n_cells, n_probabilities): of classes, then of every feature by class.

    Class counts are means of the tables' margins by inverse variance, at least 0 or with sum N where that is
    public; each row of a table is the nearest one whose sum is its class count.
    """
    counts = counted_tables.tables_of(statistic)
    precisions = np.array([1.0 / table.shape[2] for table in counts])
    margins = np.stack([table.sum(axis=2) for table in counts])
    classes = np.tensordot(precisions / precisions.sum(), margins, axes=1)
    if statistic.plan.design is Design.MINIMAL:
        classes = project_simplex(classes, float(statistic.known_n))
    classes = np.maximum(classes, 0.0)
    rows = [project_simplex(table.reshape(-1, table.shape[2]), classes.reshape(-1, 1)) for table in counts]
    return np.concatenate([classes, *(row.reshape(len(classes), -1) for row in rows)], axis=1)


def plug_in(statistic: NoisyStatistic, prior: Dirichlet) -> Distribution:
    """Update the priors of the class and of each feature given the class, of projected counts."""
    estimated = estimated_tables(statistic.plan.parameters)
    return counted_tables.plug_in_distribution(estimated, prior, project(statistic))


def noise_aware(statistic: NoisyStatistic, prior: Dirichlet, n_prior: NPrior) -> Distribution:
    """Return the exact posterior: all tables are latent, and their margins are the same class counts."""
    from suffice.pipeline.math.distributions.composite import PiecewiseTables, Probabilities
    from suffice.pipeline.math.engines.multinomial.class_counts import StarCounts, star_posterior

    of_class, *of_features = counted_tables.concentrations(prior, estimated_tables(statistic.plan.parameters))
    posterior = star_posterior(
        StarCounts(
            features=tuple(counted_tables.noisy_tables(statistic)),
            class_concentration=of_class[0],
            feature_concentrations=tuple(of_features),
            n_prior=n_prior,
        )
    )
    everything = np.arange(posterior.mean.shape[1])
    return PiecewiseTables(pieces=((Probabilities(posterior), everything, everything),))


def jax_likelihood(
    statistic: NoisyStatistic, n_prior: NPrior, given: Mapping[str, Any], _latent: None
) -> Any:
    """Return the log likelihood of every cell, all tables with the same class counts as a margin."""
    import jax.numpy as jnp  # an extra

    from suffice.pipeline.math.engines.jax_sums import entries, star  # an extra

    sizes = [table.size for table in estimated_tables(statistic.plan.parameters)]
    probability = entries(given["probability"], len(statistic.values), sum(sizes))
    of_class, *of_features = jnp.split(probability, np.cumsum(sizes)[:-1], axis=1)
    noisy = counted_tables.tables_of(statistic)
    return star(noisy, of_features, statistic.plan.scale, n_prior, of_class=of_class)


def simulate(
    spec: NaiveBayesSpec, truth: Floats, sizes: NDArray[np.int64], rng: np.random.Generator
) -> SimulatedSums:
    """Draw rows, each variable given its parents, and count them in every table."""
    return table_counts(estimated_tables(parameters(spec)), tables(spec), truth, sizes, rng)


FAMILY = Family(
    name="naive_bayes",
    spec=NaiveBayesSpec,
    measure=measure,
    block=block,
    totals=totals,
    parameters=parameters,
    prior=Dirichlet,
    default_prior=default_prior,
    plug_in=plug_in,
    log_likelihood=categorical.log_likelihood,
    noise_aware=noise_aware,
    simulate=simulate,
    truth=lambda prior, constants, size, rng: counted_tables.truth(
        prior, estimated_tables(constants), size, rng
    ),
    n_categories=lambda spec: measure(spec).width,
    tables=tables,
    labels=lambda constants: counted_tables.labels_of(estimated_tables(constants)),
    interval=HIGHEST_DENSITY,
    parameter_spaces=lambda parameters: counted_tables.probabilities_of(estimated_tables(parameters)),
    jax_likelihood=jax_likelihood,
    smoothness=of_tables(lambda parameters: [table.shape[-1] for table in estimated_tables(parameters)]),
    example=Example(
        entry={"outcome": {"y": ["0", "1"]}, "features": {"a": ["0", "1", "2"], "b": ["0", "1"]}},
        columns={"y": ColumnType.TEXT, "a": ColumnType.TEXT, "b": ColumnType.TEXT},
    ),
    generative_case=GenerativeCase(
        entry={"outcome": {"y": ZERO_OR_OTHER}, "features": {"a": ZERO_OR_OTHER, "b": ZERO_OR_OTHER}}
    ),
)
