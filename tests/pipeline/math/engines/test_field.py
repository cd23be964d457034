"""Fields against finite differences, enumeration, and quadrature of the exact posterior."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

from suffice.pipeline.ask.models.noisy_counts import log_emission
from suffice.pipeline.math.engines.field import NoisyField, blocks, contrasts, draw, features, margins
from suffice.pipeline.math.engines.multivariate.hmc import effective_draws, split_r_hat
from support.slopes import assert_gradient

if TYPE_CHECKING:
    from suffice.typing import Floats

SIZES, PAIRS = (2, 3, 2), [(0, 1), (1, 2)]


def triple() -> NoisyField:
    x = features(SIZES, PAIRS)
    m = np.concatenate([margins(SIZES, pair) for pair in PAIRS])
    counts = np.random.default_rng(3).integers(-3, 60, len(m)).astype(float)
    sds = np.array([np.inf, *[2.0] * (x.shape[1] - 1)])
    return NoisyField(features=x, margins=m, counts=counts, scales=np.full(len(m), 2.0), sds=sds)


def test_features_span_the_tables_and_no_category_is_special() -> None:
    x = features(SIZES, PAIRS)
    assert x.shape == (12, 1 + 1 + 2 + 1 + 2 + 2)
    assert [part.stop for part in blocks(SIZES, PAIRS).values()][-1] == x.shape[1]
    for pair in PAIRS:
        m = margins(SIZES, pair)
        # Each row of M is a combination of columns of X: tables are functions of t.
        np.testing.assert_allclose(x @ np.linalg.lstsq(x, m.T, rcond=None)[0], m.T, atol=1e-12)
        table = np.arange(12.0).reshape(SIZES).sum(axis=tuple({0, 1, 2} - set(pair)))
        np.testing.assert_array_equal(m @ np.arange(12.0), table.ravel())
    q = contrasts(4)
    np.testing.assert_allclose(q @ q.T, np.eye(4) - 1 / 4, atol=1e-12)


def test_gradients_are_those_of_the_density() -> None:
    field = triple()
    rng = np.random.default_rng(4)
    eta = rng.normal(size=(field.features.shape[1], 3))
    zeta = eta + 0.2 * rng.normal(size=eta.shape)
    _, by_eta, by_zeta = field.log_density(eta, zeta)
    both, by_both = np.concatenate([eta, zeta]), np.concatenate([by_eta, by_zeta])
    assert_gradient(lambda at: field.log_density(at[: len(eta)], at[len(eta) :])[0], both, by_both)


def test_a_proposal_far_out_has_no_density() -> None:
    field = triple()
    eta = np.zeros((field.features.shape[1], 1))
    assert field.log_density(eta + 99.0, eta)[0] == -np.inf


def discrepancy(counts: tuple[int, ...], scale: float) -> tuple[Floats, Floats, Floats]:
    """Return by how much means and spreads of (alpha, theta) differ from exact ones, and 6 standard errors.

    Of two binary variables the four counts are independent Poisson numbers behind noise: the reference sums
    their exact chances over a grid. Differences are in exact standard deviations.
    """
    x, sds, y = features((2, 2), [(0, 1)]), np.array([np.inf, 2.5, 2.5, 1.0]), np.array(counts)
    field = NoisyField(
        features=x, margins=np.eye(4), counts=y.astype(float), scales=np.full(4, scale), sds=sds
    )
    eta, zeta = draw(field, 1000, np.random.default_rng(7))
    assert split_r_hat(eta).max() < 1.05
    assert split_r_hat(zeta).max() < 1.05
    flat = eta.reshape(-1, 4)
    mean, sd = flat.mean(axis=0), flat.std(axis=0)
    # Steps of 0.65 sd: of a normal density such sums are exact to e^-46.
    axes = [np.linspace(m - 6.5 * s, m + 6.5 * s, 21) for m, s in zip(mean, sd, strict=True)]
    grid = np.array(list(itertools.product(*axes)))
    rates = np.exp(grid @ x.T)
    log_p = log_emission(y, rates, scale).sum(axis=1) + np.log(rates.sum(axis=1))
    log_p -= 0.5 * np.sum((grid / sds) ** 2, axis=1)
    weight = np.exp(log_p - logsumexp(log_p))
    exact = weight @ grid
    exact_sd = np.sqrt(weight @ (grid - exact) ** 2)
    return np.abs(mean - exact) / exact_sd, np.abs(sd / exact_sd - 1.0), 6.0 / np.sqrt(effective_draws(eta))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("counts", "scale"), [((6, 8, 12, 30), 1.0), ((40, 11, 25, 90), 1.0), ((60, 80, 45, 200), 15.0)]
)
def test_a_pair_has_the_exact_posterior(counts: tuple[int, ...], scale: float) -> None:
    """The saddlepoint approximation may shift means by .1 sd and spreads by a tenth.

    Six errors of the chains, as they estimate them, come on top.
    """
    of_mean, of_sd, error = discrepancy(counts, scale)
    assert (of_mean < 0.1 + error).all()
    assert (of_sd < 0.1 + error).all()


@pytest.mark.slow
def test_entries_that_may_be_empty_are_beyond_the_approximation() -> None:
    """The control, which a model refuses."""
    of_mean, of_sd, _ = discrepancy((-4, 2, 9, 5), 4.0)
    assert of_mean.max() > 0.3
    assert of_sd.max() > 0.2


RELEASES, ROWS, SCALE = 80, 3000, 30.0
"""Scale 30 is that of three tables at epsilon .1."""


@pytest.mark.audit
def test_intervals_cover_a_law_that_no_field_is() -> None:
    """The share of one pair of categories, of a law with an interaction of three variables.

    At 95 % fewer intervals than the bound cover with a chance of 1e-6. The control takes released counts for
    exact ones.
    """
    rng = np.random.default_rng()
    p = np.array([0.05, 0.12, 0.14, 0.04, 0.13, 0.05, 0.17, 0.04, 0.12, 0.03, 0.04, 0.07])
    x, m = features(SIZES, PAIRS), np.concatenate([margins(SIZES, pair) for pair in PAIRS])
    sds = np.array([np.inf, *[2.5] * 4, *[1.0] * (x.shape[1] - 5)])
    q, hits, naive = np.exp(-1.0 / SCALE), 0, 0
    truth = m[0] @ p
    for _ in range(RELEASES):
        noise = rng.geometric(1.0 - q, len(m)) - rng.geometric(1.0 - q, len(m))
        counts = (m @ rng.multinomial(ROWS, p) + noise).astype(float)
        field = NoisyField(features=x, margins=m, counts=counts, scales=np.full(len(m), SCALE), sds=sds)
        rates = np.exp(draw(field, 100, rng)[0].reshape(-1, x.shape[1]) @ x.T)
        share = (rates @ m[0]) / rates.sum(axis=1)
        low, high = np.quantile(share, [0.025, 0.975])
        hits += low <= truth <= high
        estimate = counts[0] / counts[:6].sum()
        naive += abs(estimate - truth) < 1.96 * np.sqrt(truth * (1.0 - truth) / ROWS)
    bound = binom.ppf(1e-6, RELEASES, 0.95)
    assert hits >= bound
    assert naive < bound
