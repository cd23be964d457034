r"""What parameters of a family may be: names, shapes and ranges; and the one whose posterior can be sampled.

Its likelihood is in exact numbers:

.. math:: \log p(x \mid \theta) = \eta(\theta) \, T(x) - A(\theta) + \text{what does not depend on } \theta
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from suffice.pipeline.terms.statistics.sample_plan import ScoreTables, logarithm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.sensitivity import Constants


class Support(StrEnum):
    """Where a parameter's numbers may lie."""

    REAL = "real"
    POSITIVE = "positive"
    PROBABILITY = "probability"

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the range; infinite where there is none."""
        low = -math.inf if self is Support.REAL else 0.0
        return low, 1.0 if self is Support.PROBABILITY else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterSpace:
    """One parameter of a cell.

    Parameters
    ----------
    name : str
    support : Support
        Of each of its numbers.
    shape : tuple of int
        Of its numbers in one cell; empty for a single one.
    starts : tuple of int
        Where the distributions begin that the last axis is made up of, each with the sum 1; empty where its
        numbers are no distributions.
    """

    name: str
    support: Support = Support.REAL
    shape: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()


def probabilities(size: int, starts: tuple[int, ...] = (0,)) -> tuple[ParameterSpace]:
    """Return the space of the ``probability`` of a family of counts: distributions one after the other."""
    return (ParameterSpace(name="probability", support=Support.PROBABILITY, shape=(size,), starts=starts),)


Natural: TypeAlias = (
    "Callable[[Fraction, Callable[[Fraction], Fraction], Constants], tuple[Fraction, Fraction]]"
)
"""The parameter inside of its support, the logarithm to use, the constants -> eta and A, of one record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledParameter:
    """What a family with one parameter says of it, for posteriors on a grid.

    Parameters
    ----------
    natural : callable
        The parameter, a logarithm, the constants -> the natural parameter and the log normaliser of a record.
    totals : callable
        The spec's entry, exact sums (n_cells, n_sums), Python integers -> the records of each cell, and their
        sum of T from its lower bound in lattice units, (n_cells, 2), Python integers.
    """

    natural: Natural
    totals: Callable[[Any, NDArray[Any]], NDArray[Any]]

    def tables(self, points: Sequence[Fraction], parameters: Constants, width: int) -> ScoreTables:
        """Return the tables of a grid.

        Parameters
        ----------
        points : sequence of Fraction
            Inside of the parameter's support.
        parameters : Constants
            T is in 0..1 where they state no bounds.
        width : int
            Lattice units between T's bounds.
        """
        lower = Fraction(0) if parameters.lower is None else parameters.lower
        upper = Fraction(1) if parameters.upper is None else parameters.upper
        natural = (self.natural(point, logarithm, parameters) for point in points)
        return ScoreTables.of(natural, lower, upper, width)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledQuantile:
    """What a family says of it that counts ordered bins, for draws of the bin that a quantile is in.

    Parameters
    ----------
    totals : callable
        The spec's entry, exact sums (n_cells, n_sums), Python integers -> the records in each bin, in order,
        (n_cells, n_bins), Python integers.
    """

    totals: Callable[[Any, NDArray[Any]], NDArray[Any]]
