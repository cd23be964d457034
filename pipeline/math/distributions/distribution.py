r"""What every distribution of parameters answers, and what conjugate ones answer besides.

Every distribution answers for all cells at once. ``quantiles`` has the quantiles along a last axis of its
own.

A conjugate distribution has a density :math:`\exp(\eta \cdot T(\theta)) / Z(\eta)`. Updating it with data
adds their statistics to :math:`\eta`, so given several disjoint data sets

.. math:: p(\theta \mid S_1, \dots, S_R) \text{ has } \eta = \eta_1 + \dots + \eta_R - (R - 1) \eta_0,

with :math:`\eta_0` of the prior and :math:`\eta_r` of the posterior given the r-th alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.typing import Floats, Rows


class Distribution(Protocol):
    """What a posterior needs of the distribution of its parameters."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters' names."""

    def mean(self, parameter: str) -> Floats:
        """Means, (n_cells,) or (n_cells, n_categories)."""

    def sd(self, parameter: str) -> Floats:
        """Standard deviations, shaped as the means."""

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Marginal quantiles, shaped as the means with len(q) as a last axis."""

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Marginal densities at points that are shaped as the means with the points as a last axis.

        Shaped as the points; None where the parameter's density is not known, but only draws of it.
        """

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws, each shaped as the means with draws as a first axis."""


class DistributionOfCells(Distribution, Protocol):
    """A distribution of which some cells can be taken."""

    def at(self, cells: slice | Rows) -> Self:
        """Return the distribution of some cells."""


class ConjugateDistribution(DistributionOfCells, Protocol):
    """A distribution that updates turn into others of its kind."""

    def natural(self) -> Floats:
        """Return the natural parameters, (n_cells, n_natural)."""

    def from_natural(self, eta: Floats) -> Self:
        """Return the distribution of the same kind and names with these natural parameters."""

    def log_normaliser(self) -> Floats:
        r"""Return :math:`\log Z(\eta)` up to a constant, of every cell."""


class MixtureOfConjugates(Distribution, Protocol):
    """A distribution that is a mixture of conjugate ones, one for every value of latent statistics."""

    def prior_distribution(self) -> ConjugateDistribution:
        """The prior, as the distribution of one cell."""

    def mixture(self, draws: int, rng: np.random.Generator) -> ConjugateDistribution:
        """One conjugate distribution per draw of the latent statistics, draw by draw, then by cell."""


@runtime_checkable
class Labelled(Protocol):
    """A distribution some of whose parameters have a last axis of named entries."""

    @property
    def components(self) -> Mapping[str, tuple[str, ...]]:
        """The entries' names, by parameter."""


@dataclass(frozen=True, slots=True)
class OfCells:
    """A distribution all arrays of which have the cells first."""

    def at(self, cells: slice | Rows) -> Self:
        """Return the distribution of some cells."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        taken = {name: column[cells] for name, column in columns.items() if isinstance(column, np.ndarray)}
        return replace(self, **taken)


def moment_above(least: float, freedom: Floats, numerator: Floats, denominator: Floats) -> Floats:
    """Return a moment where there are enough degrees of freedom that it exists; infinity elsewhere."""
    exists = np.broadcast_to(freedom > least, np.broadcast_shapes(numerator.shape, denominator.shape))
    moment: Floats = np.divide(numerator, denominator, out=np.full(exists.shape, np.inf), where=exists)
    return moment
