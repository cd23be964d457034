"""One sweep over single states leaves their exact law as it is, transitions summed out."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2

from suffice.pipeline.ask.models.state_draws import count_transitions, draw_single_sites

if TYPE_CHECKING:
    from suffice.typing import Floats

ALPHA, CHAINS, TIMES, STATES = 0.3, 2, 3, 2
PATHS = np.array(list(itertools.product(range(STATES), repeat=CHAINS * TIMES))).reshape(-1, CHAINS, TIMES)
RESTARTS = 100_000
THRESHOLD = float(chi2.isf(1e-7, len(PATHS) - 1))
"""Each path is expected 26 times or more."""
LOG_EMISSIONS = np.log(np.array([[[1, 2], [3, 1], [1, 1]], [[1, 1], [1, 2], [2, 1]]]))


def law(alpha: float) -> Floats:
    steps = count_transitions(PATHS, STATES)
    of_rows = gammaln(alpha + steps).sum(axis=2) - gammaln(STATES * alpha + steps.sum(axis=2))
    cells = np.indices((CHAINS, TIMES))
    log_joint = of_rows.sum(axis=1) + LOG_EMISSIONS[cells[0], cells[1], PATHS].sum(axis=(1, 2))
    chances: Floats = np.exp(log_joint - logsumexp(log_joint))
    return chances


def distance_after_a_sweep(alpha: float) -> float:
    """Chi-square of paths drawn from the exact law, after one sweep of a prior."""
    rng = np.random.default_rng()
    exact = law(ALPHA)
    states = PATHS[rng.choice(len(PATHS), RESTARTS, p=exact)].astype(np.int8)
    emissions = np.broadcast_to(LOG_EMISSIONS, (RESTARTS, *LOG_EMISSIONS.shape))
    drawn = draw_single_sites(states, emissions, alpha, rng)
    places = drawn.reshape(RESTARTS, -1) @ (2 ** np.arange(CHAINS * TIMES)[::-1])
    found = np.bincount(places, minlength=len(PATHS))
    return float(np.sum((found - RESTARTS * exact) ** 2 / (RESTARTS * exact)))


def test_a_sweep_leaves_the_exact_law_as_it_is() -> None:
    assert distance_after_a_sweep(ALPHA) < THRESHOLD
    # The control: a sweep of another prior.
    assert distance_after_a_sweep(0.5) > THRESHOLD
