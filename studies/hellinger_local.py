"""The Notes, Figure 1: the local sensitivity of Hellinger utility is attained at the data's own posterior.

For data x, the largest change of a candidate's score between x and a neighbour y is max over y of
|H(x, r) - H(y, r)|. By the triangle inequality it is at most H(x, y), and at r = BI(x) it is that. Prior
Dirichlet(7, 4, 5), 100 records, all 5,151 candidates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from studies.mechanisms.candidates import (
    global_sensitivity,
    hellinger,
    local_sensitivities,
    smooth_sensitivities,
    smoothness,
)
from studies.mechanisms.count_simplex import count_simplex
from studies.plotting import draw_limit, note_at, picture
from studies.result import Claim, Result, Row, Verdict, conclude, near
from suffice.plots.style import COLOURS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from studies.result import Size
    from suffice.typing import Floats

PRIOR = (7.0, 4.0, 5.0)
SHOWN = ((34, 33, 33), (50, 30, 20))
PICTURED = (31, 10, 9)
"""The data of the Notes' picture: posterior [38, 14, 14]."""
READ_OFF = 0.1354
"""The highest point of the picture, whose scale is read to .0005."""
EPSILON, DELTA = 0.8, 0.8
PRINTED = (
    ("3a", 100, 100, "0.08", "0.09"),
    ("3b", 120, 120, "0.0945", "0.096"),
    ("4", 150, 120, "0.0945", "0.096"),
)
"""Of a figure: records, outcomes that its beta is of, and local and smooth sensitivity as printed."""
CONCLUSION = (
    "Reproduced: for each data set the largest change is that at its own posterior. Printed constants carry "
    "slips: beta is that of n where the proof needs the number of candidates; the global sensitivity pairs "
    "counts of which one is -1; no data set has both sensitivities that are printed."
)


