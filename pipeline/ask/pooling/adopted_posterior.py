"""Posteriors from a published noisy table: of rates, probabilities, shares of categories, and counts.

What a cell was is an interval of noisy numbers (``math.engines.published_counts``): cells that were
suppressed, rounded or clamped enter as such, and no number is put in their place.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.inference.chosen_priors import read_prior
from suffice.pipeline.ask.judging.conflict import Conflict
from suffice.pipeline.ask.pooling.adopted_priors import log_prior_on_line
from suffice.pipeline.ask.pooling.pooled_cells import Cells, check_pooled, how_cells_are, pooled_in_words
from suffice.pipeline.ask.pooling.published_table import far_out
from suffice.pipeline.ask.posterior.posterior import Posterior
from suffice.pipeline.math.distributions.dirichlet import Beta, Dirichlet
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.distributions.gamma import Gamma
from suffice.pipeline.math.distributions.interval_kinds import HIGHEST_DENSITY
from suffice.pipeline.math.engines.published_counts import (
    JudgedCells,
    LatentCount,
    parameter_posterior,
)
from suffice.pipeline.math.engines.tabled_counts import (
    count_posterior,
    total_posterior,
)
from suffice.pipeline.math.engines.tabled_shares import shares_posterior, shares_tails
from suffice.pipeline.math.engines.varying_counts import VaryingLikelihood
from suffice.pipeline.math.priors.record_count import Fixed, Reciprocal, Uniform, parse_n_prior
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.pooling.published_number import Published
    from suffice.pipeline.math.distributions.intervals import Range
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Floats, Mask

_RARE = math.log(0.01)
"""Of noise by which a number exceeds the largest that the law declares: the answer is named then."""
_LEVELS, _MOVED = 4000, 0.2
"""Quantiles of a rate, and the share that half the ``upper`` may take off a mean or an end in silence."""
_RESTS = 0.25
"""The share of a pool that may be suppressed in silence: at a third, intervals of real days fell short."""
LARGEST_TOTAL = 10**12
"""Of a noisy total, under the default prior: what a spec's ``max_total_rows`` is where it is not stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedConflict(Conflict):
    """A ``Conflict``, and what was published beyond what the declared law admits.

    Attributes
    ----------
    beyond : tuple of str
        A sentence each.
    """

    beyond: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return a sentence for each disagreement."""
        return [*Conflict.lines(self), *(f"conflict with the declared law: {each}" for each in self.beyond)]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AdoptedPosterior(Posterior):
    """The posterior of one statistic of an adopted release: a ``Posterior``, and what its prior decides.

    Attributes
    ----------
    ends : (float, float)
        The parameter's range.
    is_default : bool
        Whether the prior is what the law's ``upper`` makes the default.
    decided : ndarray of shape (n_groups,) or (n_groups, n_categories), bool
        Where nothing was published but that it was suppressed or clamped, or what lies beyond ``upper``; of
        rates also where half that ``upper`` would take a fifth off the mean or the upper end.
    tails : ndarray of shape (n_groups,), float64, or None
        As ``JudgedCells`` has them.
    cells : {"vary", "alike"} or None
        What pooled cells do; None where none are pooled.
    beyond : tuple of str
        Where what was published is beyond what the law admits, by noise that is rare.
    """

    ends: tuple[float, float]
    is_default: bool
    decided: Mask = field(repr=False)
    tails: Floats | None = field(repr=False)
    cells: Literal["vary", "alike"] | None = None
    beyond: tuple[str, ...] = ()

    @property
    def estimand(self) -> str:
        """Nothing: ``rows_of`` says what the posterior is of."""
        return ""

    @property
    def clipping(self) -> None:
        """None: no value of a published table is known to be clipped."""
        return

    @property
    def default_interval(self) -> str:
        """Highest-density: an interval of a small rate reaches 0."""
        return HIGHEST_DENSITY

    def ends_of(self, parameter: str) -> Range:  # noqa: ARG002 - there is one parameter
        """Return the ends of the parameter's range."""
        return self.ends

    @property
    def conflict(self) -> Conflict:
        """Whether what was published is where a stated prior expects it; a default one is not judged.

        A tail is twice the prior probability of parameters as likely as all but 8 nats of the best, or
        farther out.
        """
        tails = np.ones(self.n_groups) if self.is_default or self.tails is None else self.tails
        return AdoptedConflict(
            quantities=(self.statistic,),
            tails=tails[:, None],
            of_n=np.zeros(1, dtype=bool),
            prior=str(self.prior),
            n_prior="" if self.n_prior is None else str(self.n_prior),
            beyond=self.beyond,
        )

    @property
    def decided_by_default(self) -> dict[str, Mask]:
        """Where the default prior decides intervals, or their far ends."""
        return {self.parameters[0]: self.decided} if self.is_default and np.any(self.decided) else {}

    @property
    def moved_by_default(self) -> dict[str, Mask]:
        """Nothing: the default is even."""
        return {}

    @property
    def log_evidence(self) -> Floats:
        """Log probability of what was published under the prior, (n_groups,); of densities that of the noise.

        Of categories but for a constant, the same for all tables.
        """
        evidence: Floats = self.distribution.log_evidence  # type: ignore[attr-defined]
        return evidence

    def prior_density(self, parameter: str, points: ArrayLike) -> None:  # noqa: ARG002
        """Return None: pictures of adopted releases show no prior."""
        return

    def _hint(self, parameter: object) -> str:
        return "" if parameter in self.parameters else ": an adopted release has one parameter a statistic"


