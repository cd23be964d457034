"""Mistakes of the papers that no code may copy: each beside what is right, by enumeration or quadrature."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import integrate, special, stats

from studies.adversary import A0, loss_of_adding, loss_of_replacing
from studies.kl_of_laplace import divergence, spectral_norm
from studies.mechanisms.candidates import hellinger, smoothness
from studies.mechanisms.count_simplex import count_simplex
from studies.mechanisms.private_gibbs import random_scan
from studies.plotting import draw_line, picture
from studies.result import Claim, Result, Row, Verdict, conclude, near, tight
from studies.robustness_checks import worst_share_of_laplace, worst_share_of_product
from suffice.plots.style import COLOURS

if TYPE_CHECKING:
    from pathlib import Path

    from studies.result import Size
    from suffice.typing import Floats

DIRICHLET, LEAST = (5.0, 2.0, 1.0, 1.0), 0.15
CONCLUSION = (
    "Statements of [the list above](#mistakes-of-the-papers-that-no-code-may-copy), computed. "
    "None decides a conclusion about Laplace noise."
)


def sensitivities(records: int = 4) -> tuple[int, int, int]:
    """Return L1 sensitivities over Bernoulli data: (n+, n-) replaced, (n+, n-) added, n+ alone replaced."""
    replaced = added = alone = 0
    for data in itertools.product((0, 1), repeat=records):
        ones = sum(data)
        for place, value in itertools.product(range(records), (0, 1)):
            moved = ones - data[place] + value
            alone = max(alone, abs(moved - ones))
            replaced = max(replaced, abs(moved - ones) + abs((records - moved) - (records - ones)))
        for value in (0, 1):
            more = (*data, value)
            apart = abs(sum(more) - ones) + abs((len(more) - sum(more)) - (records - ones))
            added = max(added, apart)
    return replaced, added, alone


def mean_of_one_pass() -> float:
    """Return the mean of x_1 where it is drawn first, from its truncated beta distribution."""
    rest = sum(DIRICHLET[1:])
    low, high = LEAST, 1.0 - (len(DIRICHLET) - 1) * LEAST
    mass = np.diff(special.betainc(DIRICHLET[0], rest, [low, high]))[0]
    shifted = np.diff(special.betainc(DIRICHLET[0] + 1.0, rest, [low, high]))[0]
    return float(DIRICHLET[0] / sum(DIRICHLET) * shifted / mass)


def marginal_of_truncated(points: Floats) -> Floats:
    """Return the density of x_1, not normalised, of Dirichlet(5, 2, 1, 1) with every entry at least .15."""
    room = np.maximum(1.0 - points - 3.0 * LEAST, 0.0)
    # The integral of x_2 over x_2, x_3 >= a0 that leave x_4 >= a0.
    return points ** (DIRICHLET[0] - 1.0) * (LEAST * room**2 / 2.0 + room**3 / 6.0)


def mean_of_truncated() -> float:
    """Return the mean of x_1 of that distribution by quadrature."""
    ends = LEAST, 1.0 - 3.0 * LEAST
    mass, _ = integrate.quad(lambda x: float(marginal_of_truncated(np.array(x))), *ends)
    first, _ = integrate.quad(lambda x: x * float(marginal_of_truncated(np.array(x))), *ends)
    return float(first / mass)


def share_dilated(n: int = 100) -> float:
    """Return the share of candidates r whose utility times exp(beta) another has; the proof needs 1."""
    simplex = count_simplex(n, 2)
    distances = hellinger((7.0, 4.0), np.array([[n // 2, n - n // 2]]), simplex.counts)[0]
    positive = distances[distances > 0.0]
    dilated = math.exp(smoothness(0.8, 0.8, n)) * positive
    return float(np.mean([np.isclose(distances, value, rtol=1e-9, atol=0.0).any() for value in dilated]))


def run(out: Path, seed: int, size: Size) -> Result:
    """Work every one out; no chance enters, and every size is the same."""
    del seed, size
    replaced, added, alone = sensitivities()
    scan = random_scan(3.0, 1, 10)
    ten = float(divergence(3001.0, 7001.0, np.array(3011.0), np.array(7001.0)))
    largest = spectral_norm(3001.0, 7001.0)
    bound = -math.log(A0)
    variance = 1e6 * float(stats.beta(300_001, 700_001).var()) / 0.21
    exponents = math.exp(float(special.betaln(8.0, 5.0) - special.betaln(7.0, 4.0)))
    statements: list[tuple[str, float, str, Claim, str]] = [
        (
            "Foulds 4.1: random scan, 2 Delta = 6, Q / N = .1",
            scan.enumerated_loss,
            f"<= {scan.claimed:.2g}",
            tight(scan.claimed),
            f"<= 2 Delta = {scan.with_public_places:g}",
        ),
        (
            "Foulds Lemma 8: KL over D |gamma|, gamma = (10, 0)",
            ten / (largest * 10.0),
            "<= 1",
            tight(1.0),
            "|gamma|^2",
        ),
        (
            "Foulds Theorem 4: N times the posterior's variance over p (1 - p)",
            variance,
            "2",
            near(2.0, 0.01, Verdict.WRONG),
            "2 is the law of a draw",
        ),
        (
            "Foulds E.2: mean of x_1, Dirichlet(5, 2, 1, 1), entries >= .15",
            mean_of_truncated(),
            f"{mean_of_one_pass():.4f} in one pass",
            near(mean_of_one_pass(), 1e-4, Verdict.WRONG),
            "rejection, or Gibbs on pairs",
        ),
        (
            "Notes, Lemma 2.2: share of candidates for which the dilated utility is attained",
            share_dilated(),
            "1",
            Claim(low=1.0, if_not=Verdict.WRONG),
            "the proof compares chances of utilities that no candidate has",
        ),
        (
            "Notes, section 1: integral of xi^7 (1 - xi)^4 / B(7, 4)",
            exponents,
            "1",
            near(1.0, 1e-9, Verdict.WRONG),
            "exponents are alpha - 1",
        ),
        (
            "Dimitrakakis Lemma 4: largest log ratio over L rho at s = L = .5",
            worst_share_of_laplace(0.5, 0.5),
            "<= 1",
            tight(1.0),
            "s >= 1 / L",
        ),
        (
            "Foulds 3.2: L1 sensitivity of (n+, n-), a record added",
            added,
            "2",
            tight(2.0),
            "2 where a record is replaced",
        ),
        ("Foulds 3.2: L1 sensitivity of n+ alone, N public", alone, "2", tight(2.0), "half the noise on n+"),
        (
            "Foulds Theorem 3: worst loss of a draw over B, a record replaced",
            loss_of_replacing(1000, 0) / bound,
            "<= 4",
            tight(4.0),
            "2 B for log p in [-B, 0]",
        ),
        (
            "Foulds Theorem 3: worst loss of a draw over B, a record added",
            loss_of_adding(1000, 0) / bound,
            "<= 4",
            tight(4.0),
            "B for log p in [-B, 0]",
        ),
        (
            "Dimitrakakis Lemma 1: log ratio over L rho, 10 records",
            worst_share_of_product(10),
            "<= 10",
            tight(10.0),
            "L, not L n",
        ),
    ]
    rows = [
        Row(quantity=quantity, ours=value, paper=paper, claim=claim, note=note, digits=4)
        for quantity, value, paper, claim, note in statements
    ]
    rows.append(
        Row(
            quantity="Foulds 3.2: L1 sensitivity of (n+, n-), a record replaced",
            ours=replaced,
            paper="2",
            claim=tight(2.0),
        )
    )
    points = np.linspace(LEAST, 1.0 - 3.0 * LEAST, 201)
    right, one_pass = marginal_of_truncated(points), stats.beta.pdf(points, 5.0, 4.0)
    step = float(points[1] - points[0])
    right, one_pass = (density / (density.sum() * step) for density in (right, one_pass))
    path = out / "mistakes.png"
    with picture(
        path,
        title="One pass does not draw a truncated Dirichlet",
        subtitle="Density of $x_1$ of Dirichlet(5, 2, 1, 1) with every entry at least .15",
        footer="Foulds et al. 2016, appendix, after Fang et al.; quadrature.",
        width=6.4,
    ) as (axis,):
        draw_line(
            axis,
            list(points),
            list(right),
            f"the distribution, mean {mean_of_truncated():.3f}",
            0,
            marker=False,
        )
        axis.plot(
            points,
            one_pass,
            color=COLOURS[1],
            linewidth=1.8,
            linestyle="--",
            label=f"one pass, mean {mean_of_one_pass():.3f}",
        )
        axis.set_xlabel("$x_1$")
        axis.set_ylabel("density")
        axis.legend(loc="upper left")
        axis.set_ylim(0.0, 6.0)
    curves = {"x_1": tuple(points), "density": tuple(right), "density in one pass": tuple(one_pass)}
    return conclude(out, "mistakes", rows, pictures=[path], curves=curves)
