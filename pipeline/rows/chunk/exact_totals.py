"""The exact totals of a release: one object, opened once, by the mechanism alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.pipeline.rows.chunk.exact_sums import wipe_sums
from suffice.pipeline.rows.sources.exact_data import name_alone, refuse

if TYPE_CHECKING:
    from suffice.pipeline.rows.chunk.exact_sums import Sums


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