def neighbours_of(counts: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the counts that one replaced record leads to."""
    moves = [np.eye(len(counts), dtype=np.int64)[to] - np.eye(len(counts), dtype=np.int64)[of]
             for of in range(len(counts)) for to in range(len(counts)) if of != to]  # fmt: skip
    moved = np.array(counts) + np.array(moves)
    kept: NDArray[np.int64] = moved[(moved >= 0).all(axis=1)]
    return kept


def changes(counts: tuple[int, ...], candidates: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return each candidate's distance from the data's posterior, and the largest change of its score."""
    distances = hellinger(PRIOR, np.array([counts]), candidates)[0]
    others = hellinger(PRIOR, neighbours_of(counts), candidates)
    return distances, np.abs(others - distances).max(axis=0)


def rows_of_printed() -> list[Row]:
    """Return how many data sets have the local sensitivity as printed, and their largest smooth one."""
    rows = []
    for figure, n, outcomes, local, smooth in PRINTED:
        simplex = count_simplex(n, len(PRIOR))
        sensitivities = local_sensitivities(PRIOR, simplex)
        kept = np.abs(sensitivities - float(local)) <= 0.5 * 10.0 ** (2 - len(local))
        scales = smooth_sensitivities(PRIOR, simplex, smoothness(EPSILON, DELTA, outcomes))
        rows += [
            Row(
                quantity=f"Figure {figure}: data sets of {n} records with local sensitivity {local}",
                ours=int(kept.sum()),
                paper=">= 1",
                claim=Claim(low=1),
                note=f"of {len(sensitivities):,}; the paper does not say which",
            ),
            Row(
                quantity=f"Figure {figure}: largest smooth sensitivity of these, n = {n}",
                ours=float(scales[kept].max()),
                paper=smooth,
                claim=near(float(smooth), 0.5 * 10.0 ** (2 - len(smooth))),
                note="smooth is local for nine data sets in ten",
                digits=4,
            ),
        ]
    return rows


def run(out: Path, seed: int, size: Size) -> Result:
    """Enumerate all candidates of 100 records; every size is the same."""
    del seed, size
    simplex = count_simplex(100, 3)
    by_counts = {counts: changes(counts, simplex.counts) for counts in SHOWN}
    small = count_simplex(12, 3)
    attained = [
        float(change.max() - change[int(np.argmin(distance))])
        for distance, change in (changes(tuple(map(int, row)), small.counts) for row in small.counts)
    ]
    pictured = count_simplex(sum(PICTURED), 3)
    own_distance, own_change = changes(PICTURED, pictured.counts)
    infeasible = hellinger((0.0, 0.0), np.array([[3, 8]]), np.array([[4, 7]]))[0, 0]
    rows = [
        Row(
            quantity=f"local sensitivity at {counts}, n = 100",
            ours=float(change.max()),
            paper=printed,
            claim=near(float(printed), 0.005) if printed else None,
            digits=4,
            note="attained at r = BI(x)",
        )
        for (counts, (_, change)), printed in zip(by_counts.items(), ("0.08", ""), strict=True)
    ]
    rows += [
        Row(
            quantity=f"Figure 1: largest change at {PICTURED}, n = 50",
            ours=float(own_change.max()),
            paper=f"{READ_OFF:g} in the picture",
            claim=near(READ_OFF, 0.0005),
            note="the data of the picture: its posterior is [38, 14, 14]",
            digits=4,
        ),
        Row(
            quantity="largest excess over the change at r = BI(x), all x of 12 records",
            ours=max(attained),
            paper="0",
            claim=near(0.0, 1e-12),
        ),
        Row(
            quantity="least local sensitivity, n = 100",
            ours=float(local_sensitivities(PRIOR, simplex).min()),
            verdict=Verdict.ADDED,
            digits=4,
        ),
        Row(
            quantity="global sensitivity, DL(7, 4, 5)",
            ours=global_sensitivity(PRIOR, 100),
            paper="0.239992747797",
            claim=near(0.239992747797, 1e-12, Verdict.WRONG),
            note="attained at (n - 1, 0, 1), for every n",
            digits=12,
        ),
        Row(
            quantity="H of Dir(3, 8, .) and Dir(4, 7, .)",
            ours=float(infeasible),
            paper="0.239992747797",
            claim=near(0.239992747797, 1e-12),
            note="what the Notes took for the global one: a count of -1",
            digits=12,
        ),
    ]
    rows += [
        Row(
            quantity=f"beta, {outcomes:,} outcomes ({name})",
            ours=smoothness(EPSILON, DELTA, outcomes),
            paper=printed,
            claim=near(float(printed), 5e-14, Verdict.WRONG) if printed else None,
            verdict=Verdict.ADDED,
            note=note,
            digits=12,
        )
        for outcomes, name, printed, note in (
            (100, "n = 100", "0.0699407108115", ""),
            (120, "n = 120", "0.0677791100173", ""),
            (150, "n = 150", "0.0677791100173", "Figure 4 reprints the one of 120"),
            (5151, "|R| at n = 100", "", "what the proof needs; it does not hold even so"),
        )
    ]
    rows += rows_of_printed()
    path = out / "hellinger_local.png"
    with picture(
        path,
        title="A score changes most at the data's own posterior",
        subtitle=(
            "Largest change of each candidate's score over neighbours of $x$: in the order of the Notes' "
            r"picture (left), and by distance from $\mathrm{BI}(x)$"
        ),
        footer="The Notes, Figure 1; Dirichlet(7, 4, 5); 50 records on the left, else 100; enumerated.",
        panels=3,
        width=3.9,
    ) as axes:
        first = axes[0]
        first.scatter(np.arange(len(own_change)), own_change, s=4, color=COLOURS[0], linewidths=0)
        own_place = int(np.argmin(own_distance))
        draw_limit(first, own_place, r"$r = \mathrm{BI}(x)$ ", across=False, label_at_left=True)
        first.set_title(f"$x$ = {PICTURED}, as in the Notes")
        first.set_xlabel("candidate $r$, in ascending order")
        first.set_ylim(0.0, 0.1455)  # the picture's scale
        for place, (axis, (counts, (distance, change))) in enumerate(
            zip(axes[1:], by_counts.items(), strict=True)
        ):
            axis.scatter(distance, change, s=5, color=COLOURS[place], alpha=0.5, linewidths=0)
            top = int(np.argmin(distance))
            axis.scatter(distance[top], change[top], s=42, color=COLOURS[3], marker="D", zorder=3)
            note_at(
                axis,
                float(distance[top]),
                float(change[top]),
                rf"$r = \mathrm{{BI}}(x)$: {change[top]:.5f}",
                offset=(6, 9),
            )
            axis.set_title(f"$x$ = {counts}")
            axis.set_xlabel(r"$H(\mathrm{BI}(x), r)$")
            axis.set_ylim(0.0, 0.11)
        axes[0].set_ylabel(r"$\max_y\,|H(\mathrm{BI}(x), r) - H(\mathrm{BI}(y), r)|$")
    curves: dict[str, tuple[float, ...]] = {
        f"candidate, count {place + 1}": tuple(map(int, simplex.counts[:, place]))
        for place in range(len(PRIOR))
    }
    for counts, (distance, change) in by_counts.items():
        curves[f"H(BI(x), r), x = {counts}"] = tuple(distance)
        curves[f"largest change of the score, x = {counts}"] = tuple(change)
    return conclude(out, "hellinger_local", rows, pictures=[path], curves=curves)
