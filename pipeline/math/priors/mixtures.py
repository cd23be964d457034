r"""Finite mixtures of conjugate priors, and the posteriors that they lead to.

Model. With weights :math:`w_k` and components :math:`p_k`,

.. math:: p(\theta) = \sum_k w_k \, p_k(\theta) \Big/ \sum_k w_k, \qquad (1)

.. math::
    p(\theta \mid y) = \sum_k r_k \, p_k(\theta \mid y), \qquad
    r_k \propto w_k \, p_k(y), \quad p_k(y) = \int p(y \mid \theta) \, p_k(\theta) \, d\theta : \qquad (2)

each component's posterior counts by its evidence. On the points :math:`\theta_i` of a grid a prior of a
number is normalised there,

.. math:: \pi_i = p(\theta_i) \Big/ \sum_j p(\theta_j). \qquad (3)

Priors that are spread over scales have inverse gamma or gamma components of concentration 3, the least whole
number that leaves a finite variance. The mean of a component, or of its reciprocal where it is a gamma, is
one of the :math:`v_j` of ``spread_scales`` times a public bound or its square.

Symbols:

- w_k, p_k: ``weights`` > 0 and ``components``
- theta_i, pi_i: ``points``, (n,), ascending, in the parameter's unit, and their shares

Method. Exact but for rounding; a share below e^-700 is refused, for it would be 0 in float64.

References
----------
Diaconis, Ylvisaker. Quantifying prior opinion. Bayesian Statistics 2, 1985.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions import spread_scales
from suffice.pipeline.math.distributions.distribution import Prior, written
from suffice.pipeline.math.distributions.gamma import Gamma, InverseGamma
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.distributions.weighted_sum import Summand
from suffice.pipeline.math.priors import by_name
from suffice.pipeline.math.priors.density import Density

if TYPE_CHECKING:
    from suffice.typing import Floats


_LEAST = -700.0
"""Logarithm of the least share of all points together that one point may have: less is 0 in float64."""
_LARGEST_BOUND = 1e150
_LARGEST_SCALE = 1e30


@dataclass(frozen=True, slots=True, init=False)
class Mixture(Summand):
    """A mixture of conjugate priors of one kind: ``Mixture(0.3, Beta(1, 9), 0.7, Beta(9, 1))``.

    Parameters
    ----------
    *parts
        Weights above 0 and the component that each is of, by turns. Weights need not sum to 1: a component's
        prior probability is its weight over the sum of all.

    Raises
    ------
    PriorError
        Where weights and priors do not come by turns, a weight is no finite number above 0, their sum is
        too large for a number, or components are not of one kind.
    """

    weights: tuple[float, ...]
    components: tuple[Prior, ...]

    def __init__(self, *parts: float | Prior) -> None:
        weights, components = parts[::2], parts[1::2]
        if not components or len(weights) != len(components):
            message = "Mixture needs weights and priors in turn: Mixture(0.3, Beta(1, 9), 0.7, Beta(9, 1))"
            raise PriorError(message)
        for weight in weights:
            is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
            if not is_number or not 0.0 < weight < math.inf:  # type: ignore[operator]
                message = f"Mixture: every weight must be a finite number above 0, not {weight!r}"
                raise PriorError(message)
        try:
            # (1) divides by this sum.
            math.fsum(weights)  # type: ignore[arg-type]
        except OverflowError:
            message = "Mixture: the weights are too large to be added up: only their ratios matter"
            raise PriorError(message) from None
        kind = type(components[0])
        if not issubclass(kind, Prior) or any(type(component) is not kind for component in components):
            message = (
                "Mixture: every component must be a conjugate prior, and all of one kind; sum up others, as "
                "0.5*Point(0.3) + 0.5*Beta(1, 1)"
            )
            raise PriorError(message)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "components", components)

    def __str__(self) -> str:
        parts = zip(self.weights, self.components, strict=True)
        return f"Mixture({', '.join(f'{weight!r}, {component}' for weight, component in parts)})"


@dataclass(frozen=True, slots=True, init=False)
class ScaleMixture(Mixture):
    r"""Mean and variance of a column within bounds, of any scale from a 7,900th of the half range to all.

    With h the half range, the :math:`v_j` and weights of ``spread_scales``, and 14 components

    .. math::
        v \sim \mathrm{InverseGamma}(3, 2 v_j h^2), \qquad
        m \mid v \sim \mathrm{Normal}\Bigl(\tfrac{lower + upper} 2, \sqrt{4 v / v_j}\Bigr)

    so that in each :math:`v_j h^2` is the mean of the variance, and the mean's standard deviation 2 h: within
    the bounds, to which posteriors restrict it, the mean is nearly even.

    Parameters
    ----------
    lower, upper : float
        Public bounds of the column, in its unit; of the logarithm for a lognormal one.

    Raises
    ------
    PriorError
        Where a bound is no finite number, or they are in the wrong order or too near or far for numbers.
    """

    lower: float
    upper: float

    def __init__(self, lower: float, upper: float) -> None:
        for name, bound in (("lower", lower), ("upper", upper)):
            is_number = not isinstance(bound, bool) and isinstance(bound, int | float)
            if not is_number or not abs(bound) <= _LARGEST_BOUND:
                message = f"ScaleMixture: {name} must be a number in -1e150..1e150, not {bound!r}"
                raise PriorError(message)
        # Halved before they are added: bounds up to 1e150 do not overflow.
        middle, half_range = lower / 2.0 + upper / 2.0, upper / 2.0 - lower / 2.0
        if not half_range >= 1.0 / _LARGEST_BOUND:
            message = f"ScaleMixture: lower must be below upper, not {lower!r} and {upper!r}"
            raise PriorError(message)
        parts: list[float | Prior] = []
        for weight, variance in zip(spread_scales.WEIGHTS, spread_scales.VARIANCES, strict=True):
            # E v = scale / (concentration - 1) = v_j h^2, and Var m = 4 E v / v_j = 4 h^2.
            scale = (spread_scales.CONCENTRATION - 1.0) * variance * half_range**2
            parts += [weight, NormalInverseGamma(middle, variance / 4.0, spread_scales.CONCENTRATION, scale)]
        Mixture.__init__(self, *parts)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    def __str__(self) -> str:
        return f"ScaleMixture({written(self.lower)}, {written(self.upper)})"

    def __repr__(self) -> str:
        return str(self)  # its 14 components follow


@dataclass(frozen=True, slots=True, init=False)
class SpreadScale(Mixture):
    r"""What ``SpreadInverseGamma`` and ``SpreadGamma`` share: the ten largest scales of ``spread_scales``.

    Attributes
    ----------
    upper : float
    rates : tuple of float
        :math:`2 v_j \cdot upper`, ascending: the components' second numbers. The first one of each is 3.
    """

    upper: float
    rates: tuple[float, ...]

    def __init__(self, kind: type[Gamma | InverseGamma], upper: float) -> None:
        is_number = not isinstance(upper, bool) and isinstance(upper, int | float)
        if not is_number or not 1.0 / _LARGEST_SCALE <= upper <= _LARGEST_SCALE:
            message = f"{type(self).__name__}: upper must be a number in 1e-30..1e30, not {upper!r}"
            raise PriorError(message)
        # E s = 2 v_j upper / (3 - 1) = v_j upper.
        rates = tuple(
            (spread_scales.CONCENTRATION - 1.0) * variance * upper for variance in spread_scales.LARGEST
        )
        parts: list[float | Prior] = []
        for weight, rate in zip(spread_scales.LARGEST_WEIGHTS, rates, strict=True):
            parts += [weight, kind(spread_scales.CONCENTRATION, rate)]
        Mixture.__init__(self, *parts)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "rates", rates)

    def __str__(self) -> str:
        return f"{type(self).__name__}({written(self.upper)})"

    def __repr__(self) -> str:
        return str(self)  # its ten components follow


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SpreadInverseGamma(SpreadScale):
    r"""A scale or a variance of any size from a 250,000th of a public bound to all of it.

    With the ten largest :math:`v_j` of ``spread_scales`` and their weights, a mixture of ten components

    .. math:: s \sim \mathrm{InverseGamma}(3, 2 v_j \cdot upper)

    in each of which :math:`v_j \cdot upper` is the mean of s.

    Parameters
    ----------
    upper : float, in 1e-30..1e30
        The public bound, in the unit of s.

    Raises
    ------
    PriorError
        Where the bound is no such number.
    """

    def __init__(self, upper: float) -> None:
        SpreadScale.__init__(self, InverseGamma, upper)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SpreadGamma(SpreadScale):
    """A rate whose reciprocal is of any size up to a public bound: ``SpreadInverseGamma`` of it.

    A mixture of ten components ``Gamma(3, 2 v_j upper)``.

    Parameters
    ----------
    upper : float, in 1e-30..1e30
        The public bound, in the unit of the reciprocal.

    Raises
    ------
    PriorError
        Where the bound is no such number.
    """

    def __init__(self, upper: float) -> None:
        SpreadScale.__init__(self, Gamma, upper)


_SPREAD: dict[str, tuple[type[Mixture], tuple[str, ...]]] = {
    "ScaleMixture": (ScaleMixture, ("lower", "upper")),
    "SpreadGamma": (SpreadGamma, ("upper",)),
    "SpreadInverseGamma": (SpreadInverseGamma, ("upper",)),
}
"""By name: mixtures that are written by their bounds, and what these are called."""
_OTHERS = ("Independent", "Mixture", "Point", "Points", "Truncated")
"""Priors that are no components of a mixture."""


def parse_mixture(text: str) -> Prior | Mixture | Density | by_name.Independent:
    """Read a prior, a mixture of conjugate ones or a density by name; nothing is evaluated.

    Raises
    ------
    PriorError
        Where the text is neither.
    """
    name, call = by_name.called_name(text)
    if name in _SPREAD:
        return _parse_spread(text, name)
    if call is None or name != "Mixture":
        return by_name.parse_one_component(text)
    parts: list[float | Prior] = []
    for node in call.args:
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if is_call and node.func.id in {*by_name.NAMES, *_SPREAD, *_OTHERS}:  # type: ignore[attr-defined]
            message = (
                f"Mixture: every component must be a conjugate prior, not {ast.unparse(node)}: sum up, as "
                "0.5*Point(0.3) + 0.5*Beta(1, 1)"
            )
            raise PriorError(message)
        parts.append(by_name.parse_prior(ast.unparse(node)) if is_call else by_name.parse_number(node, text))
    if call.keywords:
        message = f"prior {text!r}: Mixture takes weights and priors in turn, and no keywords"
        raise PriorError(message)
    return Mixture(*parts)


def _parse_spread(text: str, name: str) -> Mixture:
    kind, names = _SPREAD[name]
    _, arguments, keywords = by_name.parse_call(text, known=(name,))
    given = dict(zip(names, arguments, strict=False)) | keywords
    if len(given) != len(arguments) + len(keywords) or set(given) != set(names):
        message = f"prior {text!r}: {name} takes exactly ({', '.join(names)})"
        raise PriorError(message)
    return kind(**given)


def one_component(prior: object, purpose: str) -> Prior:
    """Return a conjugate prior that is no mixture.

    Raises
    ------
    PriorError
        Where it is a mixture or a density.
    """
    if isinstance(prior, Mixture):
        message = f"{purpose} takes no mixture of priors yet: give one of its components"
        raise PriorError(message)
    if not isinstance(prior, Prior):
        message = f"{purpose} takes a conjugate prior alone, not {prior}"
        raise PriorError(message)
    return prior


def canonical_prior(text: str) -> str:
    """Return the text of a prior of one number as releases state it: the same for every way to write it.

    Raises
    ------
    PriorError
        Where it is no prior of one number.
    """
    prior = parse_mixture(text)
    _densities(prior)
    return str(prior)


def log_prior_on_points(text: str, points: Floats) -> Floats:
    """Return the logarithms of a prior's shares of some points, which add up to 1.

    Parameters
    ----------
    text : str
        A conjugate prior, a mixture of such, or a density by its name.
    points : ndarray of shape (n,), float64
        In the parameter's unit, ascending.

    Returns
    -------
    ndarray of shape (n,), float64

    Raises
    ------
    PriorError
        Where it is no prior of one number, or its density at a point is 0 in float64, or infinite.
    """
    weights, densities = _densities(parse_mixture(text))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        parts = [
            np.log(weight) + _log_density(each, points)
            for weight, each in zip(weights, densities, strict=True)
        ]
        # (1), but for the sum of the weights, which cancels in (3).
        log_density = np.logaddexp.reduce(np.array(parts), axis=0)
    infinite = ~(log_density < np.inf)
    if infinite.any():
        message = f"prior {text}: its density is infinite at the grid's point {points[infinite][0]:.6g}"
        raise PriorError(message)
    highest = log_density.max()
    if highest > -np.inf:
        relative = log_density - highest
        # (3), about the highest density: no exponential overflows.
        shares: Floats = relative - np.log(np.sum(np.exp(relative)))
        if shares.min() >= _LEAST:
            return shares
    message = f"prior {text}: its density is 0 at the grid's point {points[log_density.argmin()]:.6g}"
    raise PriorError(message)


def _densities(prior: object) -> tuple[Floats, tuple[Density, ...]]:
    """Return weights and densities of a prior's components."""
    if isinstance(prior, Mixture):
        return np.array(prior.weights, dtype=np.float64), tuple(
            by_name.one_number(each) for each in prior.components
        )
    if isinstance(prior, Prior | Density):
        return np.ones(1), (by_name.one_number(prior),)
    message = f"prior {prior}: it is not of one number"
    raise PriorError(message)


def _log_density(density: Density, points: Floats) -> Floats:
    """Return log densities, of points outside of the support too."""
    # p is 0 outside of its support.
    inside = (points >= density.lower) & (points <= density.upper)
    log_density = np.full(points.shape, -np.inf)
    # Named densities have their normalisers: components add up as they are.
    log_density[inside] = density.log_density(points[inside])
    return log_density
