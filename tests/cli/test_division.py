"""``suffice plan --divide``: shares to paste, a document, a picture; nothing is read or charged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from support.making import Workspace
    from support.running import Runner

STATISTICS: dict[str, Any] = {
    "cancelled": {"family": "bernoulli", "column": "cancelled"},
    "stops": {"family": "poisson", "column": "stops", "upper": 5},
}
ASSUME: dict[str, Any] = {
    "rows": 40000,
    "statistics": {
        "cancelled": {"typical": {"probability": 0.01}},
        "stops": {"typical": {"rate": 1}},
    },
}


@pytest.fixture
def spec(tmp_path: Path) -> str:
    terms = {
        "name": "divided",
        "dataset": "passengers",
        "source": {"parquet": "no/such/rows/"},
        "privacy": {"epsilon": 1, "neighboring": "add_or_remove_one"},
        "statistics": STATISTICS,
        "assume": ASSUME,
    }
    path = tmp_path / "divided.json"
    path.write_text(json.dumps(terms), encoding="utf-8")
    return str(path)


def test_shares_are_printed_and_nothing_is_read_or_charged(
    spec: str, suffice: Runner, tmp_path: Path
) -> None:
    text = suffice.text("plan", spec, "--divide")
    assert "root mean square inflation" in text
    assert "trusted, and checked against nothing: cancelled, stops: assume in the spec" in text
    shares = text[text.index("\nstatistics:\n") :]
    assert suffice.json("plan", spec, "--divide")["divide"]["shares"] == shares.strip()
    assert not (tmp_path / "no").exists()
    picture = tmp_path / "division.svg"
    assert f"wrote {picture}" in suffice.text("plan", spec, "--divide", "--plot", str(picture))
    assert picture.read_text(encoding="utf-8").count("<path") > 10
    assert "exists" in suffice.text("plan", spec, "--divide", "--plot", str(picture), status=2)


def test_the_document_says_what_was_found(spec: str, suffice: Runner) -> None:
    plain = suffice.json("plan", spec)
    document = suffice.json("plan", spec, "--divide", "--criterion", "maximum")
    assert document["plan_hash"] == plain["plan_hash"] == document["divide"]["plan_hash"]
    division = document["divide"]
    assert division["criterion"] == "maximum"
    first, second = division["statistics"]
    assert first["inflation_divided"] == pytest.approx(second["inflation_divided"], rel=0.01)
    target = ("--target", "cancelled probability sd 0.0006", "--target", "stops rate width 0.03")
    reached = suffice.json("plan", spec, "--divide", *target)["divide"]["statistics"]
    assert all(of["sd_divided"] <= of["target"] for of in reached)


def test_an_earlier_release_is_trusted(workspace: Workspace, suffice: Runner) -> None:
    stated = workspace.write_spec(statistics=STATISTICS, groups=None)
    suffice.json("release", str(stated))
    document = suffice.json("plan", str(stated), "--divide", "--from", "flights")["divide"]
    assert {of["trust"] for of in document["statistics"]} == {"released"}
    assert "the noisy numbers of flights" in document["expectations"]


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (("--criterion", "sum"), "--criterion: of use with --divide alone"),
        (("--from", "flights"), "--from: of use with --divide alone"),
        (("--plot", "x.png"), "--plot: of use with --divide alone"),
        (("--target", "a b width 1", "--target", "c d width 1"), "may repeat with --divide alone"),
        (("--divide", "--criterion", "mean"), "choose sum or maximum"),
        (("--divide", "--plot", "x.pdf"), "must end in .png or .svg"),
        (("--divide", "--beside", "sample", "--truth", "0.1"), "two questions"),
        (("--divide", "--n", "5"), "--n: of use with --target or --beside alone"),
    ],
    ids=["criterion", "from", "plot", "targets", "mean", "ending", "beside", "n"],
)
def test_options_without_their_question_are_refused(
    spec: str, suffice: Runner, words: tuple[str, ...], rule: str
) -> None:
    assert rule in suffice.text("plan", spec, *words, status=2)
