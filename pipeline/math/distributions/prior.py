"""What every conjugate prior is: a value of checked numbers, and its text.

Priors are written and parametrised as in NumPyro: positional or keyword arguments, checked on construction,
and ``parse_prior(str(prior)) == prior``. Every prior is proper: a cell may be empty, and an improper prior
would then leave an improper posterior.

Vectors are lists of numbers, matrices lists of their rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from suffice.errors import PriorError

if TYPE_CHECKING:
    from suffice.typing import Floats

Entries: TypeAlias = float | Sequence[float] | Sequence[Sequence[float]]


def freeze(prior: Prior) -> None:
    """Turn lists into tuples, so that a prior is a value, and refuse what holds no finite numbers."""
    for field in fields(prior):
        object.__setattr__(prior, field.name, _frozen(prior, field.name, getattr(prior, field.name)))


def _frozen(prior: Prior, name: str, value: object, depth: int = 0) -> object:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple) and depth < 2 and value:
        return tuple(_frozen(prior, name, entry, depth + 1) for entry in value)
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)
    try:
        finite = number and math.isfinite(float(value))  # type: ignore[arg-type]
    except OverflowError:
        finite = False
    if not finite:
        message = f"{type(prior).__name__}: {name} must hold finite numbers, not {value!r}"
        raise PriorError(message)
    return value.item() if isinstance(value, np.number) else value


def require_positive(prior: Prior, *names: str) -> None:
    """Refuse fields that are no single number above 0."""
    for name in names:
        value = getattr(prior, name)
        if isinstance(value, tuple) or value <= 0:
            message = (
                f"{type(prior).__name__}: {name} must be a number above 0 (the prior must be proper), "
                f"not {value!r}"
            )
            raise PriorError(message)


def vector_of(prior: Prior, name: str, size: int) -> Floats:
    """Return the vector (size,) that a field stands for: one number for all, or one each."""
    value = np.array(_regular(prior, name), dtype=np.float64)
    if value.shape not in {(), (size,)}:
        message = f"{type(prior).__name__}: {name} needs 1 or {size} numbers"
        raise PriorError(message)
    return np.broadcast_to(value, (size,)).copy()


def matrix_of(prior: Prior, name: str, size: int) -> Floats:
    """Return the matrix (size, size): a multiple of the identity, a diagonal, or a positive definite one."""
    value = np.array(_regular(prior, name), dtype=np.float64)
    kind = type(prior).__name__
    if value.shape not in {(), (size,), (size, size)}:
        message = f"{kind}: {name} needs 1 or {size} numbers, or {size} lists of {size}"
        raise PriorError(message)
    matrix: Floats = value if value.ndim == 2 else np.diag(np.broadcast_to(value, (size,)))
    symmetric = np.allclose(matrix, matrix.T, rtol=1e-9, atol=0.0)
    root = np.sqrt(np.abs(np.diag(matrix)))
    # Judged in units in which the diagonal is 1: columns may have very different ones.
    if not symmetric or root.min() == 0.0 or np.linalg.eigvalsh(matrix / root / root[:, None]).min() <= 0.0:
        message = f"{kind}: {name} must be symmetric and positive definite (the prior must be proper)"
        raise PriorError(message)
    return (matrix + matrix.T) / 2.0


def _regular(prior: Prior, name: str) -> Entries:
    value: Entries = getattr(prior, name)
    rows = [entry for entry in value if isinstance(entry, tuple)] if isinstance(value, tuple) else []
    if rows and (len(rows) != len(value) or len({len(row) for row in rows}) != 1):  # type: ignore[arg-type]
        message = f"{type(prior).__name__}: {name} is neither a number, a list nor a list of equal lists"
        raise PriorError(message)
    return value


@dataclass(frozen=True, slots=True)
class Prior:
    """A conjugate prior; every field is a finite number, and above 0 unless it is a ``loc``."""

    def __post_init__(self) -> None:
        for field in fields(self):
            require_number(self, field.name, getattr(self, field.name), positive=field.name != "loc")

    def __str__(self) -> str:
        values = ", ".join(written(getattr(self, field.name)) for field in fields(self))
        return f"{type(self).__name__}({values})"

    def _of_one_cell(self) -> dict[str, Any]:
        """The fields as arrays (1,)."""
        return {field.name: np.array([getattr(self, field.name)], dtype=np.float64) for field in fields(self)}


def require_number(prior: Prior, name: str, value: float, *, positive: bool) -> None:
    """Refuse what is no finite number, or no positive one where the prior would be improper.

    Raises
    ------
    PriorError
    """
    kind = type(prior).__name__
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"{kind}: {name} must be a number, not {value!r}"
        raise PriorError(message)
    try:
        finite = math.isfinite(float(value))
    except OverflowError:
        finite = False
    if not finite or (positive and float(value) <= 0.0):
        rule = "a finite number above 0 (the prior must be proper)" if positive else "a finite number"
        message = f"{kind}: {name} must be {rule}, not {value!r}"
        raise PriorError(message)


def written(value: object) -> str:
    """Return the text of a number, or of a list of numbers or lists."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, float) and not (value.is_integer() and abs(value) < 1e15):
        return repr(value)
    return str(int(value))  # type: ignore[call-overload]
