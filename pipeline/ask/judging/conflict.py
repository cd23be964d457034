r"""Whether released quantities are where the priors expect them: tails of the prior predictive.

Models. The released n is judged by the prior of N: with E its noise,

.. math:: P(n^* \ge \hat n) = \sum_N \pi(N) \, P(E \ge \hat n - N) . \qquad (1)

Any other quantity q is judged by the prior of the parameters, given the released n. With m and v the mean and
the variance of a record's part under a parameter,

.. math:: \hat q - m \hat n = \sum_{\text{records}} (t_i - m) + E_q - m E_n \qquad (2)

whatever N is, so that the right-hand side, a sum of independent numbers, is compared with the left, and the
tail is averaged over the prior (``worlds``). Where N is known, it replaces the released n and :math:`E_n`.
Records' sums are taken for gamma distributed with their variance and skewness, or normal. Where rows of a
unit are known to be alike, that variance is times their design effect.

Worlds that cannot matter are left out by the exponential bound of a tail (Chernoff): for every s > 0 where K
is finite

.. math:: P(X \ge x) \le e^{K(s) - s x},
    \qquad K(s) = \tfrac 1 2 V s^2 - \sum_j k_j \log(1 - b_j^2 s^2). \qquad (3)

A prior that noise multiplies may move every interval by its width while no cell alone is that far out. With y
the released values of a cell, :math:`\pi` the stated prior, A what records within the bounds can have and
:math:`\pi_k` any other prior,

.. math:: B_k = P_\pi(A) \, \frac{p(y \mid \pi_k)}{p(y \mid \pi)},
    \qquad E(B_k \mid \pi, A) \le \int p(y \mid \pi_k) \, dy = 1 , \qquad (4)

for :math:`p(y \mid \pi, A) \le p(y \mid \pi) / P_\pi(A)`. The same holds of the product over cells whose
parameters were drawn from the stated prior, each by itself, and of the mean of such products over k. So
whatever the others are, that mean is :math:`1 / \alpha` or more with a chance of at most :math:`\alpha`, by
Markov's inequality. They are the family's default, and the stated prior moved as a whole (``_moved``), which
all cells together may ask for though each of them is as wide. It is worked out for families with one noisy
sum.

Decision. A tail counts as a conflict where it is below :math:`\alpha` = ``THRESHOLD`` after it is multiplied
by the number of quantities and cells (Bonferroni): with the truth drawn from the priors, that happens in
fewer than one of 10,000 posteriors. All cells together are judged by the largest product of (4) over the
number of its k, which is no larger than the mean: a conflict from :math:`1 / \alpha` on.

Of several columns and of networks no formula gives m and v: data sets are drawn from the family's model. A
world's mean is that of a data set of at most ``MOST_RECORDS`` records, and no more than the cell has: it
varies more than it should, which errs towards no conflict. The generator is the same every time: what is said
of a posterior must not change when it is asked again.

Symbols:

- q, n: ``estimate`` and ``n``, (n_cells,), unbiased estimates
- m, v: ``worlds.mean`` and ``worlds.variance``, (n_worlds,)
- x: ``gap``, (n_cells, n_worlds), the left side of (2)
- V: ``variance``, of all records, (n_cells, n_worlds); b_j, k_j: ``scales``, (n_worlds, n_kinds), and
  ``counts``
- log B: ``log_bayes_factors``, (n_cells_compared,)

Method. Laplace noise is summed exactly, half a lattice step nearer, which makes tails of the discrete noise
no smaller; the number of records is the released n and a standard deviation of its noise. How small a tail is
does not matter: it is right to within a factor of two.

References
----------
Box. Sampling and Bayes' inference in scientific modelling and robustness. J. R. Stat. Soc. A 143, 1980.
Evans, Moshonov. Checking for prior-data conflict. Bayesian Anal. 1, 2006.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.bounded_records import PLAIN, QuantityNoise, n_quantity, tails_of_n
from suffice.pipeline.ask.inference.chosen_priors import CONCENTRATIONS
from suffice.pipeline.ask.judging.bounded_prior import share_of_prior
from suffice.pipeline.ask.judging.evidence import log_evidence_of_whole, noise_constant
from suffice.pipeline.ask.judging.judged import names_of, worlds_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.dirichlet import Beta
from suffice.pipeline.math.distributions.gamma import Gamma, InverseGamma
from suffice.pipeline.math.distributions.laplace_sums import upper_tail
from suffice.pipeline.math.distributions.normal import Normal
from suffice.pipeline.math.engines.one_sum.nodes import batches, resolve
from suffice.pipeline.math.priors.record_count import Fixed
from suffice.pipeline.math.priors.worlds import Worlds
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.ask.judging.judged import Judged
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.sensitivity import Quantity
    from suffice.typing import Cells, Floats, Mask


MOST_RECORDS = 64
WORLDS = 2048
_SEED = 20170
MOST, MOST_MOVED = 1024, 128
"""Cells that are compared; of more, so many evenly spaced ones: some two seconds of one processor."""
THRESHOLD = 1e-4
_NUMBERS = 1 << 20
_FIRST, _NEGLIGIBLE = 16, 0.01
"""Worlds worked out in any case, and the share of a tail that all others together may have."""
_LONGEST_NAME = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """How far out in the prior predictive the released quantities are.

    Attributes
    ----------
    quantities : tuple of str
        What was judged, as ``n``, ``total`` or ``count[UA]``; of several releases, each one's in turn.
    tails : ndarray of shape (n_cells, n_quantities), float64
        Two-sided: twice the chance, under the priors, of a value as far out or farther, at most 1. Where it
        is plainly above 0.01 a bound from below stands for it.
    of_n : ndarray of shape (n_quantities,), bool
        Whether the prior of N is what a quantity is judged by; else it is the prior of the parameters.
    prior, n_prior : str
        The priors as text; of N empty where it has none.
    not_judged : tuple of str
        Quantities whose prior predictive is not worked out.
    of_cells : int or None
        How many cells are judged in all, where these are a part of them.
    alternative : str
        Of the priors that the stated one is compared with, that under which all cells together are most
        probable; empty where there is none.
    log_bayes_factors : ndarray of shape (n_compared,), float64
        Log of how many times as probable what was released is under it, over the number of alternatives, of
        the cells compared: all, or some of them, evenly spaced.
    called : tuple of str
        What sentences call the quantities; by their names where empty.
    """

    quantities: tuple[str, ...]
    tails: Floats = field(repr=False)
    of_n: Mask = field(repr=False)
    prior: str
    n_prior: str
    not_judged: tuple[str, ...] = ()
    of_cells: int | None = None
    alternative: str = ""
    log_bayes_factors: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    called: tuple[str, ...] = ()

    @classmethod
    def of_nothing(cls, n_cells: int, prior: object) -> Conflict:
        """Return that nothing of so many cells is judged."""
        of_n = np.array([], dtype=bool)
        return cls(quantities=(), tails=np.ones((n_cells, 0)), of_n=of_n, prior=str(prior), n_prior="")

    @property
    def is_against_all(self) -> bool:
        """Whether all cells together are so much more probable under another prior."""
        # Cells that are shown are a part of all: the threshold is shared among such parts.
        parts = 1.0 if self.of_cells is None else self.of_cells / max(len(self.tails), 1)
        return bool(np.sum(self.log_bayes_factors) > np.log(max(parts, 1.0) / THRESHOLD))

    @property
    def adjusted(self) -> Floats:
        """Tails times the number of all quantities and cells, at most 1: (n_cells, n_quantities)."""
        # Bonferroni: the chance of any tail below alpha / n is at most alpha.
        n_tails = self.tails.size if self.of_cells is None else self.of_cells * self.tails.shape[1]
        return np.minimum(self.tails * max(n_tails, 1), 1.0)

    @property
    def is_said(self) -> Mask:
        """Which quantities are in conflict with their prior, (n_cells, n_quantities)."""
        return np.asarray(self.adjusted < THRESHOLD)

    def lines(self) -> list[str]:
        """Return a sentence for each prior that is in conflict with what was released."""
        of_n, of_parameters = self._line(of_n=True), self._line(of_n=False)
        if self.is_against_all and not of_parameters:
            of_parameters = self._line_of_all()
        return [line for line in (of_n, of_parameters) if line]

    def _line_of_all(self) -> str:
        nats = float(np.sum(self.log_bayes_factors))
        times = f"1e{nats / np.log(10.0):.0f}"
        compared, known = len(self.log_bayes_factors), len(self.tails)
        cells = f"{compared} of {known}" if compared < known else f"{compared}"
        return (
            f"conflict: the prior of the parameters, {_shortened(self.prior)}, and {cells} cells together "
            f"disagree: what was released is about {times} times as probable under {self.alternative} as "
            "under this one, though no cell alone may tell; the intervals rest on it where noise hides cells"
        )

    def _line(self, *, of_n: bool) -> str:
        said = self.is_said & (self.of_n == of_n)
        cells = int(np.count_nonzero(np.any(said, axis=1)))
        if not cells:
            return ""
        called = self.called or self.quantities
        names = [name for name, is_said in zip(called, np.any(said, axis=0), strict=True) if is_said]
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        prior = (
            f"the prior of N, {_shortened(self.n_prior)},"
            if of_n
            else f"the prior of the parameters, {_shortened(self.prior)},"
        )
        least = float(np.min(self.tails[said]))
        chance = "below 1e-300" if least < 1e-300 else f"{least:.2g}"
        return (
            f"conflict: {prior} and the released {shown} disagree in {cells} of {len(self.tails)} cells: "
            f"under that prior the chance of values as far out is {chance} where it is least; the "
            "intervals rest on both, and one of the two is wrong"
        )


def conflict_of(posterior: Judged) -> Conflict:
    """Judge all that a posterior rests on by its priors.

    Raises
    ------
    UsageError
        Where the posterior does not know what it is of.
    """
    return dataclasses.replace(_conflict_of(posterior), **_compared(posterior))


def conflict_of_n(posterior: Judged) -> Conflict:
    """Judge released numbers of records by the prior of N, and nothing else."""
    return _conflict_of(posterior, of_n_alone=True)


def _compared(posterior: Judged) -> dict[str, Any]:
    alternative, log_factors = log_bayes_factors(posterior)
    return {"alternative": alternative, "log_bayes_factors": log_factors}


def _conflict_of(posterior: Judged, *, of_n_alone: bool = False) -> Conflict:
    if not posterior.observed:
        message = f"{posterior.statistic}: what was released is not known to this posterior"
        raise UsageError(message)
    names: list[str] = []
    not_judged: dict[str, None] = {}
    tails: list[Floats] = []
    of_n: list[bool] = []
    observations = [observation for part in posterior.observed for observation in part.observations]
    for number, observation in enumerate(observations, start=1):
        suffix = f", release {number}" if len(observations) > 1 else ""
        for name, judges_n, judgement in _judged(posterior, observation, of_n_alone=of_n_alone):
            if judgement is None:
                not_judged[name] = None
                continue
            names.append(name + suffix)
            tails.append(judgement)
            of_n.append(judges_n)
    return Conflict(
        quantities=tuple(names),
        tails=np.stack(tails, axis=1) if tails else np.ones((posterior.n_groups, 0)),
        of_n=np.array(of_n, dtype=bool),
        prior=str(posterior.prior),
        n_prior="" if posterior.n_prior is None else str(posterior.n_prior),
        not_judged=tuple(not_judged),
    )


def _judged(
    posterior: Judged, statistic: NoisyStatistic, *, of_n_alone: bool
) -> Iterator[tuple[str, bool, Floats | None]]:
    """Name, whether the prior of N is asked, and two-sided tails, quantity by quantity."""
    plan = statistic.plan
    n_prior = n_prior_of(posterior, statistic)
    n_map = n_quantity(statistic)
    is_private = plan.design is not Design.MINIMAL and n_map is not None
    if is_private and n_prior is not None and n_map is not None:
        yield "n", True, tails_of_n(statistic, n_map, n_prior)
    if of_n_alone:
        return
    known_n = float(n_prior.n) if isinstance(n_prior, Fixed) else None
    quantities = [quantity for quantity in plan.quantities if quantity.name != "n"]
    simulated = SimulatedWorlds.of(posterior, statistic)
    for quantity, name in zip(quantities, names_of(quantities), strict=True):
        if n_map is None and known_n is None:
            yield name, False, None
            continue
        yield name, False, _tails_of(posterior, statistic, quantity, n_map, known_n, simulated)


def n_prior_of(posterior: Judged, statistic: NoisyStatistic) -> NPrior | None:
    """Return the prior of a statistic's own N; None where the posterior has none."""
    if statistic.plan.design is Design.MINIMAL and statistic.public_n is not None:
        return Fixed(statistic.public_n)
    return posterior.n_prior


