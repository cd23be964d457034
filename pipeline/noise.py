"""The only module that draws privacy noise: OpenDP's exact discrete Laplace sampler, from the OS's entropy.

There is no seed, no generator state and no floating-point noise here, and nothing else in this project
may draw noise (a test of the imports holds it to that).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import opendp.domains
import opendp.measurements
import opendp.metrics
import opendp.mod

from suffice.pipeline.numbers import LARGEST_SCALE

if TYPE_CHECKING:
    from opendp.mod import Measurement


def discrete_laplace(size: int, *, scale: float, l1_sensitivity: int, epsilon: Fraction) -> list[int]:
    r"""Draw independent discrete Laplace noise, after OpenDP's own privacy map has been checked.

    .. math:: P(Z = z) = \tanh\bigl(\tfrac{1}{2b}\bigr) \, e^{-|z| / b}, \quad z \in \mathbb{Z}

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
    list of int, length `size`

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
    # proof: discrete-laplace
    return list(measurement([0] * size))


def privacy_map(l1_sensitivity: int, scale: float) -> float:
    """Return OpenDP's bound on the privacy loss of noise of this scale, in nats."""
    return _loss(_measurement(scale), l1_sensitivity)


def _loss(measurement: Measurement, l1_sensitivity: int) -> float:
    return float(measurement.map(l1_sensitivity))  # type: ignore[no-untyped-call]


def _measurement(scale: float) -> Measurement:
    opendp.mod.enable_features("contrib")
    domain = opendp.domains.vector_domain(opendp.domains.atom_domain(T="i64"))
    return opendp.measurements.make_laplace(domain, opendp.metrics.l1_distance(T="i64"), scale=scale)
