"""The levels of a tree as a plan shows them: their nodes, what each gets, and how noisy its counts are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Self

from suffice.pipeline.terms.declaration.documents import Count, printed
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.hierarchy import level_name
from suffice.pipeline.terms.declaration.wording import counted
from suffice.pipeline.terms.statistics.total_step import total_step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

_OUTSIDE = 0.05
"""The chance that noise is farther from 0 than half a width."""


@printed("level statistic cells share epsilon?=loss.epsilon rho?=loss.rho noise_sd noise_width")
@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLevel:
    """One level of a tree.

    Attributes
    ----------
    level, statistic : str
        What it is called, and the statistic that it is.
    cells : int
        Its nodes; times the keys of other groups, where there are any.
    share : Fraction
        Of the tree's epsilon or rho.
    loss : PrivacyLoss
    noise_sd : float
        Of one count, in rows or units, or of one total, in the column's unit.
    noise_width : float
        Of the central interval that has this noise in at least 95 of 100 cases; of counts a whole number.
    """

    level: str
    statistic: str
    cells: Count
    share: Fraction
    loss: PrivacyLoss
    noise_sd: float
    noise_width: float


@printed("statistic measures levels")
@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTree:
    """A tree of a plan.

    Attributes
    ----------
    statistic : str
        What the spec calls it.
    measures : str
        What a node has: a ``count``, or a ``total``.
    levels : tuple of PlannedLevel
        The root's first.
    """

    statistic: str
    measures: str
    levels: tuple[PlannedLevel, ...]

    @classmethod
    def of(cls, name: str, levels: tuple[str, ...], plans: Mapping[str, StatisticPlan]) -> Self:
        """Return a tree of a plan's statistics."""
        of_levels = {level: plans[level_name(name, level)] for level in levels}
        whole = sum(plan.loss.amount for plan in of_levels.values())
        planned = (
            PlannedLevel(
                level=level,
                statistic=plan.name,
                cells=plan.n_cells,
                share=plan.loss.amount / whole,
                loss=plan.loss,
                noise_sd=plan.component_noise_sd * float(step),
                noise_width=2 * _reach(plan.scale) * (int(step) if step == 1 else float(step)),
            )
            for level, plan in of_levels.items()
            for step in [total_step(plan) or Fraction(1)]
        )
        leaves = of_levels[levels[-1]]
        measures = "count" if total_step(leaves) is None else "total"
        return cls(statistic=name, measures=measures, levels=tuple(planned))

    def __str__(self) -> str:
        least = min(level.share for level in self.levels)
        shares = " : ".join(format_number(round(level.share / least, 2)) for level in self.levels)
        widths = ", ".join(
            f"{level.level} {_shown(level.noise_width)} ({counted(level.cells, 'cell')})"
            for level in self.levels
        )
        return (
            f"{self.statistic}: a tree whose levels share {shares}; 95 % of the noise of one {self.measures} "
            f"lies in a width of {widths}"
        )


def _shown(width: float) -> str:
    return str(width) if isinstance(width, int) else f"{width:.4g}"


def _reach(scale: float) -> int:
    r"""Return the least k at which discrete Laplace noise is at most k in magnitude in 95 of 100 cases.

    .. math:: P(|Z| > k) = \frac{2 q^{k + 1}}{1 + q}, \quad q = e^{-1/b}
    """
    q = math.exp(-1.0 / scale)
    return max(0, math.ceil(scale * math.log(2.0 / (_OUTSIDE * (1.0 + q)))) - 1)
