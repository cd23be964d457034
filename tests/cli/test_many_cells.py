"""Answers of releases of very many cells: what is printed is what is computed, and says of how many it is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.cli import output
from suffice.pipeline.ask.posterior import choice_of_engine
from suffice.storage.releases import location
from suffice.storage.releases.release_store import open_release
from support.many_cells import STATISTIC, publish_many_cells

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from support.running import Runner

SHOPS, DAYS = 25, 12
CELLS = SHOPS * DAYS
KEY = ("--where", "shop=7", "--where", "day=day 5")


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a release of 300 cells that stays in its files."""
    monkeypatch.setattr(location, "MOST_HELD", 0)
    return str(publish_many_cells(tmp_path / "store", "bernoulli", SHOPS, DAYS, np.random.default_rng(1)))


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets how many cells each posterior was worked out of."""
    cells: list[int] = []
    in_blocks = choice_of_engine.in_blocks

    def counted(
        statistic: NoisyStatistic, posterior: Callable[[NoisyStatistic], Posterior], progress: Any = None
    ) -> Posterior:
        cells.append(len(statistic.values))
        return in_blocks(statistic, posterior, progress)

    monkeypatch.setattr(choice_of_engine, "in_blocks", counted)
    return cells


@pytest.mark.slow
def test_a_posterior_computes_the_cells_that_it_prints(
    release: str, computed: list[int], suffice: Runner
) -> None:
    text = suffice.text("posterior", release, STATISTIC, "--prior", "Beta(1, 900)")
    assert sum(computed) <= 200
    assert text.startswith("the first 200 of 300 cells are computed, and all that is said here is of these")
    assert "... and 100 more cells, not computed: use --where, --all or --json" in text
    assert " of 200 cells: " in text  # the conflict
    whole = suffice.text("posterior", release, STATISTIC, "--prior", "Beta(1, 900)", "--all")
    assert "more cells" not in whole
    assert "are computed" not in whole
    assert " of 300 cells: " in whole
    shown, every = (  # but for the conflict, which is judged among all that are computed
        [line.split()[:-1] for line in printed.splitlines() if "probability " in line and " day " in line]
        for printed in (text, whole)
    )
    assert (len(shown), len(every)) == (200, CELLS)
    assert shown == every[:200]


def test_one_key_is_all_that_is_read_of_many(
    release: str, computed: list[int], suffice: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = suffice.json("posterior", release, STATISTIC)["rows"]
    estimates = suffice.json("table", release, STATISTIC)["rows"]
    computed.clear()

    def refused(*_: object) -> NoisyStatistic:
        raise AssertionError

    monkeypatch.setattr(location.StatisticFiles, "__getitem__", refused)
    (row,) = suffice.json("posterior", release, STATISTIC, *KEY)["rows"]
    assert computed == [1]
    (of_all,) = [each for each in whole if (each["shop"], each["day"]) == (7, "day 5")]
    numbers = ("mean", "sd", "lower", "upper")
    # One cell is worked out by blocks, hundreds by rules: they agree to what decision 166 states.
    of_both = ([each[name] for name in numbers] for each in (row, of_all))
    assert next(of_both) == pytest.approx(next(of_both), abs=0.02 * row["sd"])
    assert suffice.json("table", release, STATISTIC, *KEY)["rows"] == [
        each for each in estimates if (each["shop"], each["day"]) == (7, "day 5")
    ]
    assert f"{2 * CELLS} rows in" in suffice.text("show", release)
    opened = open_release(release)
    assert opened.posterior(STATISTIC, where={"shop": 7, "day": "day 5"}).n_groups == 1
    assert opened.plan_of(STATISTIC).name == STATISTIC
    assert len(opened.table(STATISTIC, {"shop": 7})) == 2 * DAYS


def test_a_table_says_of_how_many_cells_it_is(release: str, suffice: Runner, tmp_path: Path) -> None:
    text = suffice.text("table", release, STATISTIC)
    assert text.startswith("the first 100 of 300 cells are computed")
    assert "... and 200 more cells, not computed: use --where, --all or --json" in text
    whole = suffice.text("table", release, STATISTIC, "--all")
    assert len(whole.splitlines()) == 2 + 2 * CELLS
    out = tmp_path / "table.csv"
    suffice.text("table", release, STATISTIC, "--out", str(out))
    assert len(out.read_text(encoding="utf-8").splitlines()) == 1 + 2 * CELLS


@pytest.mark.slow
def test_files_hold_every_cell_while_the_text_is_of_few(
    release: str, suffice: Runner, tmp_path: Path
) -> None:
    out = tmp_path / "draws.csv"
    table, words = tmp_path / "table.csv", ("posterior", release, STATISTIC, "--draws", "2")
    text = suffice.text(*words, "--draws-out", str(out), "--out", str(table))
    assert text.startswith("the first 200 of 300 cells are computed")
    assert len(out.read_text(encoding="utf-8").splitlines()) == 1 + 2 * CELLS
    assert len(table.read_text(encoding="utf-8").splitlines()) == 1 + CELLS


@pytest.mark.slow
def test_two_sides_and_statements_are_of_the_same_few_cells(
    tmp_path: Path, suffice: Runner, computed: list[int]
) -> None:
    release = str(publish_many_cells(tmp_path, "bernoulli", 2, CELLS, np.random.default_rng(1)))
    words = ("posterior", release, STATISTIC, "--where", "shop=1", "--draws", "50")
    text = suffice.text(*words, "--versus", "shop=2", "--probability", "difference > 0")
    assert computed == [200, 200]
    assert text.startswith("the first 200 of 300 cells are computed")
    assert "more rows" not in text
    assert "more rows" not in suffice.text(*words, "--probability", "probability > 0.2")


@pytest.mark.slow
def test_a_million_cells_answer_for_one_key_in_seconds(tmp_path: Path, suffice: Runner) -> None:
    """Three seconds of a quiet machine."""
    release = str(publish_many_cells(tmp_path, "bernoulli", 1000, 1000, np.random.default_rng(1)))
    for words in (("posterior", release, STATISTIC), ("table", release, STATISTIC)):
        for chosen in (KEY, ()):
            started = time.process_time()
            suffice.text(*words, *chosen)
            assert time.process_time() - started < 3.0


def test_what_takes_long_shows_its_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where nothing of it has ended: one block of cells may take minutes."""
    monkeypatch.setattr(output, "_WORTH_SAYING", 0.01)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    progress = output.Progress("posterior", "cells", only_parts=True)
    time.sleep(0.1)
    progress(256, 256)
    lines = capsys.readouterr().err.split("\r")
    assert {line.strip() for line in lines[1:-1]} == {"posterior: 0 s so far"}
    assert lines[-1].strip() == "posterior: 256 of 256 cells"
    assert lines[-1].endswith("\n")
    time.sleep(0.1)
    assert capsys.readouterr().err == "", "it is over"
    monkeypatch.setattr(output, "_WORTH_SAYING", 60)
    output.Progress("posterior", "cells", only_parts=True)(256, 256)
    assert capsys.readouterr().err == "", "it took no time"
