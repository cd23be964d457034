"""What every study of a mechanism returns: a record that says that it is not a release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

LABEL = "not a release"

Relation = Literal["add_or_remove_one", "replace_one"]
"""Neighbours: one record more or fewer, or one record replaced. The names are those of a spec."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotARelease:
    """A study's output. No ledger was charged, its randomness has a seed, and its noise is of floats.

    Attributes
    ----------
    label : str
        Always "not a release". ``str`` and ``csv`` begin with it.
    """

    label: str = field(default=LABEL, init=False)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a reader has to know beside the label, a sentence each."""
        return ()

    @property
    def columns(self) -> Mapping[str, NDArray[np.generic]]:
        """The output as a table: arrays of one length, by name."""
        raise NotImplementedError

    def csv(self) -> str:
        """Return the table as CSV: the label and the caveats as comments, a line of names, the rows."""
        columns = self.columns
        lines = [f"# {line}" for line in (self.label, *self.caveats)]
        lines.append(",".join(columns))
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        lines.extend(",".join(str(value) for value in row) for row in rows)
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        """Return the label, the caveats and the table."""
        return "\n".join([self.label, *self.caveats, *self.csv().splitlines()[1 + len(self.caveats) :]])


def check_positive(**numbers: float) -> None:
    """Refuse a number that is not finite and above 0, by its name."""
    for name, number in numbers.items():
        if not (np.isfinite(number) and number > 0):
            raise UsageError(f"{name} must be a finite number above 0")


def check_counts(**counts: float | NDArray[np.number]) -> None:
    """Refuse counts that are not finite or below 0, by their name."""
    for name, count in counts.items():
        values = np.asarray(count, dtype=np.float64)
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise UsageError(f"{name} must be finite and at least 0")
