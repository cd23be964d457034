"""Every study at its smallest size: files, exact numbers, and the page that shows them."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from studies import adversary
from studies.__main__ import main
from studies.catalogue import STUDIES, Study, module_of, study_named
from studies.page import heading, page
from studies.page import main as write_page
from studies.result import COLUMNS, NOT_A_RELEASE, Claim, Result, Row, Size, Verdict, near, read_rows, tight
from support.real_data import REAL_DATA

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMES = [study.name for study in STUDIES]
DATA = {"query_model": "adult", "war_logs": "fars", "war_logs_held_out": "fars"}
"""What a study's numbers on the page are of; without it others would stand there."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Result]:
    """Run a study once, with a seed that nobody chose."""
    out = tmp_path_factory.mktemp("studies")
    kept: dict[str, Result] = {}

    def run(name: str) -> Result:
        if name not in kept:
            (study,) = (study for study in STUDIES if study.name == name)
            kept[name] = module_of(study).run(out, secrets.randbits(32), Size.SMALLEST)
        return kept[name]

    return run


@pytest.fixture(scope="module")
def papers(repository: Path) -> str:
    return (repository / "docs" / "papers.md").read_text(encoding="utf-8")


PARTLY = {"hellinger_mechanisms", "mcmc_costs", "war_logs", "war_logs_held_out"}
"""Those that leave out rows at the smallest size."""


def rows_of_page(text: str, study: Study) -> list[dict[str, str]]:
    section = text.split(f"\n{heading(study)}\n")[1].split("\n## ", maxsplit=1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    return [
        dict(
            zip(COLUMNS, (cell.strip().replace("\\|", "|") for cell in line[1:-1].split(" | ")), strict=True)
        )
        for line in lines
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_study_writes_its_files_and_the_exact_numbers_of_the_page(
    name: str, found: Callable[[str], Result], papers: str
) -> None:
    if name in DATA and not (REAL_DATA / DATA[name]).exists():
        pytest.skip(f"{DATA[name]} is not there")
    result = found(name)
    *pictures, table, curves = result.files
    assert pictures
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    for path in (table, curves):
        assert path.read_text(encoding="utf-8").startswith(f"# {NOT_A_RELEASE}\n")
        assert len(read_rows(path)) > 0
    assert read_rows(table) == [dict(zip(COLUMNS, own.cells(), strict=True)) for own in result.rows]
    quantities = [own.quantity for own in result.rows]
    assert len(set(quantities)) == len(quantities)
    (study,) = (study for study in STUDIES if study.name == name)
    shown = {row["quantity"]: row for row in rows_of_page(papers, study)}
    if name not in PARTLY:
        assert list(shown) == quantities  # no row of an earlier run stays
    for own, row in zip(result.rows, read_rows(table), strict=True):
        other = shown[own.quantity]
        if own.error is None:
            assert row == other
        elif not name.startswith("war_logs"):  # of a part of the log
            assert_is_same_but_for_chance(own, row, other)


def assert_is_same_but_for_chance(own: Row, row: dict[str, str], shown: dict[str, str]) -> None:
    """Hold a simulated number against the page's: within 7 standard errors of both, 1e-11 by chance."""
    assert own.error is not None
    value, error = (float(shown[column].replace(",", "")) for column in ("ours", "standard error"))
    rounded = 10.0 ** (1 - own.digits) * abs(value)
    assert abs(own.ours - value) < 7 * math.hypot(own.error, error) + rounded
    for column in ("paper", "verdict", "note"):
        assert row[column] == shown[column]


def test_every_figure_and_every_study_stands_in_the_index(papers: str) -> None:
    index = papers.split("## By the papers' own numbers\n")[1].split("\n## ", maxsplit=1)[0]
    assert all(f"`{name}`" in index for name in NAMES)
    of_foulds, _, others = index.partition("Dimitrakakis et al. 2014")
    figures = [line.split("|")[1] for line in of_foulds.splitlines() if line.startswith("| Figures")]
    assert sorted(map(int, re.findall(r"\d+", " ".join(figures)))) == list(range(1, 14))
    assert re.findall(r"Lemma \d", others) == ["Lemma 2", "Lemma 8"]


def test_the_page_is_made_of_its_own_rows(papers: str) -> None:
    assert page({study.name: rows_of_page(papers, study) for study in STUDIES}) == papers


def test_no_conclusion_is_missing_and_no_text_is_a_formula() -> None:
    for study in STUDIES:
        assert len(module_of(study).CONCLUSION) > 80
    row = Row(quantity="q", ours=0.1 + 0.2, digits=3)
    assert row.cells() == ("q", "", "0.300", "exact", "no number printed", "")


def test_a_verdict_follows_from_the_number() -> None:
    claim = Claim(low=0.0, high=1.0, if_not=Verdict.WRONG)
    for own, value, error, verdict in (
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
        row = Row(quantity="q", ours=value, error=error, paper="printed", claim=own)
        assert row.judged is verdict
        assert row.cells()[4] == verdict.value


@pytest.mark.parametrize("name", NAMES)
def test_no_verdict_is_written_by_hand(name: str, found: Callable[[str], Result]) -> None:
    """What a paper says comes with a claim, and a number beyond it gets another verdict."""
    if name.startswith("war_logs"):
        return  # theirs follow from gains over splits and restarts
    for row in found(name).rows:
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


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in NAMES)
    assert main(["nothing"]) == 2
    assert "no study 'nothing'" in capsys.readouterr().err
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert main(["adversary", "--out", str(blocked)]) == 2
    assert "nothing can be written" in capsys.readouterr().err
    assert main(["adversary", "--size", "smallest", "--out", str(tmp_path / "out")]) == 0
    assert "limit 2 log 9: 4.39445" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["adversary", "--seed", "-1"], "at least 0"),
        (["adversary", "--seed", "one"], "at least 0"),
        (["adversary", "mistakes", "--processes", "0"], "at least 1"),
        (["adversary", "--full", "--size", "smallest"], "not allowed with"),
        (["--full"], "which studies"),
    ],
)
def test_bad_options_are_refused(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert says in capsys.readouterr().err


def test_a_name_that_is_nearly_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["Sample-error"]) == 2
    assert "Did you mean sample_error?" in capsys.readouterr().err


