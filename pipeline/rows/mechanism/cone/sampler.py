"""The sampler of cone noise: differences of two rounded matrices, cell by cell."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.rows.chunk.exact_sums import wipe
from suffice.pipeline.rows.mechanism.cone.bits import OperatingSystemBits
from suffice.pipeline.rows.mechanism.cone.matrix import ConeShape, matrix

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from numpy.typing import NDArray

    from suffice.pipeline.rows.mechanism.cone.bits import Bits, BufferedBits

    Values = NDArray[np.int64] | NDArray[np.object_]

CHUNK = 1 << 8
"""Cells that one thread draws at a time."""

FEW = 1 << 14
"""Up to so many values are drawn in Python, within .5 to 1 s: to load compiled code takes as long."""

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

    def draw_into(self, out: Values) -> None:
        """Overwrite an array, shape (n_cells, D), of int64 or of Python integers, with independent noise."""
        self.overwrite(out, is_long=out.size > FEW)

    def start(self, out: Values, threads: Executor) -> list[Future[None]]:
        """Have threads overwrite an array, each chunk of cells once; it is drawn when all are done."""
        pieces = [out[first : first + CHUNK] for first in range(0, len(out), CHUNK)]
        return [threads.submit(self.overwrite, piece, is_long=out.size > FEW) for piece in pieces]

    def overwrite(self, out: Values, *, is_long: bool) -> None:
        """Overwrite an array by the compiled path, or by the exact one alone; wipe all bits."""
        bits = OperatingSystemBits()
        try:
            (draw_fast if is_long else draw_exactly)(self.shape, bits, out)
        finally:
            bits.wipe()


def draw_exactly(shape: ConeShape, bits: Bits, out: Values) -> None:
    """Overwrite cells by the exact path, in Python integers."""
    for cell in range(len(out)):
        # proof: cone-noise
        pairs = zip(matrix(shape, bits), matrix(shape, bits), strict=True)
        difference = [first - second for first, second in pairs]
        if out.dtype == np.int64:
            # proof: cone-saturation
            difference = [min(max(value, LEAST), MOST) for value in difference]
        out[cell] = difference


def draw_fast(shape: ConeShape, bits: BufferedBits, out: Values) -> None:
    """Overwrite cells by the compiled path, and those that it leaves by the exact one: the same function."""
    try:
        from suffice.pipeline.rows.mechanism.cone.fast_matrix import Workspace, draw_cells
    except ImportError:  # without numba: a release that was charged is drawn, only slower
        draw_exactly(shape, bits, out)
        return
    work = Workspace.of(shape)
    if work is None:
        draw_exactly(shape, bits, out)
        return
    values = np.zeros((*out.shape, 2), np.uint64)
    done = 0
    try:
        while done < len(out):
            drawn = draw_cells(shape, bits, work, values[done:])
            _store(values[done : done + drawn], out[done : done + drawn])
            done += drawn
            if done < len(out):
                draw_exactly(shape, bits, out[done : done + 1])
                done += 1
    finally:
        work.wipe()
        wipe(values)


def _store(values: NDArray[np.uint64], out: Values) -> None:
    """Write integers of 128 bits, the low word first, as the type of `out`."""
    low, high = values[..., 0], values[..., 1].view(np.int64)
    if out.dtype != np.int64:
        out[...] = high.astype(object) * 2**64 + low.astype(object)
        return
    # proof: cone-saturation
    signed = low.view(np.int64)
    is_beyond = high != signed >> 63
    out[...] = np.where(is_beyond, np.where(high < 0, LEAST, MOST), signed)


def cone_noise(*, rate: Fraction, columns: int, linear: bool, steps: int) -> ConeSampler:
    r"""Return a sampler of noise on the cone of second moments.

    .. math:: Z = \mathrm{round}(M^2 P) - \mathrm{round}(M^2 Q), \qquad h(P) \propto e^{-\lambda P_{00}}

    P and Q are independent, with that density on the matrices that are positive semidefinite and have no
    diagonal entry above the first one.

    Parameters
    ----------
    rate : Fraction, > 0
        ``lambda``: epsilon over the number of records that one unit can add or remove.
    columns : int, >= 1
        ``d``.
    linear : bool
        Whether first moments are among the components: there are ``(d + 1) (d + 2) / 2``, else
        ``1 + d (d + 1) / 2``.
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
