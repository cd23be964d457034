r"""Histogram: the rows in each of several public bins of a numeric column.

.. math:: T(x) = e_{b(x)}, \quad b(x) \text{ the bin that } \min(\max(x, l), u) \text{ lies in}

A value beyond `lower` or `upper` counts in the bin at that end, so that every number counts.
Sensitivity in `sensitivity.md`: partition-of-unity, with bins; one-row-a-unit.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from pydantic import model_validator

from suffice.pipeline.families import categorical
from suffice.pipeline.families.shared import contract
from suffice.pipeline.families.shared.chosen_bins import AtomsField, EdgesField
from suffice.pipeline.families.shared.parameter_space import probabilities
from suffice.pipeline.families.shared.smoothness import of_tables
from suffice.pipeline.math.distributions.dirichlet import Dirichlet
from suffice.pipeline.math.distributions.intervals import HIGHEST_DENSITY
from suffice.pipeline.terms.declaration import fields
from suffice.pipeline.terms.statistics.histogram_bins import HistogramBins
from suffice.pipeline.terms.statistics.lattice import require_interval
from suffice.pipeline.terms.statistics.measure import BinColumn, CodeCounts
from suffice.pipeline.terms.statistics.sensitivity import Block, Constants, Design, Quantity
from suffice.pipeline.terms.statistics.simulated_sums import code_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray


class HistogramSpec(fields.ColumnSpec):
    """A numeric column clipped to ``lower..upper``, counted in public bins; null and NaN as `nulls` says."""

    lower: fields.Bound
    upper: fields.Bound
    bins: EdgesField
    atoms: AtomsField = ()
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


def default_prior(parameters: Constants) -> Dirichlet:
    """Return a prior that counts for one record in all."""
    return Dirichlet(1 / len(parameters.categories))


FAMILY = contract.Family(
    name="histogram",
    spec=HistogramSpec,
    measure=measure,
    block=block,
    totals=totals,
    parameters=parameters,
    prior=Dirichlet,
    default_prior=default_prior,
    plug_in=categorical.plug_in,
    log_likelihood=categorical.log_likelihood,
    noise_aware=categorical.noise_aware,
    simulate=lambda _spec, truth, sizes, rng: code_counts(sizes, truth, rng),
    takes_mixtures=True,
    of_units=contract.ONE_ROW_A_UNIT,
    truth=lambda prior, parameters, size, rng: prior.sample(size, rng, len(parameters.categories)),
    n_categories=lambda spec: len(bins_of(spec)),
    labels=lambda parameters: {"category": parameters.categories},
    interval=HIGHEST_DENSITY,
    parameter_spaces=lambda parameters: probabilities(len(parameters.categories)),
    jax_likelihood=categorical.jax_likelihood,
    smoothness=of_tables(lambda parameters: (len(parameters.categories),)),
    example=contract.Example(
        entry={"column": "x", "lower": "-10", "upper": "10", "bins": 4, "atoms": ["0"]},
        columns={"x": contract.ColumnType.NUMBER},
    ),
    generative_case=contract.GenerativeCase(
        entry={"column": "x", "lower": "0", "upper": "8", "bins": 4, "nulls": {"value": "0"}}
    ),
)
