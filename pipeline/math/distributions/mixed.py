r"""Mixed distributions of one parameter: point masses, and a density between them.

Model. With posterior probabilities :math:`c_k` of the atoms :math:`a_k` and a continuous distribution
function :math:`F_0` for the rest,

.. math:: F(x) = r F_0(x) + \sum_{a_k \le x} c_k, \qquad r = 1 - \sum_k c_k. \qquad (1)

Quantiles are the least values that have as much at or below them,

.. math:: Q(q) = \min \{x : F(x) \ge q\}, \qquad (2)

which is an atom for every q in a range as long as its probability. An interval is closed: it has an atom at
its end. A central one, :math:`[Q((1 - m) / 2), Q((1 + m) / 2)]`, has at least the probability m, and at most
(1 - m) / 2 lies beyond either end. So has the shortest,

.. math:: [Q(p), Q(p + m)] \text{ with the least } Q(p + m) - Q(p), \qquad (3)

with the density and the atoms of F alike: an atom is no higher than what is beside it, but narrower.

Symbols:

- a_k: ``atoms``, (n_atoms,), ascending, in the parameter's unit
- c_k: ``chance``, (n_cells, n_atoms); r: ``rest``, (n_cells,)
- F_0: ``continuous``

Method. As exact as the continuous part; probabilities of atoms are added as they are.
"""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.within_limits import NEGLIGIBLE, WithinLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.distributions.quadrature import GriddedDistribution
    from suffice.typing import Cells, Floats


