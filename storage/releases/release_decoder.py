"""Read a data file that may be hostile: where its values stand is known, and each column is as stated."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from suffice.arrays import bytes_array, number_array
from suffice.errors import ReleaseCorruptError
from suffice.pipeline.terms.declaration.domains import DomainKind
from suffice.pipeline.terms.statistics.statistic_plan import INT64
from suffice.storage.releases.parquet_layout import row_groups
from suffice.storage.releases.release_parquet import estimates_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.storage.releases.parquet_layout import Content, Span


def decode_statistic(
    data: bytes, statistic: StatisticPlan, groups: Mapping[str, Domain]
) -> NDArray[np.object_]:
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
    n_cells = math.prod(len(domain) for domain in groups.values())
    n_values = statistic.n_values
    found = row_groups(data, statistic, groups)  # before there is room for values that may not be there
    values = np.empty(n_cells * n_values, dtype=object)
    done = 0
    for spans in found:
        stored = decode_row_group(data, spans, statistic, groups, done)
        values[done : done + len(stored)] = stored.tolist()
        done += len(stored)
    return values.reshape(n_cells, n_values)


def check_statistic(data: Content, statistic: StatisticPlan, groups: Mapping[str, Domain]) -> None:
    """Check every byte of a file as :func:`decode_statistic` does, a row group at a time; keep nothing.

    Raises
    ------
    ReleaseCorruptError
    """
    done = 0
    for spans in row_groups(data, statistic, groups):
        done += len(decode_row_group(data, spans, statistic, groups, done))


def decode_row_group(
    data: Content,
    spans: Mapping[str, Sequence[Span]],
    statistic: StatisticPlan,
    groups: Mapping[str, Domain],
    start: int,
) -> NDArray[Any]:
    """Read one row group, and check every byte of it against the plan.

    Parameters
    ----------
    data : Content
        The whole file.
    spans : mapping of str to sequence of Span
        Where the columns of the row group stand, as :func:`row_groups` found them.
    statistic, groups
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
    for name, expected in _labels(statistic, groups, start, len(stored)):
        if _joined(data, spans[name]) != expected:
            raise _corrupt(statistic, f"its column {name!r} is not the plan's")
    if statistic.sample is not None:
        if stored.min() < 0 or stored.max() >= statistic.sample.grid:
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


def _stored(statistic: StatisticPlan, found: bytes) -> NDArray[Any]:
    """Return values as int64 or as Python integers: a decimal is 16 bytes, the highest first."""
    if statistic.value_type == INT64:
        return np.frombuffer(found, dtype="<i8").astype(np.int64)
    numbers = [int.from_bytes(found[at : at + 16], "big", signed=True) for at in range(0, len(found), 16)]
    return np.array(numbers, dtype=object)


def _labels(
    statistic: StatisticPlan, groups: Mapping[str, Domain], start: int, n_rows: int
) -> Iterator[tuple[str, bytes]]:
    """Return the bytes of the group columns and of components or draws, of some consecutive rows."""
    cells, positions_in_cell = np.divmod(np.arange(start, start + n_rows), statistic.n_values)
    inner = math.prod(len(domain) for domain in groups.values())
    for name, domain in groups.items():
        inner //= len(domain)
        positions = cells // inner % len(domain)
        if domain.kind is DomainKind.RANGE:
            yield name, (domain[0] + positions).astype("<i8").tobytes()
        else:
            yield name, _texts([str(key) for key in domain], positions)
    if statistic.sample is None:
        yield "component", _texts(statistic.components, positions_in_cell)
    else:
        yield "draw", positions_in_cell.astype("<i8").tobytes()


def _texts(texts: Sequence[str], positions: NDArray[np.int64]) -> bytes:
    """Return texts one behind the other, each after its length."""
    written = [text.encode() for text in texts]
    keys = bytes_array([len(text).to_bytes(4, "little") + text for text in written], pa.large_binary())
    taken = keys.take(number_array(positions))
    return taken.buffers()[2].to_pybytes()  # type: ignore[no-any-return]


def _corrupt(statistic: StatisticPlan, rule: str) -> ReleaseCorruptError:
    return ReleaseCorruptError(f"the file of {statistic.name} is corrupt: {rule}")
