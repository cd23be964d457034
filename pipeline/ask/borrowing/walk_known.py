"""What is known of the steps, coefficients, slopes and seasons of series, and what is said of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.pipeline.ask.borrowing.pool import UNIDENTIFIED
from suffice.pipeline.ask.judging.conflict import Conflict
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.pooled.jump_sets import JUMP_VARIANCE
from suffice.pipeline.math.engines.pooled.ordered_law import SEASON_SCALE, SLOPES_OF_STEPS
from suffice.pipeline.math.engines.pooled.walk import JUMP_SCALE
from suffice.pipeline.math.engines.pooled.walk_steps import LOG_STEP_SD
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.ask.borrowing.walk import Walk
    from suffice.pipeline.math.engines.pooled.field_error import FieldError
    from suffice.pipeline.math.engines.pooled.ordered_distribution import OrderedDistribution
    from suffice.pipeline.math.engines.pooled.panel_distribution import PanelDistribution
    from suffice.pipeline.math.engines.pooled.walk_distribution import WalkDistribution

UNRELIABLE, UNRELIABLE_SD = 0.3, 0.1
"""Standard deviations: where more than 1 of 100 cells are off by more, an answer is not settled; and where
standard deviations themselves are off by more than that share."""
_FAINT = 10.0
"""How many times the variance of a step noise has where maps of a few waves leave steps a tenth to a third
too small. However well steps are told: their intervals miss the truth in panels of 256 places, too."""
_FURTHER = ("coefficient", "slope_step", "season", "common_step")


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What is known of the steps of the series of one pool.

    Attributes
    ----------
    keys : dict of str to str or int
        What its cells have in common; empty where all are one pool.
    n_series, n_cells, n_times : int
        A time that has no cell counts as one.
    step : (float, float)
        Posterior mean and standard deviation of the standard deviation of steps, on the line: the logit of a
        probability, the logarithm of a rate or a scale.
    coefficient : (float, float) or None
        Of the share of a distance from the level that is left after a time, in 0..1; None of a walk.
    slope_step : (float, float) or None
        Of the standard deviation of steps of slopes, where these take some.
    season : (float, float) or None
        Of the standard deviation of the effects of a season, on the line.
    common_step : (float, float) or None
        Of the standard deviation of the steps that all series take together, where there are some.
    identified : bool
        Whether the cells tell the step, or that of slopes.
    common_identified : bool
        Whether they tell that of all together; where there is none, too.
    season_identified : bool
        Whether they tell the spread of the season's effects; where there is none, too.
    spread_identified : bool
        Whether they tell the spread of the places of a map; where there is none, too.
    settled : bool
        Whether integrals are resolved, and propagation is off by little.
    error : FieldError or None
        What propagation is off by; None where recursions are exact but for their points.
    faint : bool
        Whether steps of a map's places are identified though noise is many times their variance.
    """

    keys: dict[str, str | int]
    n_series: int
    n_cells: int
    n_times: int
    step: tuple[float, float]
    coefficient: tuple[float, float] | None
    slope_step: tuple[float, float] | None
    season: tuple[float, float] | None
    common_step: tuple[float, float] | None
    identified: bool
    common_identified: bool
    season_identified: bool
    spread_identified: bool
    settled: bool
    error: FieldError | None
    faint: bool

    @classmethod
    def of(
        cls, keys: dict[str, str | int], part: WalkDistribution | OrderedDistribution | PanelDistribution
    ) -> Steps:
        """Sum up the posterior of hyperparameters."""
        n_series, n_times = part.shape
        known, told = part.known, {name: sd <= UNIDENTIFIED * LOG_STEP_SD for name, sd in part.log_sd.items()}
        error: FieldError | None = getattr(part, "error", None)
        return cls(
            keys=keys,
            n_series=n_series,
            n_cells=part.n_cells,
            n_times=n_times,
            step=known["step"],
            coefficient=known.get("coefficient"),
            slope_step=known.get("slope_step"),
            season=known.get("season"),
            common_step=known.get("common_step"),
            identified=told["step"] or told.get("slope_step", False),
            season_identified=told.get("season", True),
            common_identified=told.get("common_step", True),
            spread_identified=told.get("spread", True),
            settled=part.settled
            and (error is None or (error.largest <= UNRELIABLE and error.of_sd <= UNRELIABLE_SD)),
            error=error,
            faint=getattr(part, "noise_over_step", 0.0) > _FAINT and told["step"],
        )

    @property
    def further(self) -> dict[str, float | None]:
        """Means and standard deviations of further hyperparameters, by name."""
        pairs = {name: getattr(self, name) or (None, None) for name in _FURTHER}
        return {name + end: pairs[name][place] for name in _FURTHER for place, end in enumerate(("", "_sd"))}

    @property
    def row(self) -> dict[str, Any]:
        """Keys and numbers by name."""
        return {
            **self.keys,
            "series": self.n_series,
            "cells": self.n_cells,
            "times": self.n_times,
            "step": self.step[0],
            "step_sd": self.step[1],
            **{name: value for name, value in self.further.items() if value is not None},
            "identified": self.identified,
        }

    def __str__(self) -> str:
        said = f"steps {self.step[0]:.2g} (sd {self.step[1]:.2g}) on the log scale of odds or rates"
        for pair, words in (
            (self.slope_step, "steps of slopes"),
            (self.coefficient, "what is left of a distance from the level after a time"),
            (self.season, "spread of the season's effects"),
            (self.common_step, "steps of all together"),
        ):
            if pair is not None:
                said += f"; {words} {pair[0]:.2g} (sd {pair[1]:.2g})"
        return said


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkPrior:
    """The prior of cells that walk, in words.

    Attributes
    ----------
    walk : Walk
    line : Line
    """

    walk: Walk
    line: Line

    def __str__(self) -> str:
        walk, is_logit = self.walk, self.line is Line.LOGIT
        what = "logits" if is_logit else "logarithms"
        # Of the recursions it is logistic; propagation has the normal law of the same variance.
        first = ("Logistic(0, 1)", "Logistic(centre, 2)")
        if not walk.is_on_a_line:
            first = ("Normal(0, 1.81^2)", "Normal(centre, 3.63^2)")
        place = first[not is_logit]
        jumps = walk.share_of_jumps
        jump = f"Laplace(0, {JUMP_SCALE:g})" if walk.is_on_a_line else f"Normal(0, s^2 + {JUMP_VARIANCE:g})"
        steps = f"{1.0 - jumps:.3g} Normal(0, s^2) + {jumps:.3g} {jump}" if jumps else "Normal(0, s^2)"
        said = f"steps {steps}, s integrated over under HalfNormal({walk.step:g})"
        if walk.kind == "ar1":
            name, where = "return", f"the level {place} of each series"
            said += "; what is left of a distance after a time Uniform(0, 1)"
        else:
            name, where = "random walk", f"first position {place}"
        if walk.order == 2:
            name = "local linear trend"
            said += (
                f"; of slopes Normal(0, r^2), r under HalfNormal({SLOPES_OF_STEPS * walk.step:.3g}), the "
                f"first slope Normal(0, {walk.step:g}^2)"
            )
        if walk.season is not None:
            said += (
                f"; a season of {walk.season} effects that add up to 0, Normal(0, t^2), t under "
                f"HalfNormal({SEASON_SCALE:g})"
            )
        return f"{name} of {what} over {walk.over}: {said}; {where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkConflict(Conflict):
    """A ``Conflict``: of released numbers of records, and whether steps are identified.

    Attributes
    ----------
    unidentified : tuple of str
        A sentence for every pool whose step is not identified, or that is not resolved.
    """

    unidentified: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return a sentence for sizes, and for every step that is not identified."""
        # super() has no class to start from in slots of a dataclass.
        return [*Conflict.lines(self), *self.unidentified]


def doubts(steps: tuple[Steps, ...]) -> tuple[str, ...]:
    """Return a sentence for every pool that is not resolved, and for whatever its cells do not tell."""
    return (
        *(_unsettled(each) for each in steps if not each.settled),
        *(_unidentified(each) for each in steps if not each.identified),
        *(
            f"steps of places{in_keys(each.keys)} rest on the law of the map, as noise has more than "
            f"{_FAINT:g} times their variance: where the map is smoother than that law, steps come out a "
            "tenth to a third too small, which their sd does not say"
            for each in steps
            if each.faint
        ),
        *(
            f"the size of the season{in_keys(each.keys)} is not identified: its hyperprior decides how much "
            "of what moves is the season's"
            for each in steps
            if not each.season_identified
        ),
        *(
            f"steps of all series together{in_keys(each.keys)} are not identified: their hyperprior decides "
            "how much of what moves is common"
            for each in steps
            if not each.common_identified
        ),
        *(
            f"the spread of places{in_keys(each.keys)} is not identified: its hyperprior decides how much "
            "they borrow from each other"
            for each in steps
            if not each.spread_identified
        ),
    )


def method_of(steps: tuple[Steps, ...]) -> str:
    """Say by which method positions are known, and what it is off by; nothing of exact recursions."""
    errors = [each.error for each in steps if each.error is not None]
    if not errors:
        return ""
    largest, of_sd = max(each.largest for each in errors), max(each.of_sd for each in errors)
    typical = max(each.typical for each in errors)
    return (
        "; by expectation propagation with the exact likelihood of each cell: means are off by an estimated "
        f"{typical:.1g} sd, of 99 in 100 cells by up to {largest:.1g}, and sds by {100.0 * of_sd:.1g} %"
        + ("" if all(each.is_of_all for each in errors) else ", as times near each other say")
    )


def in_keys(keys: Mapping[str, object]) -> str:
    """Say of which keys something is; nothing of none."""
    return f" of {', '.join(f'{column}={key}' for column, key in keys.items())}" if keys else ""


def _unsettled(steps: Steps) -> str:
    if steps.error is not None:
        return (
            f"expectation propagation{in_keys(steps.keys)} is not reliable here, as its check says, or not "
            f"resolved: means may be off by {steps.error.largest:.2f} sd and more, and sds by "
            f"{100.0 * steps.error.of_sd:.0f} %"
        )
    return (
        f"the walk{in_keys(steps.keys)} is not resolved: its cells are too precise, or too far apart, for "
        "the points it is worked out on; intervals may be off"
    )


def _unidentified(steps: Steps) -> str:
    n_cells = counted(steps.n_cells, "cell")
    return (
        f"the step of the walk{in_keys(steps.keys)} is not identified by its {n_cells}: its "
        "hyperprior decides how much they borrow; each cell alone is shown first"
    )
