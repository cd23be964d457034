"""One exponential family per file: its entry in a spec, what is summed, its block, prior and posteriors.

A family's file chooses the engine of its posterior, in `noise_aware`; for families with one sum
`shared/one_sum.py` does. A conjugate update is in the file of the family that it is of: that of gamma totals
in `gamma.py`, that of a probability in `bernoulli.py`.

In: a statistic's entry in a spec.
Out: `FAMILIES`, the registry: the only place that other rooms look a family up in.
May import: engines and below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.pipeline.families import (
    bayesian_network,
    bernoulli,
    binomial,
    categorical,
    contingency,
    exponential,
    gamma,
    geometric,
    histogram,
    laplace,
    linear_regression,
    lognormal,
    markov_chain,
    multivariate_normal,
    naive_bayes,
    negative_binomial,
    normal,
    normal_known_mean,
    normal_known_variance,
    pareto,
    poisson,
    rows_per_unit,
    weibull,
)

if TYPE_CHECKING:
    from suffice.pipeline.families.shared.contract import Family

FAMILIES: dict[str, Family] = {
    module.FAMILY.name: module.FAMILY
    for module in (
        bernoulli,
        categorical,
        histogram,
        contingency,
        naive_bayes,
        bayesian_network,
        markov_chain,
        rows_per_unit,
        binomial,
        poisson,
        geometric,
        negative_binomial,
        exponential,
        gamma,
        weibull,
        pareto,
        laplace,
        normal,
        normal_known_mean,
        normal_known_variance,
        lognormal,
        multivariate_normal,
        linear_regression,
    )
}
"""Every family that can be released, by name."""

NO_SUMS: dict[str, str] = {
    "uniform": "the data enter through their smallest and largest value, which are not sums",
}
"""Families that a spec may ask for and that are no exponential families, with the reason."""
