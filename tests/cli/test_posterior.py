"""The command that prints posteriors: its fields, its text, draws, plots, cards and warnings."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.making import Workspace, flights, write_parts
from support.running import Runner, spec_file


@pytest.mark.slow
def test_posteriors_state_method_prior_and_rows(
    workspace: Workspace, suffice: Runner, tmp_path: Path
) -> None:
    suffice.json("release", spec_file(workspace))
    document = suffice.json("posterior", "flights", "cancelled", "--prior", "Beta(1, 9)", "--seed", "7")
    assert (document["method"], document["prior"], document["mass"]) == ("noise-aware", "Beta(1, 9)", 0.95)
    assert [row["origin"] for row in document["rows"]] == ["EWR", "JFK", "LGA"]
    for row in document["rows"]:
        assert set(row) == {"origin", "parameter", "mean", "sd", "lower", "upper"}
        assert 0 <= row["lower"] < row["mean"] < row["upper"] <= 1
    same = suffice.json("posterior", "flights", "cancelled", "--prior", "Beta(1, 9)", "--seed", "7")
    assert same == document
    other = suffice.json("posterior", "flights", "cancelled", "--prior", "Beta(50, 50)")
    assert all(a["mean"] < b["mean"] for a, b in zip(document["rows"], other["rows"], strict=True))
    shares = suffice.json("posterior", "flights", "carrier", "--where", "origin=JFK")["rows"]
    assert [row["category"] for row in shares] == ["UA", "DL", "other"]
    assert sum(row["mean"] for row in shares) == pytest.approx(1, abs=1e-6)
    for family, parameters in (("stops", {"rate"}), ("arr_delay", {"mean", "variance"})):
        plug_in = suffice.json("posterior", "flights", family, "--method", "plug-in")
        assert plug_in["method"] == "plug-in"
        assert {row["parameter"] for row in plug_in["rows"]} == parameters
    out, plot = tmp_path / "draws.parquet", tmp_path / "plot.svg"
    files = ("--draws-out", str(out), "--plot", str(plot))
    suffice.text("posterior", "flights", "carrier", "--draws", "50", *files)
    draws = pq.read_table(out)
    assert draws.column_names == ["origin", "category", "draw", "parameter", "value"]
    assert draws.num_rows == 3 * 3 * 50
    assert "<svg" in plot.read_text(encoding="utf-8")


def test_a_posterior_says_what_it_rests_on(workspace: Workspace, suffice: Runner) -> None:
    suffice.json("release", spec_file(workspace))
    document = suffice.json(
        "posterior", "flights", "cancelled", "--n-prior", "Uniform(0, 900)", "--seed", "3"
    )
    assert (document["n_prior"], document["draws"], document["seed"]) == ("Uniform(0, 900)", 4000, 3)
    text = suffice.text("posterior", "flights", "cancelled")
    assert "4000 draws" in text
    assert f"release: {document['release']}" in text
    assert document["release"] == "flights@all"
    assert "whole number" in suffice.text("posterior", "flights", "cancelled", "--n-prior", "-4", status=2)


@pytest.mark.slow
def test_a_posterior_says_what_does_not_exist_and_what_was_written(
    workspace: Workspace, suffice: Runner, tmp_path: Path
) -> None:
    suffice.json("release", spec_file(workspace))
    table, draws = tmp_path / "table.csv", tmp_path / "draws.csv"
    words = ("posterior", "flights", "stops", "--draws", "100")
    terms, files = ("--prior", "HalfCauchy(2)", "--clipping", "modelled"), ("--out", str(table))
    heavy = suffice.text(*words, *terms, *files, "--draws-out", str(draws))
    assert "left out do not exist" in heavy
    assert f"wrote {table}: the table\nwrote {draws}: posterior draws" in heavy
    columns = "origin,parameter,mean,sd,lower,upper,conflict"
    head, *rows = table.read_text(encoding="utf-8").replace('"', "").splitlines()
    assert (head, len(rows)) == (columns, 3)
    assert len(draws.read_text(encoding="utf-8").splitlines()) == 1 + 3 * 100
    assert "--draws-out" in suffice.text("posterior", "--help")
    assert "must end in .csv or .parquet" in suffice.text(*words, "--out", "draws.nc", status=2)
    plain = suffice.text(*words)
    assert "do not exist" not in plain
    assert "wrote" not in plain


def test_the_highest_cell_is_named_with_how_sure_that_is(workspace: Workspace, suffice: Runner) -> None:
    suffice.json("release", spec_file(workspace))
    words = ("posterior", "flights", "cancelled", "--seed", "3")
    document = suffice.json(*words, "--highest", "1")
    rows = document["highest"]
    shares = [row["probability"] for row in rows]
    assert sum(shares) == pytest.approx(1.0)
    assert shares == sorted(shares, reverse=True)
    assert {row["origin"] for row in rows} == {row["origin"] for row in document["rows"]}
    text = suffice.text(*words, "--highest", "2")
    assert "probability of being among the 2 highest, of joint draws of all cells" in text
    assert "1..2, below the number of cells, not 3" in suffice.text(*words, "--highest", "3", status=2)
    versus = ("--where", "origin=JFK", "--versus", "origin=LGA", "--highest", "1")
    assert "--highest shows one side" in suffice.text(*words, *versus, status=2)


@pytest.mark.slow
def test_how_far_a_posterior_moves_is_told(workspace: Workspace, suffice: Runner) -> None:
    suffice.json("release", spec_file(workspace))
    words = ("posterior", "flights", "cancelled", "--where", "origin=JFK", "--seed", "3")
    document = suffice.json(*words, "--robustness", "--mass", "0.9")
    stated, *moved = document["robustness"]
    (row,) = document["rows"]
    assert stated["mean_least"] == pytest.approx(row["mean"], rel=1e-4)
    assert [each["prior"] for each in moved] == [
        "10 % any other",
        "density within a factor 2",
        "moved by 1 sd",
        "one record more or less",
        "noise drawn again",
    ]
    for each in moved:
        assert each["mean_least"] < stated["mean_least"] < each["mean_most"]
        assert each["lower_least"] < stated["lower_least"] < each["lower_most"]
    printed = suffice.text(*words, "--robustness")
    assert "how far mean and central 95 % interval move with the prior, one record and the noise" in printed
    assert "\n10 % any other: 10 % of the prior's probability is taken" in printed
    assert "of 400 redraws; Monte Carlo standard errors" in printed
    assert "one record changes log likelihoods by at most L =" in printed
    assert "_least" not in printed
    # The range of a mean has the digits of the mean above it, and stands in one column.
    mean, rest = printed.split("how far mean")
    (shown,) = re.findall(r"probability  (0\.\d+)", mean)
    stated_line = next(line for line in rest.splitlines() if "as stated" in line)
    assert stated_line.split("as stated")[1].split()[0] == shown
    assert re.search(r"any other +0\.\d+\.\.0\.\d+ ", rest)
    unlike = suffice.text(*words, "--robustness", "--interval", "highest-density")
    assert (
        "lower and upper are ends of the central interval, with 2.5 % of the posterior beyond each" in unlike
    )
    assert "the table above has" not in suffice.text(*words, "--robustness", "--interval", "central")
    versus = ("--versus", "origin=LGA", "--robustness")
    assert "--robustness shows one side" in suffice.text(*words, *versus, status=2)


@pytest.mark.slow
def test_a_posterior_is_written_as_a_card(workspace: Workspace, suffice: Runner, tmp_path: Path) -> None:
    suffice.json("release", spec_file(workspace))
    page = tmp_path / "card.html"
    words = ("posterior", "flights", "cancelled", "--seed", "7", "--draws", "300", "--card")
    assert len(suffice.json(*words, str(page))["rows"]) == 3
    text = page.read_text(encoding="utf-8")
    assert "flights@all: cancelled" in text
    assert "<td>JFK</td>" in text
    assert "300 a cell, seed 7" in text
    assert "--card" in suffice.text(*words, str(tmp_path / "card.txt"), status=2)


@pytest.mark.slow
def test_a_posterior_says_which_records_it_is_of(
    workspace: Workspace, suffice: Runner, tmp_path: Path
) -> None:
    """Two stops on average below a bound of 2, three in ten clipped: the warning names no cell's data."""
    stops = {"family": "poisson", "column": "stops", "upper": 2}
    flag = {"family": "bernoulli", "column": "cancelled"}
    spec = {"statistics": {"stops": stops, "wide": {**stops, "upper": 40}, "flag": flag}}
    write_parts(flights(6000), workspace.data)
    suffice.json("release", spec_file(workspace, **spec))
    page = tmp_path / "card.html"
    document = suffice.json("posterior", "flights", "stops", "--card", str(page))
    assert not document["clipping"]["is_warned"]
    assert all(cell["share"] is None and not cell["is_modelled"] for cell in document["clipping"]["cells"])
    assert all(row["upper"] <= 2.0 for row in document["rows"])
    assert document["estimand"].startswith("of the records as the public bounds leave them")
    assert suffice.text("posterior", "flights", "stops").startswith(document["estimand"])
    assert "They are of the records as the public bounds leave them" in page.read_text(encoding="utf-8")
    modelled = ("posterior", "flights", "stops", "--clipping", "modelled")
    told = suffice.json(*modelled)["clipping"]
    assert [cell["origin"] for cell in told["cells"]] == ["EWR", "JFK", "LGA"]
    assert all(0.1 < cell["share"] < 0.4 and cell["bias"] > 1 for cell in told["cells"])
    assert all(cell["is_modelled"] and cell["is_warned"] for cell in told["cells"])
    text = suffice.text(*modelled)
    assert text.startswith("of records before clipping in 3 of 3 cells")
    assert "the model's extrapolation" in text
    refused = suffice.json(*modelled[:-1], "sometimes", status=2)["error"]
    assert "by-evidence, modelled or ignored" in refused["message"]
    plug_in = ("posterior", "flights", "stops", "--method", "plug-in")
    assert not suffice.json(*plug_in)["clipping"]["is_warned"]
    assert suffice.json("posterior", "flights", "flag")["clipping"] is None


