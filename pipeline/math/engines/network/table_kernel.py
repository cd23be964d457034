r"""Moves among latent tables in compiled loops: what ``Chains.by_arrays`` does.

Of every move and chain, with what n adds to the log density from (1) of ``table_network``,

.. math:: \text{gain} = \sum_e \Big(\sum_s c_{se} \log\Gamma(s_{se} + n'_e) - \sum_r |z_{re} - n'_e| / b_{re}
    \Big) - \text{what } n_e \text{ adds}, \qquad P(\text{accept}) = \min(1, e^{\text{gain}}). \qquad (1)

Chains stand side by side in every row, so that the innermost loops become vectors.
"""

# ruff: noqa: C901, PLR0912 - compiled loops, one step after the other

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import types

from suffice.pipeline.math.distributions.machine_code import compiled, read, vectorised, written
from suffice.pipeline.math.distributions.vector_functions import log
from suffice.pipeline.math.engines.multivariate.lanes import gamma_functions

if TYPE_CHECKING:
    from suffice.typing import Floats, Rows

_LEAST_UNIFORM = 1e-300


@vectorised
def _add_noise(n: Floats, observed: Floats, rate: float, density: Floats) -> None:
    """Add what a release says of an entry's counts."""
    for chain in range(len(n)):
        density[chain] -= abs(observed[chain] - n[chain]) * rate


@vectorised
def _add_gamma(n: Floats, shift: float, coefficient: float, density: Floats) -> None:
    """Add what multinomials and Dirichlets say of an entry's counts."""
    for chain in range(len(n)):
        density[chain] += coefficient * gamma_functions(shift + max(n[chain], 0.0))[0]


@vectorised
def _add_n(n: Floats, prior: Floats, density: Floats) -> None:
    """Add what the prior says of N, as ``table_chains.numbers_of`` states it."""
    for chain in range(len(n)):
        inside = prior[2] <= n[chain] <= prior[3]
        density[chain] += prior[0] - prior[1] * log(1.0 + max(n[chain], 0.0)) if inside else -math.inf


@vectorised
def _rows(sizes: Floats, uniform: Floats, k: Floats) -> None:
    """Set how many rows every chain moves, and where to."""
    chains = len(uniform) // len(sizes)
    for chain in range(len(uniform)):
        signed = 1.0 - 2.0 * uniform[chain]
        length = 1.0 + math.floor(-log(max(abs(signed), _LEAST_UNIFORM)) * sizes[chain // chains])
        k[chain] = math.copysign(length, signed)


def _accept(
    counts: Floats, densities: Floats, entries: Rows, starts: Rows, factors: Floats, steps: Rows,
    together: bool, sizes: Floats, shares: Floats, uniform: Floats, exponentials: Floats, shifts: Floats,
    coefficients: Floats, observed: Floats, rates: Floats, set_of_n: Rows, n_priors: Floats, share: Floats,
) -> None:  # fmt: skip
    """Make those moves that are accepted, and set their share in each cell.

    Counts and densities are (n_entries, b), uniform and exponential numbers (n_moves, b), shares of rows
    (n_sets, b), shifts and coefficients (n_slots, n_entries), observed (n_releases, n_entries, b), rates
    (n_releases, n_entries). Of each entry ``set_of_n`` is the data set whose N it is, or -1.
    """
    n_moves, chains = uniform.shape
    k = np.empty((n_moves * (len(shares) + 1 if together else 1), chains))
    longest = 0
    for move in range(n_moves):
        end = starts[move + 1] if move + 1 < n_moves else len(entries)
        longest = max(longest, end - starts[move])
        _rows(sizes, uniform[move], k[move])
        if together:
            for chain in range(chains):
                rows, total = k[move, chain], 0.0
                for each in range(len(shares)):
                    step = np.rint(shares[each, chain] * rows)
                    k[each * n_moves + move, chain] = step
                    total += step
                k[len(shares) * n_moves + move, chain] = total
    proposed, density = np.empty((longest, chains)), np.empty((longest, chains))
    gain = np.empty(chains)
    share[:] = 0.0
    for move in range(n_moves):
        first = starts[move]
        end = starts[move + 1] if move + 1 < n_moves else len(entries)
        gain[:] = 0.0
        for at in range(first, end):
            entry, n, added = entries[at], proposed[at - first], density[at - first]
            before, factor, step_of_chain = counts[entry], factors[at, 0], k[steps[at]]
            for chain in range(chains):
                n[chain] = before[chain] + factor * step_of_chain[chain]
                added[chain] = 0.0
            for release in range(len(rates)):
                if rates[release, entry] > 0.0:
                    _add_noise(n, observed[release, entry], rates[release, entry], added)
            for slot in range(len(shifts)):
                if coefficients[slot, entry] != 0.0:
                    _add_gamma(n, shifts[slot, entry], coefficients[slot, entry], added)
            if set_of_n[entry] >= 0:
                _add_n(n, n_priors[set_of_n[entry]], added)
            now = densities[entry]
            for chain in range(chains):
                if n[chain] < 0.0:
                    added[chain] = -math.inf
                gain[chain] += added[chain] - now[chain]
        for chain in range(chains):
            # P(gain > -Exp(1)) = min(1, e^gain).
            if gain[chain] > -exponentials[move, chain]:
                share[chain * len(share) // chains] += 1.0
                for at in range(first, end):
                    counts[entries[at], chain] = proposed[at - first, chain]
                    densities[entries[at], chain] = density[at - first, chain]
    share /= n_moves * (chains // len(share))


accept = compiled(
    _accept,
    written(2), written(2), read(1, types.int64), read(1, types.int64), read(2), read(1, types.int64),
    types.boolean, read(1), read(2), read(2), read(2), read(2), read(2), read(3), read(2),
    read(1, types.int64), read(2), written(1),
)  # fmt: skip