def test_data_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "adult.parquet").write_text("no table")
    monkeypatch.setenv("SUFFICE_SHARED_DATA", str(tmp_path))
    assert main(["query_model", "--size", "smallest", "--out", str(tmp_path)]) != 0
    assert capsys.readouterr().err.startswith("query_model: adult.parquet: cannot be read")
    # In the middle of others it is named, and they go on.
    assert main(["query_model", "adversary", "--size", "smallest", "--out", str(tmp_path)]) != 0
    told = capsys.readouterr()
    assert told.err.startswith("query_model: adult.parquet: cannot be read")
    assert "limit 2 log 9: 4.39445" in told.out


def test_a_study_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> Result:
        raise ZeroDivisionError

    monkeypatch.setattr(adversary, "run", fail)
    assert (
        main(["adversary", "mistakes", "--size", "smallest", "--processes", "1", "--out", str(tmp_path)]) == 1
    )
    told = capsys.readouterr()
    assert "ZeroDivisionError" in told.err
    assert told.err.endswith("adversary: failed, as told above.\n")
    assert told.out.startswith("mistakes: ")


@pytest.mark.audit
def test_a_seed_decides_what_is_simulated(tmp_path: Path) -> None:
    study = module_of(study_named("posteriors_beta"))
    first, again, other = (study.run(tmp_path, seed, Size.SMALLEST).rows for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("arguments", "says"),
    [([], "required"), (["nowhere", "page.md"], "nowhere: no run of all studies")],
)
def test_a_page_needs_a_run(
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        write_page(arguments)
    assert caught.value.code == 2
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.audit
def test_all_can_be_stopped(tmp_path: Path) -> None:
    """Ctrl-C ends all processes with a line, long before the studies would end."""
    command = [sys.executable, "-m", "studies", "all", "--full", "--out", str(tmp_path)]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not list(tmp_path.iterdir()):
        assert running.poll() is None
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGINT)
    _, told = running.communicate(timeout=20)
    assert running.returncode == 130
    assert told == f"Stopped. What was written stays in {tmp_path}.\n"


def ours(result: Result, quantity: str) -> float:
    return result[quantity].ours


def test_the_greedy_adversary(found: Callable[[str], Result]) -> None:
    result = found("adversary")
    expected = (2.197, 2.631, 2.932, 3.414, 3.748, 4.005, 4.215, 4.300, 4.346, 4.375, 4.385)
    losses = [own.ours for own in result.rows if own.quantity.startswith("loss at N")]
    assert losses == pytest.approx(expected, abs=5e-4)
    assert ours(result, "limit 2 log 9") == pytest.approx(4.39445, abs=5e-6)
    assert ours(result, "records of the rarer symbol, of 1,000") == 0


def test_the_divergence_of_laplace(found: Callable[[str], Result]) -> None:
    """The sums are within 1.2 % of 9.28, 11.41, 10.96, 10.87, 10.90, which were simulated."""
    result = found("kl_of_laplace")
    scaled = [own.ours for own in result.rows if own.quantity.startswith("N E[KL] at")]
    assert scaled == pytest.approx((9.28, 11.41, 10.96, 10.87, 10.90), rel=0.012)
    assert ours(result, "limit of N E[KL]") == pytest.approx(10.82, abs=5e-3)
    assert ours(result, "Var(Z), scale 2") == pytest.approx(7.835, abs=5e-4)


