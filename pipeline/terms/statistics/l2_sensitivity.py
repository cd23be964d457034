r"""L2 sensitivities, squared: exact integers in squared lattice units.

The largest :math:`\lVert S(D) - S(D') \rVert_2^2` over neighbouring data sets, over all components and cells
of a block together. The comments ``proof: LABEL`` name claims of ``l2_sensitivity.md``;
:meth:`~suffice.pipeline.terms.statistics.sensitivity.Block.l2_squared` puts them together.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction


def kept_rows(record: int, max_rows: int, per_cell: int, products: int = 0) -> int:
    r"""Return the largest squared norm of what a unit's rows add, and of products of them beside.

    .. math:: \lfloor K / k \rfloor \varphi(k) + \varphi(K \bmod k), \quad \varphi(j) = j^2 r^2 + j^4 p^2

    Parameters
    ----------
    record : int
        :math:`r^2`, of what one record adds.
    max_rows : int
        K, the rows that a unit keeps at most.
    per_cell : int
        k, those that it keeps in a cell at most; from 1 to K.
    products : int
        :math:`p^2`, of the products of a unit with one row in a cell.
    """
    # proof: l2-kept-rows
    # proof: l2-within-unit
    cells, rest = divmod(max_rows, per_cell)
    in_full, in_last = (rows**2 * record + rows**4 * products for rows in (per_cell, rest))
    return cells * in_full + in_last


def replaced_rows(record: int, max_rows: int, per_cell: int, products: int = 0, opposed: int = 0) -> int:
    r"""Return the largest squared change by a unit whose rows give way to those of another.

    Twice what `kept_rows` says, and :math:`4 k (K \bmod k) \omega` where components are of either sign.

    Parameters
    ----------
    record, max_rows, per_cell, products
        As in `kept_rows`.
    opposed : int
        :math:`\omega`: with vectors f and g of records in one cell, and any :math:`a, b \ge 0`,
        :math:`|a f - b g|^2 \le (a^2 + b^2) r^2 + 2 a b \omega`, without the last term where a = b.
    """
    # proof: l2-either-sign
    crossed = 4 * per_cell * (max_rows % per_cell) * opposed
    return 2 * kept_rows(record, max_rows, per_cell, products) + crossed


def tables(n_tables: int) -> int:
    """Return the squared norm of what one record adds to several tables: 1 to one count of each."""
    # proof: l2-tables
    return n_tables


def minimal_tables(n_tables: int) -> int:
    """Return the squared change of several tables' counts by a replaced record, where every record enters."""
    # proof: l2-minimal
    return 2 * n_tables


def rows_of_units(kept: int, upper: int) -> int:
    r"""Return the largest squared norm of a unit's rows kept, left out and unused, of `upper` in all.

    .. math:: \max_{j \in \{1, K\}} \left(j^2 + (C - j)^2\right)

    Parameters
    ----------
    kept : int
        K, at most `upper`.
    upper : int
        C.
    """
    # proof: l2-rows-per-unit
    return max(rows**2 + (upper - rows) ** 2 for rows in (1, kept))


def counts_beside(sums: int, weight: int) -> int:
    """Return the squared norm of one record's sums and of its part, `weight`, in a count of moved records."""
    # proof: l2-counts-beside
    return sums + weight**2


def minimal_with_counts(minimal: int, between_ends: int, weight: int) -> int:
    r"""Return the squared change of minimal sums beside counts of moved records by a replaced record.

    .. math:: \max(\Delta^2 + a^2, \Delta_\text{ends}^2 + 2 a^2)

    Parameters
    ----------
    minimal : int
        :math:`\Delta^2`, of the sums alone.
    between_ends : int
        :math:`\Delta_\text{ends}`, of the component that differs between the lowest and the highest value.
    weight : int
        ``a``.
    """
    # proof: l2-counts-beside
    return max(minimal + weight**2, between_ends**2 + 2 * weight**2)


def minimal_moments(steps: int, weight: Fraction | None, *, columns: int = 1) -> int:
    r"""Return the squared change of weighted first and second moments of a box by a replaced record.

    With :math:`f = M / w`, or 0 without first moments, for several columns, and for one:

    .. math:: \max_{0 \le k \le d} 4 k M^2 (f^2 + (d - k) M^2), \qquad
              \max_{0 \le D \le 2 M} D^2 (f^2 + (2 M - D)^2)

    Both are attained.

    Parameters
    ----------
    steps : int
        ``M``.
    weight : Fraction or None
        ``w``, of second moments beside first ones; None: first moments are not released.
    columns : int
        ``d``.
    """
    # proof: l2-minimal-moments
    first = 0 if weight is None else int(steps / weight)
    if columns > 1:
        return max(4 * k * steps**2 * (first**2 + (columns - k) * steps**2) for k in range(columns + 1))
    # The derivative is 0 at D = (3 M - sqrt(M^2 - 2 f^2)) / 2, a largest value, where that is real.
    root = math.isqrt(max(steps**2 - 2 * first**2, 0))
    changes: list[int] = [*range((3 * steps - root - 1) // 2, (3 * steps - root) // 2 + 2), 2 * steps]
    return max(change**2 * (first**2 + (2 * steps - change) ** 2) for change in changes)


def rotated_moments(steps: int, *, columns: int, linear: bool) -> int:
    r"""Return the largest squared norm of one record's rotated moments.

    .. math:: M^4 (d^2 + 3 d - o) \text{, or without linear terms } M^4 d^2

    where o is 1 if the number of products, :math:`d (d - 1) / 2`, is odd, and else 0.

    Parameters
    ----------
    steps : int
        ``M``: every X_i lies in ``-M..M``.
    columns : int
        ``d``, at least 2.
    linear : bool
        Whether first moments are among them.
    """
    # proof: l2-rotated-moments
    unpaired = columns * (columns - 1) // 2 % 2
    return steps**4 * (columns**2 + (3 * columns - unpaired if linear else 0))


def rotated_opposed(steps: int, *, linear: bool) -> int:
    """Return how far two records' rotated moments point away from each other; `replaced_rows` has it."""
    # proof: l2-rotated-moments
    return steps**4 if linear else 0


def two_column_moments(steps: int) -> int:
    r"""Return the largest squared norm of one record's moments of two columns, with linear terms: 200 M^4.

    Parameters
    ----------
    steps : int
        ``M``: both X_i lie in ``-M..M``.
    """
    # proof: l2-two-columns
    return 200 * steps**4


def two_column_opposed(steps: int) -> int:
    """Return how far two records' moments of two columns point away from each other, :math:`81 M^4 / 4`."""
    # proof: l2-two-columns
    return -(-81 * steps**4 // 4)
