"""The page on models, run as it is written on a release of its own spec."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.statistics.measure import MomentSums
from support.releases import publish
from support.several import lattice_sums
from support.tables import simulate_counts, true_probabilities

if TYPE_CHECKING:
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from support.running import Runner

N_ROWS = 3000
FEW_ROWS = 300
"""In a cell of a chain over time: of so many, the chance of every released count is soon tabulated."""
SLOPE = 0.2
"""Minutes of delay a kilometre."""


@pytest.fixture
def blocks(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    page = (repository / "docs" / "explanation" / "models.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def values_of(spec: Spec, plan: StatisticPlan, n_cells: int, rng: np.random.Generator) -> np.ndarray:
    """Return sums of made-up rows in every cell, without noise."""
    if plan.family == "linear_regression":
        family, entry = FAMILIES[plan.family], spec.statistics[plan.name]
        measure = family.measure(entry)
        assert isinstance(measure, MomentSums)
        sums = []
        for _ in range(n_cells):
            distance = np.clip(rng.gamma(4, 12, N_ROWS), 0, 200)
            delay = np.clip(SLOPE * distance + rng.normal(0, 6, N_ROWS), -30, 90)
            both = zip(measure.of, (distance, delay), strict=True)
            lattice = [of.quantiser.quantise(column) for of, column in both]
            sums.append(lattice_sums(np.stack(lattice, axis=1))[0])
        return family.totals(entry, plan.design, np.array(sums, dtype=object))
    if plan.parameters.tables:
        probabilities = true_probabilities(plan, rng)
        counts = [simulate_counts(plan, probabilities, N_ROWS, rng) for _ in range(n_cells)]
        return np.array(counts).astype(object)
    chances = rng.dirichlet(np.ones(len(plan.components)), 2)[rng.integers(0, 2, n_cells)]
    return rng.multinomial(FEW_ROWS, chances).astype(object)


@pytest.mark.slow
@pytest.mark.usefixtures("chains_once")
def test_the_page_on_models_runs(blocks: list[tuple[str, str]], suffice: Runner) -> None:
    known: dict[str, Any] = {}
    printed = {}
    rng = np.random.default_rng(15)
    for language, text in blocks:
        if language == "yaml":
            spec = load_spec(yaml.safe_load(text))
            plan = compile_plan(spec)
            values = {
                statistic.name: values_of(spec, statistic, plan.n_cells, rng) for statistic in plan.statistics
            }
            publish(Path("releases"), plan, values)
        elif language == "csv":
            Path("trips.csv").write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(text, "models.md", "exec"), known)  # noqa: S102 - our own text
        else:
            assert language == "bash"
            for line in text.splitlines():
                name, group, command, *words = shlex.split(line)
                assert (name, group) == ("suffice", "model")
                printed[command, *words[3:5]] = suffice.text(group, command, *words)
    assert [command for command, *_ in printed] == [
        "classify",
        "query",
        "query",
        "transitions",
        "predict",
        "hidden-markov",
    ]
    with Path("classes.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 2
    chances = known["classifier"].predict_proba(known["rows"])
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_allclose(known["chain"].stationary().mean.sum(), 1.0)
    assert known["prediction"].is_extrapolated.tolist() == [False, True]
    assert abs(known["prediction"].mean[1] - SLOPE * 240) < 5
    assert known["fit"].state_probability.shape == (24, 2)
    assert known["fit"].most_probable_path.shape == (2, 12)
