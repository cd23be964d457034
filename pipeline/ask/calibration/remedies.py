"""What would help a posterior that is not calibrated: tried by simulation, never supposed.

Each remedy is simulated with the very truths, numbers of records and seeds of the posterior as it is, so that
data sets are compared one by one. Each is judged by what its posterior is asked for: the parameters of
records as its own bounds leave them, or before clipping where that is modelled. It helps where more truths
are gained than lost, beyond chance, and coverage comes nearer to nominal. A wide prior draws truths whose
records the bounds clip, which a user's data need not be like: a remedy that helps them and spoils truths
whose records the bounds hold is not advised.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import SufficeError
from suffice.pipeline.ask.calibration.record_worlds import CORRELATED, WORLDS, populations, sums_of_each
from suffice.pipeline.ask.calibration.simulation import true_parameters
from suffice.pipeline.ask.calibration.verdict import DRAWS, LEFT_OUT, at_least, batch_of, ranks_of
from suffice.pipeline.ask.inference.posterior_terms import MODELLED, NOISE_AWARE
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.wording import text_table
from suffice.pipeline.terms.statistics.measure import PowerSums
from suffice.pipeline.terms.statistics.noise_scale import noise_scale
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.ask.calibration.simulated_release import GenerativeModel
    from suffice.pipeline.terms.declaration.documents import Count
    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.statistics.sensitivity import Block
    from suffice.typing import Counts, Floats

SIMULATIONS, SLOW_SIMULATIONS = 400, 60
"""Data sets on which remedies are tried, at most."""
_MASS = 0.95
_FALSE_ALARM = 1e-3
"""Chance that any of the remedies that change nothing is said to help."""
_TIMES_EPSILON = 4
_WIDER, _NARROWER = Fraction(2), Fraction(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change of the release, and what it does to 95 % intervals of the parameter that they cover worst.

    Attributes
    ----------
    change : str
        In words.
    parameter : str
    before, after : float
        Coverage, of the same truths.
    before_within, after_within : float or None
        Coverage of truths whose records the bounds hold: means or standard deviations of 2 to 15 % of the
        range. None where it does not decide, and of several columns or categories.
    helps : bool
        Whether coverage is nearer to nominal, beyond chance, and not farther from it within the bounds.
    simulations : int
    """

    change: str
    parameter: str
    before: float
    after: float
    before_within: float | None
    after_within: float | None
    helps: bool
    simulations: Count


def tried_remedies(
    generative_model: GenerativeModel,
    simulations: int,
    rng: np.random.Generator,
    *,
    prior_follows_bounds: bool,
) -> tuple[Remedy, ...]:
    """Simulate what might help a posterior that is not calibrated, and tell what did.

    At most ``SIMULATIONS`` are done, or ``SLOW_SIMULATIONS`` where a remedy's posteriors are slow. Where the
    prior follows the bounds, it is the family's default, which other bounds change.
    """
    changed = list(_changed(generative_model, prior_follows_bounds=prior_follows_bounds))
    number = data_sets([generative_model, *(candidate for _, candidate in changed)], simulations)
    seed = int(rng.integers(2**63))
    draws = np.random.default_rng(seed)
    sizes = generative_model.sizes(number, draws)
    truth = generative_model.truth(number, draws)
    within_bounds = _within_bounds(generative_model, number, draws)
    names, drawn = _held(generative_model, truth, sizes, seed)
    worst = int(np.argmax(np.abs(drawn.mean(axis=0) - _MASS)))
    parameter, category = names[worst]
    remedies = []
    for change, candidate in changed:
        try:
            _, after = _held(candidate, truth, sizes, seed)
        except SufficeError:
            continue  # what cannot be released or answered is no remedy
        is_nearer = comes_nearer(drawn[:, worst], after[:, worst], len(changed))
        pairs: list[tuple[Any, Any]] = []
        if is_nearer and within_bounds is not None:  # asked for where it decides
            held = [_held(each, within_bounds, sizes, seed)[1] for each in (generative_model, candidate)]
            pairs = [(held[0][:, worst], held[1][:, worst])]
        spoils = any(comes_nearer(two, before, len(changed)) for before, two in pairs)
        remedies.append(
            Remedy(
                change=change,
                parameter=parameter if category is None else f"{parameter} of {category}",
                before=float(drawn[:, worst].mean()),
                after=float(after[:, worst].mean()),
                before_within=float(pairs[0][0].mean()) if pairs else None,
                after_within=float(pairs[0][1].mean()) if pairs else None,
                helps=is_nearer and not spoils,
                simulations=number,
            )
        )
    return tuple(remedies)


