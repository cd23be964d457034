"""Foulds Figure 8: what one draw of a posterior tells of one record, where an adversary chose the others.

A Bernoulli statistic with a flat prior, its posterior cut to [a0, 1 - a0]. For each data set the loss is the
largest log ratio of the densities of a draw between two values of one more record. The adversary adds the
value that makes it largest: always the same symbol, and the loss goes from log 9 to 2 log 9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from studies.plotting import draw_limit, draw_line, logarithmic, picture
from studies.result import Claim, Result, Row, Verdict, conclude
from studies.truncated_beta import log_mass

if TYPE_CHECKING:
    from pathlib import Path

    from studies.result import Size

A0 = 0.1
SHOWN = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
LIMIT = 2.0 * float(np.log((1.0 - A0) / A0))
CONCLUSION = (
    "Reproduced. The loss of a draw grows towards 2 log 9, which the exponential mechanism charges. The "
    "greedy adversary repeats one symbol; balanced data stay at log 9."
)


def loss_of_replacing(successes: int, failures: int, a0: float = A0) -> float:
    """Return the largest log ratio of a draw's densities between one more success and one more failure."""
    ratio = np.log((1.0 - a0) / a0)
    masses = log_mass([successes + 2, successes + 1], [failures + 1, failures + 2], a0)
    return float(ratio + abs(masses[0] - masses[1]))


def loss_of_adding(successes: int, failures: int, a0: float = A0) -> float:
    """Return the largest log ratio of a draw's densities with and without one more record of either value."""
    without, success, failure = log_mass(
        [successes + 1, successes + 2, successes + 1], [failures + 1, failures + 1, failures + 2], a0
    )
    ends = np.log([a0, 1.0 - a0])
    losses = np.abs(np.concatenate([ends - success + without, ends - failure + without]))
    return float(losses.max())


def greedy(records: int, a0: float = A0) -> tuple[list[float], tuple[int, int]]:
    """Return the loss after each of so many greedy additions, the first of none, and the data at the end."""
    successes = failures = 0
    losses = [loss_of_replacing(0, 0, a0)]
    for _ in range(records):
        more = loss_of_replacing(successes + 1, failures, a0), loss_of_replacing(successes, failures + 1, a0)
        if more[0] >= more[1]:
            successes += 1
        else:
            failures += 1
        losses.append(max(more))
    return losses, (successes, failures)


def run(out: Path, seed: int, size: Size) -> Result:
    """Follow the adversary up to 1,000 records; no chance enters, and every size is the same."""
    del seed, size
    losses, (successes, failures) = greedy(SHOWN[-1])
    balanced = [loss_of_replacing(records // 2, records // 2) for records in SHOWN]
    added = [loss_of_adding(records, 0) for records in SHOWN]
    chosen = [losses[records] for records in SHOWN]
    rows = [
        Row(quantity=f"loss at N = {records:,}", ours=value, digits=4)
        for records, value in zip(SHOWN, chosen, strict=True)
    ]
    rows += [
        Row(
            quantity="limit 2 log 9",
            ours=LIMIT,
            paper="2 C, C = sup |log p(x') - log p(x)| (Theorem 2)",
            claim=Claim(low=losses[-1], high=losses[-1] + 0.02),
        ),
        Row(
            quantity="records of the rarer symbol, of 1,000",
            ours=min(successes, failures),
            verdict=Verdict.ADDED,
            note="the greedy adversary repeats one symbol",
        ),
        Row(quantity="loss of balanced data, N = 1,000", ours=balanced[-1], verdict=Verdict.ADDED),
        Row(
            quantity="loss of adding a record to 1,000 equal ones",
            ours=added[-1],
            verdict=Verdict.ADDED,
            note="tends to log 9 = 2.19722",
        ),
    ]
    path = out / "adversary.png"
    with picture(
        path,
        title="Repeating one symbol doubles what a draw tells",
        subtitle=f"Loss of one draw from a Bernoulli posterior on $[{A0}, {1 - A0}]$, by the data set",
        footer="Foulds et al. 2016, Figure 8; worked out, no chance.",
        width=6.4,
    ) as (axis,):
        draw_line(axis, [n + 1 for n in SHOWN], chosen, "greedy adversary, a record replaced", 0)
        draw_line(axis, [n + 1 for n in SHOWN], balanced, "balanced data, a record replaced", 2)
        draw_line(axis, [n + 1 for n in SHOWN], added, "equal records, one added", 1)
        logarithmic(axis, x=True)
        draw_limit(axis, LIMIT, r"$2\,\log 9$, what is charged")
        axis.set_ylim(0.0, LIMIT * 1.12)
        axis.set_xlabel("records: $N$, and the one that is replaced")
        axis.set_ylabel("loss, nats")
        axis.legend(loc="lower right")
    curves = {
        "N": SHOWN,
        "loss of the greedy adversary's data, a record replaced, nats": chosen,
        "loss of balanced data, a record replaced, nats": balanced,
        "loss of equal records, one added, nats": added,
    }
    return conclude(out, "adversary", rows, pictures=[path], curves=curves)