_BEYOND = 1e-12
"""Probability by which a level is above that of what lies before an atom."""
_LEAST_WITHIN = 1e-9
"""Of a posterior within limits: the panels of what is left hold no less to a few digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedDistribution:
    """Atoms and a density; made by ``MixedDistribution.of``.

    Attributes
    ----------
    name : str
        The parameter's.
    atoms : ndarray of shape (n_atoms,), float64
    chance : ndarray of shape (n_cells, n_atoms), float64
    rest : ndarray of shape (n_cells,), float64
    continuous : GriddedDistribution or None
        None where there are atoms alone.
    log_mass : ndarray of shape (n_cells,), float64
        Log of the evidence but for a constant that does not depend on the prior.
    log_evidence : ndarray of shape (n_cells,), float64, or None
        The same, where it is one.
    """

    name: str
    atoms: Floats
    chance: Floats
    rest: Floats
    continuous: GriddedDistribution | None
    log_mass: Floats
    log_evidence: Floats | None = None

    @classmethod
    def of(
        cls, name: str, atoms: Floats, log_chance: Floats, continuous: GriddedDistribution | None
    ) -> MixedDistribution | GriddedDistribution:
        """Weigh atoms and a density by their masses.

        Parameters
        ----------
        atoms : ndarray of shape (n_atoms,), float64
            Ascending.
        log_chance : ndarray of shape (n_cells, n_atoms), float64
            Logs of the atoms' masses: prior probability times likelihood.
        continuous : GriddedDistribution or None
            Its ``log_mass`` is that of the density: the integral of prior times likelihood.
        """
        if continuous is not None and not len(atoms):
            return continuous
        logs = [log_chance] if continuous is None else [log_chance, continuous.log_mass[:, None]]
        together = np.concatenate(logs, axis=1)
        log_mass = np.logaddexp.reduce(together, axis=1)
        if not np.all(np.isfinite(log_mass)):
            message = (
                "the prior's points leave what was released no probability in some cell: give it others, or "
                "a density beside them, as 0.5*Point(0.3) + 0.5*Beta(1, 1)"
            )
            raise PriorError(message)
        share = np.exp(together - log_mass[:, None])
        n_atoms = len(atoms)
        return cls(
            name=name,
            atoms=atoms,
            chance=share[:, :n_atoms],
            rest=np.zeros(len(share)) if continuous is None else share[:, n_atoms],
            continuous=continuous,
            log_mass=log_mass,
        )

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return len(self.rest)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return (self.name,)

    @property
    def means(self) -> Floats:
        """Posterior means, (n_cells,)."""
        of_atoms: Floats = self.chance @ self.atoms
        return of_atoms if self.continuous is None else of_atoms + self._of_rest(self.continuous.means)

    @property
    def sds(self) -> Floats:
        """Posterior standard deviations, (n_cells,)."""
        means = self.means
        with np.errstate(invalid="ignore", over="ignore"):
            square = np.sum(self.chance * (self.atoms - means[:, None]) ** 2, axis=1)
            if self.continuous is not None:
                # The law of total variance.
                away = self.continuous.means - means
                square = square + self._of_rest(self.continuous.sds**2 + away**2)
        return np.sqrt(np.where(np.isnan(square), np.inf, square))

    def _of_rest(self, values: Floats) -> Floats:
        """Values weighed by r, which may be infinite where r is 0."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(self.rest > 0.0, self.rest * values, 0.0))

    def mean(self, parameter: str) -> Floats:
        """Means; infinite where there is none."""
        return self.means

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations; infinite where there is none."""
        return self.sds

    def cdf(self, points: Floats) -> Floats:
        """Distribution functions (1) at points (n_cells, n_points)."""
        reached = self.atoms <= points[:, :, None]
        below: Floats = np.sum(np.where(reached, self.chance[:, None], 0.0), axis=2)
        if self.continuous is None:
            return below
        below += self.rest[:, None] * self.continuous.cdf(points)
        return below

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles (2); they rest on no draws."""
        return self.quantiles_at(np.broadcast_to(np.asarray(q, dtype=np.float64), (self.n_cells, len(q))))

    def quantiles_at(self, levels: Floats) -> Floats:
        """Quantiles (2) at levels (n_cells, n_levels) of every cell's own."""
        below, at_or_below = self._about_atoms()
        # Atoms that lie below the quantile: those at which F has not reached the level.
        passed = np.sum(at_or_below[:, None] < levels[:, :, None], axis=2)
        chances = np.concatenate([np.zeros((self.n_cells, 1)), np.cumsum(self.chance, axis=1)], axis=1)
        last = len(self.atoms) - 1
        nearest = np.minimum(passed, last)
        # The next atom is the quantile where F reaches the level by its jump.
        is_atom = (passed <= last) & (levels > np.take_along_axis(below, nearest, axis=1))
        if self.continuous is None:
            return np.asarray(self.atoms[nearest], dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            # (1) solved for F_0.
            inner = (levels - np.take_along_axis(chances, passed, axis=1)) / self.rest[:, None]
        inner = np.clip(np.where(np.isnan(inner), 0.5, inner), 0.0, 1.0 - _BEYOND)
        values = self.continuous.inverse(inner.T).T
        # Between two atoms: rounding may not carry a quantile beyond either.
        padded = np.concatenate([[-np.inf], self.atoms, [np.inf]])
        values = np.clip(values, padded[passed], padded[passed + 1])
        return np.where(is_atom | (self.rest <= 0.0)[:, None], self.atoms[nearest], values)

    def _about_atoms(self) -> tuple[Floats, Floats]:
        """F just below every atom and at it, (n_cells, n_atoms)."""
        at_or_below = np.cumsum(self.chance, axis=1)
        if self.continuous is not None:
            points = np.broadcast_to(self.atoms, self.chance.shape)
            at_or_below = at_or_below + self.rest[:, None] * self.continuous.cdf(points)
        return at_or_below - self.chance, at_or_below

    def candidates(
        self, mass: float, ends: tuple[float, float], below: Sequence[float]
    ) -> tuple[Floats, Floats]:
        """Return both ends of intervals with a probability, (n_cells, n_candidates) each, to choose among.

        The first start where the range does, or at the first atom where there is nothing else, and the last
        end likewise. `below` has levels p to try, ascending from 0, beside those of atoms.
        """
        before, after = self._about_atoms()
        inner = np.broadcast_to(np.asarray(below), (self.n_cells, len(below)))
        # An interval may start at an atom, or end at one.
        levels = [inner[:, :-1], before + _BEYOND, after - mass, inner[:, -1:]]
        level = np.clip(np.concatenate(levels, axis=1), 0.0, 1.0 - mass)
        lower, upper = self.quantiles_at(np.maximum(level, _BEYOND)), self.quantiles_at(level + mass)
        if self.continuous is not None:
            lower[:, 0], upper[:, -1] = ends
        return lower, upper

    def density(self, parameter: str, points: Floats) -> Floats:
        """Densities of what is no atom at points (n_cells, n_points): r times that of F_0."""
        if self.continuous is None:
            return np.zeros(points.shape)
        return self.rest[:, None] * self.continuous.density(parameter, points)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws."""
        return {self.name: self.quantiles_at(1.0 - rng.random((self.n_cells, draws))).T}

    def take(self, cells: Cells) -> Self:
        """Return the distribution of some cells, ascending."""
        return replace(
            self,
            chance=self.chance[cells],
            rest=self.rest[cells],
            continuous=None if self.continuous is None else self.continuous.take(cells),
            log_mass=self.log_mass[cells],
            log_evidence=None if self.log_evidence is None else self.log_evidence[cells],
        )

    def within(self, limits: tuple[float, float]) -> WithinLimits:
        """Restrict the parameter to limits, at which atoms may be.

        Raises
        ------
        PriorError
            Where next to nothing of a cell's posterior lies within.
        """
        inside = (self.atoms >= limits[0]) & (self.atoms <= limits[1])
        chance, rest, continuous = self.chance[:, inside], self.rest, self.continuous
        if continuous is not None:
            continuous, share = continuous.between(limits)
            rest = rest * share
        whole = np.sum(chance, axis=1) + rest
        cut = whole < 1.0 - NEGLIGIBLE
        if np.any(whole < _LEAST_WITHIN):
            message = (
                "hardly any of the posterior lies where the parameter of records within the public bounds "
                "can be: give a prior that has more there"
            )
            raise PriorError(message)
        restricted = replace(
            self,
            atoms=self.atoms[inside],
            chance=chance / whole[:, None],
            rest=rest / whole,
            continuous=continuous,
            log_mass=self.log_mass + np.log(whole),
            log_evidence=None,
        )
        return WithinLimits(
            plain=self,
            limits={self.name: limits},
            inner=restricted.take(np.flatnonzero(cut)) if cut.any() else None,
            cut=cut,
            share=np.where(cut, whole, 1.0),
        )


def point_masses_of(distribution: Distribution) -> dict[float, Floats]:
    """Return the posterior probability of every atom in every cell, by its value."""
    if isinstance(distribution, WithinLimits):
        masses = point_masses_of(distribution.plain)
        if distribution.inner is None:
            return masses
        inner = point_masses_of(distribution.inner)
        for value, chances in masses.items():
            chances[distribution.cut] = inner.get(value, 0.0)
        return masses
    if not isinstance(distribution, MixedDistribution):
        return {}
    return {
        value: chances.copy()
        for value, chances in zip(distribution.atoms.tolist(), distribution.chance.T, strict=True)
    }
