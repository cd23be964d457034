"""``suffice model hidden-markov``: what it prints and writes, comparisons, refusals before any work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.csv
import pytest

from suffice.cli import hidden_markov
from suffice.pipeline.ask.models.state_sampling import ALPHA, BETA, RATE, RESTARTS
from support.hidden_states import publish_crashes, publish_series

if TYPE_CHECKING:
    from pathlib import Path

    from support.running import Runner

WORDS = ("model", "hidden-markov", "crashes", "--chain", "STATE", "--time", "YEAR", "--time", "MONTH")
QUICK = ("--sweeps", "40", "--restarts", "2", "--seed", "1")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("hidden") / "store"
    publish_series(root, ("2013-01", "2013-02", "2013-03"))
    return publish_crashes(root)[0]


def test_a_fit_is_printed_with_every_choice(suffice: Runner, store: str) -> None:
    said = suffice.text(*WORDS, "--states", "2", "--store", store, *QUICK)
    header, _, first, second = said.splitlines()[:4]
    assert header.split() == ["state", "cells", "stays", "manner", "drunk"]
    assert first.startswith("1 ")
    assert "front: 0." in second  # where all cells together have a quarter
    assert "(+0.3" in second
    for line in (
        "priors: transitions Dirichlet(1), emissions Dirichlet(1), expected rows of a cell Gamma(1, 0.001)",
        "2 restarts of 40 sweeps, of the second half of which 20 draws are kept each",
        "statistics: manner, drunk",
        "release: crashes@all",
    ):
        assert line in said.splitlines()


@pytest.mark.slow
def test_json_has_all_numbers_and_a_seed_repeats_them(suffice: Runner, store: str) -> None:
    asked = (*WORDS, "--states", "2", "--store", store, *QUICK)
    document = suffice.json(*asked)
    assert document == suffice.json(*asked)
    assert (document["states"], document["seed"], document["releases"]) == (2, 1, ["crashes@all"])
    assert len(document["cells"]) == 6 * 24
    assert {row["parameter"] for row in document["rows"]} == {"share", "start", "transition", "emission"}
    assert set(document["diagnostics"]["r_hat"]) <= {"log_joint", "state_entropy"}
    kept = suffice.json(*asked, "--where", "STATE=CA", "--statistic", "drunk")
    assert (len(kept["cells"]), kept["statistics"]) == (24, ["drunk"])


@pytest.mark.slow
def test_draws_and_pictures_are_written_and_replaced_only_when_asked(
    suffice: Runner, store: str, tmp_path: Path
) -> None:
    out, pictures = tmp_path / "draws.csv", tmp_path / "pictures"
    asked = (
        *WORDS,
        "--states",
        "2",
        "--store",
        store,
        *QUICK,
        "--draws-out",
        str(out),
        "--plot",
        str(pictures),
    )
    said = suffice.text(*asked)
    assert f"wrote {out}" in said
    assert sorted(path.name for path in pictures.iterdir()) == [
        "emissions.png",
        "states.png",
        "trace.png",
        "transitions.png",
    ]
    table = pyarrow.csv.read_csv(out)
    assert table.num_rows == 40 * (2 + 2 + 4 + 8 + 4)
    assert "the file exists" in suffice.text(*asked, status=2)
    suffice.text(*asked[:-2], "--overwrite")


@pytest.mark.slow
def test_several_numbers_of_states_are_compared(suffice: Runner, store: str) -> None:
    asked = (*WORDS, "--states", "2", "--states", "3", "--splits", "2", "--store", store)
    few = ("--sweeps", "8", "--draws", "4", "--restarts", "1", "--seed", "1")
    document = suffice.json(*asked, *QUICK)
    assert [row["states"] for row in document["rows"]] == [1, 2, 3]
    assert document["rows"][1]["difference"] > 0.0
    assert (document["splits"], document["holdout"]) == (2, 0.1)
    document, said = suffice.json(*asked, *few), suffice.text(*asked, *few)
    rough = max(row["r_hat"] for row in document["rows"]) > 1.05
    assert ("restarts do not agree in some split" in said) == rough
    assert f"highest score: {document['best']} states" in said
    assert "one number of states" in suffice.text(*asked, "--draws-out", "draws.csv", status=2)


def test_windows_of_a_series_are_time(suffice: Runner, store: str) -> None:
    releases = [f"monthly@2013-0{month}" for month in (3, 1, 2)]
    document = suffice.json(
        "model", "hidden-markov", *releases, "--chain", "STATE", "--states", "2", "--store", store, *QUICK
    )
    assert document["time"] == ["window"]
    assert [cell["window"] for cell in document["cells"][:3]] == ["2013-01", "2013-02", "2013-03"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--states", "0"), "states is an integer"),
        (("--states", "2", "--time", "DAY"), "its groups are STATE, YEAR, MONTH"),
        (("--states", "2", "--project", "clip"), "project is a choice of method plug-in"),
        (("--states", "2", "--splits", "3"), "splits is of comparisons"),
        (("--states", "2", "--mass", "2"), "mass"),
        (("--states", "2", "--draws", "0"), "--draws 0"),
        (("--states", "2", "--draws-out", "draws.txt"), "--draws-out draws.txt"),
        (("--states", "2", "--statistic", "age"), "no statistic 'age'"),
    ],
)
def test_refusals(suffice: Runner, store: str, words: tuple[str, ...], said: str) -> None:
    assert said in suffice.json(*WORDS, "--store", store, *words, status=2)["error"]["message"]


def test_the_defaults_of_the_command_are_those_of_python() -> None:
    """The options state them, so that nothing heavy is imported to read a command's words."""
    import inspect

    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(hidden_markov.hidden_markov).parameters.items()
    }
    known = {
        "restarts": RESTARTS,
        "alpha": ALPHA,
        "beta": BETA,
        "rate": RATE,
    }
    assert {name: defaults[name] for name in known} == known
