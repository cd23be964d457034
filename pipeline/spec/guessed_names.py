"""What others call the terms of a spec and of its statistics, and what they are here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


def refuse_guesses(of: str, given: Mapping[str, Any], meant: Mapping[str, str]) -> None:
    """Refuse arguments that are called otherwise here, and say how.

    Raises
    ------
    UsageError
    """
    for word in given:
        if word in meant:
            message = f"{of} takes no {word}: here it is {meant[word]}"
            raise UsageError(message)


_ABOUT = 'about={{"statistics": {{NAME: {{"{0}": ...}}}}}} of suffice.spec'
MEANT = {
    **{word: _ABOUT.format(word) for word in ("label", "description", "digits", "values")},
    **dict.fromkeys(("min", "low", "minimum_value", "clip_lower"), "lower="),
    **dict.fromkeys(("max", "high", "maximum_value", "clip_upper"), "upper="),
    **dict.fromkeys(("bounds", "range", "clip", "limits"), "lower= and upper="),
    **dict.fromkeys(("levels", "classes"), "categories="),
    "by": "groups= of suffice.spec",
    "epsilon": "epsilon= of suffice.spec, which share= divides",
}
_UNIT = 'unit={"column": "customer_id", "max_rows": 20}'
MEANT_BY_SPEC = {
    **{word: f'about={{"{word}": ...}}' for word in ("title", "description", "licence", "contact")},
    "license": 'about={"licence": ...}',
    "label": 'about={"title": ...}',
    **dict.fromkeys(("user", "person", "id", "privacy_unit"), _UNIT),
    **dict.fromkeys(("eps", "budget"), "epsilon="),
    "delta": "rho=, which has an epsilon at every delta: suffice.plan shows them",
    **dict.fromkeys(("by", "group_by", "groupby", "keys"), "groups="),
    **dict.fromkeys(("stats", "columns", "aggregations", "queries"), "statistics="),
    **dict.fromkeys(("data", "frame", "df"), "suffice.release(spec, data=frame)"),
}
