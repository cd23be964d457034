"""What inner loops take: numbers, and arrays of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ArgumentType:
    """What a loop takes: a number, or a C-contiguous array.

    Attributes
    ----------
    scalar : str
        As numba names it.
    dimensions : int
        0 for a number.
    is_written : bool
    """

    scalar: str
    dimensions: int = 0
    is_written: bool = False

    def __str__(self) -> str:
        """Return the word that stands for it in a signature in C."""
        array = f"[{self.dimensions}]" if self.dimensions else ""
        return f"{self.scalar}{array}{'!' if self.is_written else ''}"


int32, int64, uint8, uint64, float64, boolean = map(
    ArgumentType, ("int32", "int64", "uint8", "uint64", "float64", "boolean")
)


def read_only(scalar: ArgumentType, dimensions: int = 1) -> ArgumentType:
    """Return the type of an array that is read, C-contiguous."""
    return ArgumentType(scalar.scalar, dimensions)


def writable(scalar: ArgumentType, dimensions: int = 1) -> ArgumentType:
    """Return the type of an array that is written, C-contiguous."""
    return ArgumentType(scalar.scalar, dimensions, is_written=True)
