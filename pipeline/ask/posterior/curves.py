"""Where a posterior's densities are looked at, for pictures: the points of a curve for every cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.parameter_space import Support

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.typing import Floats

_UNITS = {"mean": "in its unit", "scale": "in its unit", "variance": "in its unit squared"}
_LEVELS = (0.001, 0.01, 0.99, 0.999)
_FAR = 2.0
"""Widths of the inner interval that the outer may add on either side: tails may be heavy."""
_BEYOND = 0.06


def curve_points(
    posterior: Posterior, parameter: str, number: int, *, draws: int, rng: np.random.Generator
) -> Floats:
    """Return points over which a parameter's density has all but next to nothing, shaped as quantiles are.

    Parameters
    ----------
    posterior : Posterior
    parameter : str
    number : int
        Of points, evenly spaced: (n_groups, number), categories or components between the two.
    draws, rng
        Of quantiles, where they rest on draws.
    """
    levels = posterior.distribution.quantiles(parameter, _LEVELS, draws, rng)
    first, low, high, last = np.moveaxis(levels, -1, 0)
    width = high - low
    first, last = np.maximum(first, low - _FAR * width), np.minimum(last, high + _FAR * width)
    beyond = _BEYOND * (last - first)
    lowest, highest = _range(posterior, parameter)
    ends = np.maximum(first - beyond, lowest), np.minimum(last + beyond, highest)
    return np.moveaxis(np.linspace(*ends, number), 0, -1)


def in_words(posterior: Posterior, parameter: str) -> str:
    """Return what the numbers of a parameter are, with their unit where they have one: an axis' label."""
    known = FAMILIES[posterior.family].parameter_names(posterior.constants) if posterior.constants else ()
    name = parameter.replace("_", " ")
    columns = posterior.observed[0].plan.columns if posterior.observed else ()
    if len(columns) != 1:
        return f"{name} of {posterior.statistic}" if len(known) == 1 else name
    unit = _UNITS.get(parameter)
    return f"{name} of {columns[0]}" + (f", {unit}" if unit else "")


def entry_labels(posterior: Posterior, parameter: str) -> list[str]:
    """Return the keys of every cell, and the category or component of every entry, as one label each."""
    cells = [
        ", ".join(str(keys[cell]) for keys in posterior.groups.values()) for cell in range(posterior.n_groups)
    ]
    _, names = posterior.labels(parameter)
    return [", ".join(filter(None, (cell, name))) for cell in cells for name in names] if names else cells


def smoothing_of(posterior: Posterior) -> str:
    """Return what a picture has to say of the smoothing of its densities; empty where there is none."""
    is_smoothed = FAMILIES[posterior.family].mean_and_variance is not None and posterior.n_prior is not None
    return "smoothed over up to an eighth of their spread" if is_smoothed else ""


def _range(posterior: Posterior, parameter: str) -> tuple[float, float]:
    """Return the numbers between which a parameter lies."""
    spaces = FAMILIES[posterior.family].parameter_spaces(posterior.constants) if posterior.constants else ()
    support = {space.name: space.support for space in spaces}.get(parameter, Support.REAL)
    if support is Support.PROBABILITY:
        return 0.0, 1.0
    return (0.0, np.inf) if support is Support.POSITIVE or parameter == "variance" else (-np.inf, np.inf)
