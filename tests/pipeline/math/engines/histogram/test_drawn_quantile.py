"""The posterior of a drawn quantile: its law against the mechanism's scores, and its calibration.

Truths of the calibration are draws of the prior, of which 95 % intervals hold 95 of 100 at least, as they
hold whole bins: of 12,000 fewer than 94.06 with chance 1e-6. Posteriors that believe in another scale or
number of records held 79 to 85 of 100, and so hold as many with chance under 1e-9.
"""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from suffice.pipeline.math.engines.histogram.bin_walk import KINDS
from suffice.pipeline.math.engines.histogram.drawn_quantile import (
    log_law,
    quantile_bin,
    quantile_weights,
)
from suffice.pipeline.math.engines.histogram.walk_shares import walk_shares
from suffice.pipeline.math.priors.record_count import Fixed, Uniform
from suffice.pipeline.terms.statistics.drawn_quantile import QuantileScores

BINS = SimpleNamespace(
    lower=np.array([0.0, 1.0, 2.0, 2.0, 3.0, 5.0, 8.0, 12.0]),
    upper=np.array([1.0, 2.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0]),
    is_atom=np.array([False, False, True, False, False, False, False, False]),
)
STEPS = (0.1, 0.8)
Q, TAU, N = 0.9, 18.0, 400
RELEASES, SIZE = 12_000, 20_000


def test_the_law_is_that_of_the_mechanisms_scores() -> None:
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 30, (50, 8))
    scale = Fraction(18 * 10 << 20)
    scores = QuantileScores(quantile=Fraction(9, 10), n_bins=8)
    for cell, log_chances in zip(counts.tolist(), log_law(counts.astype(float), Q, TAU), strict=True):
        weights = np.exp([float(score / scale) for score in scores.scores(*cell)])
        assert np.exp(log_chances) == pytest.approx(weights / weights.sum(), rel=1e-9)


def test_the_quantile_is_in_the_first_bin_that_reaches_it() -> None:
    counts = np.array([[9.0, 1.0, 0.0], [8.0, 1.0, 1.0], [0.0, 10.0, 0.0], [8.0, 0.0, 2.0]])
    assert quantile_bin(counts, 0.9).tolist() == [0, 1, 1, 2]
    assert quantile_bin(counts, 0.3).tolist() == [0, 0, 1, 0]


def test_shares_add_up_and_have_empty_bins_and_atoms() -> None:
    share = walk_shares(BINS, STEPS, 5000, np.random.default_rng(1))
    assert share.shape == (5000, 8)
    assert share.sum(axis=1) == pytest.approx(1.0)
    assert 0.2 < np.mean(share[:, 2] == 0.0) < 0.6, "an atom has no records with the chance a half, at first"
    stay = (share[:, 4] > 0.0) == (share[:, 5] > 0.0)
    # Draws without records are drawn anew: of a kind with the chance r, r^6 / 4 of seven bins and an atom.
    stays = np.array([stays for _, stays in KINDS])
    kept = 1.0 - 0.25 * stays**6
    expected = np.sum(stays - 0.25 * stays**6) / np.sum(kept)
    # 5,000 draws: a standard error of .005.
    assert np.mean(stay) == pytest.approx(expected, abs=0.025)


def test_weights_are_those_of_every_data_set() -> None:
    """Of few data sets, one by one, and whatever the block; two draws multiply."""
    drawn = np.array([[0, 0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1, 0, 0]])
    asked = {"quantile": Q, "rank_scale": TAU, "steps": STEPS, "n_prior": Uniform(0, 50), "size": 300}
    drawn_weights = quantile_weights(drawn, BINS, **asked, rng=np.random.default_rng(5))  # type: ignore[arg-type]
    rng = np.random.default_rng(5)
    share = walk_shares(BINS, STEPS, 300, rng)
    n = Uniform(0, 50).sample(300, rng)
    counts = rng.multinomial(n, share)
    expected, weights = np.zeros((2, 8)), np.zeros((2, 300))
    for at, cell in enumerate(counts):
        if n[at]:
            law = np.exp(log_law(cell[None].astype(float), Q, TAU))[0]
            records = np.repeat(np.arange(8), cell)
            where = records[int(np.ceil(Q * len(records) - 1e-9)) - 1]
            weights[:, at] = law[4], law[4] * law[5]
            expected[:, where] += weights[:, at]
    assert drawn_weights.probability == pytest.approx(
        expected / expected.sum(axis=1, keepdims=True), rel=1e-9
    )
    assert drawn_weights.effective == pytest.approx(
        weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1), rel=1e-9
    )


def test_no_data_set_without_records_counts() -> None:
    weights = quantile_weights(
        np.eye(8, dtype=np.int64),
        BINS,
        quantile=Q,
        rank_scale=TAU,
        steps=STEPS,
        n_prior=Fixed(0),
        size=10,
        rng=np.random.default_rng(7),
    )
    assert not weights.effective.any()
    assert not weights.probability.any()


@pytest.mark.parametrize(("sharper", "records", "holds"), [(1, N, True), (100, N, False), (1, 10 * N, False)])
def test_intervals_hold_truths_of_the_prior(sharper: int, records: int, *, holds: bool) -> None:
    rng = np.random.default_rng()
    counts = rng.multinomial(N, walk_shares(BINS, STEPS, RELEASES, rng)).astype(np.float64)
    law = np.exp(log_law(counts, Q, TAU))
    drawn = np.array([rng.choice(8, p=each / each.sum()) for each in law])
    weights = quantile_weights(
        np.eye(8, dtype=np.int64),
        BINS,
        quantile=Q,
        rank_scale=TAU / sharper,
        steps=STEPS,
        n_prior=Fixed(records),
        size=SIZE,
        rng=rng,
    )
    through = np.cumsum(weights.probability, axis=1)
    first, last = np.sum(through <= 0.025, axis=1), np.minimum(np.sum(through < 0.975, axis=1), 7)
    truth = quantile_bin(counts, Q)
    inside = int(np.sum((first[drawn] <= truth) & (truth <= last[drawn])))
    assert (stats.binom.cdf(inside, RELEASES, 0.95) > 1e-6) == holds
