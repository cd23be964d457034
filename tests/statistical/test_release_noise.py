"""The noise of one whole release: exactly the planned scale, once, in every cell; wrong scales are caught."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import suffice
from suffice.pipeline.spec.plan import compile_plan
from support.making import make_workspace
from support.noise_distribution import accepts, sample_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

FACTOR = 1.5
N_CELLS = 600
STATISTICS: dict[str, dict[str, Any]] = {
    "categories": {"family": "categorical", "column": "c", "categories": ["x", "y"], "other": True},
    "flag": {"family": "bernoulli", "column": "f"},
    "count": {"family": "poisson", "column": "k", "upper": 3},
    "value": {"family": "normal", "column": "v", "lower": -1, "upper": 1, "lattice_bits": 2, "share": 8},
}


@pytest.fixture(scope="module", params=["add_or_remove_one", "replace_one"])
def noise(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Any, float]]:
    """Release known data once, and return each statistic's noise and planned scale."""
    rng = np.random.default_rng(7)
    n_rows = 5000
    rows = {
        "g": rng.integers(0, N_CELLS, n_rows),
        "c": rng.integers(0, 3, n_rows),
        "f": rng.integers(0, 2, n_rows),
        "k": rng.integers(0, 4, n_rows),
        "x": rng.integers(-4, 5, n_rows),
    }
    table = pa.table(
        {
            "g": rows["g"],
            "c": np.array(["x", "y", "z"])[rows["c"]],
            "f": rows["f"],
            "k": rows["k"],
            "v": rows["x"] / 4,
        }
    )
    workspace = make_workspace(tmp_path_factory.mktemp("noise"), table=table, neighboring=request.param)
    spec = workspace.spec(
        privacy={"epsilon": "2", "neighboring": request.param},
        groups={"g": {"range": [0, N_CELLS - 1]}},
        statistics=STATISTICS,
    )
    release = suffice.release(spec, store=workspace.store, ledger=workspace.ledger)

    def summed(contributions: NDArray[np.int64]) -> NDArray[np.int64]:
        totals = np.zeros((N_CELLS, contributions.shape[1]), dtype=np.int64)
        np.add.at(totals, rows["g"], contributions)
        return totals

    lattice = rows["x"]
    exact = {
        "categories": summed(np.eye(3, dtype=np.int64)[rows["c"]]),
        "flag": summed(np.eye(2, dtype=np.int64)[rows["f"]]),
        "count": summed(np.stack([rows["k"], 3 - rows["k"]], axis=1)),
        "value": summed(
            np.stack([(4 - lattice) ** 2, 2 * (4 - lattice) * (4 + lattice), (4 + lattice) ** 2], axis=1)
        ),
    }
    scales = {statistic.name: statistic.scale for statistic in compile_plan(spec).statistics}
    return {
        name: ((statistic.values - exact[name]).astype(np.int64), scales[name])
        for name, statistic in release.statistics.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", STATISTICS)
def test_one_release_has_noise_of_the_planned_scale(noise: dict[str, tuple[Any, float]], name: str) -> None:
    """Two-sided at 1e-7 each of eight; the two controls are missed with chance 1e-7 each at this size."""
    draws, scale = noise[name]
    assert draws.size >= max(400, sample_size(scale, FACTOR))
    assert accepts(draws, scale)
    assert not accepts(draws, scale * FACTOR)
    assert not accepts(draws, scale / FACTOR)


def test_noise_once_per_partition_would_be_caught(noise: dict[str, tuple[Any, float]]) -> None:
    """The control for noise drawn in every task: four draws per cell have twice the spread."""
    draws, scale = noise["categories"]
    added = draws.reshape(-1)[: draws.size // 4 * 4].reshape(4, -1).sum(axis=0)
    assert added.size >= 400
    assert not accepts(added, scale)


def test_components_of_a_cell_do_not_share_their_noise(noise: dict[str, tuple[Any, float]]) -> None:
    """Signs of the two components of 600 cells agree about half the time: 5.5 standard errors, 4e-8."""
    draws, _ = noise["flag"]
    products = np.sign(draws[:, 0]) * np.sign(draws[:, 1])
    assert abs(products.sum()) <= 5.5 * np.sqrt(np.abs(products).sum())
    shared = np.sign(draws[:, 0]) * np.sign(draws[:, 0])
    assert abs(shared.sum()) > 5.5 * np.sqrt(np.abs(shared).sum())
