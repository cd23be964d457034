"""Families in conditions under which next to nothing is clipped: posteriors can be calibrated there."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.calibration.simulated_release import GenerativeModel, generative_model_of
from suffice.pipeline.declaration.fields import canonical
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.posterior.posterior import NOISE_AWARE
from suffice.pipeline.priors.record_count import Uniform
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.statistics.block import Parameters
from suffice.pipeline.statistics.simulated_sums import SimulatedSums
from support.noisy import COLUMNLESS, NO_NULLS, noisy_statistic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.priors.record_count import NPrior

SEVERAL = {"multivariate_normal", "linear_regression"}
"""Families of several bounded columns."""
WITH_OTHER = {"categories": ["0"], "other": "true"}
CONDITIONS: dict[str, tuple[dict[str, Any], str | None]] = {
    "bernoulli": ({}, None),
    "categorical": ({"categories": ["a", "b", "c", "d"], "other": "true"}, None),
    "binomial": ({"trials": "5"}, None),
    "poisson": ({"upper": "40"}, "Gamma(4, 1)"),
    "geometric": ({"upper": "60"}, "Beta(8, 4)"),
    "negative_binomial": ({"successes": "2.5", "upper": "100"}, "Beta(8, 4)"),
    "exponential": ({"upper": "60"}, "Gamma(8, 8)"),
    "gamma": ({"shape": "2", "upper": "80"}, "Gamma(8, 8)"),
    "weibull": ({"shape": "1.7", "upper": "11"}, "Gamma(8, 8)"),
    "pareto": ({"minimum": "2", "upper": "2e26"}, "Gamma(8, 8)"),
    "laplace": ({"location": "1", "half_range": "60"}, "InverseGamma(9, 8)"),
    "normal": ({"lower": "-6", "upper": "6"}, "NormalInverseGamma(0.3, 4, 12, 6)"),
    "normal_known_mean": ({"mean": "1", "half_range": "15"}, "InverseGamma(8, 7)"),
    "normal_known_variance": ({"variance": "1", "lower": "-9", "upper": "9"}, "Normal(0, 1)"),
    "contingency": ({"columns": {"a": WITH_OTHER, "b": WITH_OTHER}}, None),
    "naive_bayes": ({"outcome": {"y": WITH_OTHER}, "features": {"a": WITH_OTHER, "b": WITH_OTHER}}, None),
    "bayesian_network": (
        {
            "nodes": {
                "b": {**WITH_OTHER, "parents": ["a"]},
                "a": WITH_OTHER,
                "c": {**WITH_OTHER, "parents": ["a"]},
            }
        },
        None,
    ),
    "markov_chain": ({"categories": ["a", "b"], "order": "when", "transitions": "4"}, None),
    "multivariate_normal": (
        {"columns": {"x": {"lower": "-6", "upper": "6"}, "y": {"lower": "-9", "upper": "9"}}},
        "NormalInverseWishart([0.3, 0], 4, 25, [12, 22])",
    ),
    "linear_regression": (
        {
            "outcome": {"y": {"lower": "-20", "upper": "20"}},
            "predictors": {"x": {"lower": "-1", "upper": "1"}},
        },
        "NormalInverseGammaRegression([0.5, 0], [1, 4], 4, 0.3)",
    ),
    "lognormal": ({"lower": "0.0025", "upper": "400"}, "NormalInverseGamma(0.3, 4, 12, 6)"),
}
"""By family: keys of the statistic's entry, and a prior under which under one record in 10^5 is clipped."""
MOST_CLIPPED, FEW_CLIPPED = 1e-5, 10
"""The share of records, and the number of them in a data set of a rare variance, that decide nothing.

Of normal columns 1.3e-7 are clipped on average, but where any is, a few are: of 2 million data sets drawn one
had a share of 3 %, five one above 0.4 %.
"""


ORIGIN = (
    {**CONDITIONS["linear_regression"][0], "intercept": "false"},
    "NormalInverseGammaRegression(0.5, 1, 4, 0.3)",
)
"""Conditions of a regression without an intercept."""


def most_clipped(simulations: int, n: int) -> float:
    """Return the share of clipped records below which clipping decides nothing, of data sets of n rows."""
    return MOST_CLIPPED + FEW_CLIPPED / (simulations * n)


class EndlessModel(GenerativeModel):
    """A generative model whose records are summed as though the bounds had no end.

    Families of several columns are judged in it: predictors have a prior as wide as their bounds.
    """

    def sums(
        self, truth: NDArray[np.float64], sizes: NDArray[np.int64], rng: np.random.Generator
    ) -> SimulatedSums:
        """Draw data sets, and sum them without clipping."""
        free = super().sums(truth, sizes, rng).unclipped
        return SimulatedSums(clipped=free, unclipped=free, n_clipped=0)


def generative_model_for(
    family: str,
    *,
    n: int,
    epsilon: str = "1",
    public_n: bool = False,
    method: str = NOISE_AWARE,
    n_prior: NPrior | None = None,
    conditions: tuple[dict[str, Any], str | None] | None = None,
) -> GenerativeModel:
    """Return the model of a release of one statistic; a private N is uniform on ``0..2 n`` by default."""
    keys, prior = conditions or CONDITIONS[family]
    entry = {"family": family, **({} if family in COLUMNLESS | SEVERAL else {"column": "x"}), **keys}
    if public_n and family in SEVERAL:
        entry = {key: _counting_nulls(value) for key, value in entry.items()}
    elif public_n and family not in NO_NULLS:
        entry["nulls"] = {"value": "0" if family != "pareto" else "2"}
    spec = load_spec(
        {
            "name": "simulated",
            "dataset": "simulated",
            "source": {"parquet": "rows/"},
            "privacy": {
                "epsilon": epsilon,
                "neighboring": "replace_one" if public_n else "add_or_remove_one",
                "unit": {"column": "who", "max_rows": "1"} if FAMILIES[family].needs_unit else "row",
            },
            "statistics": {"measured": entry},
        }
    )
    (plan,) = compile_plan(spec).statistics
    statistic = noisy_statistic(
        plan, np.zeros((1, len(plan.components)), dtype=int), public_n=n if public_n else None
    )
    given = None if public_n else n_prior or Uniform(0, 2 * n)
    released = canonical(spec.statistics["measured"])
    assert isinstance(released, dict)
    generative_model = generative_model_of(statistic, released, method, prior, given)
    if family not in SEVERAL:
        return generative_model
    return EndlessModel(
        **{
            field.name: getattr(generative_model, field.name)
            for field in dataclasses.fields(generative_model)
        }
    )


def _counting_nulls(value: Any) -> Any:
    """Let nulls of every column count as 0."""
    if not isinstance(value, dict):
        return value
    return {name: {**bounds, "nulls": {"value": "0"}} for name, bounds in value.items()}


def noise_aware_families(*, by_mcmc: bool = False) -> list[str]:
    """Families whose posteriors can be calibrated, and of which data can be simulated; by MCMC or not."""
    return [
        name
        for name, family in FAMILIES.items()
        if family.noise_aware and family.simulate and family.by_mcmc(Parameters()) == by_mcmc
    ]
