r"""The normal approximation of cells' likelihoods, which says where hyperparameters are looked for.

Model. Cell c says of its position :math:`\hat x_c` with the precision :math:`q_c` (Fay, Herriot 1979), and
has the log size :math:`\hat v_c`. Given the spread s, and the slopes b and g of ``hyperparameters``,

.. math:: \hat x_c \sim \mathrm{Normal}\bigl(m + b (\hat v_c - v_0), \, 1 / \omega_c\bigr), \qquad
    \omega_c = \frac{q_c}{1 + s_c^2 q_c}, \qquad s_c = s \, e^{g (\hat v_c - v_0)}. \qquad (1)

Slopes are lines on log sizes as far as these go together. One cell of 10^7 records among cells of 3 would
decide them by itself, and everywhere between. So log sizes count up to Tukey's outer fence,

.. math:: \hat v_c \le f = Q_3 + 3 \max(Q_3 - Q_1, 1.35), \qquad (2)

4.7 standard deviations above the middle of normal log sizes, and of no others than a few in a thousand.

References
----------
Fay, Herriot. Estimates of income for small places. J. Amer. Statist. Assoc. 74, 1979. Tukey. Exploratory data
analysis, 1977.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import Focus
from suffice.pipeline.math.engines.pooled.hyperpriors import (
    COEFFICIENT_SD,
    SLOPE_SD,
    SPREAD_SLOPE_SD,
    size_unit,
)

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
    from suffice.pipeline.math.engines.pooled.kept_nodes import KeptNodes
    from suffice.typing import Floats

_REFERENCE_SD, _NEARER_SD = 3.0, 2.0
_SPREADS, _SPREAD_SLOPES = 60, 9
_WIDEST, _FAR = (1e-3, 5.0), 4.0
T_REACH = 4.3
_TOGETHER = 1 << 22
_FENCE, _LEAST_RANGE = 3.0, 1.35
"""Of the fence, in interquartile ranges, and the least of these: that of log sizes with a unit of 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """The normal approximation of each cell's likelihood."""

    mean: Floats
    precision: Floats
    log_size: Floats
    highest: float = np.inf
    """f of (2)."""

    @property
    def size_unit(self) -> float:
        """The unit of slopes: u of ``hyperpriors``."""
        return size_unit(self.log_size)

    def omega(self, spread: Floats, growth: Floats | float = 1.0) -> Floats:
        """Return the weights of (1), (n_spreads, n_cells), of spreads that sizes multiply."""
        q = self.precision
        result: Floats = q / (1.0 + (spread[:, None] * growth) ** 2 * q)
        return result

    def growth(self, spread_slope: Floats, origin: float) -> Floats:
        """Return what sizes multiply spreads by, (n_spread_slopes, n_cells)."""
        result: Floats = np.exp(spread_slope[:, None] * (self.log_size - origin))
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Ends of the rules over t, s, b and g: middles and half widths."""

    t: tuple[float, float]
    s: tuple[float, float]
    b: tuple[float, float]
    g: tuple[float, float] = (0.0, 0.0)


def moments_of(blocks: KeptNodes, middle: float, *, is_near: bool = False) -> Moments:
    """Work out the normal approximation, about where the population is.

    By two rounds; where the middle is near to that already, by one.
    """
    n = len(blocks.cells)
    mean, precision, log_size = np.zeros(n), np.zeros(n), np.zeros(n)
    focus = Focus(centre=middle, width=0.5)
    for sd in (_NEARER_SD,) if is_near else (_REFERENCE_SD, _NEARER_SD):
        for block, nodes in blocks(focus):
            known = moments_about(nodes.position, np.sum(nodes.weight, axis=2), middle, sd)
            mean[block], precision[block] = known.mean, known.precision
            reference = _near(nodes.position, middle, sd)
            of_v = np.sum(nodes.weight * reference[:, :, None], axis=1)
            log_size[block] = np.sum(of_v * nodes.log_size, axis=1) / np.sum(of_v, axis=1)
        omega = precision / (1.0 + precision)
        middle = float(np.sum(omega * mean) / np.sum(omega))
    highest = outer_fence(log_size)
    return Moments(mean=mean, precision=precision, log_size=np.minimum(log_size, highest), highest=highest)


def outer_fence(log_size: Floats) -> float:
    """Return f of (2); infinity where no log size is beyond."""
    lower, upper = np.quantile(log_size, (0.25, 0.75))
    fence = float(upper + _FENCE * max(float(upper - lower), _LEAST_RANGE))
    return fence if np.max(log_size) > fence else np.inf


def _near(position: Floats, middle: float, sd: float) -> Floats:
    return np.asarray(np.exp(-0.5 * ((position - middle) / sd) ** 2))


def moments_about(position: Floats, weight: Floats, middle: float, sd: float = 2.0) -> Moments:
    """Return the normal approximation of likelihoods at nodes, sizes left out.

    It is the posterior under Normal(middle, sd^2), less that law.
    """
    weight = weight * _near(position, middle, sd)
    weight /= np.sum(weight, axis=1, keepdims=True)
    first = np.sum(weight * position, axis=1)
    variance = np.sum(weight * (position - first[:, None]) ** 2, axis=1)
    precision = np.maximum(1.0 / variance - sd**-2.0, 1e-4)
    return Moments(
        mean=middle + (first - middle) / (variance * precision),
        precision=precision,
        log_size=np.zeros_like(first),
    )


def first_box(
    moments: Moments,
    of_location: LocationPrior,
    *,
    has_slope: bool = False,
    has_spread_slope: bool = False,
    covariates: Floats | None = None,
) -> Box:
    """Return where the normal approximation has its posterior; covariates are (n_cells, n_coefficients)."""
    unit = moments.size_unit
    size = moments.log_size - np.mean(moments.log_size)
    further = np.zeros((len(size), 0)) if covariates is None else covariates
    design = np.column_stack([np.ones_like(size), size if has_slope else np.zeros_like(size), further])
    prior = [of_location.precision, (unit / SLOPE_SD) ** 2, *[COEFFICIENT_SD**-2.0] * further.shape[1]]
    gap = moments.mean - of_location.centre
    spreads, slopes = np.geomspace(*_WIDEST, _SPREADS), np.zeros(1)
    if has_spread_slope:
        slopes = np.linspace(-_FAR, _FAR, _SPREAD_SLOPES) * SPREAD_SLOPE_SD / unit
    # Once more about where it is: many cells tell it in finer units than these.
    for _ in range(2 if has_spread_slope else 1):
        # One row a pair of g and s.
        s, g = np.tile(spreads, len(slopes)), np.repeat(slopes, _SPREADS)
        a, score, log_weight = _sums(moments, design, gap, s, slopes)
        a += np.diag(prior)
        inverse = np.asarray(np.linalg.inv(a), dtype=np.float64)
        solved = np.einsum("kij,kj->ki", inverse, score)
        log_weight += 0.5 * np.sum(score * solved, axis=1) - 0.5 * np.linalg.slogdet(a)[1]
        log_weight += np.log(s) - 0.5 * s**2 - 0.5 * (g * unit / SPREAD_SLOPE_SD) ** 2
        weight = np.exp(log_weight - np.max(log_weight))
        weight /= np.sum(weight)

        def known(
            values: Floats, within: Floats | float = 0.0, weight: Floats = weight
        ) -> tuple[float, float]:
            mean = float(weight @ values)
            return mean, float(np.sqrt(weight @ (within + (values - mean) ** 2)))

        spread, spread_sd = known(s)
        spread_sd += 0.5 * float(np.log(spreads[1] / spreads[0])) * spread / 3.0**0.5
        slope, slope_sd = known(solved[:, 1], inverse[:, 1, 1])
        of_spread, of_spread_sd = known(g, (slopes[-1] - slopes[0]) ** 2 / 12.0 / _SPREAD_SLOPES**2)
        spreads = np.geomspace(max(spread - 5.0 * spread_sd, _WIDEST[0]), spread + 6.0 * spread_sd, _SPREADS)
        slopes = of_spread + np.linspace(-_FAR, _FAR, _SPREAD_SLOPES) * of_spread_sd
    return Box(
        t=(0.0, T_REACH),
        s=spread_ends(spread, spread_sd),
        b=(slope, 5.0 * slope_sd),
        g=(of_spread, T_REACH * of_spread_sd),
    )


def _sums(
    moments: Moments, design: Floats, gap: Floats, spread: Floats, slopes: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return sums over cells, some at a time, of what is quadratic, linear and constant in m and b."""
    n_rows, n_columns = len(spread), design.shape[1]
    a, score = np.zeros((n_rows, n_columns, n_columns)), np.zeros((n_rows, n_columns))
    constant = np.zeros(n_rows)
    growth = moments.growth(slopes, float(np.mean(moments.log_size)))
    at_once = max(_TOGETHER // n_rows, 1)
    for start in range(0, len(gap), at_once):
        rows = slice(start, start + at_once)
        # s_c of (1).
        of_cells = spread[:, None] * np.repeat(growth[:, rows], n_rows // len(slopes), axis=0)
        q, w = moments.precision[rows], design[rows]
        told = 1.0 + of_cells**2 * q
        omega = q / told
        a += (w.T * omega[:, None, :]) @ w
        score += (omega * gap[rows]) @ w
        constant -= 0.5 * np.sum(np.log(told), axis=1) + 0.5 * omega @ gap[rows] ** 2
    return a, score, constant


def spread_ends(mean: float, sd: float) -> tuple[float, float]:
    """Return the middle and half width of a rule over s, whose posterior has a tail to the right."""
    low, high = max(mean - 4.5 * sd, 0.0), mean + 5.5 * sd
    return (low + high) / 2.0, (high - low) / 2.0
