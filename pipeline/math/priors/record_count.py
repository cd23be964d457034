r"""Public priors of the number of records N, for releases in which N is private.

Models.

.. math:: \pi(N) = \frac{1}{(N + 1) \, H_{M + 1}}, \quad N = 0, \dots, M, \qquad (1)

.. math:: \pi(N) = \frac{1}{u - l + 1}, \quad N = l, \dots, u, \qquad (2)

or N known, with the harmonic number

.. math:: H_n = \sum_{k = 1}^n \frac 1 k = \psi(n + 1) + \gamma \qquad (3)

(DLMF 5.4.14). The first is nearly flat in log N: it prefers no order of magnitude.

Symbols:

- N: ``n``, whole numbers from 0 to 10^15, held in float64
- M: ``max``; l, u: ``lower`` and ``upper``

Method. Exact but for rounding. Draws of (1) invert its distribution function :math:`H_{N + 1} / H_{M + 1}` by
bisection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.priors.by_name import parse_call

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_N = 10**15
"""Counts are held in float64 here: beyond this bound neighbouring integers would merge."""


@dataclass(frozen=True, slots=True)
class Reciprocal:
    r"""Prior proportional to 1 / (N + 1) on 0..max.

    Parameters
    ----------
    max : int, >= 0
        The largest N; by default ``max_total_rows`` of the release.
    """

    max: int

    def __post_init__(self) -> None:
        _require_integer(self, "Reciprocal", "max")

    def __str__(self) -> str:
        return f"Reciprocal({self.max})"

    @property
    def support(self) -> tuple[int, int]:
        """Smallest and largest N."""
        return 0, self.max

    def log_prob(self, n: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log probability of every N; minus infinity outside of the support."""
        from scipy.special import digamma

        # H_(M + 1) by (3).
        log_total = np.log(digamma(self.max + 2.0) + np.euler_gamma)
        with np.errstate(divide="ignore", invalid="ignore"):
            # (1).
            log_prob = -np.log1p(n) - log_total
        return np.where(_inside(n, self.support), log_prob, -np.inf)

    def sample(self, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return independent draws, (size,): the least N whose cumulative probability is reached."""
        from scipy.special import digamma

        # The least N with H_(N + 1) >= U H_(M + 1).
        target = rng.random(size) * (digamma(self.max + 2.0) + np.euler_gamma)
        # H rises: bisection over whole numbers ends at the least N.
        low, high = np.zeros(size, dtype=np.int64), np.full(size, self.max, dtype=np.int64)
        while np.any(low < high):
            middle = (low + high) // 2
            reached = digamma(middle + 2.0) + np.euler_gamma >= target
            low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
        return low


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every N in lower..upper, both included, is equally likely."""

    lower: int
    upper: int

    def __post_init__(self) -> None:
        _require_integer(self, "Uniform", "lower")
        _require_integer(self, "Uniform", "upper")
        if self.lower > self.upper:
            message = f"Uniform: lower must be at most upper, not {self.lower} and {self.upper}"
            raise PriorError(message)

    def __str__(self) -> str:
        return f"Uniform({self.lower}, {self.upper})"

    @property
    def support(self) -> tuple[int, int]:
        """Smallest and largest N."""
        return self.lower, self.upper

    def log_prob(self, n: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log probability of every N; minus infinity outside of the support."""
        # (2).
        return np.where(_inside(n, self.support), -np.log(self.upper - self.lower + 1.0), -np.inf)

    def sample(self, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return independent draws, (size,)."""
        return rng.integers(self.lower, self.upper, size, endpoint=True)


@dataclass(frozen=True, slots=True)
class Fixed:
    """N is known."""

    n: int

    def __post_init__(self) -> None:
        _require_integer(self, "N", "n", "the fixed number")

    def __str__(self) -> str:
        return str(self.n)

    @property
    def support(self) -> tuple[int, int]:
        """Smallest and largest N."""
        return self.n, self.n

    def log_prob(self, n: NDArray[np.float64]) -> NDArray[np.float64]:
        """Zero at N; minus infinity elsewhere."""
        return np.where(_inside(n, self.support), 0.0, -np.inf)

    def sample(self, size: int, rng: np.random.Generator) -> NDArray[np.int64]:  # noqa: ARG002 - as the others
        """Return N as often as asked for, (size,)."""
        return np.full(size, self.n, dtype=np.int64)


NPrior: TypeAlias = Reciprocal | Uniform | Fixed


def parse_n_prior(text: str) -> NPrior:
    """Read a prior of N: ``Uniform(0, 2000)``, ``Reciprocal(1000000)`` or a fixed number such as ``500``.

    Raises
    ------
    PriorError
        When the text is none of these, or a value breaks a rule.
    """
    stripped = text.strip()
    if stripped.isascii() and stripped.isdigit() and len(stripped) <= len(str(LARGEST_N)):
        return Fixed(int(stripped))
    if not stripped[:1].isalpha():
        message = f"prior of N {text!r}: write a whole number, Uniform(lower, upper) or Reciprocal(max)"
        raise PriorError(message)
    name, arguments, keywords = parse_call(text, known=("Reciprocal", "Uniform"))
    kind: type[Reciprocal | Uniform] = Reciprocal if name == "Reciprocal" else Uniform
    try:
        return kind(*arguments, **keywords)  # type: ignore[arg-type]
    except TypeError:
        takes = "(max)" if kind is Reciprocal else "(lower, upper)"
        message = f"prior of N {text!r}: {name} takes exactly {takes}"
        raise PriorError(message) from None


def _require_integer(prior: NPrior, kind: str, field: str, name: str = "") -> None:
    """Refuse what is no integer in range, and make one of Python of NumPy's."""
    value = getattr(prior, field)
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or not 0 <= value <= LARGEST_N:
        message = f"{kind}: {name or field} must be an integer in 0..10^15, not {value!r}"
        raise PriorError(message)
    object.__setattr__(prior, field, int(value))


def _inside(n: NDArray[np.float64], support: tuple[int, int]) -> NDArray[np.bool_]:
    return (n >= support[0]) & (n <= support[1])