def advice(remedies: Sequence[Remedy]) -> tuple[str, ...]:
    """Say what of the remedies that were tried helped, above a table of what they did."""
    if not remedies:
        return ()
    first = remedies[0]
    columns = ["tried", f"95 % of {first.parameter} cover", "where bounds hold the records", "helps"]
    cells = [["as it is", _share(first.before), "", ""]]
    for each in remedies:
        within = ""
        if each.before_within is not None:
            within = f"{_share(each.after_within)} for {_share(each.before_within)}"
        cells.append([each.change, _share(each.after), within, "yes" if each.helps else "no"])
    helped = " or ".join(each.change for each in remedies if each.helps) or "nothing that was tried"
    return (f"what helps: {helped}, of {first.simulations} of the same data sets", text_table(columns, cells))


def _share(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def data_sets(models: Sequence[GenerativeModel], simulations: int) -> int:
    """Return on how many data sets these are compared: few where posteriors of any are slow."""
    is_slow = any(generative_model.is_slow for generative_model in models)
    return min(simulations, SLOW_SIMULATIONS if is_slow else SIMULATIONS)


def _within_bounds(generative_model: GenerativeModel, number: int, rng: np.random.Generator) -> Floats | None:
    """Return parameters of one column's model under which next to no record is clipped."""
    measure = generative_model.family.measure(generative_model.entry)
    if not isinstance(measure, PowerSums):
        return None
    pools = populations(WORLDS[CORRELATED], generative_model.entry, measure, rng)
    means = [sums_of_each(measure, pool).mean(axis=0) for pool in pools]
    grid = true_parameters(generative_model, means)
    drawn = generative_model.truth(1, rng)
    return grid[np.arange(number) % len(grid)].reshape(number, *drawn.shape[1:])


def comes_nearer(before: NDArray[np.bool_], after: NDArray[np.bool_], remedies: int) -> bool:
    """Tell whether coverage came nearer to nominal, by the exact sign test of truths gained and lost.

    Of data sets whose intervals differ in holding the truth, half change either way by chance.
    """
    gained, lost = int(np.sum(after & ~before)), int(np.sum(before & ~after))
    if before.mean() > _MASS:
        gained, lost = lost, gained
    is_nearer = abs(after.mean() - _MASS) < abs(before.mean() - _MASS)
    chance = float(at_least(np.array(gained), gained + lost, 0.5)) if gained + lost else 1.0
    return bool(is_nearer and chance <= _FALSE_ALARM / remedies)


def _changed(
    generative_model: GenerativeModel, *, prior_follows_bounds: bool
) -> Iterator[tuple[str, GenerativeModel]]:
    """Give every remedy that there is for a statistic."""
    plan, family = generative_model.plan, generative_model.family
    if generative_model.method != NOISE_AWARE:
        believed = None if plan.design is Design.MINIMAL else generative_model.n_prior
        yield (
            f"method {NOISE_AWARE}",
            dataclasses.replace(generative_model, method=NOISE_AWARE, believed_n_prior=believed),
        )
    elif family.models_clipping and generative_model.clipping != MODELLED:
        yield f"clipping {MODELLED}", dataclasses.replace(generative_model, clipping=MODELLED)
    loss = plan.loss * _TIMES_EPSILON
    if plan.cone is not None:
        cone = dataclasses.replace(plan.cone, rate=plan.cone.rate * _TIMES_EPSILON)
        more = dataclasses.replace(generative_model, plan=dataclasses.replace(plan, loss=loss, cone=cone))
    else:
        scale = noise_scale(loss, l1_sensitivity=plan.l1_sensitivity, l2_squared=plan.l2_squared)
        planned = dataclasses.replace(plan, loss=loss, scale=scale)
        more = dataclasses.replace(generative_model, plan=planned, scale=scale)
    yield f"{_TIMES_EPSILON} times the {plan.loss.measure}", more
    for times in (_WIDER, _NARROWER):
        bounds = _scaled_bounds(generative_model.entry, times)
        if bounds:
            written = ", ".join(f"{name}: {format_number(bound)}" for name, bound in bounds.items())
            candidate = _with_bounds(generative_model, bounds, prior_follows_bounds=prior_follows_bounds)
            yield written, candidate


def _scaled_bounds(entry: StatisticSpec, times: Fraction) -> dict[str, Fraction]:
    """Return bounds so many times as far from each other, or from a lower one that is known."""
    lower, upper, minimum, half_range = (
        getattr(entry, name, None) for name in ("lower", "upper", "minimum", "half_range")
    )
    if half_range is not None:
        return {"half_range": half_range * times}
    if upper is None or entry.family == "rows_per_unit":  # whose shares are of the first `upper` rows
        return {}
    if minimum is not None:
        return {"upper": minimum + (upper - minimum) * times}
    if lower is None:
        return {"upper": Fraction(max(int(upper * times), 1)) if isinstance(upper, int) else upper * times}
    if entry.family == "lognormal":  # the lattice is one of logarithms
        return {"lower": lower / times, "upper": upper * times}
    middle, half = (lower + upper) / 2, (upper - lower) / 2 * times
    return {"lower": middle - half, "upper": middle + half}


def _with_bounds(
    generative_model: GenerativeModel, bounds: dict[str, Fraction], *, prior_follows_bounds: bool
) -> GenerativeModel:
    plan, family = generative_model.plan, generative_model.family
    integers = {
        name: int(bound) if isinstance(getattr(generative_model.entry, name), int) else bound
        for name, bound in bounds.items()
    }
    entry = generative_model.entry.model_copy(update=integers)
    minimal = plan.design is Design.MINIMAL
    before, block = family.block(generative_model.entry, minimal), family.block(entry, minimal)
    l1_sensitivity = plan.l1_sensitivity * _moved_by_a_unit(block) // _moved_by_a_unit(before)
    l2_squared = None
    if plan.l2_squared is not None:
        l2_squared = -(-plan.l2_squared * _squared_by_a_unit(block) // _squared_by_a_unit(before))
    scale = noise_scale(plan.loss, l1_sensitivity=l1_sensitivity, l2_squared=l2_squared)
    parameters = family.parameters(entry)
    return dataclasses.replace(
        generative_model,
        entry=entry,
        plan=dataclasses.replace(
            plan,
            l1_sensitivity=l1_sensitivity,
            l2_squared=l2_squared,
            scale=scale,
            partition_total=block.partition_total,
            quantities=block.quantities,
            parameters=parameters,
        ),
        scale=scale,
        prior=family.default_prior(parameters) if prior_follows_bounds else generative_model.prior,
    )


def _moved_by_a_unit(block: Block) -> int:
    """Return what one record, or one unit, moves; the release's sensitivity is a multiple of it."""
    return block.record_l1 or block.unit_l1 or block.minimal_sensitivity or 1


def _squared_by_a_unit(block: Block) -> int:
    """Return the square of what one record, or one unit, moves by Euclidean distance, alike."""
    return block.record_l2_squared or block.minimal_l2_squared or _moved_by_a_unit(block) ** 2


def _held(
    candidate: GenerativeModel, truth: Floats, sizes: Counts, seed: int
) -> tuple[tuple[tuple[str, str | None], ...], NDArray[np.bool_]]:
    """Return the names of parameters, and whether 95 % intervals hold what the posterior is asked for.

    That is each truth, or what records tend to once clipped, as in ``calibrate``. Records and noise follow
    from the seed: a candidate's are those of the posterior as it is, but for what is changed.
    """
    out, batch, number = LEFT_OUT[_MASS], batch_of(candidate), len(sizes)
    sums = candidate.sums(truth, sizes, np.random.default_rng(seed)).clipped
    judged = candidate.judged(truth)
    noise = candidate.noise(number, np.random.default_rng(seed + 1))
    names: tuple[tuple[str, str | None], ...] = ()
    ranks: list[Counts] = []
    for start in range(0, number, batch):
        part = slice(start, start + batch)
        names, of_part, _ = ranks_of(candidate, judged[part], sums[part], noise[part], seed)
        ranks.append(of_part)
    every = np.concatenate(ranks)
    held: NDArray[np.bool_] = (every >= out) & (every <= DRAWS - out)
    return names, held
