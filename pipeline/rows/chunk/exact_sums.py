"""Exact sums in fixed-width integers: what a task returns, how two are added, and what they mean.

A count is one int64. A sum of powers is two *limbs*, ``high * 2**48 + low`` with ``0 <= low < 2**48``:
closed under addition up to 2**63 rows of any lattice value, and the same total always has the same limbs.
The totals of a release are one object, opened once, by the mechanism alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.rows.sources.contract import exact_data, name_alone, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.measure import Measure


class ExactTotals:
    """The exact totals of every statistic, between the last addition and the noise.

    They are not printed, pickled, copied or compared. Who opens them has them alone; here nothing is left.

    Parameters
    ----------
    sums : Sums
        They are handed over: nobody else may keep them.
    """

    __slots__ = ("_sums",)

    def __init__(self, sums: Sums) -> None:
        self._sums: Sums | None = sums

    __repr__ = name_alone
    __reduce_ex__ = refuse

    def open_totals(self) -> Sums:
        """Hand the totals over; a second time there are none.

        Raises
        ------
        ValueError
            Where they were opened or wiped before.
        """
        sums, self._sums = self._sums, None
        if sums is None:
            message = "the exact totals were opened before"
            raise ValueError(message)
        return sums

    def wipe(self) -> None:
        """Overwrite the totals where nobody has opened them."""
        sums, self._sums = self._sums, None
        if sums is not None:
            wipe_sums(sums)

    def __del__(self) -> None:
        """Overwrite what an interrupt left behind before anybody held it."""
        if self._sums is not None:
            self.wipe()


LIMB_BITS = 48
LIMB_MASK = (1 << LIMB_BITS) - 1


@exact_data(travels=True)
class Table:
    r"""The exact sums of one statistic.

    .. math:: S_{ck} = 2^{48} \, \text{high}_{ck} + \text{low}_{ck}

    Parameters
    ----------
    low : ndarray of int64, shape (n_cells, n_sums)
        Counts per code; or the low limbs of n, sum X and, for degree 2, sum X^2; or of n, the sums and the
        sums of products.
    high : ndarray of int64, shape (n_cells, n_sums), or None
        The high limbs; None for counts, whose `low` is the whole number.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64] | None = None


Sums = dict[str, Table]
"""The exact sums of every statistic, by its name."""


def wipe(array: NDArray[Any]) -> None:
    """Overwrite an array, and what it is a view of, with zeros.

    Python integers lose their references alone; memory that may not be written stays as it is.
    """
    while isinstance(array.base, np.ndarray):
        array = array.base
    if array.flags.writeable:
        array.fill(0)


def wipe_sums(sums: Sums) -> None:
    """Overwrite the exact sums of every statistic with zeros."""
    for table in sums.values():
        wipe(table.low)
        if table.high is not None:
            wipe(table.high)


def sums_nbytes(sums: Sums) -> int:
    """Return the size of exact sums in memory; it follows from what is summed alone."""
    return sum(table.low.nbytes + (0 if table.high is None else table.high.nbytes) for table in sums.values())


def zeros(measures: Mapping[str, Measure], n_cells: Mapping[str, int]) -> Sums:
    """Return the sums of no rows.

    Parameters
    ----------
    measures : mapping of str to Measure
        What is summed, by statistic.
    n_cells : mapping of str to int
        How many cells each has.
    """
    return {name: zero_table(measure, n_cells[name]) for name, measure in measures.items()}


def zero_table(measure: Measure, n_cells: int) -> Table:
    """Return one statistic's sums of no rows."""
    shape = (n_cells, measure.width)
    return Table(low=np.zeros(shape, np.int64), high=np.zeros(shape, np.int64) if measure.is_wide else None)


def normalise(table: Table) -> None:
    """Carry what a low limb holds beyond 48 bits into the high limb, in place."""
    if table.high is not None:
        table.high[...] += table.low >> LIMB_BITS
        table.low[...] &= LIMB_MASK


def rows_before_rounding(largest: int) -> int:
    r"""Return how many rows' products of two sum exactly in float64: :math:`\lfloor 2^{53} / M^2 \rfloor`."""
    return (1 << 53) // max(1, largest**2)


def without_last_cell(table: Table) -> Table:
    """Return a table without the cell that stands for none."""
    return Table(low=table.low[:-1], high=None if table.high is None else table.high[:-1])


def rows_before_carry(largest: int, degree: int) -> int:
    r"""Return how many rows may be added to normalised low limbs before any could leave int64.

    .. math:: \lfloor (2^{63} - 1 - 2^{48}) / \max(1, M^{d}) \rfloor

    where M is the largest magnitude of a lattice value and d the degree.
    """
    return ((1 << 63) - 1 - (1 << LIMB_BITS)) // max(1, int(largest**degree))


def add_in_time(
    table: Table, n_rows: int, add_rows: Callable[[slice], None], *, room: int, limit: int
) -> int:
    """Add `n_rows` rows by slices, carrying before a low limb is full; return the room that is left."""
    start = 0
    while start < n_rows:
        if not room:
            normalise(table)
            room = limit
        rows = slice(start, min(start + room, n_rows))
        add_rows(rows)
        start, room = rows.stop, room - (rows.stop - rows.start)
    return room


def combine(parts: Sequence[Sums]) -> Sums:
    """Add exact sums; the order and the grouping of the parts change no bit of the result.

    Parameters
    ----------
    parts : sequence of Sums
        At least one, at most 2**14 at a time, of the same statistics; none is changed.
    """
    combined = {}
    for name, first in parts[0].items():
        high = None if first.high is None else first.high.copy()
        total = Table(low=first.low.copy(), high=high)
        for part in parts[1:]:
            table = part[name]
            total.low[...] += table.low
            if total.high is not None and table.high is not None:
                total.high[...] += table.high
        normalise(total)
        combined[name] = total
    return combined


def to_python(sums: Sums) -> dict[str, NDArray[np.object_]]:
    """Return exact sums as Python integers.

    Returns
    -------
    dict of str to ndarray of object, shape (n_cells, n_sums)
        Counts per code; or n, sum X and, for degree 2, sum X^2; or n, the sums and the sums of products of
        several columns; in powers of lattice steps.
    """
    return {
        name: table.low.astype(object)
        if table.high is None
        else table.high.astype(object) * (1 << LIMB_BITS) + table.low.astype(object)
        for name, table in sums.items()
    }
