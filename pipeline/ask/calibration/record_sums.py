"""What single records add to the exact sums of their cell, whatever these records are like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.pipeline.terms.statistics.measure import (
    CodeCounts,
    MomentSums,
    PowerSums,
    RowCounts,
    TableCounts,
    TransitionCounts,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.measure import LatticeColumn, Measure
    from suffice.typing import Floats

Records: TypeAlias = "NDArray[np.float64] | NDArray[np.int64] | Mapping[str, NDArray[np.int64]]"
"""Values or codes, a record each; rows of several columns; codes by column, of tables; of units their states
in order, or their numbers of rows."""


def sums_of_each(measure: Measure, records: Records) -> Floats:
    """Return what each record adds to the sums that a pass over the data computes.

    Parameters
    ----------
    measure : Measure
        Of rows, of transitions, or of rows per unit.
    records : Records

    Returns
    -------
    ndarray of shape (n_records, n_sums), float64
        Integers; records beyond the public bounds add what these leave of them.
    """
    if isinstance(records, Mapping) or isinstance(measure, CodeCounts | TableCounts):
        return _counts(measure, records)
    if isinstance(measure, PowerSums):
        return _on_lattice(measure.of, records)[:, None] ** np.arange(measure.degree + 1)
    if isinstance(measure, MomentSums):
        columns = [_on_lattice(of, column) for of, column in zip(measure.of, records.T, strict=True)]
        ones = np.stack([np.ones(len(records)), *columns], axis=1)
        first, second = np.triu_indices(ones.shape[1])
        return ones[:, first] * ones[:, second]
    return _of_units(measure, records)


def _counts(measure: Measure, records: Records) -> Floats:
    if isinstance(measure, TableCounts) and isinstance(records, Mapping):
        entries = [
            np.ravel_multi_index([records[of.column] for of in table], [of.n_codes for of in table])
            for table in measure.tables
        ]
        counts = [_one_hot(entry, width) for entry, width in zip(entries, measure.widths, strict=True)]
        return np.concatenate(counts, axis=1)
    return _one_hot(np.asarray(records), measure.width)


def _of_units(measure: Measure, records: NDArray[np.float64] | NDArray[np.int64]) -> Floats:
    """Return the transitions of units, or what their numbers of rows add."""
    if isinstance(measure, TransitionCounts):
        steps = records[:, :-1] * measure.of.n_codes + records[:, 1:]
        counts: Floats = np.sum([_one_hot(column, measure.width) for column in steps.T], axis=0)
        return counts
    if not isinstance(measure, RowCounts):
        message = f"records cannot be summed one by one as {type(measure).__name__}"
        raise TypeError(message)
    if measure.counts_each:
        return _one_hot(np.minimum(records, measure.upper) - 1, measure.width)
    kept, counted = np.minimum(records, measure.kept), np.minimum(records, measure.upper)
    return np.stack([kept, counted - kept, measure.upper - counted], axis=1).astype(np.float64)


def _on_lattice(of: LatticeColumn, values: NDArray[np.float64] | NDArray[np.int64]) -> Floats:
    given = np.asarray(values, dtype=np.float64)
    transformed = given if of.transform is None else of.transform.apply(given)
    return of.quantiser.quantise(transformed).astype(np.float64)


def _one_hot(codes: NDArray[np.float64] | NDArray[np.int64], width: int) -> Floats:
    counts: Floats = (codes[:, None] == np.arange(width)).astype(np.float64)
    return counts


def python_integers(sums: Floats) -> NDArray[np.object_]:
    """Return sums as Python integers, as families take them."""
    integers = np.empty(sums.shape, dtype=object)
    integers[:] = [[round(entry) for entry in row] for row in sums.tolist()]
    return integers
