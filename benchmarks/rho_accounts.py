"""Many releases of the same persons in one account, beside others at equal (epsilon, delta).

    python benchmarks/rho_accounts.py [--epsilon 1] [--delta 1e-6] [--nights 365] [--tables 30] [--released 5]

Nights: a Bernoulli statistic of the same persons in each of so many releases. Tables: so many binary
columns in one release, each with its two counts. Noise is that of one count. Ours is read off compiled plans, and drawn
through the whole product for some nights; OpenDP's and ours in rho rest on the same rho. Of SmartNoise the
per-query epsilon is that of its own accountant, run by SUFFICE_SMARTNOISE_PYTHON where that is set; of Tumult
Analytics, discrete Gaussian noise as its documentation states it for a RhoZCDPBudget. Widths are those of
median 95 % intervals of a proportion .1 of 1,000 persons: ours of noise-aware posteriors, the others' of a
normal interval about their noisy mean with sampling and noise.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

PERSONS, RATE = 1000, 0.1
_ACCOUNTANT = """
import sys
from snsql.sql.odometer import OdometerHeterogeneous
from snsql import Privacy
epsilon, delta, queries = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
def spent(each):
    odometer = OdometerHeterogeneous(Privacy(epsilon=each, delta=delta / 2))
    for _ in range(queries):
        odometer.spend(Privacy(epsilon=each, delta=0.0))
    return odometer.spent[0]
low, high = epsilon / queries, epsilon
for _ in range(60):
    middle = (low + high) / 2
    low, high = (middle, high) if spent(middle) <= epsilon else (low, middle)
