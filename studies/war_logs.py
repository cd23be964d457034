"""Foulds et al. (2016), Figures 3 to 5, 7 and 10 to 13: states of event logs under four methods.

Of the log with many events a cell two states are drawn, of that with few three, all at epsilon 5: without
privacy; from one release of noisy counts, clipped at 0 as in the paper, and noise-aware; and by OPS. Both
Laplace lines see the same release, made by ``suffice.release`` with a ledger of its own in the output folder,
whose noise has no seed. 200 sweeps, of which the second half counts; pictures show the restart with the
highest log joint, of OPS the first. Numbers are means over restarts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from studies.event_log_models import AWARE, CLIPPED, EXACT, OPS
from studies.event_log_release import released_table
from studies.event_log_states import chance_of_rare, distance_of_emissions, share_alike, share_covered
from studies.event_logs import Kind, event_log
from studies.result import Result, Row, Verdict, conclude
from studies.war_log_fits import EPSILON, N_STATES, fit_all
from studies.war_log_pictures import FREQUENT_SHOWN, draw_intervals, draw_state, draw_states, draw_transitions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from studies.event_log_states import States
    from studies.event_logs import EventLog
    from studies.result import Size
    from studies.war_log_fits import Fitted
    from suffice.pipeline.ask.models.chain_tables import CountsOverTime

PAPERS: Mapping[Kind, tuple[str, str]] = {"many": ("390,000", "972"), "few": ("75,000", "58")}
"""Of Iraq and Afghanistan: events, and their median in a cell."""
FIGURES: Mapping[Kind, str] = {"many": "Figures 3 to 5, 10 and 11", "few": "Figures 7, 12 and 13"}
_, TIGHT = OPS
"""M = 100, as in the paper's pictures."""
RARE = 0.01
SMALL = 1 / 3
NOISY = 0.95
"""Below this share of cells in the state of most draws a draw is called noisy."""
BOTH: tuple[Kind, ...] = ("many", "few")
PART = (5, 8)
"""Regions and time steps of the smallest log."""
CONCLUSION = (
    "Crashes stand in for the war logs ([the story](studies/event_log.md)), and the comparison is with the "
    "text. With many events a cell, clipped counts give the states of the model without privacy; with few "
    "they do not, the noise-aware model does better, and OPS keeps most states if its chain has converged."
)


def shape_rows(log: EventLog) -> list[Row]:
    """Return how large a log is, beside the paper's."""
    rows, median = PAPERS[log.kind]
    cells = log.shape[0] * log.shape[1]
    sizes = (
        ("events", log.n_rows, rows),
        ("median events of a cell", int(log.median_rows), median),
        ("cells", cells, ""),
        ("categories", sum(map(len, log.categories)), ""),
    )
    return [
        Row(
            quantity=f"{title_of(log)}: {name}",
            ours=value,
            verdict=Verdict.ADDED,
            note=f"of the war log: {paper}" if paper else "",
        )
        for name, value, paper in sizes
    ]


def clipping_row(log: EventLog, released: CountsOverTime) -> Row:
    """Return how many events of its widest feature clipping adds to a cell."""
    widest = widest_feature(log)
    added = np.maximum(released.counts[widest], 0).sum(axis=-1) - log.counts[widest].sum(axis=-1)
    return Row(
        quantity=f"{title_of(log)}: events that clipping adds to a cell, {log.features[widest]}",
        ours=float(added.mean()),
        error=float(added.std() / np.sqrt(added.size)),
        verdict=Verdict.ADDED,
        digits=3,
    )


def method_rows(log: EventLog, fitted: Fitted) -> list[Row]:
    """Return how far each method's states are from those without privacy."""
    exact, widest = fitted.shown[EXACT], widest_feature(log)
    rare = f"chance of what is rarer than 1 % without privacy, {log.features[widest]}"
    rows = log.counts[0].sum(axis=-1)
    is_small = rows <= np.quantile(rows, SMALL)
    measures: dict[str, Callable[[States], float]] = {
        "cells in the non-private state": lambda states: share_alike(
            states.most_frequent, exact.most_frequent
        ),
        "cells in it by the last draw": lambda states: share_alike(states.last, exact.most_frequent),
        "total variation of emissions": lambda states: distance_of_emissions(states, exact),
        rare: lambda states: chance_of_rare(states, exact, widest, RARE),
        "non-private emissions in 95 % intervals": lambda states: share_covered(states, exact),
        "the smallest third of cells, share in one state": lambda states: float(
            np.bincount(states.most_frequent[is_small]).max() / is_small.sum()
        ),
        "chance to stay in a state": lambda states: float(np.diag(states.transitions).mean()),
    }
    of_hundred = ("cells in the non-private state", "the smallest third of cells, share in one state")
    without_one_sample = "non-private emissions in 95 % intervals"
    table = []
    for name, measure in measures.items():
        for method, restarts in fitted.restarts.items():
            if method in OPS and name == without_one_sample:
                continue  # one sample has no intervals
            values = [measure(states) for states in restarts]
            is_not_published = method in OPS and name in of_hundred
            table.append(
                Row(
                    quantity=f"{title_of(log)}: {name}, {method}",
                    ours=float(np.mean(values)),
                    error=float(np.std(values, ddof=1) / np.sqrt(len(values))),
                    verdict=Verdict.ADDED,
                    note="by a hundred draws, which cost a hundred times as much" if is_not_published else "",
                    digits=3,
                )
            )
    return table


