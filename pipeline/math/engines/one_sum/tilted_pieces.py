r"""A piece of positions in which log weights rise evenly: its mass, mean and variance, inside compiled loops.

Model: weights :math:`e^{s x}` at positions from -h to h about a middle, with u = s h, and z = s m for a node
that is m before the middle.

.. math:: \text{mass} \propto e^z \frac{\sinh u}{u}, \quad \text{mean} = h L(u), \quad
    \text{variance} = h^2 L'(u), \qquad L(u) = \coth u - \frac 1 u, \; L' = 1 - L^2 - \frac{2 L} u \qquad (1)

Method. :math:`L(u) \approx u / (1 + \sqrt{4 + u^2})`, to 3 %. Of the mass the series of both factors: where
these are far off there is next to no weight. Nothing is called and nothing branches, so that loops over
pieces become vectors.
"""

from __future__ import annotations

import math

from suffice.pipeline.math.distributions.machine_code import merged


@merged
def tilted_mass(u2: float, z: float) -> float:
    """Mass beside that of as many with the weight of the node, given u^2 and z."""
    return (1.0 + u2 * (1.0 + u2 / 20.0) / 6.0) * max(1.0 + z * (1.0 + z * (0.5 + z / 6.0)), 0.0)


@merged
def tilted_mean(u2: float) -> float:
    """L(u) / u: the mean is this times s h^2."""
    return 1.0 / (1.0 + math.sqrt(4.0 + u2))


@merged
def tilted_variance(u2: float) -> float:
    """L'(u): the variance over h^2."""
    by_u = tilted_mean(u2)
    return max(1.0 - u2 * by_u * by_u - 2.0 * by_u, 0.0)