def test_thirty_private_posteriors(found: Callable[[str], Result]) -> None:
    names = list(read_rows(found("posteriors_beta").files[-1])[0])
    for kind in ("plug-in", "noise-aware"):
        assert sum(name.startswith(kind) for name in names) == 30


def test_the_error_of_one_sample(found: Callable[[str], Result]) -> None:
    result = found("sample_error")
    replaced = "a record replaced, as in the paper"
    expected = {
        "non-private": (0.284, 0.147, 0.104, 0.0339, 0.0107, 0.0034),
        "OPS": (0.402, 0.388, 0.378, 0.248, 0.0663, 0.0187),
        "Laplace": (0.424, 0.389, 0.356),
    }
    for method, numbers in expected.items():
        for records, number in zip((1, 5, 10, 100, 1000, 10_000), numbers, strict=False):
            own = result[f"{method}, N = {records:,}, {replaced}"]
            assert own.error is None
            assert own.ours == pytest.approx(number, abs=0.004)
    for records, number in ((100, 0.117), (1000, 0.0217), (10_000, 0.0039)):
        own = result[f"Laplace, N = {records:,}, {replaced}"]
        assert own.error is not None
        assert abs(own.ours - number) < 7 * own.error + 0.0005
    assert ours(result, f"least N at which Laplace errs less than OPS, {replaced}") == 6
    assert ours(result, "least N at which Laplace errs less than OPS, a record added or removed") == 3
    # 27 simulated means: none is 7 standard errors away by chance (1e-10).
    assert ours(result, "largest distance of a simulated mean from its sum, in standard errors") < 7.0


def test_relative_efficiency(found: Callable[[str], Result]) -> None:
    """Within 7 standard errors of the limits (a chance of 1e-11); a wrong temperature is far outside."""
    result = found("relative_efficiency")
    limits = {
        "non-private draw": 2.0,
        "Laplace draw": 2.0,
        "Laplace mean": 1.0,
        "OPS draw, a0 = 0.2": 3.7726,
        "OPS draw, a0 = 0.05": 6.8889,
    }
    for name, limit in limits.items():
        own = result[f"ARE of {name}"]
        assert own.error is not None
        assert abs(own.ours - limit) < 7 * own.error + 0.01
    control = result["ARE of OPS draw, a0 = 0.05"]
    assert control.error is not None
    assert abs(control.ours - limits["OPS draw, a0 = 0.2"]) > 7 * control.error
    assert ours(result, "T, a0 = 0.2, epsilon 1") == pytest.approx(2.772589, abs=5e-7)
    assert ours(result, "T, a0 = 0.05, epsilon 0.1") == pytest.approx(58.88878, abs=5e-6)


def test_the_notes(found: Callable[[str], Result]) -> None:
    local = found("hellinger_local")
    assert ours(local, "beta, 100 outcomes (n = 100)") == pytest.approx(0.069940710811, abs=1e-12)
    assert ours(local, "beta, 120 outcomes (n = 120)") == pytest.approx(0.067779110017, abs=1e-12)
    assert ours(local, "beta, 150 outcomes (n = 150)") == pytest.approx(0.065308796422, abs=1e-12)
    assert ours(local, "beta, 5,151 outcomes (|R| at n = 100)") == pytest.approx(0.041399909267, abs=1e-12)
    assert ours(local, "local sensitivity at (34, 33, 33), n = 100") == pytest.approx(0.08209, abs=5e-6)
    assert ours(local, "local sensitivity at (50, 30, 20), n = 100") == pytest.approx(0.09405, abs=5e-6)
    assert ours(local, "global sensitivity, DL(7, 4, 5)") == pytest.approx(0.233629480709, abs=1e-12)
    assert ours(local, "H of Dir(3, 8, .) and Dir(4, 7, .)") == pytest.approx(0.239992747797, abs=1e-12)
    assert ours(local, "largest excess over the change at r = BI(x), all x of 12 records") < 1e-12
    four = found("hellinger_mechanisms")
    losses = [own.ours for own in four.rows if own.quantity.startswith("certified")]
    assert losses == pytest.approx((0.40158, 0.77865, 0.50466, 0.26007, 0.36780, 0.31357), abs=1.1e-5)
    ratios = {own.quantity: own.ours for own in four.rows if " over Laplace" in own.quantity}
    assert len(ratios) == 6
    for quantity, ratio in ratios.items():
        low, high = (2.2, 3.3) if "best candidate" in quantity else (3.5, 15.0)
        assert low < ratio < high


