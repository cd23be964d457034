"""Queries against enumeration of the joint distribution, and against what is known by hand."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import binom

from suffice import models
from suffice.errors import UsageError
from suffice.pipeline.math.engines.elimination import elimination_order
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.storage.releases.release_store import open_release
from support.making import mapping
from support.releases import publish
from support.table_releases import CAUSES
from support.tables import TABLES

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.models.network import Network
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.typing import Floats

ALARM: dict[str, Any] = {
    "family": "bayesian_network",
    "nodes": {
        "burglary": ["0", "1"],
        "quake": ["0", "1"],
        "alarm": {"categories": ["0", "1"], "parents": ["burglary", "quake"]},
        "john": {"categories": ["0", "1", "2"], "parents": ["alarm"]},
        "mary": {"categories": ["0", "1"], "parents": ["alarm", "quake"]},
        "alone": ["0", "1", "2"],
    },
}
CUBE = {"family": "contingency", "columns": {"a": ["0", "1"], "b": ["0", "1", "2"], "c": ["0", "1"]}}
ENTRIES: dict[str, dict[str, Any]] = {
    **{name: TABLES[name] for name in ("naive_bayes", "star", "chain", "collider")},
    "alarm": ALARM,
    "contingency": CUBE,
}
DRAWS = 7


def released(root: Path, entry: dict[str, Any], values: Any = None, **changes: Any) -> Release:
    """Publish made-up values of one statistic in two cells."""
    content = {"groups": {"site": ["p", "q"]}, "statistics": {"joint": entry}, **changes}
    plan = compile_plan(load_spec(mapping("data", **content)))
    (statistic,) = plan.statistics
    if values is None:
        values = np.random.default_rng(4).integers(0, 60, (plan.n_cells, len(statistic.components)))
    return open_release(str(publish(root, plan, {"joint": np.array(values).astype(object)})))


def joint_of(network: Network, cut: dict[str, str]) -> dict[tuple[str, ...], Floats]:
    """Multiply the probabilities of every assignment, by the labels that the posterior gives its entries.

    Nodes in `cut` have the set category for certain. Values are (n_draws, n_cells).
    """
    labels = network.posterior.label_columns
    drawn = network.posterior.sample(DRAWS, np.random.default_rng(5))["probability"]
    names = [name for name in labels if name != "table"]
    entries: dict[str, list[tuple[dict[str, str], Floats]]] = {}
    for place, table in enumerate(labels["table"]):
        of_entry = {name: category for name in names if (category := labels[name][place]) is not None}
        entries.setdefault(str(table), []).append((of_entry, drawn[..., place]))
    categories = {name: sorted({entry for entry in labels[name] if entry is not None}) for name in names}
    joint = {}
    for assigned in itertools.product(*(categories[name] for name in names)):
        named = dict(zip(names, assigned, strict=True))
        chance = np.full(drawn.shape[:2], float(all(named[name] == cut[name] for name in cut)))
        for table, rows in entries.items():
            if table not in cut:
                (matching,) = [value for entry, value in rows if entry.items() <= named.items()]
                chance = chance * matching
        joint[assigned] = chance
    return joint


def enumerated(
    network: Network, targets: tuple[str, ...], given: dict[str, str], do: dict[str, str]
) -> Floats:
    """Sum the joint distribution over all that is not asked for, (n_draws, n_cells, n_entries)."""
    names = [name for name in network.posterior.label_columns if name != "table"]
    sums: dict[tuple[str, ...], Any] = {}
    for assigned, chance in joint_of(network, do).items():
        named = dict(zip(names, assigned, strict=True))
        if given.items() <= named.items():
            key = tuple(named[name] for name in targets)
            sums[key] = sums.get(key, 0.0) + chance
    order = itertools.product(*(network.variables[name].categories for name in targets))
    values = np.stack([sums[key] for key in order], axis=-1)
    whole: Floats = values / values.sum(axis=-1, keepdims=True)
    return whole


@pytest.mark.parametrize("name", ENTRIES)
def test_queries_are_those_of_the_joint_distribution(name: str, tmp_path: Path) -> None:
    network = models.network(released(tmp_path, ENTRIES[name]), "joint", method="plug-in", draws=DRAWS, rng=5)
    rng = np.random.default_rng(6)
    names = list(network.variables)
    asked = 0
    for _ in range(30):
        roles = rng.choice(["target", "given", "do", "none"], len(names))
        picked = {
            role: [variable for variable, its in zip(names, roles, strict=True) if its == role]
            for role in roles
        }
        targets = tuple(rng.permutation(picked.get("target", [])).tolist())
        stated = {
            role: {
                variable: str(rng.choice(network.variables[variable].categories))
                for variable in picked.get(role, [])
            }
            for role in ("given", "do")
        }
        if not targets or (stated["do"] and ENTRIES[name]["family"] == "contingency"):
            continue
        asked += 1
        answer = network.query(targets, stated["given"], stated["do"])
        expected = enumerated(network, targets, **stated)
        np.testing.assert_allclose(answer.probability.draws, expected, rtol=1e-9)
    assert asked >= 5


def test_to_set_is_not_to_observe(tmp_path: Path) -> None:
    """A treatment that severe cases get: it helps each of them, and seems to harm."""
    treated = [4_500_000, 500_000, 1_000_000, 4_000_000]
    well = [(n - round(n * p), round(n * p)) for n, p in zip(treated, (0.8, 0.9, 0.2, 0.4), strict=True)]
    values = [[*treated, *itertools.chain(*well)]] * 2
    release = released(
        tmp_path, CAUSES, values, privacy={"epsilon": "100", "neighboring": "add_or_remove_one"}
    )
    network = models.network(release, "joint", method="plug-in", draws=200, rng=1)

    def chance(target: str, **stated: Any) -> float:
        return float(network.query(target, **stated).probability.mean[0, 1])

    treat = {"treated": "yes"}
    assert chance("well", given=treat) == pytest.approx((0.5 * 0.9 + 4 * 0.4) / 4.5, abs=2e-3)
    assert chance("well", do=treat) == pytest.approx((0.9 + 0.4) / 2, abs=2e-3)
    assert chance("severe", given=treat) == pytest.approx(4 / 4.5, abs=2e-3)
    assert chance("severe", do=treat) == pytest.approx(0.5, abs=2e-3)
    first, second = (row for row in network.query("well", do=treat).rows() if row["site"] == "p")
    assert (first["well"], second["well"]) == ("no", "yes")
    assert set(second) == {"site", "parameter", "well", "mean", "sd", "median", "lower", "upper"}
    assert second["lower"] < second["mean"] < second["upper"]


def test_intervals_of_conditionals_cover_under_noise(tmp_path: Path) -> None:
    """The share of 95 % intervals that hold what tables were drawn from; plug-in ones hold too few."""
    rng = np.random.default_rng(8)
    cells, n_rows, scale = 400, 60, 10.0
    truth = rng.dirichlet(np.ones(4), cells)
    exact = np.array([rng.multinomial(n_rows, row) for row in truth])
    success = -np.expm1(-1 / scale)
    noisy = exact + rng.geometric(success, exact.shape) - rng.geometric(success, exact.shape)
    release = released(
        tmp_path,
        {"family": "contingency", "columns": {"a": ["0", "1"], "b": ["0", "1"]}},
        noisy,
        groups={"site": {"range": [1, cells]}},
        privacy={"epsilon": "0.1", "neighboring": "add_or_remove_one"},
    )
    conditional = truth[:, 3] / (truth[:, 2] + truth[:, 3])
    shares = {}
    for method in ("noise-aware", "plug-in"):
        network = models.network(release, "joint", method=method, draws=1000, rng=2)
        interval = network.query("b", given={"a": "1"}).probability.credible_interval(0.95)[:, 1]
        shares[method] = np.mean((interval[:, 0] <= conditional) & (conditional <= interval[:, 1]))
    least = binom.ppf(1e-6, cells, 0.95) / cells
    assert shares["noise-aware"] >= least
    assert shares["plug-in"] < least


@pytest.mark.slow
def test_much_evidence_does_not_underflow(tmp_path: Path) -> None:
    features = {f"f{place}": ["0", "1"] for place in range(400)}
    entry = {"family": "naive_bayes", "outcome": {"y": ["0", "1"]}, "features": features}
    values = [[1, 999, 500, 500] * 400] * 2
    network = models.network(released(tmp_path, entry, values), "joint", method="plug-in", draws=3, rng=1)
    answer = network.query("y", given=dict.fromkeys(features, "0"))
    np.testing.assert_allclose(answer.probability.draws[..., 1], 1.0)


def test_a_single_draw_has_no_spread(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="2 or more: one draw alone has no spread"):
        models.network(released(tmp_path, CUBE), "joint", draws=1)


def test_evidence_without_a_chance_leaves_no_distribution(tmp_path: Path) -> None:
    """Under a prior so sparse that chances are 0 in some draws."""
    nothing = np.zeros((2, 12), dtype=int)
    release = released(tmp_path, CUBE, nothing)
    network = models.network(release, "joint", method="plug-in", prior="Dirichlet(0.001)", draws=200, rng=1)
    probability = network.query("a", given={"b": "1", "c": "0"}).probability
    assert np.all((probability.undefined_share > 0.0) & (probability.undefined_share < 1.0))
    is_defined = ~np.isnan(probability.draws)
    np.testing.assert_array_equal(is_defined[..., 0], is_defined[..., 1])
    np.testing.assert_allclose(probability.draws.sum(axis=-1)[is_defined[..., 0]], 1.0)
    assert np.all(np.isfinite(probability.mean))


def test_variables_go_by_minimum_fill() -> None:
    sizes = {str(place): 10 for place in range(31)}
    order, widest = elimination_order([(str(place), str(place + 1)) for place in range(30)], sizes, ("0",))
    assert len(order) == 30
    assert widest == 100
    star = [("hub", str(place)) for place in range(31)]
    assert elimination_order(star, {**sizes, "hub": 2}, ("7",))[1] == 20


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"target": "x"}, r"no variable 'x': it has burglary, quake"),
        ({"target": []}, "target names a variable"),
        ({"target": "john", "given": {"alarm": "7"}}, r"no category '7': it has 0, 1"),
        ({"target": "john", "given": {"nobody": "0"}}, "no variable 'nobody'"),
        ({"target": "john", "given": {"john": "0"}}, "john stands twice"),
        ({"target": "john", "given": {"alarm": "0"}, "do": {"alarm": "1"}}, "alarm stands twice"),
        ({"target": ["john", "john"]}, "john stands twice"),
        ({"target": "john", "given": ["alarm"]}, "given maps variables"),
        ({"target": "john", "mass": 2.0}, "mass"),
        ({"target": [["john"]]}, "no variable"),
        ({"target": 3}, "target names a variable"),
    ],
)
def test_queries_that_ask_for_nothing_are_refused(words: dict[str, Any], says: str, tmp_path: Path) -> None:
    network = models.network(released(tmp_path, ALARM), "joint", method="plug-in", draws=2, rng=1)
    with pytest.raises(UsageError, match=says):
        network.query(**words)


def test_tables_too_large_to_make_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = models.network(released(tmp_path, ALARM), "joint", method="plug-in", draws=2, rng=1)
    monkeypatch.setattr("suffice.pipeline.math.engines.elimination.MOST_NUMBERS", 20)
    with pytest.raises(UsageError, match="in 2 cells: at most 20 in all"):
        network.query(["john", "mary", "alone"])


def test_what_has_no_graph_or_no_tables_is_refused(tmp_path: Path) -> None:
    network = models.network(released(tmp_path / "a", CUBE), "joint", method="plug-in", draws=2, rng=1)
    with pytest.raises(UsageError, match="joint is contingency, which has none"):
        network.query("a", do={"b": "0"})
    other = released(tmp_path / "b", {"family": "bernoulli", "column": "late"})
    with pytest.raises(UsageError, match="joint is bernoulli, and a network is made of bayesian_network"):
        models.network(other, "joint")
