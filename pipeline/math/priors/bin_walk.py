"""The prior of a histogram: the log intensity walks over ordered bins, or a bin has no records."""

from __future__ import annotations

from dataclasses import dataclass

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.distribution import Prior, require_number, written


@dataclass(frozen=True, slots=True, init=False)
class BinWalk(Prior):
    r"""Walk of the log intensity :math:`x_j`, records a unit of width, from each bin to the next.

    .. math:: x_j - x_{j-1} \sim (1 - w) \, \mathrm{Normal}(0, s^2) + w \, \mathrm{Laplace}(0, 1.5)

    Its level is even. With the chance 1 - r the walk enters a state in which bins have no records, or leaves
    it. Several steps s, and five kinds of columns, are as probable as each other beforehand, and weighed by
    their evidence: smooth and uneven ones, w .05 or .2, each with r .98 or .998, and heaped ones, w and r .5.

    Parameters
    ----------
    *step : float, > 0
        ``s``: standard deviations of a step, in logarithms.
    """

    step: tuple[float, ...]

    def __init__(self, *step: float) -> None:
        if not step:
            message = (
                "BinWalk needs a standard deviation of a step: BinWalk(0.2), or several, as BinWalk(0.1, 0.4)"
            )
            raise PriorError(message)
        object.__setattr__(self, "step", step)
        for value in step:
            require_number(self, "step", value, positive=True)

    def __str__(self) -> str:
        return f"BinWalk({', '.join(map(written, self.step))})"
