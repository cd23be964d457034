"""Planning backwards: the smallest loss at which a posterior is as narrow as asked for, without data.

A plan is to reach a width, as people write it: ``arr_delay mean width 2``. Data sets are simulated once, and
their posteriors worked out at one loss after another, by the same random numbers. Losses are tried by the
epsilon that costs as much: of a spec in rho that of ``epsilon^2 / 2``, so that noise goes as ``1 / epsilon``
in either measure.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias, cast

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.calibration import simulated_release
from suffice.pipeline.ask.inference.posterior_terms import IGNORED, NOISE_AWARE, PLUG_IN
from suffice.pipeline.ask.planning import width_search
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.parameters.arguments import generator
from suffice.pipeline.math.priors.record_count import Uniform
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.terms.declaration.delta import shown_epsilons
from suffice.pipeline.terms.declaration.documents import Count, printed
from suffice.pipeline.terms.declaration.exact_numbers import LARGEST_SCALE, MICRO
from suffice.pipeline.terms.declaration.fields import canonical
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss, PrivacyMeasure
from suffice.pipeline.terms.statistics.noise_scale import noise_scale
from suffice.pipeline.terms.statistics.sensitivity import Design
from suffice.pipeline.terms.statistics.simulated_noise import simulated_noise

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Counts, Floats, Rows

    Progress: TypeAlias = Callable[[int, int], None]

SIMULATIONS = 200
SLOW_SIMULATIONS = 40
"""Where the prior is a density, and a posterior takes some tenths of a second."""
_DRAWS = 1000
_PRIOR_DRAWS = 100_000
_POSTERIORS = 2
"""Posteriors that a search takes, about, by the number of simulations."""
_NO_NOISE = Fraction(300)
"""An epsilon whose noise is next to none: at 10,000 median widths are the same to .1 % (tests)."""
MASS = 0.95
"""Of the intervals."""
_FORM = re.compile(
    r"(?P<statistic>\S+)\s+(?P<parameter>\w+)(?:\[(?P<category>.+)\])?\s+width\s+(?P<width>\S+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedWidth:
    """How narrow which posterior is to be.

    Attributes
    ----------
    statistic, parameter : str
    category : str or None
        The category that a ``probability`` is of.
    width : float, > 0
        Of the 95 % credible interval, in the parameter's unit.
    """

    statistic: str
    parameter: str
    category: str | None
    width: float

    def __str__(self) -> str:
        category = "" if self.category is None else f"[{self.category}]"
        return f"{self.statistic} {self.parameter}{category} width {self.width:g}"


class _ByMeasure(NamedTuple):
    """A number, by the measure that it is of."""

    epsilon: float | None
    rho: float | None


@printed(
    "statistic=target.statistic parameter=target.parameter category?=target.category width=target.width mass "
    "n prior n_prior simulations epsilon?=loss.epsilon rho?=loss.rho epsilon_at?=loss.epsilon_at "
    "epsilon_standard_error?=standard_error_by.epsilon rho_standard_error?=standard_error_by.rho "
    "statistic_epsilon?=statistic_loss.epsilon statistic_rho?=statistic_loss.rho median_width=width "
    "median_width_standard_error=width_standard_error median_width_without_noise=width_without_noise "
    "count_clipped?=counts"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class NeededLoss:
    """The smallest loss that reaches a target; made by ``smallest_loss``.

    Attributes
    ----------
    target : WantedWidth
    loss : PrivacyLoss
        Of the whole release, in the spec's measure and at its shares; one that accounts can count.
    standard_error : float
        Its Monte Carlo error, from that of the width: other simulations give another median.
    statistic_loss : PrivacyLoss
        The statistic's part of it.
    n : int
        Records in a cell.
    prior, n_prior : str
        Of the parameters, and of a private N; a number where N is public.
    width, width_standard_error : float
        The median width over the simulations at this loss, and its Monte Carlo error.
    width_without_noise : float
        The median width that the exact statistics would give: no loss reaches less.
    simulations : int
    counts : CountsBeside or None
        What counting the records that clipping moved adds to the loss; None where the family counts none.
    """

    target: WantedWidth
    loss: PrivacyLoss
    standard_error: float
    statistic_loss: PrivacyLoss
    n: Count
    prior: str
    n_prior: str
    width: float
    width_standard_error: float
    width_without_noise: float
    simulations: Count
    counts: width_search.CountsBeside | None = None
    mass: ClassVar[float] = MASS

    @property
    def standard_error_by(self) -> _ByMeasure:
        """The Monte Carlo error of the loss, by its measure."""
        error, is_epsilon = self.standard_error, self.loss.measure is PrivacyMeasure.EPSILON
        return _ByMeasure(epsilon=error if is_epsilon else None, rho=None if is_epsilon else error)

    @property
    def _in_words(self) -> str:
        """What a loss in rho is in approximate privacy, as a line."""
        return "" if self.loss.rho is None else f"(epsilon, delta) at most {shown_epsilons(self.loss.rho)}\n"

    def __str__(self) -> str:
        return (
            f"target {self.target}: {self.loss} "
            f"({self.target.statistic}'s part is {self.statistic_loss.text}; standard error "
            f"{self.standard_error:.2g})\n{self._in_words}"
            f"with {self.n} records a cell, prior {self.prior}, N: {self.n_prior}\n"
            f"median width of the 95 % interval: {self.width:.4g} (standard error "
            f"{self.width_standard_error:.2g}, {self.simulations} simulations); without noise "
            f"{self.width_without_noise:.4g}" + ("" if self.counts is None else f"\n{self.counts}")
        )


def parse_target(text: str) -> WantedWidth:
    """Read ``STATISTIC PARAMETER width NUMBER``; for categories ``carrier probability[UA] width 0.01``.

    Raises
    ------
    UsageError
        Where the text is no such target.
    """
    match = _FORM.fullmatch(text.strip())
    try:
        width = float(match["width"]) if match else math.nan
    except ValueError:
        width = math.nan
    if match is None or not 0.0 < width < math.inf:
        message = (
            f"target {text!r}: write STATISTIC PARAMETER width NUMBER, as 'arr_delay mean width 2' or "
            "'carrier probability[UA] width 0.01'"
        )
        raise UsageError(message)
    return WantedWidth(
        statistic=match["statistic"], parameter=match["parameter"], category=match["category"], width=width
    )


def smallest_loss(
    spec: Spec,
    target: WantedWidth | str,
    *,
    n: int,
    prior: AnyPrior = None,
    n_prior: NPrior | int | str | None = None,
    simulations: int | None = None,
    rng: np.random.Generator | int | None = None,
    progress: Progress | None = None,
) -> NeededLoss:
    r"""Find the smallest loss whose prior-predictive median 95 % interval is as narrow as a target.

    .. math:: \min \{\varepsilon : \mathrm{median}_{\theta, X, Z} \; w_{0.95}(Y_\varepsilon) \le w\}

    The parameters are drawn from the prior, `n` records from the model, clipped and rounded as a release
    clips and rounds them, and noise from the distribution that the spec has at each epsilon, or of a spec in
    rho at :math:`\rho = \varepsilon^2 / 2`: by the same random numbers at every one, so that a seed makes the
    answer repeatable. No data are read and nothing is spent.

    Parameters
    ----------
    spec : Spec
        What it costs plays no part; its measure and the shares of its statistics do.
    target : WantedWidth or str
        As ``arr_delay mean width 2``.
    n : int, > 0
        Records in a cell.
    prior : optional
        Any that ``Release.posterior`` takes. The family's default otherwise.
    n_prior : optional
        What the posterior believes of a private N; by default uniform on ``0..2 n``.
    simulations : int, > 1, optional
        By default ``SIMULATIONS``, or ``SLOW_SIMULATIONS`` under a density.
    rng : numpy.random.Generator or int, optional
        A generator or the seed of one; a fresh one otherwise.
    progress : callable, optional
        Told how many posteriors are worked out, of about how many.

    Returns
    -------
    NeededLoss

    Raises
    ------
    UsageError, PriorError
        Where the target names nothing in the spec, or no epsilon up to 100 (rho up to 5,000) reaches it, or
        none is needed.
    """
    asked = parse_target(target) if isinstance(target, str) else target
    trials = Trials.of(spec, asked, n=n, prior=prior, n_prior=n_prior, simulations=simulations, rng=rng)
    generative_model = trials.generative_model
    without = trials.widths_without_noise()
    least_width = float(np.median(without))
    if least_width >= asked.width:
        message = (
            f"target {asked}: {n} records without any noise give a median width of {least_width:.4g}: ask "
            "for a wider interval, more records or a stronger prior"
        )
        raise UsageError(message)
    alone = trials.width_of_prior()
    if alone <= asked.width:
        message = f"target {asked}: the prior alone is that narrow ({alone:.4g}): no release is needed for it"
        raise UsageError(message)
    size, done = len(without), 0

    def widths(epsilon: Fraction, rows: Rows) -> Floats:
        nonlocal done
        of_rows = trials.widths(epsilon, rows)
        done += len(rows)
        if progress is not None:
            progress(done, max(done + 1, _POSTERIORS * size))
        return of_rows

    least = math.ceil(MICRO * trials.scale_at_one / LARGEST_SCALE) + 1
    crossing = width_search.smallest(widths, without, asked.width, least)
    if progress is not None:
        progress(done, done)
    if crossing is None:
        largest = loss_of(trials.measure, Fraction(width_search.LARGEST_EPSILON))
        message = f"target {asked}: not reached at {largest}: ask for a wider interval"
        raise UsageError(message)
    loss = loss_of(trials.measure, crossing.epsilon)
    power = 1 if trials.measure is PrivacyMeasure.EPSILON else 2
    return NeededLoss(
        target=asked,
        loss=loss,
        standard_error=power * float(loss.amount) * crossing.width_error / crossing.width / -crossing.slope,
        statistic_loss=loss * trials.share,
        n=n,
        prior=str(generative_model.prior),
        n_prior=str(generative_model.n_prior),
        width=crossing.width,
        width_standard_error=crossing.width_error,
        width_without_noise=least_width,
        simulations=size,
        counts=width_search.counts_beside(spec, asked.statistic, loss),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """Simulated data sets, and the widths of a target's intervals at any epsilon, by the same random numbers.

    Attributes
    ----------
    target : WantedWidth
    generative model : GenerativeModel
        Of the target's statistic.
    measure : PrivacyMeasure
        Of the spec.
    share : Fraction
        Of the release's loss that is the statistic's.
    sums : ndarray of object, shape (n_simulations, n_sums)
        Exact sums of clipped and rounded records.
    seed : int
        Of the noise.
    """

    target: WantedWidth
    generative_model: simulated_release.GenerativeModel
    measure: PrivacyMeasure
    share: Fraction
    sums: NDArray[np.object_]
    seed: int

    @classmethod
    def of(
        cls,
        spec: Spec,
        target: WantedWidth,
        *,
        n: int,
        prior: AnyPrior = None,
        n_prior: NPrior | int | str | None = None,
        simulations: int | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> Self:
        """Draw parameters and records; see ``smallest_loss``."""
        simulated_release.require_positive("n", n)
        if simulations is not None:
            simulated_release.require_positive("simulations", simulations)
        source = generator(rng)
        generative_model, share = _generative_model(spec, target, n, prior, n_prior)
        if simulations is None:
            simulations = SLOW_SIMULATIONS if generative_model.is_slow else SIMULATIONS
        simulated_release.require_drawable(generative_model, n * simulations)
        sizes = np.full(simulations, n, dtype=np.int64)
        sums = generative_model.sums(generative_model.truth(simulations, source), sizes, source).clipped
        return cls(
            target=target,
            generative_model=generative_model,
            measure=spec.privacy.loss.measure,
            share=share,
            sums=sums,
            seed=int(source.integers(2**63)),
        )

    def widths(self, epsilon: Fraction, rows: Rows | None = None) -> Floats:
        """Widths at the loss that costs as much as an epsilon, (n_simulations,), or some in their order."""
        chosen = np.arange(len(self.sums)) if rows is None else rows
        plan = _plan_at(self.generative_model.plan, loss_of(self.measure, epsilon) * self.share)
        at = replace(self.generative_model, plan=plan)
        same = np.random.default_rng(self.seed)
        noise = simulated_noise(at.plan, (len(self.sums),), same, at.cells_summed)
        return self._widths(at, self.sums[chosen], noise[chosen], same)

    def widths_without_noise(self) -> Floats:
        """Widths that the exact statistics would give, (n_simulations,)."""
        generative_model = self.generative_model
        if generative_model.family.clipped_record is None:
            generative_model = replace(generative_model, method=PLUG_IN, believed_n_prior=None)
        else:  # where plug-in posteriors would take clipped records for what they were before
            plan = _plan_at(generative_model.plan, loss_of(self.measure, _NO_NOISE))
            generative_model = replace(generative_model, plan=plan)
        silence = np.zeros((len(self.sums), len(generative_model.plan.components)), dtype=np.int64)
        return self._widths(generative_model, self.sums, silence, np.random.default_rng(self.seed))

    @property
    def scale_at_one(self) -> float:
        """The scale of the statistic's noise at an epsilon of 1 for the release; it goes as 1 / epsilon."""
        plan = self.generative_model.plan
        if plan.l2_squared is None:
            return float(plan.l1_sensitivity / self.share)
        return math.sqrt(plan.l2_squared / self.share)

    def width_of_prior(self) -> float:
        """The width of the prior's own interval."""
        rng, generative_model = np.random.default_rng(self.seed), self.generative_model
        silence = np.zeros((1, len(generative_model.plan.components)), dtype=np.int64)
        cell = generative_model.noisy(self.sums[:1], silence)
        draws = generative_model.truth(_PRIOR_DRAWS, rng).reshape(_PRIOR_DRAWS, -1)
        of_target = draws[:, _position(posterior_of(cell, method=PLUG_IN), self.target)]
        lower, upper = np.quantile(of_target, [(1.0 - MASS) / 2.0, (1.0 + MASS) / 2.0])
        return float(upper - lower)

    def _widths(
        self,
        generative_model: simulated_release.GenerativeModel,
        sums: NDArray[np.object_],
        noise: Counts,
        rng: np.random.Generator,
    ) -> Floats:
        posterior = generative_model.posterior(sums, noise)
        ends = posterior.credible_interval(self.target.parameter, MASS, draws=_DRAWS, rng=rng)
        if self.target.category is not None:
            ends = ends[:, posterior.categories.index(self.target.category)]
        widths: Floats = ends[:, 1] - ends[:, 0]
        return widths


