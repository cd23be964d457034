"""Entries of statistics written in Python: one function for each family, in the order of the docs.

They read nothing: a spec checks what they return. Arguments are called as the family's keys are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

from suffice.errors import UsageError
from suffice.pipeline.spec.guessed_names import MEANT, refuse_guesses

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal
    from fractions import Fraction

Number: TypeAlias = "int | float | str | Decimal | Fraction"
Keys: TypeAlias = "Sequence[object] | range | Mapping[str, Any]"
Keyed: TypeAlias = Mapping[str, Any]
Nulls: TypeAlias = str | Keyed | None
Entry: TypeAlias = dict[str, Any]
"""The entry of a statistic, as a spec holds it."""


class Common(TypedDict, total=False):
    """What any statistic may state beside its family's own keys."""

    share: Number
    rows_of: str
    within_unit: bool
    count_clipped: bool | Keyed
    where: str | Keyed
    groups: Mapping[str, Keys]
    hierarchy: Sequence[str] | Keyed
    level_shares: Sequence[Number]


def _entry(family: str, stated: dict[str, Any]) -> Entry:
    """Return an entry of what was stated; a column that was not keeps its place."""
    common = stated.pop("common")
    column = stated.get("column")
    if column is not None and not isinstance(column, str):
        named = ", ".join(f"{key}=" for key in stated if key != "column")
        message = (
            f"{family}: the first argument is the column, a text, not {type(column).__name__}; "
            f"what else there is has a name: {named}"
        )
        raise UsageError(message)
    refuse_guesses(family, common, MEANT)
    missing = [key for key in ("lower", "upper", "categories") if stated.get(key, key) is None]
    if missing:
        message = f"{family}() is missing what is publicly known: {', '.join(missing)}"
        raise TypeError(message)
    kept = {key: value for key, value in stated.items() if value is not None or key == "column"}
    return {"family": family, **kept, **common}


def bernoulli(
    column: str | None = None, *, sample: Keyed | None = None, nulls: Nulls = None, **common: Unpack[Common]
) -> Entry:
    """State a statistic of a column of truth values, or of 0 and 1.

    Its keys are those of the family ``bernoulli`` in a spec, which checks them.
    """
    return _entry("bernoulli", locals())