def _tails_of(
    posterior: Judged,
    statistic: NoisyStatistic,
    quantity: Quantity,
    n_map: Quantity | None,
    known_n: float | None,
    simulated: SimulatedWorlds | None,
) -> Floats | None:
    """Two-sided tails of a quantity given n, (n_cells,); None where they are not worked out."""
    cells = len(statistic.values)
    clipped = posterior.models_clipping
    clipped = np.zeros(cells, dtype=bool) if clipped is None else clipped
    tails = np.ones(cells)
    effect = np.ones(cells) if posterior.design_effect is None else posterior.design_effect
    estimate = statistic.estimates(quantity)
    noise = QuantityNoise.of(statistic, quantity, None if known_n is not None else n_map)
    n = np.full(cells, known_n) if known_n is not None or n_map is None else statistic.estimates(n_map)
    for way in (False, True):
        rows = np.flatnonzero(clipped == way)
        if not rows.size:
            continue
        worlds = worlds_of(statistic, posterior.prior, quantity, is_clipped=way)
        if worlds is not None:
            tails[rows] = _two_sided(worlds, noise, estimate[rows], n[rows], effect[rows])
        elif simulated is None:
            return None
        else:
            for group, group_worlds in simulated.worlds(quantity, n[rows], is_clipped=way):
                group_rows = rows[group]
                tails[group_rows] = _two_sided(
                    group_worlds, noise, estimate[group_rows], n[group_rows], effect[group_rows]
                )
    return tails


