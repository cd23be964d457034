"""How the total of N records depends on one parameter: all forms of it that releases and posteriors need."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.pipeline.math.distributions.shortest_intervals import CENTRAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.families.shared.clipped_record import ClippedRecord
    from suffice.pipeline.families.shared.parameter_space import ParameterSpace
    from suffice.pipeline.families.shared.sampled_parameter import Natural
    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.distributions.prior import Prior
    from suffice.pipeline.math.engines.jax_sums import Total
    from suffice.pipeline.math.engines.one_sum.noisy_sum import Marginal
    from suffice.pipeline.terms.statistics.beyond_bounds import Outside
    from suffice.pipeline.terms.statistics.block import Parameters
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSum:
    """Sums of a statistic with one sum.

    Attributes
    ----------
    n, total : ndarray, float64
        Rows, and the sum of T in T's unit.
    """

    n: Floats
    total: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class SumModel:
    """The total's distribution, and what is conjugate to it.

    Parameters
    ----------
    parameter : ParameterSpace
    prior : type
        Its conjugate prior.
    default_prior : callable
        The constants -> a prior that rests on them alone.
    update : callable
        A prior, sums, the constants -> the posterior given exact sums.
    marginal : callable
        A prior, the constants -> the distribution of the total given N, the parameter integrated out.
    log_likelihood : callable
        The parameter, sums, the constants -> the log likelihood but for what does not depend on the
        parameter; arrays broadcast.
    natural : callable
        The parameter, a logarithm, the constants -> its natural parameter and the log normaliser of a record,
        in exact numbers.
    in_jax : callable
        The parameter, N and the constants -> the distribution of the total given them, traced by JAX. What
        a record adds to the total is counted from T's lower bound.
    outside, limits : callable or None
    clipped_record : ClippedRecord or None
        As in ``Family``.
    interval : {"central", "highest-density"}
        As in ``Family``.
    """

    parameter: ParameterSpace
    prior: type[Prior]
    default_prior: Callable[[Parameters], Any]
    update: Callable[[Any, OneSum, Parameters], Distribution]
    marginal: Callable[[Any, Parameters], Marginal]
    log_likelihood: Callable[[Any, OneSum, Parameters], Floats]
    natural: Natural
    in_jax: Callable[[Any, Any, Parameters], Total]
    outside: Callable[[Floats, Parameters], Outside] | None = None
    clipped_record: ClippedRecord | None = None
    limits: Callable[[Parameters], tuple[float, float]] | None = None
    interval: str = CENTRAL


def bounds(parameters: Parameters) -> tuple[float, float]:
    """Return T's bounds on one record, in T's unit."""
    return float(parameters.lower or 0), float(parameters.upper or 0)


def exact_bounds(parameters: Parameters) -> tuple[Fraction, Fraction]:
    """Return T's bounds on one record, in T's unit, exactly."""
    return parameters.lower or Fraction(0), parameters.upper or Fraction(0)


def known_exactly(value: float | str, parameters: Parameters) -> Fraction:
    """Return a number that a model knows as `known` does, exactly."""
    return parameters.constants[value] if isinstance(value, str) else Fraction(value)


def known(value: float | str, parameters: Parameters) -> float:
    """Return a number that a model knows: stated itself, or by the name of the constant that it is."""
    return float(parameters.constants[value]) if isinstance(value, str) else value