def test_what_the_notes_print_of_sensitivities(found: Callable[[str], Result]) -> None:
    """Data sets have the local ones, and none of these has the smooth one beside it."""
    local = found("hellinger_local")
    for figure, n, sets, smooth in (
        ("3a", 100, 165, 0.0850),
        ("3b", 120, 18, 0.0945),
        ("4", 150, 18, 0.0945),
    ):
        name = "0.08" if n == 100 else "0.0945"
        assert ours(local, f"Figure {figure}: data sets of {n} records with local sensitivity {name}") == sets
        row = local[f"Figure {figure}: largest smooth sensitivity of these, n = {n}"]
        assert row.ours == pytest.approx(smooth, abs=5e-5)
        assert row.judged is Verdict.DIFFERS
        assert row.ours < float(row.paper) - 1e-3
    tail = next(own for own in found("hellinger_mechanisms").rows if "the largest error" in own.quantity)
    assert tail.ours == pytest.approx(1.0 - (1.0 - 0.05 / 3.0) ** 3)


def test_a_true_statement_is_not_called_wrong(found: Callable[[str], Result]) -> None:
    """Upper bounds that are larger than need be hold; a bound that is called wrong is exceeded."""
    bounds = []
    for name in ("mistakes", "robustness", "mcmc_costs", "hellinger_mechanisms", "kl_of_laplace"):
        for own in found(name).rows:
            limit = own.paper.removeprefix("<= ").removeprefix("n = ").split(" for ")[0]
            if own.paper.startswith("<= ") and limit.replace(".", "").isdigit():
                bounds.append(own.judged)
                assert (own.ours > float(limit)) == (own.judged is Verdict.WRONG), own.quantity
    assert {Verdict.WRONG, Verdict.LOOSE, Verdict.AGREES} <= set(bounds)


def test_costs_of_chains(found: Callable[[str], Result]) -> None:
    result = found("mcmc_costs")
    assert ours(result, "4.1: 200 sweeps of the OPS-HMM, in epsilon") == 400.0
    assert ours(result, "4.1: random scan, 2 Delta = 6, Q / N = .1, the paper's price") == pytest.approx(1.2)
    assert ours(result, "4.1: the same, were the places secret") == pytest.approx(3.72, abs=5e-3)
    assert ours(result, "4.1: the same, places public as they are") == 6.0
    proposition = "Proposition 3: delta that draws near an exact law need, over (1 + e^epsilon) delta"
    assert ours(result, proposition) == pytest.approx(0.5)
    for name, delta, loss in ((".5", 0.150, 0.4966), ("1", 0.238, 1.0)):
        rejected = f"Theorem C.1: chance of a rejection, the theorem's delta, epsilon {name}"
        assert delta < ours(result, rejected) < 1.0
        assert ours(result, f"C.1: delta of a Metropolis step, epsilon {name}") == pytest.approx(
            delta, abs=5e-4
        )
        barker = ours(result, f"C.1: Barker's largest log ratio, epsilon {name}")
        assert barker == pytest.approx(loss, abs=1e-3)


def test_noise_costs_what_it_hides(found: Callable[[str], Result]) -> None:
    """At epsilon .1 clipped counts of few events score worse than at 10, by far more than any spread."""
    if not (REAL_DATA / "fars").exists():
        pytest.skip("fars is not there")
    result, name = found("war_logs_held_out"), "fatal crashes, few a cell, hidden Markov"
    low, high = (ours(result, f"{name}: Laplace, clipped, epsilon {each}") for each in ("0.1", "10"))
    assert low < high - 0.5
    assert high < ours(result, f"{name}: non-private") + 0.5


def test_clipped_counts_on_the_page_lose_what_they_lost_in_an_earlier_study(papers: str) -> None:
    """All ten losses, of two logs at five epsilons, are within .05 nats; of OPS most of twenty."""
    study = next(own for own in STUDIES if own.name == "war_logs_held_out")
    notes = {row["quantity"]: row["note"] for row in rows_of_page(papers, study)}
    near = {name: note.endswith("; within 0.05 of it") for name, note in notes.items() if "less non-" in name}
    clipped = [is_near for name, is_near in near.items() if "clipped" in name]
    assert len(near) == 30
    assert clipped == [True] * 10
    assert sum(near.values()) > 20


def test_queries_by_draws(found: Callable[[str], Result]) -> None:
    """A draw for a hundred queries errs more than for one, and a release less than a single draw."""
    errors = [own.ours for own in found("query_model").rows if own.quantity.startswith("mean error")]
    assert errors == sorted(errors[:4]) + errors[4:]
    assert errors[4] < errors[0] / 10
    assert ours(found("query_model"), "2 L rho of a hundred queries") == pytest.approx(
        200 * 4.382027, rel=1e-6
    )
