"""What predictors of simulated regressions are like: stated distributions, or rows that are public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from suffice.errors import PriorError, UsageError
from suffice.pipeline.math.priors.by_name import named_distribution
from suffice.pipeline.math.priors.density import Density

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.priors.density import ScipyDistribution
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Counts, Floats

    AnyPredictors: TypeAlias = (
        str | ScipyDistribution | Sequence[str | ScipyDistribution] | Mapping[str, Any] | None
    )

ROWS_FROM = (".csv", ".parquet")
"""Endings of files that hold public rows."""
_FARTHEST, _LOOKED_AT = 1000.0, 1000
"""Half ranges from the middle of a column's bounds that predictors may lie off, and rows that are looked at.

Where sums without clipping do not fit what a release can hold, nothing can be said of them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorRows:
    """Predictors of simulated rows, the same world for every data set.

    Attributes
    ----------
    name : str
        What they are, for outputs.
    draw : callable
        How many rows, a generator -> predictors, (n_rows, n_predictors).
    """

    name: str
    draw: Callable[[int, np.random.Generator], Floats] = field(repr=False)

    def __str__(self) -> str:
        return self.name

    def __call__(self, _n_data_sets: int, rng: np.random.Generator) -> Callable[[Counts], Floats]:
        """Return what draws the predictors of rows, given the data set of each."""
        return lambda data_set: self.draw(len(data_set), rng)


def predictor_rows(plan: StatisticPlan, given: AnyPredictors) -> PredictorRows:
    """Read what predictors are like.

    Parameters
    ----------
    plan : StatisticPlan
        Of a regression.
    given : str, distribution of scipy.stats, sequence of them, or mapping
        Texts such as ``Normal(0, 1)`` or frozen univariate distributions, one for all predictors or one each
        in their order; or public rows: the name of a .csv or .parquet file with a column for every predictor,
        or such columns by name. Rows are drawn from these with replacement.

    Raises
    ------
    UsageError
        Where a column is missing, not of finite numbers, or far outside of its bounds.
    PriorError
        Where a distribution cannot be read, or they are neither one nor as many as predictors.
    """
    names = [column.name for column in plan.parameters.columns[:-1]]
    if isinstance(given, Mapping):
        return _resampled(plan, names, given, "given rows")
    if isinstance(given, str) and given.lower().endswith(ROWS_FROM):
        return _resampled(plan, names, _columns_of(given, names), f"rows of {Path(given).name}")
    each = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    if len(each) not in {1, len(names)}:
        message = (
            f"{plan.name} has {len(names)} predictors: give one distribution for all or one each, "
            f"not {len(each)}"
        )
        raise PriorError(message)
    named = [_distribution(predictor) for predictor in each] * (len(names) if len(each) == 1 else 1)
    texts = [text for text, _ in named]

    def draw(rows: int, rng: np.random.Generator) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):  # what is infinite is out of reach
            return np.column_stack([distribution.rvs(rows, random_state=rng) for _, distribution in named])

    _require_within_reach(plan, draw(_LOOKED_AT, np.random.default_rng(0)))
    return PredictorRows(name=", ".join(texts[: len(each)]), draw=draw)


def _distribution(given: object) -> tuple[str, Any]:
    if isinstance(given, str):
        return named_distribution(given)
    density = None if isinstance(given, Density) else Density.of(given)
    if density is None:
        message = (
            "predictors are drawn from a distribution by its name, as Normal(0, 1), a frozen one of "
            f"scipy.stats, or public rows, not {given!r}"
        )
        raise PriorError(message)
    return density.name, given


def _columns_of(path: str, names: list[str]) -> dict[str, Any]:
    """Read columns of a public file."""
    import pyarrow as pa  # rarely needed
    import pyarrow.csv
    import pyarrow.parquet

    if "://" in path:  # which may hold a password, so that it is not repeated
        message = (
            "predictors: an address is not read: give a local .csv or .parquet file, or columns in Python"
        )
        raise UsageError(message)
    try:
        with Path(path).open("rb") as file:
            read = pyarrow.csv.read_csv if path.lower().endswith(".csv") else pyarrow.parquet.read_table
            table = read(file)
        names_present = table.column_names
    except (OSError, ValueError, pa.ArrowException):  # ValueErrors are of NUL, and of names that are no UTF-8
        message = f"predictors: {path} cannot be read as the file that its ending says"
        raise UsageError(message) from None
    repeated = [name for name in names if names_present.count(name) > 1]
    if repeated:
        message = f"predictors: {path} has more than one column {repeated[0]!r}"
        raise UsageError(message)
    return {name: table.column(name).to_pylist() for name in names if name in names_present}


def _require_within_reach(plan: StatisticPlan, rows: Floats) -> None:
    """Refuse predictors so far outside of their bounds that the bounds were not meant for them."""
    for column, values in zip(plan.parameters.columns[:-1], rows.T, strict=True):
        lower, upper = float(column.lower), float(column.upper)
        if not (np.abs(values - (lower + upper) / 2) <= _FARTHEST * (upper - lower) / 2).all():
            message = (
                f"predictors: those for {column.name} lie more than {_FARTHEST:.0f} half ranges off the "
                "middle of its bounds: state them in the column's unit"
            )
            raise UsageError(message)


def _resampled(plan: StatisticPlan, names: list[str], columns: Mapping[str, Any], text: str) -> PredictorRows:
    missing = [name for name in names if name not in columns]
    if missing:
        message = f"predictors: {text} have no column {missing[0]!r}, a predictor of {plan.name}"
        raise UsageError(message)
    try:
        rows = np.column_stack([np.asarray(columns[name], dtype=np.float64) for name in names])
    except (TypeError, ValueError):
        rows = np.empty((0, len(names)))
    if not len(rows) or not np.isfinite(rows).all():
        message = f"predictors: {text} must be finite numbers, at least one row, in columns of one length"
        raise UsageError(message)
    _require_within_reach(plan, rows)
    return PredictorRows(
        name=f"{len(rows)} {text}", draw=lambda count, rng: rows[rng.integers(0, len(rows), count)]
    )
