"""``suffice model classify`` and ``query``: files in and out, what is printed, what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from suffice import models
from suffice.cli import app
from suffice.cli.predict import read_data
from suffice.storage.releases.release_store import open_release
from support.table_releases import ROWS_CSV, publish_tables

if TYPE_CHECKING:
    from pathlib import Path

    from support.running import Runner

FEW = ("--method", "plug-in", "--draws", "50", "--seed", "7")


@pytest.fixture
def store(tmp_path: Path) -> str:
    publish_tables(tmp_path / "store")
    return str(tmp_path / "store")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS_CSV, encoding="utf-8")
    return path


def test_rows_of_a_file_are_classified_as_by_the_library(
    store: str, data: Path, suffice: Runner, tmp_path: Path
) -> None:
    words = ("model", "classify", "tables", "late", "--store", store, "--data", str(data), *FEW)
    document = suffice.json(*words)
    assert document["classes"] == ["false", "true"]
    assert document["counts"] == {
        "rows": 5,
        "classified": 4,
        "left_out": {"origin": 0, "month": 2, "kind": 2},
        "absent": [],
    }
    assert (document["method"], document["draws"], document["seed"]) == ("plug-in", 50, 7)
    classifier = models.classifier(
        open_release("tables", store=store), "late", method="plug-in", draws=50, rng=7
    )
    rows = pc.read_csv(data)
    chances = classifier.predict_proba(rows.set_column(1, "month", rows["month"].cast(pa.float64())))
    listed = [[row["probability[false]"], row["probability[true]"]] for row in document["rows"][:4]]
    np.testing.assert_allclose(listed, chances[:4])
    assert document["rows"][4]["predicted_class"] is None
    assert document["rows"][4]["probability[true]"] is None
    score = classifier.score(rows, rows["is_late"])
    assert document["score"] == {
        "accuracy": score.accuracy,
        "mean_log_score": pytest.approx(score.mean_log_score),
        "rows": 3,
    }
    for name in ("classes.csv", "classes.parquet"):
        out = tmp_path / name
        suffice.text(*words, "--out", str(out))
        written = pc.read_csv(out) if name.endswith("csv") else pq.read_table(out)
        assert written.column_names == [
            *("row", "site", "predicted_class", "class_probability"),
            *("probability[false]", "probability[true]"),
        ]
        np.testing.assert_allclose(written["probability[true]"].to_pylist()[:4], chances[:4, 1])
        assert "the file exists" in suffice.text(*words, "--out", str(out), status=2)
        suffice.text(*words, "--out", str(out), "--overwrite")


def test_classify_says_what_was_left_out_and_how_well_it_did(store: str, data: Path, suffice: Runner) -> None:
    words = ("model", "classify", "tables", "late", "--store", store, "--data", str(data), *FEW)
    text = suffice.text(*words)
    assert "4 of 5 rows are classified" in text
    assert "no class for 1 row of no selected cell" in text
    assert "month is left out of 2 rows: null, or no declared category" in text
    assert "of 3 rows whose is_late is a class" in text
    assert "plug-in: takes the noisy statistics for exact" in text
    assert "release: tables@all" in text


def test_parquet_rows_without_some_features_are_classified_with_a_warning(
    store: str, suffice: Runner, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"month": pa.array([1, 2], pa.int8()), "site": ["p", "q"]}), path)
    words = ("model", "classify", "tables", "late", "--store", store, "--data", str(path), *FEW)
    with pytest.raises(SystemExit):
        app.main([*words, "--where", "site=p", "--json"])
    captured = suffice.capsys.readouterr()
    assert "rows have no column of origin, kind" in captured.err
    document = json.loads(captured.out)
    assert document["counts"]["absent"] == ["origin", "kind"]
    assert document["counts"]["classified"] == 1
    assert document["score"] is None


def test_texts_of_csv_stay_texts_and_its_numbers_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('code,kind,delay,mixed,spare\n01,NA,1.5,1,x\n,"",NA,one,y\n', encoding="utf-8")
    table = read_data(path, ["code", "kind", "delay", "mixed", "absent"], texts=["code", "kind"])
    assert table.to_pydict() == {
        "code": ["01", None],
        "kind": ["NA", ""],
        "delay": [1.5, None],
        "mixed": ["1", "one"],
    }


def test_queries_are_printed_and_their_draws_written(store: str, suffice: Runner, tmp_path: Path) -> None:
    out = tmp_path / "draws.parquet"
    words = ("model", "query", "tables", "causes", "--store", store, "--target", "well", *FEW)
    stated = ("--given", "severe=yes", "--do", "treated=no")
    document = suffice.json(*words, *stated, "--draws-out", str(out))
    network = models.network(open_release("tables", store=store), "causes", method="plug-in", draws=50, rng=7)
    answer = network.query("well", given={"severe": "yes"}, do={"treated": "no"})
    assert document["rows"] == answer.rows()
    assert document["undefined_share"] == 0.0
    assert (document["target"], document["given"], document["do"]) == (
        ["well"],
        {"severe": "yes"},
        {"treated": "no"},
    )
    drawn = pq.read_table(out)
    assert drawn.column_names == ["site", "well", "draw", "parameter", "value"]
    np.testing.assert_array_equal(drawn["value"].to_numpy(), answer.probability.draws.ravel())
    text = suffice.text(*words, *stated)
    assert "given: severe=yes" in text
    assert "do: treated=no" in text
    assert "holds in the world only where the declared graph does" in text
    both = suffice.json(*words, "--target", "treated")
    assert sum(row["mean"] for row in both["rows"]) == pytest.approx(2)
    assert {"well", "treated"} <= both["rows"][0].keys()


def test_what_does_not_exist_is_refused_by_what_does(store: str, data: Path, suffice: Runner) -> None:
    query = ("model", "query", "tables", "causes", "--store", store, *FEW)
    said = suffice.text(*query, "--target", "age", status=2)
    assert "no variable 'age': it has severe, treated, well" in said
    assert "no category 'x': it has no, yes" in suffice.text(
        *query, "--target", "well", "--given", "severe=x", status=2
    )
    assert "--given severe: write it" in suffice.text(
        *query, "--target", "well", "--given", "severe", status=2
    )
    classify = ("model", "classify", "tables", "causes", "--store", store, "--data")
    assert "in this release that is late" in suffice.text(*classify, str(data), status=2)
    assert "must end in .csv or .parquet" in suffice.text(*classify, "rows.json", status=2)
