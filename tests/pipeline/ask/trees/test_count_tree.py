"""What a consumer asks of the counts of a tree."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.errors import PriorError, UnknownNameError, UsageError
from suffice.pipeline.ask.trees import units
from suffice.pipeline.ask.trees.count_tree import CountTree
from suffice.pipeline.terms.declaration.key_tree import KeyTree
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan
from support.small_trees import node_counts

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

COUNTIES = tuple(f"county {number}" for number in range(9))
TREE = KeyTree(
    levels=("nation", "state", "county"),
    keys=(("all",), ("a", "b", "c"), COUNTIES),
    parents=((0, 0, 0), (0, 0, 0, 1, 1, 2, 2, 2, 2)),
)
BERNOULLI = {"family": "bernoulli", "column": "ill"}
LEAVES = np.array([[0, 4, 2, 30, 11, 0, 8, 25, 160], [3, 9, 14, 22, 40, 1, 30, 41, 90]])


def released(epsilons: tuple[str, ...] = ("0.2", "0.2", "0.4")) -> list[NoisyStatistic]:
    rng = np.random.default_rng(6)
    parents = tuple(TREE.parent_of(level) for level in (1, 2))
    statistics = []
    for keys, counts, epsilon in zip(TREE.keys, node_counts(parents, LEAVES), epsilons, strict=True):
        plan = statistic_plan(BERNOULLI, epsilon=epsilon, public_n=False)
        values = counts.T + discrete_laplace(plan.scale, counts.T.shape, rng)
        statistics.append(noisy_statistic(plan, values, groups={"place": list(keys)}))
    return statistics


@pytest.fixture(scope="module")
def counted() -> CountTree:
    return CountTree.of(TREE, released())


@pytest.mark.slow
def test_a_table_has_a_row_for_each_node_and_component(counted: CountTree) -> None:
    rows = counted.table()
    assert rows.columns == ("component", "level", "key", "mean", "sd", "lower", "upper")
    assert len(rows) == 2 * 13
    assert counted.components == ("false", "true")
    for row in rows:
        assert isinstance(row["lower"], int)
        assert 0 <= row["lower"] <= row["mean"] <= row["upper"]
    means = {(row["component"], row["key"]): row["mean"] for row in rows}
    assert means["true", "all"] == pytest.approx(sum(means["true", key] for key in "abc"), abs=1e-6)
    assert counted.error < 0.01
    assert counted.notes == ()
    assert "1 nation, 3 state, 9 county" in repr(counted)
    assert [row["key"] for row in counted.table(level="state")] == ["a", "b", "c"] * 2
    for row, widest in zip(counted.highest_density(), rows, strict=True):
        assert row["upper"] - row["lower"] <= widest["upper"] - widest["lower"]


@pytest.mark.slow
def test_laws_are_of_whole_numbers(counted: CountTree) -> None:
    laws = counted.counts("county", "true")
    assert tuple(laws) == COUNTIES
    assert all(sum(law.values()) == pytest.approx(1.0) and min(law) >= 0 for law in laws.values())
    with pytest.raises(UsageError, match="name one of the components: false, true"):
        counted.counts("county")
    with pytest.raises(UnknownNameError, match="no component 'maybe'"):
        counted.counts("county", "maybe")


def test_draws_add_up(counted: CountTree) -> None:
    drawn = counted.draws(50, 1, component="true")
    np.testing.assert_array_equal(drawn["state"].sum(axis=1), drawn["nation"][:, 0])
    np.testing.assert_array_equal(drawn["county"][:, :3].sum(axis=1), drawn["state"][:, 0])
    np.testing.assert_array_equal(drawn["county"], counted.draws(50, 1, component="true")["county"])


@pytest.mark.slow
def test_what_is_made_of_draws_agrees_with_marginals(counted: CountTree) -> None:
    # Of 2,000 draws a mean is off by .022 standard deviations: by 6 of these once in 5e8.
    table = {(row["component"], row["key"]): row for row in counted.table()}
    for row in counted.roll_up({"state": ["b"], "county": [COUNTIES[3], COUNTIES[4]]}):
        state = table[row["component"], "b"]
        assert abs(row["mean"] - state["mean"]) < 6 * 0.022 * state["sd"]
        assert isinstance(row["lower"], int)
    shares = counted.share("county")
    of_state = [row["mean"] for row in shares if row["component"] == "true"]
    np.testing.assert_allclose([sum(of_state[:3]), sum(of_state[3:5]), sum(of_state[5:])], 1.0)
    of_true = counted.share("county", component="true", rng=1)
    assert [row["key"] for row in of_true] == list(COUNTIES)
    # Shares of two sets of 2,000 draws: off by 6 standard errors of their difference once in 5e8.
    for row, mean in zip(of_true, of_state, strict=True):
        assert abs(row["mean"] - mean) < 6 * 0.032 * row["sd"]
        assert row["component"] == "true"
    of_nation = [row["mean"] for row in counted.share("state", above="nation") if row["component"] == "false"]
    assert sum(of_nation) == pytest.approx(1.0)
    true, false = counted.ratio("true", "state", rng=1), counted.ratio("false", "state", rng=1)
    for row, other in zip(true, false, strict=True):
        assert 0.0 <= row["lower"] <= row["mean"] <= row["upper"] <= 1.0
        assert row["mean"] + other["mean"] == pytest.approx(1.0, abs=0.02)
    for row in counted.sum("state", rng=1):
        parts = [table[name, row["key"]] for name in counted.components]
        assert abs(row["mean"] - sum(part["mean"] for part in parts)) < 6 * 0.022 * row["sd"]
        # Components are independent: their variances add up, and 2,000 draws tell sds to a twentieth.
        assert row["sd"] == pytest.approx(np.hypot(*(part["sd"] for part in parts)), rel=0.2)
        assert isinstance(row["lower"], int)
    assert counted.sum("state", of=["true"], rng=1).columns == (
        "level",
        "key",
        "mean",
        "sd",
        "lower",
        "upper",
    )
    chances = counted.rank_probabilities("state", component="true", within=2)
    assert sum(row["probability"] for row in chances) == pytest.approx(2.0)
    assert chances[2]["probability"] == 1.0


def test_least_squares_stands_beside(counted: CountTree) -> None:
    rows = [row for row in counted.least_squares() if row["component"] == "true"]
    by_key = {row["key"]: row for row in rows}
    # Released values contradict each other; both answers add up.
    assert by_key["all"]["released"] != by_key["all"]["below"]
    for column in ("least_squares", "mean"):
        assert by_key["all"][column] == pytest.approx(sum(by_key[key][column] for key in "abc"), abs=1e-6)
    assert by_key[COUNTIES[0]]["below"] is None


@pytest.mark.slow
def test_cells_are_looked_up_by_their_keys(counted: CountTree) -> None:
    statistics = released()
    order = np.array([2, 0, 1])
    shuffled = [statistics[0], statistics[1].take(order), statistics[2]]
    assert CountTree.of(TREE, shuffled).table() == counted.table()


@pytest.mark.slow
def test_levels_may_be_missing() -> None:
    of_leaves = CountTree.of_leaves(TREE, released()[2])
    assert len(of_leaves.table(level="nation")) == 2
    without = CountTree.of(TREE, [None, *released()[1:]], population="reciprocal")
    assert without.notes == ()
    rows = without.least_squares()
    assert rows[0]["released"] is None


@pytest.mark.slow
def test_known_sizes_move_means() -> None:
    leaves = released(("0.2", "0.2", "0.02"))[2]
    sizes = np.array([1.0, 1, 1, 1, 1, 1, 1, 1, 50])
    linked = CountTree.of_leaves(TREE, leaves, sizes=sizes, population="negative-binomial")
    alike = CountTree.of_leaves(TREE, leaves, population="negative-binomial")
    last = [tree.table(level="county")[8]["mean"] for tree in (linked, alike)]
    assert last[0] > last[1]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda levels: levels[:2], "a statistic of each"),
        (lambda _: [None, None, None], "one at least"),
        (lambda levels: [levels[0], levels[0], levels[2]], "one for every node"),
        (lambda levels: [levels[0], levels[1].take(np.array([0, 0, 1])), levels[2]], "are not those"),
        (lambda levels: [levels[0], levels[1], levels[2].summed()], "several releases or of sums"),
    ],
)
def test_levels_that_do_not_fit_are_refused(change: Any, rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        CountTree.of(TREE, change(released()))


def contradicting(of_root: int, epsilons: tuple[str, ...] = ("2", "1", "0.5")) -> CountTree:
    levels = released(epsilons)
    root = levels[0]
    plan = statistic_plan(BERNOULLI, epsilon=epsilons[0], public_n=False)
    moved = np.asarray(root.values) + of_root
    levels[0] = noisy_statistic(plan, moved, groups={"place": ["all"]})
    return CountTree.of(TREE, levels, population="reciprocal")


@pytest.mark.parametrize("of_root", [-300, 300, 10**6])
def test_levels_that_contradict_each_other_are_refused(of_root: int) -> None:
    with pytest.raises(UsageError, match=r"of false contradict each other .* 'all' of the level nation is"):
        contradicting(of_root)


def test_levels_that_noise_explains_are_not_refused() -> None:
    assert contradicting(0).error < 1e-6
    # Seven standard deviations of the root's noise, which that of the levels below explains.
    assert contradicting(5).error < 1e-6


def test_one_level_without_noise_beside_a_noisy_one_is_not_refused() -> None:
    leaves, exact = released()[2], released(("400", "0.2", "0.4"))[0]
    rows = CountTree.of(TREE, [exact, None, leaves], population="reciprocal").table(level="nation")
    assert [(row["lower"], row["upper"]) for row in rows] == [(240, 240), (250, 250)]


def test_levels_without_noise_that_differ_are_refused() -> None:
    with pytest.raises(UsageError, match="contradict each other"):
        contradicting(3, ("400", "400", "400"))


def test_sums_are_refused() -> None:
    entry = {"family": "normal", "column": "x", "lower": 0, "upper": 1}
    plan = statistic_plan(entry, epsilon="1", public_n=False)
    statistic = noisy_statistic(plan, np.zeros((1, len(plan.components)), np.int64), groups={})
    with pytest.raises(UsageError, match="neither counts records nor has totals"):
        CountTree.of(TREE, [statistic, None, None])


def test_names_that_are_not_there_are_refused(counted: CountTree) -> None:
    with pytest.raises(PriorError, match="flat"):
        CountTree.of(TREE, released(), population="flat")
    with pytest.raises(UnknownNameError, match="no level 'city'"):
        counted.table(level="city")
    with pytest.raises(UnknownNameError, match="no key 'z'"):
        counted.roll_up({"state": ["z"]})
    with pytest.raises(UsageError, match="list of keys by level"):
        counted.roll_up({"state": "ab"})
    with pytest.raises(UsageError, match="one node at least"):
        counted.roll_up({})
    with pytest.raises(UsageError, match=r"nation is the root.*name a level below"):
        counted.share("nation")
    with pytest.raises(UnknownNameError, match=r"no component 'all': it has false, true"):
        counted.share("county", component="all")
    wrong: Any
    for wrong in ("true", []):
        with pytest.raises(UsageError, match=r"a list of components, as \['false'\]"):
            counted.ratio("true", "state", of=wrong)
    with pytest.raises(UnknownNameError, match="no component 'all'"):
        counted.sum("state", of=["true", "all"])
    with pytest.raises(UsageError, match=r"keys by level, as \{'county': \[KEY"):
        counted.roll_up("state")  # type: ignore[arg-type]
    for name, here in {
        "mean": r"table\(\)",
        "per_row": r"posterior\(\), each level",
        "levels": "tree.levels",
    }.items():
        with pytest.raises(AttributeError, match=f"has no attribute '{name}': here it is .*{here}"):
            getattr(counted, name)
    with pytest.raises(UsageError, match="within"):
        counted.rank_probabilities("state", within=4, component="true")


def totals(upper: int, epsilons: tuple[str, ...], **entry: object) -> tuple[list[NoisyStatistic], list[Any]]:
    """Totals of values up to a bound at nine counties, what is above them, and what is released of these."""
    rng = np.random.default_rng(8)
    family = {"family": "poisson", "column": "stops", "upper": str(upper), **entry}
    leaves = rng.integers(0, 30, len(COUNTIES)) * rng.integers(0, upper + 1, len(COUNTIES))
    levels = node_counts(tuple(TREE.parent_of(level) for level in (1, 2)), leaves)
    statistics = []
    for keys, of_level, epsilon in zip(TREE.keys, levels, epsilons, strict=True):
        plan = statistic_plan(family, epsilon=epsilon, public_n=False)
        # Other components are not asked for.
        sums = np.stack([of_level, *[30 * upper - of_level] * (len(plan.components) - 1)], axis=1)
        values = sums + discrete_laplace(plan.scale, sums.shape, rng)
        statistics.append(noisy_statistic(plan, values, groups={"place": list(keys)}))
    return statistics, levels


@pytest.mark.parametrize("more", [{}, {"count_clipped": True}])
def test_totals_without_noise_are_themselves(more: dict[str, object]) -> None:
    statistics, levels = totals(9, ("2000", "2000", "2000"), **more)
    tree = CountTree.of(TREE, statistics)
    assert tree.components == ("total",)
    rows = tree.table()
    assert rows.title == "Totals of nation, state, county"
    assert rows.notes[0] == "Totals are of values clipped to 0..9."
    assert rows.notes[1].startswith("A level has next to no noise: ")
    expected = np.concatenate(levels).tolist()
    assert [row["lower"] for row in rows] == [row["upper"] for row in rows] == expected
    assert [row["released"] for row in tree.least_squares()] == expected


def test_totals_are_in_the_columns_unit() -> None:
    """A lattice of 16 steps up to 8: one is half of the column's unit."""
    statistics, levels = totals(8, ("2000", "2000", "2000"), family="exponential", lattice_bits="4")
    tree = CountTree.of(TREE, statistics)
    assert [row["mean"] for row in tree.table(level="county")] == pytest.approx(levels[2] / 2)
    assert [row["upper"] for row in tree.table(level="nation")] == [levels[0][0] / 2]
    assert set(tree.counts("nation")["all"]) == {levels[0][0] / 2}
    drawn = tree.draws(3, 1)
    assert drawn["nation"].tolist() == [[levels[0][0] / 2]] * 3
    assert tree.roll_up({"state": ["a", "b", "c"]}, draws=3, rng=1)[0]["lower"] == levels[0][0] / 2


