"""Fields of released pair tables: what they answer, and what they refuse."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice import combine_imputations, models
from suffice.errors import ConflictWarning, UsageError
from suffice.pipeline.ask.models import field_edges
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.storage.releases.release_store import open_release
from support.making import mapping
from support.releases import publish

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.typing import Floats

A, B, C = ["0", "1"], ["x", "y", "z"], ["no", "yes"]
COLUMNS: dict[str, dict[str, Any]] = {
    "ab": {"a": A, "b": B},
    "bc": {"b": B, "c": C},
    "ac": {"a": A, "c": C},
    "only": {"a": A},
    "abc": {"a": A, "b": B, "c": C},
    "other": {"a": ["0", "1", "2"], "c": C},
    "again": {"b": B, "a": A},
}
AXES = {"ab": 2, "bc": 0, "ac": 1}
OF_OTHER_ROWS = 60
"""More rows in each entry of the table of one variable than in the others: 20 scales of noise."""
ALL = ["ab", "bc", "ac"]


def released(root: Path, joint: Floats, rng: np.random.Generator, names: list[str] | None = None) -> Release:
    """Publish tables of a joint table of counts, by discrete Laplace noise of each plan's scale."""
    names = names or ALL
    content: dict[str, Any] = {
        "groups": None,
        "statistics": {name: {"family": "contingency", "columns": COLUMNS[name]} for name in names},
    }
    plan = compile_plan(load_spec(mapping("data", **content)))
    values = {}
    for statistic in plan.statistics:
        size = len(statistic.components)
        q = np.exp(-1.0 / statistic.scale)
        noise = rng.geometric(1.0 - q, size) - rng.geometric(1.0 - q, size)
        axis = AXES.get(statistic.name)
        exact = joint.sum(axis=axis).ravel() if axis is not None else np.full(size, 90)
        if statistic.name == "only":
            exact = joint.sum(axis=(1, 2)) + OF_OTHER_ROWS
        values[statistic.name] = (exact + noise).astype(int).astype(object)[None]
    return open_release(str(publish(root, plan, values)))


def table(rng: np.random.Generator) -> Floats:
    """Counts in which a and b go together, and c with b alone."""
    of_b = np.array([0.5, 0.3, 0.2])
    a_given_b, c_given_b = np.array([0.2, 0.5, 0.8]), np.array([0.6, 0.4, 0.3])
    p = np.stack([1 - a_given_b, a_given_b])[:, :, None] * of_b[None, :, None]
    p = p * np.stack([1 - c_given_b, c_given_b], axis=1)[None]
    counts: Floats = rng.multinomial(4000, p.ravel()).reshape(2, 3, 2).astype(float)
    return counts


