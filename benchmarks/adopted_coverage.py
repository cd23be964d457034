"""How often 95 % intervals from published tables hold the truth: `benchmarks/ADOPTED.md` has the results.

PYTHONPATH=tests python benchmarks/adopted_coverage.py [--items 240] [--seed 1]
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from support.adopted_worlds import LAWS, Covered, cell_coverage, pooled_coverage, world

DAYS = 365


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=240)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    started = time.process_time()
    print("| days | rates of items | law | suppressed | censored | width | zeros | minima |")
    print("|---|---|---|---|---|---|---|---|")
    for days_as, kinds in (
        ("poisson", ("flights", "lognormal", "prior")),
        ("twice the variance", ("flights",)),
        ("real", ("flights",)),
    ):
        for share in (0.2, 0.6):
            of_share = Covered()
            for kind in kinds:
                for law in LAWS if days_as == "poisson" else ("geometric",):
                    made = world(kind, law, share, items=options.items, days=DAYS, rng=rng, days_as=days_as)
                    covered = pooled_coverage(made)
                    print(row(days_as, kind, law, covered), flush=True)
                    of_share += covered
                    if law == "geometric":
                        print(row(days_as, kind, "alike", pooled_coverage(made, cells="alike")), flush=True)
            print(row(days_as, "all", "all", of_share), flush=True)
    print()
    print("| statistic | rates of items | law | suppressed | published: held | suppressed: held | all |")
    print("|---|---|---|---|---|---|---|")
    for statistic in ("count", "rate"):
        for share in (0.2, 0.6):
            for kind in ("flights", "lognormal", "prior"):
                for law in ("geometric", "gaussian"):
                    made = world(
                        kind, law, share, items=2 * options.items, days=1, rng=rng, one_threshold=True
                    )
                    held, held_hidden, published, hidden = cell_coverage(made, statistic)
                    whole = (held + held_hidden) / (published + hidden)
                    print(
                        f"| {statistic} | {kind} | {law} | {hidden / (published + hidden):.0%} | "
                        f"{held / published:.1%} | {held_hidden / hidden:.1%} | "
                        f"{whole:.1%} ± {_error(whole, published + hidden):.1%} |",
                        flush=True,
                    )
    print(f"\n{time.process_time() - started:.0f} s of one processor")


def row(days_as: str, kind: str, law: str, covered: Covered) -> str:
    """Return a row of the first table."""
    shares = (covered.censored, covered.width, covered.zeros, covered.minima)
    held = [f"{each / covered.intervals:.1%}" for each in shares]
    held[0] += f" ± {_error(covered.censored / covered.intervals, covered.intervals):.1%}"
    return (
        f"| {days_as} | {kind} | {law} | {covered.suppressed / covered.intervals:.0%} | {' | '.join(held)} |"
    )


def _error(share: float, of: float) -> float:
    """Return the standard error of a share."""
    return math.sqrt(share * (1.0 - share) / of)


if __name__ == "__main__":
    main()
