"""Releases of the same rows, one with cone noise and one with Laplace noise: one posterior of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import suffice
from suffice.errors import UsageError
from suffice.pipeline.ask.pooling.pool import Relation, differences, observed_again, relation_of
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines.multivariate import column_posterior, hmc
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.statistics.simulated_noise import simulated_noise
from support import releases
from support.cone_calibration import moments_of, prior_of
from support.making import mapping
from support.releases import publish

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release

    Put = Callable[..., Release]

SIDE = {"lower": "-1", "upper": "1"}
JOINT: dict[str, Any] = {"family": "multivariate_normal", "columns": {"a": SIDE, "b": SIDE}}
MONTHLY = {"column": "day", "every": "month"}
TRUE_SD, ROWS = 0.3, 500


@pytest.fixture(scope="module")
def sums() -> Any:
    """Exact moments of 500 rows of two unrelated columns, in one cell."""
    rng = np.random.default_rng(7)
    return moments_of(np.array([ROWS]), np.zeros((1, 2)), TRUE_SD * np.eye(2)[None], rng)


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sums: Any) -> Put:
    """Publish a release of the same moments; each gets a release id of its own."""
    made: list[str] = []
    rng = np.random.default_rng(8)

    def publish_one(noise: str, *, label: str = "all", epsilon: str = "0.6", **changes: Any) -> Release:
        made.append(f"{len(made) + 1:016x}")
        monkeypatch.setattr(releases, "RELEASE_ID", made[-1])
        spec = load_spec(
            mapping(
                "data",
                groups=None,
                privacy={"epsilon": epsilon, "neighboring": "add_or_remove_one", "unit": "row"},
                statistics={"joint": {**JOINT, "noise": noise, **changes}},
                **({} if label == "all" else {"window": MONTHLY}),
            )
        )
        plan = compile_plan(spec)
        (of,) = plan.statistics
        totals = FAMILIES[of.family].totals(spec.statistics["joint"], of.design, sums)
        drawn = simulated_noise(of, (1,), rng).astype(object)
        values = {"joint": totals + drawn}
        return suffice.open_release(publish(tmp_path, plan, values, window=label))

    return publish_one


def test_their_rows_are_the_same_and_nothing_differs(put: Put) -> None:
    cone, laplace = put("cone"), put("laplace")
    assert [release.plan_of("joint").cone is None for release in (cone, laplace)] == [False, True]
    assert relation_of(cone, laplace, "joint")[0] is Relation.SAME_DATA
    assert differences(cone, laplace, "joint") == []


def test_another_lattice_is_refused_as_ever(put: Put) -> None:
    with pytest.raises(UsageError, match="differs between the releases in lattice_bits"):
        suffice.pool("joint", same_data=[put("cone"), put("laplace", lattice_bits="12")])


@pytest.mark.parametrize(("cone", "laplace", "first"), [("1", "0.01", True), ("0.01", "1", False)])
def test_the_less_noisy_one_is_first_of_either_noise(put: Put, cone: str, laplace: str, first: bool) -> None:
    parts = [put("laplace", epsilon=laplace), put("cone", epsilon=cone)]
    together = observed_again([release.statistic("joint") for release in parts])
    assert (together.plan.cone is not None) is first


@pytest.mark.slow
def test_a_pooled_posterior_is_of_both(put: Put, sums: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of both observations by their own plans, in either order, and about the rows."""
    monkeypatch.setattr(column_posterior, "lengths", lambda _n_cells: (8, 128))
    monkeypatch.setattr(hmc, "DOUBLINGS", 0)
    pair = [put("laplace"), put("cone")]
    prior = prior_of(2)
    both = suffice.pool("joint", same_data=pair, prior=prior)
    assert both.diagnostics["noise_taken_for_normal"] == 0.2
    parts = [release.statistic("joint") for release in pair]
    direct = posterior_of(observed_again(parts), prior=prior)
    again = suffice.pool("joint", same_data=pair[::-1], prior=prior)
    for parameter in both.parameters:
        np.testing.assert_array_equal(both.mean(parameter), direct.mean(parameter))
        np.testing.assert_array_equal(both.mean(parameter), again.mean(parameter))
    exact = [float(sums[0, place]) / ROWS / 2.0**32 for place in (3, 5)]
    assert (np.abs(both.mean("variance") - exact) < 8 * both.sd("variance")).all()
    assert "release 2" in "\n".join(both.conflict.quantities)


@pytest.mark.slow
def test_months_of_either_noise_are_compared_and_pooled(put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_posterior, "lengths", lambda _n_cells: (8, 64))
    monkeypatch.setattr(hmc, "DOUBLINGS", 0)
    cone, laplace = put("cone", label="2026-01"), put("laplace", label="2026-02")
    compared = suffice.compare(cone, laplace, "joint", prior=prior_of(2))
    # Of the same rows, so that no probability but noise stands between them.
    assert (np.abs(compared.apparent["variance"]) < 10 * compared.noise_sd["variance"]).all()
    pooled = suffice.pool("joint", disjoint=[cone, laplace], prior=prior_of(2))
    assert pooled.diagnostics["noise_taken_for_normal"] == 0.2


def test_no_series_mixes_them(put: Put, tmp_path: Path) -> None:
    for month, noise in (("2026-01", "cone"), ("2026-02", "laplace"), ("2026-03", "laplace")):
        put(noise, label=month)
    windows = suffice.open_series("flights", store=tmp_path).windows_of("joint")
    assert [release.window for release in windows.releases] == ["2026-02", "2026-03"]
    ((label, reason),) = windows.left_out
    assert label == "2026-01"
    assert "it differs in noise (state noise: laplace, or noise: cone, in all)" in reason