def adopted_posterior(
    statistic: Any,
    prior: AnyPrior,
    *,
    where: Mapping[str, object] | None,
    pooled: Sequence[str] | str,
    n_prior: NPrior | int | str | None,
    cells: str | None,
) -> AdoptedPosterior:
    """Return the posterior of a statistic's parameter; see ``AdoptedStatistic.posterior``.

    Raises
    ------
    UsageError, PriorError
    """
    over = (pooled,) if isinstance(pooled, str) else tuple(pooled)
    check_pooled(statistic, over)
    if n_prior is not None and not (statistic.family == "bernoulli" and len(statistic.noisy) == 2):
        message = f"{statistic.name}: a prior of N is of a noisy total, and it has none: leave it out"
        raise UsageError(message)
    rows = statistic.rows(where)
    of = {"count": _counts, "poisson": _rates, "bernoulli": _shares, "categorical": _categories}
    chosen = Cells.of(statistic, rows, over, how_cells_are(statistic, over, cells))
    return of[statistic.family](statistic, prior, chosen, n_prior)


def _counts(statistic: Any, prior: AnyPrior, cells: Cells, _n_prior: object) -> AdoptedPosterior:
    if cells.over:
        return _totals(statistic, prior, cells)
    upper = int(statistic.entry.upper)
    chosen: Any = Uniform(0, upper) if prior is None else prior
    if isinstance(chosen, str):
        chosen = parse_n_prior(chosen)
    if not isinstance(chosen, Reciprocal | Uniform | Fixed):
        message = (
            f"{statistic.name} is a count: its prior is Uniform(low, high) or Reciprocal(max), of whole "
            f"numbers; not {chosen}"
        )
        raise PriorError(message)
    published = cells.published(statistic, statistic.entry.column)
    judged = count_posterior([number.count for (number,) in published], chosen)
    ends = tuple(map(float, chosen.support))
    return _made(
        statistic,
        cells,
        [published],
        judged.distribution,
        chosen,
        ends,
        judged.tails,
        is_default=prior is None,
    )


def _totals(statistic: Any, prior: AnyPrior, cells: Cells) -> AdoptedPosterior:
    """Return the posterior of totals over pooled cells, whose counts come from one population."""
    entry = statistic.entry
    chosen = Gamma(1.0, 2.0 / entry.upper) if prior is None else read_prior(prior)
    published = cells.published(statistic, entry.column)
    counts = [
        [replace(number.count, last=min(number.count.last, math.floor(entry.upper))) for number in cell]
        for cell in published
    ]
    latent = [[LatentCount(each) for each in cell] for cell in counts]
    judged = _rate(statistic, chosen, latent, cells, is_judged=prior is not None)
    return _made(
        statistic,
        cells,
        [published],
        total_posterior(counts, judged),
        chosen,
        (0.0, math.inf),
        judged.tails,
        is_default=prior is None,
    )


