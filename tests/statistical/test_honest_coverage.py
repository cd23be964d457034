"""What users get by default is honest about populations that nobody designed, real columns among them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import bdtr

from suffice.pipeline.families import FAMILIES
from support.honest_coverage import CELLS, FEW_CELLS, MASSES, ROWS, Setting, is_slow, measure, settings
from support.honest_populations import FLIGHTS, MODEL

LEAST = 0.93
"""Coverage of 95 % intervals that is asked for; less where the model without noise covers less."""
FALSE_ALARM = 1e-6 / 2000
"""Of one parameter's row, of which there are fewer than 2,000; entries of one cell count as one."""


def too_few(covered: float, cells: int, least: float) -> bool:
    """Tell whether so few truths are held with a chance below ``FALSE_ALARM`` at this coverage."""
    return bool(bdtr(np.floor(covered * cells), cells, least) < FALSE_ALARM)


@pytest.mark.slow
def test_a_plug_in_posterior_of_few_noisy_records_fails_the_check() -> None:
    """Its 95 % intervals hold 50 % of shares from 30 records at epsilon .1: 300 pass with chance 1e-40."""
    setting = Setting(family="bernoulli", world=MODEL, n=30, epsilon="0.1")
    (measured,) = measure(setting, 300, np.random.default_rng())
    assert too_few(measured.plug_in[-1], measured.cells, LEAST)
    plain = Setting(family="normal_known_variance", world=MODEL, n=300, epsilon="1")
    (measured,) = measure(plain, 300, np.random.default_rng())
    assert not too_few(measured.noise_aware[-1], measured.cells, LEAST)


@pytest.mark.slow
def test_real_columns_are_at_hand() -> None:
    """The median arrival delay of an origin's flights is near 0: the truth is of the population."""
    setting = Setting(family="bernoulli", world=FLIGHTS, n=30, epsilon="1")
    (measured,) = measure(setting, 50, np.random.default_rng(7))
    assert (measured.cells, measured.entries, len(measured.noise_aware)) == (50, 1, len(MASSES))
    assert measured.widths[0] > measured.widths[1] > 0.0


@pytest.mark.audit
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("family", FAMILIES)
def test_default_answers_cover_as_well_as_their_model_without_noise(family: str, n: int) -> None:
    cells = FEW_CELLS if is_slow(family) else CELLS
    rows = [
        row
        for setting in settings([family], rows=[n])
        for row in measure(setting, cells, np.random.default_rng())
    ]
    fallen = [
        (row.world, row.epsilon, row.parameter, row.noise_aware, row.oracle)
        for row in rows
        if too_few(row.noise_aware[-1], row.cells, min(LEAST, row.oracle[-1]))
    ]
    assert not fallen
