"""Releases with a sample among noisy statistics: the whole road, what readers find, and what they refuse."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from suffice.errors import ReleaseCorruptError, UsageError
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.operations.verify_release import verify_release
from suffice.storage.releases import location
from suffice.storage.releases.release_store import open_release
from support.making import ORIGINS, make_workspace, mapping
from support.releases import make_plan, publish
from support.samples import drawn

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.spec.plan import Plan

STATISTICS = {
    "noisy": {"family": "bernoulli", "column": "cancelled"},
    "drawn": drawn("cancelled", draws="3", within=["0.005", "0.5"], prior="Beta(1, 30)"),
    "stops": {
        "family": "poisson",
        "column": "stops",
        "upper": 5,
        "sample": {"draws": 1, "within": ["0.2", "8"], "grid": 65},
    },
}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Release:
    workspace = make_workspace(tmp_path_factory.mktemp("place"))
    outcome = workspace.run(statistics=STATISTICS)
    again = workspace.run(statistics=STATISTICS)
    assert (outcome.status, again.status) == ("published", "already_published")
    with open_ledger(workspace.ledger) as ledger:
        assert ledger.account("passengers").spent == Fraction(1), "pure epsilon, charged once"
    return open_release(f"{workspace.store}/flights/all/{outcome.release.release_id}")


def test_samples_stand_beside_noisy_statistics(released: Release) -> None:
    assert list(released.statistics) == ["noisy"]
    assert isinstance(released.statistic("noisy"), NoisyStatistic)
    assert list(released.sampled) == ["drawn", "stops"]
    sample = released.samples("drawn")
    assert sample.indices.shape == (len(ORIGINS), 3)
    assert sample.indices.dtype == np.int64
    assert sample.parameter == "probability"
    assert sample.values == pytest.approx(0.005 + sample.indices * (0.495 / 32), rel=1e-12)
    assert released.samples("stops").parameter == "rate"
    rows = released.samples("drawn", {"origin": "JFK"}).table()
    assert [(row["origin"], row["parameter"], row["draw"]) for row in rows] == [
        ("JFK", "probability", draw) for draw in range(3)
    ]
    assert [row["value"] for row in rows] == sample.values[ORIGINS.index("JFK")].tolist()
    assert released.table("drawn", {"origin": "JFK"}) == rows


def test_a_file_of_a_sample_is_keys_draws_and_indices(released: Release) -> None:
    table = pq.read_table(Path(released.uri.removeprefix("file://")) / "drawn.parquet")
    assert table.column_names == ["origin", "draw", "value"]
    assert [str(field.type) for field in table.schema] == ["string", "int64", "int64"]
    assert table["origin"].to_pylist() == [origin for origin in ORIGINS for _ in range(3)]
    assert table["draw"].to_pylist() == [0, 1, 2] * len(ORIGINS)
    assert table["value"].to_numpy().reshape(-1, 3).tolist() == released.samples("drawn").indices.tolist()


def test_the_manifest_names_each_statistics_mechanism(released: Release) -> None:
    noisy, of_flag, of_stops = released.manifest["statistics"]
    assert noisy["mechanism"] == "discrete_laplace"
    scale = int(of_flag.pop("scale"))
    assert of_flag == {
        "name": "drawn",
        "family": "bernoulli",
        "columns": ["cancelled"],
        "rows_of": None,
        "design": "partition_of_unity",
        "epsilon": "1/3",
        "mechanism": "exponential",
        "parameter": "probability",
        "draws": 3,
        "grid": 33,
        "within": ["0.005", "0.5"],
        "prior": "Beta(1, 30)",
        "range_sensitivity": of_flag["range_sensitivity"],
        "temperature": of_flag["temperature"],
        "parameters": {"categories": [], "lower": None, "upper": None, "lattice_bits": None},
    }
    assert Fraction(of_flag["temperature"]) == Fraction(scale, 2**20)
    assert scale == 3 * 3 * int(of_flag["range_sensitivity"]) + 1
    assert of_stops["prior"] == "Gamma(1, 0.4)", "the family's default is stated"
    assert [file["rows"] for file in released.manifest["files"]] == [6, 9, 3]


@pytest.mark.parametrize("call", ["posterior", "statistic", "cells"])
def test_a_sample_has_no_statistics_in_it(released: Release, call: str) -> None:
    with pytest.raises(UsageError, match="drawn is a posterior sample: there are no statistics in it"):
        getattr(released, call)("drawn")


def test_what_is_no_sample_is_refused_as_one(released: Release) -> None:
    with pytest.raises(UsageError, match="was released as noisy statistics"):
        released.samples("noisy")
    with pytest.raises(UsageError, match="it has noisy, drawn, stops"):
        released.samples("else")
    with pytest.raises(UsageError, match="no cell of the release has origin=XXX"):
        released.samples("drawn", {"origin": "XXX"})


def test_verification_covers_samples(released: Release) -> None:
    assert not verify_release(released.uri).problems


def test_samples_of_very_many_cells_are_read_from_files(
    released: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(location, "MOST_HELD", 1)
    large = open_release(released.uri)
    assert list(large.statistics) == ["noisy"]
    assert len(large.sampled) == 2
    assert large.samples("drawn").table() == released.samples("drawn").table()
    assert "noisy" not in large.sampled
    assert large.table("noisy") == released.table("noisy")


def sampled_plan() -> Plan:
    return make_plan(statistics={**mapping("")["statistics"], "drawn": drawn("cancelled")})


def values(plan: Plan, index: int) -> dict[str, Any]:
    return {
        statistic.name: np.full((plan.n_cells, statistic.n_values), index, dtype=object)
        for statistic in plan.statistics
    }


@pytest.mark.parametrize("index", [-1, 33, 2**40])
def test_an_index_that_is_no_point_of_the_grid_is_corrupt(tmp_path: Path, index: int) -> None:
    plan = sampled_plan()
    good = publish(tmp_path / "good", plan, values(plan, 32))
    assert (open_release(good).samples("drawn").indices == 32).all()
    bad = publish(tmp_path / "bad", plan, values(plan, index))
    with pytest.raises(ReleaseCorruptError, match="no point of its grid"):
        open_release(bad)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mechanism", "discrete_laplace"),
        ("scale", "1048576"),
        ("range_sensitivity", "1"),
        ("temperature", "1"),
        ("prior", "Beta(1, 1)"),
        ("within", ["0.2", "0.9"]),
        ("grid", 65),
        ("draws", 1),
        ("parameter", "rate"),
        ("epsilon", "1"),
    ],
)
def test_a_manifest_that_says_otherwise_of_a_sample_is_corrupt(
    tmp_path: Path, field: str, value: object
) -> None:
    from suffice.pipeline.terms.declaration import canonical_json
    from suffice.storage.releases.manifest import checksum

    plan = sampled_plan()
    release = publish(tmp_path, plan, values(plan, 5))
    content = json.loads((release / "manifest.json").read_bytes())
    entry = content["statistics"][-1]
    assert entry[field] != value
    entry[field] = value
    content["checksum"] = checksum(content)
    (release / "manifest.json").write_bytes(canonical_json.encode(content))
    with pytest.raises(ReleaseCorruptError, match=rf"statistics.*{field}"):
        open_release(release)
