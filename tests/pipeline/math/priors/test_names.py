"""Names of distributions of other libraries: what tells two apart is in them, within a length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from suffice.pipeline.math.priors.names import LONGEST, named_by_numpyro, named_by_scipy


def test_names_of_scipy_have_values_and_heights() -> None:
    def discrete(*values: float) -> Any:
        return stats.rv_discrete(values=(values, [1 / len(values)] * len(values)))()

    assert named_by_scipy(discrete(1, 2)) == "scipy.stats.rv_discrete(values=([1, 2], [0.5, 0.5]))"
    assert named_by_scipy(stats.norm(0, scale=1.00000001)) == "scipy.stats.norm(0, scale=1.00000001)"
    histogram = named_by_scipy(stats.rv_histogram((np.array([1, 3]), np.array([0, 1, 2])))())
    assert histogram == "scipy.stats.rv_histogram(([1, 3], [0, 1, 2]))"
    many = [named_by_scipy(discrete(*range(500), last)) for last in (600, 601)]
    assert max(map(len, many)) <= LONGEST
    assert many[0] != many[1]


def test_names_of_numpyro_have_what_a_distribution_is_made_of() -> None:
    numpyro = pytest.importorskip("numpyro.distributions")
    gammas = numpyro.Gamma(np.array([1.0, 2.5]), 1.0)
    for given, name in (
        (numpyro.LogNormal(0.0, 0.1), "LogNormal(loc=0, scale=0.1)"),
        (numpyro.Delta(2.0), "Delta(v=2)"),
        (
            numpyro.TruncatedNormal(5.0, 0.1, low=0.0, high=9.0),
            "TwoSidedTruncatedDistribution(base_dist=Normal(loc=5, scale=0.1), low=0, high=9)",
        ),
        (
            numpyro.MixtureSameFamily(numpyro.Categorical(np.array([0.25, 0.75])), gammas),
            (
                "MixtureSameFamily(mixing_distribution=CategoricalProbs(probs=[0.25, 0.75]), "
                "component_distribution=Gamma(concentration=[1, 2.5], rate=[1]))"
            ),
        ),
        (
            numpyro.TransformedDistribution(
                numpyro.Normal(0.0, 1.0), numpyro.transforms.AffineTransform(1.0, 2.0)
            ),
            (
                "TransformedDistribution(base_distribution=Normal(loc=0, scale=1), "
                "transforms=[AffineTransform(loc=1, scale=2)])"
            ),
        ),
    ):
        assert named_by_numpyro(given) == f"numpyro.{name}"
