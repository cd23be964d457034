r"""How far an answer moves under every prior of a stated neighbourhood: Bayesian robustness, in closed form.

Model. A parameter :math:`\theta = h(x)` has on the line the prior density f; what was released has the
likelihood l, with everything latent summed out. With :math:`Z = \int f l`

.. math:: r(x) = l(x) / Z, \qquad p(x) = f(x) \, r(x), \qquad F(c) = \int_{x \le c} p. \qquad (1)

Three neighbourhoods of f, each with a number that says how wide it is:

.. math::
    \{(1 - \epsilon) f + \epsilon q : q \text{ any distribution}\} \qquad (2)

    \{g : 1 / k \le g / f \le k \text{ but for one factor}\} \qquad (3)

    \{f(x - s w) : |s| \le S\} \qquad (4)

with w the prior's standard deviation on the line. Under (2) the extremes are attained where q is a point:
with :math:`\theta_0` the mean under f,

.. math::
    \sup E \theta = \max_x \frac{(1 - \epsilon) \theta_0 + \epsilon \, r(x) h(x)}
    {(1 - \epsilon) + \epsilon \, r(x)}, \qquad
    \sup F(c) = \frac{(1 - \epsilon) F(c) + \epsilon R}{(1 - \epsilon) + \epsilon R}, \quad
    R = \max_{x \le c} r(x), \qquad (5)

and :math:`\inf F(c) = (1 - \epsilon) F(c) / ((1 - \epsilon) + \epsilon \max_{x > c} r(x))`. Under (3) they
are attained where g / f is k on one side of a point and 1 / k on the other:

.. math::
    \sup F(c) = \frac{k F(c)}{k F(c) + (1 - F(c)) / k}, \qquad
    \sup E \theta = \max_c \frac{k^{-1} \int_{x \le c} h p + k \int_{x > c} h p}
    {k^{-1} F(c) + k (1 - F(c))}. \qquad (6)

Under (4) the posterior is worked out again at `SHIFTS` values of s.

Symbols:

- x, h(x): ``position``, ``parameter``, (n_nodes,), ascending
- f: ``prior``, masses of the nodes; r: ``ratio``; p: ``mass``; F: ``below``
- epsilon: ``share``, in 0..1; k: ``factor``, >= 1; S: ``most``, >= 0

Method. Sums over nodes; F lies half a node's mass below its end. Where the extreme of a mean is at the last
node towards an end without a bound, it is infinite: the likelihood does not fall there, as that of a rate
where there may be no record. A quantile beyond the last node is the parameter's bound.

References
----------
Berger, Berliner. Robust Bayes and empirical Bayes analysis with epsilon-contaminated priors. Ann. Statist.
14, 1986 (2, 5). Sivaganesan, Berger. Ranges of posterior measures for priors with unimodal contaminations.
Ann. Statist. 17, 1989. DeRobertis, Hartigan. Bayesian inference using intervals of measures. Ann. Statist. 9,
1981 (3, 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.typing import Floats

SHIFTS = 33
"""Odd, so that the prior itself is among them."""
_MOVED = 1e-9
"""Of a range, what is more than rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterOnNodes:
    """One parameter of one cell: prior and likelihood at the nodes of a rule of quadrature.

    Attributes
    ----------
    position, parameter : ndarray of shape (n_nodes,), float64
        Ascending; in the parameter's unit.
    weight : ndarray of shape (n_nodes,), float64
        Of the rule.
    log_likelihood : ndarray of shape (n_nodes,), float64
        But for a constant.
    log_prior : callable
        Positions (n,) -> log densities on the line (n,), but for a constant.
    ends : tuple of (float, float)
        What the parameter lies between; infinite where there is no bound.
    """

    position: Floats
    parameter: Floats
    weight: Floats
    log_likelihood: Floats
    log_prior: Callable[[Floats], Floats]
    ends: tuple[float, float]

    def prior(self, shift: float = 0.0) -> Floats:
        """Return the masses of the prior, moved along the line; they add up to 1."""
        return _normalised(self.log_prior(self.position - shift) + np.log(self.weight))

    def mass(self, shift: float = 0.0) -> Floats:
        """Return the masses of the posterior under it."""
        log_mass = self.log_prior(self.position - shift) + np.log(self.weight) + self.log_likelihood
        return _normalised(log_mass)

    def is_resolved(self, shift: float) -> bool:
        """Return whether a moved prior has any mass where the likelihood is known."""
        return bool(np.any(np.isfinite(self.log_prior(self.position - shift) + self.log_likelihood)))

    @property
    def ratio(self) -> Floats:
        """The likelihood over the evidence, (1)."""
        likelihood = np.exp(self.log_likelihood - np.max(self.log_likelihood))
        return likelihood / np.sum(self.prior() * likelihood)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """What posteriors under the priors of a neighbourhood lie between.

    Attributes
    ----------
    mean : tuple of (float, float)
        The lowest and the highest posterior mean.
    least, most : ndarray of shape (n_nodes,), float64
        The lowest and the highest probability of a parameter up to that of a node.
    parameter : ndarray of shape (n_nodes,), float64
    ends : tuple of (float, float)
        What the parameter lies between.
    """

    mean: tuple[float, float]
    least: Floats
    most: Floats
    parameter: Floats
    ends: tuple[float, float]

    @classmethod
    def over(cls, several: Sequence[Self]) -> Self:
        """Return what several posteriors lie between, which may be known at other nodes."""
        parameter = np.unique(np.concatenate([each.parameter for each in several]))
        least, most = (
            [
                np.interp(parameter, each.parameter, of, left=0.0, right=1.0)
                for each, of in zip(several, below, strict=True)
            ]
            for below in ([each.least for each in several], [each.most for each in several])
        )
        return cls(
            mean=(min(each.mean[0] for each in several), max(each.mean[1] for each in several)),
            least=np.min(least, axis=0),
            most=np.max(most, axis=0),
            parameter=parameter,
            ends=several[0].ends,
        )

    def quantile(self, level: float) -> tuple[float, float]:
        """Return the lowest and the highest quantile of a level."""
        # A quantile is lowest where F is highest.
        return self._inverse(self.most, level), self._inverse(self.least, level)

    def above(self, value: float) -> tuple[float, float]:
        """Return the lowest and the highest probability that the parameter is above a value."""
        most, least = (
            float(np.interp(value, self.parameter, of, left=0.0, right=1.0)) for of in (self.most, self.least)
        )
        return 1.0 - most, 1.0 - least

    def _inverse(self, below: Floats, level: float) -> float:
        place = int(np.searchsorted(below, level))
        if place == 0 or place == len(below):
            return self.ends[min(place, 1)]
        low, high = below[place - 1 : place + 1]
        share = (level - low) / (high - low)
        return float(self.parameter[place - 1] + share * (self.parameter[place] - self.parameter[place - 1]))


