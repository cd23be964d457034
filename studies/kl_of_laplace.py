"""Foulds Lemma 1: the KL divergence from the posterior of noisy counts to the posterior goes to 0 as 1 / N.

Bernoulli records, a flat prior, discrete Laplace noise of scale 2 / epsilon on successes and on failures,
cut at 0. The mean over records and noise is a sum over both: no chance enters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special, stats

from studies.plotting import draw_limit, draw_line, logarithmic, picture
from studies.result import Claim, Result, Row, Verdict, conclude

if TYPE_CHECKING:
    from pathlib import Path

    from studies.result import Size
    from suffice.typing import Floats

TRUTH = 0.3
EPSILON = 1.0
SENSITIVITY = 2.0
SHOWN = (10, 100, 1000, 10_000, 100_000)
REACH = 40
"""Noise beyond it has a chance of 2e-9."""
NODES = 61
CONCLUSION = (
    "Reproduced, with noise on both counts as in Corollary 2: the divergence goes to 0, and N times it goes "
    "to Var(Z) (p^2 + (1 - p)^2) / (2 p (1 - p)). The proof's Lemma 8 lacks a square; the conclusion stands, "
    "because the noise has a variance."
)


def divergence(a: float, b: float, a_noisy: Floats, b_noisy: Floats) -> Floats:
    """Return KL(Beta(a_noisy, b_noisy) || Beta(a, b))."""
    moved_a, moved_b = a_noisy - a, b_noisy - b
    divergences: Floats = (
        special.betaln(a, b)
        - special.betaln(a_noisy, b_noisy)
        + moved_a * special.digamma(a_noisy)
        + moved_b * special.digamma(b_noisy)
        - (moved_a + moved_b) * special.digamma(a_noisy + b_noisy)
    )
    return divergences


def spectral_norm(a: float, b: float) -> float:
    """Return Lemma 8's D: the largest eigenvalue of the Hessian of log B at (a, b)."""
    both = float(special.polygamma(1, a + b))
    hessian = np.diag(special.polygamma(1, [a, b])) - both
    return float(np.linalg.norm(hessian, 2))


def variance_of_noise(scale: float) -> float:
    """Return the variance of discrete Laplace noise: 2 q / (1 - q)^2, q = exp(-1 / scale)."""
    q = float(np.exp(-1.0 / scale))
    return 2.0 * q / (1.0 - q) ** 2


def mean_divergence(records: int, truth: float = TRUTH, scale: float = SENSITIVITY / EPSILON) -> float:
    """Return the mean divergence over records and noise; of many records over equally spaced successes."""
    low, high = (int(stats.binom.ppf(tail, records, truth)) for tail in (1e-12, 1.0 - 1e-12))
    successes = np.arange(low, high + 1, max(1, (high - low) // NODES))
    chances = stats.binom.pmf(successes, records, truth)
    noise = np.arange(-REACH, REACH + 1)
    weights = np.exp(-np.abs(noise) / scale)
    weights /= weights.sum()
    total = 0.0
    for ones, chance in zip(successes, chances / chances.sum(), strict=True):
        a_noisy = np.maximum(ones + noise, 0)[:, np.newaxis] + 1.0
        b_noisy = np.maximum(records - ones + noise, 0)[np.newaxis] + 1.0
        own_divergence = divergence(ones + 1.0, records - ones + 1.0, a_noisy, b_noisy)
        total += float(chance) * float(weights @ own_divergence @ weights)
    return total


def limit(truth: float = TRUTH, scale: float = SENSITIVITY / EPSILON) -> float:
    """Return what N times the mean divergence tends to."""
    spread = (truth**2 + (1.0 - truth) ** 2) / (2.0 * truth * (1.0 - truth))
    return variance_of_noise(scale) * spread


def run(out: Path, seed: int, size: Size) -> Result:
    """Work the means out for 10 to 100,000 records; every size is the same."""
    del seed, size
    means = [mean_divergence(records) for records in SHOWN]
    scaled = [records * mean for records, mean in zip(SHOWN, means, strict=True)]
    # Noise of 10 on successes: what Lemma 8 bounds with the noise needs its square.
    ten = divergence(3001.0, 7001.0, np.array(3011.0), np.array(7001.0))
    largest = spectral_norm(3001.0, 7001.0)
    rows = [
        # What stays bounded times N goes to 0.
        Row(
            quantity=f"N E[KL] at N = {records:,}",
            ours=value,
            paper="E[KL] -> 0",
            claim=Claim(high=1.1 * limit()),
            digits=4,
        )
        for records, value in zip(SHOWN, scaled, strict=True)
    ]
    rows += [
        Row(quantity="limit of N E[KL]", ours=limit(), verdict=Verdict.ADDED, digits=4),
        Row(quantity="Var(Z), scale 2", ours=variance_of_noise(2.0), verdict=Verdict.ADDED, digits=4),
        Row(
            quantity="Lemma 8: KL over D |gamma|, gamma = (10, 0)",
            ours=float(ten) / (largest * 10.0),
            paper="<= 1",
            claim=Claim(high=1.0, if_not=Verdict.WRONG),
            note="D is the spectral norm of the Hessian; the square of the noise is missing",
            digits=4,
        ),
        Row(
            quantity="Lemma 8: KL over D |gamma|^2 / 2, gamma = (10, 0)",
            ours=float(ten) / (largest * 100.0 / 2.0),
            verdict=Verdict.ADDED,
            note="to first order at most 1: the noise does not lie along the first eigenvector",
            digits=4,
        ),
    ]
    path = out / "kl_of_laplace.png"
    with picture(
        path,
        title="The Laplace posterior tends to the posterior as $1/N$",
        subtitle=rf"Mean divergence to the exact posterior, $p$ = {TRUTH}, $\varepsilon$ = {EPSILON:g}",
        footer="Foulds et al. 2016, Lemma 1; sums over records and noise.",
        panels=2,
    ) as (left, right):
        draw_line(left, SHOWN, means, "E[KL]", 0)
        logarithmic(left, x=True, y=True)
        left.set_xlabel("records $N$")
        left.set_title(r"$\mathrm{E}[\mathrm{KL}]$, nats")
        draw_line(right, SHOWN, scaled, "N E[KL]", 0)
        logarithmic(right, x=True)
        draw_limit(right, limit(), f"limit {limit():.2f}")
        right.set_ylim(0.0, 13.0)
        right.set_xlabel("records $N$")
        right.set_title(r"$N\,\mathrm{E}[\mathrm{KL}]$, nats")
    curves = {"N": SHOWN, "E[KL], nats": means, "N E[KL], nats": scaled}
    return conclude(out, "kl_of_laplace", rows, pictures=[path], curves=curves)
