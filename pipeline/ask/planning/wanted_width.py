"""What a plan is to reach, as people write it, and the epsilon that was found for it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon

if TYPE_CHECKING:
    from fractions import Fraction

    from suffice.pipeline.ask.planning.counts_beside import CountsBeside

MASS = 0.95
"""Of the intervals."""
_FORM = re.compile(
    r"(?P<statistic>\S+)\s+(?P<parameter>\w+)(?:\[(?P<category>.+)\])?\s+width\s+(?P<width>\S+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """How narrow which posterior is to be.

    Attributes
    ----------
    statistic, parameter : str
    category : str or None
        The category that a ``probability`` is of.
    width : float, > 0
        Of the 95 % credible interval, in the parameter's unit.
    """

    statistic: str
    parameter: str
    category: str | None
    width: float

    def __str__(self) -> str:
        category = "" if self.category is None else f"[{self.category}]"
        return f"{self.statistic} {self.parameter}{category} width {self.width:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededEpsilon:
    """The smallest epsilon that reaches a target; made by ``smallest_epsilon``.

    Attributes
    ----------
    target : Target
    epsilon : Fraction
        Of the whole release, in nats, at the spec's shares; a multiple of 10^-6.
    epsilon_standard_error : float
        Its Monte Carlo error, from that of the width: other simulations give another median.
    statistic_epsilon : Fraction
        The statistic's part of it.
    n : int
        Records in a cell.
    prior, n_prior : str
        Of the parameters, and of a private N; a number where N is public.
    width, width_standard_error : float
        The median width over the simulations at this epsilon, and its Monte Carlo error.
    width_without_noise : float
        The median width that the exact statistics would give: no epsilon reaches less.
    simulations : int
    counts : CountsBeside or None
        What counting the records that clipping moved adds to epsilon; None where the family counts none.
    """

    target: Target
    epsilon: Fraction
    epsilon_standard_error: float
    statistic_epsilon: Fraction
    n: int
    prior: str
    n_prior: str
    width: float
    width_standard_error: float
    width_without_noise: float
    simulations: int
    counts: CountsBeside | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what ``suffice plan --target --json`` prints as ``target``."""
        return {
            "statistic": self.target.statistic,
            "parameter": self.target.parameter,
            **({} if self.target.category is None else {"category": self.target.category}),
            "width": self.target.width,
            "mass": MASS,
            "n": self.n,
            "prior": self.prior,
            "n_prior": self.n_prior,
            "simulations": self.simulations,
            "epsilon": format_epsilon(self.epsilon),
            "epsilon_standard_error": self.epsilon_standard_error,
            "statistic_epsilon": format_epsilon(self.statistic_epsilon),
            "median_width": self.width,
            "median_width_standard_error": self.width_standard_error,
            "median_width_without_noise": self.width_without_noise,
            **({} if self.counts is None else {"count_clipped": self.counts.to_dict()}),
        }

    def __str__(self) -> str:
        return (
            f"target {self.target}: epsilon {format_epsilon(self.epsilon)} "
            f"({self.target.statistic}'s part is {format_epsilon(self.statistic_epsilon)}; standard error "
            f"{self.epsilon_standard_error:.2g})\n"
            f"with {self.n} records a cell, prior {self.prior}, N: {self.n_prior}\n"
            f"median width of the 95 % interval: {self.width:.4g} (standard error "
            f"{self.width_standard_error:.2g}, {self.simulations} simulations); without noise "
            f"{self.width_without_noise:.4g}" + ("" if self.counts is None else f"\n{self.counts}")
        )


def parse_target(text: str) -> Target:
    """Read ``STATISTIC PARAMETER width NUMBER``; for categories ``carrier probability[UA] width 0.01``.

    Raises
    ------
    UsageError
        Where the text is no such target.
    """
    found = _FORM.fullmatch(text.strip())
    try:
        width = float(found["width"]) if found else math.nan
    except ValueError:
        width = math.nan
    if found is None or not 0.0 < width < math.inf:
        message = (
            f"target {text!r}: write STATISTIC PARAMETER width NUMBER, as 'arr_delay mean width 2' or "
            "'carrier probability[UA] width 0.01'"
        )
        raise UsageError(message)
    return Target(
        statistic=found["statistic"], parameter=found["parameter"], category=found["category"], width=width
    )
