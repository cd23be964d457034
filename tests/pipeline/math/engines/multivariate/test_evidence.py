"""What the evidence of moments is made of: inverses and gamma functions, against LAPACK's and SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma, gammaln, multigammaln

from suffice.pipeline.math.engines.multivariate.evidence import (
    MomentState,
    RegressionEvidence,
    inverted,
    multivariate_gamma,
)


@pytest.mark.parametrize("size", [1, 2, 5, 12, 13])
def test_inverses_and_determinants_are_those_of_each_matrix(size: int) -> None:
    """Entry by entry, and beyond twelve columns one after the other; scales from a millionth to a million."""
    root = np.random.default_rng(7).normal(size=(7, size, size))
    scale = 10.0 ** np.linspace(-6, 6, size)
    matrix = (root @ np.swapaxes(root, 1, 2) + np.eye(size)) * scale * scale[:, None]
    inverse, log_determinant = inverted(np.moveaxis(matrix, 0, 2))
    product = np.moveaxis(inverse, 2, 0) * scale * scale[:, None] @ (matrix / scale / scale[:, None])
    assert product == pytest.approx(np.broadcast_to(np.eye(size), product.shape), abs=1e-9)
    assert log_determinant == pytest.approx(np.linalg.slogdet(matrix)[1])


@pytest.mark.parametrize("size", [2, 13])
def test_what_is_not_positive_definite_has_no_determinant(size: int) -> None:
    matrix = np.eye(size)
    matrix[1, 1] = -1.0
    with np.errstate(invalid="ignore"):
        assert np.isnan(inverted(matrix[:, :, None])[1]).all()


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_the_multivariate_gamma_function_is_known_but_for_a_constant(size: int) -> None:
    half = np.array([size / 2 + 0.3, 7.5, 4e3, 1e8])
    value, derivative = multivariate_gamma(half, size)
    expected = np.array([multigammaln(a, size) for a in half])
    assert np.diff(value) == pytest.approx(np.diff(expected), rel=1e-9)
    assert derivative == pytest.approx(digamma(half - np.arange(size)[:, None] / 2).sum(axis=0), rel=1e-9)


def test_collinear_predictors_that_explain_all_leave_the_evidence_its_digits() -> None:
    """Rows on a line through 0 under a prior of next to no precision, against the closed form.

    A residual that is a difference of fitted sums is wrong by more than the prior's scale of 1e-8, and the
    value by tens. What is left is the rounding of the log determinant.
    """
    rng, n, small, slope = np.random.default_rng(7), 400.0, 1e-8, 0.7
    direction = rng.uniform(-1.0, 1.0, size=(2, 50))
    rows = np.concatenate([direction, slope * direction[:1]])
    second = rows[:, None] * rows[None, :]
    state = MomentState(n=np.full(50, n), mean=np.zeros((3, 50)), spread=second, second=second)
    evidence = RegressionEvidence(
        loc=np.zeros(2), precision=small * np.eye(2), concentration=3.0, scale=small, linear=False
    )
    value, _, _ = evidence(state, np.empty((0, 50)))
    square = np.sum(direction**2, axis=0)
    # The outcome is slope times the first predictor, along the line of both.
    residual = n * slope**2 * direction[0] ** 2 * small / (small + n * square)
    half = 3.0 + n / 2.0
    expected = gammaln(half) - (np.log(small) + np.log(small + n * square)) / 2.0
    expected -= half * np.log(2.0 * small + residual)
    assert value == pytest.approx(expected, abs=0.3)
