"""One exponential family per file, in a fixed order.

Spec, measure, block of components, totals, constants; default prior, projection, posteriors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.pipeline.families import bernoulli, categorical, normal, poisson

if TYPE_CHECKING:
    from suffice.pipeline.families.contract import Family

FAMILIES: dict[str, Family] = {
    module.FAMILY.name: module.FAMILY for module in (bernoulli, categorical, poisson, normal)
}
"""Every family that can be released, by name."""

NOT_BUILT: frozenset[str] = frozenset(
    {
        "binomial",
        "exponential",
        "gamma",
        "geometric",
        "laplace",
        "linear_regression",
        "lognormal",
        "multivariate_normal",
        "negative_binomial",
        "pareto",
        "weibull",
    }
)
"""Exponential families that a spec may name one day; refused by name until then."""
