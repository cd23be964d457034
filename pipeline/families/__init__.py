"""One exponential family per file: its entry in a spec, what is summed, its block, prior and posteriors.

A family's file chooses the engine of its posterior, in `noise_aware`; for families with one sum
`shared/one_sum.py` does. A conjugate update is in the file of the family that it is of: that of gamma totals
in `gamma.py`, that of a probability in `bernoulli.py`.

In: a statistic's entry in a spec.
Out: `FAMILIES`, the registry: the only place that other rooms look a family up in.
May import: engines and below.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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


class _Families(MutableMapping[str, "Family"]):
    """Families by name. A family's file, and the engines of its posterior, load when it is looked up."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._loaded: dict[str, Family | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> Family:
        family = self._loaded[name]
        if family is None:
            family = self._loaded[name] = import_module(f"{__name__}.{name}").FAMILY
        return family

    def __setitem__(self, name: str, family: Family) -> None:
        self._loaded[name] = family

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._loaded

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded)

    def __len__(self) -> int:
        return len(self._loaded)


FAMILIES: MutableMapping[str, Family] = _Families(_NAMES)
"""Every family that can be released, by name."""

NO_SUMS: dict[str, str] = {
    "uniform": "the data enter through their smallest and largest value, which are not sums",
}
"""Families that a spec may ask for and that are no exponential families, with the reason."""
