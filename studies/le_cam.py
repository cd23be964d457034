"""Le Cam's lower bound on the error of an adversary who sees one draw: Dimitrakakis et al., Appendix A."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from scipy import integrate, stats

from studies.bound import Bound, Quantity, number_of, numbers_of
from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


def le_cam(prior: tuple[str, float, float], x: Sequence[float], y: Sequence[float]) -> Bound:
    """Return Le Cam's lower bound on the expected distance of a guess of the data from one draw.

    Half of the distance of x and y times the overlap of their posteriors, by quadrature (Appendix A, Lemma
    8). A bound on an adversary's error from below, and no privacy parameter.

    Parameters
    ----------
    prior : ("gamma", shape, rate) or ("beta", a, b)
        Of the rate of exponential data, or of the probability of Bernoulli data; numbers above 0.
    x, y : sequence of float
        Data sets of one length: numbers of at least 0, or 0 and 1.

    Raises
    ------
    UsageError
        Where the prior or the data are not so.
    """
    kind, *numbers = prior
    if kind not in {"gamma", "beta"} or len(numbers) != 2:
        message = "prior: ('gamma', shape, rate) or ('beta', a, b) is needed"
        raise UsageError(message)
    first, second = (number_of(f"prior {kind}", value, above=0.0) for value in numbers)
    sets = numbers_of("x", x), numbers_of("y", y)
    if len(sets[0]) != len(sets[1]) or not sets[0]:
        message = "x, y: data sets of one length, of at least one record, are needed"
        raise UsageError(message)
    if any(value < 0.0 or (kind == "beta" and value not in {0.0, 1.0}) for data in sets for value in data):
        message = "x, y: Bernoulli data are 0 or 1, exponential data are at least 0"
        raise UsageError(message)
    sums, records = [math.fsum(data) for data in sets], len(sets[0])
    laws: list[Any]
    if kind == "gamma":
        laws = [stats.gamma(first + records, scale=1.0 / (second + total)) for total in sums]
    else:
        laws = [stats.beta(first + total, second + records - total) for total in sums]
    rho = math.fsum(abs(left - right) for left, right in zip(*sets, strict=True))
    return Bound(
        value=rho / 2.0 * _overlap(*laws),
        quantity=Quantity.DISTANCE,
        is_guarantee=True,
        rests_on="Le Cam's lemma",
    )


def _overlap(law: Any, other: Any) -> float:
    """Return the integral of the lesser of two densities, over the chances of one, where it is at most 1."""

    def share(chance: float) -> float:
        theta = law.ppf(chance)
        return math.exp(min(0.0, float(other.logpdf(theta) - law.logpdf(theta))))

    overlap, _ = integrate.quad(share, 0.0, 1.0, limit=400)
    return float(overlap)