def _generative_model(
    spec: Spec, target: WantedWidth, n: int, prior: AnyPrior, n_prior: NPrior | int | str | None
) -> tuple[simulated_release.GenerativeModel, Fraction]:
    """Return the generative model of the target's statistic, and its share of the release's loss."""
    plan = compile_plan(spec)
    chosen = [statistic for statistic in plan.statistics if statistic.name == target.statistic]
    if not chosen:
        known = ", ".join(spec.statistics)
        message = f"target {target}: the spec has no statistic {target.statistic!r}: it has {known}"
        raise UsageError(message)
    (statistic,) = chosen
    if statistic.sample is not None:
        message = (
            f"target {target}: {statistic.name} is released as a posterior sample, which gives no intervals: "
            "leave its sample out, or hold the two against each other with suffice plan --beside sample"
        )
        raise UsageError(message)
    private = statistic.design is not Design.MINIMAL
    entry = canonical(spec.statistics[statistic.name])
    summed = statistic.n_cells if FAMILIES[statistic.family].of_release else 1
    cell = simulated_release.unseen_cell(statistic, n, spec.max_total_rows, summed)
    if statistic.within_unit is not None:
        message = (
            f"target {target}: {statistic.name} has within_unit: true, and how wide its intervals are "
            "depends on how much rows of one unit have in common, which no plan knows: leave it out"
        )
        raise UsageError(message)
    if FAMILIES[statistic.family].by_mcmc(statistic.parameters):
        message = (
            f"target {target}: {statistic.name} is {statistic.family}, whose posteriors take MCMC, too "
            "slow to try many losses: simulate one release at a time with suffice calibrate"
        )
        raise UsageError(message)
    believed = Uniform(0, 2 * n) if private and n_prior is None else n_prior
    generative_model = simulated_release.generative_model_of(
        cell, cast("dict[str, Any]", entry), NOISE_AWARE, prior, believed
    )
    # What parameters are called does not depend on the prior.
    _position(posterior_of(cell, method=PLUG_IN), target)
    if generative_model.family.mean_and_variance is not None:
        # Hundreds of times half a second at every epsilon that is tried.
        generative_model = replace(generative_model, clipping=IGNORED)
    return generative_model, statistic.loss.amount / plan.loss.amount


