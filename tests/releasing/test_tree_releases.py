"""Releases of trees, from rows to every reader: levels that add up; windows, units, both measures."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice
from suffice.cataloguing.catalogue import catalogue
from suffice.cli import tree as tree_command
from suffice.errors import SufficeWarning, UnknownNameError, UsageError
from suffice.pipeline.ask.planning.divided_plan import divided_plan
from suffice.pipeline.ask.trees.count_tree import CountTree
from suffice.pipeline.spec.plan import plan_document
from suffice.releasing.rehearsal import rehearse
from support.javascript import ask
from support.manifest_mutants import sealed
from support.running import Runner

STATES = {f"{state}-{number}": state for state in ("CA", "NY", "TX") for number in range(4)}
MAX_ROWS = 2
"""Of a person: some have more."""


@pytest.fixture
def runner(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """Persons with one to nine rows, some out of the tree, in January and February."""
    rng = np.random.default_rng(11)
    who = np.repeat(np.arange(2000), rng.integers(1, 10, 2000))
    return pd.DataFrame(
        {
            "who": who,
            "county": rng.choice([*STATES, "elsewhere"], len(who)),
            "day": pd.to_datetime("2013-01-01") + pd.to_timedelta(rng.integers(0, 59, len(who)), "D"),
            "ill": rng.random(len(who)) < 0.2,
            "stops": rng.integers(0, 9, len(who)),
        }
    )


def visits(measure: str = "epsilon", amount: int = 600, **changes: Any) -> suffice.Spec:
    return suffice.spec(
        **{
            "dataset": "visits",
            measure: amount,
            "unit": {"column": "who", "max_rows": MAX_ROWS},
            "window": {"column": "day", "every": "month"},
            "derived": {"state": {"column": "county", "map": STATES}},
            "statistics": {
                "ill": suffice.bernoulli(
                    hierarchy=["nation", "state", "county"], groups={"county": list(STATES)}
                ),
                "rows": suffice.bernoulli(
                    "all",
                    hierarchy=["all", "month", "day"],
                    groups={"day": {"from": "2013-01-01", "to": "2013-02-28", "every": "day"}},
                    level_shares=[1, 1, 2],
                ),
            },
            **changes,
        }
    )


@pytest.fixture(scope="module")
def released(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> suffice.Release:
    """So much epsilon that noise other than 0 has a chance below 1e-6 in all."""
    return release_of(rows, tmp_path_factory.mktemp("visits"), "epsilon", 600)


@pytest.fixture(scope="module")
def in_rho(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> suffice.Release:
    """So much rho that noise other than 0 has a chance below 1e-6 in all."""
    return release_of(rows, tmp_path_factory.mktemp("visits"), "rho", 9000)


def release_of(rows: pd.DataFrame, root: Path, measure: str, amount: int) -> suffice.Release:
    places: dict[str, Any] = {"store": str(root / "store"), "ledger": f"sqlite:///{root / 'ledger.db'}"}
    loss: dict[str, Any] = {measure: amount}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeWarning)
        suffice.grant(
            "visits",
            **loss,
            reason="a test",
            ledger=places["ledger"],
            unit="column:who",
            create=True,
            unwitnessed=True,
        )
        rows.to_parquet(root / "rows.parquet")
        source = {"parquet": str(root / "rows.parquet")}
        spec = visits(measure, amount, source=source)
        assert not [stage for stage in rehearse(spec, window="2013-01", **places).stages if not stage.tried]
        suffice.release(spec, window="2013-01", **places)
    return suffice.open_release("visits@2013-01", store=places["store"])


@pytest.mark.slow
@pytest.mark.parametrize("fixture", ["released", "in_rho"])
def test_levels_are_sums_of_the_rows_that_units_keep(
    request: pytest.FixtureRequest, rows: pd.DataFrame, fixture: str
) -> None:
    released: suffice.Release = request.getfixturevalue(fixture)
    january = rows[rows.day < "2013-02-01"]
    for name, entering in {"ill": january[january.county.isin(STATES)], "rows": january}.items():
        kept = np.minimum(entering.groupby("who").size(), MAX_ROWS).sum()
        tree = released.tree(name).tree
        values = [released.statistic(f"{name}.{level}").values for level in tree.levels]  # noqa: PD011 - ours
        assert values[0].sum() == kept
        for depth in range(1, len(values)):
            summed = np.zeros_like(values[depth - 1])
            np.add.at(summed, tree.parent_of(depth), values[depth])
            assert summed.tolist() == values[depth - 1].tolist()


@pytest.mark.slow
def test_a_tree_is_opened_from_a_store_alone(released: suffice.Release) -> None:
    assert released.trees == {"ill": ["nation", "state", "county"], "rows": ["all", "month", "day"]}
    tree = released.tree("ill")
    assert tree.tree.keys[1:] == (("CA", "NY", "TX"), tuple(STATES))
    _, root = released.tree("rows", population="reciprocal").table(level="all")
    assert (root["key"], root["lower"]) == ("true", root["upper"])
    assert "tree ill: nation, state, county" in str(released)
    with pytest.raises(UnknownNameError, match="has no tree 'all': its trees are ill, rows"):
        released.tree("all")
    with pytest.raises(UnknownNameError, match=r"ill\.state is a level of the tree ill: .* level state"):
        released.tree("ill.state")
    asked = r"ill is a tree: suffice tree RELEASE ill, in Python release\.tree\('ill'\)"
    with pytest.raises(UsageError, match=rf"{asked}; its levels are .*ill\.county"):
        released.statistic("ill")
    with pytest.raises(UsageError, match="'county' is no group beside the tree's, which are: none"):
        released.tree("ill", {"county": "CA-1"})


@pytest.mark.slow
def test_each_level_is_asked_like_any_statistic(released: suffice.Release) -> None:
    posterior = released.posterior("ill.state")
    assert posterior.mean() == pytest.approx(
        released.tree("ill").ratio("true", "state", rng=1)[0]["mean"], abs=0.05
    )
    assert len(released.table("rows.day")) == 2 * 59
    assert suffice.roll_up(released["ill.county"], "county").posterior().mean("share") == pytest.approx(
        0.2, abs=0.02
    )
    directory = Path(released.uri.removeprefix("file://"))
    asked: list[dict[str, Any]] = [
        {"statistic": name, "table": {"where": {}}} for name in ("ill.state", "rows.month")
    ]
    for question, answer in zip(asked, ask(directory, asked)["answers"], strict=True):
        expected = released.table(str(question["statistic"]))
        assert [row["estimate"] for row in answer] == [row["estimate"] for row in expected]


@pytest.mark.parametrize("change", [{"ill": ["nation", "county", "state", "x"]}, {"ill": ["county"]}, {}, []])
def test_no_reader_takes_other_levels(released: suffice.Release, tmp_path: Path, change: Any) -> None:
    folder = tmp_path / "copy"
    source = Path(released.uri.removeprefix("file://"))
    folder.mkdir()
    for file in source.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["plan"]["hierarchies"] = change
    (folder / "manifest.json").write_bytes(sealed(manifest))
    with pytest.raises(suffice.errors.ReleaseCorruptError):
        suffice.open_release(str(folder))
    assert ask(folder, [])["code"] == "manifest"


@pytest.mark.slow
def test_pages_name_every_level(released: suffice.Release, tmp_path: Path) -> None:
    store = released.uri.removeprefix("file://").split("/visits/")[0]
    catalogue(store, tmp_path / "site")
    pages = [path.read_text() for path in (tmp_path / "site").rglob("*.html")]
    assert any("ill.nation" in page and "12 cells by county" in page for page in pages)


@pytest.mark.slow
def test_the_command_prints_counts_that_add_up(released: suffice.Release, runner: Runner) -> None:
    printed = runner.json("tree", released.uri, "ill")
    assert printed["levels"] == ["nation", "state", "county"]
    true = {(row["level"], row["key"]): row["mean"] for row in printed["rows"] if row["component"] == "true"}
    assert sum(true["state", key] for key in ("CA", "NY", "TX")) == pytest.approx(true["nation", "true"])
    in_pieces = runner.json("tree", released.uri, "ill", "--cluster", "threads")
    assert [row["mean"] for row in in_pieces["rows"]] == pytest.approx(
        [row["mean"] for row in printed["rows"]]
    )
    assert len(runner.json("tree", released.uri, "ill", "--level", "state")["rows"]) == 6
    assert f"suffice tree {released.uri} ill" in runner.text("show", released.uri)
    text = runner.text("tree", released.uri, "ill", "--released", "--level", "nation")
    assert "least_squares" in text
    assert "counts: of rows kept: at most 2 of each unit" in text
    ratio = runner.json("tree", released.uri, "ill", "--ratio", "true", "--level", "state", "--seed", "1")
    assert [row["mean"] for row in ratio["rows"]] == pytest.approx([0.2] * 3, abs=0.05)
    assert (ratio["draws"], ratio["seed"]) == (2000, 1)
    assert not {"draws", "seed"} & printed.keys()
    drawn: dict[str, Any] = {"draws": 2000, "rng": 1}
    counted, of_states = released.tree("ill"), ("--level", "state", "--seed", "1")
    for options, key, which, expected in (
        (("--sum", *of_states), "rows", "leaves contaminated", counted.sum("state", **drawn)),
        (
            ("--rank", "2", "--component", "true", *of_states),
            "ranks",
            "among the 2 highest, true",
            counted.rank_probabilities("state", within=2, component="true", **drawn),
        ),
        (
            ("--roll-up", "state=CA", "--roll-up", "county=NY-1", "--roll-up", "county=NY-2", "--seed", "1"),
            "roll_up",
            "state=CA, county=NY-1, county=NY-2",
            counted.roll_up({"state": ["CA"], "county": ["NY-1", "NY-2"]}, **drawn),
        ),
    ):
        answer = runner.json("tree", released.uri, "ill", *options)
        assert answer[key] == list(expected)
        assert answer["source"]["model"].endswith(f"; {which}")
    alone = runner.json("tree", released.uri, "ill", "--component", "true")["rows"]
    assert alone == [row for row in counted.table() if row["component"] == "true"]
    beside = runner.text("tree", released.uri, "ill", "--released").splitlines()
    assert max(len(line) for line in beside if not line.startswith("release: ")) <= 80
    assert "true, county" in beside
    for words, rule in {
        ("--share",): "--share is of the nodes of one level: name it with --level",
        ("--share", "--released", "--level", "state"): "different answers",
        ("--released", "--level", "x"): "the tree has no level 'x': it has nation, state, county",
        ("--roll-up", "x=CA"): "the tree has no level 'x'",
        ("--roll-up", "state=XX"): "the level state has no key 'XX'",
        ("--roll-up", "state"): "write it as LEVEL=KEY",
        ("--roll-up", "state=CA", "--level", "state"): "names levels itself",
        ("--ratio", "maybe", "--level", "state"): "no component 'maybe': it has false, true",
        ("--sum", "--level", "state", "--component", "true"): "--sum is of all components",
        ("--rank", "2", "--level", "state"): "name it with --component, one of false, true",
        ("--rank", "0", "--level", "state", "--component", "true"): "within 1 to 3 highest nodes of state",
        ("--share", "--level", "nation"): "nation is the root",
        ("--mass", "2"): "mass must lie between 0 and 1",
        ("--where", "county=CA-1"): "no group beside the tree's",
    }.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CountTree, "of", None)  # refused before anything is inferred
            assert rule in runner.text("tree", released.uri, "ill", *words, status=2)


@pytest.mark.slow
def test_other_groups_have_a_tree_for_each_key(
    tmp_path: Path, rows: pd.DataFrame, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: dict[str, Any] = {"store": str(tmp_path / "store"), "ledger": f"sqlite:///{tmp_path / 'l.db'}"}
    groups: dict[str, list[Any]] = {"ill": [False, True], "county": list(STATES)}
    statistics = {"rows": suffice.bernoulli("all", hierarchy=["all", "state", "county"], groups=groups)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeWarning)
        suffice.grant(
            "visits", epsilon=5000, reason="a test", ledger=places["ledger"], create=True, unwitnessed=True
        )
        suffice.release(
            visits(amount=5000, unit="row", window=None, statistics=statistics), data=rows, **places
        )
    release = suffice.open_release("visits", store=places["store"])
    listed = r"there is a tree for each key of ill \(false, true\): choose one, as --where ill=false"
    with pytest.raises(UsageError, match=listed):
        release.tree("rows")
    words = ("tree", "visits", "rows", "--store", places["store"])
    rows_of_all = runner.json(*words, "--level", "state")["rows"]
    assert [row["ill"] for row in rows_of_all] == ["false"] * 6 + ["true"] * 6
    alone = runner.json(*words, "--level", "state", "--where", "ill=true")["rows"]
    assert rows_of_all[6:] == [{"ill": "true", **row} for row in alone]
    assert "ill=true\n\ncomponent" in runner.text(*words, "--level", "state")
    monkeypatch.setattr(tree_command, "_MOST_TREES", 1)
    assert "of ill (false, true): choose one, as --where ill=false" in runner.text(*words, status=2)
    for key in (False, True):
        _, root = release.tree("rows", {"ill": str(key).lower()}).table(level="all")
        assert root["mean"] == pytest.approx(((rows.ill == key) & rows.county.isin(STATES)).sum(), abs=0.01)


@pytest.mark.slow
def test_totals_have_a_tree_with_pages_and_commands(
    tmp_path: Path, rows: pd.DataFrame, runner: Runner
) -> None:
    places: dict[str, Any] = {"store": str(tmp_path / "store"), "ledger": f"sqlite:///{tmp_path / 'l.db'}"}
    statistics = {
        "stops": suffice.poisson(
            upper=4, hierarchy=["nation", "state", "county"], groups={"county": list(STATES)}
        )
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeWarning)
        suffice.grant(
            "visits", epsilon=9000, reason="a test", ledger=places["ledger"], create=True, unwitnessed=True
        )
        spec = visits(amount=9000, unit="row", window=None, statistics=statistics)
        suffice.release(spec, data=rows, **places)
    assert "95 % of the noise of one total lies in a width of nation 0" in " ".join(str(spec.plan()).split())
    release = suffice.open_release("visits", store=places["store"])
    inside = rows[rows.county.isin(STATES)]
    by_state = inside.stops.clip(0, 4).groupby(inside.county.map(STATES)).sum()
    printed = runner.json("tree", release.uri, "stops", "--level", "state")
    assert {row["key"]: (row["lower"], row["upper"]) for row in printed["rows"]} == {
        state: (total, total) for state, total in by_state.items()
    }
    assert "Totals are of values clipped to 0..4." in printed["notes"]
    catalogue(places["store"], tmp_path / "site")
    pages = " ".join(path.read_text() for path in (tmp_path / "site").rglob("*.html"))
    assert "inferred together from their noisy totals of stops" in pages
    assert "Totals are of values clipped to 0..4." in pages
    assert f"{by_state['CA']:,} to {by_state['CA']:,}" in pages


def test_a_division_states_shares_of_levels() -> None:
    """What is pasted is the division that was proposed."""
    spec = visits("epsilon", 1, assume={"rows": 3000}, statistics=dict(list(_entries().items())[:1]))
    division = divided_plan(spec)
    line = division.shares.splitlines()[1]
    assert line.startswith("  ill: {share: 1, level_shares: [")
    shares = line.partition("[")[2].partition("]")[0].split(", ")
    pasted = _entries()["ill"] | {"level_shares": shares}
    levels = plan_document(visits("epsilon", 1, statistics={"ill": pasted}).plan())["trees"][0]["levels"]
    assert [level["share"] for level in levels] == shares
    assert [str(of.share_divided.limit_denominator(10**6)) for of in division.statistics]


def _entries() -> dict[str, Any]:
    return {
        "ill": suffice.bernoulli(hierarchy=["nation", "state", "county"], groups={"county": list(STATES)}),
    }
