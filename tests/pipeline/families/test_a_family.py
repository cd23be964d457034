"""The family of `docs/contributing/a-family.md`: added as the page says, put to use, and removed again."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import suffice
from suffice.errors import SpecError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.plan import compile_plan
from suffice.releasing.release import carry_out
from support.family_contract import TABLES
from support.making import make_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.families.shared.contract import Family

NAME, PRIOR = "rayleigh", "InverseGamma(9, 8)"
SUITES = (
    "tests/pipeline/families/test_contract.py",
    "tests/pipeline/terms/statistics/test_sensitivity.py",
    "tests/pipeline/terms/statistics/test_simulated_sums.py",
)
PLUGIN = """
import rayleigh
from suffice.pipeline.families import FAMILIES
from support import family_contract

{line}
of_the_table = family_contract.documented
family_contract.documented = lambda repository, document: of_the_table(repository, document) + {rows!r}
"""
"""What the page adds to a run of the suites: the line of the registry, and the rows of the tables."""


@pytest.fixture
def page(repository: Path) -> str:
    return (repository / "docs" / "contributing" / "a-family.md").read_text(encoding="utf-8")


@pytest.fixture
def written(page: str, tmp_path: Path) -> Path:
    """Write the page's file."""
    code, _ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    path = tmp_path / f"{NAME}.py"
    path.write_text(code, encoding="utf-8")
    return path


@pytest.fixture
def family(written: Path, monkeypatch: pytest.MonkeyPatch) -> Family:
    """Register the page's family for a test."""
    specification = importlib.util.spec_from_file_location(NAME, written)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, NAME, module)
    specification.loader.exec_module(module)
    monkeypatch.setitem(FAMILIES, NAME, module.FAMILY)
    registered: Family = module.FAMILY
    return registered


@pytest.mark.slow
def test_it_is_planned_released_and_calibrated(family: Family, tmp_path: Path) -> None:
    """Next to no noise: 4,000 winds of variance 4 are about all that the posterior does not know."""
    winds = np.random.default_rng(7).rayleigh(2.0, 4000)
    workspace = make_workspace(tmp_path / "workspace", table=pa.table({"wind": winds}), granted="50")
    entry = {**family.example.entry, "family": NAME, "column": "wind"}
    spec = workspace.spec(
        groups=None,
        statistics={"wind": entry},
        privacy={"epsilon": "50", "neighboring": "add_or_remove_one", "unit": "row"},
    )
    (plan,) = compile_plan(spec).statistics
    assert plan.components == ("sum(X)", "sum(M - X)")
    assert plan.l1_sensitivity == plan.partition_total == 2**16
    uri = carry_out(spec, store=workspace.store, ledger=workspace.ledger).release.uri
    release = suffice.open_release(uri)
    posterior = release.posterior("wind", prior=PRIOR)
    expected = (8 + np.sum(winds**2) / 2) / (8 + 4000)
    assert posterior.mean("variance")[0] == pytest.approx(expected, rel=0.01)
    assert posterior.sd("variance")[0] == pytest.approx(expected / np.sqrt(4000), rel=0.05)
    calibration = suffice.calibrate(release, "wind", simulations=200, prior=PRIOR, n_prior="Uniform(0, 200)")
    assert calibration.clipped_share < 1e-3
    # Of three coverages 1e-7 each; a histogram of 200 ranks has such a chi square with chance 3.5e-7.
    assert min(calibration.clipped[0].p_values()) > 1e-7
    pytest.importorskip("numpyro").enable_x64()
    from suffice import numpyro as likelihood

    statistic = release.statistic("wind")
    near, far = (
        float(likelihood.log_likelihood(statistic, n_prior=4000, variance=v)[0])
        for v in (expected, 1.2 * expected)
    )
    # 4000 (log 1.2 + 1 / 1.2 - 1), within 20 scales of the noise: 20 (30^2 / 2 / 50) / 4 / 6.
    assert near - far == pytest.approx(62.6, abs=7.5)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_suites_take_it_from_the_registry(page: str, written: Path, repository: Path) -> None:
    _, line = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    rows = re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE)
    assert rows == [NAME] * len(TABLES)
    (written.parent / "added.py").write_text(PLUGIN.format(line=line, rows=rows), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "added", "-p", "no:cacheprovider", "-q", "-k", NAME, *SUITES],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(written.parent), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (passed,) = re.findall(r"(\d+) passed", done.stdout)
    assert int(passed) >= len(SUITES)


def test_it_is_gone() -> None:
    assert NAME not in FAMILIES
    with pytest.raises(SpecError, match="families: bernoulli"):
        suffice.load_spec(
            {
                "name": "n",
                "dataset": "d",
                "source": {"parquet": "x"},
                "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
                "statistics": {"s": {"family": NAME, "column": "x", "upper": "3"}},
            }
        )
