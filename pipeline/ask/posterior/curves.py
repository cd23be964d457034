"""Where a posterior's densities are looked at, for pictures: the points of a curve for every cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.ask.judging.bounded_prior import is_restricted
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.parameter_space import Support
from suffice.pipeline.math.priors.mixtures import SpreadScale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.typing import Floats

_UNITS = {"mean": "in its unit", "scale": "in its unit", "variance": "in its unit squared"}
_LEVELS = (0.001, 0.01, 0.99, 0.999)
_FAR = 2.0
"""Widths of the inner interval that the outer may add on either side: tails may be heavy."""
_BEYOND = 0.06
_DECADES = 100.0
"""The least ratio of an interval's ends for which it is drawn on a logarithmic axis."""


def curve_points(
    posterior: Posterior,
    parameter: str,
    number: int,
    *,
    in_logs: bool = False,
    draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Return points over which a parameter's density has all but next to nothing, shaped as quantiles are.

    Parameters
    ----------
    posterior : Posterior
    parameter : str
    number : int
        Of points, ascending: (n_groups, number), categories or components between the two. Half are evenly
        spaced, and half where the mass is: of far tails the evenly spaced alone would miss the top.
    in_logs : bool
        Whether they are for a logarithmic axis: evenly spaced there, of a parameter above 0.
    draws, rng
        Of quantiles, where they rest on draws.
    """
    inner = np.linspace(_LEVELS[0], _LEVELS[-1], number // 2)
    levels = posterior.distribution.quantiles(parameter, (*_LEVELS, *inner), draws, rng)
    first, low, high, last = np.moveaxis(levels[..., : len(_LEVELS)], -1, 0)
    if in_logs:
        return np.moveaxis(np.geomspace(first, last, number), 0, -1)
    width = high - low
    first, last = np.maximum(first, low - _FAR * width), np.minimum(last, high + _FAR * width)
    beyond = _BEYOND * (last - first)
    lowest, highest = _range(posterior, parameter)
    ends = np.maximum(first - beyond, lowest), np.minimum(last + beyond, highest)
    even = np.moveaxis(np.linspace(*ends, number - len(inner)), 0, -1)
    of_mass = np.clip(levels[..., len(_LEVELS) :], ends[0][..., None], ends[1][..., None])
    return np.sort(np.concatenate([even, of_mass], axis=-1), axis=-1)


def spans_decades(posterior: Posterior, parameter: str, intervals: ArrayLike) -> bool:
    """Return whether intervals of a parameter are drawn on a logarithmic axis.

    They are where the parameter is a positive number, an upper end is 100 times its lower one or more, and
    none reaches 0: on an even axis such an interval hides all others, and most of its own mass.

    Parameters
    ----------
    posterior : Posterior
    parameter : str
    intervals : array_like of shape (..., n_marks)
        Ascending marks of each.
    """
    marks = np.asarray(intervals, dtype=np.float64)
    lower, upper = marks[..., 0], marks[..., -1]
    known = np.isfinite(lower) & np.isfinite(upper)
    is_positive = _range(posterior, parameter) == (0.0, np.inf) and bool(np.all(lower[known] > 0.0))
    return is_positive and bool(np.any(upper[known] >= _DECADES * lower[known]))


def in_words(posterior: Posterior, parameter: str) -> str:
    """Return what the numbers of a parameter are, with their unit where they have one: an axis' label."""
    known = FAMILIES[posterior.family].parameter_names(posterior.constants) if posterior.constants else ()
    name = parameter.replace("_", " ")
    columns = posterior.observed[0].plan.columns if posterior.observed else ()
    if len(columns) != 1:
        return f"{name} of {posterior.statistic}" if len(known) == 1 else name
    unit = _UNITS.get(parameter)
    return f"{name} of {columns[0]}" + (f", {unit}" if unit else "")


def smoothing_of(posterior: Posterior) -> str:
    """Return what a picture has to say of the smoothing of its densities; empty where there is none."""
    if posterior.n_prior is None:
        return ""
    is_smoothed = FAMILIES[posterior.family].mean_and_variance is not None or isinstance(
        posterior.prior, SpreadScale
    )
    return "smoothed over up to an eighth of their spread" if is_smoothed else ""


def _range(posterior: Posterior, parameter: str) -> tuple[float, float]:
    """Return the numbers between which a parameter lies."""
    spaces = FAMILIES[posterior.family].parameter_spaces(posterior.constants) if posterior.constants else ()
    support = {space.name: space.support for space in spaces}.get(parameter, Support.REAL)
    if support is Support.PROBABILITY:
        return 0.0, 1.0
    if support is Support.POSITIVE or parameter == "variance":
        return 0.0, np.inf
    family = FAMILIES[posterior.family]
    if posterior.constants and is_restricted(posterior):
        # The mean of records within the bounds lies within them.
        if family.limits is not None:
            return family.limits(posterior.constants)
        if family.mean_and_variance is not None:
            centre, half_range = family.mean_and_variance.interval(posterior.constants)
            return centre - half_range, centre + half_range
    return -np.inf, np.inf
