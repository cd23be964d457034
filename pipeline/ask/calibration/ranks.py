"""Ranks of truths among posterior draws, and the coverage of intervals that follows from them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.pipeline.ask.posterior.infer import inferred
from suffice.pipeline.math.distributions.within_limits import unrestricted
from suffice.pipeline.terms.statistics.measure import MomentSums

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from suffice.pipeline.ask.calibration.simulated_release import GenerativeModel
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.typing import Counts, Floats

    Progress: TypeAlias = Callable[[int, int], None]


_BATCH = 250
_SLOW_BATCH = 20
_CHAINS_BATCH = 500
"""Where the chains of all data sets run side by side: the more of them, the less each costs."""


def batch_of(generative_model: GenerativeModel) -> int:
    """Return how many posteriors are worked out at once."""
    if not generative_model.is_slow:
        return _BATCH
    side_by_side = isinstance(generative_model.family.measure(generative_model.entry), MomentSums)
    return _CHAINS_BATCH if side_by_side else _SLOW_BATCH


def _names(posterior: Posterior) -> tuple[tuple[str, str | None], ...]:
    """Name the entries of all parameters: with their component, ``mean[x]``, or beside their category."""
    if not posterior.components:
        return tuple(product(posterior.parameters, posterior.categories or (None,)))
    return tuple(
        (parameter if component is None else f"{parameter}[{component}]", None)
        for parameter in posterior.parameters
        for component in posterior.components.get(parameter, (None,))
    )


def ranks_of(
    generative_model: GenerativeModel,
    truth: Floats,
    sums: NDArray[np.object_],
    noise: Counts,
    seed: int,
    *,
    whole_prior: bool = False,
) -> tuple[tuple[tuple[str, str | None], ...], Counts, Floats]:
    """Names of the parameters; the truths' ranks among posterior draws, and how wide these are.

    Ranks and widths of the central 80 % have the shape (n_simulations, n_parameters). With `whole_prior` the
    posterior is not restricted to what records within the bounds can have.
    """
    rng = np.random.default_rng(seed)
    posterior = inferred(generative_model.noisy(sums, noise), generative_model.terms)
    if whole_prior:
        posterior = dataclasses.replace(posterior, distribution=unrestricted(posterior.distribution))
    drawn = posterior.sample(DRAWS, rng)
    names = _names(posterior)
    draws = np.concatenate(
        [drawn[parameter].reshape(DRAWS, len(truth), -1) for parameter in posterior.parameters], axis=2
    )
    true = truth.reshape(len(truth), -1)
    # Where float64 cannot tell truth and draws apart, their order is a matter of chance.
    ties = np.sum(draws == true, axis=0)
    ranks = np.sum(draws < true, axis=0) + rng.integers(0, ties, endpoint=True)
    out = LEFT_OUT[0.8] - 1
    ordered = np.partition(draws, (out, DRAWS - 1 - out), axis=0)
    return names, ranks, ordered[DRAWS - 1 - out] - ordered[out]


DRAWS = 199
"""Posterior draws that a truth is ranked among: 200 ranks, so that the intervals below are exact."""
LEFT_OUT = {0.5: 50, 0.8: 20, 0.95: 5}
"""By mass of a central interval, how many ranks it leaves out on either side."""
BINS = 20
"""Of the histogram: 10 ranks each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """How often the truth had each rank among the draws of its posterior.

    Attributes
    ----------
    parameter : str
    category : str or None
        The category, where the parameter has one value for each.
    counts : tuple of int
        By rank, ``0..DRAWS``.
    """

    parameter: str
    category: str | None
    counts: tuple[int, ...] = field(repr=False)

    @property
    def name(self) -> str:
        """The parameter, with its category."""
        return self.parameter if self.category is None else f"{self.parameter} of {self.category}"

    @property
    def simulations(self) -> int:
        """How many truths were ranked."""
        return int(sum(self.counts))

    @property
    def histogram(self) -> tuple[int, ...]:
        """Counts in ``BINS`` bins of equally many ranks."""
        return tuple(int(count) for count in np.reshape(self.counts, (BINS, -1)).sum(axis=1))

    def covered(self, mass: float) -> int:
        """How many central intervals of this mass held the truth."""
        out = LEFT_OUT[mass]
        return int(sum(self.counts[out : DRAWS + 1 - out]))

    def coverage(self, mass: float) -> float:
        """The share of central intervals of this mass that held the truth."""
        return self.covered(mass) / self.simulations

    def beyond(self, mass: float) -> tuple[int, int]:
        """How many truths lay below and above their central intervals of this mass."""
        out = LEFT_OUT[mass]
        return int(sum(self.counts[:out])), int(sum(self.counts[DRAWS + 1 - out :]))

    def coverage_interval(self, mass: float, level: float) -> tuple[float, float]:
        """The Clopper-Pearson interval of the coverage; it misses it with a chance of at most `level`."""
        from scipy.special import betaincinv

        covered, missed = self.covered(mass), self.simulations - self.covered(mass)
        low = betaincinv(covered, missed + 1, level / 2) if covered else 0.0
        high = betaincinv(covered + 1, missed, 1.0 - level / 2) if missed else 1.0
        return float(low), float(high)

    def coverage_p_value(self, mass: float) -> float:
        """Chance that a calibrated posterior's coverage lies as far out on its side, twice; at most 1."""
        covered = np.array(self.covered(mass))
        tail = min(at_most(covered, self.simulations, mass), at_least(covered, self.simulations, mass))
        return min(1.0, 2.0 * float(tail))

    @property
    def chi_square(self) -> float:
        """Pearson's statistic of the histogram; ``BINS - 1`` degrees of freedom."""
        expected = self.simulations / BINS
        return sum((count - expected) ** 2 for count in self.histogram) / expected

    @property
    def rank_p_value(self) -> float:
        """Chance of a histogram at least as uneven, by its chi-square distribution in the limit."""
        from scipy.special import chdtrc

        return float(chdtrc(BINS - 1, self.chi_square))

    def p_values(self) -> list[float]:
        """The chances under a calibrated posterior: one of each coverage, one of the ranks."""
        return [*(self.coverage_p_value(mass) for mass in LEFT_OUT), self.rank_p_value]


def at_most(count: np.ndarray, trials: int, probability: float) -> Floats:
    """Return the chance of so many successes or fewer."""
    from scipy.special import bdtr

    chance: Floats = bdtr(count, trials, probability)
    return chance


def at_least(count: np.ndarray, trials: int, probability: float) -> Floats:
    """Return the chance of so many successes or more."""
    from scipy.special import bdtrc

    chance: Floats = np.where(count == 0, 1.0, bdtrc(np.maximum(count - 1, 0), trials, probability))
    return chance
