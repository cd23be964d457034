r"""Histogram: the rows in each of several public bins of a numeric column.

.. math:: T(x) = e_{b(x)}, \quad b(x) \text{ the bin that } \min(\max(x, l), u) \text{ lies in}

A value beyond `lower` or `upper` counts in the bin at that end, so that every number counts.
Sensitivity in `sensitivity.md`: partition-of-unity, with bins; one-row-a-unit. Where it has a sample no count
is released, but draws of the bin that a quantile is in: quantile-range.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import model_validator

from suffice.errors import UsageError
from suffice.pipeline.families.shared import chosen_bins, contract
from suffice.pipeline.families.shared.parameter_space import SampledQuantile, probabilities
from suffice.pipeline.families.shared.smoothness import of_tables
from suffice.pipeline.math.distributions.dirichlet import DirichletDistribution
from suffice.pipeline.math.priors.bin_walk import BinWalk
from suffice.pipeline.terms.declaration import fields
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics.histogram_bins import HistogramBins
from suffice.pipeline.terms.statistics.lattice import require_interval
from suffice.pipeline.terms.statistics.measure import BinColumn, CodeCounts
from suffice.pipeline.terms.statistics.sensitivity import Block, Constants, Design, Quantity
from suffice.pipeline.terms.statistics.simulated_sums import code_counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


class HistogramSpec(fields.QuantileColumnSpec):
    """A numeric column clipped to ``lower..upper``, counted in public bins; null and NaN as `nulls` says."""

    lower: fields.Bound
    upper: fields.Bound
    bins: chosen_bins.EdgesField
    atoms: chosen_bins.AtomsField = ()
    nulls: fields.NullsField = fields.Nulls()

    @model_validator(mode="after")
    def _bins_are_bins(self) -> Self:
        require_interval(self.lower, self.upper)
        HistogramBins(edges=self.bins, atoms=self.atoms)
        return self


def bins_of(spec: HistogramSpec) -> HistogramBins:
    """Return the bins of an entry."""
    return HistogramBins(edges=spec.bins, atoms=spec.atoms)


def measure(spec: HistogramSpec) -> CodeCounts:
    """Count each bin."""
    return CodeCounts(of=BinColumn.of(spec.column, bins_of(spec), spec.nulls.value))


def block(spec: HistogramSpec, _n_is_public: bool) -> Block:
    """Release one count per bin; the number of records follows from them."""
    labels = bins_of(spec).labels
    return Block(
        design=Design.PARTITION_OF_UNITY,
        components=labels,
        largest_value=1,
        record_l1=1,
        quantities=(
            Quantity(name="n", coefficients=dict.fromkeys(range(len(labels)), Fraction(1))),
            *(
                Quantity(name="count", category=label, coefficients={position: Fraction(1)})
                for position, label in enumerate(labels)
            ),
        ),
    )


def totals(_spec: HistogramSpec, _design: Design, sums: NDArray[Any]) -> NDArray[Any]:
    """Take every count."""
    return sums


def parameters(spec: HistogramSpec) -> Constants:
    """Return the bins, what they are called, and the bounds."""
    bins = bins_of(spec)
    return Constants(categories=bins.labels, lower=spec.lower, upper=spec.upper, bins=bins)


def default_prior(_parameters: Constants) -> BinWalk:
    """Return the walk whose steps are weighed by their evidence."""
    return BinWalk(0.05, 0.1, 0.2, 0.4, 0.8)


def project(statistic: NoisyStatistic) -> Floats:
    """Return counts of at least 0."""
    return np.maximum(statistic.values.astype(np.float64), 0.0)


def plug_in(statistic: NoisyStatistic, _prior: BinWalk) -> Distribution:
    r"""Return :math:`\mathrm{Dirichlet}(1 / K + n)` of K projected counts, as though bins had no order."""
    counts = project(statistic)
    return DirichletDistribution(concentration=counts + 1.0 / counts.shape[1])


def log_likelihood(probability: Floats, counts: Floats, _parameters: Constants) -> Floats:
    r"""Return :math:`\sum_j n_j \log p_j`, over the last axis."""
    from scipy.special import xlogy

    likelihood: Floats = np.sum(xlogy(counts, probability), axis=-1)
    return likelihood


def noise_aware(statistic: NoisyStatistic, prior: BinWalk, n_prior: NPrior) -> Distribution:
    """Return the posterior of the walk behind the noise; N follows from the bins."""
    from suffice.pipeline.math.engines.histogram.histogram_posterior import (
        histogram_posterior,  # consumers only
    )

    bins = _bins(statistic.plan.parameters)
    posterior = histogram_posterior(NoisyTotals.of(statistic), bins, n_prior, noises=statistic.cells_summed)
    return replace(posterior, steps=prior.step)


def disjoint(
    statistics: Sequence[NoisyStatistic], prior: BinWalk, n_priors: Sequence[NPrior]
) -> Distribution:
    """Return the posterior of the law that records of disjoint data come from, all of them together.

    Counts of a bin add up to a Poisson count, and its noises to a sum of as many. So nothing is assumed of
    how data sets differ, in size or in law.

    Raises
    ------
    UsageError
        Where noise of the data sets has several scales.
    """
    first = statistics[0]
    if len({statistic.plan.scale for statistic in statistics}) > 1:
        message = (
            f"{first.plan.name}: histograms of disjoint data are added up where all have noise of one scale: "
            "pool releases of equal epsilon and share"
        )
        raise UsageError(message)
    values = np.sum([statistic.values for statistic in statistics], axis=0, dtype=object)
    cells = sum(statistic.cells_summed for statistic in statistics)
    return noise_aware(replace(first, values=values, cells_summed=cells), prior, n_priors[0])


def truth(prior: BinWalk, parameters: Constants, size: int, rng: np.random.Generator) -> Floats:
    """Draw shares of the bins, (size, n_bins), some bin having records; means span ten logarithms."""
    from suffice.pipeline.math.engines.histogram.walk_shares import walk_shares  # consumers only

    return walk_shares(_bins(parameters), prior.step, size, rng)


def jax_likelihood(
    statistic: NoisyStatistic, n_prior: NPrior, given: Mapping[str, Any], _latent: None
) -> Any:
    """Return the log likelihood of every cell given the shares of bins: all counts are summed."""
    from suffice.pipeline.math.engines.jax_sums import vector  # an extra

    values, scale = statistic.values.astype(np.float64), statistic.plan.scale
    return vector(values, given["probability"], np.full(values.shape[1], 1.0 / scale), scale, n_prior)


def _bins(parameters: Constants) -> HistogramBins:
    if parameters.bins is None:
        message = "a histogram has bins"
        raise ValueError(message)
    return parameters.bins


FAMILY = contract.Family(
    name="histogram",
    spec=HistogramSpec,
    measure=measure,
    block=block,
    totals=totals,
    parameters=parameters,
    prior=BinWalk,
    default_prior=default_prior,
    plug_in=plug_in,
    log_likelihood=log_likelihood,
    noise_aware=noise_aware,
    disjoint=disjoint,
    adds_up=True,
    simulate=lambda _spec, truth, sizes, rng: code_counts(sizes, truth, rng),
    of_units=contract.ONE_ROW_A_UNIT,
    sampled_quantile=SampledQuantile(totals=lambda _entry, sums: sums),
    truth=truth,
    n_categories=lambda spec: len(bins_of(spec)),
    labels=lambda parameters: {"category": parameters.categories},
    parameter_spaces=lambda parameters: probabilities(len(parameters.categories)),
    jax_likelihood=jax_likelihood,
    smoothness=of_tables(lambda parameters: (len(parameters.categories),)),
    example=contract.Example(
        entry={"column": "x", "lower": "-10", "upper": "10", "bins": 4, "atoms": ["0"]},
        columns={"x": contract.ColumnType.NUMBER},
    ),
    generative_case=contract.GenerativeCase(
        entry={"column": "x", "lower": "0", "upper": "8", "bins": 4, "nulls": {"value": "0"}}
    ),
)