def _rate(
    statistic: Any, prior: Any, latent: list[list[LatentCount]], cells: Cells, *, is_judged: bool
) -> JudgedCells:
    """Return the posterior of the rate that pooled cells share, or vary about."""
    return parameter_posterior(
        "rate",
        Line.LOGARITHM,
        latent,
        *log_prior_on_line(statistic, prior, Gamma, Line.LOGARITHM),
        is_judged=is_judged,
        likelihood_of=VaryingLikelihood if cells.vary else None,
    )


def _rates(statistic: Any, prior: AnyPrior, cells: Cells, _n_prior: object) -> AdoptedPosterior:
    entry = statistic.entry
    chosen = Gamma(1.0, 2.0 / entry.upper) if prior is None else read_prior(prior)
    published = cells.published(statistic, entry.column)
    sizes = (
        cells.public(statistic, entry.exposure) if entry.exposure else [[1.0] * len(row) for row in published]
    )
    latent = [
        [LatentCount(number.count, size) for number, size in zip(*cell, strict=True)]
        for cell in zip(published, sizes, strict=True)
    ]
    judged = _rate(statistic, chosen, latent, cells, is_judged=prior is not None)
    return _made(
        statistic,
        cells,
        [published],
        judged.distribution,
        chosen,
        (0.0, math.inf),
        judged.tails,
        is_default=prior is None,
    )


def _shares(
    statistic: Any, prior: AnyPrior, cells: Cells, n_prior: NPrior | int | str | None
) -> AdoptedPosterior:
    entry = statistic.entry
    chosen = Beta(1.0, 1.0) if prior is None else read_prior(prior)
    published = [cells.published(statistic, entry.column)]
    of_n: Any = None
    if len(statistic.noisy) == 2:
        of_n = Reciprocal(LARGEST_TOTAL) if n_prior is None else n_prior
        of_n = (
            parse_n_prior(of_n) if isinstance(of_n, str) else Fixed(of_n) if isinstance(of_n, int) else of_n
        )
        published.append(cells.published(statistic, entry.total))
        latent = [
            [
                LatentCount(number.count, total=total.count, total_prior=of_n)
                for number, total in zip(*cell, strict=True)
            ]
            for cell in zip(*published, strict=True)
        ]
    else:
        totals = cells.public(statistic, entry.total)
        latent = [
            [LatentCount(number.count, size) for number, size in zip(*cell, strict=True)]
            for cell in zip(published[0], totals, strict=True)
        ]
    log_prior = log_prior_on_line(statistic, chosen, Beta, Line.LOGIT)
    judged = parameter_posterior("probability", Line.LOGIT, latent, *log_prior, is_judged=prior is not None)
    return _made(
        statistic,
        cells,
        published,
        judged.distribution,
        chosen,
        (0.0, 1.0),
        judged.tails,
        is_default=prior is None,
        n_prior=of_n,
    )


def _categories(statistic: Any, prior: AnyPrior, cells: Cells, _n_prior: object) -> AdoptedPosterior:
    entry, names = statistic.entry, statistic.categories
    chosen: Any = Dirichlet(1.0) if prior is None else read_prior(prior)
    if not isinstance(chosen, Dirichlet) or len(chosen.concentration) not in {1, len(names)}:
        message = (
            f"{statistic.name} has {len(names)} categories: its prior is a Dirichlet of 1 or {len(names)} "
            f"numbers; not {chosen}"
        )
        raise PriorError(message)
    if entry.columns is not None:
        by_column = [cells.published(statistic, column) for column in entry.columns]
        published = [list(itertools.chain.from_iterable(cell)) for cell in zip(*by_column, strict=True)]
    else:
        published = cells.published(statistic, entry.column)
        if any(len(cell) != len(names) for cell in published):
            message = f"{statistic.name}: shares are of all categories: leave {entry.category} out of where"
            raise UsageError(message)
    concentration = np.broadcast_to(np.asarray(chosen.concentration, dtype=np.float64), (len(names),)).copy()
    counts = [[number.count for number in cell] for cell in published]
    distribution = shares_posterior(counts, concentration)
    return _made(
        statistic,
        cells,
        [published],
        distribution,
        chosen,
        (0.0, 1.0),
        None if prior is None else shares_tails(counts, concentration),
        is_default=prior is None,
        categories=names,
    )


