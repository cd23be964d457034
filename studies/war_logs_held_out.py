"""Foulds et al. (2016), Figures 6 and 9: how likely held-out events are, over epsilon.

A tenth of the cells of region and time is held out. A score is the log likelihood of an event of these
cells: of the mean chance over the draws of the second half, of OPS under its last draw. Models: naive Bayes,
whose noise lies on the counts of all cells together, and a hidden Markov model of ten states, whose noise
lies on each cell. Laplace noise is drawn anew for each split. Without privacy and under Laplace noise the
restart with the highest log joint is scored; scores of OPS are means over restarts, as no restart may be
chosen for nothing. Both Laplace noise and OPS are for a row added or removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from studies.event_log_models import AWARE, CLIPPED, EXACT, OPS, PRIVATE
from studies.event_log_scores import FULL, MARKOV, MODELS, NAIVE, SMALLEST, USUAL, scores_of
from studies.event_logs import event_log
from studies.plotting import draw_limit, draw_line, logarithmic, picture
from studies.result import Claim, Result, Row, Verdict, conclude, near

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from studies.event_log_scores import Effort, Scores
    from studies.event_logs import EventLog
    from studies.result import Size

WIDE, TIGHT = OPS
"""M = 10 and M = 100."""
SHOWN = (0.1, 1.0, 10.0)
"""Epsilons of the rows; the curves have all."""
SUBJECT: Mapping[str, str] = {NAIVE: "noise on the sums", MARKOV: "noise on every cell"}
COMPETITIVE = 0.1
"""Nats that OPS and Laplace noise may differ by where OPS is called competitive."""
SUPERIOR = ("Laplace superior", Claim(low=0.0))
CLAIMS: Mapping[tuple[str, str], tuple[str, Claim]] = {
    ("few", NAIVE): SUPERIOR,
    ("few", MARKOV): ("OPS competitive", near(0.0, COMPETITIVE)),
    ("many", MARKOV): SUPERIOR,
}
"""What the paper says of its figures, by log and model, and what that leaves for Laplace less OPS."""
CONCLUSION = (
    "Reproduced: under naive Bayes Laplace noise is superior to OPS, and with many events a cell under the "
    "hidden Markov model too. Not reproduced: with few, a converged OPS is better than clipped counts at "
    "every epsilon, and than noise-aware Laplace at epsilon .1. The rows are of a former "
    "run, which scored generated logs as well and so drew other random numbers; all else is the same."
)
"""The last sentence is of the run that `docs/papers.md` shows: it goes when the page is made of a new one."""


def rows_of(log: EventLog, scores: Scores) -> list[Row]:
    """Return scores at the epsilons that are shown, and what the paper says of them."""
    rows = []
    for (model, method, epsilon), values in scores.items():
        if epsilon in (*SHOWN, np.inf):
            beside = "" if epsilon == np.inf else f", epsilon {epsilon:g}"
            rows.append(_row(f"{title_of(log)}, {model}: {method}{beside}", values))
    for (kind, model), (said, claim) in CLAIMS.items():
        for epsilon in (each for each in SHOWN if kind == log.kind and (model, CLIPPED, each) in scores):
            ops = max((scores[model, sampler, epsilon] for sampler in OPS), key=np.mean)
            for method in (CLIPPED, AWARE):
                gain = np.subtract(scores[model, method, epsilon], ops).tolist()
                quantity = f"{title_of(log)}, {model}: {method} less the better OPS, epsilon {epsilon:g}"
                is_paper = method == CLIPPED
                rows.append(
                    _row(quantity, gain, paper=said, claim=claim) if is_paper else _row(quantity, gain)
                )
    return rows


def _row(quantity: str, values: list[float], *, paper: str = "", claim: Claim | None = None) -> Row:
    return Row(
        quantity=quantity,
        ours=float(np.mean(values)),
        paper=paper,
        error=float(np.std(values, ddof=1) / np.sqrt(len(values))),
        claim=claim,
        verdict=Verdict.ADDED,
        digits=4,
    )


def title_of(log: EventLog) -> str:
    """Return what a log is called in rows and pictures."""
    return f"{log.source}, {log.kind} a cell"


def draw_scores(path: Path, log: EventLog, scores: Scores, effort: Effort, footer: str) -> None:
    """Draw scores over epsilon, a panel for each model."""
    with picture(
        path,
        title=f"How likely held-out events are: {log.source}, {log.median_rows:,.0f} a cell",
        subtitle="Log likelihood of an event in held-out cells by $\\varepsilon$; higher is better",
        footer=footer,
        panels=len(MODELS),
        width=4.7,
        height=3.9,
    ) as axes:
        for axis, model in zip(axes, MODELS, strict=True):
            for method in dict.fromkeys(each for _, each, _ in scores if each != EXACT):
                series = 1 + PRIVATE.index(method)  # colours as in the pictures of states
                means = [float(np.mean(scores[model, method, each])) for each in effort.epsilons]
                draw_line(axis, effort.epsilons, means, method, series)
            draw_limit(axis, float(np.mean(scores[model, EXACT, np.inf])), EXACT, at_left=True)
            logarithmic(axis, x=True)
            axis.margins(y=0.12)
            axis.set_title(f"{model}: {SUBJECT[model]}")
            axis.set_xlabel(r"$\varepsilon$")
        axes[0].set_ylabel("log likelihood of an event")
        axes[-1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize="x-small")


def run(out: Path, seed: int, size: Size) -> Result:
    """Score all methods on the crashes, or on generated logs."""
    effort = size.pick(smallest=SMALLEST, usual=USUAL, full=FULL)
    rng = np.random.default_rng(seed)
    logs = [event_log(kind, rng) for kind in effort.kinds]
    if effort.part is not None:
        logs = [log.part(*effort.part) for log in logs]
    n_splits = effort.n_splits
    rows, pictures = [], []
    columns = ("log", "model", "method", "epsilon", "mean", "standard deviation over splits", "splits")
    curves: dict[str, list[object]] = {name: [] for name in columns}
    for log in logs:
        scores = scores_of(log, PRIVATE, n_splits, effort, relation="add_or_remove_one", rng=rng)
        rows += rows_of(log, scores)
        footer = (
            f"Foulds et al. 2016, Figures 6 and 9; {n_splits} splits, {effort.n_sweeps} sweeps, "
            f"{effort.n_states} states. OPS has its epsilon only if its chain has converged."
        )
        pictures.append(out / f"war_logs_held_out-{log.kind}.png")
        draw_scores(pictures[-1], log, scores, effort, footer)
        for (model, method, epsilon), values in scores.items():
            spread = np.std(values, ddof=1)
            cells = (title_of(log), model, method, epsilon, np.mean(values), spread, n_splits)
            for column, value in zip(columns, cells, strict=True):
                curves[column].append(value)
    return conclude(out, "war_logs_held_out", rows, pictures=pictures, curves=curves)
