"""``suffice model transitions`` and ``predict``: what they print, write and refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from suffice import models, open_release
from suffice.pipeline.spec.plan import compile_plan
from support.model_releases import CONJUGATE, PLACES, STATISTICS, model_spec, publish_models
from support.releases import publish

if TYPE_CHECKING:
    from pathlib import Path

    from support.running import Runner

FEW = ("--draws", "200", "--seed", "7", "--method", "plug-in")
ROWS = {
    "origin": ["JFK", "LGA", "XXX", "JFK"],
    "departure": [10.0, 80.0, 1.0, None],
    "distance": [900, 500, 500, 500],
}


@pytest.fixture
def store(tmp_path: Path) -> str:
    return publish_models(tmp_path / "store")


@pytest.fixture
def transitions(store: str) -> tuple[str, ...]:
    return ("model", "transitions", "models", "steps", "--store", store, *FEW)


@pytest.fixture
def predict(store: str, tmp_path: Path) -> tuple[str, ...]:
    data = tmp_path / "rows.csv"
    pc.write_csv(pa.table(ROWS), data)
    words = ("model", "predict", "models", "arrival", "--store", store, *FEW)
    return (*words, "--prior", CONJUGATE, "--data", str(data))


def test_transitions_are_those_of_the_library(
    transitions: tuple[str, ...], store: str, suffice: Runner
) -> None:
    asked = ("--steps", "2", "--steps", "5", "--from", "b", "--to", "c", "--mass", "0.8")
    document = suffice.json(*transitions, *asked)
    chain = models.chain(open_release("models", store=store), "steps", method="plug-in", draws=200, rng=7)
    assert document["rows"] == chain.rows(0.8, steps=[2, 5], to=["c"], start="b")
    assert document["states"] == ["a", "b", "c"]
    assert document["undefined_share"] == 0.0
    assert document["plug_in"]
    text = suffice.text(*transitions, *asked, "--where", "origin=LGA")
    assert "after_5" in text
    assert "JFK" not in text
    assert "prior: Dirichlet(1)" in text
    assert "their means need not exist" in text


def test_a_long_run_that_depends_on_the_start_is_said(tmp_path: Path, suffice: Runner) -> None:
    """Nothing was seen, and the prior is so sparse that all draws are zeros and ones."""
    plan = compile_plan(model_spec(statistics={"steps": STATISTICS["steps"]}))
    publish(tmp_path / "empty", plan, {"steps": np.zeros((2, 9), dtype=object)})
    words = ("model", "transitions", "models", "steps", "--store", str(tmp_path / "empty"), *FEW)
    sparse = (*words, "--prior", "Dirichlet(0.000001)")
    assert 0.1 < suffice.json(*sparse)["undefined_share"] < 0.9
    assert "the stationary distribution is not defined in up to" in suffice.text(*sparse)
    assert "is not defined" not in suffice.text(*words)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_draws_of_transitions_are_written(
    transitions: tuple[str, ...], tmp_path: Path, suffice: Runner, suffix: str
) -> None:
    path = tmp_path / f"draws{suffix}"
    words = (*transitions, "--steps", "2", "--draws-out", str(path))
    rows = suffice.json(*words)["rows"]
    assert "the file exists" in suffice.text(*words, status=2)
    assert suffice.json(*words, "--overwrite")["rows"] == rows
    table = (pc.read_csv(path) if suffix == ".csv" else pq.read_table(path)).to_pandas()
    assert len(table) == 200 * len(rows)
    of_law = table[(table["parameter"] == "stationary") & (table["origin"] == "JFK")]
    np.testing.assert_allclose(of_law.groupby("draw")["value"].sum(), 1.0)
    (shown,) = [
        row
        for row in rows
        if (row["origin"], row["quantity"], row["from"], row["to"]) == ("LGA", "after_2", "a", "c")
    ]
    summary = path.with_name(f"table{suffix}")
    suffice.text(*transitions, "--steps", "2", "--out", str(summary))
    read = pc.read_csv(summary) if suffix == ".csv" else pq.read_table(summary)
    assert read.num_rows == len(rows)
    written = table.query("origin == 'LGA' and parameter == 'after_2' and `from` == 'a' and to == 'c'")
    np.testing.assert_allclose(written["value"].mean(), shown["mean"], rtol=1e-12)


@pytest.mark.slow
def test_chains_are_drawn(transitions: tuple[str, ...], tmp_path: Path, suffice: Runner) -> None:
    for name, start in (("chain.png", b"\x89PNG"), ("chain.svg", b"<?xml")):
        suffice.text(*transitions, "--plot", str(tmp_path / name))
        assert (tmp_path / name).read_bytes().startswith(start)
    drawn = (tmp_path / "chain.svg").read_text()
    assert "origin=JFK" in drawn
    assert "share of time in the long run" in drawn


def test_predictions_are_those_of_the_library(predict: tuple[str, ...], store: str, suffice: Runner) -> None:
    document = suffice.json(*predict)
    regression = models.regression(
        open_release("models", store=store), "arrival", prior=CONJUGATE, method="plug-in", draws=200, rng=7
    )
    predicted = regression.predict(ROWS)
    assert document["rows"] == predicted.rows()
    assert document["counts"] == predicted.counts
    assert document["counts"] == {
        "rows": 4,
        "predicted": 2,
        "extrapolated": 1,
        "incomplete": 1,
        "of_no_cell": 1,
    }
    assert document["outcome"] == "arrival"
    text = suffice.text(*predict)
    for said in (
        "arrival is predicted for 2 of 4 rows",
        "no prediction for 1 row without some predictor",
        "no prediction for 1 row of no selected cell",
        "extrapolated for 1 row beyond the public bounds of predictors (departure -20..60, distance 0..2000)",
    ):
        assert said in text


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_predictions_are_written(
    predict: tuple[str, ...], tmp_path: Path, suffice: Runner, suffix: str
) -> None:
    rows, path = tmp_path / "rows.parquet", tmp_path / f"predicted{suffix}"
    pq.write_table(pa.table(ROWS), rows)
    expected = suffice.json(*predict)["rows"]
    document = suffice.json(*predict[:-1], str(rows), "--out", str(path))
    assert "rows" not in document
    assert "the file exists" in suffice.text(*predict, "--out", str(path), status=2)
    assert f"wrote {path}" in suffice.text(*predict, "--out", str(path), "--overwrite")
    table = pc.read_csv(path) if suffix == ".csv" else pq.read_table(path)
    for row, written in zip(expected, table.to_pylist(), strict=True):
        assert {name: written[name] or None for name in row if name != "row"} == {
            name: value or None for name, value in row.items() if name != "row"
        }


def test_long_tables_are_cut_and_counted(predict: tuple[str, ...], tmp_path: Path, suffice: Runner) -> None:
    rows = tmp_path / "many.csv"
    pc.write_csv(
        pa.table({"origin": list(PLACES) * 150, "departure": [1.0] * 300, "distance": [1] * 300}), rows
    )
    assert "... and 100 more rows: use --json or --out" in suffice.text(*predict[:-1], str(rows))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from", "a"), "--from says where --steps starts"),
        (("--steps", "2", "--from", "d"), "no state 'd'"),
        (("--to", "d"), "no state 'd'"),
        (("--steps", "-1"), "steps"),
        (("--where", "carrier=UA"), "carrier"),
        (("--plot", "chain.gif"), "--plot chain.gif"),
        (("--out", "draws.txt"), "--out draws.txt"),
        (("--draws", "0"), "--draws"),
        (("--prior", "Beta(1, 1)"), "Beta"),
    ],
)
def test_what_transitions_cannot_do_is_refused(
    transitions: tuple[str, ...], suffice: Runner, words: tuple[str, ...], said: str
) -> None:
    assert said in suffice.text(*transitions[:6], *words, status=2)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no such file"),
        ("origin,departure\nJFK,1\n", "no column distance"),
        ("departure,distance\n1,2\n", "'origin'"),
        ("origin,departure,distance\nJFK,canary,2\n", "'departure' must hold numbers"),
        ("origin,departure,distance,departure\nJFK,1,2,3\n", "departure"),
        ("", "cannot be read as CSV"),
    ],
)
def test_what_cannot_be_predicted_is_refused(
    predict: tuple[str, ...], tmp_path: Path, suffice: Runner, content: str | None, said: str
) -> None:
    path = tmp_path / "bad.csv"
    if content is not None:
        path.write_text(content)
    message = suffice.text(*predict[:-1], str(path), status=2)
    assert said in message
    assert "canary" not in message
    assert "must end in .csv or .parquet" in suffice.text(*predict[:-1], "rows.txt", status=2)
