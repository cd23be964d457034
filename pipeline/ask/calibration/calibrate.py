r"""Simulation-based calibration: whether 95 % intervals of a release's posteriors hold 95 % of the truths.

.. math::
    \theta \sim p(\theta), \quad N \sim \pi(N), \quad X \sim p(X \mid N, \theta), \quad
    y = S(\mathrm{clip}(X)) + Z, \quad \theta^{(1)}, \ldots, \theta^{(199)} \sim p(\theta \mid y)

Sums are clipped and rounded as the release's were, and the posterior is sampled as a user samples it; that of
the same records without clipping ignores it. Where model and posterior fit, the rank of theta among its draws
is uniform on ``0..DRAWS``, whatever the problem.

References
----------
`talts2018validating`.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, overload

import numpy as np

from suffice.pipeline.ask.calibration import simulation
from suffice.pipeline.ask.calibration.pooled_calibration import calibrate_pooled, check_pooled
from suffice.pipeline.ask.calibration.remedies import advice, tried_remedies
from suffice.pipeline.ask.calibration.simulated_release import generative_model_of, require_positive
from suffice.pipeline.ask.calibration.verdict import (
    CALIBRATED,
    CANNOT_TELL,
    DRAWS,
    FALSE_ALARM,
    LEFT_OUT,
    MISS,
    NOT_CALIBRATED,
    TOLERANCE,
    Coverages,
    Intervals,
    Verdict,
    coverage_column,
    in_points,
    judge,
    level_of,
)
from suffice.pipeline.ask.inference.posterior_terms import BY_EVIDENCE, NOISE_AWARE, PLUG_IN, PosteriorTerms
from suffice.pipeline.ask.pooling.adopted import refuse_adopted
from suffice.pipeline.ask.posterior.cells import cells_of
from suffice.pipeline.math.parameters.arguments import generator
from suffice.pipeline.terms.declaration.documents import Count, Family, Method, document, one_of, printed
from suffice.pipeline.terms.declaration.wording import text_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.ask.borrowing.pooling import Pooling
    from suffice.pipeline.ask.calibration.pooled_calibration import PooledCalibration
    from suffice.pipeline.ask.calibration.remedies import Remedy
    from suffice.pipeline.ask.calibration.simulated_release import AnyPredictors
    from suffice.pipeline.ask.calibration.verdict import Progress, Ranks
    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss

_WORTH_SAYING, _MINUTES = 10.0, 120.0
"""Seconds from which on a time is told, and told in minutes."""
_TIMED = 50
"""Simulations from which on their time says what more of them take: a few cost what it takes to begin."""
_DUE_TO_CLIPPING = {
    CALIBRATED: "but for clipping: without it the same simulations are calibrated",
    CANNOT_TELL: "but for clipping, as far as they tell: without it the same simulations do not fail",
    NOT_CALIBRATED: "not by clipping alone: without it the same simulations fail as well",
}
"""What the verdict on the run without clipping says about one that failed."""
UNITS_LEFT_OUT = (
    "rows are simulated as independent, and their posteriors take them for that: the widening by what rows "
    "of one unit have in common, which is approximate, is not tested here"
)
WORLDS_HEADING = (
    "Worlds that are not the model. The truth is the parameter of a population as the public bounds leave\n"
    "its records, not drawn from the prior; of several entries the one that is covered least:"
)
SEEN = {NOT_CALIBRATED: "can be seen", CALIBRATED: "cannot be seen", CANNOT_TELL: "cannot tell"}
"""What the verdict on the posterior that ignores the noise says about the noise."""


@printed("conclusion variance_ratio parameter ignored=coverages")
@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSeen:
    """Whether simulations of this release can tell a posterior that ignores its noise from one that does not.

    Attributes
    ----------
    ignored : tuple of Ranks
        Of the same noisy sums without clipping, under the plug-in posterior.
    variance_ratio : float or None
        The variance that noise adds to a posterior over the variance without noise, by the central 80 %
        intervals: the median over all data sets, of the parameter where it is largest. None under the plug-in
        method, which adds nothing.
    parameter : str
        Of this ratio.
    """

    ignored: tuple[Ranks, ...] = field(repr=False)
    variance_ratio: float | None
    parameter: str

    @property
    def conclusion(self) -> Annotated[str, one_of(*SEEN.values())]:
        """``can be seen``, ``cannot be seen`` or ``cannot tell``."""
        return SEEN[judge(self.ignored).conclusion]

    def __str__(self) -> str:
        several = f" ({self._worst.name})" if len(self.ignored) > 1 else ""
        covers = in_points(round(self._worst.coverage(mass), 3) for mass in LEFT_OUT)
        ignoring = f"a posterior that ignored it covers {covers} % at 50, 80 and 95{several}"
        ratio = ""
        if self.variance_ratio is not None:
            of = f" of {self.parameter}" if len(self.ignored) > 1 else ""
            ratio = f"noise variance is {self.variance_ratio:.2g} of sampling variance{of}; "
        return f"noise: {self.conclusion} ({ratio}{ignoring})"

    @property
    def coverages(self) -> Coverages:
        """Of the posterior that ignores the noise, where it covers worst."""
        return self._worst.coverages

    @property
    def _worst(self) -> Ranks:
        return min(self.ignored, key=lambda ranks: ranks.coverage(0.95))


COLUMNS = (
    "parameter=ranks.parameter category?=ranks.category clipping *coverages=ranks.coverages "
    "rank_p_value=ranks.rank_p_value"
)
"""Of a table of a calibration."""


@printed(f"{COLUMNS} intervals histogram=ranks.histogram")
@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRanks:
    """The ranks of a parameter, with or without clipping, and the chance that an interval may miss with."""

    ranks: Ranks
    clipping: bool
    level: float

    @property
    def intervals(self) -> Intervals:
        """Of coverages."""
        return self.ranks.intervals(self.level)


@printed(
    "statistic family method prior n_prior predictor_prior predictors epsilon?=loss.epsilon rho?=loss.rho "
    "simulations draws clipped_share leaves_out_units conclusion reason simulations_needed false_alarm "
    "tolerance noise remedies worlds rows=shown"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A calibration's conditions and findings; made by ``calibrate``.

    Attributes
    ----------
    statistic, family, method, prior : str
        What was calibrated, and the prior that truth and posterior share.
    n_prior : str
        What N was drawn from; a number where it is public.
    predictor_prior : str or None
        What the posterior believes of a regression's predictors; None of others, and of plug-in posteriors.
    predictors : str or None
        What a regression's predictors were drawn from; None of others.
    loss : PrivacyLoss
        Of this statistic.
    simulations : int
        How many.
    seconds : float
        How long they took.
    clipped_share : float
        The share of simulated records that were clipped.
    clipped, unclipped : tuple of Ranks
        With clipping as in the release, which the conclusion rests on, and of the same records without.
    noise : NoiseSeen
        Whether the noise can be seen at all.
    remedies : tuple of Remedy
        What was tried where the posterior is not calibrated, and whether it helped; empty otherwise.
    worlds : tuple of WorldCoverage
        Coverage in worlds that are not the model; empty unless asked for.
    leaves_out_units : bool
        Whether posteriors of the release are widened by what rows of one unit have in common. Simulated rows
        are independent, and their posteriors are those of independent rows: that part is not tested.
    """

    statistic: str
    family: Family
    method: Method
    prior: str
    n_prior: str
    predictor_prior: str | None
    predictors: str | None
    loss: PrivacyLoss
    simulations: Count
    seconds: float = field(compare=False)
    clipped_share: float
    clipped: tuple[Ranks, ...] = field(repr=False)
    unclipped: tuple[Ranks, ...] = field(repr=False)
    noise: NoiseSeen = field(repr=False)
    remedies: tuple[Remedy, ...] = ()
    worlds: tuple[simulation.WorldCoverage, ...] = field(default=(), repr=False)
    leaves_out_units: bool = False
    draws: ClassVar[Count] = DRAWS
    false_alarm: ClassVar[float] = FALSE_ALARM

    @property
    def conclusion(self) -> Annotated[str, one_of(CALIBRATED, NOT_CALIBRATED, CANNOT_TELL)]:
        """``calibrated``, ``not calibrated`` or ``cannot tell``."""
        return self._verdict.conclusion

    @property
    def reason(self) -> str:
        """What the conclusion rests on, and whether it is due to clipping."""
        return f"{self._verdict.reason}{self._due_to_clipping}"

    @property
    def simulations_needed(self) -> Count:
        """How many simulations it takes for a calibrated posterior to be called so; see ``Verdict``."""
        return self._verdict.simulations_needed

    @property
    def _verdict(self) -> Verdict:
        return judge(self.clipped)

    def rows(self) -> list[dict[str, Any]]:
        """One row for every parameter, category and run: coverage, and the chance of such ranks."""
        return [document(row, COLUMNS) for row in self.shown]

    @property
    def shown(self) -> list[ShownRanks]:
        """Every parameter with clipping, and without where any record was clipped."""
        level = level_of(len(self.clipped))
        return [
            ShownRanks(ranks=ranks, clipping=clipping, level=level)
            for pair in zip(self.clipped, self.unclipped, strict=True)
            for ranks, clipping in zip(pair, (True, False), strict=True)
            if clipping or self.clipped_share > 0.0
        ]

    @property
    def tolerance(self) -> Coverages:
        """How far from nominal a coverage may be, by its column in tables."""
        return {coverage_column(mass): tolerance for mass, tolerance in TOLERANCE.items()}

    def __str__(self) -> str:
        heading = (
            f"{self.statistic}: {self.method} posterior of {self.family}, "
            f"{self.loss}\nprior {self.prior}; N: {self.n_prior}; "
            f"{self.simulations} simulation{'s' if self.simulations > 1 else ''}\n"
        )
        if self.predictors is not None:
            believed = "" if self.predictor_prior is None else f"prior of predictors {self.predictor_prior}; "
            heading += f"{believed}predictors drawn from: {self.predictors}\n"
        heading += "\n"
        rows = self.rows()
        columns = list(rows[0])
        cells = [
            [
                f"{100 * row[column]:.1f} %" if column.startswith("coverage") else _cell(row[column])
                for column in columns
            ]
            for row in rows
        ]
        text = f"{heading}{text_table(columns, cells)}\n\n{self.explanation}"
        return (
            f"{text}\n\n{WORLDS_HEADING}\n\n{simulation.worlds_table(self.worlds)}" if self.worlds else text
        )

    @property
    def explanation(self) -> str:
        """The conclusion in words, how often it is wrong, and what clipping and noise have to do with it."""
        alarm = {
            CALIBRATED: f" (said of a posterior that is further off at most {MISS:g} of the time)",
            NOT_CALIBRATED: f" (said of a calibrated posterior at most {FALSE_ALARM:g} of the time)",
        }.get(self.conclusion, self._duration)
        clipped = f"clipping: {100 * self.clipped_share:.3g} % of the simulated records are clipped"
        lines = (f"{self.conclusion}: {self._verdict.reason}{alarm}", f"{clipped}{self._due_to_clipping}")
        units = (UNITS_LEFT_OUT,) if self.leaves_out_units else ()
        return "\n".join((*lines, *advice(self.remedies), str(self.noise), *units))

    @property
    def _due_to_clipping(self) -> str:
        if self.conclusion != NOT_CALIBRATED or self.clipped_share == 0.0:
            return ""
        return f"; {_DUE_TO_CLIPPING[judge(self.unclipped).conclusion]}"

    @property
    def _duration(self) -> str:
        """How long the simulations that are needed would take, where that is worth saying."""
        seconds = self.seconds / self.simulations * self.simulations_needed
        if seconds < _WORTH_SAYING or self.simulations < _TIMED:
            return ""
        return f" (about {seconds:.0f} s)" if seconds < _MINUTES else f" (about {seconds / 60:.0f} minutes)"


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.2g}" if isinstance(value, float) else str(value)


