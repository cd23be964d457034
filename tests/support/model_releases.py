"""A release that models are made of: Markov chains and regressions in two cells, with known truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.plan import Plan, compile_plan
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.terms.statistics.measure import MomentSums
from support.making import mapping
from support.releases import publish
from support.several import lattice_sums
from support.tables import simulate_counts

if TYPE_CHECKING:
    from pathlib import Path

STATES = ("a", "b", "c")
TRANSITIONS = np.array([[0.8, 0.15, 0.05], [0.3, 0.5, 0.2], [0.1, 0.4, 0.5]])
PLACES = ("JFK", "LGA")
SLOPES, INTERCEPT, SD = (1.5, -0.02), {"JFK": 4.0, "LGA": 10.0}, 8.0
CONJUGATE = "NormalInverseGammaRegression(0, 0.001, 3, 100)"
"""A prior of the regression under which plug-in posteriors take no chains."""
STATISTICS: dict[str, Any] = {
    "steps": {
        "family": "markov_chain",
        "column": "state",
        "categories": list(STATES),
        "order": "when",
        "transitions": "5",
    },
    "arrival": {
        "family": "linear_regression",
        "noise": "laplace",
        "predictors": {"departure": {"lower": -20, "upper": 60}, "distance": {"lower": 0, "upper": 2000}},
        "outcome": {"arrival": {"lower": -100, "upper": 150}},
        "lattice_bits": 24,
    },
    "heads": {"family": "bernoulli", "column": "heads"},
}


def model_spec(**changes: Any) -> Spec:
    """Return the spec of the release."""
    privacy = {
        "epsilon": "50",
        "neighboring": "add_or_remove_one",
        "unit": {"column": "traveller", "max_rows": 6},
    }
    content = {"name": "models", "groups": {"origin": list(PLACES)}, "privacy": privacy}
    return load_spec(mapping("data", **{"statistics": STATISTICS, **content, **changes}))


def regression_rows(place: str, n_rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw rows that the regression holds for."""
    departure = np.clip(rng.normal(10, 10, n_rows), -20, 60)
    distance = np.clip(rng.normal(900, 300, n_rows), 0, 2000)
    mean = INTERCEPT[place] + SLOPES[0] * departure + SLOPES[1] * distance
    arrival = np.clip(mean + rng.normal(0, SD, n_rows), -100, 150)
    return {"departure": departure, "distance": distance, "arrival": arrival}


def model_values(spec: Spec, plan: Plan, n_rows: int = 4000) -> dict[str, np.ndarray]:
    """Return what a release without noise would hold."""
    rng = np.random.default_rng(15)
    steps, arrival, heads = plan.statistics
    counts = [simulate_counts(steps, {"transitions": TRANSITIONS}, n_rows, rng) for _ in PLACES]
    family, entry = FAMILIES[arrival.family], spec.statistics["arrival"]
    measure = family.measure(entry)
    assert isinstance(measure, MomentSums)
    sums = []
    for place in PLACES:
        rows = regression_rows(place, n_rows, rng)
        lattice = [
            of.quantiser.quantise(column) for of, column in zip(measure.of, rows.values(), strict=True)
        ]
        sums.append(lattice_sums(np.stack(lattice, axis=1))[0])
    of_heads = np.array([[n_rows // 2, n_rows - n_rows // 2]] * len(PLACES), dtype=object)
    return {
        "steps": np.array(counts).astype(object),
        "arrival": family.totals(entry, arrival.design, np.array(sums, dtype=object)),
        "heads": of_heads[:, : len(heads.components)],
    }


def publish_models(root: Path, **changes: Any) -> str:
    """Publish the release ``models`` in a new store, and return where that is."""
    spec = model_spec(**changes)
    plan = compile_plan(spec)
    publish(root, plan, model_values(spec, plan))
    return str(root)