def loss_of(measure: PrivacyMeasure, epsilon: Fraction) -> PrivacyLoss:
    """Return the loss that costs as much as an epsilon; of rho, rounded up to what accounts count."""
    if measure is PrivacyMeasure.EPSILON:
        return PrivacyLoss.of_epsilon(epsilon)
    return PrivacyLoss.of_rho(epsilon**2 / 2).rounded_up


def _plan_at(plan: StatisticPlan, loss: PrivacyLoss) -> StatisticPlan:
    scale = noise_scale(loss, l1_sensitivity=plan.l1_sensitivity, l2_squared=plan.l2_squared)
    return replace(plan, loss=loss, scale=scale)


def _position(posterior: Posterior, target: WantedWidth) -> int:
    """Return where the target's parameter stands among a prior's draws; refuse one that does not exist."""
    if target.parameter not in posterior.parameters:
        known = ", ".join(posterior.parameters)
        message = f"target {target}: {target.statistic} has no parameter {target.parameter!r}: it has {known}"
        raise UsageError(message)
    position = posterior.parameters.index(target.parameter)
    if not posterior.categories and target.category is None:
        return position
    if target.category not in posterior.categories:
        known = ", ".join(posterior.categories) or "none"
        message = f"target {target}: name one of {target.statistic}'s categories in brackets: {known}"
        raise UsageError(message)
    return position * len(posterior.categories) + posterior.categories.index(target.category)
