"""Draw the figure of `cone.md`: one column's cone and that moved by a record; noise on products by columns.

It needs the extra ``plot``::

    PYTHONPATH=benchmarks python docs/figures/cone.py
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from cone_law import cube, formula, laplace, of_balls, trace_norm
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OUT = Path(__file__).with_name("cone.svg")
SEED = 1511
DRAWS = 600
REACH = 9.0
RECORD = 0.6
COLUMNS = (2, 3, 4, 5, 6, 8)
INK, GREY, PAPER = "#22303c", "#8593a0", "#ffffff"
CONE, LAPLACE, CUBE, TRACE = "#4c8eb4", "#d1495b", "#c28f2c", "#2f8f6b"


def draw_cone(axis: Axes, rng: np.random.Generator) -> None:
    """Draw P of one column, and the cone moved by a record."""
    matrices = of_balls(1, DRAWS, rng)
    for (x, n), colour, words in (((0.0, 0.0), CONE, "all P"), ((RECORD, 1.0), LAPLACE, "all H + P")):
        ends = np.array([-(REACH - n), 0.0, REACH - n]) + x
        axis.fill_between(ends, [REACH, n, REACH], REACH, color=colour, alpha=0.12, linewidth=0)
        axis.plot(ends, [REACH, n, REACH], color=colour, linewidth=1.6, label=words)
    axis.plot(matrices[:, 0, 1], matrices[:, 0, 0], "o", color=CONE, markersize=2.2, alpha=0.55)
    axis.annotate("", (RECORD, 1.0), (0.0, 0.0), arrowprops={"arrowstyle": "-|>", "color": INK, "shrinkB": 0})
    axis.text(RECORD + 0.35, 0.55, "a record H", color=INK, fontsize=10)
    axis.set(xlim=(-7.5, 7.5), ylim=(-0.3, REACH), xlabel="sum of the column", ylabel="number of rows")
    axis.legend(frameon=False, loc="lower left", labelcolor=GREY)
    axis.set_title(
        "Whatever P is, H + P is possible too", loc="left", fontsize=11, fontweight="bold", color=INK
    )


def draw_noise(axis: Axes, rng: np.random.Generator) -> None:
    """Draw standard deviations of the noise on a product by the number of columns."""
    lines = {
        "Laplace": (LAPLACE, [laplace(columns)[3] for columns in COLUMNS]),
        "L-infinity": (CUBE, [cube(columns)[3] for columns in COLUMNS]),
        "trace norm": (TRACE, [trace_norm(columns, rng)[3] for columns in COLUMNS]),
        "cone": (CONE, [formula(columns)[3] for columns in COLUMNS]),
    }
    heights = {"trace norm": 1.06, "cone": 0.94}
    for words, (colour, sds) in lines.items():
        axis.plot(COLUMNS, sds, "o-", color=colour, linewidth=1.8, markersize=4.5)
        place = sds[-1] * heights.get(words, 1.0)
        axis.text(COLUMNS[-1] * 1.05, place, words, color=colour, va="center", fontsize=10)
    axis.set(xscale="log", yscale="log", xlim=(1.85, 11.5))
    axis.set_xticks(COLUMNS, [str(columns) for columns in COLUMNS])
    axis.set_yticks([3, 5, 10, 20, 40], ["3", "5", "10", "20", "40"])
    axis.minorticks_off()
    axis.set(xlabel="columns", ylabel="standard deviation, epsilon 1")
    axis.set_title("Noise on a sum of products", loc="left", fontsize=11, fontweight="bold", color=INK)


def main() -> None:
    """Draw both panels."""
    rng = np.random.default_rng(SEED)
    mpl.rcParams.update({"font.family": "DejaVu Sans", "svg.fonttype": "path", "svg.hashsalt": "suffice"})
    figure = Figure(figsize=(10, 4.4), layout=ConstrainedLayoutEngine(wspace=0.06), facecolor=PAPER)
    left, right = figure.subplots(1, 2)
    draw_cone(left, rng)
    draw_noise(right, rng)
    for axis in (left, right):
        axis.tick_params(length=0, colors=GREY)
        axis.xaxis.label.set_color(GREY)
        axis.yaxis.label.set_color(GREY)
        axis.grid(color="#e6eaee", linewidth=0.8)
        axis.set_axisbelow(True)
        axis.spines[:].set_visible(False)
    figure.savefig(OUT, metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
