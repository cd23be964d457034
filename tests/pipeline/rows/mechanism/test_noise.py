"""The noise module: the only source of privacy noise, checked by OpenDP's own map, never seeded."""

from __future__ import annotations

import ast
import inspect
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.rows.mechanism import held_noise, mechanism, noise
from suffice.pipeline.terms.declaration.exact_numbers import LARGEST_SCALE
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss

if TYPE_CHECKING:
    from pathlib import Path

TRUSTED = ("pipeline", "storage", "flows", "src/suffice")
SIMULATING_ROOMS = (  # draw from posteriors and from models: their generator is the caller's
    "pipeline/ask/batches/",
    "pipeline/ask/borrowing/",
    "pipeline/ask/calibration/",
    "pipeline/ask/inference/",
    "pipeline/ask/judging/",
    "pipeline/math/distributions/",
    "pipeline/math/engines/",
    "pipeline/math/parameters/",
    "pipeline/families/",
    "pipeline/ask/models/",
    "pipeline/ask/planning/",
    "pipeline/ask/pooling/",
    "pipeline/ask/posterior/",
    "pipeline/ask/trees/",
    "pipeline/math/priors/",
    "pipeline/ask/publication/",
    "src/suffice/auditing/",  # generated rows of an audit: no row of a source is near
    "src/suffice/cli/",
    "src/suffice/pages/",
    "src/suffice/plots/",
    "src/suffice/publishing/files.py",
    "src/suffice/publishing/parts.py",
    "src/suffice/publishing/publish.py",
)
SIMULATORS = {
    "pipeline/terms/statistics/simulated_noise.py",
    "pipeline/terms/statistics/simulated_sums.py",
}


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, math.nextafter(2.0**55, math.inf), 2.0**58])
def test_scales_out_of_range_draw_nothing(scale: float) -> None:
    with pytest.raises(ValueError, match="out of range"):
        noise.discrete_laplace(scale=scale, l1_sensitivity=1, loss=PrivacyLoss.of_epsilon(Fraction(1)))


def test_a_scale_that_costs_more_than_epsilon_draws_nothing() -> None:
    with pytest.raises(ValueError, match="privacy map"):
        noise.discrete_laplace(
            scale=1.0, l1_sensitivity=1, loss=PrivacyLoss.of_epsilon(Fraction(999_999, 1_000_000))
        )
    out = np.zeros(1000, np.int64)
    noise.discrete_laplace(scale=1.0, l1_sensitivity=1, loss=PrivacyLoss.of_epsilon(Fraction(1))).draw_into(
        out
    )
    assert out.any()


def test_no_seed_reaches_the_noise() -> None:
    for function in (noise.discrete_laplace, mechanism.privatize, held_noise.HeldNoise):
        names = set(inspect.signature(function).parameters)
        assert not names & {"seed", "rng", "random_state", "generator", "bits"}


@pytest.mark.slow
def test_nothing_on_the_trusted_side_has_another_source_of_randomness(repository: Path) -> None:
    generators = {
        path.relative_to(repository).as_posix()
        for top in TRUSTED
        for path in (repository / top).rglob("*.py")
        if not path.is_relative_to(repository / "src/suffice/pipeline") and _draws(path)
    }
    generators = {
        name for name in generators if not name.startswith(("src/suffice/flows", "src/suffice/storage"))
    }
    assert "src/suffice/cli/posterior.py" in generators, "the scan must see a generator where there is one"
    assert "pipeline/terms/statistics/simulated_sums.py" in generators
    assert {name for name in generators if not name.startswith(SIMULATING_ROOMS)} == SIMULATORS


@pytest.mark.slow
def test_only_consumers_simulate(repository: Path) -> None:
    """Families draw data sets from their models for consumers; nothing on the trusted side asks them to."""
    callers = {
        path.relative_to(repository).as_posix()
        for top in ("pipeline", "storage", "flows")
        for path in (repository / top).rglob("*.py")
        if any(
            isinstance(node, ast.Attribute)
            and node.attr == "simulate"
            and not (isinstance(node.value, ast.Name) and node.value.id == "simulation")  # its function
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    }
    importers = {
        path.relative_to(repository).as_posix()
        for top in TRUSTED
        for path in (repository / top).rglob("*.py")
        if not path.is_relative_to(repository / "src/suffice/pipeline")
        and "simulated_noise import" in path.read_text(encoding="utf-8")
    }
    assert importers
    assert all(name.startswith("pipeline/ask/") for name in importers)
    assert callers == {
        "pipeline/ask/inference/model.py",
        "pipeline/ask/judging/conflict.py",
        "pipeline/ask/planning/expected_error.py",
        "pipeline/ask/calibration/simulated_release.py",
    }


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


def test_saturation_is_as_rare_as_the_proof_says() -> None:
    """Draws are cut off at -2^63 and 2^63 - 1; the chance of more is q^(2^63), with q = exp(-1 / scale)."""
    exponent = Fraction(2**63) / Fraction(LARGEST_SCALE)
    assert exponent == 256, "the chance is exp of minus this, exactly"
    with localcontext() as context:
        context.prec = 60
        q = (-1 / Decimal("2.5")).exp()
        weight = (1 - q) / (1 + q)
        for end in (1, 2, 16):  # the same in small: values from -end to end - 1 are kept
            beyond = Decimal(0) + sum(weight * q**size for size in range(end, 600))
            beyond += sum(weight * q**size for size in range(end + 1, 600))
            assert abs(beyond - q**end) < Decimal("1e-50")


def test_opendp_saturates_as_the_proof_assumes() -> None:
    """At b = 2^62 a draw is cut off with chance exp(-2): of 4,000, 541 within 5.5 standard errors (4e-8)."""
    n, chance = 4000, math.exp(-2)
    measurement = noise._measurement(2.0**62)
    drawn = np.fromiter(measurement([0] * n), np.int64, n)
    cut = int(((drawn == 2**63 - 1) | (drawn == -(2**63))).sum())
    spread = 5.5 * math.sqrt(n * chance * (1 - chance))
    assert abs(cut - n * chance) < spread
    assert abs(cut - n * math.exp(-4)) > spread, "the count must tell another scale"
    largest = noise.discrete_laplace(
        scale=LARGEST_SCALE, l1_sensitivity=1, loss=PrivacyLoss.of_epsilon(Fraction(1))
    )
    out = np.zeros(n, np.int64)
    largest.draw_into(out)
    assert abs(out.astype(object)).max() < 2**62  # missed with chance n exp(-128)
