"""Runs a page as a reader would: block after block, in a folder of its own."""

from __future__ import annotations

import os
import re
import runpy
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import suffice
from suffice.cli.demo import run_demo
from support.page_blocks import read_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

    from support.page_blocks import Block, Page
    from support.running import Runner

REPOSITORY = Path(__file__).resolve().parents[2]
GRANT = shlex.split('ledger grant nycflights13 --epsilon 2 --reason "2013 reporting" --source data')
MONTHLY = """\
name: monthly
dataset: nycflights13
source: {parquet: data/flights}
window:
  {column: flight_date, every: month, time_zone: America/New_York, lag: 3 days, amend: [7 days, 30 days]}
privacy: {epsilon: "0.25", neighboring: add_or_remove_one}
groups: {origin: [EWR, JFK, LGA]}
statistics:
  cancelled: {family: bernoulli, column: cancelled}
"""
RELEASE = """\
name: flights-by-origin
dataset: nycflights13
source: {parquet: data/flights}
privacy: {epsilon: "0.5", neighboring: add_or_remove_one}
groups: {origin: [EWR, JFK, LGA]}
statistics:
  cancelled: {family: bernoulli, column: cancelled}
  arr_delay: {family: normal, column: arr_delay, lower: -60, upper: 180}
"""


def demo(_: Runner) -> dict[str, Any]:
    """Make what `make demo` makes, in the working directory."""
    run_demo(Path(), quiet=True)
    return {}


def after_the_first_tutorial(runner: Runner) -> dict[str, Any]:
    """Make what the first tutorial makes."""
    names = demo(runner)
    blocks = read_page(REPOSITORY / "docs/tutorial/first-release.md").blocks
    (spec,) = [block for block in blocks if "file" in block.marks]
    Path(spec.marks["file"]).write_text(spec.text, encoding="utf-8")
    runner.text("release", spec.marks["file"])
    return names


def releases(_: Runner) -> dict[str, Any]:
    """Make the releases of the gallery, under the names that pages give them."""
    gallery = runpy.run_path(str(REPOSITORY / "docs/figures/gallery.py"))
    store = Path("releases")
    gallery["make_releases"](store)
    grid = {"groups": {"origin": gallery["ORIGINS"]}}
    entries = {"cancelled": gallery["CANCELLED"], "arr_delay": gallery["DELAY"]}
    truth = {"cancelled": np.full(3, 0.03), "arr_delay": np.array([[8.0, 1400.0]] * 3)}
    for name in ("flights-by-origin", "first", "second"):
        rng = np.random.default_rng(13)
        sizes = np.array([900, 420, 160])
        gallery["release"](store, {"name": name, **grid}, entries, truth, sizes, rng)
    months = {"groups": {"county": {"range": ["1", "30"]}, "month": {"range": ["1", "4"]}}}
    ill = {"ill": {"family": "bernoulli", "column": "ill"}}
    rng = np.random.default_rng(13)
    rate = {"ill": np.repeat(rng.beta(4.0, 30.0, 30), 4)}
    gallery["release"](store, {"name": "counties-by-month", **months}, ill, rate, np.full(120, 200), rng)
    write_operators_files()
    opened = {name: suffice.open_release(f"flights@2013-{number}") for name, number in MONTHS.items()}
    return {**opened, "release": suffice.open_release("flights-by-origin")}


def published(_: Runner) -> dict[str, Any]:
    """Draw tables in the shape of published ones from the demo's flights."""
    run_demo(Path(), quiet=True)
    tables = runpy.run_path(str(REPOSITORY / "docs/figures/published_tables.py"))
    tables["main"]()
    return {}


MONTHS = {"january": "01", "february": "02"}


def operator(runner: Runner) -> dict[str, Any]:
    """Write rows and specs, and grant a budget."""
    write_operators_files()
    runner.text(*GRANT, "--create")
    return {}


def windows(runner: Runner) -> dict[str, Any]:
    """Write rows and specs, grant a budget for each month, and release February."""
    write_operators_files()
    runner.text(*GRANT, "--per-window", "flight_date:month:America/New_York", "--create")
    Path("spec.yaml").write_text(
        MONTHLY.replace("name: monthly", "name: flights-by-origin"), encoding="utf-8"
    )
    runner.text("release", "spec.yaml", "--window", "2013-02")
    return {}


