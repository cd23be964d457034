"""Planning backwards: the smallest epsilon at which a posterior is as narrow as asked for, without data."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.fields import canonical
from suffice.pipeline.inference import posterior_of
from suffice.pipeline.n_prior import Uniform
from suffice.pipeline.numbers import LARGEST_SCALE, MICRO, scale_rounded_up
from suffice.pipeline.plan import compile_plan
from suffice.pipeline.posterior import NOISE_AWARE, PLUG_IN, generator
from suffice.pipeline.release import NoisyStatistic
from suffice.pipeline.sensitivity import Design
from suffice.pipeline.simulation import discrete_laplace
from suffice.pipeline.target import MASS, NeededEpsilon, Target, parse_target
from suffice.pipeline.world import require_drawable, require_positive, world_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from suffice.pipeline.inference import AnyPrior
    from suffice.pipeline.n_prior import NPrior
    from suffice.pipeline.plan import StatisticPlan
    from suffice.pipeline.posterior import Posterior
    from suffice.pipeline.spec import Spec
    from suffice.pipeline.world import World

    Floats: TypeAlias = NDArray[np.float64]
    Counts: TypeAlias = NDArray[np.int64]

SIMULATIONS = 200
SLOW_SIMULATIONS = 40
"""Where the prior is a density, and a posterior takes some tenths of a second."""
LARGEST_EPSILON = 100
"""More is no privacy to speak of; a target that needs more is refused."""
_DRAWS = 1000
_PRIOR_DRAWS = 100_000
_STEP = 4
"""Between epsilons while the target is being bracketed."""
_PRECISION = 100
"""The bracket is closed up to this part of the answer; the Monte Carlo error of the width is as large."""
_DIGITS = 3
"""Of the answer, which is rounded up."""


def smallest_epsilon(
    spec: Spec,
    target: Target | str,
    *,
    n: int,
    prior: AnyPrior = None,
    n_prior: NPrior | int | str | None = None,
    simulations: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> NeededEpsilon:
    r"""Find the smallest epsilon whose prior-predictive median 95 % interval is as narrow as a target.

    .. math:: \min \{\varepsilon : \mathrm{median}_{\theta, X, Z} \; w_{0.95}(Y_\varepsilon) \le w\}

    The parameters are drawn from the prior, `n` records from the model, clipped and rounded as a release
    clips and rounds them, and noise from the law that the spec has at each epsilon: by the same random
    numbers at every one, so that a seed makes the answer repeatable. No data are read and nothing is spent.

    Parameters
    ----------
    spec : Spec
        Its own epsilon plays no part; the shares of its statistics do.
    target : Target or str
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

    Returns
    -------
    NeededEpsilon

    Raises
    ------
    UsageError, PriorError
        Where the target names nothing in the spec, or no epsilon up to 100 reaches it, or none is needed.
    """
    asked = parse_target(target) if isinstance(target, str) else target
    require_positive("n", n)
    if simulations is not None:
        require_positive("simulations", simulations)
    source = generator(rng)
    world, share = _world(spec, asked, n, prior, n_prior)
    if simulations is None:
        simulations = SLOW_SIMULATIONS if world.is_slow else SIMULATIONS
    require_drawable(world, n * simulations)
    sums = world.sums(
        world.truth(simulations, source), np.full(simulations, n, dtype=np.int64), source
    ).clipped
    seed = int(source.integers(2**63))

    def widths(epsilon: Fraction) -> Floats:
        at = replace(world, plan=_plan_at(world.plan, share * epsilon))
        same = np.random.default_rng(seed)
        noise = discrete_laplace(at.plan.scale, (simulations, len(at.plan.components)), same)
        return _widths(at, sums, noise, asked, same)

    def reaches(epsilon: Fraction) -> bool:
        if _plan_at(world.plan, share * epsilon).scale > LARGEST_SCALE:
            return False
        return float(np.median(widths(epsilon))) <= asked.width

    silence = np.zeros((simulations, len(world.plan.components)), dtype=np.int64)
    exact = replace(world, method=PLUG_IN, believed_n_prior=None)
    without = float(np.median(_widths(exact, sums, silence, asked, np.random.default_rng(seed))))
    if without >= asked.width:
        message = (
            f"target {asked}: {n} records without any noise give a median width of {without:.4g}: ask for a "
            "wider interval, more records or a stronger prior"
        )
        raise UsageError(message)
    alone = _prior_width(exact, sums[:1], asked, np.random.default_rng(seed))
    if alone <= asked.width:
        message = f"target {asked}: the prior alone is as narrow ({alone:.4g}): no release is needed for it"
        raise UsageError(message)
    epsilon = _smallest(reaches, asked)
    found = widths(epsilon)
    return NeededEpsilon(
        target=asked,
        epsilon=epsilon,
        statistic_epsilon=share * epsilon,
        n=n,
        prior=str(world.prior),
        n_prior=str(world.n_prior),
        width=float(np.median(found)),
        width_standard_error=_median_error(found),
        width_without_noise=without,
        simulations=simulations,
    )


def _world(
    spec: Spec, target: Target, n: int, prior: AnyPrior, n_prior: NPrior | int | str | None
) -> tuple[World, Fraction]:
    """Return the world of the target's statistic, and its share of the release's epsilon."""
    plan = compile_plan(spec)
    chosen = [statistic for statistic in plan.statistics if statistic.name == target.statistic]
    if not chosen:
        known = ", ".join(spec.statistics)
        message = f"target {target}: the spec has no statistic {target.statistic!r}: it has {known}"
        raise UsageError(message)
    (statistic,) = chosen
    private = statistic.design is not Design.MINIMAL
    entry = canonical(spec.statistics[statistic.name])
    cell = NoisyStatistic(
        plan=statistic,
        values=np.zeros((1, len(statistic.components)), dtype=np.int64).astype(object),
        groups={},
        public_n=None if private else n,
        max_total_rows=spec.max_total_rows,
    )
    if FAMILIES[statistic.family].by_mcmc(statistic.parameters):
        message = (
            f"target {target}: {statistic.name} is {statistic.family}, whose posteriors take MCMC, too "
            "slow to try many epsilons: simulate one release at a time with suffice calibrate"
        )
        raise UsageError(message)
    believed = Uniform(0, 2 * n) if private and n_prior is None else n_prior
    world = world_of(cell, cast("dict[str, Any]", entry), NOISE_AWARE, prior, believed)
    _position(posterior_of(cell, method=PLUG_IN, prior=world.prior), target)
    return world, statistic.epsilon / plan.epsilon


def _plan_at(plan: StatisticPlan, epsilon: Fraction) -> StatisticPlan:
    return replace(plan, epsilon=epsilon, scale=scale_rounded_up(plan.l1_sensitivity, epsilon))


def _widths(
    world: World, sums: NDArray[np.object_], noise: Counts, target: Target, rng: np.random.Generator
) -> Floats:
    """Widths of the target's intervals in every simulation, (n_simulations,)."""
    posterior = posterior_of(
        world.noisy(sums, noise), method=world.method, prior=world.prior, n_prior=world.believed_n_prior
    )
    ends = posterior.credible_interval(target.parameter, MASS, draws=_DRAWS, rng=rng)
    if target.category is not None:
        ends = ends[:, posterior.categories.index(target.category)]
    widths: Floats = ends[:, 1] - ends[:, 0]
    return widths


