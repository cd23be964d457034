"""Tables of counts that were released twice beside sums over all counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln

from suffice.pipeline.math.engines.pooled.kink_table import KinkTable

KINKS = np.array(
    [[-40.0, -3.0], [-9.0, 0.0], [0.0, 0.0], [0.0, 1.0], [1.0, 30.0], [7.0, 9.0], [90.0, 95.0], [80.0, 700.0]]
)


@pytest.mark.parametrize("scale", [2.0, 10.0, 150.0])
def test_log_likelihoods_are_those_of_sums_over_all_counts(scale: float) -> None:
    low, high = KINKS.T
    root = np.linspace(0.02, 1.0, 60) * (np.sqrt(np.maximum(high, 1.0)) + np.sqrt(9.0 * scale) + 4.0)[:, None]
    k = np.arange(6000.0)
    log_noise = (
        2.0 * np.log(np.tanh(0.5 / scale)) - (np.abs(k - low[:, None]) + np.abs(k - high[:, None])) / scale
    )
    exact = np.array(
        [
            np.logaddexp.reduce(
                2.0 * k * np.log(each[:, None]) - each[:, None] ** 2 - gammaln(k + 1.0) + noise, 1
            )
            for each, noise in zip(root, log_noise, strict=True)
        ]
    )
    known = exact > np.max(exact, axis=1, keepdims=True) - 20.0
    table = KinkTable.of(scale, 700.0)
    assert table is not None
    answer = table.log_likelihood(low, high, root)
    np.testing.assert_allclose(answer[known], exact[known], atol=0.006 if scale < 4.0 else 0.003)
    assert np.all(known.sum(axis=1) > 5)
    # Control: a twentieth of a kink more is told.
    assert np.max(np.abs(table.log_likelihood(low, high + 0.05 * scale, root) - exact)[known]) > 0.02


@pytest.mark.parametrize(
    ("scale", "highest"), [(1.0, 50.0), (10.0, 1e10)], ids=["little noise", "large counts"]
)
def test_kinks_that_tables_do_not_hold_have_none(scale: float, highest: float) -> None:
    assert KinkTable.of(scale, highest) is None