def coherence_row(log: EventLog, fitted: Fitted) -> Row:
    """Return how far the one draw that OPS publishes agrees with a hundred."""
    values = [share_alike(states.last, states.most_frequent) for states in fitted.restarts[TIGHT]]
    mean = float(np.mean(values))
    return Row(
        quantity=f"{title_of(log)}: cells whose last state is that of most draws, {TIGHT}",
        ours=mean,
        paper="the last draw is noisy",
        error=float(np.std(values, ddof=1) / np.sqrt(len(values))),
        verdict=Verdict.AGREES if mean < NOISY else Verdict.DIFFERS,
        digits=3,
    )


def disagreement_rows(log: EventLog, fitted: Fitted) -> list[Row]:
    """Return how far apart the restarts of OPS stay: beyond a few nats, its chain has not converged."""
    n_restarts = len(fitted.restarts[TIGHT])
    return [
        Row(
            quantity=f"{title_of(log)}: log joint of restarts, standard deviation, {method}",
            ours=float(np.std(fitted.log_joint[method], ddof=1)),
            error=float(np.std(fitted.log_joint[method], ddof=1) / np.sqrt(2 * (n_restarts - 1))),
            verdict=Verdict.ADDED,
            note=f"nats, means of {n_restarts} restarts: if large, epsilon does not hold",
            digits=3,
        )
        for method in OPS
    ]


def widest_feature(log: EventLog) -> int:
    """Return the place of the feature with most categories."""
    return int(np.argmax([len(names) for names in log.categories]))


def title_of(log: EventLog) -> str:
    """Return what a log is called in rows."""
    return f"{log.source}, {log.kind} a cell"


def draw_all(out: Path, log: EventLog, fitted: Fitted, n_drawn: int) -> list[Path]:
    """Draw the pictures of one log, and of the emissions of its first states."""
    footer = (
        f"Foulds et al. 2016, {FIGURES[log.kind]}; epsilon {EPSILON}, of OPS only if its chain converged."
    )
    n_states, shown = N_STATES[log.kind], fitted.shown
    maps = {method: shown[method].most_frequent for method in (EXACT, CLIPPED, AWARE)}
    maps["OPS, M = 100:\nlast 100 draws"] = shown[TIGHT].most_frequent
    maps["OPS, M = 100:\nlast draw, published"] = shown[TIGHT].last
    named = {method.replace(" (", "\n("): states for method, states in shown.items()}
    paths = [out / f"war_logs-{log.kind}-{name}.png" for name in ("states", "transitions")]
    draw_states(paths[0], log, maps, n_states, footer)
    draw_transitions(paths[1], log, named, footer)
    for state in range(min(n_states, n_drawn)):
        paths.append(out / f"war_logs-{log.kind}-state-{state + 1}.png")
        draw_state(paths[-1], log, shown, state, footer)
    widest = widest_feature(log)
    if len(log.categories[widest]) > FREQUENT_SHOWN:
        paths.append(out / f"war_logs-{log.kind}-intervals.png")
        with_intervals = {method: shown[method] for method in (EXACT, CLIPPED, AWARE)}
        draw_intervals(paths[-1], log, with_intervals, 0, widest, footer)
    return paths


def release_name(log: EventLog, size: Size, seed: int) -> str:
    """Return a release's name: of crashes and of generated logs, in one folder, there are two."""
    return f"{log.source.replace(' ', '-')}-{log.kind}-{size.value}-{seed}"


def run(out: Path, seed: int, size: Size) -> Result:
    """Release both logs once, fit all methods, and compare them with the model without privacy."""
    n_sweeps, n_restarts, n_drawn = size.pick(smallest=(12, 2, 1), usual=(200, 4, 3), full=(200, 4, 3))
    part = size.pick(smallest=PART, usual=None, full=None)
    rng = np.random.default_rng(seed)
    rows, pictures = [], []
    columns = ("log", "method", "state", "feature", "category", "mean", "lower", "upper")
    curves: dict[str, list[object]] = {name: [] for name in columns}
    for kind in size.pick(smallest=BOTH[1:], usual=BOTH, full=BOTH):
        whole = event_log(kind, rng)
        rows += shape_rows(whole)
        log = whole if part is None else whole.part(*part)
        released = released_table(log, release_name(log, size, seed), EPSILON, out / "war_logs")
        fitted = fit_all(log, released, n_sweeps, n_restarts, rng)
        rows += [
            clipping_row(log, released),
            *method_rows(log, fitted),
            coherence_row(log, fitted),
            *disagreement_rows(log, fitted),
        ]
        pictures += draw_all(out, log, fitted, n_drawn)
        for row in emission_rows(log, fitted):
            for column, value in zip(columns, row, strict=True):
                curves[column].append(value)
    return conclude(out, "war_logs", rows, pictures=pictures, curves=curves)


def emission_rows(log: EventLog, fitted: Fitted) -> list[tuple[object, ...]]:
    """Return the emissions of the shown restarts, with 95 % intervals; OPS has none."""
    rows: list[tuple[object, ...]] = []
    for method, states in fitted.shown.items():
        for feature, name in enumerate(log.features):
            for (state, place), mean in np.ndenumerate(states.emissions[feature]):
                ends: tuple[object, object] = ("", "")
                if method not in OPS:
                    ends = (states.lower[feature][state, place], states.upper[feature][state, place])
                category = log.categories[feature][place]
                rows.append((title_of(log), method, state + 1, name, category, mean, *ends))
    return rows
