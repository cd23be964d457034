r"""What an audit says of noise on a cone: the loss of neighbours from below, and tests of what was drawn.

The exact level. A change of totals costs at least the rate times :math:`|\langle Y, \Delta \rangle|` for
every Y with :math:`|\langle Y, P \rangle| \le \ell(P)` on the cone: entries of the matrix by themselves, and
:math:`P_{00} - 2 P_{ii}`. For a record that is added it is exact.

The noise level. The first component's noise is the difference of two Gamma(D) numbers in units of
:math:`M^2 / \lambda`, rounded, with

.. math:: P(|t_P - t_Q| > x) = \sum_{j < D} \binom{D - 1 + j}{j} 2^{1 - D - j} Q(D - j, x)

so that as many as not are beyond the median, as many are above 0 as below, and none are alike.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize, special

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.cone_noise import ConeNoise
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


def least_loss(change: NDArray[Any], noise: ConeNoise) -> Fraction:
    """Return what a change of totals, (n_cells, D), costs at least, in epsilon."""
    largest = [abs(change[:, place]) for place in range(noise.n_components)]
    diagonal = [place for place, (i, j) in enumerate(noise.pairs) if i == j and i > 0]
    largest += [abs(change[:, 0] - 2 * change[:, place]) for place in diagonal]
    records = np.max(np.array(largest), axis=0).sum()
    return Fraction(int(records), noise.steps**2) * noise.rate


def beyond(x: float, shape: int) -> float:
    """Return the chance that the difference of two Gamma(D) numbers is more than x in magnitude."""
    j = np.arange(shape)
    log_weight = (
        special.gammaln(shape + j)
        - special.gammaln(j + 1.0)
        - special.gammaln(shape)
        - (shape - 1.0 + j) * np.log(2.0)
    )
    return float(np.sum(np.exp(log_weight) * special.gammaincc(shape - j, max(x, 0.0))))


def flaws_of(statistic: StatisticPlan, runs: list[NDArray[Any]], alarm: float) -> Iterator[str]:
    """Test the draws of several releases, each flat, and say what is wrong: the check, and what it is."""
    noise = statistic.cone
    if noise is None:
        return
    cells = [run.reshape(-1, noise.n_components) for run in runs]
    first = np.concatenate(cells)[:, 0]
    unit = float(noise.steps**2 / noise.rate)
    median = float(
        optimize.brentq(lambda x: beyond(x, noise.n_components) - 0.5, 0.0, 8.0 * noise.n_components)
    )
    far = int(sum(abs(int(each)) > median * unit for each in first))
    # What is rounded has moved by at most 1.
    low, high = (beyond(median + shift / unit, noise.n_components) for shift in (1.0, -1.0))
    if float(special.bdtr(far, len(first), low)) < alarm / 2:
        yield "noise is smaller than declared"
    if far and float(special.bdtrc(far - 1, len(first), high)) < alarm / 2:
        yield "noise is larger than declared"
    signs = [int(np.sign(each)) for each in first if each]
    positive = sum(sign > 0 for sign in signs)
    if signs and 2 * float(special.bdtr(min(positive, len(signs) - positive), len(signs), 0.5)) < alarm:
        yield "one sign is drawn too often"
    # A difference of differences has a density below 1/2 at 0.
    alike = min(1.0, 2.0 / unit)
    within = [(each[i], each[i + 1]) for each in cells for i in range(0, len(each) - 1, 2)]
    between = [
        pair for i in range(0, len(cells) - 1, 2) for pair in zip(cells[i], cells[i + 1], strict=False)
    ]
    for pairs in (within, between):
        equal = sum(bool(np.all(first == second)) for first, second in pairs)
        if equal and float(special.bdtrc(equal - 1, len(pairs), alike)) < alarm:
            yield "too many draws are alike"


def _median(shape: int) -> float:
    return float(optimize.brentq(lambda x: beyond(x, shape) - 0.5, 0.0, 8.0 * shape))


def power(noise: ConeNoise, size: int, factor: float, alarm: float) -> float:
    """Return the chance that noise `factor` times too small fails the test of its median."""
    shape = noise.n_components
    median = _median(shape)
    counts = np.arange(size + 1)
    fails = special.bdtr(counts, size, 0.5) < alarm / 2
    if not fails.any():
        return 0.0
    return float(special.bdtr(int(np.flatnonzero(fails)[-1]), size, beyond(factor * median, shape)))
