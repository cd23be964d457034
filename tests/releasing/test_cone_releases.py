"""Releases with noise on a cone, as ``docs/how-to/noise-on-a-cone.md`` reads them.

The whole road: what is charged, what readers find, and what they refuse by name.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import suffice
from suffice.errors import ReleaseCorruptError, SpecError
from suffice.pages.card import release_facts
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.operations.verify_release import verify_release
from suffice.storage.releases.descriptions import meaning
from suffice.storage.releases.release_store import open_release
from support.making import ORIGINS, make_workspace
from support.manifest_mutants import sealed

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.ask.pooling.release import Release

SIDE = {"lower": "-5", "upper": "5"}
STATISTICS = {
    "joint": {"family": "multivariate_normal", "columns": {"a": SIDE, "b": SIDE, "c": SIDE}},
    "origin": {
        "family": "linear_regression",
        "outcome": {"c": SIDE},
        "predictors": {"a": SIDE},
        "intercept": "false",
        "lattice_bits": "24",
        "share": "0.001",
    },
}
ROWS = 3000


def table() -> pa.Table:
    rng = np.random.default_rng(7)
    a, b, e = rng.standard_normal((3, ROWS))
    return pa.table(
        {"origin": pa.array(rng.choice(ORIGINS, ROWS)), "a": a, "b": 0.5 * a + b, "c": a - 0.5 * b + e}
    )


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return table()


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory, rows: pa.Table) -> Release:
    workspace = make_workspace(tmp_path_factory.mktemp("place"), table=rows)
    outcome = workspace.run(statistics=STATISTICS)
    assert outcome.status == "published"
    with open_ledger(workspace.ledger) as ledger:
        assert ledger.account("passengers").spent == Fraction(1), "pure epsilon, charged once"
    directory = f"{workspace.store}/flights/all/{outcome.release.release_id}"
    verify_release(directory)
    return open_release(directory)


def test_the_manifest_states_the_law(released: Release) -> None:
    joint, origin = released.manifest["statistics"]
    assert (joint["mechanism"], origin["mechanism"]) == ("cone_noise", "cone_noise")
    assert joint["cone_noise"] == {
        "rate": str(joint["epsilon"]),
        "columns": 3,
        "linear": True,
        "steps": "65536",
    }
    assert origin["cone_noise"]["linear"] is False
    assert origin["value_type"] == "decimal128(38, 0)", "so little epsilon on so fine a lattice"
    assert not {"scale", "l1_sensitivity"} & joint.keys()
    assert released.manifest["plan"]["statistics"]["joint"]["noise"] == "cone"


def test_tables_are_about_the_rows_within_their_noise(released: Release, rows: pa.Table) -> None:
    """Ten standard deviations, and what rounding 3,000 values to a lattice of 2^16 steps may add.

    Of 42 noises that differ by two gamma variables of shape 3 or more one is beyond with a chance below 1e-7.
    """
    values = {name: np.clip(rows[name].to_numpy(), -5.0, 5.0) for name in "abc"}
    at = rows["origin"].to_numpy(zero_copy_only=False)
    seen = 0
    for name in ("joint", "origin"):
        for row in released.table(name):
            inside = at == row["origin"]
            of = [values[column][inside] for column in str(row["component"]).split(", ") if column]
            exact = float(np.sum(np.prod(of, axis=0))) if of else float(np.sum(inside))
            if row["quantity"] == "total_of_squares":
                exact = float(np.sum(of[0] ** 2))
            assert abs(row["estimate"] - exact) < 10 * row["noise_sd"] + 1e-3 * ROWS
            seen += 1
    assert seen == 3 * (10 + 4)


def test_its_noise_is_there(released: Release) -> None:
    """Exact totals would repeat: of so many integers none is what the rows add up to."""
    statistic = released.statistic("joint")
    assert len({int(value) % 4096 for value in statistic.values.ravel()}) > 20


@pytest.mark.slow
def test_posteriors_know_the_noise(released: Release, rows: pa.Table) -> None:
    """Twelve means of 1,000 rows each: their intervals of 99.99999 % all hold those of the rows."""
    conjugate = "NormalInverseWishart([0, 0, 0], 1, 8, [4, 4, 4])"
    posterior = released.posterior("joint", prior=conjugate)
    assert posterior.diagnostics["noise_taken_for_normal"] == 0.2
    at = rows["origin"].to_numpy(zero_copy_only=False)
    exact = [[np.mean(rows[name].to_numpy()[at == origin]) for name in "abc"] for origin in ORIGINS]
    assert (np.abs(posterior.mean("mean") - exact) < 6 * posterior.sd("mean")).all()
    plug_in = released.posterior("joint", method="plug-in", prior=conjugate)
    assert (plug_in.sd("variance") < posterior.sd("variance")).all()
    assert "conflict" in str(posterior)
    assert posterior.conflict.lines() == []


def test_words_say_cone_noise(released: Release) -> None:
    for name in ("joint", "origin"):
        plan = released.plan_of(name)
        assert "is cone noise, on the cone of moments" in meaning(plan)
        assert "Laplace" not in meaning(plan)
        assert release_facts(released, released.statistic(name))["noise"] == f"cone noise, {plan.cone}"


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry["cone_noise"].update(rate="1"),
        lambda entry: entry["cone_noise"].update(steps="65535"),
        lambda entry: entry["cone_noise"].update(linear=False),
        lambda entry: entry.update(mechanism="discrete_laplace"),
        lambda entry: entry.update(scale="1"),
        lambda entry: entry.pop("cone_noise"),
    ],
)
def test_a_manifest_of_another_law_is_refused(
    released: Release, tmp_path: Path, change: Callable[[Any], None]
) -> None:
    directory = Path(released.uri.removeprefix("file://"))
    content = json.loads((directory / "manifest.json").read_text())
    change(content["statistics"][0])
    for file in directory.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "manifest.json").write_bytes(sealed(content))
    with pytest.raises(ReleaseCorruptError):
        open_release(str(tmp_path))


def test_builders_take_the_key() -> None:
    side = {"lower": -1, "upper": 1}
    spec = suffice.spec(
        dataset="d",
        epsilon=1,
        statistics={
            "m": suffice.multivariate_normal(columns={"a": side, "b": side}, noise="cone"),
            "r": suffice.linear_regression(
                outcome={"y": side}, predictors={"a": side, "b": side}, noise="laplace"
            ),
        },
    )
    on_cone = {statistic.name: statistic.cone is not None for statistic in suffice.plan(spec).statistics}
    assert on_cone == {"m": True, "r": False}


@pytest.mark.parametrize(
    ("statistic", "rule"),
    [
        (suffice.bernoulli(column="x", noise="cone"), "noise: unknown key"),  # type: ignore[call-arg]
        (
            suffice.linear_regression(
                outcome={"y": SIDE},
                predictors={"a": SIDE},
                noise="cones",
            ),
            "noise: 'cones' is neither laplace nor cone; leave it out",
        ),
    ],
)
def test_what_builders_pass_on_the_spec_checks(statistic: dict[str, Any], rule: str) -> None:
    with pytest.raises(SpecError, match=rule):
        suffice.spec(dataset="d", epsilon=1, statistics={"s": statistic})
