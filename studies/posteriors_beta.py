"""Foulds Figure 1: thirty private posteriors of one data set, 6 successes in 20 records, epsilon 1, a0 = .2.

Left: the posterior, and the tempered posterior that one sample is drawn from (OPS). Middle: thirty posteriors
of noisy counts taken for exact, as in the paper. Right: the same thirty releases, noise-aware.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special, stats

from studies.mechanisms.posterior_sampling import range_of_change
from studies.plotting import picture
from studies.result import Claim, Result, Row, Verdict, conclude
from studies.truncated_beta import log_density
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from suffice.plots.style import COLOURS

if TYPE_CHECKING:
    from pathlib import Path

    from studies.result import Size
    from suffice.typing import Counts, Floats

RECORDS, SUCCESSES, EPSILON, LEAST = 20, 6, 1.0, 0.2
DRAWN = 30
TEMPERATURE = range_of_change(LEAST) / EPSILON
POINTS = np.linspace(0.0, 1.0, 401)[1:-1]
CONCLUSION = (
    "Compared with the text. The OPS posterior is cut off at .2 and flatter. The thirty Laplace posteriors "
    "are about as narrow as the posterior but lie beside it. The noise-aware ones are wider."
)


def released(draws: int, rng: np.random.Generator) -> Counts:
    """Return both counts with discrete Laplace noise, (draws, 2): a replaced record moves them by 2."""
    noise = discrete_laplace(2.0 / EPSILON, (draws, 2), rng)
    return np.array([SUCCESSES, RECORDS - SUCCESSES]) + noise


def noise_aware_density(noisy: Counts, points: Floats) -> Floats:
    """Return the posterior density given both noisy counts, N = 20 public: a mixture over the successes."""
    successes = np.arange(RECORDS + 1)
    logs = (
        -np.log(RECORDS + 1.0)
        - (np.abs(noisy[0] - successes) + np.abs(noisy[1] - (RECORDS - successes))) * EPSILON / 2.0
    )
    weights = special.softmax(logs)
    densities = stats.beta.pdf(
        points, successes[:, np.newaxis] + 1.0, RECORDS - successes[:, np.newaxis] + 1.0
    )
    density: Floats = weights @ densities
    return density


def mass_within(noisy: Counts, level: float = 0.95) -> Floats:
    """Return how much of the posterior lies in the central intervals of the plug-in posteriors, (draws,)."""
    plug_in = (np.maximum(noisy, 0) + 1.0).T
    ends = [stats.beta.ppf(share, *plug_in) for share in ((1.0 - level) / 2.0, (1.0 + level) / 2.0)]
    low, high = stats.beta.cdf(np.array(ends), SUCCESSES + 1.0, RECORDS - SUCCESSES + 1.0)
    mass: Floats = high - low
    return mass


def spread(density: Floats) -> float:
    """Return the standard deviation of a density on `POINTS`."""
    weights = density / density.sum()
    mean = float(weights @ POINTS)
    return float(np.sqrt(weights @ (POINTS - mean) ** 2))


def run(out: Path, seed: int, size: Size) -> Result:
    """Draw thirty releases; every size is the same."""
    del size
    rng = np.random.default_rng(seed)
    counts = np.array([SUCCESSES, RECORDS - SUCCESSES])
    noisy = released(DRAWN, rng)
    plug_in = [stats.beta.pdf(POINTS, *(np.maximum(pair, 0) + 1.0)) for pair in noisy]
    held = mass_within(noisy)
    aware = [noise_aware_density(pair, POINTS) for pair in noisy]
    exact = stats.beta.pdf(POINTS, *(counts + 1.0))
    tempered = np.exp(
        log_density(POINTS, SUCCESSES / TEMPERATURE + 1.0, (RECORDS - SUCCESSES) / TEMPERATURE + 1.0, LEAST)
    )
    spreads = {"posterior": spread(exact), "OPS": spread(tempered)}
    centres = [float((max(pair[0], 0) + 1.0) / (np.maximum(pair, 0).sum() + 2.0)) for pair in noisy]
    error = float(np.std(centres)) / np.sqrt(2.0 * (DRAWN - 1))
    rows = [
        Row(
            quantity="temperature T",
            ours=TEMPERATURE,
            paper="2.7",
            claim=Claim(low=2.7, high=2.8),
            digits=7,
            note="cut off in the paper",
        ),
        Row(quantity="spread of the posterior", ours=spreads["posterior"], digits=4),
        Row(
            quantity="spread of the OPS posterior",
            ours=spreads["OPS"],
            paper="flatter",
            claim=Claim(low=spreads["posterior"]),
            digits=4,
        ),
        Row(
            quantity="spread of the thirty Laplace posteriors' means",
            ours=float(np.std(centres)),
            error=float(error),
            verdict=Verdict.ADDED,
            note="a plug-in posterior does not show it",
            digits=2,
        ),
        Row(
            quantity="share of the posterior within 95 % intervals of the thirty Laplace posteriors",
            ours=float(held.mean()),
            error=float(held.std() / np.sqrt(DRAWN)),
            verdict=Verdict.ADDED,
            digits=2,
        ),
        Row(
            quantity="mean spread of the thirty noise-aware posteriors",
            ours=float(np.mean([spread(curve) for curve in aware])),
            error=float(np.std([spread(curve) for curve in aware]) / np.sqrt(DRAWN)),
            verdict=Verdict.ADDED,
            digits=3,
        ),
    ]
    path = out / "posteriors_beta.png"
    with picture(
        path,
        title="Thirty private posteriors of 6 successes in 20 records",
        subtitle=rf"Density of $p$, $\varepsilon$ = {EPSILON:g}, $a_0$ = {LEAST:g}; "
        "black: the posterior without privacy; dotted: the truth .3",
        footer="Foulds et al. 2016, Figure 1.",
        panels=3,
        width=3.5,
        height=3.0,
    ) as axes:
        groups = (
            ("the law of one sample (OPS)", [tempered]),
            ("Laplace, counts taken for exact", plug_in),
            ("the same thirty releases, noise-aware", aware),
        )
        for place, (axis, (name, densities)) in enumerate(zip(axes, groups, strict=True)):
            for density in densities:
                faint = len(densities) > 1
                axis.plot(
                    POINTS,
                    density,
                    color=COLOURS[place],
                    linewidth=0.9 if faint else 2.0,
                    alpha=0.45 if faint else 1.0,
                )
            axis.plot(POINTS, exact, color="black", linewidth=1.8)
            axis.axvline(0.3, color="#9aa3ad", linewidth=1.0, linestyle=":")
            axis.set_title(name)
            axis.set_ylim(0.0, 7.0)
            axis.set_xlim(0.0, 1.0)
            axis.set_xlabel("$p$")
            axis.set_yticks(range(0, 8, 2))
        axes[0].set_ylabel("density of $p$")
    curves = {"p": tuple(POINTS), "posterior": tuple(exact), "OPS": tuple(tempered)}
    curves |= {f"plug-in {place + 1}": tuple(curve) for place, curve in enumerate(plug_in)}
    curves |= {f"noise-aware {place + 1}": tuple(curve) for place, curve in enumerate(aware)}
    return conclude(out, "posteriors_beta", rows, pictures=[path], curves=curves)
