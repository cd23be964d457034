"""The noise module: the only source of privacy noise, checked by OpenDP's own map, never seeded."""

from __future__ import annotations

import ast
import inspect
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from suffice.pipeline import mechanism, noise
from suffice.pipeline.families import FAMILIES

if TYPE_CHECKING:
    from pathlib import Path

TRUSTED = ("pipeline", "storage", "flows", "src/suffice")
CONSUMERS = {  # draw from posteriors and from models: their generator is the caller's
    "pipeline/arviz_export.py",
    "pipeline/calibration.py",
    "pipeline/contrasts.py",
    "pipeline/grid_law.py",
    "pipeline/joint_priors.py",
    "pipeline/laws.py",
    "pipeline/mixtures.py",
    "pipeline/n_prior.py",
    "pipeline/needed_epsilon.py",
    "pipeline/posterior.py",
    "pipeline/predictive.py",
    "pipeline/priors.py",
    "pipeline/public_priors.py",
    "pipeline/scalar_laws.py",
    "pipeline/simulation.py",
    "pipeline/table_laws.py",
    "pipeline/world.py",
    "src/suffice/card.py",
    "src/suffice/card_plot.py",
    "src/suffice/cli_analysis.py",
    "src/suffice/cli_calibration.py",
    "src/suffice/cli_pool.py",
    "src/suffice/cli_posterior.py",
    "src/suffice/demo.py",
    "src/suffice/plotting.py",
    "src/suffice/rendering.py",
}
POSTERIORS = (
    "pipeline/clipped_sums/",
    "pipeline/counts/",
    "pipeline/joint_moments/",
    "pipeline/latent_moments/",
    "pipeline/latent_sums/",
    "pipeline/planes/",
    "pipeline/pooling/",
)
"""Packages that only consumers import."""


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), 2.0**58])
def test_scales_out_of_range_draw_nothing(scale: float) -> None:
    with pytest.raises(ValueError, match="out of range"):
        noise.discrete_laplace(1, scale=scale, l1_sensitivity=1, epsilon=Fraction(1))


def test_a_scale_that_costs_more_than_epsilon_draws_nothing() -> None:
    with pytest.raises(ValueError, match="privacy map"):
        noise.discrete_laplace(1, scale=1.0, l1_sensitivity=1, epsilon=Fraction(999_999, 1_000_000))
    assert len(noise.discrete_laplace(3, scale=1.0, l1_sensitivity=1, epsilon=Fraction(1))) == 3


def test_no_seed_reaches_the_noise() -> None:
    for function in (noise.discrete_laplace, mechanism.privatize):
        names = set(inspect.signature(function).parameters)
        assert not names & {"seed", "rng", "random_state", "generator", "bits"}


def test_nothing_on_the_trusted_side_has_another_source_of_randomness(repository: Path) -> None:
    found = {
        path.relative_to(repository).as_posix()
        for top in TRUSTED
        for path in (repository / top).rglob("*.py")
        if not path.is_relative_to(repository / "src/suffice/pipeline") and _draws(path)
    }
    found = {name for name in found if not name.startswith(("src/suffice/flows", "src/suffice/storage"))}
    assert "src/suffice/cli_posterior.py" in found, "the scan must see a generator where there is one"
    simulators = {
        f"pipeline/families/{name}.py" for name in (*FAMILIES, "contract", "count_tables", "one_sum")
    }
    assert {name for name in found if not name.startswith(POSTERIORS)} <= CONSUMERS | simulators


def test_only_consumers_simulate(repository: Path) -> None:
    """Families draw data sets from their models for calibration; nothing on the trusted side asks them to."""
    callers = {
        path.relative_to(repository).as_posix()
        for top in ("pipeline", "storage", "flows")
        for path in (repository / top).rglob("*.py")
        if any(
            isinstance(node, ast.Attribute) and node.attr == "simulate"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    }
    assert callers == {"pipeline/predictive.py", "pipeline/world.py"}


def _draws(path: Path) -> bool:
    """Tell whether a module names a pseudo-random generator."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "random" for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and node.module in {"random", "numpy.random"}:
            return True
        if isinstance(node, ast.Attribute) and node.attr in {"random", "default_rng", "Generator"}:
            return True
    return False