MANY = 2500
"""Cells that take several blocks."""


@pytest.mark.slow
def test_outputs_say_where_a_default_prior_decides(suffice: Runner, tmp_path: Path) -> None:
    release = str(Path(__file__).parents[1] / "vectors" / "valid" / "negative" / "release")
    said = "the default prior decides 95 % intervals, or their far ends, of probability in 3 of 3 cells: the"
    card = tmp_path / "card.html"
    assert said in suffice.text("posterior", release, "cancelled", "--card", str(card))
    assert f"T{said[1:]}" in card.read_text(encoding="utf-8")
    (line,) = suffice.json("posterior", release, "cancelled")["decided_by_default"]
    assert line.startswith(said)
    assert (
        suffice.json("posterior", release, "cancelled", "--prior", "Beta(1, 9)")["decided_by_default"] == []
    )


@pytest.mark.slow
def test_a_posterior_of_many_cells_shows_progress_and_ends_when_interrupted(
    workspace: Workspace, suffice: Runner, tmp_path: Path
) -> None:
    statistic = {"family": "bernoulli", "column": "cancelled"}
    spec = spec_file(
        workspace,
        groups={"stops": {"range": ["0", str(MANY - 1)]}},
        statistics={"cancelled": statistic},
    )
    suffice.json("release", spec)
    out, plot = tmp_path / "draws.csv", tmp_path / "plot.svg"
    words = ["flights", "cancelled", "--draws-out", str(out), "--plot", str(plot), "--draws", "2"]
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "suffice", "posterior", *words, "--store", workspace.store]
    # Who runs tests in the background has it ignored, and children with them.
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        signal.signal(signal.SIGINT, ignored)
        os.close(theirs)
        shown = _read_until(ours, f" of {MANY} cells".encode())
        process.send_signal(signal.SIGINT)
        shown += _read_until(ours, None)
        os.close(ours)
        printed = process.communicate()[0]
    assert b"posterior: " in shown
    assert f"intervals: {MANY}".encode() not in shown
    assert (process.returncode, printed) == (130, "")
    assert b"interrupted" in shown
    assert list(tmp_path.glob("draws*")) == list(tmp_path.glob("plot*")) == []
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    # Unwatched, it is quiet, and shows all cells in one plot.
    suffice.text("posterior", *words)
    text = plot.read_text(encoding="utf-8")
    assert "Every cell's median and 95 % highest-density interval, in the order of the medians" in text
    assert len(out.read_text(encoding="utf-8").splitlines()) == 1 + 2 * MANY


def _read_until(terminal: int, wanted: bytes | None) -> bytes:
    """Return what was shown on a terminal up to some bytes, or to its end."""
    shown = b""
    while wanted is None or wanted not in shown:
        try:
            more = os.read(terminal, 4096)
        except OSError:  # how Linux tells the end of a terminal
            break
        if not more:
            break
        shown += more
    return shown
