r"""How probable what each cell released is given all others, of any way to pool.

Model. With the weights w_h of hyperparameters h given all cells, and what all other cells say of a cell at h,
under which what it released has the probability Z_c(h),

.. math::
    p(h \mid y_{-c}) \propto \frac{w_h}{Z_c(h)}, \qquad
    p(y_c \mid y_{-c}) = \Bigl(\sum_h \frac{w_h}{Z_c(h)}\Bigr)^{-1}. \qquad (1)

How many of the nodes (1) rests on is, as a share,

.. math:: \frac{\bigl(\sum_h w_h / Z_c(h)\bigr)^2}{\sum_h w_h / Z_c(h)^2}. \qquad (2)

References
----------
Gelfand, Dey, Chang. Model determination using predictive distributions with implementation via sampling-based
methods. Bayesian Statistics 4, 1992.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection

    from suffice.typing import Floats, Mask

LEAST_EFFECTIVE, MOST_AGAIN = 0.05, 24


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutScores:
    """Log probabilities of what cells released, each given all others.

    Attributes
    ----------
    log_predictive : ndarray of shape (n_cells,), float64
        log p(y_c | y_-c) of (1).
    effective : ndarray of shape (n_cells,), float64
        (2), in 0..1.
    again : collection of int
        Cells without which hyperparameters were fitted again.
    approximation : str
        What (1) rests on; empty where it is exact but for quadrature or draws.
    """

    log_predictive: Floats
    effective: Floats
    again: Collection[int] = ()
    approximation: str = ""

    @property
    def is_rough(self) -> Mask:
        """Of which cells (1) rests on too few hyperparameters."""
        rough = self.effective < LEAST_EFFECTIVE
        rough[list(self.again)] = False
        return rough

    @classmethod
    def of_nodes(cls, log_z: Floats, weight: Floats, approximation: str = "") -> Self:
        """Work out (1) and (2): of log Z, (n_nodes, n_cells), and weights that add up to 1, (n_nodes,)."""
        log_weight = np.log(weight)[:, None]
        log_inverse = np.logaddexp.reduce(log_weight - log_z, axis=0)
        log_square = np.logaddexp.reduce(log_weight - 2.0 * log_z, axis=0)
        return cls(
            log_predictive=-log_inverse,
            effective=np.exp(2.0 * log_inverse - log_square),
            approximation=approximation,
        )


@runtime_checkable
class HoldsOut(Protocol):
    """Pooled cells that can be held out."""

    def left_out(self) -> HeldOutScores:
        """Return (1) for all cells."""