def _two_sided(worlds: Worlds, noise: QuantityNoise, estimate: Floats, n: Floats, effect: Floats) -> Floats:
    """Twice the smaller tail of a quantity in every cell, whose records vary by `effect` times more."""
    tails = np.empty(len(estimate))
    step = max(1, _NUMBERS // len(worlds.weight))
    for start in range(0, len(estimate), step):
        part = slice(start, start + step)
        # The left side of (2), by worlds.
        gap = estimate[part, None] - worlds.mean * n[part, None]
        # Where a world expects as much as was released, its chance of that much is half or about that.
        above, below = (gap <= 0.0) @ worlds.weight, (gap >= 0.0) @ worlds.weight
        tails[part] = np.minimum(above, below) / 2.0
        for sign, rows in ((1.0, above <= below), (-1.0, above > below)):
            near = np.flatnonzero(rows & (tails[part] < PLAIN))
            if near.size:
                gap_near = sign * gap[near]
                tails[start + near] = _worked_out(
                    worlds, noise, gap_near, n[part][near], effect[part][near], sign
                )
    return tails


def _worked_out(
    worlds: Worlds, noise: QuantityNoise, gap: Floats, n: Floats, effect: Floats, sign: float
) -> Floats:
    """Twice the chances of values as far out on one side, (n_cells,), at most 1."""
    # The noise E_q - m E_n of (2), component by component.
    scales = np.abs(noise.of_quantity - worlds.mean[:, None] * noise.of_n)
    # Half a lattice step of every component nearer: P(discrete >= x) <= P(continuous >= x - 1/2).
    gap = gap - (scales @ noise.counts) / 2.0
    scales = scales * noise.scale
    # N is not known: a standard deviation of its noise more makes tails no smaller.
    records = ((np.maximum(n, 0.0) + noise.sd_of_n) * effect)[:, None]
    # Of the sum in (2): independent records.
    variance = records * worlds.variance
    # The exponential bound of a tail at a few places tells which worlds can matter.
    noise_variance = 2.0 * (scales**2 @ noise.counts)
    last = 0.95 / np.maximum(np.max(scales, axis=1), 1e-300)
    with np.errstate(over="ignore", under="ignore"):
        # (3) at three s, the least of which counts: half of and all but the end of K, and the saddle point of
        # a normal number.
        bounds = [
            worlds.weight
            * np.exp(np.minimum(_log_moments(scales, noise.counts, variance, at) - at * gap, 0.0))
            for at in (
                last / 2.0,
                last,
                np.clip(gap / (variance + noise_variance), 0.0, last),
            )
        ]
    bound = np.minimum(np.minimum(bounds[0], bounds[1]), bounds[2])
    tail = np.zeros(len(gap))
    few = min(_FIRST, len(worlds.weight))
    first = np.argpartition(-bound, few - 1, axis=1)[:, :few]
    matters = np.zeros(bound.shape, dtype=bool)
    np.put_along_axis(matters, first, values=True, axis=1)
    for _ in range(2):
        row, world = np.nonzero(matters)
        chance = upper_tail(
            gap[row, world],
            scales[world],
            noise.counts,
            variance[row, world],
            (sign * records * worlds.third)[row, world],
        )
        # The tail, averaged over worlds.
        tail += np.bincount(row, chance * worlds.weight[world], len(gap))
        bound[matters] = 0.0
        # What all worlds left out can add together is a hundredth of the tail.
        matters = bound > _NEGLIGIBLE / bound.shape[1] * tail[:, None]
    tails: Floats = np.minimum(2.0 * tail, 1.0)
    return tails


def _log_moments(scales: Floats, counts: Floats, variance: Floats, at: Floats) -> Floats:
    """Log of the moments of noise and of a normal number, (n_cells, n_worlds), at these places."""
    square = (scales * np.broadcast_to(at, variance.shape)[..., None]) ** 2
    # K of (3).
    return variance * at**2 / 2.0 - np.log1p(-square) @ counts


def log_bayes_factors(posterior: Judged) -> tuple[str, Floats]:
    """Return the alternative of (4) with the largest product, and log B over the number of alternatives.

    Empty where the family has not one noisy sum, the prior is the default itself, or there is no evidence.
    """
    family = FAMILIES.get(posterior.family)
    nothing = "", np.zeros(0)
    if family is None or family.latent is None or len(posterior.observed) != 1:
        return nothing
    (statistic,) = posterior.observed
    default = family.default_prior(statistic.plan.parameters)
    if default == posterior.prior or posterior.n_prior is None:
        return nothing
    try:
        stated = log_evidence_of_whole(posterior)
    except UsageError:
        return nothing
    moved = _moved(posterior.prior)
    # The default sets single cells right, and the moved priors, which ask for several times the work, all.
    most = MOST if not moved else MOST_MOVED
    cells = np.unique(np.linspace(0, len(stated) - 1, min(most, len(stated))).astype(np.int64))
    chosen, n_prior = statistic.take(cells), posterior.n_prior
    within = math.log(max(share_of_prior(posterior), np.finfo(np.float64).tiny))
    named = {f"the default prior, {default},": default, **{str(prior): prior for prior in moved}}
    log_b = []
    for prior in named.values():
        sums, _ = family.latent(chosen, prior, n_prior)
        of_other = np.concatenate([resolve(sums.take(batch)).log_evidence for batch in batches(sums)])
        # log B_k = log P(A) + log p(y | pi_k) - log p(y | pi).
        log_b.append(of_other + noise_constant(statistic) - stated[cells] + within)
    best = int(np.argmax([np.sum(each) for each in log_b]))
    return list(named)[best], log_b[best] - math.log(len(named)) / len(cells)


def _moved(prior: Any) -> list[Any]:
    """Return a conjugate prior moved as a whole, by factors or by standard deviations; nothing of others."""
    factors = (0.25, 0.5, 2.0, 4.0)
    if isinstance(prior, Gamma):
        return [dataclasses.replace(prior, rate=prior.rate * factor) for factor in factors]
    if isinstance(prior, InverseGamma):
        return [dataclasses.replace(prior, scale=prior.scale * factor) for factor in factors]
    if isinstance(prior, Normal):
        return [dataclasses.replace(prior, loc=prior.loc + sds * prior.scale) for sds in (-2, -1, 1, 2)]
    if isinstance(prior, Beta):
        a, b = prior.concentration1, prior.concentration0
        odds = [a / b * factor for factor in factors]
        # To four digits, as they are named; none beyond the concentrations that posteriors take.
        pairs = [
            tuple(float(f"{(a + b) * share:.4g}") for share in (each / (1.0 + each), 1.0 / (1.0 + each)))
            for each in odds
        ]
        least, most = CONCENTRATIONS
        return [Beta(*pair) for pair in pairs if least <= min(pair) <= max(pair) <= most]
    return []


@dataclass(slots=True, kw_only=True)
class SimulatedWorlds:
    """Worlds of a statistic's quantities, drawn once for each number of records."""

    posterior: Judged
    statistic: NoisyStatistic
    _drawn: dict[tuple[int, bool], NoisyStatistic] = field(default_factory=dict)

    @classmethod
    def of(cls, posterior: Judged, statistic: NoisyStatistic) -> Self | None:
        """Return nothing where no data of the family can be drawn."""
        if posterior.model is None or FAMILIES[posterior.family].simulate is None:
            return None
        return cls(posterior=posterior, statistic=statistic)

    def worlds(self, quantity: Quantity, n: Floats, *, is_clipped: bool) -> Iterator[tuple[Cells, Worlds]]:
        """Return cells (n_cells,) that share worlds, and these."""
        # Data sets of 4^k records, the largest 4^k <= n: the mean of fewer records varies more.
        power = np.floor(np.log(np.clip(n, 1.0, MOST_RECORDS)) / np.log(4.0) + 1e-9).astype(np.int64)
        for power_of_cells in np.unique(power).tolist():
            exact = self._sums(4**power_of_cells, is_clipped=is_clipped)
            yield (
                np.flatnonzero(power == power_of_cells),
                Worlds.drawn(exact.estimates(quantity) / 4.0**power_of_cells).merged(),
            )

    def _sums(self, records: int, *, is_clipped: bool) -> NoisyStatistic:
        """Exact sums of data sets of so many records, a world a cell."""
        if (records, is_clipped) not in self._drawn:
            plan, model = self.statistic.plan, self.posterior.model
            family = FAMILIES[plan.family]
            assert model is not None  # noqa: S101 - checked by ``of``
            assert family.simulate is not None  # noqa: S101
            rng = np.random.default_rng(_SEED)
            from suffice.pipeline.ask.inference.any_joint_prior import draw  # few ask

            truth = draw(self.posterior.prior, family, plan.parameters, WORLDS, rng)
            simulated = family.simulate(model.entry, truth, np.full(WORLDS, records), rng)
            sums = simulated.clipped if is_clipped else simulated.unclipped
            self._drawn[records, is_clipped] = dataclasses.replace(
                self.statistic,
                values=family.totals(model.entry, plan.design, sums),
                groups={},
                further=(),
                public_n=records if plan.design is Design.MINIMAL else None,
            )
        return self._drawn[records, is_clipped]


def _shortened(prior: str) -> str:
    return f"{prior[:_LONGEST_NAME]}..." if len(prior) > _LONGEST_NAME else prior