def contaminated(cell: ParameterOnNodes, share: float) -> Ranges:
    """Return the ranges under (2)."""
    ratio, below, kept = cell.ratio, _below(cell.mass()), 1.0 - share
    mean = float(np.sum(cell.mass() * cell.parameter))
    # (5): a point of prior mass epsilon at each of the nodes.
    means = (kept * mean + share * ratio * cell.parameter) / (kept + share * ratio)
    highest_up_to = np.maximum.accumulate(ratio)
    highest_from = np.maximum.accumulate(ratio[::-1])[::-1]
    return Ranges(
        mean=_extremes(means, mean, cell.ends),
        least=kept * below / (kept + share * highest_from),
        most=(kept * below + share * highest_up_to) / (kept + share * highest_up_to),
        parameter=cell.parameter,
        ends=cell.ends,
    )


def within_factor(cell: ParameterOnNodes, factor: float) -> Ranges:
    """Return the ranges under (3)."""
    return _within_factor(cell.mass(), cell.parameter, factor, cell.ends)


def shifted(cell: ParameterOnNodes, most: float) -> Ranges:
    """Return the ranges under (4), at `SHIFTS` of its priors."""
    prior = cell.prior()
    middle = float(np.sum(prior * cell.position))
    width = float(np.sqrt(np.sum(prior * (cell.position - middle) ** 2)))
    shifts = np.linspace(-most, most, SHIFTS) * width
    if not all(cell.is_resolved(shift) for shift in shifts):
        # A prior moved to where the likelihood is not known: nothing is ruled out.
        nothing, everything = np.zeros(len(cell.parameter)), np.ones(len(cell.parameter))
        return Ranges(
            mean=cell.ends, least=nothing, most=everything, parameter=cell.parameter, ends=cell.ends
        )
    masses = np.stack([cell.mass(shift) for shift in shifts])
    means = masses @ cell.parameter
    below = np.stack([_below(mass) for mass in masses])
    return Ranges(
        mean=(float(np.min(means)), float(np.max(means))),
        least=np.min(below, axis=0),
        most=np.max(below, axis=0),
        parameter=cell.parameter,
        ends=cell.ends,
    )


def draws_within_factor(draws: Floats, factor: float) -> Ranges:
    """Return the ranges under (3), given ascending draws of the posterior, (n_draws,)."""
    mass = np.full(len(draws), 1.0 / len(draws))
    return _within_factor(mass, draws, factor, (float(draws[0]), float(draws[-1])))


def _within_factor(mass: Floats, parameter: Floats, factor: float, ends: tuple[float, float]) -> Ranges:
    below = _below(mass)
    # (6), with the point between any two nodes; sums from either end, as a difference would lose small ones.
    up_to, first = np.cumsum(mass), np.cumsum(mass * parameter)
    rest, last = (np.append(np.cumsum(of[:0:-1])[::-1], 0.0) for of in (mass, mass * parameter))
    highest = (first / factor + last * factor) / (up_to / factor + rest * factor)
    lowest = (first * factor + last / factor) / (up_to * factor + rest / factor)
    return Ranges(
        mean=(float(np.min(lowest)), float(np.max(highest))),
        least=below / factor / (below / factor + (1.0 - below) * factor),
        most=below * factor / (below * factor + (1.0 - below) / factor),
        parameter=parameter,
        ends=ends,
    )


def _extremes(means: Floats, mean: float, ends: tuple[float, float]) -> tuple[float, float]:
    """Return the extremes of means, of which that without a point is one."""
    lowest, highest = min(mean, float(np.min(means))), max(mean, float(np.max(means)))
    moved = _MOVED * (highest - lowest)
    is_bounded = np.isfinite(ends)
    return (
        -np.inf if means[0] <= lowest and mean - lowest > moved and not is_bounded[0] else lowest,
        np.inf if means[-1] >= highest and highest - mean > moved and not is_bounded[1] else highest,
    )


def _below(mass: Floats) -> Floats:
    """F at the nodes."""
    return np.cumsum(mass) - mass / 2.0


def _normalised(log_mass: Floats) -> Floats:
    mass = np.exp(log_mass - np.max(log_mass))
    return np.asarray(mass / np.sum(mass), dtype=np.float64)