@overload
def calibrate(
    release: Release,
    statistic: str,
    *,
    where: Mapping[str, object] | None = None,
    method: str = NOISE_AWARE,
    prior: AnyPrior = None,
    n_prior: NPrior | int | str | None = None,
    clipping: str = BY_EVIDENCE,
    predictor_prior: Prior | str | None = None,
    predictors: AnyPredictors = None,
    worlds: Sequence[str] | bool = False,
    simulations: int | None = None,
    rng: np.random.Generator | int | None = None,
    progress: Progress | None = None,
    pooled: Literal[False] = False,
) -> Calibration: ...


@overload
def calibrate(
    release: Release,
    statistic: str,
    *,
    where: Mapping[str, object] | None = None,
    prior: AnyPrior = None,
    n_prior: NPrior | int | str | None = None,
    simulations: int | None = None,
    rng: np.random.Generator | int | None = None,
    progress: Progress | None = None,
    pooled: Literal[True] | str | Sequence[str] | Pooling,
) -> PooledCalibration: ...


def calibrate(
    release: Release,
    statistic: str,
    *,
    where: Mapping[str, object] | None = None,
    method: str = NOISE_AWARE,
    prior: AnyPrior = None,
    n_prior: NPrior | int | str | None = None,
    clipping: str = BY_EVIDENCE,
    predictor_prior: Prior | str | None = None,
    predictors: AnyPredictors = None,
    worlds: Sequence[str] | bool = False,
    simulations: int | None = None,
    rng: np.random.Generator | int | None = None,
    progress: Progress | None = None,
    pooled: bool | str | Sequence[str] | Pooling = False,
) -> Calibration | PooledCalibration:
    """Measure whether posteriors of a release's statistic are calibrated, clipping and noise included.

    Everything is simulated from public numbers; it costs no privacy.

    Parameters
    ----------
    release : Release
    statistic : str
        Its name in the release.
    where : mapping, optional
        The cells whose noisy numbers of records the default prior of N rests on; all otherwise.
    method : {"noise-aware", "plug-in"}
        As in ``Release.posterior``. The plug-in method is no calibrated one, and this shows by how much.
    prior : optional
        Any that ``Release.posterior`` takes. The truth is drawn from it; the family's default otherwise.
    n_prior : optional
        A private N is drawn from it, and the posterior is computed under it. By default uniform on
        ``0..2 N0`` with ``N0`` the median of the cells' noisy numbers of records, at least 1.
    clipping : {"by-evidence", "modelled", "ignored"}
        As in ``Release.posterior``, of the run with clipping: its truths are the parameters of records
        before clipping where that is modelled, and else those that the records tend to once clipped. Counts
        of clipped records are left out of simulations, so that by evidence none is modelled.
    predictor_prior : Prior or str, optional
        As in ``Release.posterior``, of a regression's predictors.
    predictors : optional
        What the predictors of simulated records are like, where not as their prior says: a distribution by
        its name, as ``Normal(0, 1)``, or one of ``scipy.stats``, one for all or one for each; or public rows,
        as columns by name or the name of a .csv or .parquet file.
    worlds : bool or sequence of str
        Whether coverage is measured in worlds that are not the model as well, all of them or those named:
        skewed, heavy-tailed, rounded, mixture, zero-inflated, overdispersed, correlated, clipped. There the
        truth is the parameter of a whole population as the public bounds leave its records, and is not drawn
        from the prior.
    simulations : int, > 0, optional
        By default ``SIMULATIONS``, more where several parameters need more for a verdict, or
        ``SLOW_SIMULATIONS`` where posteriors take MCMC (seconds for several columns), quadrature of a density
        or that of clipped normals (a minute or a few): too few to be called calibrated. The result says how
        many it takes, and how long. Of each world as many, by default 2,000 or ``SLOW_SIMULATIONS``.
    rng : numpy.random.Generator or int, optional
        A generator or the seed of one; a fresh one otherwise.
    progress : callable, optional
        Told how many of all simulations are done.
    pooled : bool, str, sequence of str or Pooling, optional
        As in ``Release.posterior``: coverage of cells that borrow strength, over whole simulated releases, of
        which `simulations` says how many: by default 200, or 50 where cells are slow. Parameters of cells are
        drawn from `prior`, or from the population as this release has it; private sizes from `n_prior`, which
        posteriors then believe too, or they are the noisy ones. `method`, `clipping`, `predictors` and
        `worlds` do not go with it.

    Returns
    -------
    Calibration or PooledCalibration

    Raises
    ------
    UsageError, PriorError
        Where the statistic, the method or a prior does not fit, or too many records would have to be drawn.
    """
    refuse_adopted(release)
    if simulations is not None:
        require_positive("simulations", simulations)
    chosen = cells_of(release.statistic(statistic), where)
    if pooled is not False:
        check_pooled(statistic, method, clipping, predictor_prior, predictors, worlds)
        return calibrate_pooled(
            chosen,
            release.entry(statistic),
            pooled,
            prior=prior,
            n_prior=n_prior,
            releases=simulations,
            rng=generator(rng),
            progress=progress,
        )
    PosteriorTerms(method=method, clipping=clipping)  # refuses what does not exist
    generative_model = generative_model_of(
        chosen, release.entry(statistic), method, prior, n_prior, predictor_prior, predictors
    )
    generative_model = dataclasses.replace(generative_model, clipping=clipping)
    of_each_world = simulations or (
        simulation.SLOW_SIMULATIONS if generative_model.is_slow else simulation.WORLD_SIMULATIONS
    )
    if simulations is None:
        simulations = simulation.default_simulations(generative_model)
    source = generator(rng)
    started = time.monotonic()
    simulated = simulation.simulate(generative_model, simulations, source, progress, sees_noise=True)
    seconds = time.monotonic() - started
    remedies: tuple[Remedy, ...] = ()
    if judge(simulated.clipped).conclusion == NOT_CALIBRATED:
        remedies = tried_remedies(generative_model, simulations, source, prior_follows_bounds=prior is None)
    coverages = (
        simulation.world_coverages(generative_model, worlds, of_each_world, source, progress)
        if worlds
        else ()
    )
    widest = int(np.argmax(simulated.widening))
    noise = NoiseSeen(
        ignored=simulated.ignored,
        variance_ratio=None if method == PLUG_IN else simulated.widening[widest] ** 2 - 1.0,
        parameter=simulated.clipped[widest].name,
    )
    return Calibration(
        statistic=statistic,
        family=generative_model.plan.family,
        method=method,
        prior=str(generative_model.prior),
        n_prior=str(generative_model.n_prior),
        predictor_prior=_text(None if method == PLUG_IN else generative_model.predictor_prior),
        predictors=_text(generative_model.predictor_prior and (generative_model.predictors or "their prior")),
        loss=generative_model.plan.loss,
        simulations=simulations,
        seconds=seconds,
        clipped_share=simulated.clipped_share,
        clipped=simulated.clipped,
        unclipped=simulated.unclipped,
        noise=noise,
        remedies=remedies,
        worlds=coverages,
        leaves_out_units=chosen.plan.within_unit is not None,
    )


def _text(given: object) -> str | None:
    return None if given is None else str(given)
