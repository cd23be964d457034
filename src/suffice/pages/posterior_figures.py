"""The figure of a posterior's parameter: densities of a few cells, a forest of many, a band of very many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pages.figures import NOISE_AWARE, PLUG_IN, PRIOR, Curve, Row, densities, forest, ranked
from suffice.pipeline.ask.posterior.curves import curve_points, entry_labels, in_words, smoothing_of

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.typing import Floats

MOST_DENSITIES = 12
MOST_INTERVALS = 60
_POINTS = 161


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterFigure:
    """A figure of one parameter, and what it shows in words.

    Attributes
    ----------
    heading : str
        The parameter, with what it is of.
    svg : str
    caption : str
        How it is to be read.
    is_smooth : bool
        Whether it shows densities.
    """

    heading: str
    svg: str
    caption: str
    is_smooth: bool = False


def parameter_figure(
    posterior: Posterior,
    parameter: str,
    *,
    mass: float,
    interval: str | None = None,
    draws: int,
    rng: np.random.Generator,
    most_intervals: int = MOST_INTERVALS,
) -> ParameterFigure:
    """Return the figure of one parameter of every cell, category or component.

    Smooth densities for up to ``MOST_DENSITIES`` of them where the law is known, medians and intervals
    otherwise, and beyond `most_intervals` a band in the order of the medians.

    Parameters
    ----------
    posterior : Posterior
    parameter : str
    mass : float
        Of the intervals.
    interval : {"central", "highest-density"}, optional
        Their kind, the posterior's default otherwise.
    draws, rng
        Of quantiles, where they rest on draws.
    most_intervals : int
    """
    axis = in_words(posterior, parameter)
    found = posterior.five_numbers(parameter, mass, interval=interval, draws=draws, rng=rng)
    flat = found.reshape(-1, 5)
    labels = entry_labels(posterior, parameter)
    kind = NOISE_AWARE if posterior.method == NOISE_AWARE else PLUG_IN
    heading = ", ".join(posterior.groups)
    about = f"{axis[0].upper()}{axis[1:]}"
    told = f"{100 * mass:g} % {posterior.interval_kind(interval)} interval"
    if len(labels) > most_intervals:
        svg = ranked(
            flat[:, 0], flat[:, 2], flat[:, 4], title=about, axis=axis, mass=mass, cells=_cells(posterior)
        )
        return ParameterFigure(
            heading=about,
            svg=svg,
            caption=f"Medians in ascending order within their {told}s; keys stand in the table.",
        )
    curves = _curves(posterior, parameter, kind, draws, rng) if len(labels) <= MOST_DENSITIES else None
    if curves is None:
        rows = [Row(label=label, quantiles=_five(own)) for label, own in zip(labels, flat, strict=True)]
        svg = forest(rows, title=about, axis=axis, mass=mass, kind=kind, heading=heading)
        return ParameterFigure(
            heading=about, svg=svg, caption=f"Medians, middle halves (thick) and {told}s (thin)."
        )
    rows = [
        Row(label=label, quantiles=_five(own), curves=own_curves)
        for label, own, own_curves in zip(labels, flat, curves, strict=True)
    ]
    smoothed = f", {said}" if (said := smoothing_of(posterior)) else ""
    svg = densities(rows, title=about, axis=axis, mass=mass, heading=heading)
    return ParameterFigure(
        heading=about,
        svg=svg,
        caption=(
            f"Densities, with the {told} darker; below each its median, middle half and {told}. "
            f"Curves are the posterior's own, not of draws{smoothed}; each is drawn to its own height."
        ),
        is_smooth=True,
    )


def _curves(
    posterior: Posterior, parameter: str, kind: str, draws: int, rng: np.random.Generator
) -> list[tuple[Curve, ...]] | None:
    """The prior's and the posterior's density of every entry; None where draws alone are known."""
    points = curve_points(posterior, parameter, _POINTS, draws=draws, rng=rng)
    if not np.isfinite(points).all():
        return None
    density = posterior.density(parameter, points)
    if density is None:
        return None
    flat_points, flat = points.reshape(-1, _POINTS), density.reshape(-1, _POINTS)
    everywhere = np.linspace(float(np.min(points)), float(np.max(points)), _POINTS)
    prior = posterior.prior_density(parameter, everywhere)
    priors: Floats | None = None if prior is None else prior.reshape(-1, _POINTS)
    found = []
    for entry, (own_points, own) in enumerate(zip(flat_points, flat, strict=True)):
        curves = [Curve(kind=kind, points=own_points, density=own)]
        if priors is not None:
            curves.insert(0, Curve(kind=PRIOR, points=everywhere, density=priors[entry % len(priors)]))
        found.append(tuple(curves))
    return found


def _five(quantiles: Floats) -> tuple[float, float, float, float, float]:
    lower, first, middle, third, upper = quantiles.tolist()
    return lower, first, middle, third, upper


def _cells(posterior: Posterior) -> str:
    return "entries" if posterior.categories or posterior.components else "cells"
