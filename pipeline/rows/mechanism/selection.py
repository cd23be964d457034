"""The other module that draws: OpenDP's noisy maximum, which is the exponential mechanism exactly.

An index has the probability ``exp(score / t)`` over the sum of all, as that of the largest of sums with
independent standard Gumbel variables times t. OpenDP draws it by rejection: a uniform index is accepted with
probability ``exp((score - highest) / t)``. How many it proposes depends on the scores, so the run time does.
Everything that `noise` says of its generator holds here: there is no seed, and nothing else may draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import opendp.domains
import opendp.measurements
import opendp.measures
import opendp.metrics
import opendp.mod

from suffice.pipeline.terms.statistics.statistic_plan import LARGEST_SAMPLE_SCALE

if TYPE_CHECKING:
    from opendp.mod import Measurement

    from suffice.typing import Cells


@dataclass(frozen=True, slots=True)
class Selector:
    """The one measurement that draws a statistic's samples; its privacy map was checked.

    OpenDP's sampler runs without the interpreter's lock, so several threads may draw at a time.

    Parameters
    ----------
    measurement : Measurement
        OpenDP's.
    """

    measurement: Measurement

    def draw_into(self, scores: Cells, out: Cells) -> None:
        """Overwrite an array of one dimension with independent draws of an index into `scores`."""
        # proof: noisy-maximum
        candidates = scores.tolist()
        for position in range(len(out)):
            out[position] = self.measurement(candidates)


def exponential_mechanism(*, scale: int, range_sensitivity: int, epsilon: Fraction) -> Selector:
    r"""Return a selector of grid points, after OpenDP's own privacy map has been checked.

    .. math:: P(g) = e^{s_g / t} \Big/ \sum_h e^{s_h / t}

    Parameters
    ----------
    scale : int, >= 1
        ``t``, in units of the scores.
    range_sensitivity : int, > 0
        The largest range of a change of all scores between neighbours, in units of the scores.
    epsilon : Fraction, > 0
        What one draw may cost, in nats.

    Returns
    -------
    Selector
        Nothing has been drawn from it.

    Raises
    ------
    ValueError
        Where OpenDP's map of this measurement exceeds what epsilon allows, or the scale is out of range.

    References
    ----------
    McSherry, Talwar 2007 (`mcsherry2007mechanism`); the range of a change is what it costs: Dong, Durfee,
    Rogers 2020 (`dong2020optimal`).
    """
    if not 1 <= scale <= LARGEST_SAMPLE_SCALE:
        message = "the scale of a sample is out of range"
        raise ValueError(message)
    # proof: selection-map
    measurement = _measurement(scale)
    if Fraction(_zero_concentrated_loss(measurement, range_sensitivity)) > epsilon**2 / 8:
        message = "OpenDP's privacy map exceeds epsilon^2 / 8"
        raise ValueError(message)
    return Selector(measurement)


def _zero_concentrated_loss(measurement: Measurement, range_sensitivity: int) -> float:
    """Return OpenDP's rho: its metric is the largest change of a score, half of the range once centred."""
    return float(measurement.map(-(-range_sensitivity // 2)))  # type: ignore[no-untyped-call]


def _measurement(scale: int) -> Measurement:
    # The measure decides on the law: for pure privacy it would be that of permute-and-flip, which is no
    # posterior's. Of the exponential mechanism OpenDP states zero-concentrated privacy only; that it is
    # epsilon-private is our proof.
    opendp.mod.enable_features("contrib")
    domain = opendp.domains.vector_domain(opendp.domains.atom_domain(T="i64"))
    return opendp.measurements.make_noisy_max(
        domain,
        opendp.metrics.linf_distance(T="i64"),
        opendp.measures.zero_concentrated_divergence(),
        scale=float(scale),
    )
