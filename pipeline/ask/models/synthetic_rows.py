r"""Rows that nobody gave: draws from the posterior predictive distribution of a joint model of categories.

.. math::
    \theta_i \sim p(\theta \mid y), \qquad x_{i1}, \ldots, x_{iN} \mid \theta_i \sim p(x \mid \theta_i),
    \qquad i = 1, \ldots, M

Set i, an imputation, is of one posterior draw: what differs between sets is what the release leaves open, its
noise among it. One set alone says nothing of that, and is not to be analysed alone; ``combine_imputations``
takes an analysis of each. A set follows a model: what the model leaves out, as interactions of three
variables in a field of pairs, is in no set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.math.engines.elimination import Factor, drawn_rows
from suffice.pipeline.math.parameters import arguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.count_table import Variable
    from suffice.typing import Counts

IMPUTATIONS = 20
IMPUTATION = "imputation"
"""The column that says which set a row is of."""
MOST_ENTRIES = 100_000_000
"""Of all sets: rows times variables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticRows:
    """Synthetic data sets, one of each of several posterior draws; made by ``synthesize`` of a model.

    Attributes
    ----------
    variables : dict of str to Variable
        With their categories.
    codes : dict of str to ndarray of shape (imputations, rows), int64
        The number of the category of each row, of each variable.
    """

    variables: Mapping[str, Variable]
    codes: Mapping[str, Counts] = field(repr=False)

    @property
    def imputations(self) -> int:
        """The number of data sets."""
        return len(next(iter(self.codes.values())))

    @property
    def rows(self) -> int:
        """The number of rows of each."""
        return len(next(iter(self.codes.values()))[0])

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return all sets as one table: which set a row is of, from 1, and the categories as texts."""
        number = np.repeat(np.arange(1, self.imputations + 1), self.rows)
        texts = {
            name: np.array(variable.categories, dtype=object)[self.codes[name].ravel()]
            for name, variable in self.variables.items()
        }
        return {IMPUTATION: number, **texts}


def synthetic_rows(
    variables: Mapping[str, Variable],
    factors: Sequence[Factor],
    *,
    rows: int,
    imputations: int,
    independent: float,
    rng: np.random.Generator | int | None,
) -> SyntheticRows:
    """Draw sets of rows from the law that the product of factors, of one cell, is proportional to.

    Parameters
    ----------
    variables : mapping of str to Variable
    factors : sequence of Factor
        Each of all posterior draws.
    rows, imputations : int
    independent : float
        What the posterior draws are worth.
    rng : numpy.random.Generator or int, optional

    Raises
    ------
    UsageError
        Where a number is none, all would be too many, or draws are too few.
    """
    source = arguments.generator(rng)
    for name, number, least in (("rows", rows, 1), ("imputations", imputations, 2)):
        if not arguments.is_integer(number, least):
            message = f"{name} must be an integer of at least {least}, not {number!r}"
            raise UsageError(message)
    if IMPUTATION in variables:
        message = f"a variable is called {IMPUTATION!r}, which names the set that a row is of"
        raise UsageError(message)
    if rows * imputations * len(variables) > MOST_ENTRIES:
        message = (
            f"{imputations} imputations of {rows} rows of {len(variables)} variables are more than "
            f"{MOST_ENTRIES} entries: ask for fewer"
        )
        raise UsageError(message)
    if imputations > independent:
        message = (
            f"{imputations} imputations take as many independent posterior draws, and there are "
            f"{independent:.0f}: ask for more draws, or fewer imputations"
        )
        raise UsageError(message)
    draws = len(factors[0].values)
    # Evenly apart, from a random place: neighbours of a chain are alike.
    chosen = (source.integers(draws) + np.arange(imputations) * draws // imputations) % draws
    taken = [Factor(variables=factor.variables, values=factor.values[chosen]) for factor in factors]
    drawn = drawn_rows(taken, rows, source)
    return SyntheticRows(variables=variables, codes={name: drawn[name] for name in variables})