@pytest.mark.slow
def test_queries_and_edges_follow_from_the_joint_distribution(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    joint = table(rng)
    fit = models.field(released(tmp_path, joint, rng), ALL, draws=1000, rng=1)
    assert fit.joint.shape == (1000, 2, 3, 2)
    np.testing.assert_allclose(fit.joint.sum(axis=(1, 2, 3)), 1.0)
    answer = fit.query(("c", "a"), {"b": "y"}).probability.draws[:, 0]
    expected = fit.joint[:, :, 1].transpose(0, 2, 1).reshape(1000, 4)
    np.testing.assert_allclose(answer, expected / expected.sum(axis=1, keepdims=True))
    # 7 posterior standard deviations: a false alarm has a chance below 1e-8.
    share, exact = fit.query("a").probability, joint.sum(axis=(1, 2)) / joint.sum()
    assert (np.abs(share.mean[0] - exact) < 7 * share.sd[0]).all()
    assert abs(fit.rows.mean() - 4000) < 7 * max(fit.rows.std(), 1.0)
    edges = {(row["first"], row["second"]): row for row in fit.edges()}
    assert edges["a", "b"]["lower"] > 0.2
    assert edges["a", "c"]["upper"] < 0.15  # of truth 0
    assert min(fit.agreement.values()) > 1e-4
    assert "saddlepoint" in "\n".join(fit.lines)
    assert "over 12 combinations" in "\n".join(fit.lines)
    synthetic = fit.synthesize(rows=3000, imputations=60, rng=3)
    assert (synthetic.imputations, synthetic.rows) == (60, 3000)
    of_a = synthetic.codes["a"] == 1
    combined = combine_imputations(of_a.mean(axis=1), of_a.var(axis=1) / 3000)
    # The posterior's mean and standard deviation, as synthetic rows tell them: 60 sets tell them to a third.
    assert abs(combined.estimate - share.mean[0, 1]) < 6 * combined.sd / np.sqrt(60)
    assert 0.5 < combined.sd / share.sd[0, 1] < 2.0


CHAIN = [f"v{place}" for place in range(8)]


def chain_release(root: Path, rng: np.random.Generator) -> tuple[Release, Floats]:
    """Publish the pairs of neighbours among eight variables of three categories, and v0 given v7 of rows."""
    rows = np.empty((8, 6000), int)
    rows[0] = rng.choice(3, p=[0.5, 0.3, 0.2], size=6000)
    for place in range(1, 8):
        stays = rng.random(6000) < 0.8
        rows[place] = np.where(stays, rows[place - 1], rng.integers(3, size=6000))
    categories = ["k", "l", "m"]
    pairs = {f"pair{place}": CHAIN[place : place + 2] for place in range(7)}
    statistics = {
        name: {"family": "contingency", "columns": dict.fromkeys(pair, categories)}
        for name, pair in pairs.items()
    }
    plan = compile_plan(load_spec(mapping("data", groups=None, statistics=statistics)))
    values = {}
    for place, statistic in enumerate(plan.statistics):
        q = np.exp(-1.0 / statistic.scale)
        noise = rng.geometric(1.0 - q, 9) - rng.geometric(1.0 - q, 9)
        exact = np.bincount(rows[place] * 3 + rows[place + 1], minlength=9)
        values[statistic.name] = (exact + noise).astype(object)[None]
    last = rows[0][rows[7] == 2]
    return open_release(str(publish(root, plan, values))), np.bincount(last, minlength=3) / len(last)


@pytest.mark.audit
def test_a_chain_of_many_variables_is_summed_along_itself(tmp_path: Path) -> None:
    """6561 combinations; v0 given v7 is in no table."""
    rng = np.random.default_rng(6)
    release, share = chain_release(tmp_path, rng)
    names = [f"pair{place}" for place in range(7)]
    fit = models.field(release, names, draws=800, rng=1)
    assert "along a tree of cliques, the largest of 9 combinations" in "\n".join(fit.lines)
    asked = fit.query("v0", {"v7": "m"}).probability
    # 7 posterior standard deviations, and as many of the share among rows.
    assert (np.abs(asked.mean[0] - share) < 7 * (asked.sd[0] + np.sqrt(share / 1500))).all()
    assert len(fit.edges()) == 7
    assert min(row["lower"] for row in fit.edges()) > 0.2
    assert abs(fit.rows.mean() - 6000) < 7 * max(fit.rows.std(), 1.0)
    synthetic = fit.synthesize(rows=500, imputations=10, rng=2)
    assert synthetic.codes["v7"].max() == 2
    with pytest.raises(UsageError, match="6561 combinations"):
        assert fit.joint


@pytest.mark.parametrize(
    ("categories", "variables", "steps", "said"),
    [
        (6, 8, (1,), "tables of 216 entries, more than 128"),
        (4, 10, (1,), "120 effects, and at most 100"),
        (2, 20, (1, 4, 7), "tables of"),
    ],
    ids=["large cliques", "many effects", "width"],
)
def test_circles_that_sums_cannot_go_along_are_refused(
    categories: int, variables: int, steps: tuple[int, ...], said: str, tmp_path: Path
) -> None:
    names = [f"v{place}" for place in range(variables)]
    domain = [f"c{number}" for number in range(categories)]
    content = {
        f"pair{place}_{step}": {
            "family": "contingency",
            "columns": {names[place]: domain, names[(place + step) % variables]: domain},
        }
        for place in range(variables)
        for step in steps
    }
    plan = compile_plan(load_spec(mapping("data", groups=None, statistics=content)))
    values = {name: np.full((1, categories**2), 50).astype(object) for name in content}
    release = open_release(str(publish(tmp_path, plan, values)))
    with pytest.raises(UsageError, match=said):
        models.field(release, list(content))


@pytest.mark.slow
def test_a_circle_of_many_variables_is_summed_along_cliques(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six variables, as if they were many: what is asked is a sum of all combinations."""
    monkeypatch.setattr("suffice.pipeline.ask.models.field.MOST_COMBINATIONS", 63)
    rng = np.random.default_rng(8)
    names, domain = [f"v{place}" for place in range(6)], ["k", "l"]
    law, pairs = np.ones((2,) * 6), {f"pair{place}": (place, (place + 1) % 6) for place in range(6)}
    for i, j in pairs.values():
        shape = [2 if place in (i, j) else 1 for place in range(6)]
        law = law * np.exp(0.6 * rng.normal(size=shape))
    counts = rng.multinomial(8000, (law / law.sum()).ravel()).reshape(law.shape)
    content = {
        name: {"family": "contingency", "columns": {names[i]: domain, names[j]: domain}}
        for name, (i, j) in pairs.items()
    }
    plan = compile_plan(load_spec(mapping("data", groups=None, statistics=content)))
    values = {}
    for statistic in plan.statistics:
        i, j = pairs[statistic.name]
        exact = counts.sum(axis=tuple(set(range(6)) - {i, j}))
        q = np.exp(-1.0 / statistic.scale)
        noise = rng.geometric(1.0 - q, 4) - rng.geometric(1.0 - q, 4)
        values[statistic.name] = ((exact.T if i > j else exact).ravel() + noise).astype(object)[None]
    release = open_release(str(publish(tmp_path, plan, values)))
    fit = models.field(release, list(content), draws=800, rng=1)
    assert "the largest of 8 combinations" in "\n".join(fit.lines)
    asked = fit.query("v0", {"v3": "l"}).probability
    share = law.sum(axis=(1, 2, 4, 5))[:, 1]
    assert (np.abs(asked.mean[0] - share / share.sum()) < 7 * asked.sd[0]).all()


@pytest.mark.slow
def test_tables_of_other_rows_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    names = [*ALL[:2], "only"]
    with pytest.raises(UsageError, match=r"contradict each other.* chance of \d\.\de-\d+"):
        models.field(released(tmp_path, table(rng), rng, names), names, draws=800, rng=1)


@pytest.mark.slow
def test_tables_that_disagree_are_answered_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if none were refused: what is said between both bounds."""
    monkeypatch.setattr(field_edges, "REFUSED", 0.0)
    rng = np.random.default_rng(3)
    names = [*ALL[:2], "only"]
    release = released(tmp_path, table(rng), rng, names)
    with pytest.warns(ConflictWarning, match="tables DISAGREE"):
        fit = models.field(release, names, draws=800, rng=1)
    assert "tables DISAGREE: chance" in "\n".join(fit.lines)
    for shown in (fit.notes[0], str(fit.query("a")), str(fit.edges()), str(fit)):
        assert "tables DISAGREE, and intervals are not to be relied on" in shown


def test_bounds_of_agreement_are_over_all_chances() -> None:
    for *chances, name, is_said, is_refused in [
        (0.5, 0.5, 0.0004, "together", False, False),
        (0.5, 0.0003, 0.5, "as b", True, False),
        (0.5, 0.5, 4e-7, "together", True, False),
        (0.5, 3e-7, 0.5, "as b", True, True),
        (0.5, 0.5, 3e-7, "together", True, True),
    ]:
        agreement, together = dict(zip("ab", chances[:2], strict=True)), chances[2]
        said = field_edges.disagreement(agreement, together)
        assert bool(said) == is_said
        assert name in said or not is_said
        if is_refused:
            with pytest.raises(UsageError, match=name):
                field_edges.require_agreement(agreement, together)
        else:
            field_edges.require_agreement(agreement, together)


@pytest.mark.parametrize(
    ("statistics", "terms", "said"),
    [
        (["ab", "ab"], {}, "twice"),
        (["abc"], {}, "over 3 columns"),
        (["only"], {}, "table of two variables"),
        (["ab", "other"], {}, "other categories"),
        (["ab", "again"], {}, "same two variables"),
        (["ab"], {"pair_sd": 0.0}, "pair_sd"),
        (["ab"], {"pair_sd": "a"}, "pair_sd must be a finite number"),
        ([], {}, "names contingency tables"),
        (5, {}, "names contingency tables"),
        ([5], {}, "by its name"),
        (["ab"], {"draws": 0}, "draws"),
        (["nothing"], {}, "nothing"),
    ],
)
def test_what_does_not_fit_is_refused(
    statistics: Any, terms: dict[str, Any], said: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(4)
    release = released(tmp_path, table(rng), rng, list(COLUMNS))
    with pytest.raises(UsageError, match=said):
        models.field(release, statistics, **terms)


def test_a_name_is_no_release() -> None:
    for model in (models.field, models.network, models.chain):
        with pytest.raises(UsageError, match="open_release"):
            model("good", ["ab"])  # type: ignore[arg-type]


@pytest.mark.slow
def test_tables_that_may_be_empty_and_bad_questions_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    joint = table(rng)
    with pytest.raises(UsageError, match=r"entries that may well.* query it alone"):
        models.field(released(tmp_path / "few", np.floor(joint / 1000), rng), ["ab"], draws=400, rng=1)
    fit = models.field(released(tmp_path, joint, rng), ["ab"], draws=400, rng=1)
    for target, given, said in [
        ("d", {}, "no variable"),
        ((), {}, "names a variable"),
        ("a", {"a": "0"}, "stands twice"),
        ("a", {"b": "w"}, "no category"),
        ("a", "yes", "given maps variables"),
        (5, {}, "names a variable"),
        ([5], {}, "no variable 5"),
    ]:
        with pytest.raises(UsageError, match=said):
            fit.query(target, given)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="below must be"):
        fit.edges(below="x")  # type: ignore[arg-type]


@pytest.mark.slow
def test_strengths_and_log_odds_ratios_are_those_of_the_joint_distribution(tmp_path: Path) -> None:
    """Each draw's joint distribution, looked at without the engine's contrasts."""
    rng = np.random.default_rng(2)
    fit = models.field(released(tmp_path, table(rng), rng), ALL, draws=400, rng=1)
    log_p = np.log(fit.joint)
    of_c = log_p[:, :, :, 1] - log_p[:, :, :, 0]
    ratio = (of_c[:, 1] - of_c[:, 0])[:, 0]  # of a and c, at the first b; any b gives the same
    np.testing.assert_allclose(ratio, (of_c[:, 1] - of_c[:, 0])[:, 2], atol=1e-9)
    edges = {(row["first"], row["second"]): row for row in fit.edges(below=0.05)}
    strength = np.abs(ratio) / 4.0
    np.testing.assert_allclose(edges["a", "c"]["mean"], strength.mean())
    np.testing.assert_allclose(edges["a", "c"]["probability_below"], (strength < 0.05).mean())
    # A quarter of a log odds ratio, of four effects of equal size c / 2, c of prior Normal(0, 1).
    assert edges["a", "c"]["prior_probability_below"] == pytest.approx(math.erf(0.1 / math.sqrt(2.0)))
    odds = {tuple(list(row.values())[:4]): row for row in fit.log_odds_ratios()}
    assert len(odds) == 2 + 2 + 1
    np.testing.assert_allclose(odds["a", "c", "1", "yes"]["mean"], ratio.mean())
    np.testing.assert_allclose(odds["a", "c", "1", "yes"]["probability_above"], (ratio > 0).mean())
    of_ab = log_p[:, 1, 2, 0] - log_p[:, 1, 0, 0] - log_p[:, 0, 2, 0] + log_p[:, 0, 0, 0]
    np.testing.assert_allclose(odds["a", "b", "1", "z"]["mean"], of_ab.mean())
    assert odds["a", "b", "1", "z"]["lower"] > 0  # .2 and .8 of a given b
    assert odds["b", "c", "y", "yes"]["upper"] < 0  # .6 and .4 of c given b
