"""The distribution of released values given latent totals, on the consumer's side.

Every released value y is a latent total x plus noise of scale b. Up to a constant its log probability is

.. math:: -|y - x| / b .

Of whole numbers that is the discrete Laplace distribution that the noise is drawn from, exactly. Engines that
take totals for real numbers, on lattices far finer than b, take the noise for Laplace's continuous one. Its
standard deviation is ``discrete_laplace_sd`` of ``statistics.statistic_plan``: plans state it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.sensitivity import Quantity
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Cells, Floats, Rows


def require_laplace(plan: StatisticPlan, what: str) -> None:
    """Refuse what rests on independent Laplace noise where noise is on a cone.

    Parameters
    ----------
    plan : StatisticPlan
    what : str
        As the start of a sentence has it: ``its evidence``.

    Raises
    ------
    UsageError
    """
    if plan.cone is not None:
        message = (
            f"{plan.name}: {what} is not worked out for noise on a cone: ask its posterior or its table, or "
            "release with noise: laplace"
        )
        raise UsageError(message)


def noise_half_width(plan: StatisticPlan, quantity: Quantity, mass: float = 0.95) -> float:
    """Return a distance within which a quantity's noise stays with at least the given probability.

    The least such distance where one component makes the quantity. Where several do, that of one Laplace
    variable with the same standard deviation, which is no less than theirs for a mass of 0.95 or more, and
    what the rounding of each to the lattice may add. So it is on a cone, where the tails of every entry lie
    between those of a normal and of a Laplace variable: a test simulates that, and no more is proved.

    Parameters
    ----------
    plan : StatisticPlan
    quantity : Quantity
        One of the plan's.
    mass : float, in [0.95, 1)

    Returns
    -------
    float, >= 0
        In the quantity's unit.
    """
    weights = [abs(float(weight)) for weight in quantity.coefficients.values() if weight != Fraction(0)]
    if not weights:
        return 0.0
    tail = -math.log1p(-mass)
    if plan.cone is not None:
        return plan.quantity_noise_sd(quantity) / math.sqrt(2.0) * tail + sum(weights)
    if len(weights) == 1:
        # P(|noise| > k) = 2 q^(k+1) / (1 + q), q = e^(-1/scale): the least k for which that is 1 - mass.
        q = math.exp(-1.0 / plan.scale)
        steps = math.ceil(plan.scale * (tail + math.log(2.0 / (1.0 + q))) - 1.0 - 1e-9)
        return weights[0] * max(steps, 0)
    return plan.scale * tail * math.sqrt(sum(weight**2 for weight in weights)) + sum(weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyTotals:
    """Released values of totals, how these depend on what is latent, and their noise.

    Further releases of the same data are further rows: each has the same totals in the same order.

    Attributes
    ----------
    values : ndarray of shape (n_cells, n_rows), float64
        Raw noisy totals: negative and impossible ones are normal.
    scale : ndarray of shape (n_rows,), float64
        b of the noise of every row; infinite where nothing was released.
    coefficients : ndarray of shape (n_rows, n_latent), float64
        Totals as linear functions of latent numbers, N first; empty where the totals themselves are latent.
    releases : int
        How many releases there are.
    """

    values: Floats
    scale: Floats
    coefficients: Floats = field(default_factory=lambda: np.empty((0, 0)))
    releases: int = 1

    @classmethod
    def of(cls, statistic: NoisyStatistic, coefficients: Floats | None = None, shift: int = 0) -> Self:
        """Return the components of all releases less a constant; coefficients are those of one release."""
        observations = statistic.observations
        for observation in observations:
            require_laplace(observation.plan, "this posterior")
        values = [observation.values - shift if shift else observation.values for observation in observations]
        scales = [observation.plan.scale for observation in observations]
        distribution = cls.of_counts([each.astype(np.float64) for each in values], scales)
        if coefficients is None:
            return distribution
        return replace(distribution, coefficients=np.tile(coefficients, (len(observations), 1)))

    @classmethod
    def of_counts(cls, counts: Iterable[Floats], scales: Iterable[float]) -> Self:
        """Return latent counts as each release has them, (n_cells, ...), behind noise of one scale."""
        flat = [each.reshape(len(each), -1) for each in counts]
        scale = np.repeat(np.array(list(scales), dtype=np.float64), flat[0].shape[1])
        return cls(values=np.concatenate(flat, axis=1), scale=scale, releases=len(flat))

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.values)

    @property
    def rate(self) -> Floats:
        """One over the scale, (n_rows,): how fast the log density falls on both sides of its kink."""
        return 1.0 / self.scale

    @property
    def by_release(self) -> Floats:
        """The values, (n_cells, n_releases, n_totals)."""
        return self.values.reshape(len(self.values), self.releases, -1)

    @property
    def scale_by_release(self) -> Floats:
        """The scales, (n_releases, n_totals)."""
        return self.scale.reshape(self.releases, -1)

    def take(self, cells: Cells | slice) -> Self:
        """The given cells, in the given order."""
        return replace(self, values=self.values[cells])

    def part(self, totals: Rows) -> Self:
        """Some of the totals, of every release; totals are latent themselves."""
        scale = self.scale_by_release[:, totals].ravel()
        return replace(self, values=self.by_release[:, :, totals].reshape(self.n_cells, -1), scale=scale)

    def in_scales(self) -> Self:
        """The same in units of the noise: of scale 1."""
        return replace(
            self,
            values=self.values / self.scale,
            coefficients=self.coefficients / self.scale[:, None],
            scale=np.ones_like(self.scale),
        )

    def distance(self, latent: Floats) -> Floats:
        """How far latent numbers (n_latent,) are from the released values, in scales: (n_cells,)."""
        distance: Floats = np.abs(self.values - self.coefficients @ latent) @ self.rate
        return distance


def log_laplace(position: Floats, kinks: Sequence[Floats] | Floats, rates: Floats) -> Floats:
    """Return the log density of noise along a line, (n_rows, n_positions), up to a constant.

    Its slope jumps at every kink, (n_rows, 1), by twice the kink's rate, which is above 0.
    """
    if not len(rates):
        return np.zeros_like(position)
    first, *others = rates.tolist()
    total = position - kinks[0]
    np.abs(total, out=total)
    for kink, rate in zip(kinks[1:], others, strict=True):
        distance = position - kink
        np.abs(distance, out=distance)
        # Most rates are equal: then all distances are multiplied at once.
        if rate != first:
            distance *= rate / first
        total += distance
    total *= -first
    return total
