"""The page on fields, run as it is written, and the command's documents and files."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from suffice.errors import UsageError
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from support.making import mapping
from support.releases import publish
from support.running import Runner

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = ["--statistic", "old_ill", "--statistic", "ill_treated"]


@pytest.mark.slow
def test_the_page_on_fields_runs(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (repository / "docs" / "how-to" / "fit-a-field.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runner, printed = Runner(capsys), []
    names: dict[str, Any] = {}
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if language == "python":
            exec(compile(text, "fit-a-field.md", "exec"), names)  # noqa: S102 - our own text
            printed.append(capsys.readouterr().out)
        elif language == "yaml":
            (tmp_path / "release.yaml").write_text(text, encoding="utf-8")
        elif language == "sh":
            for line in text.splitlines():
                command, *words = shlex.split(line)
                assert command == "suffice"
                printed.append(runner.text(*words))
    _, _, _, edges, asked, synthesized, ratio, python = printed
    assert "50 imputations of 20000 rows of old, ill, treated" in synthesized
    estimate, lower, upper, is_narrow = ratio.split()
    assert is_narrow == "True"
    # Of rows with .7 and .1 treated: 7 standard errors.
    assert abs(float(estimate) - np.log(0.7 / 0.3 / (0.1 / 0.9))) < 0.3
    assert float(lower) < float(estimate) < float(upper)
    assert float(upper) - float(lower) < 0.5
    lines = [line.split() for line in edges.splitlines()]
    rows = [line for line in lines if line[:1] in (["old"], ["ill"])]
    strengths = {tuple(line[:2]): float(line[2]) for line in rows[:3]}
    assert strengths["old", "ill"] > 0.2
    assert strengths["ill", "treated"] > 0.5
    assert strengths["old", "treated"] < 0.1  # of truth 0
    assert "strength: standard deviation of a pair's effects" in edges
    assert "central, 95 % posterior probability each" in edges
    # Columns: two variables, two categories, mean, sd, median, lower, upper, probability.
    odds = {tuple(line[:4]): [float(number) for number in line[4:]] for line in rows[3:]}
    # Of rows with .5 and .2 ill by age, log 4, and age beside illness, 0: 5 standard deviations.
    for pair, truth in {("old", "ill"): np.log(4.0), ("old", "treated"): 0.0}.items():
        mean, sd = odds[*pair, "yes", "yes"][:2]
        assert abs(mean - truth) < 5 * sd
    assert "Probability of treated given old=yes, ill=yes" in asked
    assert "saddlepoint" in edges
    # 8 standard errors of 20 000 rows and noise of scale 3: .7 of those who are ill.
    mean = float(re.search(r"(?m)^yes +(\d\.\d+)", asked)[1])  # type: ignore[index]
    assert abs(mean - 0.7) < 0.06
    first, *_, last = python.splitlines()
    ends = [float(number) for number in re.findall(r"\d\.\d+", first)]
    assert ends[0] < mean < ends[1]
    # A share of .4 * .5 + .6 * .2 = .32; 7 standard errors of 20 000 rows.
    assert all(abs(float(end) - 0.32) < 0.03 for end in last.split())
    document = runner.json(
        *("model", "field", "pairs", *PAIRS, "--draws", "200", "--below", "0.2", "--out", "edges.parquet")
    )
    assert document["below"] == 0.2
    assert {row["second_category"] for row in document["log_odds_ratios"]} == {"yes"}
    assert [row["second"] for row in document["edges"]] == ["ill", "treated"]
    assert set(document["agreement"]) == {"old_ill", "ill_treated"}
    assert pq.read_table("edges.parquet")["first"].to_pylist() == ["old", "ill"]
    assert "--target" in runner.text(
        "model", "field", "pairs", *PAIRS, "--given", "old=yes", status=UsageError.exit_status
    )


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cells of a chain of three variables, and a table of its own."""
    tables = {
        "ab": {"family": "contingency", "columns": {"a": ["no", "yes"], "b": ["x", "y"]}},
        "bc": {"family": "contingency", "columns": {"b": ["x", "y"], "c": ["no", "yes"]}},
    }
    root = tmp_path_factory.mktemp("fields") / "store"
    content: dict[str, Any] = {"groups": {"site": ["p", "q"]}, "statistics": tables}
    plan = compile_plan(load_spec(mapping("data", **content)))
    # Both tables have 500 rows of each category of b.
    counts = {
        "ab": np.array([[300, 100, 200, 400], [300, 200, 200, 300]]),
        "bc": np.array([[300, 200, 100, 400], [300, 200, 200, 300]]),
    }
    publish(root, plan, {name: values.astype(object) for name, values in counts.items()})
    return root


SYNTHESIZE = ("model", "synthesize", "flights", "--draws", "800", "--rows", "400", "--seed", "3")


@pytest.mark.slow
def test_synthetic_rows_in_files_and_documents(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runner = Runner(capsys)
    asked = (*SYNTHESIZE, "--store", str(published), "--where", "site=p", "--imputations", "5")
    both = (*asked, "--statistic", "ab", "--statistic", "bc")
    document = runner.json(*both, "--out", "rows.parquet")
    assert document["variables"] == {"a": ["no", "yes"], "b": ["x", "y"], "c": ["no", "yes"]}
    assert (document["imputations"], document["rows"]) == (5, 400)
    assert "saddlepoint" in " ".join(document["notes"])
    table = pq.read_table("rows.parquet")
    assert table.column_names == ["imputation", "a", "b", "c"]
    assert table["imputation"].to_pylist() == np.repeat(range(1, 6), 400).tolist()
    assert set(table["b"].to_pylist()) == {"x", "y"}
    assert b"nobody's data" in table.schema.metadata.get(b"source", b"") or "nobody" in str(
        pq.read_metadata("rows.parquet").metadata
    )
    runner.json(*both, "--out", "again.parquet")
    assert pq.read_table("again.parquet").equals(table)
    alone = runner.text(*asked, "--statistic", "ab", "--out", "rows.csv")
    assert "5 imputations of 400 rows of a, b" in alone
    assert "model: contingency" in alone
    with (tmp_path / "rows.csv").open(encoding="utf-8") as file:
        assert file.readline() == '"imputation","a","b"\n'


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--statistic", "ab", "--rows", "0"), "--rows must be at least 1"),
        (("--statistic", "ab", "--imputations", "1"), "--imputations must be at least 2"),
        (("--statistic", "ab", "--pair-sd", "1"), "--pair-sd is of a field"),
        (("--statistic", "ab", "--statistic", "bc", "--single-sd", "0"), "--single-sd must be"),
        (("--statistic", "ab"), "2 cells, and rows are of one"),
        (("--statistic", "ab", "--where", "site=p", "--imputations", "801"), "801 imputations take as many"),
        (("--statistic", "ab", "--where", "site=p", "--rows", "99999999"), "ask for fewer"),
    ],
    ids=["rows", "imputations", "network sd", "sd", "cells", "few draws", "many rows"],
)
def test_rows_that_cannot_be_drawn_are_refused(
    words: tuple[str, ...], said: str, published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ("model", "synthesize", "flights", "--draws", "800", "--store", str(published))
    rows = () if "--rows" in words else ("--rows", "9")
    out = ("--out", str(tmp_path / "rows.parquet"))
    refused = Runner(capsys).json(*base, *rows, *out, *words, status=UsageError.exit_status)
    assert said in refused["error"]["message"]
    assert not (tmp_path / "rows.parquet").exists()
