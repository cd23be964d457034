"""The public bins of a histogram: intervals in order, and single values that have a bin of their own.

A bin holds its lower edge and not its upper edge, but for the last, which holds both. An atom is a value with
a bin of its own; it divides the bin that it lies in, and no other bin holds it:

    edges 0, 10, 20 and atom 5:  [0, 5)  {5}  (5, 10)  [10, 20]

A value beyond the outer edges counts as that edge, so that every number has exactly one bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Self, TypedDict

from suffice.pipeline.terms.declaration.exact_numbers import format_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FEWEST_BINS, MOST_BINS = 2, 4096
COARSE = Fraction(1, 100)
"""Of the range, in the narrowest bin: quantiles of what heaps up in a tenth of it are in ten bins then."""


class WrittenBins(TypedDict):
    """Edges and atoms as text."""

    edges: list[str]
    atoms: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """One bin.

    Parameters
    ----------
    begins, ends : Fraction
        Its edges; equal for an atom.
    holds_lower, holds_upper : bool
        Whether they are in it.
    """

    begins: Fraction
    ends: Fraction
    holds_lower: bool
    holds_upper: bool

    @property
    def lower(self) -> float:
        """Its lower edge, as the nearest number in float64."""
        return float(self.begins)

    @property
    def upper(self) -> float:
        """Its upper edge, as the nearest number in float64."""
        return float(self.ends)

    @property
    def is_atom(self) -> bool:
        """Whether it holds a single value."""
        return self.begins == self.ends

    @property
    def label(self) -> str:
        """What it is called: ``[0, 5)``, and ``{5}`` for an atom."""
        if self.is_atom:
            return f"{{{format_number(self.begins)}}}"
        opens, closes = "[" if self.holds_lower else "(", "]" if self.holds_upper else ")"
        return f"{opens}{format_number(self.begins)}, {format_number(self.ends)}{closes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramBins:
    """The bins of a histogram, in order.

    Parameters
    ----------
    edges : tuple of Fraction
        Increasing: one more than there are bins before atoms divide them.
    atoms : tuple of Fraction
        Increasing, each from the first edge to the last.

    Raises
    ------
    ValueError
        Naming the rule that edges or atoms break.

    Examples
    --------
    >>> bins = HistogramBins(edges=(Fraction(0), Fraction(10), Fraction(20)), atoms=(Fraction(5),))
    >>> bins.labels
    ('[0, 5)', '{5}', '(5, 10)', '[10, 20]')
    """

    edges: tuple[Fraction, ...]
    atoms: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        if len(self.edges) < 2 or any(after <= before for before, after in pairwise(self.edges)):
            message = "the edges of bins are two numbers or more, each above the one before it"
            raise ValueError(message)
        if any(after <= before for before, after in pairwise(self.atoms)):
            message = "each atom is above the one before it"
            raise ValueError(message)
        if self.atoms and not self.edges[0] <= self.atoms[0] <= self.atoms[-1] <= self.edges[-1]:
            message = "atoms lie from the first edge of the bins to the last"
            raise ValueError(message)
        if not FEWEST_BINS <= len(self) <= MOST_BINS:
            message = f"a histogram has {FEWEST_BINS} to {MOST_BINS} bins, atoms among them, not {len(self)}"
            raise ValueError(message)

    def __len__(self) -> int:
        return len({*self.edges, *self.atoms}) - 1 + len(self.atoms)

    def __iter__(self) -> Iterator[Bin]:
        return iter(_listed(self))

    @property
    def labels(self) -> tuple[str, ...]:
        """What the bins are called, in order."""
        return tuple(each.label for each in self)

    @property
    def lower(self) -> tuple[float, ...]:
        """Their lower edges, in order, as the nearest numbers in float64."""
        return tuple(each.lower for each in self)

    @property
    def upper(self) -> tuple[float, ...]:
        """Their upper edges, in order; of an atom the value itself."""
        return tuple(each.upper for each in self)

    @property
    def is_atom(self) -> tuple[bool, ...]:
        """Which of them hold a single value."""
        return tuple(each.is_atom for each in self)

    @property
    def narrowest(self) -> Fraction:
        """The width of the narrowest bin, before atoms divide any."""
        return min(after - before for before, after in pairwise(self.edges))

    @property
    def are_coarse(self) -> bool:
        """Whether even the narrowest bin takes more than `COARSE` of the range."""
        return self.narrowest > COARSE * (self.edges[-1] - self.edges[0])

    def position(self, value: Fraction) -> int:
        """Return the position of the bin that a value lies in; beyond an outer edge that of the edge.

        The definition; rows are read by ``BinReader``, which gives the same.
        """
        value = min(max(value, self.edges[0]), self.edges[-1])
        begun = [
            position
            for position, each in enumerate(self)
            if each.begins < value or (each.begins == value and each.holds_lower)
        ]
        return begun[-1]

    def written(self) -> WrittenBins:
        """Write edges and atoms as texts."""
        return {"edges": list(map(format_number, self.edges)), "atoms": list(map(format_number, self.atoms))}

    @classmethod
    def parse(cls, written: WrittenBins | Mapping[str, Sequence[str]]) -> Self:
        """Read what `written` gives."""
        return cls(
            edges=tuple(map(Fraction, written["edges"])), atoms=tuple(map(Fraction, written.get("atoms", ())))
        )


@lru_cache(maxsize=64)
def _listed(bins: HistogramBins) -> tuple[Bin, ...]:
    atoms = set(bins.atoms)
    points = sorted({*bins.edges, *atoms})
    listed = []
    for begins, ends in pairwise(points):
        if begins in atoms:
            listed.append(Bin(begins=begins, ends=begins, holds_lower=True, holds_upper=True))
        is_last = ends == points[-1]
        listed.append(
            Bin(
                begins=begins,
                ends=ends,
                holds_lower=begins not in atoms,
                holds_upper=is_last and ends not in atoms,
            )
        )
    if points[-1] in atoms:
        listed.append(Bin(begins=points[-1], ends=points[-1], holds_lower=True, holds_upper=True))
    return tuple(listed)
