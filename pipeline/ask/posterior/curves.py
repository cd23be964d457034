"""Where a posterior's densities are looked at, for pictures: the points of a curve for every cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.ask.judging.bounded_prior import is_restricted
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.parameter_space import Support

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.typing import Cells, Floats

_UNITS = {"mean": "in its unit", "scale": "in its unit", "variance": "in its unit squared"}
_LEVELS = (0.001, 0.01, 0.025, 0.975, 0.99, 0.999)
_FAR = 2.0
"""Widths of the inner interval that the outer may add on either side: tails may be heavy."""
_BEYOND = 0.06
_SHOWN = 0.45
"""Lengths of the 95 % interval that pictures show on either side of it, at most."""
_APART = 20.0
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
        Of points, ascending: (n_groups, number), categories or components between the two. A third is evenly
        spaced over all that has mass, a third over what pictures show, and a third lies where the mass does:
        of far tails the first alone would miss the top.
    in_logs : bool
        Whether they are for a logarithmic axis: evenly spaced there, of a parameter above 0.
    draws, rng
        Of quantiles, where they rest on draws.
    """
    inner = np.linspace(_LEVELS[0], _LEVELS[-1], number // 3)
    levels = posterior.distribution.quantiles(parameter, (*_LEVELS, *inner), draws, rng)
    first, low, lower, upper, high, last = np.moveaxis(levels[..., : len(_LEVELS)], -1, 0)
    if in_logs:
        return np.moveaxis(np.geomspace(first, last, number), 0, -1)
    width = high - low
    first, last = np.maximum(first, low - _FAR * width), np.minimum(last, high + _FAR * width)
    beyond = _BEYOND * (last - first)
    lowest, highest = _range(posterior, parameter)
    ends = np.maximum(first - beyond, lowest), np.minimum(last + beyond, highest)
    reach = _SHOWN * (upper - lower)
    shown = np.maximum(lower - reach, ends[0]), np.minimum(upper + reach, ends[1])
    parts = [
        np.moveaxis(np.linspace(*ends, number - 2 * len(inner)), 0, -1),
        np.moveaxis(np.linspace(*shown, len(inner)), 0, -1),
        np.clip(levels[..., len(_LEVELS) :], ends[0][..., None], ends[1][..., None]),
    ]
    return np.sort(np.concatenate(parts, axis=-1), axis=-1)


def prior_points(points: Floats, number: int, *, in_logs: bool = False) -> Floats:
    """Return points for a prior beside curves: those of all of them, and evenly spaced ones, ascending.

    Parameters
    ----------
    points : ndarray of shape (..., n_points), float64
        Of the curves.
    number : int
        Of points, about, of each kind.
    in_logs : bool
        As in `curve_points`.
    """
    evenly = np.geomspace if in_logs else np.linspace
    of_curves = np.sort(points, axis=None)
    every = max(1, len(of_curves) // number)
    return np.unique(np.concatenate([evenly(of_curves[0], of_curves[-1], number), of_curves[::every]]))


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
    is_positive = _support(posterior, parameter) is Support.POSITIVE and np.all(lower[known] > 0.0)
    return bool(is_positive and np.any(upper[known] >= _DECADES * lower[known]))


def on_shared_axes(posterior: Posterior, parameter: str) -> list[tuple[str, Cells]]:
    """Return which entries of a parameter share an axis, and what these are in words where they are not all.

    Components, such as the slopes of a regression, have an axis each where one reaches over `_APART` times as
    much as another, whose intervals the shared axis would make points. Categories share theirs.

    Returns
    -------
    list of (str, ndarray of shape (n_rows,), int64)
        Words, and places among ``entry_names``.
    """
    kind, names = posterior.labels(parameter)
    places = np.arange(posterior.n_groups * max(len(names), 1))
    if kind != "component" or len(names) < 2:
        return [("", places)]
    mean, sd = (of(parameter).reshape(-1, len(names)) for of in (posterior.mean, posterior.sd))
    reach = np.max(mean + 2.0 * sd, axis=0) - np.min(mean - 2.0 * sd, axis=0)
    if not np.all(np.isfinite(reach)) or np.max(reach) < _APART * np.min(reach):
        return [("", places)]
    return [(name, places[number :: len(names)]) for number, name in enumerate(names)]


def in_words(posterior: Posterior, parameter: str) -> str:
    """Return what the numbers of a parameter are, with their unit where they have one: an axis' label."""
    if posterior.about.words(posterior.statistic).label:
        return posterior.about.axis(posterior.statistic, parameter)
    known = FAMILIES[posterior.family].parameter_names(posterior.constants) if posterior.constants else ()
    is_of_logarithm = parameter.startswith("log_")
    name = parameter.removeprefix("log_").replace("_", " ")
    columns = posterior.observed[0].plan.columns if posterior.observed else ()
    if len(columns) != 1:
        return f"{name} of {posterior.statistic}" if len(known) == 1 else name
    unit = _UNITS.get(parameter)
    of = f"log {columns[0]}" if is_of_logarithm else columns[0]
    return f"{name} of {of}" + (f", {unit}" if unit else "")


def smoothing_of(posterior: Posterior) -> str:
    """Return what a picture has to say of the smoothing of its densities; empty where there is none."""
    if posterior.n_prior is None:
        return ""
    family = FAMILIES[posterior.family]
    rests_on_nodes = family.latent is not None or family.mean_and_variance is not None
    if not rests_on_nodes:
        return ""
    return "smoothed over up to a fifth of their spread"


def _support(posterior: Posterior, parameter: str) -> Support:
    """Return where numbers of a parameter's kind lie."""
    spaces = FAMILIES[posterior.family].parameter_spaces(posterior.constants) if posterior.constants else ()
    known = {space.name: space.support for space in spaces}
    return known.get(parameter, Support.POSITIVE if parameter == "variance" else Support.REAL)


def _range(posterior: Posterior, parameter: str) -> tuple[float, float]:
    """Return the numbers between which a parameter lies."""
    support = _support(posterior, parameter)
    if support is Support.PROBABILITY:
        return 0.0, 1.0
    whole = (0.0, np.inf) if support is Support.POSITIVE else (-np.inf, np.inf)
    if not posterior.constants or not is_restricted(posterior):
        return whole
    # Parameters of records within the bounds have limits of their own.
    family = FAMILIES[posterior.family]
    if family.limits is not None:
        return family.limits(posterior.constants)
    if family.mean_and_variance is None:
        return whole
    centre, half_range = family.mean_and_variance.interval(posterior.constants)
    is_mean = support is not Support.POSITIVE
    return (centre - half_range, centre + half_range) if is_mean else (0.0, half_range**2)
