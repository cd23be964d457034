"""Statistics that are released as samples, their laws and their losses, computed here once more."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.spec.compiled_statistics import score_tables
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.terms.declaration.fields import SampleEntry, sample_entry
from suffice.pipeline.terms.statistics.drawn_quantile import QuantilePlan
from suffice.pipeline.terms.statistics.sample_plan import SamplePlan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.terms.statistics.sample_plan import ScoreTables
    from suffice.typing import Floats

WITHIN = {"probability": ["0.2", "0.8"], "mean": ["-1", "4"]}
"""By parameter; ends of positive ones are 0.2 and 8."""


def drawn(column: str = "flag", **sample: Any) -> dict[str, Any]:
    """Return a bernoulli statistic of which draws are released."""
    entry = {"draws": "2", "within": ["0.2", "0.8"], "grid": "33", "prior": "Beta(2, 1)", **sample}
    return {"family": "bernoulli", "column": column, "sample": entry}


def sampled_spec(
    statistics: dict[str, Any], *, epsilon: str = "1", neighboring: str = "add_or_remove_one", **others: Any
) -> Spec:
    """Return a spec of these statistics, over data that are not there."""
    return load_spec(
        {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": "absent/"},
            "privacy": {"epsilon": epsilon, "neighboring": neighboring},
            "statistics": statistics,
            **others,
        }
    )


def drawn_quantile(column: str = "x", **changes: Any) -> dict[str, Any]:
    """Return a histogram of which draws of a quantile are released."""
    sample = {"quantile": "0.9", "draws": "2", **changes.pop("sample", {})}
    bins = {"lower": "0", "upper": "8", "bins": "8", "atoms": ["3"], **changes}
    return {"family": "histogram", "column": column, **bins, "sample": sample}


def quantile_of(plan: Plan, position: int = 0) -> QuantilePlan:
    """Return what is drawn of a statistic whose quantile is."""
    sample = plan.statistics[position].sample
    assert isinstance(sample, QuantilePlan)
    return sample


def sample_of(plan: Plan, position: int = 0) -> SamplePlan:
    """Return the sample of a statistic that has one."""
    sample = plan.statistics[position].sample
    assert isinstance(sample, SamplePlan)
    return sample


@functools.cache
def bernoulli_sample(
    within: tuple[str, str], *, neighboring: str = "add_or_remove_one", public: bool = False, **sample: Any
) -> tuple[SamplePlan, ScoreTables]:
    """Return plan and tables of one draw on 1,025 points under a flat prior at epsilon 1."""
    entry = drawn(within=[*within], **{"draws": "1", "grid": "1025", "prior": "Beta(1, 1)", **sample})
    nulls = {"nulls": {"value": "0"}} if public else {}
    spec = sampled_spec({"flag": {**entry, **nulls}}, neighboring=neighboring)
    statistic = spec.statistics["flag"]
    stated = sample_entry(statistic)
    assert isinstance(stated, SampleEntry)
    return sample_of(compile_plan(spec)), score_tables(statistic, stated)


def log_law(scores: Floats, scale: float, log_prior: Floats | float = 0.0) -> Floats:
    """Return log probabilities along the last axis: of the exponential mechanism, as a softmax."""
    weights = scores / scale + log_prior
    highest = weights.max(axis=-1, keepdims=True)
    total: Floats = weights - highest - np.log(np.exp(weights - highest).sum(axis=-1, keepdims=True))
    return total


def permute_and_flip(scores: Floats, scale: float) -> Floats:
    """Return the law of the largest of scores with exponential noise, by quadrature of its density."""
    relative = (scores - scores.max()) / scale
    noise = np.linspace(0.0, 45.0, 200_001)
    densities = np.zeros(len(scores))
    log_below = np.zeros(len(noise))
    below: list[NDArray[np.float64]] = []
    for score in relative:
        share = -np.expm1(-np.maximum(noise - score, 0.0))
        below.append(share)
        with np.errstate(divide="ignore"):
            log_below += np.log(share)
    for position, score in enumerate(relative):
        with np.errstate(divide="ignore", invalid="ignore"):
            others = np.exp(log_below - np.log(below[position]))
        others[below[position] == 0.0] = 0.0
        density = np.exp(-(noise - score)) * others * (noise >= score)
        densities[position] = np.trapezoid(density, noise)
    law: Floats = densities / densities.sum()
    return law
