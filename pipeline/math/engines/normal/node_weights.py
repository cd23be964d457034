r"""Weights of all parts of the prior at the nodes of a line of log E, as loops that become vectors.

The integrand is (1) of ``node_lines``. Nodes stand in ascending order of E, in columns of one array. For two
parts the log of the ratio of their densities is monotone in E, rising where the first has the larger
:math:`\rho`: what is below another part at the end of a block where it is best is so in all of the block.

.. math:: \log\frac{p_k}{p_j} = \text{const} - (\alpha + \delta) \log \frac{E + \rho_k}{E + \rho_j} \qquad (1)

A part far below in mass may still hold the variance's second moment, for its variances are larger: parts are
chosen by mass, and by mass times :math:`(E + \rho)^2`, for which (1) holds with :math:`\alpha + \delta - 2`.

Moments need three sums a part, for given a part and m the scale of the inverse gamma is linear in E.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.machine_code import reordered, uncounted, vectorised
from suffice.pipeline.math.distributions.vector_functions import exp, log, log1p

if TYPE_CHECKING:
    from suffice.typing import Floats

    Integers = np.ndarray[Any, np.dtype[np.int64]]

BLOCK = 8
"""Nodes for which parts are chosen together: as many as a vector has."""
_PART = 10.0
"""Nats below the best part of the prior at a node, at which another is left out there."""
_POWER = 2.0
"""Of the variance, whose moment counts beside the mass."""

PARTS, MOST_NODES = 40, 1824
"""The most parts of a prior that a cell may have, and nodes of a line."""

# Rows are pieces of one array, of a length that is known where it is compiled: what is written to a row is no
# other row, and no loop has to ask.
# Rows of a line's nodes. The first five are what makes the next ones.
NODE_ROWS = 17
LOG_E, KINK, LEVEL, SLOPE, SPAN, FACTOR = range(0, 6 * MOST_NODES, MOST_NODES)
E, INVERSE, BASE, AWAY, TOTAL, FIRST, SECOND = range(6 * MOST_NODES, 13 * MOST_NODES, MOST_NODES)
# Rows of its panels: where they start, by how much of it they end later, and the logarithms of both.
START, LONGER, LOG_START, LENGTH = range(13 * MOST_NODES, NODE_ROWS * MOST_NODES, MOST_NODES)
# Rows of a line's parts.
PART_ROWS = 12
CONSTANT, RHO, LOC, OVER, AT_LOW, AT_HIGH = range(0, 6 * PARTS, PARTS)
MASS, MASS_AWAY, MASS_SQUARE, BOUND, HEAVY_LOW, HEAVY_HIGH = range(6 * PARTS, PART_ROWS * PARTS, PARTS)
# Rows of what the parts have given N.
N_ROWS = 11
N_CONSTANT, N_RHO, N_OVER, N_PRECISION, N_SHRUNK, N_AFTER = range(0, 6 * PARTS, PARTS)
N_MEAN, N_SQUARE, N_BEST, N_FALLS, N_WIDTH = range(6 * PARTS, N_ROWS * PARTS, PARTS)


def _gauss_table() -> tuple[Floats, Floats, Floats]:
    """Gauss-Legendre nodes and weights on 0..1 by number, and how far the middles of their weights are."""
    nodes, weights, middles = np.zeros((3, 7, 8))
    for number in range(1, 7):
        x, w = np.polynomial.legendre.leggauss(number)
        nodes[number, :number], weights[number, :number] = (1.0 + x) / 2.0, w / 2.0
        middles[number, :number] = np.cumsum(w / 2.0) - w / 4.0 - (1.0 + x) / 2.0
    return nodes, weights, middles


NODES, WEIGHTS, MIDDLES = _gauss_table()


@vectorised
def bounds(parts: int, delta: float, of_n: Floats, of_parts: Floats) -> None:
    """Logs of the best densities of the parts over E."""
    for k in range(parts):
        of_parts[BOUND + k] = of_n[N_BEST + k] - delta * log(of_parts[RHO + k])


@vectorised
def _panel_logs(count: int, nodes: Floats) -> None:
    """Fill in where panels start in log E, and how long they are."""
    for i in range(count):
        nodes[LOG_START + i] = log(nodes[START + i])
        nodes[LENGTH + i] = log1p(nodes[LONGER + i])


@uncounted
def place_nodes(panels: int, points: int, nodes: Floats) -> None:
    """Place the nodes of a line's panels."""
    _panel_logs((panels + BLOCK - 1) // BLOCK * BLOCK, nodes)
    i = 0
    for panel in range(panels):
        start, length = nodes[LOG_START + panel], nodes[LENGTH + panel]
        for node in range(points):
            nodes[LOG_E + i] = start + length * NODES[points, node]
            nodes[SPAN + i] = length * WEIGHTS[points, node]
            i += 1


@vectorised
def _prepare(count: int, ref: float, weight: float, delta: float, middle: float, nodes: Floats) -> None:
    """Fill in E, one over it, and all of the log density that parts share."""
    for i in range(count):
        e = exp(nodes[LOG_E + i])
        noise = nodes[LEVEL + i] + nodes[SLOPE + i] * (e - nodes[KINK + i])
        nodes[FACTOR + i] = weight * nodes[SPAN + i]
        nodes[E + i] = e
        nodes[INVERSE + i] = 1.0 / e
        nodes[BASE + i] = -noise - ref - delta * nodes[LOG_E + i]
        nodes[AWAY + i] = e - middle
        nodes[TOTAL + i] = 0.0
        nodes[FIRST + i] = 0.0
        nodes[SECOND + i] = 0.0


@vectorised
def _at_edge(count: int, inverse: float, power: float, row: int, heavy: int, of_parts: Floats) -> None:
    """Log densities of the parts, and of their second moments of the variance, but for what they share."""
    less = max(power - _POWER, 0.0)
    for k in range(count):
        logarithm = log1p(of_parts[RHO + k] * inverse)
        of_parts[row + k] = of_parts[CONSTANT + k] - power * logarithm
        of_parts[heavy + k] = of_parts[CONSTANT + k] - less * logarithm


@reordered
def _add_parts(
    parts: int, whole: int, power: float, keeps: bool, nodes: Floats, of_parts: Floats, blocks: Integers,
    weights: Floats,
) -> None:  # fmt: skip
    """Weights of the parts at their nodes, and the sums of each: its mass, and this times E and E^2."""
    for k in range(parts):
        first, last, row = max(blocks[0, k], 0) * BLOCK, blocks[1, k] * BLOCK, k * MOST_NODES
        constant, rho = of_parts[CONSTANT + k], of_parts[RHO + k]
        mass, mass_away, mass_square = 0.0, 0.0, 0.0
        # From 0: indices that might be below it, from the end, are no vectors.
        from_first, of_part = nodes[first:], weights[row + first :]
        for i in range(last - first):
            log_density = constant + from_first[BASE + i] - power * log1p(rho * from_first[INVERSE + i])
            w = from_first[FACTOR + i] * exp(log_density)
            of_part[i] = w
            from_first[TOTAL + i] += w
            from_first[FIRST + i] += w * rho
            from_first[SECOND + i] += w * rho * rho
            mass += w
            mass_away += w * from_first[AWAY + i]
            mass_square += w * from_first[AWAY + i] * from_first[AWAY + i]
        of_parts[MASS + k], of_parts[MASS_AWAY + k], of_parts[MASS_SQUARE + k] = mass, mass_away, mass_square
        if keeps:
            for i in range(first):
                weights[row + i] = 0.0
            for i in range(last, whole):
                weights[row + i] = 0.0


@uncounted
def weigh(  # noqa: C901, PLR0912 - one compiled loop
    count: int, n: float, delta: float, middle: float, ref: float, weight: float, parts: int, keeps: bool,
    nodes: Floats, of_parts: Floats, blocks: Integers, weights: Floats,
) -> None:  # fmt: skip
    """Fill in the sums of the parts at a line's nodes, and of all parts; ``keeps`` fills in weights too."""
    power = (n - 1.0) / 2.0 + delta
    whole = (count + BLOCK - 1) // BLOCK * BLOCK
    for i in range(count, whole):
        for row in range(LOG_E, SPAN, MOST_NODES):
            nodes[row + i] = nodes[row + count - 1]
        nodes[SPAN + i] = 0.0
    _prepare(whole, ref, weight, delta, middle, nodes)
    padded = (parts + BLOCK - 1) // BLOCK * BLOCK
    for k in range(parts):
        blocks[0, k], blocks[1, k] = -1, 0
    if parts == 1:
        blocks[0, 0], blocks[1, 0] = 0, whole // BLOCK
    for block in range(whole // BLOCK if parts > 1 else 0):
        if block == 0:
            _at_edge(padded, nodes[INVERSE + 0], power, AT_LOW, HEAVY_LOW, of_parts)
        else:
            for k in range(parts):
                of_parts[AT_LOW + k] = of_parts[AT_HIGH + k]
                of_parts[HEAVY_LOW + k] = of_parts[HEAVY_HIGH + k]
        last = min((block + 1) * BLOCK, whole - 1)
        _at_edge(padded, nodes[INVERSE + last], power, AT_HIGH, HEAVY_HIGH, of_parts)
        for low, high in ((AT_LOW, AT_HIGH), (HEAVY_LOW, HEAVY_HIGH)):
            best_low, best_high = 0, 0
            for k in range(1, parts):
                if of_parts[low + k] > of_parts[low + best_low]:
                    best_low = k
                if of_parts[high + k] > of_parts[high + best_high]:
                    best_high = k
            # (1).
            least_low, least_high = of_parts[low + best_low] - _PART, of_parts[high + best_high] - _PART
            rho_low, rho_high = of_parts[RHO + best_low], of_parts[RHO + best_high]
            for k in range(parts):
                rho = of_parts[RHO + k]
                if (rho > rho_low or of_parts[low + k] >= least_low) and (
                    rho < rho_high or of_parts[high + k] >= least_high
                ):
                    if blocks[0, k] < 0:
                        blocks[0, k] = block
                    blocks[1, k] = block + 1
    _add_parts(parts, whole, power, keeps, nodes, of_parts, blocks, weights)


@reordered
def log_moments(count: int, half_n: float, after: float, known: float, nodes: Floats) -> tuple[float, float]:
    """Mass times the log variance from what is known, and its square, about."""
    first, second = 0.0, 0.0
    for i in range(count):
        w = nodes[TOTAL + i]
        over = 1.0 / max(w, 1e-280)
        rho = nodes[FIRST + i] * over
        scale = rho + nodes[E + i]
        scatter = log(1.0 + max(nodes[SECOND + i] * over - rho * rho, 0.0) / (scale * scale))
        position = log(half_n * scale / after) - 0.5 * scatter - known
        first += w * position
        second += w * (position * position + 1.0 / after + scatter)
    return first, second


@reordered
def noise_of(count: int, ref: float, delta: float, nodes: Floats) -> float:
    """Mass times the nats that the noise takes, of a line."""
    total = 0.0
    for i in range(count):
        total -= nodes[TOTAL + i] * (nodes[BASE + i] + delta * nodes[LOG_E + i] + ref)
    return total


@uncounted
def add_line(
    n: float, middle: float, parts: int, of_n: Floats, of_parts: Floats, about: Floats, sums: Floats
) -> None:
    """Add the moments of all parts of a line."""
    half_n = 0.5 * n
    mean_of, square_of = of_n[N_MEAN], of_n[N_SQUARE]
    for k in range(parts):
        mass = of_parts[MASS + k]
        if not mass > 0.0:
            continue
        slope, loc = mean_of * half_n, of_parts[LOC + k]
        # The mean of an inverse gamma is centre + slope (E - middle).
        centre = slope * (of_parts[RHO + k] + middle)
        from_known = centre - about[1]
        linear, square = slope * of_parts[MASS_AWAY + k], slope * slope * of_parts[MASS_SQUARE + k]
        sums[0] += mass
        sums[1] += mass * loc
        sums[2] += mass * loc * loc + of_parts[OVER + k] * (mass * centre + linear)
        sums[3] += mass * from_known + linear
        sums[4] += mass * from_known * from_known + 2.0 * from_known * linear + square
        sums[4] += square_of * (mass * centre * centre + 2.0 * centre * linear + square)
        sums[5] += mass * n
