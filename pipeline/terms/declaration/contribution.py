"""How many rows of one unit enter one statistic at most: in all, and in one cell."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    r"""What bounds the rows of a unit that enter a statistic.

    With K rows a unit, k0 of them in a cell and C cells, a unit that has :math:`k_c` rows in cell c keeps

    .. math:: k_c \le k_0, \quad \sum_c k_c \le m = \min(K, k_0 C) .

    Parameters
    ----------
    max_rows : int
        K, at least 1.
    max_rows_per_cell : int or None
        k0, from 1 to K - 1; None where K is the bound of a cell, too.
    n_cells : int
        C, the cells of the statistic.
    """

    max_rows: int
    max_rows_per_cell: int | None = None
    n_cells: int = 1

    @property
    def rows(self) -> int:
        """``m``, the most rows of a unit, over all cells of the statistic."""
        # proof: rows-in-cells
        return min(self.max_rows, self.rows_in_cell * self.n_cells)

    @property
    def rows_in_cell(self) -> int:
        """The most rows of a unit in one cell."""
        return self.max_rows if self.max_rows_per_cell is None else self.max_rows_per_cell

    @property
    def sum_of_squares(self) -> int:
        r"""The largest sum of squares of a unit's rows, by cell.

        .. math:: \sum_c k_c^2 \le \lfloor m / k_0 \rfloor k_0^2 + (m \bmod k_0)^2
        """
        # proof: rows-in-cells
        full, rest = divmod(self.rows, self.rows_in_cell)
        return full * self.rows_in_cell**2 + rest**2

    def __str__(self) -> str:
        in_cell = f", at most {self.rows_in_cell} in a cell" if self.rows_in_cell < self.rows else ""
        return f"at most {self.rows} of each unit{in_cell}"
