"""Windows whose released numbers of rows are far from their neighbours': for a person to look at.

Only what is published is looked at, and nothing acts on it. A window is ``few`` where it has less than half
of the rows of its neighbours' median, and ``many`` where it has more than twice as many, noise taken off.
"""

from __future__ import annotations

import math
import statistics
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import SufficeError
from suffice.storage.releases.release_store import open_release

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.ask.pooling.release import Release

FALSE_ALARM = 1e-6
"""The greatest chance that noise names a window which has between half and twice its neighbours' rows."""
MOST_WINDOWS = 24
"""The newest windows that are looked at: each is a release to be read."""
_BESIDE = 3
"""Neighbours on each side."""
_FEWEST = 2
"""Neighbours that a window needs at least."""
_GRID = np.linspace(0.005, 0.995, 199)


class Rows(StrEnum):
    """How a window's released number of rows compares with its neighbours'."""

    FEW = "few"
    MANY = "many"
    ALIKE = "alike"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyRows:
    """The released number of rows of a window: of all cells, and the noise in it.

    Attributes
    ----------
    value : float
        The sum of the cells' unbiased estimates of n.
    scale : float
        b of the discrete Laplace noise of every released value.
    weights : tuple of float
        What each component's noise counts in n; on a cone that of D Laplace variables.
    n_cells : int
        How many cells are summed.
    """

    value: float
    scale: float
    weights: tuple[float, ...]
    n_cells: int

    def reach(self, chance: float) -> float:
        r"""Return a distance that the noise goes beyond, on one side, with at most a chance.

        By Chernoff's bound, for every t > 0,

        .. math:: P(noise \ge x) \le e^{-t x} \prod_c M(t w_c)^m,
                  M(s) = (1 - q)^2 / ((1 - q e^s)(1 - q e^{-s})),  q = e^{-1/b} ,

        with M the moment generating function of discrete Laplace noise, finite for |s| < 1/b. The distance
        is the least x over a grid of t at which the right side is the chance: each t gives a valid one.
        """
        weights = [abs(weight) for weight in self.weights if weight]
        if not weights:
            return 0.0
        t = _GRID / (self.scale * max(weights))
        q = math.exp(-1.0 / self.scale)
        log_mgf = sum(
            2.0 * math.log1p(-q) - np.log1p(-q * np.exp(t * weight)) - np.log1p(-q * np.exp(-t * weight))
            for weight in weights
        )
        return float(np.min((self.n_cells * log_mgf - math.log(chance)) / t))


def noisy_rows(release: Release) -> NoisyRows | None:
    """Return a release's number of rows, of the statistic that tells it best; None where none does."""
    counts = []
    for name in release:
        plan = release.plan_of(name)
        if plan.sample is not None:
            continue
        for quantity in plan.quantities:
            if (quantity.name, quantity.component, quantity.category) == ("n", None, None) and (
                weights := tuple(float(weight) for weight in quantity.coefficients.values() if weight)
            ):
                noisy = release.statistic(name).summed()
                scale = float(plan.scale)
                if plan.cone is not None:
                    # t_P - t_Q is a sum of D Laplace variables, here on the lattice of N M^2.
                    unit = plan.cone.steps**2
                    weights = (1.0 / unit,) * plan.cone.n_components
                    scale = float(unit / plan.cone.rate)
                counts.append(
                    NoisyRows(
                        value=float(noisy.estimates(quantity)[0]),
                        scale=scale,
                        weights=weights,
                        n_cells=noisy.cells_summed,
                    )
                )
    return min(counts, key=lambda count: count.reach(FALSE_ALARM), default=None)


def compared(counts: Sequence[NoisyRows | None]) -> list[Rows | None]:
    """Compare each window's number of rows with the median of up to three on each side.

    Each of the k neighbours' noises, and the window's, stays within a reach that it leaves with a chance of
    at most ``FALSE_ALARM`` / (k + 1). Then the neighbours' true median lies within the largest of their
    reaches of the noisy one, and what is named is true.

    Returns
    -------
    list
        None where there is no number, or fewer than two neighbours have a number.
    """
    verdicts: list[Rows | None] = []
    for place, count in enumerate(counts):
        beside = [*counts[max(place - _BESIDE, 0) : place], *counts[place + 1 : place + 1 + _BESIDE]]
        neighbours = [other for other in beside if other is not None]
        if count is None or len(neighbours) < _FEWEST:
            verdicts.append(None)
            continue
        chance = FALSE_ALARM / (len(neighbours) + 1)
        median = statistics.median(other.value for other in neighbours)
        reach = max(other.reach(chance) for other in neighbours)
        if count.value + count.reach(chance) < (median - reach) / 2.0:
            verdicts.append(Rows.FEW)
        elif count.value - count.reach(chance) > 2.0 * (median + reach):
            verdicts.append(Rows.MANY)
        else:
            verdicts.append(Rows.ALIKE)
    return verdicts


def compared_windows(uris: Mapping[str, str]) -> dict[str, Rows | None]:
    """Compare the newest windows that are published.

    Parameters
    ----------
    uris : mapping of str to str
        Window -> its newest release, oldest first.
    """
    newest = list(uris)[-MOST_WINDOWS:]
    counts: list[NoisyRows | None] = []
    for window in newest:
        counts.append(None)
        with suppress(SufficeError):  # a release that cannot be read is told of elsewhere
            counts[-1] = noisy_rows(open_release(uris[window], allow_withdrawn=True))
    return dict(zip(newest, compared(counts), strict=True))
