"""Accounts in rho, from grant to catalogue; the page `count-privacy-in-rho.md`, run as it is written."""

from __future__ import annotations

import json
import math
import re
import shlex
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

import suffice as package
from suffice.errors import GuaranteeError, UsageError
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.terms.declaration.delta import largest_rho
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.loss_in_words import guessing_chance
from suffice.pipeline.terms.declaration.spec_yaml import read_yaml
from suffice.pipeline.terms.statistics.statistic_plan import quantity_rows
from support.making import flights, mapping, write_parts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.running import Runner

DELAYED = {"cancelled": {"family": "bernoulli", "column": "cancelled"}}
PURE = {"epsilon": "0.1", "neighboring": "add_or_remove_one", "unit": "row"}
IN_ALL = largest_rho(Fraction(1), Fraction(1, 10**6))


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs" / "how-to" / "count-privacy-in-rho.md").read_text(encoding="utf-8")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str) -> Path:
    """A folder with rows, and the page's two specs; no ledger yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUFFICE_LEDGER", raising=False)
    data = write_parts(flights(), tmp_path / "data")
    (stated,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for name, privacy in (("rho", read_yaml(stated, "page").content["privacy"]), ("pure", PURE)):
        spec = mapping(data, name=name, privacy=privacy, statistics=DELAYED)
        (tmp_path / f"{name}.json").write_text(json.dumps(spec), encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_the_page_runs_and_what_follows_speaks_of_rho(place: Path, page: str, suffice: Runner) -> None:
    commands = [shlex.split(line) for line in re.findall(r"^    suffice (.*)$", page, re.MULTILINE)]
    printed = "".join(suffice.text(*words) for words in commands)
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for block in (text for language, text in blocks if not language):
        assert all(line in printed for line in block.splitlines()), block
    assert "a person with 3 rows in 1 window: so far at most rho 0.045" in printed, "nine times as much"
    (account,) = suffice.json("ledger", "show")["accounts"]
    assert (account["measure"], account["spent"]) == ("rho", "0.01")
    assert [charge["rho"] for charge in account["charges"]] == ["0.005", "0.005"]
    again = suffice.json("release", "pure.json")
    assert (again["epsilon"], again["charged_rho"], again["remaining_rho"]) == (
        "0.1",
        "0.005",
        "0.175069840653",
    )
    assert "remaining_epsilon" not in again

    release = package.open_release(suffice.json("show", "rho")["uri"])
    assert release.posterior("cancelled").method == "noise-aware"
    deployment = suffice.json("disclose", "rho")["entry"]["deployment"]
    assert deployment["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"rho": 0.005}
    suffice.text("posterior", "rho", "cancelled", "--seed", "1", "--card", "card.html")
    card = (place / "card.html").read_text(encoding="utf-8")
    assert "zero-concentrated private at rho" in card
    assert "private at epsilon" not in card

    (place / "ledger.jsonl").write_text(suffice.text("ledger", "export"), encoding="utf-8")
    for more, what in ((("--ledger-export", "ledger.jsonl"), "2 charges"), ((), "2 published releases")):
        site = place / ("with" if more else "without")
        suffice.text("catalogue", "releases", "--out", str(site), *more)
        dataset = (site / "datasets" / "passengers.html").read_text(encoding="utf-8")
        assert f"Rho 0.01 in {what}, which is (epsilon, delta) = (" in dataset.replace("\xa0", " ")
        assert "epsilon at 1e-9" in dataset
        (of_rho,) = site.glob("releases/rho/all/*/index.html")
        words = of_rho.read_text(encoding="utf-8")
        assert "Rho of the release" in words
        assert "is right about it with a chance of at most 52.6 %" in words
        assert "within a factor of e" not in words
        assert "\\u00a0" not in words + dataset, "spaces show as spaces, not as their code"
        (of_pure,) = site.glob("releases/pure/all/*/index.html")
        assert "within a factor of e to the 0.1" in of_pure.read_text(encoding="utf-8")


def noise_sd(total: dict[str, Any], statistics: int) -> float:
    """Return the deviation of the noise on a count of ones, of so many statistics that share a loss."""
    several = {f"s{number}": package.bernoulli("x") for number in range(statistics)}
    stated: dict[str, Any] = {"dataset": "people", "statistics": several, **total}
    plan = compile_plan(package.spec(**stated))
    (row,) = (row for row in quantity_rows(plan.statistics[0]) if row[3] == "total")
    return float(row[4])


def rows_of_the_table(page: str) -> Iterator[tuple[int, int, list[str]]]:
    for cells in re.findall(r"^\| (\d+) (windows?|statistics)[^|]*\| (\S+) \| (\S+) \|$", page, re.MULTILINE):
        number, what, *shown = cells
        windows, statistics = (1, int(number)) if what == "statistics" else (int(number), 1)
        yield windows, statistics, [text.strip("*") for text in shown]


def test_the_pages_table_is_what_plans_say(page: str) -> None:
    rows = list(rows_of_the_table(page))
    assert len(rows) == 7
    for windows, statistics, shown in rows:
        for text, total, parts in zip(shown, (Fraction(1), IN_ALL), (10**6, 10**12), strict=True):
            each = format_number(Fraction(math.floor(total / windows * parts), parts))
            computed = noise_sd({"epsilon" if parts == 10**6 else "rho": each}, statistics)
            digits = len(text.partition(".")[2])
            assert f"{computed:.{digits}f}" == text, (windows, statistics)


@pytest.mark.parametrize(("epsilon", "delta", "pays_from"), [(1, 6, 21), (4, 6, 26), (1, 9, 34)])
def test_rho_pays_from_so_many_releases_on(page: str, epsilon: int, delta: int, pays_from: int) -> None:
    rho = largest_rho(Fraction(epsilon), Fraction(1, 10**delta))
    less = [n for n in range(1, 100) if n / (2 * rho) < Fraction(n, epsilon) ** 2]
    assert less[0] == pays_from
    assert f"from {pays_from}" in page.replace("From", "from")


@pytest.mark.usefixtures("place")
def test_a_grant_says_one_total(suffice: Runner) -> None:
    def grant(*words: str, status: int = 0) -> Any:
        further = ("--reason", "x", "--unwitnessed")
        return suffice.text("ledger", "grant", "people", *words, *further, status=status)

    assert "one of the four" in grant("--epsilon", "1", "--rho", "1", "--create", status=2)
    assert "rho has none" in grant("--rho", "1", "--delta", "1e-6", "--create", status=2)
    assert "--delta: delta 2 is not" in grant("--epsilon", "1", "--delta", "2", "--create", status=2)
    assert "state --per-window, too" in grant("--rho-per-year", "1", "--create", status=2)
    places = ("--per-window", "day:month", "--source", "data", "--create")
    assert "granted rho 0.083333333333 in each window" in grant("--rho-per-year", "1", *places)
    assert "epsilon" in grant("--epsilon", "1", status=3), "the first grant fixed the measure"
    with pytest.raises(GuaranteeError, match="measure"):
        package.grant("people", 1, reason="x")
    with pytest.raises(UsageError, match="delta"):
        package.grant("others", 1, delta="x", reason="x")
    assert package.grant("others", 1, delta=1e-6, reason="x", unwitnessed=True).granted == IN_ALL
    assert package.grant("more", rho="0.5", reason="x", unwitnessed=True).granted == Fraction(1, 2)


@pytest.mark.usefixtures("place")
def test_a_spec_in_rho_is_refused_by_an_account_of_epsilon(suffice: Runner) -> None:
    options = ("--reason", "x", "--create", "--unwitnessed")
    suffice.text("ledger", "grant", "passengers", "--epsilon", "1", *options)
    assert "counts epsilon" in suffice.text("release", "rho.json", status=3)
    with pytest.raises(GuaranteeError, match="counts epsilon"):
        package.release("rho.json")


@pytest.mark.parametrize("rho", [Fraction(1, 1000), Fraction("0.02436"), Fraction(1, 2), Fraction(4)])
def test_nobody_guesses_better_than_is_said(rho: Fraction) -> None:
    """Held against the best guess of a shift by 1 under discrete Laplace noise, and under a normal one."""
    scale = math.sqrt(1 / (2 * rho))
    decay = math.exp(-1 / scale)
    of_laplace = 0.5 + (1 - decay) / (1 + decay) / 2
    of_normal = 0.5 + math.erf(math.sqrt(2 * rho) / 2 / math.sqrt(2)) / 2
    assert max(of_laplace, of_normal) <= guessing_chance(rho) <= 1.0


def test_what_is_refused_and_asked_for_speaks_of_rho(place: Path, suffice: Runner) -> None:
    assert "with --rho TOTAL for specs in rho" in suffice.text("ledger", "show", status=5)
    content = json.loads((place / "rho.json").read_text(encoding="utf-8"))
    for name, privacy in (
        ("large", {"rho": "9008"}),
        ("unit", {"unit": {"column": "carrier", "max_rows": 1}}),
    ):
        spec = {**content, "name": name, "privacy": {**content["privacy"], **privacy}}
        (place / f"{name}.json").write_text(json.dumps(spec), encoding="utf-8")
    assert "at most 9007.199254740991" in suffice.text("plan", "large.json", status=2)
    options = ("--reason", "x", "--create", "--unwitnessed")
    suffice.text("ledger", "grant", "passengers", "--rho", "0.5", *options)
    assert "suffice.grant(NAME, rho=TOTAL" in suffice.text("release", "unit.json", status=3)
    assert "nothing was granted" not in suffice.text("ledger", "show")
    asked = ("--target", "cancelled probability width 0.3", "--n", "50", "--simulations", "2")
    target = suffice.json("plan", "rho.json", *asked)["target"]
    assert target["epsilon_at"].keys() == {"1e-6", "1e-9", "1e-12"}


def test_a_release_and_an_account_state_epsilons_at_deltas(place: Path, suffice: Runner) -> None:
    options = ("--reason", "x", "--create", "--unwitnessed")
    suffice.text("ledger", "grant", "passengers", "--epsilon", "1", "--delta", "1e-6", *options)
    assert suffice.json("release", "rho.json")["epsilon_at"]["1e-6"] == pytest.approx(0.43, abs=0.001)
    pure = suffice.json("release", "pure.json")
    assert "epsilon_at" not in pure
    assert pure["one_unit"].startswith("one unit: epsilon 0.1; other charges")
    (account,) = suffice.json("ledger", "show")["accounts"]
    assert account["granted_epsilon_at"]["1e-6"] == pytest.approx(1, abs=1e-5)
    assert account["person"]["so_far_epsilon_at"]["1e-6"] < 1
    rows = [line for line in suffice.text("ledger", "show").splitlines() if " published " in line]
    assert all(len(line) <= 80 for line in rows), rows
    assert len(rows) == 2
    assert place.exists()


@pytest.mark.slow
def test_a_year_of_windows_in_rho(place: Path, suffice: Runner) -> None:
    """What a plan finds for (epsilon, delta) in a year; metrics of the window that was charged most."""
    content = json.loads((place / "rho.json").read_text(encoding="utf-8"))
    window = {"column": "day", "every": "month"}
    spec = {**content, "name": "monthly", "groups": {}, "window": window}
    (place / "monthly.json").write_text(json.dumps(spec), encoding="utf-8")
    year = suffice.json("plan", "monthly.json", "--per-year", "1", "--delta", "1e-6")["person"]
    assert year["per_year"] == format_number(IN_ALL)
    assert Fraction(year["rho"]) == Fraction(math.floor(IN_ALL / 12 * 10**12), 10**12)
    assert "of use with --per-year" in suffice.text("plan", "monthly.json", "--delta", "1e-6", status=2)
    grant = ("--rho", "0.02", "--per-window", "day:month", "--source", "data")
    options = ("--reason", "x", "--create", "--unwitnessed")
    suffice.text("ledger", "grant", "passengers", *grant, *options)
    ahead = ("backfill", "monthly.json", "--from", "2013-01", "--to", "2013-02", "--dry-run")
    assert "the grant of rho 0.02 covers what is left" in suffice.text(*ahead)
    suffice.text("release", "monthly.json", "--window", "2013-01")
    suffice.text("metrics", "monthly.json", "--out", "m.prom")
    metrics = (place / "m.prom").read_text(encoding="utf-8")
    assert 'suffice_rho_spent{dataset="passengers",scope="window"} 0.005\n' in metrics
    assert 'suffice_rho_remaining{dataset="passengers",scope="window"} 0.02\n' in metrics
    last = ("status", "monthly.json", "--from", "2013-01", "--last", "2")
    text = suffice.text(*last, status=6)
    assert re.search(r"earlier windows \(1 published, \d+ overdue\): --last \d+ shows all", text)
