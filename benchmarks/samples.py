"""Measure how far off a posterior sample is, beside a Laplace release at equal epsilon.

    python benchmarks/samples.py [--simulations 20000]

The setting of Foulds et al. (2016), figure 2: Bernoulli records with p = .1, a flat prior, one sample of
epsilon 0.1 from the interval [.05, .95]. Under `replace_one` it is theirs; `add_or_remove_one` needs half the
noise and half the temperature. The Laplace posterior is the plug-in one of the paper, then the noise-aware
one, of a tenth as many. The first table opens `docs/samples.md`.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from measuring import versions

from suffice.pipeline.ask.inference.posterior_terms import NOISE_AWARE, PLUG_IN
from suffice.pipeline.ask.planning.beside_sample import beside_sample
from suffice.pipeline.spec.spec import Spec, load_spec

if TYPE_CHECKING:
    from suffice.pipeline.ask.planning.beside_sample import MeanError

SIZES = (1, 5, 10, 100, 1000, 10_000)
TRUTH = 0.1
NEIGHBORING = ("replace_one", "add_or_remove_one")
ERRORS = {
    "Laplace, one draw": "laplace_draw",
    "Laplace, mean": "laplace_mean",
    "sample, one draw": "sample_draw",
}


def main() -> None:
    """Print a table for each method of the Laplace posterior."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=20_000)
    arguments = parser.parse_args()
    print(versions())
    for method, simulations in ((PLUG_IN, arguments.simulations), (NOISE_AWARE, arguments.simulations // 10)):
        print(f"\n{method}, {simulations} simulations; mean absolute error\n")
        print(f"| neighbours | mechanism | {' | '.join(f'N = {size}' for size in SIZES)} |")
        print(f"|---|---|{'---|' * len(SIZES)}")
        largest = 0.0
        for neighboring in NEIGHBORING:
            (compared,) = beside_sample(
                spec_of(neighboring),
                n=SIZES,
                truth=TRUTH,
                method=method,
                simulations=simulations,
            )
            for title, name in ERRORS.items():
                errors: list[MeanError] = [getattr(each, name) for each in compared.errors]
                largest = max(largest, *(error.standard_error for error in errors))
                cells = " | ".join(f"{error.value:.3g}" for error in errors)
                print(f"| `{neighboring}` | {title} | {cells} |", flush=True)
        print(f"\nlargest standard error: {largest:.2g}")


def spec_of(neighboring: str) -> Spec:
    """Return a spec with one statistic that could be either."""
    sample = {"within": ["0.05", "0.95"], "grid": "1025", "draws": "1"}
    return load_spec(
        {
            "name": "either",
            "dataset": "either",
            "source": {"parquet": "rows/"},
            "privacy": {"epsilon": "0.1", "neighboring": neighboring},
            "statistics": {"flag": {"family": "bernoulli", "column": "flag", "sample": sample}},
        }
    )


if __name__ == "__main__":
    main()
