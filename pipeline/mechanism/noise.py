"""The only module that draws privacy noise: OpenDP's exact discrete Laplace sampler, from the OS's entropy.

There is no seed, no generator state and no floating-point noise here, and nothing else in this project
may draw noise (a test of the imports holds it to that).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import opendp.domains
import opendp.measurements
import opendp.metrics
import opendp.mod

from suffice.pipeline.declaration.exact_numbers import LARGEST_SCALE

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from opendp.mod import Measurement

CHUNK = 1 << 13
"""Draws that one thread makes at a time, some 0.06 s of one processor; OpenDP returns them as a list."""


def discrete_laplace(size: int, *, scale: float, l1_sensitivity: int, epsilon: Fraction) -> NDArray[np.int64]:
    r"""Draw independent discrete Laplace noise, after OpenDP's own privacy map has been checked.

    .. math:: P(Z = z) = \tanh\bigl(\tfrac{1}{2b}\bigr) \, e^{-|z| / b}, \quad z \in \mathbb{Z}

    Many draws are divided among threads, as OpenDP's sampler runs without the interpreter's lock. Every
    chunk is drawn once, by the one measurement whose map was checked.

    Parameters
    ----------
    size : int
        Number of draws.
    scale : float, > 0
        ``b``, in lattice units.
    l1_sensitivity : int, > 0
        Of the vector that the noise is for, in lattice units.
    epsilon : Fraction, > 0
        What the vector may cost, in nats.

    Returns
    -------
    ndarray of int64, shape (size,)

    Raises
    ------
    ValueError
        Where OpenDP's map of this measurement exceeds epsilon, or the scale is out of range; nothing
        has been drawn then.

    References
    ----------
    Canonne, Kamath, Steinke 2020, algorithm 2, as implemented by OpenDP (`canonne2020discrete`).
    """
    # proof: privacy-map
    if not 0 < scale <= LARGEST_SCALE:
        message = "the noise scale is out of range"
        raise ValueError(message)
    measurement = _measurement(scale)
    if Fraction(_loss(measurement, l1_sensitivity)) > epsilon:
        message = "OpenDP's privacy map exceeds epsilon"
        raise ValueError(message)
    noise = np.empty(size, np.int64)

    def draw(start: int) -> None:
        length = min(CHUNK, size - start)
        noise[start : start + length] = np.fromiter(measurement([0] * length), np.int64, length)

    # proof: discrete-laplace
    starts = range(0, size, CHUNK)
    if len(starts) == 1:
        draw(0)
    else:
        with ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="suffice-noise") as threads:
            list(threads.map(draw, starts))  # raises what a thread raised
    return noise


def privacy_map(l1_sensitivity: int, scale: float) -> float:
    """Return OpenDP's bound on the privacy loss of noise of this scale, in nats."""
    return _loss(_measurement(scale), l1_sensitivity)


def _loss(measurement: Measurement, l1_sensitivity: int) -> float:
    return float(measurement.map(l1_sensitivity))  # type: ignore[no-untyped-call]


def _measurement(scale: float) -> Measurement:
    opendp.mod.enable_features("contrib")
    domain = opendp.domains.vector_domain(opendp.domains.atom_domain(T="i64"))
    return opendp.measurements.make_laplace(domain, opendp.metrics.l1_distance(T="i64"), scale=scale)