def owner(_: Runner) -> dict[str, Any]:
    """Write rows and specs, for a reader who grants first."""
    write_operators_files()
    return {}


def trees(_: Runner) -> dict[str, Any]:
    """Write flights by airport, and the public table of airports."""
    runpy.run_path(str(REPOSITORY / "docs/figures/tree.py"))["write_rows"](Path())
    return {}


PLACES: dict[str, Callable[[Runner], dict[str, Any]]] = {
    place.__name__: place
    for place in (demo, after_the_first_tutorial, releases, owner, operator, windows, published, trees)
}
"""What pages find where they are run: functions that fill the working directory and give names to Python."""


def write_operators_files() -> None:
    """Write flights of the first months of 2013, and two specs over them."""
    rng = np.random.default_rng(13)
    n = 900
    day = np.datetime64("2013-01-01") + rng.integers(0, 365, n)
    table = pa.table(
        {
            "flight_date": pa.array(day),
            "origin": rng.choice(["EWR", "JFK", "LGA"], n),
            "cancelled": rng.random(n) < 0.03,
            "arr_delay": rng.normal(7, 40, n),
        }
    )
    Path("data/flights").mkdir(parents=True)
    pq.write_table(table, "data/flights/part-0.parquet")
    Path("monthly.yaml").write_text(MONTHLY, encoding="utf-8")
    Path("release.yaml").write_text(RELEASE, encoding="utf-8")


def run_page(page: Page, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every block of a page but those that say that they are not, or are elsewhere.

    Commands of `suffice` run in this process; an `export` holds for the rest of the page. What a block says
    is printed must be among what was: numbers, hashes and the widths of columns may differ.
    """
    for name in [name for name in os.environ if name.startswith("SUFFICE_")]:
        monkeypatch.delenv(name)
    names = {"suffice": suffice, **PLACES[page.marks["runs in"]](runner)}
    runner.capsys.readouterr()
    said = ""
    for block in page.blocks:
        if {"not run", "run by"} & block.marks.keys():
            continue
        place = f"{page.path.name}:{block.line}"
        if "file" in block.marks:
            Path(block.marks["file"]).write_text(block.text, encoding="utf-8")
        elif "prints" in block.marks:
            missing = not_printed(block.text, said)
            assert not missing, f"{place}: {missing} is not in\n{said}"
        elif block.language == "python":
            exec(compile(block.text, place, "exec"), names)  # noqa: S102 - our own text
            said = runner.capsys.readouterr().out
        else:
            assert block.language in {"", "sh", "bash"}, place
            said = run_commands(block, runner, monkeypatch, place)


def run_commands(block: Block, runner: Runner, monkeypatch: pytest.MonkeyPatch, place: str) -> str:
    """Run the commands of a block; the last one ends with the status that the block states."""
    listed = list(commands(block.text))
    said = ""
    for number, words in enumerate(listed, start=1):
        status = int(block.marks.get("exit", 0)) if number == len(listed) else 0
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            monkeypatch.setenv(name, value)
        else:
            assert words[0] == "suffice", f"{place}: {words} is no command of suffice; mark the block"
            said += runner.text(*words[1:], status=status)
    return said


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of a block; comments are left out."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


def not_printed(expected: str, said: str) -> list[str]:
    """Return the lines of a block that were not printed, but for numbers, hashes and spaces."""
    printed = {shape(line) for line in said.splitlines()}
    return [line for line in expected.splitlines() if shape(line) not in {*printed, "", "..."}]


def shape(line: str) -> str:
    """Return a line with its numbers and hashes as ``#``, rules as one dash and spaces as one."""
    line = re.sub(r"\b(?=\w*\d)[0-9a-f]{12,}(\.\.\.)?", "#", line)
    line = re.sub(r"(?<![\w.])-?\d[\d,]*(\.\d+)?(e[+-]?\d+)?", "#", line)
    return " ".join(re.sub(r"-{3,}", "-", line).split())
