r"""Priors of effects few of which matter: spike and slab, and the horseshoe.

Spike and slab. With the probability q that an effect is not 0,

.. math:: \beta \sim (1 - q) \, \delta_0 + q \, \text{slab}. \qquad (1)

Symbols:

- q: ``inclusion``, 0..1

Method. A point and a density, as in ``composed.py``; the horseshoe's is in ``horseshoe.py``.

References
----------
Mitchell, Beauchamp. Bayesian variable selection in linear regression. JASA 83(404), 1988.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.weighted_sum import WeightedSum
from suffice.pipeline.math.priors.by_name import parse_density
from suffice.pipeline.math.priors.composed import Point

if TYPE_CHECKING:
    from suffice.pipeline.math.priors.density import Density


def Horseshoe(scale: float) -> Density:  # noqa: N802 - named as a distribution
    """Return the horseshoe: half of effects are smaller than 0.6 scales, and a few are of any size.

    Parameters
    ----------
    scale : float, > 0
        In the parameter's unit.

    Raises
    ------
    PriorError
        Where it is none.
    """
    given: object = scale
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0.0 < given < math.inf:
        message = f"Horseshoe: scale must be a finite number above 0, not {scale!r}"
        raise PriorError(message)
    return parse_density(f"Horseshoe({float(scale)!r})")


def SpikeAndSlab(inclusion: float, slab: Any) -> WeightedSum:  # noqa: N802 - named as a distribution
    """Return a prior of one number that is 0 but for a probability: ``SpikeAndSlab(0.2, "Normal(0, 1)")``.

    Parameters
    ----------
    inclusion : float, 0..1
        The probability that it is not 0, without the ends.
    slab : Density, distribution of scipy.stats or str
        Its prior then: any of one number.

    Raises
    ------
    PriorError
        Where the probability or the slab is none.
    """
    given: object = inclusion
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0.0 < given < 1.0:
        message = (
            f"SpikeAndSlab: inclusion, the probability of not being 0, lies within 0..1, not {inclusion!r}"
        )
        raise PriorError(message)
    return WeightedSum(1.0 - inclusion, Point(0.0), float(inclusion), slab)
