r"""A regression over a release: what to expect of new rows, with credible and predictive intervals.

.. math::
    y = \beta_0 + x^\top \beta + \sigma \varepsilon, \qquad \varepsilon \sim N(0, 1), \qquad
    (\beta, \sigma^2) \sim p(\beta, \sigma^2 \mid D)

The questions are, of a row x, what its outcome is expected to be, :math:`\beta_0 + x^\top \beta`, and what it
will be, y. Both are answered by posterior draws: the one by the draws of the expectation, the other by these
and an epsilon for each. Those epsilons are the middles of as many equally likely parts of the normal
distribution, in random order, so that their error is that of the draws of the parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import ndtri

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.posterior_terms import lists_terms
from suffice.pipeline.ask.models.rows_and_draws import NO_CELL, columns_of, require_family, row_cells
from suffice.pipeline.math.parameters import arguments, parameter_posterior
from suffice.pipeline.math.parameters.contrasts import finite
from suffice.pipeline.terms.declaration.documents import Count

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.inference.posterior_terms import FurtherTerms
    from suffice.pipeline.ask.models.rows_and_draws import RowCells
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.statistics.sensitivity import ColumnBounds
    from suffice.typing import Cells, Floats, Mask


PredictedCounts: TypeAlias = dict[
    Literal["rows", "predicted", "extrapolated", "incomplete", "of_no_cell"], Count
]
FAMILY = "linear_regression"
_NUMBERS = 4_000_000
"""Draws of expectations that are held at once."""


def numbers_of(name: str, column: pa.Array) -> Floats:
    """Return a numeric column, (n_rows,); not a number where a value is missing or infinite."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    ):
        message = f"the column {name!r} must hold numbers, and is of type {kind}"
        raise UsageError(message)
    if pa.types.is_boolean(kind):
        column = pc.cast(column, pa.uint8())
    numbers = pc.cast(column, pa.float64(), safe=False)
    values = np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a regression says of rows; every array of shape (n_rows,), in the outcome's unit.

    Rows without a prediction have no number: a predictor is missing, or their keys are of no cell.

    Attributes
    ----------
    cell : ndarray, int64
        The selected cell that a row lies in; -1 where it lies in none.
    mean : ndarray, float64
        Posterior mean of the expected outcome.
    lower, upper : ndarray, float64
        Ends of the credible interval of the expected outcome.
    predictive_lower, predictive_upper : ndarray, float64
        Ends of the predictive interval, of the outcome of one new row.
    is_extrapolated : ndarray, bool
        Whether a prediction is for a predictor beyond its public bounds. The release clipped such rows to
        the bounds, so nothing beyond them was seen: the line is carried on.
    groups : dict of str to list
        The key of each cell, by group column.
    """

    cell: Cells = field(repr=False)
    mean: Floats = field(repr=False)
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    predictive_lower: Floats = field(repr=False)
    predictive_upper: Floats = field(repr=False)
    is_extrapolated: Mask = field(repr=False)
    groups: Mapping[str, list[str | int]] = field(repr=False)

    @property
    def counts(self) -> PredictedCounts:
        """How many rows there are, and how many are predicted, extrapolated, incomplete, and of no cell."""
        of_a_cell, is_predicted = self.cell != NO_CELL, ~np.isnan(self.mean)
        return {
            "rows": len(self.mean),
            "predicted": int(np.sum(is_predicted)),
            "extrapolated": int(np.sum(self.is_extrapolated)),
            "incomplete": int(np.sum(of_a_cell & ~is_predicted)),
            "of_no_cell": int(np.sum(~of_a_cell)),
        }

    def columns(self) -> dict[str, Any]:
        """Return columns of a table: row (from 0), the keys of its cell, and the predictions."""
        keys = {
            column: [None if cell == NO_CELL else values[cell] for cell in self.cell.tolist()]
            for column, values in self.groups.items()
        }
        return {
            "row": np.arange(len(self.mean)),
            **keys,
            "mean": self.mean,
            "lower": self.lower,
            "upper": self.upper,
            "predictive_lower": self.predictive_lower,
            "predictive_upper": self.predictive_upper,
            "is_extrapolated": self.is_extrapolated,
        }

    def rows(self, most: int | None = None) -> list[dict[str, Any]]:
        """Return the columns row by row, the first `most` of them; None for what is no number."""
        columns = {name: values[:most] for name, values in self.columns().items()}
        rows = zip(*columns.values(), strict=True)
        return [{name: _plain(value) for name, value in zip(columns, row, strict=True)} for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """Regressions, one in every selected cell; made by ``regression``.

    Attributes
    ----------
    posterior : Posterior
        Of coefficients, intercept and variance.
    bounds : tuple of ColumnBounds
        Public bounds of the predictors, to which the release clipped them; in declared order.
    outcome : ColumnBounds
        Name and public bounds of the outcome.
    draws : dict of str to ndarray
        Draws of the parameters, as ``Posterior.sample`` returns them.
    noise : ndarray of shape (n_draws,), float64
        A standard normal number for each draw, by which a row departs from what is expected of it: the
        middles of as many equally likely parts, in random order.
    cells : RowCells
        Where rows lie among the cells.
    """

    posterior: Posterior = field(repr=False)
    bounds: tuple[ColumnBounds, ...]
    outcome: ColumnBounds
    draws: Mapping[str, Floats] = field(repr=False)
    noise: Floats = field(repr=False)
    cells: RowCells = field(repr=False)

    def predict(self, rows: object, mass: float = parameter_posterior.MASS) -> Prediction:
        """Predict the outcome of rows. Costs no privacy.

        Predictors enter as they are, also beyond the public bounds; ``is_extrapolated`` says where.
        Predictions are of the outcome before clipping.

        Parameters
        ----------
        rows : mapping of str to array, or table
            Predictors in their own units, and group columns, where cells differ in them; other columns are
            not looked at. A null, or what is not finite, is missing.
        mass : float
            Of both intervals.

        Raises
        ------
        UsageError
            Where a column is absent, or holds no numbers, or the mass is not between 0 and 1.
        """
        ends = arguments.ends_of(mass)
        names = [column.name for column in self.bounds]
        groups = self.posterior.groups
        columns = columns_of(rows, [*names, *groups])
        absent = [name for name in names if name not in columns]
        if absent:
            message = f"rows have no column {', '.join(absent)}, from which {self.outcome.name} is predicted"
            raise UsageError(message)
        values = np.stack([numbers_of(name, columns[name]) for name in names], axis=1)
        cell = self.cells.of(columns, len(values))
        lower, upper = (
            np.array([float(getattr(column, end)) for column in self.bounds]) for end in ("lower", "upper")
        )
        answer = np.full((5, len(values)), np.nan)
        is_complete = ~np.isnan(values).any(axis=1) & (cell != NO_CELL)
        order = np.flatnonzero(is_complete)[np.argsort(cell[is_complete], kind="stable")]
        most = max(1, _NUMBERS // len(self.noise))
        for of_cell in np.split(order, np.flatnonzero(np.diff(cell[order])) + 1):
            for start in range(0, len(of_cell), most):
                chosen = of_cell[start : start + most]
                answer[:, chosen] = self._summaries(int(cell[chosen[0]]), values[chosen], ends)
        return Prediction(
            cell=cell,
            mean=answer[0],
            lower=answer[1],
            upper=answer[2],
            predictive_lower=answer[3],
            predictive_upper=answer[4],
            is_extrapolated=~np.isnan(answer[0]) & np.any((values < lower) | (values > upper), axis=1),
            groups=groups,
        )

    @np.errstate(over="ignore", invalid="ignore")
    def _summaries(self, cell: int, values: Floats, ends: tuple[float, float]) -> Floats:
        """Mean, ends of the credible and of the predictive interval of rows of one cell, (5, n_rows).

        Rows so far out that no float holds their numbers have none.
        """
        # beta_0 + x beta, (n_rows, n_draws).
        expected = values @ self.draws["coefficient"][:, cell].T
        if "intercept" in self.draws:
            expected += self.draws["intercept"][:, cell]
        # sigma epsilon, a number a draw.
        departures = np.sqrt(self.draws["variance"][:, cell]) * self.noise
        credible, predictive = (
            np.quantile(draws, ends, axis=1) for draws in (expected, expected + departures)
        )
        numbers = np.stack([np.mean(expected, axis=1), *credible, *predictive])
        return np.where(np.isfinite(numbers).all(axis=0), numbers, np.nan)


@lists_terms
def regression(
    release: Release,
    statistic: str,
    *,
    prior: AnyPrior = None,
    draws: int = parameter_posterior.DRAWS,
    rng: np.random.Generator | int | None = None,
    **terms: Unpack[FurtherTerms],
) -> Regression:
    """Return the regressions of a ``linear_regression`` statistic, one a cell. Costs no privacy.

    Parameters
    ----------
    release : Release
        That holds the statistic.
    statistic : str
        Its name.
    prior, **terms
        As in ``Release.posterior``.
    draws : int, > 0
        Posterior draws of the parameters.
    rng : numpy.random.Generator or int, optional
        A generator or the seed of one; a fresh one otherwise.

    Raises
    ------
    UsageError, PriorError
        Where the statistic is of another family, or a choice does not fit.
    """
    require_family(release, statistic, (FAMILY,), "a regression")
    draws, source = arguments.checked_draws(draws, least=2), arguments.generator(rng)
    posterior = release.posterior(statistic, prior, **terms)
    *predictors, outcome = release.statistic(statistic).plan.parameters.columns
    drawn = posterior.sample(draws, source)
    levels = (source.permutation(draws) + 0.5) / draws
    return Regression(
        posterior=posterior,
        bounds=tuple(predictors),
        outcome=outcome,
        draws=drawn,
        noise=ndtri(levels),
        cells=row_cells(release, posterior),
    )


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it."""
    if isinstance(value, np.generic):
        value = value.item()
    return finite(value) if isinstance(value, float) else value
