"""The sampler of cone noise: differences of two rounded matrices, cell by cell."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.rows.mechanism.cone.bits import OperatingSystemBits
from suffice.pipeline.rows.mechanism.cone.matrix import ConeShape, matrix

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from numpy.typing import NDArray

CHUNK = 1 << 7
"""Cells that one thread draws at a time."""

LEAST, MOST = -(2**63), 2**63 - 1
"""Noise beyond these becomes these where it is stored in 64 bits."""


@dataclass(frozen=True, slots=True)
class ConeSampler:
    """What draws a statistic's cone noise.

    Parameters
    ----------
    shape : ConeShape
    """

    shape: ConeShape

    def draw_into(self, out: NDArray[Any]) -> None:
        """Overwrite an array, shape (n_cells, D), of int64 or of Python integers, with independent noise."""
        bits = OperatingSystemBits()
        for cell in range(len(out)):
            # proof: cone-noise
            difference = [
                p - q for p, q in zip(matrix(self.shape, bits), matrix(self.shape, bits), strict=True)
            ]
            if out.dtype == np.int64:
                # proof: cone-saturation
                difference = [min(max(value, LEAST), MOST) for value in difference]
            out[cell] = difference

    def start(self, out: NDArray[Any], threads: Executor) -> list[Future[None]]:
        """Have threads overwrite an array, each chunk of cells once; it is drawn when all are done."""
        pieces = [out[first : first + CHUNK] for first in range(0, len(out), CHUNK)]
        return [threads.submit(self.draw_into, piece) for piece in pieces]


def cone_noise(*, rate: Fraction, columns: int, linear: bool, steps: int) -> ConeSampler:
    r"""Return a sampler of noise on the cone of second moments.

    .. math:: Z = \mathrm{round}(M^2 P) - \mathrm{round}(M^2 Q), \qquad h(P) \propto e^{-\text{rate} \, P_{00}}

    P and Q are independent, with that density on the matrices that are positive semidefinite and have no
    diagonal entry above the first one.

    Parameters
    ----------
    rate : Fraction, > 0
        Epsilon over the number of records that one unit can add or remove.
    columns : int, >= 1
        ``d``.
    linear : bool
        Whether first moments are among the components: D is ``(d + 1) (d + 2) / 2``, else ``1 + d (d + 1) / 2``.
    steps : int, >= 1
        ``M``: lattice values of columns lie in ``-M..M``.

    Returns
    -------
    ConeSampler
        Nothing has been drawn from it.

    Raises
    ------
    ValueError
        Where an argument is out of range.
    """
    if rate <= 0 or columns < 1 or steps < 1:
        message = "the rate, the columns or the steps of cone noise are out of range"
        raise ValueError(message)
    return ConeSampler(ConeShape(columns=columns, linear=linear, size=Fraction(steps * steps) / rate))
