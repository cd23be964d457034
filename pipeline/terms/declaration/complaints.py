"""What pydantic complains of, in our own words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_FORMS = {
    "bool_type": "must be true or false",
    "dict_type": "must be a mapping of keys",
    "list_type": "must be a list",
    "literal_error": "has a value that is not allowed here",
    "mapping_type": "must be a mapping of keys",
    "model_type": "must be a mapping of keys",
    "string_type": "must be one text",
    "too_long": "has too many entries",
    "too_short": "has too few entries",
    "tuple_type": "must be a list",
}
"""Forms that a value must have, by pydantic's name of the complaint."""

UNKNOWN_KEY = "extra_forbidden"
MISSING_KEY = "missing"


def first_complaint(complaints: list[ErrorDetails]) -> ErrorDetails:
    """Return the complaint to show: an unknown key, often a misspelt one, explains the others."""
    return next((found for found in complaints if found["type"] == UNKNOWN_KEY), complaints[0])


def rule_of(complaint: ErrorDetails) -> str:
    """Return the rule that a value breaks: our validators' text, or the form that it must have."""
    error = complaint.get("ctx", {}).get("error")
    return (
        str(error)
        if error is not None
        else _FORMS.get(complaint["type"], "has a form that is not allowed here")
    )
