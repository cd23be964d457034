"""Specs written in Python: :func:`spec` states what a YAML file states, and is checked as that is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError
from suffice.pipeline.spec.guessed_names import MEANT_BY_SPEC, refuse_guesses
from suffice.pipeline.spec.spec import Spec, load_spec

if TYPE_CHECKING:
    from suffice.pipeline.spec.entries import Entry, Keyed, Keys, Number


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
    >>> from suffice.pipeline.spec.entries import bernoulli
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
