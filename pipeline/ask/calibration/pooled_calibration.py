r"""Coverage of cells that borrow strength, over releases: whole releases are simulated and asked.

.. math::
    h \sim p(h \mid y), \quad z_c \sim f(z \mid h), \quad x_c = z_c + b (\log (1 + N_c) - v_0), \quad
    X_c \sim p(X \mid N_c, x_c), \quad y'_c = S(\mathrm{clip}(X_c)) + Z_c

Cells of one release share what its posterior says of the population, so that they are not independent: what
is counted is releases. A release covers the share C_r of its cells; the standard error of the mean of C_r is
that over releases, and the worst tenth is the mean of the lowest tenth of them,

.. math:: W = q + \frac{10}{R} \sum_r \min(C_r - q, 0), \qquad q \text{ the 10 % quantile}, \qquad (1)

whose standard error is that of its terms (Rockafellar, Uryasev 2000).

Truths come from the population as the release has it, hyperparameters drawn from their posterior; or from a
stated distribution, which need not be the population that the posterior believes. Sizes are the noisy numbers
of records of the cells, or drawn from a stated prior. All of it is public, and costs no privacy.

References
----------
Rockafellar, Uryasev. Optimization of conditional value-at-risk. J. Risk 2, 2000.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing.pooled_posterior import pooled_posterior
from suffice.pipeline.ask.borrowing.pooling import Pooling
from suffice.pipeline.ask.calibration.simulated_release import (
    generative_model_of,
    noisy_sizes,
    require_drawable,
    require_positive,
)
from suffice.pipeline.ask.calibration.verdict import (
    CALIBRATED,
    CANNOT_TELL,
    FALSE_ALARM,
    MISS,
    NOT_CALIBRATED,
)
from suffice.pipeline.ask.inference.bounded_records import can_be_of_bounded
from suffice.pipeline.ask.inference.pooled_sources import line_of
from suffice.pipeline.ask.inference.posterior_terms import BY_EVIDENCE, NOISE_AWARE, PosteriorTerms
from suffice.pipeline.terms.declaration.documents import Count, Family, one_of, printed
from suffice.pipeline.terms.declaration.wording import counted, text_table
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
    from suffice.pipeline.ask.calibration.simulated_release import GenerativeModel
    from suffice.pipeline.ask.calibration.verdict import Progress
    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.math.engines.pooled.distribution import PooledDistribution
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Counts, Floats

RELEASES, SLOW_RELEASES = 200, 50
"""Releases by default; fewer where cells take some 20 milliseconds each."""
MASS, CONTROL = 0.95, 0.8
BARS = (0.93, 0.97)
"""Within which the mean coverage of 95 % intervals has to be; that of small cells is above the first."""
_SMALL = 3
"""The smallest cells are one in so many."""
_FEWEST = 10
"""Releases from which on standard errors tell anything."""
_REDRAWN = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share, and its standard error over releases."""

    share: float
    standard_error: float

    @classmethod
    def of(cls, shares: Floats) -> Share:
        """Return the mean of releases."""
        return cls(share=float(np.mean(shares)), standard_error=_standard_error(shares))

    @classmethod
    def of_worst(cls, shares: Floats) -> Share:
        """Return the mean of the lowest tenth of releases, (1)."""
        n = max(len(shares) // 10, 1)
        ordered = np.sort(shares)
        terms = ordered[n - 1] + np.minimum(shares - ordered[n - 1], 0.0) * len(shares) / n
        return cls(share=float(np.mean(ordered[:n])), standard_error=_standard_error(terms))

    def __str__(self) -> str:
        return f"{100 * self.share:.1f} % ({100 * self.standard_error:.1f})"


def _sd(shares: Floats, n: int) -> float:
    """Return what releases vary by: at least as much as n independent cells do."""
    least = (MASS * (1.0 - MASS) / n) ** 0.5
    return max(float(np.std(shares, ddof=1)), least) if len(shares) > 1 else 1.0


def _standard_error(values: Floats) -> float:
    return float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """How many truths intervals held, a release each: of all cells and of the smallest third.

    Attributes
    ----------
    every, small : ndarray of shape (n_releases,), float64
        Shares of cells.
    n_cells, n_small : int
    """

    every: Floats
    small: Floats
    n_cells: int
    n_small: int

    def ends(self, level: float) -> tuple[float, float, float]:
        """Return bounds of the mean from below and above, and of small cells from below.

        Each misses with the chance `level`, by Student's distribution over releases. Standard errors are at
        least those of cells that are independent: shares of few cells may all be alike by chance.
        """
        low, high = self._ends(self.every, self.n_cells, level)
        return low, high, self._ends(self.small, self.n_small, level)[0]

    def _ends(self, shares: Floats, n: int, level: float) -> tuple[float, float]:
        from scipy.special import stdtrit

        far = float(stdtrit(len(shares) - 1, 1.0 - level)) * _sd(shares, n) / len(shares) ** 0.5
        return float(np.mean(shares)) - far, float(np.mean(shares)) + far

    def judged(self) -> tuple[str, str]:
        """Return the conclusion, and what it rests on.

        *Calibrated* is said of a posterior outside of ``BARS`` with a chance of at most ``MISS``, and *not
        calibrated* of one within them with at most ``FALSE_ALARM``.
        """
        if len(self.every) < _FEWEST:
            return CANNOT_TELL, f"fewer than {_FEWEST} releases tell nothing"
        low, high = BARS
        within = f"{100 * low:.0f} to {100 * high:.0f} %"
        least, most, least_small = self.ends(MISS)
        if least >= low and most <= high and least_small >= low:
            return CALIBRATED, f"95 % intervals cover {within} on average, of small cells at least {low:.0%}"
        # Three tests share the chance of a false alarm.
        level = FALSE_ALARM / 3
        surely_least, surely_most, _ = self.ends(level)
        if surely_most < low:
            return NOT_CALIBRATED, f"95 % intervals cover less than {within} on average"
        if self._ends(self.small, self.n_small, level)[1] < low:
            return NOT_CALIBRATED, f"95 % intervals of small cells cover less than {low:.0%}"
        if surely_least > high:
            return NOT_CALIBRATED, f"95 % intervals cover more than {within} on average: wider than they say"
        return CANNOT_TELL, "coverage is too near a bar for so few releases"

    @property
    def releases_needed(self) -> int:
        """With how many releases 95 % coverage is called calibrated with chance .99, about."""
        sd = max(_sd(self.every, self.n_cells), _sd(self.small, self.n_small))
        return int(np.ceil((2.0 * 2.33 * sd / (MASS - BARS[0])) ** 2 / 10)) * 10 + _FEWEST


@printed(
    "statistic family population truths sizes n_prior epsilon?=loss.epsilon rho?=loss.rho cells releases "
    "conclusion reason releases_needed false_alarm bars covered small_cells worst_tenth plug_in control "
    "unidentified"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class PooledCalibration:
    """How often intervals of pooled cells held the truth, over simulated releases; made by ``calibrate``.

    Attributes
    ----------
    statistic, family, population : str
        What was calibrated, and the population that posteriors believe.
    truths, sizes : str
        What parameters and numbers of records were drawn from.
    n_prior : str
        What posteriors believe of a private N.
    loss : PrivacyLoss
        Of this statistic.
    cells, releases : int
        How many a release has, and how many were simulated.
    covered, small_cells, worst_tenth : Share
        Of 95 % intervals: of all cells, of the third of each release that is smallest, and of the tenth of
        releases that cover least.
    plug_in : Share
        Of all cells, with hyperparameters fixed at their posterior means.
    control : Share
        Of 80 % intervals, taken for 95 %: the same verdict has to call them not calibrated.
    unidentified : float
        The share of releases whose posterior says that a spread is not identified.
    """

    statistic: str
    family: Family
    population: str
    truths: str
    sizes: str
    n_prior: str
    loss: PrivacyLoss
    cells: Count
    releases: Count
    covered: Share
    small_cells: Share
    worst_tenth: Share
    plug_in: Share
    control: Share
    unidentified: float
    conclusion: Annotated[str, one_of(CALIBRATED, NOT_CALIBRATED, CANNOT_TELL)]
    reason: str
    releases_needed: Count
    shares: Covered = field(repr=False, compare=False)
    false_alarm: ClassVar[float] = FALSE_ALARM
    bars: ClassVar[tuple[float, float]] = BARS
    method: ClassVar[str] = NOISE_AWARE

    @property
    def prior(self) -> str:
        """The population, in words of a posterior's source."""
        return f"one population, {self.population}"

    def __str__(self) -> str:
        rows = [
            ["95 % intervals, all cells", str(self.covered)],
            ["the smallest third of cells", str(self.small_cells)],
            ["the worst tenth of releases", str(self.worst_tenth)],
            ["hyperparameters fixed at their means", str(self.plug_in)],
            ["control: 80 % intervals taken for 95 %", str(self.control)],
        ]
        alarm = {
            CALIBRATED: f" (said of a posterior that is further off at most {MISS:g} of the time)",
            NOT_CALIBRATED: f" (said of one within at most {FALSE_ALARM:g} of the time)",
        }.get(self.conclusion, f"; about {self.releases_needed} releases would tell")
        return (
            f"{self.statistic}: pooled posterior of {self.family}, {self.population}, "
            f"{self.loss}\n"
            f"{counted(self.releases, 'release')} of {counted(self.cells, 'cell')}; truths: {self.truths}; "
            f"N: {self.sizes}\n\n{text_table(['', 'cover (standard error)'], rows)}\n\n"
            f"{self.conclusion}: {self.reason}{alarm}\n"
            f"the spread is not identified in {100 * self.unidentified:.0f} % of releases: they say so"
        )


def check_pooled(statistic: str, method: str, clipping: str, *others: object) -> None:
    """Refuse what pooled cells do not have."""
    given = {
        "method": method != NOISE_AWARE,
        "clipping": clipping != BY_EVIDENCE,
        **dict(zip(("predictor_prior", "predictors", "worlds"), others, strict=True)),
    }
    wrong = [name for name, value in given.items() if value]
    if wrong:
        message = f"{statistic}: {wrong[0]} does not go with pooled: leave one of them out"
        raise UsageError(message)


def calibrate_pooled(
    statistic: NoisyStatistic,
    entry: Mapping[str, Any],
    pooled: bool | str | Sequence[str] | Pooling,
    *,
    prior: AnyPrior,
    n_prior: NPrior | int | str | None,
    releases: int | None,
    rng: np.random.Generator,
    progress: Progress | None,
) -> PooledCalibration:
    """Simulate releases of the cells that are chosen, and count; see ``calibrate``.

    Raises
    ------
    UsageError, PriorError
        Where cells cannot be pooled so, or no data of the family can be simulated.
    """
    pooling = Pooling.of(statistic, pooled, line_of(statistic))
    further = [
        name for name in ("covariates", "formula", "over", "adjacency") if getattr(pooling, name) is not None
    ]
    if further:
        message = f"{statistic.plan.name}: no releases are simulated with {further[0]}: leave it out"
        raise UsageError(message)
    terms = PosteriorTerms(n_prior=n_prior)
    model = generative_model_of(statistic, entry, prior=prior, n_prior=n_prior)
    first = pooled_posterior(statistic, terms, pooling, _not_alone)
    pools: tuple[PooledDistribution, ...] = first.distribution.pools  # type: ignore[attr-defined]
    places: tuple[Counts, ...] = first.distribution.cells  # type: ignore[attr-defined]
    if releases is None:
        releases = RELEASES if len(pools[0].hyperparameters.slope) > 1 else SLOW_RELEASES
    require_positive("simulations", releases)
    n_cells = first.n_groups
    is_stated = n_prior is not None or statistic.plan.design is Design.MINIMAL
    known = np.maximum(np.rint(noisy_sizes(statistic)), 1).astype(np.int64) if not is_stated else None
    every_size = (
        model.sizes(releases * n_cells, rng).reshape(releases, n_cells)
        if known is None
        else np.broadcast_to(known, (releases, n_cells))
    )
    require_drawable(model, sum(map(int, np.sum(every_size, axis=1).tolist())))
    n_small = max(n_cells // _SMALL, 1)
    runs: list[tuple[float, ...]] = []
    for number, sizes in enumerate(every_size):
        truth = (
            model.truth(n_cells, rng)
            if prior is not None
            else _of_populations(model, pools, places, sizes, rng)
        )
        posterior = _simulated(statistic, model, truth, sizes, terms, pooling, rng)
        small = np.argsort(sizes, kind="stable")[:n_small]
        asked = np.reshape(model.judged(truth), -1)
        plug_in = dataclasses.replace(
            posterior.distribution,  # type: ignore[type-var]
            pools=tuple(pool.plug_in() for pool in posterior.distribution.pools),  # type: ignore[attr-defined]
        )
        held = _held(posterior.distribution, asked, MASS, rng)
        control = _held(posterior.distribution, asked, CONTROL, rng)
        of_plug_in = _held(plug_in, asked, MASS, rng)
        runs.append(
            (
                *(float(np.mean(each)) for each in (held, held[small], control, control[small], of_plug_in)),
                float(not posterior.is_identified),
            )
        )
        if progress is not None:
            progress(number + 1, releases)
    every, small_held, control, control_small, plugged_in, unidentified = np.array(runs).T
    shares = Covered(every=every, small=small_held, n_cells=n_cells, n_small=n_small)
    conclusion, reason = shares.judged()
    controlled = dataclasses.replace(shares, every=control, small=control_small)
    if conclusion != CANNOT_TELL and controlled.judged()[0] != NOT_CALIBRATED:
        conclusion = CANNOT_TELL
        reason = "the control is not seen to fail: releases are too few, or answers too wide"
    return PooledCalibration(
        statistic=statistic.plan.name,
        family=statistic.plan.family,
        population=first.population,
        truths=str(model.prior) if prior is not None else "the population as this release has it",
        sizes=str(model.n_prior) if known is None else "the noisy numbers of records, at least 1",
        n_prior=str(first.n_prior),
        loss=statistic.plan.loss,
        cells=n_cells,
        releases=releases,
        covered=Share.of(every),
        small_cells=Share.of(small_held),
        worst_tenth=Share.of_worst(every),
        plug_in=Share.of(plugged_in),
        control=Share.of(control),
        unidentified=float(np.mean(unidentified)),
        conclusion=conclusion,
        reason=reason,
        releases_needed=shares.releases_needed if releases > 1 else RELEASES,
        shares=shares,
    )


def _not_alone() -> Any:
    message = "cells of simulated releases are not asked alone"
    raise NotImplementedError(message)


def _simulated(
    statistic: NoisyStatistic,
    model: GenerativeModel,
    truth: Floats,
    sizes: Counts,
    terms: PosteriorTerms,
    pooling: Pooling,
    rng: np.random.Generator,
) -> PooledPosterior:
    """Draw records and noise, and return the pooled posterior of the release that comes of them."""
    sums = model.sums(truth, sizes, rng).clipped
    released = dataclasses.replace(model.noisy(sums, model.noise(len(sizes), rng)), groups=statistic.groups)
    return pooled_posterior(released, terms, pooling, _not_alone)


def _held(distribution: Any, truth: Floats, mass: float, rng: np.random.Generator) -> Any:
    (name,) = distribution.parameters
    low, high = distribution.quantiles(name, ((1.0 - mass) / 2.0, (1.0 + mass) / 2.0), 0, rng).T
    return (low <= truth) & (truth <= high)


def _of_populations(
    model: GenerativeModel,
    pools: Sequence[PooledDistribution],
    places: Sequence[Counts],
    sizes: Counts,
    rng: np.random.Generator,
) -> Floats:
    """Draw the parameters of a release: hyperparameters of each population from their posterior, then cells.

    What no records within the bounds can have is drawn again.
    """
    truth = np.empty(len(sizes))
    for pool, cells in zip(pools, places, strict=True):
        drawn = pool.population_draws(np.log1p(sizes[cells]), rng)
        for _ in range(_REDRAWN):
            outside = ~can_be_of_bounded(drawn[None, :], model.plan)
            if not np.any(outside):
                break
            drawn = np.where(outside, pool.population_draws(np.log1p(sizes[cells]), rng), drawn)
        truth[cells] = drawn
    return truth
