r"""Hyperparameters of a panel on a lattice: what changes with the step of places, and what does not.

Method. ``panel`` and ``hyper_lattice``, over :math:`\theta` = (log d, log s, logit :math:`\rho`). Of steps of
the lattice one alone changes d. At each d recursions of all series, and what they say of the common walk, are
worked out once, at the s and :math:`\rho` that a normal approximation finds; evidence is that of propagation
times the integral over the common walk.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.field_lattice import FieldPoint, is_possible
from suffice.pipeline.math.engines.pooled.field_propagation import Tilted
from suffice.pipeline.math.engines.pooled.panel import Told

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.field_gaussian import Sites
    from suffice.pipeline.math.engines.pooled.panel import PanelModel, Places
    from suffice.pipeline.math.engines.pooled.panel_common import CommonPosterior
    from suffice.typing import Floats

_LOWEST, _HIGHEST = -9.0, 2.5
"""Of log d, over the logarithm of the scale of its hyperprior."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelPoint:
    """One point of the lattice.

    Attributes
    ----------
    theta : ndarray of shape (3,), float64
    jumps : float
        The share of steps that are.
    log_weight : float
        log p(theta | y), but for a constant.
    log_z : ndarray of shape (n_series,), float64
        Z of (1), but for the scale of M.
    outlying : ndarray of shape (n_series,), float64
        How probable it is that a place is an outlier.
    sites : Sites
    cavity_mean, cavity_variance : ndarray of shape (n_series,), float64
    level_mean, level_variance : ndarray of shape (n_levels,), float64
    """

    theta: Floats
    jumps: float
    log_weight: float
    log_z: Floats
    outlying: Floats
    sites: Sites
    cavity_mean: Floats
    cavity_variance: Floats
    level_mean: Floats
    level_variance: Floats

    @property
    def key(self) -> tuple[float, float]:
        """What recursions depend on: log d, and the share of jumps."""
        return float(self.theta[0]), self.jumps

    @property
    def of_field(self) -> FieldPoint:
        """The same as a point of a map without time."""
        return FieldPoint(
            theta=self.theta[1:],
            log_weight=self.log_weight,
            sites=self.sites,
            cavity_mean=self.cavity_mean,
            cavity_variance=self.cavity_variance,
            level_mean=self.level_mean,
            level_variance=self.level_variance,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AtStep:
    """What is known at one d, whatever s and rho are.

    Attributes
    ----------
    places : Places
    told : Told
    known : CommonPosterior
    sites : Sites
        From which propagation may start.
    """

    places: Places
    told: Told
    known: CommonPosterior
    sites: Sites


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelLattice:
    """What was worked out at each d, about one common walk.

    Attributes
    ----------
    model : PanelModel
    theta : ndarray of shape (2,), float64
        About where log s and logit rho are.
    common : ndarray of shape (n_times,), float64
    steps : dict of (float, float) to AtStep
        By log d and the share of jumps.
    """

    model: PanelModel
    theta: Floats
    common: Floats
    steps: dict[tuple[float, float], AtStep] = field(default_factory=dict)

    def is_possible(self, theta: Floats) -> bool:
        """Whether hyperpriors leave anything there."""
        return _LOWEST < theta[0] - np.log(self.model.step_scale) < _HIGHEST and is_possible(theta[1:])

    def _at_step(self, log_step: float, start: Sites | None) -> AtStep | None:
        key = log_step, self.model.jumps
        if key not in self.steps:
            places = self.model.places(float(np.exp(log_step)), self.common)
            result = places.propagated(self.theta, start)
            if result is None:
                return None
            told = Told.of(places, self.theta, result)
            known = self.model.common_walk.posterior(told.precision, told.linear)
            self.steps[key] = AtStep(places=places, told=told, known=known, sites=result.sites)
        return self.steps[key]

    def at(self, theta: Floats, near: PanelPoint | None) -> PanelPoint | None:
        """Propagate at one point, from what is known next to it."""
        at = self._at_step(float(theta[0]), None if near is None else near.sites)
        if at is None:
            return None
        result = at.places.propagated(theta[1:], at.sites if near is None else near.sites)
        if result is None:
            return None
        tilted = Tilted.of(
            at.places.measure, result.cavity_mean, result.cavity_variance, at.places.residuals(theta[1:])
        )
        log_evidence = result.log_evidence + at.places.log_scale + at.told.offset + at.known.log_integral
        return PanelPoint(
            theta=theta,
            jumps=self.model.jumps,
            log_weight=log_evidence + self.model.log_prior(theta),
            log_z=tilted.log_z,
            outlying=tilted.share[1] if len(tilted.share) > 1 else np.zeros(self.model.n_series),
            sites=result.sites,
            cavity_mean=result.cavity_mean,
            cavity_variance=result.cavity_variance,
            level_mean=result.field.level_mean,
            level_variance=result.field.level_variance,
        )