def _is_beyond(published: Published, upper: float) -> bool:
    """Tell whether a noisy number is larger than the largest parameter by what noise rarely is."""
    count = published.count
    beyond = count.low - upper
    if not 0.0 < beyond < math.inf:
        return False
    beyond = math.ceil(beyond) if count.law.is_whole else beyond
    return bool(count.law.log_tail(np.array([beyond]))[0] < _RARE)


def _moved_by_upper(distribution: Any, prior: Gamma) -> Mask:
    """Return where half the ``upper`` of a rate, and so half the prior's mean, would lower what is said."""
    level = (np.arange(_LEVELS) + 0.5) / _LEVELS
    rate = distribution.quantiles("rate", level.tolist(), 0, np.random.default_rng(0))
    # The other prior over this one, Gamma(1, 2 r) over Gamma(1, r), falls as e^(-r lambda).
    weight = np.exp(-prior.rate * (rate - rate[:, :1]))
    below = np.cumsum(weight, axis=1)
    at = np.array([np.searchsorted(row, 0.975 * row[-1]) for row in below])
    ends = rate[np.arange(len(rate)), at], rate[:, round(0.975 * _LEVELS)]
    means = np.sum(weight * rate, axis=1) / below[:, -1], np.mean(rate, axis=1)
    moved: Mask = np.any([other < (1.0 - _MOVED) * this for other, this in (ends, means)], axis=0)
    return moved


def _made(
    statistic: Any,
    cells: Cells,
    published: Sequence[Sequence[Sequence[Published]]],
    distribution: Any,
    prior: Any,
    ends: tuple[float, ...],
    tails: Floats | None,
    *,
    is_default: bool,
    n_prior: NPrior | None = None,
    categories: tuple[str, ...] = (),
) -> AdoptedPosterior:
    every = [number for column in published for cell in column for number in cell]
    hidden = sum(number.status == "suppressed" for number in every)
    said = [f"of an adopted release, by its publisher's declared law: {statistic.release.law.publisher}"]
    if hidden:
        said.append(
            f"{hidden} of {counted(len(every), 'published number')} suppressed, and taken as censored"
        )
    if cells.over:
        said.append(pooled_in_words(cells, distribution.parameters[0]))
        rests = sum(
            sum(number.status == "suppressed" for number in cell) > _RESTS * len(cell)
            for column in published
            for cell in column
        )
        if rests:
            said.append(
                f"in {rests} of {counted(sum(map(len, published)), 'pool')} more than a quarter is "
                "suppressed: what is there follows from the shape of the counts' law, which nothing published"
                " can check; intervals are too narrow where it is lower, as quiet days of a week are"
            )
    release, rows = statistic.release, list(itertools.chain.from_iterable(cells.rows))
    beyond = [
        str(far)
        for far in far_out(release.law, release.columns, statistic.name, rows)
        # What a rate can be is what a stated prior says.
        if far.log_chance < _RARE and (is_default or not far.is_of_rate)
    ]
    if statistic.filled:
        said.append(statistic.filled)
    entry = statistic.entry
    is_bounded = not cells.over if entry.family == "count" else getattr(entry, "exposure", "") is None
    largest = float(entry.upper) if is_bounded else math.inf
    decided = np.array(
        [
            all(
                number.count.low == -math.inf or _is_beyond(number, largest)
                for column in cell
                for number in column
            )
            for cell in zip(*published, strict=True)
        ]
    )
    if is_default and entry.family == "poisson":
        decided |= _moved_by_upper(distribution, prior)
    if is_default and cells.over and entry.family == "count":
        halved = distribution.mean_under(lambda position: np.exp(-prior.rate * np.exp(position)))
        decided |= halved < (1.0 - _MOVED) * distribution.mean("total")
    return AdoptedPosterior(
        statistic=statistic.name,
        family=statistic.family,
        method="noise-aware",
        prior=prior,
        n_prior=n_prior,
        groups=cells.groups,
        label_columns={"category": categories} if categories else {},
        distribution=distribution,
        observed=(statistic,),  # its presence says that there is something to judge
        releases=(statistic.release.named,),
        rows_of="; ".join(said),
        ends=(ends[0], ends[1]),
        is_default=is_default,
        decided=np.repeat(decided[:, None], len(categories), axis=1) if categories else decided,
        tails=tails,
        cells=None if not cells.over else "vary" if cells.vary else "alike",
        beyond=tuple(beyond),
    )
