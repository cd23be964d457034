r"""Weighted sums of priors: ``0.5*Point(0.3) + 0.5*Beta(1, 1)``.

.. math:: \pi(\theta) = \sum_k w_k \, \pi_k(\theta) \Big/ \sum_k w_k \qquad (1)

Symbols:

- w_k, pi_k: ``WeightedSum.weights`` > 0 and ``WeightedSum.components``

Method. Bookkeeping alone: what components are and where they have mass is checked where the sum is used.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

from suffice.errors import PriorError


class Summand:
    """What can be weighed and added up as a prior."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy's numbers leave multiplication to this class

    def __rmul__(self, weight: float) -> WeightedSum:
        """Weigh it: ``0.5 * Beta(1, 1)``."""
        return WeightedSum(weight, self)

    __mul__ = __rmul__

    def __add__(self, other: object) -> WeightedSum:
        """Add another, a summand of weight 1 where it has none: a distribution of ``scipy.stats`` as well."""
        return WeightedSum(*_terms(self), *_terms(other))

    def __radd__(self, other: object) -> Summand:
        """Add it to what cannot be added by itself; to 0, with which ``sum`` begins, it is what it was."""
        if isinstance(other, int) and other == 0:
            return self
        return WeightedSum(*_terms(other), *_terms(self))


@dataclass(frozen=True, slots=True, init=False)
class WeightedSum(Summand):
    """A weighted sum of any priors of one kind of parameter: ``0.5*Point(0.3) + 0.5*Beta(1, 1)``.

    Written as a sum, or ``WeightedSum(0.5, Point(0.3), 0.5, scipy.stats.beta(1, 1))``.

    Parameters
    ----------
    *parts
        Weights above 0 and the prior that each is of, by turns. Weights need not sum to 1: a component's
        prior probability is its weight over the sum of all.

    Raises
    ------
    PriorError
        Where weights and priors do not come by turns, or a weight is no finite number above 0.
    """

    weights: tuple[float, ...]
    components: tuple[Any, ...]

    def __init__(self, *parts: Any) -> None:
        weights, components = parts[::2], parts[1::2]
        if not components or len(weights) != len(components):
            message = (
                "WeightedSum needs weights and priors in turn: WeightedSum(0.3, Point(0), 0.7, Beta(9, 1))"
            )
            raise PriorError(message)
        object.__setattr__(self, "weights", tuple(map(_checked, weights)))
        object.__setattr__(self, "components", components)
        if not math.fsum(weight / max(self.weights) for weight in self.weights) > 0.0:
            message = "weighted sum of priors: the weights are too far apart to be added up"
            raise PriorError(message)

    def __rmul__(self, weight: float) -> WeightedSum:
        """Weigh the whole sum, whose own weights are then shares of it."""
        return WeightedSum(weight, self)

    __mul__ = __rmul__

    def __str__(self) -> str:
        return " + ".join(
            f"{_written(weight)}*{f'({part})' if isinstance(part, WeightedSum) else part}"
            for weight, part in zip(self.weights, self.components, strict=True)
        )

    @property
    def shares(self) -> tuple[float, ...]:
        """Prior probabilities of the components, by (1)."""
        largest = max(self.weights)
        relative = [weight / largest for weight in self.weights]
        return tuple(weight / math.fsum(relative) for weight in relative)


def _terms(prior: object) -> tuple[Any, ...]:
    """Return weights and priors by turns."""
    if isinstance(prior, WeightedSum):
        return tuple(each for pair in zip(prior.weights, prior.components, strict=True) for each in pair)
    return 1.0, prior


def _checked(weight: object) -> float:
    is_number = isinstance(weight, numbers.Real) and not isinstance(weight, bool)
    if not is_number or not 0.0 < weight < math.inf:  # type: ignore[operator]
        message = f"weighted sum of priors: every weight must be a finite number above 0, not {weight!r}"
        raise PriorError(message)
    return float(weight)  # type: ignore[arg-type]


def _written(weight: float) -> str:
    return repr(weight) if not weight.is_integer() or weight >= 1e15 else str(int(weight))
