r"""Tables of likelihoods of a mean and a variance, which a page's explorer puts to any prior.

Sums over what noise may hide take Python's engine a twentieth of a second a cell, and a browser minutes. None
of that depends on the prior of the parameters: with :math:`L(\mu, \sigma)` the likelihood (1) of
``mean_variance.likelihood``, whatever the prior :math:`\pi`,

.. math:: p(\mu, \sigma \mid y) \propto L(\mu, \sigma) \, \pi(\mu, \sigma^2) \, 2 \sigma . \qquad (1)

A page carries log L of every cell at even steps of both, in thousandths of a nat below its highest, as
16-bit numbers. In steps of the standard deviation log L is smooth down to 0; its logarithm would have no end
there.

Method and error: a table reaches until log L has fallen by ``DEEP``, or to what records within the bounds can
have. Its steps are shortened until interpolation of the fifth degree, at the middles of steps wherever log L
has fallen by less than ``MATTERS``, errs by less than ``MOST_OFF`` nats anywhere and by ``MOST_LOST`` of all
L together; near a standard deviation of 0 the engine's own sums have ripples of some 0.05 nats. Means by (1)
are within 0.006 standard deviations of Python's, standard deviations within 0.6 % and ends of intervals
within 0.03 of them (``tests/pages/test_likelihood_tables.py``), where the posterior lies on the table; the
explorer refuses it elsewhere.
"""

from __future__ import annotations

import base64
import dataclasses
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import SufficeError
from suffice.pipeline.ask.inference.chosen_priors import n_prior_for
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines.mean_variance.distribution import NowhereError, highest, thinned
from suffice.pipeline.math.engines.mean_variance.likelihood import (
    FINE,
    LatentRows,
    TooManyError,
)

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

MOST_CELLS = 400
"""Of a statistic whose likelihoods a page carries: some 20 s of work, and up to 2 MB."""
DEEP, MATTERS, MOST_OFF, MOST_LOST = 16.0, 9.0, 0.1, 1e-3
SIZES = (25, 37, 55, 81)
_UNIT = 1e-3
_FINENESS = dataclasses.replace(FINE, beside=1.0, depth=20.0)
_ROOM = 3e7
_LEAST = 1e-6
"""The standard deviation, in half ranges, that stands for 0."""
_WIDER, _MOST_ROUNDS = 1.5, 24
_COARSE = 21


def likelihood_tables(statistic: NoisyStatistic) -> dict[str, Any] | None:
    """Return the tables of a statistic as the explorer reads them; nothing of other families.

    Returns
    -------
    dict or None
        ``reason``, where there are none and why; else ``centre`` and ``half_range``, ``n_prior``, and of each
        cell ``mean`` and ``sd``, its ends in half ranges, ``size``, and ``values``; or None.
    """
    plan = statistic.plan
    entry = FAMILIES[plan.family].mean_and_variance
    moved = any(quantity.name.startswith("n_") for quantity in plan.quantities)
    if entry is None or plan.within_unit is not None or moved:
        return None
    if len(statistic.values) > MOST_CELLS:
        return {"reason": f"tables of {len(statistic.values):,} likelihoods are too many for a page"}
    centre, half_range = entry.interval(plan.parameters)
    n_prior = n_prior_for(statistic, None)
    noisy = entry.noisy(statistic, FAMILIES[plan.family].default_prior(plan.parameters), n_prior)
    cells = []
    for cell in range(len(statistic.values)):
        try:
            rows = LatentRows.of(noisy.take(np.array([cell])), _FINENESS.depth, _ROOM, fineness=_FINENESS)
            cells.append(_table(rows))
        except (TooManyError, NowhereError, SufficeError):
            cells.append(None)
    return {"centre": centre, "half_range": half_range, "n_prior": str(n_prior), "cells": cells}


