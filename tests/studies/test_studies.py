"""Every study at its smallest size: files, exact numbers, and the page that shows them."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import TYPE_CHECKING

import pytest

from studies.catalogue import STUDIES, module_of, study_named
from studies.layout import LAYOUT, LEFT_OUT, number
from studies.page import NUMBERS, heading, numbers_of, page, wrapped
from studies.result import COLUMNS, NOT_A_RELEASE, Claim, Result, Row, Size, Verdict, near, read_rows, tight
from support.real_data import REAL_DATA

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMES = [study.name for study in STUDIES]
JUDGED = [name for name in NAMES if name != "war_logs"]
"""Whether a last draw is noisy, `war_logs` tells by a share of cells."""
DATA = {"query_model": "adult", "war_logs": "fars", "war_logs_held_out": "fars"}
"""What a study's numbers on the page are of; without it others would stand there."""


PARTLY = {"hellinger_mechanisms", "mcmc_costs", "war_logs", "war_logs_held_out"}
"""Those that leave out rows at the smallest size."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_study_writes_its_files_and_the_exact_numbers_of_the_page(
    name: str, study_result: Callable[[str], Result]
) -> None:
    if name in DATA and not (REAL_DATA / DATA[name]).exists():
        pytest.skip(f"{DATA[name]} is not there")
    result = study_result(name)
    *pictures, table, curves = result.files
    assert pictures
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    for path in (table, curves):
        assert path.read_text(encoding="utf-8").startswith(f"# {NOT_A_RELEASE}\n")
        assert len(read_rows(path)) > 0
    assert read_rows(table) == [dict(zip(COLUMNS, computed.cells(), strict=True)) for computed in result.rows]
    quantities = [computed.quantity for computed in result.rows]
    assert len(set(quantities)) == len(quantities)
    shown = {row["quantity"]: row for row in numbers_of(NUMBERS)[name]}
    if name not in PARTLY:
        assert list(shown) == quantities  # no row of an earlier run stays
    for computed, row in zip(result.rows, read_rows(table), strict=True):
        other = shown[computed.quantity]
        if computed.error is None:
            assert row == other
        elif not name.startswith("war_logs"):  # of a part of the log
            assert_is_same_but_for_chance(computed, row, other)


def assert_is_same_but_for_chance(computed: Row, row: dict[str, str], shown: dict[str, str]) -> None:
    """Hold a simulated number against the page's: within 7 standard errors of both, 1e-11 by chance."""
    assert computed.error is not None
    value, error = (float(shown[column].replace(",", "")) for column in ("ours", "standard error"))
    rounded = 10.0 ** (1 - computed.digits) * abs(value)
    assert abs(computed.ours - value) < 7 * math.hypot(computed.error, error) + rounded
    for column in ("paper", "verdict", "note"):
        assert row[column] == shown[column]


def test_every_figure_and_every_study_stands_in_the_index(papers: str) -> None:
    index = papers.split("## By the papers' own numbers\n")[1].split("\n## ", maxsplit=1)[0]
    assert all(f"`{name}`" in index for name in NAMES)
    of_foulds, _, others = index.partition("Dimitrakakis et al. 2014")
    figures = [line.split("|")[1] for line in of_foulds.splitlines() if line.startswith("| Figures")]
    assert sorted(map(int, re.findall(r"\d+", " ".join(figures)))) == list(range(1, 14))
    assert re.findall(r"Lemma \d", others) == ["Lemma 2", "Lemma 8"]


def test_the_page_is_made_of_the_numbers_beside_the_studies(papers: str) -> None:
    assert page(numbers_of(NUMBERS)) == papers


@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_every_number_but_those_that_are_left_out_by_name(name: str, papers: str) -> None:
    section = papers.split(f"\n{heading(study_named(name))}\n")[1].split("\n## ", maxsplit=1)[0]
    cells = [cell.strip() for line in section.splitlines() for cell in line.split(" | ")]
    numbers = [re.sub(r", \w+$", "", cell.strip("| ")) for cell in cells]
    rows = numbers_of(NUMBERS)[name]
    for row in rows:
        is_left_out = re.fullmatch(LEFT_OUT.get(name, "(?!)"), row["quantity"]) is not None
        assert is_left_out or number(row) in numbers, row["quantity"]
    for grid in LAYOUT.get(name, ()):
        taken = [match for row in rows if (match := re.fullmatch(grid.pattern, row["quantity"]))]
        places = {
            tuple(text.format(**match.groupdict()) for text in (grid.line, grid.column)) for match in taken
        }
        assert len(places) == len(taken) > 1, grid.first


def test_lines_of_a_text_are_no_lists() -> None:
    text = " ".join(["word", "+", "-", "2.", "*", ">", "#"] * 60)
    lines = wrapped(text)
    assert " ".join(lines) == text
    assert len(lines) == 10
    assert all(line.startswith("word") and len(line) <= 118 for line in lines)


def test_no_conclusion_is_missing_and_no_text_is_a_formula() -> None:
    for study in STUDIES:
        assert len(module_of(study).CONCLUSION) > 80
    row = Row(quantity="q", ours=0.1 + 0.2, digits=3)
    assert row.cells() == ("q", "", "0.300", "exact", "no number printed", "")


def test_a_verdict_follows_from_the_number() -> None:
    claim = Claim(low=0.0, high=1.0, if_not=Verdict.WRONG)
    for stated, value, error, verdict in (
        (claim, 1.0, None, Verdict.AGREES),
        (claim, 1.001, None, Verdict.WRONG),
        (claim, -0.001, None, Verdict.WRONG),
        (claim, math.nan, None, Verdict.WRONG),
        (claim, 1.49, 0.1, Verdict.AGREES),
        (claim, 1.51, 0.1, Verdict.WRONG),
        (near(0.0699407108115, 5e-14), 0.06994071081149, None, Verdict.AGREES),
        (near(0.0699407108115, 5e-14), 0.0699407108120, None, Verdict.DIFFERS),
        (tight(2.0), 1.999, None, Verdict.AGREES),
        (tight(2.0), 1.9, None, Verdict.LOOSE),
        (tight(2.0), 2.001, None, Verdict.WRONG),
    ):
        row = Row(quantity="q", ours=value, error=error, paper="printed", claim=stated)
        assert row.judged is verdict
        assert row.cells()[4] == verdict.value


@pytest.mark.slow
@pytest.mark.parametrize("name", JUDGED)
def test_no_verdict_is_written_by_hand(name: str, study_result: Callable[[str], Result]) -> None:
    """What a paper says comes with a claim, and a number beyond it gets another verdict."""
    for row in study_result(name).rows:
        claim = row.claim
        if claim is None:
            assert row.verdict is Verdict.ADDED or (row.verdict is Verdict.AGREES and not row.paper)
            continue
        assert row.paper
        assert math.isfinite(claim.low) or math.isfinite(claim.high)
        slack = 1.0 if row.error is None else 6.0 * row.error
        for end, sign, verdict in (
            (claim.low, -1.0, claim.if_below or claim.if_not),
            (claim.high, 1.0, claim.if_not),
        ):
            if math.isfinite(end):
                beyond = dataclasses.replace(row, ours=end + sign * (abs(end) + slack))
                assert beyond.judged is verdict is not Verdict.AGREES


@pytest.mark.audit
def test_a_seed_decides_what_is_simulated(tmp_path: Path) -> None:
    study = module_of(study_named("posteriors_beta"))
    first, again, other = (study.run(tmp_path, seed, Size.SMALLEST).rows for seed in (1, 1, 2))
    assert first == again
    assert first != other
