r"""What a prior says of a record, before anything is released: moments of its part in a quantity.

Model. A prior becomes a few hundred worlds, each with a weight and, for a record, the mean m, the variance v
and the third central moment t of what it adds to the quantity. They reach as far into the prior's tails as
chances of e^-34: worlds are evenly spaced in the logit of the prior's distribution function F, not drawn,

.. math:: \lambda = \log \frac{F}{1 - F}, \qquad \omega_i = F(\lambda_{i + 1}) - F(\lambda_i), \qquad
    F(\lambda) = \frac 1 {1 + e^{-\lambda}}. \qquad (1)

A record that is counted with the chance p adds m = p, v = p (1 - p) and t = p (1 - p)(1 - 2 p).

Worlds that are drawn (of families whose records depend on more than their parameters) reach farther than
their draws by Pareto tails beyond the outermost, with Hill's estimate of their index from the k farthest
distances d of n,

.. math:: \hat \xi = \frac 1 k \sum_{i = 1}^k \log \frac{d_i}{d_{k + 1}}, \qquad
    P\bigl(d > d_1 e^{\xi \lambda}\bigr) = e^{-\lambda} / n. \qquad (2)

They are heavier than most tails, so that conflicts judged by them err towards none.

Symbols:

- omega: ``weight``, (n_worlds,), > 0, of sum 1
- m, v, t: ``mean``, ``variance`` and ``third``, (n_worlds,), in the quantity's unit and its powers
- lambda: ``level``, in nats
- xi: ``index``, kept in .02..2

Method. Numerical: F by the trapezoidal rule on 48 steps a panel; worlds ``FINE`` apart stand for the tails of
a prior to within a factor of two, which is what conflicts need. Merging keeps the mean of every moment within
a step.

References
----------
Hill. A simple general approach to inference about the tail of a distribution. Ann. Statist. 3, 1975.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice.pipeline.math.distributions.distribution import coordinate_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.typing import Floats


FINE, ROUGH = 0.5, 1.5
"""Steps of the logit of the distribution function: of one number, and of each of two."""
_DEEPEST = 34.0
_DENSE = 48
_OCTAVES = np.exp2(np.arange(-4.0, 60.0))
_NATS = 60.0
"""How far below its highest density the tails of a prior end."""
LEAST = 1e-17
"""Weight below which one of many worlds is left out."""
_VARIANCES = 4
_OUTERMOST = 0.02
_HEAVIEST, _LIGHTEST = 2.0, 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Worlds:
    """What one record may add to a quantity, under one prior.

    Attributes
    ----------
    weight : ndarray of shape (n_worlds,), float64
        Above 0; they sum to 1.
    mean, variance, third : ndarray of shape (n_worlds,), float64
        Of a record's part, in the column's unit: mean, variance and third central moment.
    """

    weight: Floats
    mean: Floats
    variance: Floats
    third: Floats

    @classmethod
    def of(cls, weight: Floats, mean: Floats, variance: Floats, third: Floats) -> Self:
        """Leave out what is no number, and let the weights sum to 1."""
        kept = (weight > 0.0) & np.isfinite(mean) & np.isfinite(variance) & np.isfinite(third)
        weight, mean, variance, third = (each[kept] for each in (weight, mean, variance, third))
        return cls(weight=weight / np.sum(weight), mean=mean, variance=variance, third=third)

    @classmethod
    def of_chances(cls, weight: Floats, chance: Floats) -> Self:
        """Return worlds in which a record adds 1 with these chances."""
        # Moments of a Bernoulli number.
        variance = chance * (1.0 - chance)
        return cls.of(weight, chance, variance, variance * (1.0 - 2.0 * chance))

    @classmethod
    def drawn(cls, means: Floats) -> Self:
        """Return worlds whose means were drawn, (n,), with Pareto tails beyond the outermost."""
        ordered = np.sort(means)
        middle, few = ordered[len(ordered) // 2], max(8, int(_OUTERMOST * len(ordered)))
        weight, mean = [np.full(len(ordered), 1.0)], [ordered]
        for side in (-1.0, 1.0):
            far = np.sort(side * (ordered - middle))[::-1][: few + 1]
            if far[0] <= 0.0:
                continue
            # (2).
            heads = np.log(far[:few] / np.maximum(far[few], far[0] * 1e-12))
            index = float(np.clip(np.mean(heads), _LIGHTEST, _HEAVIEST))
            levels = np.arange(0.5, _DEEPEST - np.log(len(ordered)), FINE)
            # Beyond the farthest of n draws lies e^-lambda / n: the weights are those of steps of lambda, a
            # draw counting as 1.
            mean.append(middle + side * far[0] * np.exp(index * levels))
            weight.append(np.exp(-levels) * (1.0 - np.exp(-FINE)))
        together = np.concatenate(mean)
        nothing = np.zeros_like(together)
        return cls.of(np.concatenate(weight), together, nothing, nothing)

    def merged(self) -> Worlds:
        """Return fewer worlds: neighbours in mean, and of these in variance, become one."""
        order = np.argsort(self.mean, kind="stable")
        weight = self.weight[order]
        # Groups are steps of (1) in the order of the means.
        below: Floats = np.cumsum(weight) - weight / 2.0
        above = np.cumsum(weight[::-1])[::-1] - weight / 2.0
        level = np.rint(np.log(below / above) / FINE).astype(np.int64)
        group = level - np.min(level)
        # Within a group, parts of equal numbers of worlds by variance.
        inner = np.lexsort((self.variance[order], group))
        starts = np.flatnonzero(np.diff(group[inner], prepend=-1))
        sizes = np.diff(np.append(starts, len(inner)))
        position = np.arange(len(inner)) - np.repeat(starts, sizes)
        part = position * _VARIANCES // np.repeat(sizes, sizes)
        label = group[inner] * _VARIANCES + part
        inner_weight, count = weight[inner], int(label.max()) + 1
        mass: Floats = np.bincount(label, inner_weight, count).astype(np.float64)
        used = mass > 0.0
        columns = [
            np.bincount(label, inner_weight * column[order][inner], count)[used] / mass[used]
            for column in (self.mean, self.variance, self.third)
        ]
        return Worlds.of(mass[used], *columns)


def conjugate_levels(distribution: Any, line: Line, step: float = FINE) -> tuple[Floats, Floats]:
    """Weights and positions of a conjugate prior of one parameter, the distribution of one cell."""
    coordinate = coordinate_of(distribution)
    centre, width = float(coordinate.centre[0]), float(coordinate.width[0])

    def log_density(position: Floats) -> Floats:
        return coordinate.log_density(position[:, None])[:, 0]

    around = np.concatenate([centre - width * _OCTAVES[::-1], [centre], centre + width * _OCTAVES])
    around = _each_once(np.clip(around, *line.ends))
    value = log_density(around)
    kept = np.flatnonzero(value > np.max(value) - _NATS)
    first, last = max(kept[0] - 1, 0), min(kept[-1] + 1, len(around) - 1)
    return levels(log_density, around[first : last + 1], step)


def levels(log_density: Callable[[Floats], Floats], edges: Floats, step: float) -> tuple[Floats, Floats]:
    """Positions evenly spaced in the logit of the distribution function, and what each stands for."""
    position = between(edges, _DENSE)
    value = log_density(position)
    density = np.exp(value - np.max(value))
    # The trapezoidal rule.
    mass = np.maximum((density[1:] + density[:-1]) / 2.0 * np.diff(position), 1e-300)
    below = np.concatenate([[1e-300], np.cumsum(mass)])
    above = np.concatenate([np.cumsum(mass[::-1])[::-1], [1e-300]])
    # (1), from the sums from both ends: each tail keeps its digits.
    logit = np.log(below / above)
    ends = np.clip(logit[[0, -1]], -_DEEPEST, _DEEPEST)
    level = np.linspace(ends[0], ends[1], max(2, int((ends[1] - ends[0]) / step) + 1))
    share = 1.0 / (1.0 + np.exp(-level))
    # Differences of F below the median, and of 1 - F above it.
    weight = np.where(level[:-1] < 0.0, np.diff(share), -np.diff(1.0 / (1.0 + np.exp(level))))
    return weight, np.interp((level[1:] + level[:-1]) / 2.0, logit, position)


def between(edges: Floats, parts: int) -> Floats:
    """Edges with so many equal steps between each and the next."""
    steps = np.arange(parts) / parts
    inner = edges[:-1, None] + np.diff(edges)[:, None] * steps
    return _each_once(np.append(inner.ravel(), edges[-1]))


def _each_once(values: Floats) -> Floats:
    """Return sorted values, each once; uncounted, NumPy would load masked arrays to ask about them."""
    return np.unique(values, return_counts=True)[0]
