"""Hidden Markov models of fatal crashes: held-out scores by epsilon, and how long draws take.

    OMP_NUM_THREADS=1 python benchmarks/hidden_markov.py monthly|yearly|speed [--splits 10] [--beta 1]

A split holds out a tenth of the cells. Its score is the log likelihood of their exact counts a crash, by the
mean chance over 100 draws of one restart of ten states; noise is simulated. Counts of every feature take a
fifth of epsilon, with one row added or removed: b = 5/epsilon. Data are in `fars` below SUFFICE_SHARED_DATA.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
from measuring import versions

from suffice.pipeline.ask.models.chain_tables import CountsOverTime
from suffice.pipeline.ask.models.hidden_markov import exact_log_likelihood, log_mean_exp
from suffice.pipeline.ask.models.noise_aware_states import noise_aware_draws
from suffice.pipeline.ask.models.state_draws import StatePriors, plug_in_draws
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.ask.models.state_draws import Projection, StateDraws
    from suffice.typing import Counts, Mask

DATA = Path(os.environ.get("SUFFICE_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
FEATURES = {
    "monthly": ("MAN_COLL", "HARM_EV", "LGT_COND", "PEDS", "DRUNK_DR"),
    "yearly": ("A_ROADFC", "A_MANCOL", "A_TOD", "A_PED", "A_ROLL"),
}
FILES = {"monthly": "crash_monthly_2013_2015.parquet", "yearly": "crash_1982_2012.parquet"}
NOT_ZERO = ("PEDS", "DRUNK_DR")
"""Features of two categories: 0, and all else."""
EPSILONS = (0.1, 0.5, 1.0, 5.0)
STATES, DRAWS, SWEEPS, PLUG_IN_SWEEPS = 10, 100, 400, 200
ALPHA, RATE = 1.0, 1e-3
GOALS = {"plug-in, 1 restart": 0.4, "plug-in, 4 restarts": 0.8, "noise-aware, 1 restart": 10.0}
"""Seconds of CPU for 200 sweeps."""


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=("monthly", "yearly", "speed"))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--sweeps", type=int, default=SWEEPS)
    parser.add_argument("--beta", type=float, default=1.0)
    parser.add_argument("--epsilons", type=float, nargs="*", default=EPSILONS)
    arguments = parser.parse_args()
    print(versions())
    if arguments.table == "speed":
        speed()
        return
    priors = StatePriors(transitions=ALPHA, emissions=arguments.beta, rate=RATE)
    counts = crash_counts(arguments.table)
    print(
        f"{counts[0].shape[0] * counts[0].shape[1]:,} cells, {counts[0].sum():,} crashes, "
        f"{sum(each.shape[-1] for each in counts)} categories; {arguments.splits} splits; "
        f"{arguments.sweeps} sweeps noise-aware, {PLUG_IN_SWEEPS} plug-in; beta {arguments.beta:g}"
    )
    print("mean score (standard deviation over splits), and states with more than 1 % of the cells")
    report("exact", splits_of(counts, None, ("none",), (1, STATES), arguments, priors))
    for epsilon in arguments.epsilons:
        plug_in = splits_of(counts, epsilon, ("clip", "none", "simplex"), (STATES,), arguments, priors)
        report(f"epsilon {epsilon:g}", plug_in)
        report(f"epsilon {epsilon:g}", splits_of(counts, epsilon, (None,), (STATES,), arguments, priors))


def crash_counts(table: str) -> tuple[Counts, ...]:
    """Exact counts of every feature, (n_chains, n_times, n_categories): in this study alone."""
    keys = ("STATE", "YEAR", "MONTH") if table == "monthly" else ("STATE", "YEAR")
    rows = pq.read_table(DATA / "fars" / FILES[table], columns=[*keys, *FEATURES[table]])
    column = {name: rows.column(name).to_numpy() for name in rows.column_names}
    (state, year, *month) = (np.unique(column[key], return_inverse=True) for key in keys)
    times, place = len(year[0]), year[1]
    for values, places in month:
        times, place = times * len(values), place * len(values) + places
    place = state[1] * times + place
    windows = []
    for name in FEATURES[table]:
        values = column[name] > 0 if name in NOT_ZERO else column[name]
        categories, places = np.unique(values, return_inverse=True)
        size = len(categories)
        tally = np.bincount(place * size + places, minlength=len(state[0]) * times * size)
        windows.append(tally.reshape(len(state[0]), times, size))
    return tuple(windows)


def splits_of(
    counts: tuple[Counts, ...],
    epsilon: float | None,
    projections: tuple[Projection | None, ...],
    states: tuple[int, ...],
    arguments: argparse.Namespace,
    priors: StatePriors,
) -> dict[str, list[tuple[float, int]]]:
    """Score models on all splits; split and noise are the same for every model of one epsilon."""
    scores: dict[str, list[tuple[float, int]]] = {}
    plug_in_sweeps = min(PLUG_IN_SWEEPS, arguments.sweeps)
    for split in range(arguments.splits):
        rng = np.random.default_rng([split, round(1000 * (epsilon or 0))])
        held_out = np.zeros(counts[0].shape[:2], dtype=bool)
        held_out.flat[rng.permutation(held_out.size)[: round(0.1 * held_out.size)]] = True
        scale = 5.0 / epsilon if epsilon else 0.0
        noisy = tuple(each + (discrete_laplace(scale, each.shape, rng) if scale else 0) for each in counts)
        table = CountsOverTime(counts=noisy, is_observed=~held_out, scales=(scale,) * len(counts))
        for project in projections:
            for n_states in states:
                common: dict[str, Any] = {"n_states": n_states, "n_draws": DRAWS}
                common |= {"priors": priors, "rng": rng}
                if project is None:
                    draws = noise_aware_draws([table], n_sweeps=arguments.sweeps, **common)
                else:
                    draws = plug_in_draws(
                        table, project=project, n_restarts=1, n_sweeps=plug_in_sweeps, **common
                    )
                name = f"{project or 'noise-aware'}, {n_states} states"
                scores.setdefault(name, []).append((score(counts, held_out, draws), used(draws)))
    return scores


def score(counts: tuple[Counts, ...], held_out: Mask, draws: StateDraws) -> float:
    """The log likelihood a held-out crash."""
    by_draw = exact_log_likelihood(counts, held_out, draws, restart=0, n_draws=DRAWS)
    return float(log_mean_exp(by_draw).sum() / counts[0][held_out].sum())


def used(draws: StateDraws) -> int:
    """How many states have more than 1 % of the cells of all draws."""
    n_states = draws.transitions.shape[-1]
    shares = np.bincount(draws.states.ravel(), minlength=n_states) / draws.states.size
    return int(np.sum(shares > 0.01))


def report(title: str, by_method: dict[str, list[tuple[float, int]]]) -> None:
    """Print a line for each model."""
    for name, pairs in by_method.items():
        scores, states = np.array(pairs).T
        line = f"{title:12}{name:24}{scores.mean():9.3f} ({scores.std():.3f})  least {scores.min():8.3f}"
        print(f"{line}  states {states.mean():5.1f} ({states.min():.0f} to {states.max():.0f})", flush=True)


def speed() -> None:
    """Time 200 sweeps, three times where there is a goal, and print the least time."""
    rng = np.random.default_rng(1)
    priors = StatePriors(transitions=ALPHA, emissions=1.0, rate=RATE)

    def table(n_chains: int, n_times: int) -> CountsOverTime:
        sizes = (11, 52, 9, 2, 2)
        theta = [rng.dirichlet(np.full(size, 0.2)) for size in sizes]
        exact = [rng.multinomial(35, each, (n_chains, n_times)) for each in theta]
        noisy = tuple(each + discrete_laplace(5.0, each.shape, rng) for each in exact)
        return CountsOverTime(
            counts=noisy, is_observed=np.ones((n_chains, n_times), dtype=bool), scales=(5.0,) * 5
        )

    def plug_in(cells: CountsOverTime, restarts: int) -> Callable[[], StateDraws]:
        return lambda: plug_in_draws(
            cells, project="clip", n_states=STATES, n_restarts=restarts, n_sweeps=200, n_draws=DRAWS,
            priors=priors, rng=rng,
        )  # fmt: skip

    def noise_aware(cells: CountsOverTime, restarts: int) -> Callable[[], StateDraws]:
        return lambda: noise_aware_draws(
            [cells] * restarts, n_states=STATES, n_sweeps=200, n_draws=DRAWS, priors=priors, rng=rng
        )

    small, whole, double = table(18, 70), table(51, 36), table(102, 36)
    print("200 sweeps, 76 categories, 10 states, epsilon 1: least seconds of CPU")
    for name, n_cells, run in (
        ("plug-in, 1 restart", 1260, plug_in(small, 1)),
        ("plug-in, 4 restarts", 1260, plug_in(small, 4)),
        ("noise-aware, 1 restart", 1836, noise_aware(whole, 1)),
        ("noise-aware, 1 restart", 3672, noise_aware(double, 1)),
        ("noise-aware, 4 restarts", 1836, noise_aware(whole, 4)),
    ):
        goal = GOALS.get(name) if n_cells in {1260, 1836} else None
        least = min(seconds(run) for _ in range(1 if goal is None else 3))
        verdict = "" if goal is None else f"  goal {goal:g}: {'met' if least <= goal else 'MISSED'}"
        print(f"{name:26}{n_cells:6,} cells{least:9.2f} s{verdict}", flush=True)


def seconds(run: Callable[[], StateDraws]) -> float:
    """Processor seconds."""
    start = time.process_time()
    run()
    return time.process_time() - start


if __name__ == "__main__":
    main()
