"""Foulds 4.1, C.1 and C.2: what Gibbs, Metropolis and annealing cost, each enumerated on a grid.

Gibbs: a random scan of Q of N variables is priced at 4 Delta Q / N in the paper. Metropolis: (epsilon,
delta) a step, where delta is the chance of a rejection; Barker's rule has delta 0. Annealing: prices of a
path, of noisy weights and of one drawn index.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from studies.mechanisms.annealing import annealing_cost
from studies.mechanisms.metropolis import step_cost
from studies.mechanisms.private_gibbs import Variable, random_scan, sweep_cost
from studies.plotting import draw_line, picture
from studies.result import Claim, Result, Row, Verdict, conclude, near, tight

if TYPE_CHECKING:
    from pathlib import Path

    from studies.result import Size

SWEEPS = 200
EPSILONS = (0.25, 0.5, 1.0, 2.0)
LEVELS = (0.0, 0.25, 0.5, 1.0)
CONCLUSION = (
    "The prices of updates, sweeps and paths hold. The price of random scans is false: with values public "
    "there is no amplification. Metropolis needs a delta of .15 at epsilon .5 and .24 at 1, which is no "
    "privacy; Barker's rule needs none."
)


def share_of_proposition(epsilon: float = 1.0, far: float = 0.05) -> float:
    """Return the largest delta that draws near an epsilon-private law need, over Proposition 3's.

    The exact law tells one bit truly with chance e^epsilon / (1 + e^epsilon). Each data set's own law is
    moved by `far` in L1, in either direction.
    """
    true = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    needed = 0.0
    for here, there in itertools.product((-far / 2.0, 0.0, far / 2.0), repeat=2):
        first, second = (
            np.array([true + here, 1.0 - true - here]),
            np.array([1.0 - true + there, true - there]),
        )
        needed = max(needed, float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum()))
    return needed / ((1.0 + math.exp(epsilon)) * far)


def run(out: Path, seed: int, size: Size) -> Result:
    """Enumerate all costs; only how many epsilons the picture shows depends on the size."""
    del seed
    shown = size.pick(smallest=EPSILONS[1:3], usual=EPSILONS, full=EPSILONS)
    metropolis = {epsilon: step_cost(epsilon, rule="metropolis") for epsilon in shown}
    barker = {epsilon: step_cost(epsilon, rule="barker") for epsilon in shown}
    scan = random_scan(3.0, 1, 10)
    # A sweep updates each latent variable and theta, each for epsilon 1.
    latent, shared = (
        Variable(change=0.5, is_of_one_record=is_of_one_record) for is_of_one_record in (True, False)
    )
    sweep = sweep_cost([latent] * 5 + [shared], 1.0)
    anneal = annealing_cost(LEVELS, n_points=5)
    rows = [
        Row(
            quantity="4.1: 200 sweeps of the OPS-HMM, in epsilon",
            ours=SWEEPS * sweep,
            paper="400",
            claim=near(400.0, 0.0),
        ),
        Row(
            quantity="4.1: random scan, 2 Delta = 6, Q / N = .1, the paper's price",
            ours=scan.claimed,
            paper="4 Delta Q / N",
            claim=Claim(low=scan.enumerated_loss, if_not=Verdict.WRONG),
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
    rows.append(
        Row(
            quantity="Proposition 3: delta that draws near an exact law need, over (1 + e^epsilon) delta",
            ours=share_of_proposition(),
            paper="<= 1",
            claim=tight(1.0),
            note="an L1 distance counts every difference twice",
            digits=4,
        )
    )
    for epsilon, name in ((0.5, ".5"), (1.0, "1")):
        rows += [
            Row(
                quantity=f"Theorem C.1: chance of a rejection, the theorem's delta, epsilon {name}",
                ours=metropolis[epsilon].largest_rejection,
                paper="enough",
                claim=Claim(
                    low=metropolis[epsilon].delta,
                    high=1.01 * metropolis[epsilon].delta,
                    if_not=Verdict.LOOSE,
                    if_below=Verdict.WRONG,
                ),
                note="more than is needed: see the next line",
                digits=3,
            ),
            Row(
                quantity=f"C.1: delta of a Metropolis step, epsilon {name}",
                ours=metropolis[epsilon].delta,
                paper="very small needed",
                claim=Claim(low=0.01),
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
        Row(
            quantity="C.2: path at levels 0, 1/4, 1/2, 1: price",
            ours=anneal.path,
            verdict=Verdict.ADDED,
            note="the sum of the levels, of all but the last, which no state is drawn at",
        ),
        Row(
            quantity="C.2: path, enumerated loss",
            ours=anneal.path_loss,
            paper=f"<= {anneal.path:g}",
            claim=Claim(high=anneal.path),
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
        subtitle="The paper's price of few updates at random is below their loss; Metropolis needs $\\delta$",
        footer="Foulds et al. 2016, Sections 4.1, C.1; enumerated on a grid of 81 points, up to 20 records.",
        panels=2,
    ) as (left, right):
        draw_line(left, list(shares), list(np.full(100, 6.0)), r"places public: $2\Delta$", 0, marker=False)
        draw_line(left, list(shares), list(secret), "places secret", 2, marker=False)
        draw_line(left, list(shares), list(12.0 * shares), r"the paper: $4\Delta Q/N$", 1, marker=False)
        left.set_xlim(0.0, 0.6)
        left.set_ylim(0.0, 7.5)
        left.set_xlabel("$Q/N$")
        left.set_title(r"random scan of $Q$ of $N$ variables, $2\Delta = 6$")
        left.set_ylabel("loss, nats")
        left.legend(loc="lower right")
        draw_line(right, shown, [metropolis[epsilon].delta for epsilon in shown], "Metropolis", 1)
        draw_line(right, shown, [barker[epsilon].delta for epsilon in shown], "Barker", 0)
        right.set_xlabel(r"$\varepsilon$ of a step")
        right.set_title(r"$\delta$ needed")
        right.set_ylim(-0.02, None)
        right.legend(loc="upper left")
    lines = [
        *(("Q / N", share, "loss, places public, nats", 6.0) for share in shares),
        *(
            ("Q / N", share, "loss, places secret, nats", loss)
            for share, loss in zip(shares, secret, strict=True)
        ),
        *(("Q / N", share, "the paper's price, nats", 12.0 * share) for share in shares),
        *(("epsilon", each, "delta of Metropolis", metropolis[each].delta) for each in shown),
        *(
            (
                "epsilon",
                each,
                "largest chance of a rejection by Metropolis",
                metropolis[each].largest_rejection,
            )
            for each in shown
        ),
        *(("epsilon", each, "delta of Barker", barker[each].delta) for each in shown),
        *(("epsilon", each, "largest log ratio of Barker", barker[each].largest_log_ratio) for each in shown),
    ]
    columns = ("horizontal axis", "at", "quantity", "value")
    curves = dict(zip(columns, zip(*lines, strict=True), strict=True))
    return conclude(out, "mcmc_costs", rows, pictures=[path], curves=curves)
