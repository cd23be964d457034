r"""What models over a release share: quantities that follow from draws, and the cells that rows lie in.

A quantity :math:`q(\theta)` has a distribution as :math:`\theta \sim p(\theta \mid y)`: its moments,
quantiles and probabilities are those of :math:`q(\theta^{(s)})` over posterior draws s, and their error is
that of the number of draws. A quantity may be undefined in a draw: then it is of the other draws.

A row of a caller lies in the cell of its keys, compared as a release compares them; there is no error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.errors import UsageError
from suffice.pipeline.ask.pooling.release import Release
from suffice.pipeline.families.naive_bayes import estimated_tables
from suffice.pipeline.math.parameters.arguments import ends_of
from suffice.pipeline.math.parameters.contrasts import require_share, share_between
from suffice.pipeline.math.parameters.parameter_posterior import MASS
from suffice.pipeline.terms.declaration import domain_lookup
from suffice.pipeline.terms.declaration.domains import Domain, DomainKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.statistics.count_table import CountTable
    from suffice.typing import Cells, Codes, Floats, Mask

UNLISTED = -1
"""The code of null, and of a value that is no declared category."""

_HOW = "rows are a mapping of columns, each an array of one type, or a table of Arrow, pandas or Polars"


def columns_of(rows: object, names: Iterable[str]) -> dict[str, pa.Array]:
    """Return those columns of `names` that rows have, all of one length.

    Rows are a mapping of arrays of one dimension, or what Arrow takes for a table: its own, a data frame. A
    column that is no array of one dimension and one type is refused.
    """
    if isinstance(rows, Mapping):
        arrays = {name: array_of(name, rows[name]) for name in names if name in rows}
    else:
        try:
            table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        except (pa.ArrowException, TypeError, ValueError):
            raise UsageError(_HOW) from None
        for name in names:
            if table.column_names.count(name) > 1:
                message = f"rows have more than one column {name!r}: leave one"
                raise UsageError(message)
        arrays = {name: table[name].combine_chunks() for name in names if name in table.column_names}
    if len({len(column) for column in arrays.values()}) > 1:
        message = f"the columns {', '.join(arrays)} are not all of one length"
        raise UsageError(message)
    return arrays


def array_of(name: str, values: Any) -> pa.Array:
    """Return the values of one column as an Arrow array, NaN among objects as null; refuse what is none."""
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    if isinstance(values, pa.Array):
        return values
    message = f"the column {name!r} is no array of one dimension and one type: {_HOW}"
    if isinstance(values, str | bytes | Mapping):
        raise UsageError(message)
    try:
        column = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise UsageError(message) from None
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def codes_of(column: pa.Array, domain: Domain) -> Codes:
    """Return one code per row, the place of its value among the declared keys or ``UNLISTED``; (n_rows,).

    Values are compared as in a release: text exactly, numbers as numbers, dates as ISO text; besides, text is
    found among periods by its label. No value is ever an error.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_string_view(kind):
        column = pc.cast(column, pa.large_string())
    elif pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        column = pc.cast(column, pa.decimal128(38, kind.scale))
    has_keys = not (pa.types.is_null(kind) or pa.types.is_nested(kind) or pa.types.is_interval(kind))
    if not has_keys or not len(column):
        return np.full(len(column), UNLISTED, np.int32)
    if domain.kind is DomainKind.PERIOD and not pa.types.is_temporal(kind):
        domain = Domain(kind=DomainKind.LIST, keys=domain.keys)
    table = domain_lookup.lookup(domain, column.type)
    if isinstance(table, domain_lookup.Listed):
        places = pc.fill_null(pc.index_in(column, value_set=table.keys), len(table.codes))
        codes: Codes = np.append(table.codes, np.int32(UNLISTED))[places.to_numpy(zero_copy_only=False)]
        return codes
    values, is_known = _integers(column, table)
    return np.where(is_known, _looked_up(values, table), np.int32(UNLISTED)).astype(np.int32)


