"""Specs written in Python: :func:`spec`, and one function for the entry of a statistic of each family.

They state what a YAML file states, and read nothing: what they return is checked as that is. Arguments are
called as the family's keys are.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

from suffice.errors import UsageError
from suffice.pipeline.spec.guessed_names import MEANT, MEANT_BY_SPEC, refuse_guesses
from suffice.pipeline.spec.spec import Spec, load_spec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal
    from fractions import Fraction

    Number: TypeAlias = int | float | str | Decimal | Fraction
    Keys: TypeAlias = Sequence[object] | range | Mapping[str, Any]
    Keyed: TypeAlias = Mapping[str, Any]
    Nulls: TypeAlias = str | Mapping[str, Any] | None

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


def spec(
    *unnamed: object,
    dataset: str | None = None,
    statistics: Mapping[str, Entry] | None = None,
    epsilon: Number | None = None,
    rho: Number | None = None,
    groups: Mapping[str, Keys] | None = None,
    name: str | None = None,
    neighboring: str = "add_or_remove_one",
    unit: str | Keyed = "row",
    source: Keyed | None = None,
    window: Keyed | None = None,
    where: str | Keyed | None = None,
    derived: Mapping[str, Keyed] | None = None,
    per_unit: Mapping[str, str | Keyed] | None = None,
    expect: Keyed | None = None,
    max_total_rows: int | None = None,
    about: Keyed | None = None,
    assume: Keyed | None = None,
    **more: Any,
) -> Spec:
    """Return the spec that these terms state: the same that a YAML file with them would be.

    Parameters
    ----------
    dataset : str
        The protected population: the account that pays.
    statistics : mapping
        Names to entries, as :func:`suffice.bernoulli` and the others make them. One of a single column that
        names none is of the column that it is called like.
    epsilon : number, nats
        Of the whole release.
    rho : number
        In its place: zero-concentrated privacy, for accounts that count rho; at most twelve digits after the
        point. It has an epsilon at every delta, so that no delta is stated.
    groups : mapping, optional
        Columns to their public keys: a list, a range, or what a spec may state. They are public knowledge,
        and never read off the rows.
    name : str, optional
        The release series; that of the data set, where it is left out.
    neighboring, unit
        The guarantee: for one row added or removed, unless it says otherwise.
    about : mapping, optional
        Words for the public, as ``{"title": "Flights", "statistics": {"cancelled": {"label": "Cancelled
        flights"}}, "keys": {"origin": {"label": "Airport", "values": {"JFK": "Kennedy"}}}}``. They are no
        term of what is charged, and :func:`suffice.describe` mends them later.
    source, window, where, derived, per_unit, expect, max_total_rows, assume
        As in a spec. Without a source the rows are handed over: ``suffice.release(spec, data=frame)``.

    Returns
    -------
    Spec

    Raises
    ------
    SpecError, UsageError
        As :func:`suffice.load_spec`.

    Examples
    --------
    >>> flights = spec(
    ...     dataset="flights",
    ...     groups={"origin": ["EWR", "JFK", "LGA"], "month": range(1, 13)},
    ...     statistics={"cancelled": bernoulli()},
    ...     epsilon=1,
    ... )
    >>> print(flights.to_yaml())
    name: flights
    dataset: flights
    privacy: {epsilon: 1, neighboring: add_or_remove_one, unit: row}
    groups:
      origin: [EWR, JFK, LGA]
      month:
        range: [1, 12]
    statistics:
      cancelled: {family: bernoulli, column: cancelled}
    <BLANKLINE>
    """
    if unnamed:
        message = (
            'suffice.spec takes its terms by name, as dataset="flights", statistics={...}, epsilon=1, and no '
            "rows: these are handed over with suffice.release(spec, data=frame)"
        )
        raise UsageError(message)
    refuse_guesses("suffice.spec", more, MEANT_BY_SPEC)
    loss = rho if epsilon is None else epsilon
    for term, value in (("dataset", dataset), ("statistics", statistics), ("epsilon", loss)):
        if value is None:
            message = f"suffice.spec needs {term}=: suffice.spec(dataset=..., statistics={{...}}, epsilon=1)"
            raise UsageError(message)
    if rho is not None and epsilon is not None:
        message = "suffice.spec takes epsilon= or, for accounts that count rho, rho=: not both"
        raise UsageError(message)
    if groups is not None and not isinstance(groups, Mapping):
        message = (
            'groups maps columns to their public keys, as {"origin": ["EWR", "JFK"]}: keys are stated, and '
            "never read off the rows"
        )
        raise UsageError(message)
    terms = {
        "name": dataset if name is None else name,
        "dataset": dataset,
        "source": source,
        "window": window,
        "privacy": {
            **({"rho": rho} if epsilon is None else {"epsilon": epsilon}),
            "neighboring": neighboring,
            "unit": unit,
        },
        "where": where,
        "derived": derived,
        "per_unit": per_unit,
        "groups": groups,
        "statistics": _of_columns(statistics),
        "expect": expect,
        "max_total_rows": max_total_rows,
        "about": about,
        "assume": assume,
        **more,
    }
    return load_spec({key: _stated(value, key) for key, value in terms.items() if value is not None})


def _of_columns(statistics: Mapping[str, Entry] | None) -> dict[str, Any]:
    """Return entries in which those that left their column out are of the one that they are called like."""
    given: object = statistics
    if not isinstance(given, dict) or not all(isinstance(entry, dict) for entry in given.values()):
        message = "statistics maps names to entries, as {'cancelled': suffice.bernoulli()}"
        raise UsageError(message)
    return {
        name: {**entry, "column": entry["column"] or name} if "column" in entry else entry
        for name, entry in given.items()
    }


def _stated(value: Any, place: str) -> Any:
    """Return a value as a spec's mapping states it: ranges as such, tuples as lists, dates as text."""
    if isinstance(value, Mapping):
        return {str(key): _stated(entry, f"{place}.{key}") for key, entry in value.items()}
    if isinstance(value, range):
        return {"range": [value[0], value[-1]]} if len(value) and value.step == 1 else list(value)
    if isinstance(value, list | tuple):
        return [_stated(entry, f"{place}.{index}") for index, entry in enumerate(value)]
    if isinstance(value, dt.date):
        return value.isoformat()
    if hasattr(value, "dtype") and getattr(value, "shape", None) == ():  # a number of NumPy's
        return value.item()
    if hasattr(value, "dtype") or isinstance(value, set | frozenset):
        message = (
            f"{place}: a {type(value).__name__} is no public list: write keys out in their order; read off "
            "the rows they would tell what is in them"
        )
        raise UsageError(message)
    return value


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
    **common: Unpack[Common],
) -> Entry:
    """State a statistic of an outcome and its predictors, each between public bounds.

    Its keys are those of the family ``linear_regression`` in a spec, which checks them.
    """
    return _entry("linear_regression", locals())
