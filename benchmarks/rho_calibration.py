"""Coverage of every family's noise-aware posterior at the noise of accounts in rho.

    PYTHONPATH=tests python benchmarks/rho_calibration.py [FAMILY ...] [--simulations 2000] [--slow 200]

A unit loses (1, 1e-6) in all: over 365 releases of one statistic each, or over 30 statistics of one release.
Truths, numbers of records, records and noise are simulated as in ``tests/support/audit.py``, of a plan that
states rho; posteriors of families that take MCMC or quadrature are simulated less often. Coverages are of
central 50 / 80 / 95 % intervals, beside them those of the posterior that takes noisy sums for exact.
"""

from __future__ import annotations

import argparse
import math
import time
from fractions import Fraction

import numpy as np
from measuring import versions

from suffice.errors import SufficeError
from suffice.pipeline.ask.calibration.simulation import simulate
from suffice.pipeline.ask.calibration.verdict import LEFT_OUT, Ranks, judge
from suffice.pipeline.ask.inference.posterior_terms import PLUG_IN
from suffice.pipeline.terms.declaration.delta import largest_rho
from suffice.pipeline.terms.declaration.exact_numbers import PICO, format_number
from support.audit import designs
from support.generative_models import generative_model_for, noise_aware_families

SEED = 134
HEADS = (
    *("family", "parameter", "N", "noise of", "sd in sensitivities", "simulations", "coverage"),
    *("ignoring noise", "verdict", "CPU s"),
)
PARTS = {"365 nights": 365, "30 tables": 30}


def covers(ranks: Ranks) -> str:
    """Return coverages in percent."""
    return " / ".join(f"{100 * ranks.coverage(mass):.1f}" for mass in LEFT_OUT)


def of_n(public_n: bool) -> str:
    """Say how N is known."""
    return "public" if public_n else "latent"


def main() -> None:
    """Print a row for every family, number of releases and way to know N."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--slow", type=int, default=200)
    parser.add_argument("--rows", type=int, default=1000)
    asked = parser.parse_args()
    every = [*noise_aware_families(), *noise_aware_families(by_mcmc=True)]
    whole = largest_rho(Fraction(1), Fraction(1, 10**6))
    print(versions())
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
    for family in asked.families or every:
        for public_n in designs(family):
            for what, number in PARTS.items():
                rho = format_number(Fraction(math.floor(whole * PICO / number), PICO))
                try:
                    row(family, public_n, what, rho, asked)
                except SufficeError as error:
                    print(f"| {family} | {of_n(public_n)} | {what} | {error} |", flush=True)


def row(family: str, public_n: bool, what: str, rho: str, asked: argparse.Namespace) -> None:
    """Simulate a family and print its rows."""
    model = generative_model_for(family, n=asked.rows, rho=rho, public_n=public_n)
    number = asked.slow if model.is_slow else asked.simulations
    began = time.process_time()
    aware = simulate(model, number, np.random.default_rng(SEED)).clipped
    spent = time.process_time() - began
    plug_in = generative_model_for(family, n=asked.rows, rho=rho, public_n=public_n, method=PLUG_IN)
    ignoring = simulate(plug_in, number, np.random.default_rng(SEED)).clipped
    verdict = judge(aware).conclusion
    relative = math.sqrt(2) * model.scale / math.sqrt(model.plan.l2_squared)
    for ranks, ignored in zip(aware, ignoring, strict=True):
        if ranks.category not in {None, aware[0].category}:
            continue
        name = ranks.parameter if ranks.category is None else f"{ranks.parameter}[first]"
        print(
            f"| {family} | {name} | {of_n(public_n)} | {what} | {relative:.4g} | {number} | "
            f"{covers(ranks)} | {covers(ignored)} | {verdict} | {spent:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
