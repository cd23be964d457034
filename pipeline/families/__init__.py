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

from suffice.late_mapping import LateMapping

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from suffice.pipeline.families.shared.contract import Family

_NAMES = (
    "bernoulli",
    "categorical",
    "histogram",
    "contingency",
    "naive_bayes",
    "bayesian_network",
    "markov_chain",
    "rows_per_unit",
    "binomial",
    "poisson",
    "geometric",
    "negative_binomial",
    "exponential",
    "gamma",
    "weibull",
    "pareto",
    "laplace",
    "normal",
    "normal_known_mean",
    "normal_known_variance",
    "lognormal",
    "multivariate_normal",
    "linear_regression",
)
"""A family's name is that of its file."""


FAMILIES: MutableMapping[str, Family] = LateMapping({name: f"{__name__}.{name}:FAMILY" for name in _NAMES})
"""Every family that can be released, by name.

A family's file, and the engines of its posterior, load when it is looked up.
"""

NO_SUMS: dict[str, str] = {
    "uniform": "the data enter through their smallest and largest value, which are not sums",
}
"""Families that a spec may ask for and that are no exponential families, with the reason."""
