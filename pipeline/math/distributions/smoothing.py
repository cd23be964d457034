r"""How far a density that rests on nodes has to be smoothed for these not to show, and no farther.

Model. A quadrature over what is latent makes a posterior a mixture of components. Where these are narrower
than the nodes are apart, distribution functions are right and densities ripple. Components that are narrower
than a share s of the mixture's spread are then taken for as wide as that. The question is the least s with

.. math:: V(s) \le 1.1 \, V(s_{\max}) + 0.05, \qquad
    V(s) = \frac{1}{\max f_s} \sum_k |f_s(x_{k + 1}) - f_s(x_k)| \qquad (1)

on an even grid of the line on which the parameter is real. V is twice the number of peaks of one height.

Symbols:

- s: of `LADDER`, shares of the spread
- f_s: by ``smoothed``, (n_points,)

Method. Numerical: (1) and the ladder were tried on posteriors of 30 to 10^6 records behind totals of 3 to 6
noise scales. The spread is the mixture's standard deviation on that line, where it is finite. Where (1) asks
for the last step, a peak of the posterior's own that is narrower may be lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.typing import Floats

LADDER = (0.0, 0.015, 0.03, 0.06, 0.12, 0.2)
"""Shares of a spread; "a fifth" stands for the last one where people are told."""
GRID = np.linspace(-5.0, 5.0, 301)
"""Spreads from the mean."""
_MORE, _SLACK = 1.1, 0.05


def least_share(smoothed: Callable[[float], Floats]) -> float:
    """Return the least share of `LADDER` under which nodes do not show.

    Parameters
    ----------
    smoothed : callable
        A share -> densities on a grid, (n_points,).
    """
    most = _MORE * _variation(smoothed(LADDER[-1])) + _SLACK
    return next((share for share in LADDER[:-1] if _variation(smoothed(share)) <= most), LADDER[-1])


def _variation(density: Floats) -> float:
    # (1)
    return float(np.sum(np.abs(np.diff(density))) / np.max(density))