def _prior_width(world: World, sums: NDArray[np.object_], target: Target, rng: np.random.Generator) -> float:
    """The width of the prior's own interval."""
    posterior = posterior_of(
        world.noisy(sums, np.zeros((1, len(world.plan.components)), dtype=np.int64)),
        method=PLUG_IN,
        prior=world.prior,
    )
    draws = world.truth(_PRIOR_DRAWS, rng).reshape(_PRIOR_DRAWS, -1)[:, _position(posterior, target)]
    lower, upper = np.quantile(draws, [(1.0 - MASS) / 2.0, (1.0 + MASS) / 2.0])
    return float(upper - lower)


def _position(posterior: Posterior, target: Target) -> int:
    """Where the target's parameter stands among a prior's draws.

    Raises
    ------
    UsageError
        Where the statistic has no such parameter or category.
    """
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


def _smallest(reaches: Callable[[Fraction], bool], target: Target) -> Fraction:
    """Bracket and bisect, in millionths; the answer has a few digits and is rounded up."""
    high = MICRO
    if reaches(Fraction(high, MICRO)):
        low = high // _STEP
        while low and reaches(Fraction(low, MICRO)):
            high, low = low, low // _STEP
    else:
        low, high = high, high * _STEP
        while not reaches(Fraction(high, MICRO)):
            if high == LARGEST_EPSILON * MICRO:
                message = (
                    f"target {target}: not reached at epsilon {LARGEST_EPSILON}: ask for a wider interval"
                )
                raise UsageError(message)
            low, high = high, min(high * _STEP, LARGEST_EPSILON * MICRO)
    while high - low > max(1, high // _PRECISION):
        middle = math.isqrt(low * high) if low else high // 2
        if reaches(Fraction(middle, MICRO)):
            high = middle
        else:
            low = middle
    unit = 10 ** max(0, len(str(high)) - _DIGITS)
    high = -(-high // unit) * unit
    while not reaches(Fraction(high, MICRO)):  # close by, Monte Carlo error decides
        high += unit
    return Fraction(high, MICRO)


def _median_error(widths: Floats) -> float:
    """The standard error of a median: half the distance of the order statistics a deviation to each side."""
    ordered, middle, reach = np.sort(widths), len(widths) / 2, math.sqrt(len(widths)) / 2
    low, high = max(0, math.floor(middle - reach)), min(len(widths) - 1, math.ceil(middle + reach))
    return float(ordered[high] - ordered[low]) / 2.0
