r"""Categorical: a column of declared categories.

.. math:: p(x \mid p) = p_x, \quad T(x) = e_x

Sensitivity in `sensitivity.md`: partition-of-unity or minimal-counts; one-row-a-unit.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import model_validator

from suffice.pipeline.families.shared import contract
from suffice.pipeline.families.shared.counted_tables import code_column, names, require_one_other
from suffice.pipeline.families.shared.parameter_space import probabilities
from suffice.pipeline.families.shared.smoothness import of_tables
from suffice.pipeline.math.distributions.dirichlet import Dirichlet, DirichletDistribution, project_simplex
from suffice.pipeline.math.distributions.interval_kinds import HIGHEST_DENSITY
from suffice.pipeline.terms.declaration.fields import Boolean, ColumnSpec, DomainField
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics import l2_sensitivity
from suffice.pipeline.terms.statistics.measure import CodeCounts
from suffice.pipeline.terms.statistics.sensitivity import Block, Constants, Design, Quantity, minimal_counts
from suffice.pipeline.terms.statistics.simulated_sums import code_counts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


class CategoricalSpec(ColumnSpec):
    """A column of declared categories; null and unlisted values go to `other` if declared."""

    categories: DomainField
    other: Boolean = False

    @model_validator(mode="after")
    def _other_is_one_category(self) -> Self:
        require_one_other(self)
        return self


def measure(spec: CategoricalSpec) -> CodeCounts:
    """Count each category."""
    return CodeCounts(of=code_column(spec))


def block(spec: CategoricalSpec, n_is_public: bool) -> Block:
    """Release one count per category; beside a public N where every physical row is counted."""
    categories = names(spec)
    quantities = tuple(
        Quantity(name="count", category=category, coefficients={position: Fraction(1)})
        for position, category in enumerate(categories)
    )
    if n_is_public and spec.other:
        return Block(
            design=Design.MINIMAL,
            components=categories,
            largest_value=1,
            minimal_sensitivity=minimal_counts(),
            minimal_l2_squared=l2_sensitivity.minimal_tables(1),
            quantities=quantities,
        )
    return Block(
        design=Design.PARTITION_OF_UNITY,
        components=categories,
        largest_value=1,
        record_l1=1,
        quantities=quantities,
    )


def totals(_spec: CategoricalSpec, _design: Design, sums: NDArray[Any]) -> NDArray[Any]:
    """Take every count."""
    return sums


def parameters(spec: CategoricalSpec) -> Constants:
    """Return the categories."""
    return Constants(categories=names(spec))


def labels(parameters: Constants) -> dict[str, tuple[str, ...]]:
    """Call the entries of the probability by their category."""
    return {"category": parameters.categories}


def default_prior(_parameters: Constants) -> Dirichlet:
    """Return the uniform prior."""
    return Dirichlet(1)


def project(statistic: NoisyStatistic) -> Floats:
    """Return counts (n_cells, n_categories): nearest with sum N where N is public, else at least 0."""
    values = statistic.values.astype(np.float64)
    if statistic.plan.design is not Design.MINIMAL:
        return np.maximum(values, 0.0)
    return project_simplex(values, float(statistic.known_n))


def plug_in(statistic: NoisyStatistic, prior: Dirichlet) -> Distribution:
    r"""Update the prior: :math:`\mathrm{Dirichlet}(c + n)`, of projected counts."""
    return DirichletDistribution(concentration=_concentration(statistic, prior) + project(statistic))


def log_likelihood(probability: Floats, counts: Floats, _parameters: Constants) -> Floats:
    r"""Return :math:`\sum_k c_k \log p_k`, over the last axis."""
    from scipy.special import xlogy

    likelihood: Floats = np.sum(xlogy(counts, probability), axis=-1)
    return likelihood


def noise_aware(statistic: NoisyStatistic, prior: Dirichlet, n_prior: NPrior) -> Distribution:
    """Return the exact posterior: the counts are latent, N with its own prior."""
    from suffice.pipeline.math.engines.multinomial.count_posterior import (
        CountsDistribution,
        count_posterior,  # consumers only
    )
    from suffice.pipeline.math.engines.multinomial.noisy_counts import NoisyCounts

    counts = NoisyCounts.of(
        NoisyTotals.of(statistic), concentration=_concentration(statistic, prior), n_prior=n_prior
    )
    return CountsDistribution(posterior=count_posterior(counts))


def jax_likelihood(
    statistic: NoisyStatistic, n_prior: NPrior, given: Mapping[str, Any], _latent: None
) -> Any:
    """Return the log likelihood of every cell: all counts are summed."""
    from suffice.pipeline.math.engines.jax_sums import vector  # an extra

    values, scale = statistic.values.astype(np.float64), statistic.plan.scale
    return vector(values, given["probability"], np.full(values.shape[1], 1.0 / scale), scale, n_prior)


def _concentration(statistic: NoisyStatistic, prior: Dirichlet) -> Floats:
    given = np.array(prior.concentration, dtype=np.float64)
    return np.broadcast_to(given, (len(statistic.plan.components),)).copy()


FAMILY = contract.Family(
    name="categorical",
    spec=CategoricalSpec,
    measure=measure,
    block=block,
    totals=totals,
    parameters=parameters,
    prior=Dirichlet,
    default_prior=default_prior,
    plug_in=plug_in,
    log_likelihood=log_likelihood,
    noise_aware=noise_aware,
    simulate=lambda _spec, truth, sizes, rng: code_counts(sizes, truth, rng),
    takes_mixtures=True,
    of_units=contract.ONE_ROW_A_UNIT,
    truth=lambda prior, parameters, size, rng: prior.sample(size, rng, len(parameters.categories)),
    n_categories=lambda spec: len(spec.categories),
    labels=labels,
    interval=HIGHEST_DENSITY,
    parameter_spaces=lambda parameters: probabilities(len(parameters.categories)),
    jax_likelihood=jax_likelihood,
    smoothness=of_tables(lambda parameters: (len(parameters.categories),)),
    example=contract.Example(
        entry={"column": "x", "categories": ["a", "b"], "other": "true"},
        columns={"x": contract.ColumnType.TEXT},
    ),
    generative_case=contract.GenerativeCase(
        entry={"column": "x", "categories": ["a", "b", "c", "d"], "other": "true"}
    ),
)