def _table(rows: LatentRows) -> dict[str, Any] | None:
    """Return the table of one cell; None where none of these sizes resolves it."""
    ends = _window(rows)
    for size in SIZES:
        axes = [np.linspace(end[0], end[1], size) for end in ends]
        values = _log_likelihood(rows, *axes)
        if _is_resolved(rows, axes, values):
            steps = np.round((values - np.max(values)) / _UNIT)
            numbers = np.maximum(steps, np.iinfo(np.int16).min).astype("<i2")
            return {
                "mean": [float(end) for end in ends[0]],
                "sd": [float(end) for end in ends[1]],
                "size": size,
                "values": base64.b64encode(numbers.tobytes()).decode("ascii"),
            }
    return None


def _window(rows: LatentRows) -> list[Floats]:
    """Return the ends of the mean and the standard deviation: where log L has fallen, or cannot go on."""
    limits = np.array([[-1.0, 1.0], [0.0, 1.0]])
    first, second = rows.ladders
    ladders = first, [np.exp(np.minimum(ladder, 0.0) / 2.0) for ladder in second]
    edges = thinned(ladders[0], *limits[0]), thinned(ladders[1], *limits[1])
    peak, scale = highest(lambda *places: _log_likelihood(rows, *(place[0] for place in places))[None], edges)
    ends = np.clip(peak[:, None] + scale[:, None] * np.array([-8.0, 8.0]), limits[:, :1], limits[:, 1:])
    for _ in range(_MOST_ROUNDS):
        axes = [np.linspace(end[0], end[1], _COARSE) for end in ends]
        fallen = _log_likelihood(rows, *axes)
        fallen = fallen - np.max(fallen)
        profiles = np.max(fallen, axis=1), np.max(fallen, axis=0)
        is_high = np.array([[profile[0] > -DEEP, profile[-1] > -DEEP] for profile in profiles])
        wider = is_high & (ends != limits)
        if not np.any(wider):
            break
        middle, half = np.mean(ends, axis=1, keepdims=True), np.ptp(ends, axis=1)[:, None] / 2.0
        outward = np.array([-1.0, 1.0])
        ends = np.where(wider, np.clip(middle + _WIDER * half * outward, limits[:, :1], limits[:, 1:]), ends)
    tight = []
    for axis, profile, end in zip(axes, profiles, ends, strict=True):
        kept = np.flatnonzero(profile > -DEEP)
        low, high = max(kept[0] - 1, 0), min(kept[-1] + 1, len(axis) - 1)
        tight.append(np.array([axis[low], axis[high]]) if high - low > 1 else end)
    return tight


def _log_likelihood(rows: LatentRows, mean: Floats, sd: Floats) -> Floats:
    """Return log L at means and standard deviations, in half ranges: (n_means, n_sds)."""
    values: Floats = rows.log_likelihood(mean[None], 2.0 * np.log(np.maximum(sd, _LEAST))[None])[0]
    return values


def _is_resolved(rows: LatentRows, axes: list[Floats], values: Floats) -> bool:
    """Whether interpolation between the steps is near to what is there."""
    middles = [(axis[1:] + axis[:-1]) / 2.0 for axis in axes]
    exact = _log_likelihood(rows, *middles)
    matrices = [_to_middles(len(axis)) for axis in axes]
    between = matrices[0] @ values @ matrices[1].T
    fallen = exact - np.max(exact)
    off = np.where(fallen > -MATTERS, between - exact, 0.0)
    lost = np.sum(np.exp(fallen) * np.abs(np.expm1(off))) / np.sum(np.exp(fallen))
    return bool(np.max(np.abs(off)) < MOST_OFF and lost < MOST_LOST)


@cache
def _to_middles(size: int) -> Floats:
    """Interpolation at the middles of even steps by polynomials through the six nearest places."""
    matrix = np.zeros((size - 1, size))
    for row in range(size - 1):
        first = min(max(row - 2, 0), size - 6)
        places = np.arange(first, first + 6)
        for place in places:
            others = places[places != place]
            matrix[row, place] = np.prod((row + 0.5 - others) / (place - others))
    return matrix