print(low)
"""


def plan_of(statistics: dict[str, Any], **loss: str) -> Any:
    """Compile a spec."""
    from suffice.pipeline.spec.plan import compile_plan
    from suffice.pipeline.spec.spec import load_spec

    return compile_plan(load_spec(spec_of(statistics, **loss)))


def spec_of(statistics: dict[str, Any], name: str = "night", **loss: str) -> dict[str, Any]:
    """Return a spec of persons."""
    return {
        "name": name,
        "dataset": "persons",
        "privacy": {**loss, "neighboring": "add_or_remove_one", "unit": "row"},
        "statistics": statistics,
    }


def smartnoise(epsilon: str, delta: str, queries: int) -> float | None:
    """Return the epsilon of each of so many queries by SmartNoise's accountant; None where it is not here."""
    python = os.environ.get("SUFFICE_SMARTNOISE_PYTHON")
    if python is None:
        return None
    done = subprocess.run(
        [python, "-c", _ACCOUNTANT, epsilon, delta, str(queries)], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def opendp_gaussian_sd(rho: Fraction, l2_squared: int) -> float:
    """Return the scale of OpenDP's discrete Gaussian noise: the least whose map is within rho."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    scale = dp.binary_search_param(
        lambda scale: dp.m.make_gaussian(*space, scale), d_in=math.sqrt(l2_squared), d_out=float(rho)
    )
    return float(scale)


def width_of_normal(sd: float) -> float:
    """Return the width of a normal 95 % interval of a proportion whose count has such noise, in 0..1."""
    half = 1.96 * math.sqrt(RATE * (1 - RATE) / PERSONS + (sd / PERSONS) ** 2)
    return min(1.0, RATE + half) - max(0.0, RATE - half)


def our_intervals(statistic: dict[str, Any], column: str, **loss: str) -> tuple[float, float]:
    """Return the median width of our 95 % intervals over simulated cells, and their coverage.

    Rates are drawn from the flat prior for the coverage, and are all .1 for the width.
    """
    from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
    from suffice.pipeline.spec.plan import compile_plan
    from suffice.pipeline.spec.spec import load_spec
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

    cells, rng = 400, np.random.default_rng(1)
    scale = plan_of(statistic, **loss).statistics[0].scale
    content = spec_of({"flag": {"family": "bernoulli", "column": column}}, **loss)
    plan = compile_plan(load_spec({**content, "groups": {"cell": {"range": [1, cells]}}}))
    from dataclasses import replace

    block = replace(plan.statistics[0], scale=scale)
    width, coverage = math.nan, math.nan
    for rates in (np.full(cells, RATE), rng.random(cells)):
        true = rng.binomial(PERSONS, rates)
        exact = np.stack([PERSONS - true, true], axis=1)
        noise = discrete_laplace(scale, exact.shape, rng, 1)
        noisy = NoisyStatistic(
            plan=block,
            values=exact + noise,
            groups=dict(plan.groups),
            public_n=None,
            max_total_rows=10**12,
        )
        posterior = posterior_of(noisy, prior="Beta(1, 1)", n_prior="Uniform(0, 2000)")
        ends = np.asarray(posterior.credible_interval("probability", 0.95))
        if np.all(rates == RATE):
            width = float(np.median(ends[:, 1] - ends[:, 0]))
        else:
            coverage = float(np.mean((ends[:, 0] <= rates) & (rates <= ends[:, 1])))
    return width, coverage


def released(nights: int, each: Fraction, whole: Fraction) -> tuple[int, float]:
    """Release nights of the same persons for one account of rho; return how many were, and seconds."""
    import pandas as pd

    import suffice
    from suffice.errors import BudgetExceededError
    from suffice.pipeline.terms.declaration.exact_numbers import format_number
    from suffice.storage.ledger.opening import create_ledger

    rng, began = np.random.default_rng(), time.perf_counter()
    flag = {"flag": {"family": "bernoulli", "column": "flag"}}
    with tempfile.TemporaryDirectory() as place:
        url = f"sqlite:///{place}/ledger.db"
        with create_ledger(url) as ledger:
            ledger.grant("persons", rho=whole, neighboring="add_or_remove_one", unit="row", reason="nights")
        done = 0
        for night in range(nights + 1):  # one more than there is
            spec = spec_of(flag, name=f"night-{night}", rho=format_number(each))
            frame = pd.DataFrame({"flag": rng.random(PERSONS) < RATE})
            try:
                suffice.release(spec, Path(place) / "store", url, data=frame)
            except BudgetExceededError:
                break
            done += 1
    return done, time.perf_counter() - began


def main() -> None:
    """Print the tables."""
    from suffice.pipeline.terms.declaration.delta import largest_rho
    from suffice.pipeline.terms.declaration.exact_numbers import PICO, format_number

    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--delta", default="1e-6")
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument("--tables", type=int, default=30)
    parser.add_argument("--released", type=int, default=0)
    asked = parser.parse_args()
    rho = largest_rho(Fraction(asked.epsilon), Fraction(asked.delta))
    print(f"rho {format_number(rho)} for ({asked.epsilon}, {asked.delta})")
    flag = {"flag": {"family": "bernoulli", "column": "flag"}}
    columns = {f"c{k}": ["0", "1"] for k in range(asked.tables)}
    nodes = {name: {"categories": keys} for name, keys in columns.items()}
    tables = {"tables": {"family": "bayesian_network", "nodes": nodes}}
    for what, statistics, number, squared in (
        (f"{asked.nights} nights, each", flag, asked.nights, 1),
        (f"{asked.tables} tables", tables, 1, asked.tables),
    ):
        part = Fraction(math.floor(rho * PICO / number), PICO)
        pure = Fraction(math.floor(Fraction(asked.epsilon) * 10**6 / number), 10**6)
        rows: list[tuple[str, float, float, str]] = []
        for name, loss in (("rho", {"rho": part}), ("epsilon", {"epsilon": pure})):
            stated = {measure: format_number(amount) for measure, amount in loss.items()}
            block = plan_of(statistics, **stated).statistics[0]
            width, coverage = our_intervals(statistics, "flag", **stated)
            rows.append((f"suffice, {name}", block.component_noise_sd, width, f"{100 * coverage:.1f} %"))
        gaussian = opendp_gaussian_sd(part, squared)
        rows.append(("OpenDP, discrete Gaussian in zCDP", gaussian, width_of_normal(gaussian), ""))
        pure_sd = math.sqrt(2) * squared / float(pure)
        rows.append(("OpenDP, Laplace in pure epsilon", pure_sd, width_of_normal(pure_sd), ""))
        documented = math.sqrt(squared / (2 * float(part)))
        rows.append(("Tumult, RhoZCDPBudget (documented)", documented, width_of_normal(documented), ""))
        each = smartnoise(asked.epsilon, asked.delta, number * squared)
        if each is not None:
            sd = math.sqrt(2) / each
            rows.append(("SmartNoise, Laplace by its odometer", sd, width_of_normal(sd), ""))
        print(f"\n{what}\n| | noise sd of a count | width of 95 % | coverage |\n|---|---|---|---|")
        for name, sd, width, coverage_text in rows:
            print(f"| {name} | {sd:.1f} | {width:.3f} | {coverage_text} |")
    if asked.released:
        part = Fraction(math.floor(rho * PICO / asked.released), PICO)
        done, seconds = released(asked.released, part, rho)
        print(f"\nreleased {done} nights in {seconds:.0f} s; the next was refused")


if __name__ == "__main__":
    sys.exit(main())
