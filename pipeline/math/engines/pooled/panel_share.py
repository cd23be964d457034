r"""The share of a panel's steps that are jumps, and where the step of places is at each share.

Model. Of a jump that noise hides little can be said but how much it adds to the variance of what is seen:
where steps are small beside noise, jumps that are not there take their variance from d (``panel``). The share
of jumps is therefore unknown. About the share :math:`\pi_0` that is stated, with equal odds,

.. math:: \pi \in \pi_0 \cdot 10^{k / 2}, \qquad k = -3, -2, -1, 0, 1. \qquad (1)

Method. Given a path of all, series are independent but for the map, of which a normal law of places stands
here, with outliers. Exact recursions of some of the series give evidence at (d, :math:`\pi`); in log d it is
followed to its mode, and integrated by Laplace's method. Shares far less probable than the best are left out
of the lattice, which weighs the others by their whole evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.contaminated import SHARE, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.engines.pooled.panel import PanelModel
    from suffice.typing import Floats

_OVER_STATED = tuple(float(10.0 ** (k / 2.0)) for k in range(-3, 2))
_HIGHEST_SHARE = 0.5
_CELLS = 12_000
_LOG_STEP = 0.3
"""How far apart log d is looked at."""
_MOST, _NEGLIGIBLE = 12, 6.0
_NARROWEST, _WIDEST = 0.02, 1.1
"""Standard deviations that log d may have."""
_FLOOR = 1e-37


@dataclass(frozen=True, slots=True, kw_only=True)
class AtShare:
    """About where log d is at one share of jumps.

    Attributes
    ----------
    share : float
    log_step, sd : float
        Its mode, and its standard deviation there.
    log_evidence : float
        Of the series that were looked at.
    """

    share: float
    log_step: float
    sd: float
    log_evidence: float


def shares_about(stated: float) -> list[float]:
    """Return (1), the least first."""
    return sorted({min(each * stated, _HIGHEST_SHARE) for each in _OVER_STATED})


def shares_of(
    model: PanelModel, log_step: float, spread: float, level: float, common: Floats
) -> list[AtShare]:
    """Return the shares of jumps that come into question, the most probable first.

    Parameters
    ----------
    model : PanelModel
        With the share that is stated.
    log_step : float
        Where to begin.
    spread, level : float
        About how far places differ at the anchor, and about what.
    common : ndarray of shape (n_times,), float64
        About where the common walk is.
    """
    blocks, n_times = model.blocks, len(common)
    every = max(1, model.n_series * n_times // _CELLS)
    few = replace(model, blocks=[block.take(slice(None, None, every)) for block in blocks])
    part = sum(len(block.series) for block in few.blocks) / model.n_series
    results: list[AtShare] = []
    for share in shares_about(model.jumps)[::-1]:
        start = results[-1].log_step if results else log_step
        results.append(_at_share(replace(few, jumps=share), start, (spread, level), common, part))
    highest = max(each.log_evidence for each in results)
    kept = [each for each in results if each.log_evidence > highest - _NEGLIGIBLE]
    return sorted(kept, key=lambda each: -each.log_evidence)


def _at_share(
    model: PanelModel, start: float, of_places: tuple[float, float], common: Floats, part: float
) -> AtShare:
    """Follow log d to its mode: hyperpriors count for as much as the series that are looked at."""
    values: dict[float, float] = {}

    def value(log_step: float) -> float:
        if log_step not in values:
            log_prior = log_step - 0.5 * np.exp(2.0 * log_step) / model.step_scale**2
            values[log_step] = _log_evidence(model, log_step, of_places, common) + part * float(log_prior)
        return values[log_step]

    places = [start]
    for _ in range(_MOST):
        low, high = (round(places[-1] + sign * _LOG_STEP, 9) for sign in (-1, 1))
        near = max((places[-1], low, high), key=value)
        if near == places[-1]:
            break
        places.append(near)
    # The parabola through three of them; then, as it is not one, through nearer ones.
    log_step, _, _ = _vertex(value, places[-1], _LOG_STEP)
    log_step, highest, bend = _vertex(value, log_step, _LOG_STEP / 3.0)
    sd = float(np.clip((part / bend) ** 0.5, _NARROWEST, _WIDEST))
    return AtShare(share=model.jumps, log_step=log_step, sd=sd, log_evidence=highest + float(np.log(sd)))


def _vertex(value: Callable[[float], float], middle: float, apart: float) -> tuple[float, float, float]:
    """Return where the parabola through three places is highest, how high, and how much it bends."""
    below, here, above = (value(middle + sign * apart) for sign in (-1, 0, 1))
    bend = max((2.0 * here - below - above) / apart**2, 1e-9)
    shift = float(np.clip(0.5 * (above - below) / apart / bend, -apart, apart))
    return middle + shift, here + 0.5 * bend * shift**2, bend


def _log_evidence(
    model: PanelModel, log_step: float, of_places: tuple[float, float], common: Floats
) -> float:
    """Return log p(y) of series under a normal law of places, but for a constant."""
    spread, level = of_places
    total = 0.0
    for chains in model.chains(float(np.exp(log_step)), common):
        gap = chains.block.grid - level
        law = sum(
            share / sd * np.exp(-0.5 * (gap / sd) ** 2)
            for share, sd in ((1.0 - SHARE, spread), (SHARE, float(np.hypot(spread, WIDE))))
        )
        inside = np.einsum("ij,ij->i", chains.measure, law)
        total += float(np.sum(chains.log_scale + np.log(np.maximum(inside, _FLOOR))))
    return total
