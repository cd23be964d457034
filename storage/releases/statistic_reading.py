"""Read a statistic's file: every byte of it is checked against the plan, as it may be hostile.

It is known where its values stand, and each column is as stated. pyarrow is not asked: importing it takes
longer than reading a few cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import ReleaseCorruptError
from suffice.pipeline.terms.declaration.domains import DomainKind, cell_count
from suffice.pipeline.terms.statistics.statistic_plan import INT64
from suffice.storage.releases.parquet_layout import row_groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.storage.releases.parquet_layout import Content, Span

_EXACT_IN_FLOAT64 = 2**53


def decode_statistic(data: bytes, statistic: StatisticPlan) -> NDArray[np.object_]:
    """Read what :func:`encode_statistic` wrote, and check every byte of it against the plan.

    Returns
    -------
    ndarray of object, shape (n_cells, n_values)
        Python integers, in lattice units; of a sample, points of its grid.

    Raises
    ------
    ReleaseCorruptError
        Where layout, rows, group keys, components or estimates are not the plan's.
    """
    n_cells = statistic.n_cells
    n_values = statistic.n_values
    # Before there is room for values that may not be there.
    groups_of_rows = row_groups(data, statistic)
    values = np.empty(n_cells * n_values, dtype=object)
    done = 0
    for spans in groups_of_rows:
        stored = decode_row_group(data, spans, statistic, done)
        values[done : done + len(stored)] = stored.tolist()
        done += len(stored)
    return values.reshape(n_cells, n_values)


def check_statistic(data: Content, statistic: StatisticPlan) -> None:
    """Check every byte of a file as :func:`decode_statistic` does, a row group at a time; keep nothing.

    Raises
    ------
    ReleaseCorruptError
    """
    done = 0
    for spans in row_groups(data, statistic):
        done += len(decode_row_group(data, spans, statistic, done))


def decode_row_group(
    data: Content,
    spans: Mapping[str, Sequence[Span]],
    statistic: StatisticPlan,
    start: int,
) -> NDArray[Any]:
    """Read one row group, and check every byte of it against the plan.

    Parameters
    ----------
    data : Content
        The whole file.
    spans : mapping of str to sequence of Span
        Where the columns of the row group stand, as :func:`row_groups` found them.
    statistic
        As in :func:`decode_statistic`.
    start : int
        The row of the file that its first one is.

    Returns
    -------
    ndarray of int64 or of Python integers, shape (n_rows,)

    Raises
    ------
    ReleaseCorruptError
        As :func:`decode_statistic`.
    """
    stored = _stored(statistic, _joined(data, spans["value"]))
    for name, expected in _expected_labels(statistic, start, len(stored)):
        if _joined(data, spans[name]) != expected:
            raise _corrupt(statistic, f"its column {name!r} is not the plan's")
    if statistic.sample is not None:
        if stored.min() < 0 or stored.max() >= statistic.sample.n_points:
            raise _corrupt(statistic, "a value is no point of its grid")
        return stored
    lowest, highest = statistic.value_limits
    if stored.min() < lowest or stored.max() > highest:
        raise _corrupt(statistic, "a value lies beyond the ends of its type")
    if _joined(data, spans["estimate"]) != estimates_of(statistic, stored).astype("<f8").tobytes():
        raise _corrupt(statistic, "its estimates do not follow from its values")
    return stored


def _joined(data: Content, spans: Sequence[Span]) -> bytes:
    """Return the values of a column of a row group, from the pages that they stand in."""
    return b"".join(data[start:end] for start, end in spans)


def _stored(statistic: StatisticPlan, stored: bytes) -> NDArray[Any]:
    """Return values as int64 or as Python integers: a decimal is 16 bytes, the highest first."""
    if statistic.value_type == INT64:
        return np.frombuffer(stored, dtype="<i8").astype(np.int64)
    numbers = [int.from_bytes(stored[at : at + 16], "big", signed=True) for at in range(0, len(stored), 16)]
    return np.array(numbers, dtype=object)


def _expected_labels(statistic: StatisticPlan, start: int, n_rows: int) -> Iterator[tuple[str, bytes]]:
    """Return the bytes of the group columns and of components or draws, of some consecutive rows."""
    rows = np.arange(start, start + n_rows)
    inner = statistic.n_cells
    for name, domain in statistic.groups.items():
        inner //= len(domain)
        n_alike = inner * statistic.n_values
        if domain.kind is DomainKind.RANGE:
            yield name, (domain[0] + rows // n_alike % len(domain)).astype("<i8").tobytes()
        else:
            yield name, repeated_texts([str(key) for key in domain], n_alike, start, n_rows)
    if statistic.sample is None:
        yield "component", repeated_texts(statistic.components, 1, start, n_rows)
    else:
        yield "draw", (rows % statistic.n_values).astype("<i8").tobytes()


def repeated_texts(texts: Sequence[str], n_alike: int, start: int, n_rows: int) -> bytes:
    """Return some rows of a column in which each text stands several times, and all of them over and over.

    Parameters
    ----------
    texts : sequence of str
    n_alike : int
        How many rows in a row have one text.
    start, n_rows : int
        The first row, and how many.

    Returns
    -------
    bytes
        Each text after its length, as Parquet has it.
    """
    written = [text.encode() for text in texts]
    values = [len(text).to_bytes(4, "little") + text for text in written]
    period = n_alike * len(values)

    def rows(first: int, end: int) -> bytes:
        runs = range(first // n_alike, -(-end // n_alike))
        return b"".join(
            values[run] * (min(end, (run + 1) * n_alike) - max(first, run * n_alike)) for run in runs
        )

    first = start % period
    if first + n_rows <= period:
        return rows(first, first + n_rows)
    n_periods, n_last = divmod(first + n_rows - period, period)
    return rows(first, period) + rows(0, period) * n_periods + rows(0, n_last)


def _corrupt(statistic: StatisticPlan, rule: str) -> ReleaseCorruptError:
    return ReleaseCorruptError(f"the file of {statistic.name} is corrupt: {rule}")


def expand_groups(groups: Mapping[str, Domain]) -> dict[str, list[str | int]]:
    """Return the key of each cell by group column; the last column runs fastest."""
    n_cells = inner = cell_count(groups)
    keys = {}
    for column, domain in groups.items():
        inner //= len(domain)
        once = np.repeat(np.array(list(domain), dtype=object), inner)
        keys[column] = np.tile(once, n_cells // len(once)).tolist()
    return keys


def estimates_of(statistic: StatisticPlan, values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the quotients, each correctly rounded."""
    unit = statistic.partition_total or 1
    if unit > _EXACT_IN_FLOAT64:
        values = values.astype(object)
    estimates: NDArray[np.float64] = (values / unit).astype(np.float64, copy=False)
    if values.dtype != object:  # beyond 2^53 NumPy rounds the value before it divides
        large = (values > _EXACT_IN_FLOAT64) | (values < -_EXACT_IN_FLOAT64)
        estimates[large] = (values[large].astype(object) / unit).astype(np.float64)
    return estimates
