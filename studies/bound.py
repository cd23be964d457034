"""A bound that says whether it is a guarantee; only a guarantee turns into a privacy parameter."""

from __future__ import annotations

from dataclasses import dataclass

from suffice.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A number of Dimitrakakis et al., and what it rests on.

    Attributes
    ----------
    value : float
    is_guarantee : bool
        False for everything that rests on Assumption 2: Theorems 1(ii) and 2(ii) are false as stated.
    rests_on : str
    """

    value: float
    is_guarantee: bool
    rests_on: str

    def guaranteed(self) -> float:
        """Return the value of a guarantee; only such a value may enter a privacy parameter.

        Raises
        ------
        UsageError
            Where the bound is no guarantee.
        """
        if not self.is_guarantee:
            message = f"{self.rests_on}: not a guarantee, so it gives no privacy parameter; use Assumption 1"
            raise UsageError(message)
        return self.value


def interval_of(
    parameters: dict[str, tuple[float, float]], name: str, low: float = 0.0
) -> tuple[float, float]:
    """Return the declared interval of a parameter.

    Raises
    ------
    UsageError
        Where it is missing, empty or reaches below `low`.
    """
    found = parameters.get(name)
    if found is None or not low <= found[0] <= found[1]:
        message = f"parameter {name}: a declared interval of at least {low:g} is needed"
        raise UsageError(message)
    return found