@pytest.mark.slow
def test_steps_are_joined_where_the_noise_has_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the lattice itself: a step of 1 / 16 of the scale moves little; twice the scale is too much."""
    statistics, _ = totals(40, ("0.8", "0.8", "0.8"))
    scale = statistics[0].plan.scale

    def of(steps_per_scale: float) -> tuple[CountTree, list[float]]:
        monkeypatch.setattr(units, "STEPS_PER_SCALE", steps_per_scale)
        tree = CountTree.of(TREE, statistics)
        return tree, [row[name] for row in tree.table() for name in ("mean", "lower", "upper")]

    (fine, exactly), (joined, nearly), (_, coarsely) = of(1000), of(16), of(0.5)
    assert (fine.unit.steps, joined.unit.steps) == (1, 3)
    assert any("to steps of 3," in note for note in joined.notes)
    assert not any("steps" in note for note in fine.notes)
    off, far = (np.abs(np.subtract(other, exactly)).max() / scale for other in (nearly, coarsely))
    assert off < 0.1
    assert far > 0.3
    # An even number would leave a released value in the middle between two steps.
    assert units.TreeUnit.of_total(Fraction(1), Fraction(40), 4.5 * units.STEPS_PER_SCALE).steps == 3
    drawn = joined.draws(5, 1)
    assert (drawn["county"].sum(axis=1) == drawn["nation"][:, 0]).all()
    assert not (drawn["county"] % 3).any()


def test_intervals_hold_all_that_is_rounded_to_their_ends() -> None:
    lower, upper = units.TreeUnit(steps=3).ends(np.array([0, 5]), np.array([2, 6]))
    assert (lower.tolist(), upper.tolist()) == ([0, 14], [7, 19])
