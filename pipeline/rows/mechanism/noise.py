"""Independent noise for statistics: OpenDP's exact discrete Laplace sampler.

Its bits come from OpenSSL's generator, which the operating system seeds: so the guarantee of what runs is
computational (`docs/explanation/guarantee.md`). There is no seed that anybody sets or sees and no
floating-point noise here, and nothing else in this project but `sampling` and `cone` may draw (a test of the
imports holds it to that).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import opendp.domains
import opendp.measurements
import opendp.metrics
import opendp.mod

from suffice.pipeline.rows.chunk.exact_sums import wipe
from suffice.pipeline.terms.declaration.exact_numbers import LARGEST_SCALE

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from numpy.typing import NDArray
    from opendp.mod import Measurement

    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss

CHUNK = 1 << 13
"""Draws that one thread makes at a time, some 0.06 s of one processor; OpenDP returns them as a list."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """The one measurement that draws a statistic's noise; its privacy map was checked.

    OpenDP's sampler runs without the interpreter's lock, so several threads may draw at a time.

    Parameters
    ----------
    measurement : Measurement
        OpenDP's.
    """

    measurement: Measurement

    def draw_into(self, out: NDArray[np.int64]) -> None:
        """Overwrite an array of one dimension with independent draws."""
        # proof: discrete-laplace
        drawn = np.fromiter(self.measurement([0] * len(out)), np.int64, len(out))
        out[:] = drawn
        wipe(drawn)

    def start(self, out: NDArray[np.int64], threads: Executor) -> list[Future[None]]:
        """Have threads overwrite an array, each chunk of it once; it is drawn when all are done."""
        pieces = [out[first : first + CHUNK] for first in range(0, len(out), CHUNK)]
        return [threads.submit(self.draw_into, piece) for piece in pieces]


def discrete_laplace(
    *, scale: float, loss: PrivacyLoss, l1_sensitivity: int, l2_squared: int | None = None
) -> Sampler:
    r"""Return a sampler of discrete Laplace noise, after OpenDP's own privacy map has been checked.

    .. math:: P(Z = z) = \tanh\bigl(\tfrac{1}{2b}\bigr) \, e^{-|z| / b}, \quad z \in \mathbb{Z}

    Parameters
    ----------
    scale : float, > 0
        ``b``, in lattice units.
    loss : PrivacyLoss, > 0
        What the vector that the noise is for may cost.
    l1_sensitivity : int, > 0
        Of the vector, in lattice units.
    l2_squared : int, > 0, or None
        The square of its L2 sensitivity; a loss of rho needs it.

    Returns
    -------
    Sampler
        Nothing has been drawn from it.

    Raises
    ------
    ValueError
        Where the loss by OpenDP's map of this measurement exceeds that, the scale is out of range, or a loss
        of rho has no L2 sensitivity.

    References
    ----------
    Canonne, Kamath, Steinke 2020, algorithm 2, as implemented by OpenDP (`canonne2020discrete`).
    """
    # proof: saturation
    if not 0 < scale <= LARGEST_SCALE:
        message = "the noise scale is out of range"
        raise ValueError(message)
    measurement = _measurement(scale)
    if loss.rho is None:
        # proof: privacy-map
        lost = Fraction(_loss(measurement, l1_sensitivity))
    elif l2_squared is None or l2_squared < 1:
        message = "a loss of rho needs the square of the L2 sensitivity, above 0"
        raise ValueError(message)
    else:
        # proof: laplace-in-rho
        lost = Fraction(_loss(measurement, 1)) ** 2 * l2_squared / 2
    if lost > loss.amount:
        message = f"OpenDP's privacy map exceeds {loss.measure}"
        raise ValueError(message)
    return Sampler(measurement)


def privacy_map(l1_sensitivity: int, scale: float) -> float:
    """Return OpenDP's bound on the privacy loss of noise of this scale, in nats."""
    return _loss(_measurement(scale), l1_sensitivity)


def _loss(measurement: Measurement, l1_sensitivity: int) -> float:
    return float(measurement.map(l1_sensitivity))  # type: ignore[no-untyped-call]


def _measurement(scale: float) -> Measurement:
    opendp.mod.enable_features("contrib")
    domain = opendp.domains.vector_domain(opendp.domains.atom_domain(T="i64"))
    return opendp.measurements.make_laplace(domain, opendp.metrics.l1_distance(T="i64"), scale=scale)
