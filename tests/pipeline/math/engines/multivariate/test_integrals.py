"""Integrals by weighted draws, of densities whose integral is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import pytest
from scipy import stats

from suffice.pipeline.math.engines.multivariate.integrals import average, log_integral

if TYPE_CHECKING:
    from suffice.typing import Cells, Floats

FALSE_ALARM = 1e-6
LOG_INTEGRAL = -3.0
"""Of every density here."""
BEND = 0.1


@dataclass(frozen=True, kw_only=True)
class Bent:
    """Six skewed coordinates that go along with each other: logarithms of gamma variables, then a bend."""

    def __call__(self, x: Floats) -> tuple[Floats, Floats]:
        """Return log densities; gradients nobody asks for."""
        straight = x.copy()
        straight[1:] -= BEND * x[:-1] ** 2
        value = stats.loggamma(4.0).logpdf(straight).sum(axis=0) + LOG_INTEGRAL
        return value, np.zeros_like(x)

    def take(self, cells: Cells) -> Self:
        """All cells are alike."""
        del cells
        return self

    def draws(self, cells: int, rng: np.random.Generator) -> Floats:
        """Return independent draws as a chain of each cell."""
        x = np.log(rng.gamma(4.0, size=(512, 6, cells, 1)))
        for each in range(1, 6):
            x[:, each] += BEND * x[:, each - 1] ** 2
        return x


def apart(cells: int) -> Floats:
    """Return how many stated errors so many integrals are from the known one."""
    rng = np.random.default_rng(3)
    integral = log_integral(Bent(), Bent().draws(cells, rng), rng, size=4096)
    assert np.isfinite(integral.error).all()
    return np.asarray((integral.log - LOG_INTEGRAL) / integral.error)


CELLS = 200
MOST_OUTSIDE = int(stats.binom.isf(FALSE_ALARM, CELLS, 0.05))
"""As many as one of twenty gives with a chance of 1e-6 at most: 27 of 200."""


def test_integrals_are_within_their_errors() -> None:
    off = apart(CELLS)
    assert np.sum(np.abs(off) > 2.0) <= MOST_OUTSIDE
    assert np.sum(4.0 * np.abs(off) > 2.0) > MOST_OUTSIDE  # the control: a quarter of the error
    # Normal numbers have a mean within 5 standard errors but for a chance of 6e-7.
    assert abs(np.mean(off)) < 5.0 / np.sqrt(CELLS)


@pytest.mark.parametrize("freedom", [0.5, 1.0])
def test_weights_without_a_variance_give_no_answer(freedom: float) -> None:
    """A density whose tails go as x^-(f + 1) has weights of index (5 - f) / 5 under a t of 5: .9 and .8."""
    rng = np.random.default_rng(4)
    x = rng.standard_t(5.0, (20, 1 << 15))
    integral = average(stats.t(freedom).logpdf(x) - stats.t(5.0).logpdf(x))
    assert np.isinf(integral.error).all()


def test_a_density_that_is_nowhere_has_no_integral() -> None:
    rng = np.random.default_rng(6)

    @dataclass(frozen=True)
    class Nowhere(Bent):
        def __call__(self, x: Floats) -> tuple[Floats, Floats]:
            return np.full(x.shape[1], -np.inf), np.zeros_like(x)

    integral = log_integral(Nowhere(), Bent().draws(2, rng), rng, size=1024)
    assert np.isinf(integral.error).all()
    assert np.isnan(integral.log).all()