def _integers(
    column: pa.Array, table: domain_lookup.Dense | domain_lookup.Sparse | domain_lookup.Interval
) -> tuple[np.ndarray, Mask]:
    """Return values as the integers that a lookup compares, (n_rows,), and which of them it can compare."""
    kind = column.type
    is_known = pc.is_valid(column).to_numpy(zero_copy_only=False)
    if pa.types.is_temporal(kind):
        column = pc.cast(column, pa.int32() if kind.bit_width == 32 else pa.int64())
    elif pa.types.is_boolean(kind):
        column = pc.cast(column, pa.uint8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return np.zeros(len(column), np.int64), np.zeros(len(column), bool)
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    if values.dtype == np.uint64:
        return (values ^ np.uint64(domain_lookup.UNSIGNED_SHIFT)).view(np.int64), is_known
    if values.dtype.kind != "f":
        values = values.astype(np.int64)
        return (values // table.divisor if table.divisor > 1 else values), is_known
    numbers = values.astype(np.float64)
    if isinstance(table, domain_lookup.Sparse) and table.of_bits:
        return (numbers + 0.0).view(np.int64), is_known
    with np.errstate(invalid="ignore"):
        integers = numbers.astype(np.int64)
    return integers, is_known & (integers == numbers) & (numbers < 2.0**63)


def _looked_up(
    values: np.ndarray, table: domain_lookup.Dense | domain_lookup.Sparse | domain_lookup.Interval
) -> Codes:
    if isinstance(table, domain_lookup.Interval):
        return np.where((values >= table.begins) & (values < table.ends), 0, UNLISTED).astype(np.int32)
    if isinstance(table, domain_lookup.Sparse):
        if not len(table.keys):
            return np.full(len(values), UNLISTED, np.int32)
        places = np.minimum(np.searchsorted(table.keys, values), len(table.keys) - 1)
        return np.where(table.keys[places] == values, table.codes[places], np.int32(UNLISTED))
    last = table.first + len(table.codes) - 1
    inside = (values >= table.first) & (values <= last)
    places = np.where(inside, values, table.first) - table.first
    return np.where(inside, table.codes[places], np.int32(UNLISTED))


NO_CELL = -1
"""Of a row whose keys are those of no selected cell, or missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCells:
    """Where rows lie among the selected cells of a release; made by ``row_cells``.

    Attributes
    ----------
    keys : dict of str to Domain
        The group columns.
    shared : dict of str to int
        Of those in which all selected cells have one key, its place in the domain.
    numbers : ndarray, int64
        The number of the cell of each combination of declared keys, ``NO_CELL`` where none is selected.
    """

    keys: Mapping[str, Domain]
    shared: Mapping[str, int]
    numbers: Cells = field(repr=False)

    @property
    def needed(self) -> tuple[str, ...]:
        """The group columns that tell selected cells apart, which rows must have."""
        return tuple(name for name in self.keys if name not in self.shared)

    def of(self, columns: Mapping[str, pa.Array], n_rows: int) -> Cells:
        """Return the cell of each row, (n_rows,), ``NO_CELL`` where it lies in none.

        Keys are compared as a release does. Rows without a column in which all selected cells have the same
        key are taken to have it; rows with one, by what stands there.

        Raises
        ------
        UsageError
            Where rows lack a column that tells cells apart.
        """
        places = np.zeros(n_rows, np.int64)
        for name, domain in self.keys.items():
            if name in columns:
                codes = codes_of(columns[name], domain).astype(np.int64)
            elif name in self.shared:
                codes = np.full(n_rows, self.shared[name], np.int64)
            else:
                message = (
                    f"rows need a column {name!r}: the release has a cell for each {', '.join(self.keys)}; "
                    "or keep one cell with where"
                )
                raise UsageError(message)
            is_known = (places >= 0) & (codes != UNLISTED)
            places = np.where(is_known, places * len(domain) + codes, -1)
        return np.where(places < 0, NO_CELL, self.numbers[places])


def row_cells(release: Release, posterior: Posterior) -> RowCells:
    """Return where rows lie among the cells of a posterior."""
    groups = posterior.groups
    if not groups:
        return RowCells(keys={}, shared={}, numbers=np.zeros(1, np.int64))
    declared = release.plan_of(posterior.statistic).groups
    keys = {name: declared[name] for name in groups}
    places = {}
    for name, domain in keys.items():
        place = {str(key): number for number, key in enumerate(domain)}
        places[name] = np.array([place[str(key)] for key in groups[name]])
    sizes = tuple(map(len, keys.values()))
    numbers = np.full(math.prod(sizes), NO_CELL, np.int64)
    numbers[np.ravel_multi_index(tuple(places.values()), sizes)] = np.arange(posterior.n_groups)
    shared = {name: int(codes[0]) for name, codes in places.items() if np.ptp(codes) == 0}
    return RowCells(keys=keys, shared=shared, numbers=numbers)


def require_family(release: Release, statistic: str, families: Sequence[str], model: str) -> None:
    """Refuse a statistic that a model, as ``a chain``, is not made of, and name those that fit."""
    if not isinstance(release, Release):
        message = f"{model} is made of a release, as suffice.open_release returns it, not of {release!r}"
        raise UsageError(message)
    if not isinstance(statistic, str):
        message = f"{model} is made of a statistic, by its name, not of {statistic!r}"
        raise UsageError(message)
    family = release.statistic(statistic).plan.family
    if family in families:
        return
    fitting = [name for name, fitted in release.statistics.items() if fitted.plan.family in families]
    *others, last = families
    wanted = f"{', '.join(others)} or {last}" if others else last
    message = f"{statistic} is {family}, and {model} is made of {wanted}: " + (
        f"in this release that is {', '.join(fitting)}" if fitting else "this release has none"
    )
    raise UsageError(message)


def tables_of(posterior: Posterior) -> tuple[CountTable, ...]:
    """Return the tables whose probabilities a posterior is of, in the order of its entries."""
    if posterior.constants is None:
        message = f"{posterior.statistic} has no count tables"
        raise UsageError(message)
    if posterior.family == "naive_bayes":
        return estimated_tables(posterior.constants)
    return posterior.constants.tables


def tidy_draws(
    groups: Mapping[str, Sequence[str | int]],
    labels: Mapping[str, Sequence[str | None]],
    parameter: str,
    draws: Floats,
) -> dict[str, np.ndarray[Any, Any]]:
    """Return draws (n_draws, n_cells, n_entries) as tidy columns: keys, labels, draw, parameter, value."""
    draw, cell, entry = np.indices(draws.shape).reshape(3, -1)
    return {
        **{column: np.array(keys)[cell] for column, keys in groups.items()},
        **{name: np.array(values, dtype=object)[entry] for name, values in labels.items()},
        "draw": draw,
        "parameter": np.full(draw.size, parameter),
        "value": draws.ravel(),
    }


def drawn_tables(posterior: Posterior, draws: int, rng: np.random.Generator) -> list[Floats]:
    """Draw all tables jointly, each of shape (draws, n_cells, *table.shape).

    A table is of its last variable given the others; the only one of a contingency table is of all.
    """
    tables = tables_of(posterior)
    drawn = posterior.sample(draws, rng)["probability"]
    parts = np.split(drawn, np.cumsum([table.size for table in tables])[:-1], axis=2)
    return [part.reshape(*part.shape[:2], *table.shape) for part, table in zip(parts, tables, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnQuantity:
    """Draws of a quantity, one for each draw of the parameters that it follows from.

    Attributes
    ----------
    draws : ndarray of shape (n_draws, ...), float64
        Not a number where a draw of the parameters defines no such quantity; may be infinite.
    has_moments : bool
        Whether a mean and a standard deviation are known to exist; where not, both are not a number.
    """

    draws: Floats = field(repr=False)
    has_moments: bool = True

    @property
    def undefined_share(self) -> Floats:
        """The share of draws that define no such quantity; everything else is of the others."""
        return np.asarray(np.mean(np.isnan(self.draws), axis=0), dtype=np.float64)

    @property
    def mean(self) -> Floats:
        """Means, shaped as a draw."""
        return self._moments()[0]

    @property
    def sd(self) -> Floats:
        """Standard deviations, shaped as a draw."""
        return self._moments()[1]

    def quantile(self, q: float) -> Floats:
        """Quantiles, shaped as a draw.

        Raises
        ------
        UsageError
            Where q is not between 0 and 1.
        """
        return self._quantiles([require_share("q", q)])[..., 0]

    def credible_interval(self, mass: float = MASS) -> Floats:
        """Central credible intervals, shaped as a draw with 2 as a last axis.

        Raises
        ------
        UsageError
            Where the mass is not between 0 and 1.
        """
        return self._quantiles(ends_of(mass))

    def probability(self, *, above: float | None = None, below: float | None = None) -> Floats:
        """Probabilities that it is defined and lies in a range, shaped as a draw.

        Raises
        ------
        UsageError
            Where no bound is given, or nothing lies between them.
        """
        return share_between(self.draws, above, below)

    def summary(self, mass: float = MASS) -> dict[str, Floats]:
        """Mean, sd, median, lower and upper, each shaped as a draw."""
        ends = ends_of(mass)
        lower, median, upper = np.moveaxis(self._quantiles((ends[0], 0.5, ends[1])), -1, 0)
        mean, sd = self._moments()
        return {"mean": mean, "sd": sd, "median": median, "lower": lower, "upper": upper}

    def _moments(self) -> tuple[Floats, Floats]:
        if not self.has_moments:
            return np.full(self.draws.shape[1:], np.nan), np.full(self.draws.shape[1:], np.nan)
        is_defined = ~np.isnan(self.draws)
        count = np.where(is_defined.any(axis=0), np.sum(is_defined, axis=0), np.nan)
        mean = np.sum(self.draws, axis=0, where=is_defined) / count
        squares = np.sum(np.square(self.draws - mean), axis=0, where=is_defined)
        return mean, np.sqrt(squares / count)

    def _quantiles(self, levels: Sequence[float]) -> Floats:
        """Return quantiles of the draws that are defined, never between a number and infinity."""
        ordered = np.sort(self.draws, axis=0)  # what is not a number comes last
        count = np.sum(~np.isnan(ordered), axis=0)
        places = [np.maximum(np.ceil(level * count).astype(np.int64) - 1, 0) for level in levels]
        order_statistics = [np.take_along_axis(ordered, place[None], axis=0)[0] for place in places]
        return np.stack(order_statistics, axis=-1)
