"""Foulds 4.1, C.1 and C.2: what Gibbs, Metropolis and annealing cost, each enumerated on a grid.

Gibbs: a random scan of Q of N variables is priced at 4 Delta Q / N in the paper. Metropolis: (epsilon,
delta) a step, where delta is the chance of a rejection; Barker's rule has delta 0. Annealing: prices of a
path, of noisy weights and of one drawn index.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from studies.mechanisms.annealing import annealing_cost
from studies.mechanisms.metropolis import step_cost
from studies.mechanisms.private_gibbs import Variable, random_scan, sweep_cost
from studies.plotting import draw_line, picture
from studies.result import Result, Row, Verdict, conclude

if TYPE_CHECKING:
    from pathlib import Path

    from studies.result import Size

SWEEPS = 200
EPSILONS = (0.25, 0.5, 1.0, 2.0)
LEVELS = (0.0, 0.25, 0.5, 1.0)
CONCLUSION = (
    "The prices of updates, sweeps and paths hold; an unconverged OPS-HMM costs 400 epsilon, as the paper "
    "says. 4 Delta Q / N of random scans is false twice: it is not a bound of the amplified loss, and "
    "with values public there is no amplification. Metropolis needs a delta of .15 to .24, which is no "
    "privacy; Barker's rule needs none at the same temperature. Noise on the log weights of annealing "
    "costs less than on normalised ones."
)


def run(out: Path, seed: int, size: Size) -> Result:
    """Enumerate all costs; only how many epsilons the picture shows depends on the size."""
    del seed
    shown = size.pick(smallest=EPSILONS[1:3], usual=EPSILONS, full=EPSILONS)
    metropolis = {epsilon: step_cost(epsilon, rule="metropolis") for epsilon in shown}
    barker = {epsilon: step_cost(epsilon, rule="barker") for epsilon in shown}
    scan = random_scan(3.0, 1, 10)
    # A sweep updates each latent variable and theta, each for epsilon 1.
    latent, shared = (Variable(change=0.5, is_of_one_record=own) for own in (True, False))
    sweep = sweep_cost([latent] * 5 + [shared], 1.0)
    anneal = annealing_cost(LEVELS, n_points=5)
    rows = [
        Row(quantity="4.1: 200 sweeps of the OPS-HMM, in epsilon", ours=SWEEPS * sweep, paper="400"),
        Row(
            quantity="4.1: random scan, 2 Delta = 6, Q / N = .1, the paper's price",
            ours=scan.claimed,
            paper="4 Delta Q / N",
            verdict=Verdict.WRONG,
            note="below both lines that follow",
            digits=2,
        ),
        Row(
            quantity="4.1: the same, were the places secret",
            ours=scan.with_secret_places,
            verdict=Verdict.ADDED,
            digits=3,
        ),
        Row(
            quantity="4.1: the same, places public as they are",
            ours=scan.with_public_places,
            verdict=Verdict.ADDED,
            note=f"enumerated example: {scan.enumerated_loss:.3f}",
            digits=2,
        ),
    ]
    for epsilon, name in ((0.5, ".5"), (1.0, "1")):
        rows += [
            Row(
                quantity=f"C.1: delta of a Metropolis step, epsilon {name}",
                ours=metropolis[epsilon].delta,
                paper="very small needed",
                note="no privacy",
                digits=3,
            ),
            Row(
                quantity=f"C.1: Barker's largest log ratio, epsilon {name}",
                ours=barker[epsilon].largest_log_ratio,
                verdict=Verdict.ADDED,
                note="delta 0",
                digits=4,
            ),
        ]
    rows += [
        Row(quantity="C.2: path at levels 0, 1/4, 1/2, 1: price", ours=anneal.path, paper="sum of levels"),
        Row(
            quantity="C.2: path, enumerated loss",
            ours=anneal.path_loss,
            paper=f"<= {anneal.path:g}",
            digits=4,
        ),
        Row(
            quantity="C.2: largest change of a log weight",
            ours=anneal.weight_change_found,
            verdict=Verdict.ADDED,
            note="(e_0 - e_n) / 2 given the path; the paper puts noise of sensitivity 2 on weights in [0, 1]",
            digits=4,
        ),
        Row(
            quantity="C.2: one drawn index, enumerated loss",
            ours=anneal.index_loss,
            verdict=Verdict.ADDED,
            note=f"price {anneal.index:g}",
            digits=4,
        ),
    ]
    shares = np.linspace(0.01, 1.0, 100)
    secret = np.log1p(shares * math.expm1(6.0))
    path = out / "mcmc_costs.png"
    with picture(
        path,
        title="What a step of a private chain costs",
        subtitle="The paper's price of a random scan is below the loss; Metropolis needs delta",
        footer="Foulds et al. 2016, 4.1 and C.1; enumerated on a grid of 81 points, up to 20 records.",
        panels=2,
    ) as (left, right):
        draw_line(left, list(shares), list(np.full(100, 6.0)), "places public: 2 Delta", 0, marker=False)
        draw_line(left, list(shares), list(secret), "places secret", 2, marker=False)
        draw_line(left, list(shares), list(12.0 * shares), "the paper: 4 Delta Q / N", 1, marker=False)
        left.set_xlim(0.0, 0.6)
        left.set_ylim(0.0, 7.5)
        left.set_xlabel("Q / N")
        left.set_title("random scan, loss at 2 Delta = 6")
        left.legend(loc="lower right")
        draw_line(right, shown, [metropolis[epsilon].delta for epsilon in shown], "Metropolis", 1)
        draw_line(right, shown, [barker[epsilon].delta for epsilon in shown], "Barker", 0)
        right.set_xlabel("epsilon of a step")
        right.set_title("delta needed")
        right.set_ylim(-0.02, None)
        right.legend(loc="upper left")
    curves = {
        "epsilon": shown,
        "delta of Metropolis": tuple(metropolis[epsilon].delta for epsilon in shown),
        "largest rejection of Metropolis": tuple(metropolis[epsilon].largest_rejection for epsilon in shown),
        "delta of Barker": tuple(barker[epsilon].delta for epsilon in shown),
        "log ratio of Barker": tuple(barker[epsilon].largest_log_ratio for epsilon in shown),
    }
    return conclude(out, "mcmc_costs", rows, pictures=[path], curves=curves)