def categorical(
    column: str | None = None,
    categories: Keys | None = None,
    *,
    other: bool | None = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of a column of public categories.

    Its keys are those of the family ``categorical`` in a spec, which checks them.
    """
    return _entry("categorical", locals())


def histogram(
    column: str | None = None,
    lower: Number | None = None,
    upper: Number | None = None,
    *,
    bins: int | Sequence[Number] | Keyed,
    atoms: Sequence[Number] | None = None,
    sample: Keyed | None = None,
    nulls: Nulls = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of the rows in each of several public bins, for quantiles.

    Its keys are those of the family ``histogram`` in a spec, which checks them.
    """
    return _entry("histogram", locals())


def contingency(*, columns: Keyed, **common: Unpack[Common]) -> Entry:
    """State a statistic of a table of several columns with public categories.

    Its keys are those of the family ``contingency`` in a spec, which checks them.
    """
    return _entry("contingency", locals())


def naive_bayes(*, outcome: Keyed, features: Keyed, **common: Unpack[Common]) -> Entry:
    """State a statistic of an outcome and its features, for a classifier.

    Its keys are those of the family ``naive_bayes`` in a spec, which checks them.
    """
    return _entry("naive_bayes", locals())


def bayesian_network(*, nodes: Keyed, **common: Unpack[Common]) -> Entry:
    """State a statistic of columns with public categories, and which depend on which.

    Its keys are those of the family ``bayesian_network`` in a spec, which checks them.
    """
    return _entry("bayesian_network", locals())


def markov_chain(
    column: str | None = None,
    *,
    categories: Keys,
    order: str,
    transitions: int,
    other: bool | None = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of steps between the categories of the rows of a unit, in an order.

    Its keys are those of the family ``markov_chain`` in a spec, which checks them.
    """
    return _entry("markov_chain", locals())


def rows_per_unit(*, upper: Number, histogram: bool | None = None, **common: Unpack[Common]) -> Entry:
    """State a statistic of how many rows units have, beyond those that are kept.

    Its keys are those of the family ``rows_per_unit`` in a spec, which checks them.
    """
    return _entry("rows_per_unit", locals())


def binomial(
    column: str | None = None,
    *,
    trials: int,
    sample: Keyed | None = None,
    nulls: Nulls = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of successes in a fixed number of trials.

    Its keys are those of the family ``binomial`` in a spec, which checks them.
    """
    return _entry("binomial", locals())


def poisson(
    column: str | None = None,
    upper: Number | None = None,
    *,
    sample: Keyed | None = None,
    nulls: Nulls = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of counts, clipped to an upper bound.

    Its keys are those of the family ``poisson`` in a spec, which checks them.
    """
    return _entry("poisson", locals())


def geometric(
    column: str | None = None,
    upper: Number | None = None,
    *,
    sample: Keyed | None = None,
    nulls: Nulls = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of failures before a success, clipped.

    Its keys are those of the family ``geometric`` in a spec, which checks them.
    """
    return _entry("geometric", locals())


def negative_binomial(
    column: str | None = None,
    *,
    successes: Number,
    upper: Number,
    sample: Keyed | None = None,
    nulls: Nulls = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of failures before so many successes, clipped.

    Its keys are those of the family ``negative_binomial`` in a spec, which checks them.
    """
    return _entry("negative_binomial", locals())


def exponential(
    column: str | None = None,
    upper: Number | None = None,
    *,
    sample: Keyed | None = None,
    nulls: Nulls = None,
    lattice_bits: int | None = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of waiting times, clipped to an upper bound.

    Its keys are those of the family ``exponential`` in a spec, which checks them.
    """
    return _entry("exponential", locals())


def gamma(
    column: str | None = None,
    *,
    shape: Number,
    upper: Number,
    sample: Keyed | None = None,
    nulls: Nulls = None,
    lattice_bits: int | None = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of positive numbers of a known shape, clipped.

    Its keys are those of the family ``gamma`` in a spec, which checks them.
    """
    return _entry("gamma", locals())


def weibull(
    column: str | None = None,
    *,
    shape: Number,
    upper: Number,
    sample: Keyed | None = None,
    nulls: Nulls = None,
    lattice_bits: int | None = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of positive numbers of a known shape, clipped.

    Its keys are those of the family ``weibull`` in a spec, which checks them.
    """
    return _entry("weibull", locals())


def pareto(
    column: str | None = None,
    *,
    minimum: Number,
    upper: Number,
    sample: Keyed | None = None,
    nulls: Nulls = None,
    lattice_bits: int | None = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of numbers above a known minimum, clipped.

    Its keys are those of the family ``pareto`` in a spec, which checks them.
    """
    return _entry("pareto", locals())


def laplace(
    column: str | None = None,
    *,
    location: Number,
    half_range: Number,
    sample: Keyed | None = None,
    nulls: Nulls = None,
    lattice_bits: int | None = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of numbers about a known location, clipped.

    Its keys are those of the family ``laplace`` in a spec, which checks them.
    """
    return _entry("laplace", locals())


def normal(
    column: str | None = None,
    lower: Number | None = None,
    upper: Number | None = None,
    *,
    nulls: Nulls = None,
    lattice_bits: int | None = None,
    moment_weight: Number | None = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of numbers between public bounds, beyond which they are clipped.

    Its keys are those of the family ``normal`` in a spec, which checks them.
    """
    return _entry("normal", locals())


def normal_known_mean(
    column: str | None = None,
    *,
    mean: Number,
    half_range: Number,
    sample: Keyed | None = None,
    nulls: Nulls = None,
    lattice_bits: int | None = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of numbers about a known mean, clipped.

    Its keys are those of the family ``normal_known_mean`` in a spec, which checks them.
    """
    return _entry("normal_known_mean", locals())


def normal_known_variance(
    column: str | None = None,
    *,
    variance: Number,
    lower: Number,
    upper: Number,
    sample: Keyed | None = None,
    nulls: Nulls = None,
    lattice_bits: int | None = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of numbers of a known variance, between public bounds.

    Its keys are those of the family ``normal_known_variance`` in a spec, which checks them.
    """
    return _entry("normal_known_variance", locals())


def lognormal(
    column: str | None = None,
    lower: Number | None = None,
    upper: Number | None = None,
    *,
    nulls: Nulls = None,
    lattice_bits: int | None = None,
    moment_weight: Number | None = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of positive numbers between public bounds.

    Its keys are those of the family ``lognormal`` in a spec, which checks them.
    """
    return _entry("lognormal", locals())


def multivariate_normal(
    *,
    columns: Keyed,
    lattice_bits: int | None = None,
    moment_weight: Number | None = None,
    noise: str | None = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of several columns, each between public bounds.

    Its keys are those of the family ``multivariate_normal`` in a spec, which checks them.
    """
    return _entry("multivariate_normal", locals())


def linear_regression(
    *,
    outcome: Keyed,
    predictors: Keyed,
    intercept: bool | None = None,
    lattice_bits: int | None = None,
    moment_weight: Number | None = None,
    noise: str | None = None,
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of an outcome and its predictors, each between public bounds.

    Its keys are those of the family ``linear_regression`` in a spec, which checks them.
    """
    return _entry("linear_regression", locals())
