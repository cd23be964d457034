"""Priors of coefficients: their texts, the horseshoe's density, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from suffice import Coefficients, Horseshoe, SpikeAndSlab
from suffice.errors import PriorError
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.priors.coefficients import OnLine, parse_stated


@pytest.mark.parametrize(
    "text",
    [
        "Coefficients(Horseshoe(0.1))",
        "Coefficients(0.8*Point(0) + 0.2*Normal(0, 1), intercept=Cauchy(0, 3), sd=HalfNormal(5))",
        "Coefficients(x=Normal(0, 1))",
    ],
)
def test_texts_are_read_and_written(text: str) -> None:
    assert str(parse_stated(text)) == text
    assert str(Coefficients("Horseshoe(0.1)")) == "Coefficients(Horseshoe(0.1))"


def test_a_spike_and_a_slab_are_a_point_and_a_density() -> None:
    assert str(parse_stated("SpikeAndSlab(0.2, Normal(0, 1))")) == str(SpikeAndSlab(0.2, "Normal(0, 1)"))
    resolved = OnLine.of(SpikeAndSlab(0.2, "Normal(0, 1)"), Line.IDENTITY)
    ((value, log_chance),) = resolved.atoms
    assert value == 0.0
    assert log_chance == pytest.approx(np.log(0.8))
    at = np.array([0.0, 1.5])
    assert resolved.log_density(at) == pytest.approx(np.log(0.2) + stats.norm.logpdf(at), abs=1e-4)
    drawn = resolved.sample(100_000, np.random.default_rng())
    # 6 standard deviations of a share, and the distance of Kolmogorov and Smirnov that is beyond once in 1e7.
    assert abs(np.mean(drawn == 0.0) - 0.8) < 6 * np.sqrt(0.16 / 1e5)
    slab = drawn[drawn != 0.0]
    assert stats.kstest(slab, "norm").statistic < 3.0 / np.sqrt(len(slab)) + 1e-3


def test_a_horseshoe_is_a_normal_with_a_half_cauchy_scale() -> None:
    density = Horseshoe(0.3)

    def of_scale(at: float) -> float:
        value, _ = integrate.quad(
            lambda angle: stats.norm.pdf(at, 0, 0.3 * np.tan(angle)) * 2 / np.pi, 0, np.pi / 2, limit=500
        )
        return float(value)

    at = np.array([-0.4, 0.05, 2.0, 30.0])
    assert np.exp(density(at)) == pytest.approx([of_scale(value) for value in at], rel=1e-6)
    resolved = OnLine.of(density, Line.IDENTITY)
    assert resolved.log_density(at) == pytest.approx(density(at), abs=1e-4)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Coefficients, "prior of each, or of those named"),
        (lambda: Coefficients("Dirichlet(1)"), "one number"),
        (lambda: Coefficients("Normal(0, 1)", sd="HalfNormal(1)", variance="HalfNormal(1)"), "not both"),
        (lambda: SpikeAndSlab(2, "Normal(0, 1)"), "within 0..1"),
        (lambda: Horseshoe(-1), "above 0"),
        (lambda: parse_stated("SpikeAndSlab(0.2)"), "write it as SpikeAndSlab"),
        (lambda: parse_stated("Coefficients(Normal(0, 1), Normal(0, 1))"), "each once"),
        (lambda: Coefficients(z="Normal(0, 1)").parts(("x",), intercept=True), "there is no 'z': name x"),
    ],
    ids=["nothing", "a simplex", "sd and variance", "inclusion", "scale", "no slab", "two", "unknown name"],
)
def test_what_is_no_prior_of_coefficients_is_refused(make: Any, words: str) -> None:
    with pytest.raises(PriorError, match=words):
        make()
