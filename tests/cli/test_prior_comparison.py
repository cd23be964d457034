"""The command that compares priors, and what commands say of conflicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.running import Runner, spec_file

if TYPE_CHECKING:
    from pathlib import Path

    from support.making import Workspace


@pytest.mark.slow
def test_priors_are_compared_by_evidence(workspace: Workspace, suffice: Runner, tmp_path: Path) -> None:
    suffice.json("release", spec_file(workspace))
    words = ("compare-priors", "flights", "cancelled", "--prior", "Beta(1, 1)", "--prior", "Beta(1, 9)")
    document = suffice.json(*words)
    assert document["release"] == "flights@all"
    assert [row["prior"] for row in document["totals"]] == ["Beta(1, 1)", "Beta(1, 9)"]
    assert document["totals"][0]["log_bayes_factor"] == 0
    summed = sum(row["log_bayes_factor"] for row in document["rows"] if row["prior"] == "Beta(1, 9)")
    assert document["totals"][1]["log_bayes_factor"] == pytest.approx(summed)
    text = suffice.text(*words)
    assert "all cells together" in text
    assert "prior of N: Reciprocal" in text
    assert "all cells together" not in suffice.text(*words, "--where", "origin=JFK")
    picture = tmp_path / "priors.svg"
    assert f"wrote {picture}" in suffice.text(*words, "--plot", str(picture))
    assert "Beta(1, 9)" in picture.read_text(encoding="utf-8")
    assert "exists" in suffice.text(*words, "--plot", str(picture), status=2)
    assert "two or more" in suffice.text(*words[:5], status=2)


@pytest.mark.slow
def test_a_conflict_is_a_line_in_every_output(workspace: Workspace, suffice: Runner, tmp_path: Path) -> None:
    suffice.json("release", spec_file(workspace))
    words = ("posterior", "flights", "cancelled", "--n-prior", "Uniform(0, 5)")
    page = tmp_path / "card.html"
    (told,) = suffice.json(*words, "--card", str(page))["conflicts"]
    assert "the prior of N, Uniform(0, 5)" in told
    assert "in 3 of 3 cells" in told
    assert told in suffice.text(*words)
    assert "onflict: the prior of N, Uniform(0, 5)" in page.read_text(encoding="utf-8")
    assert suffice.json("posterior", "flights", "cancelled")["conflicts"] == []
    assert "conflict" not in suffice.text("posterior", "flights", "cancelled")
    (told,) = suffice.json("posterior", "flights", "cancelled", "--prior", "Beta(1000, 1)")["conflicts"]
    assert "the prior of the parameters, Beta(1000, 1)" in told
