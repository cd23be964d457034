"""A table that somebody else published, the law it was made by, and small ones of a column."""

from __future__ import annotations

import copy
from typing import Any

import suffice

LAW: dict[str, Any] = {
    "name": "views",
    "publisher": "A publisher",
    "source": "https://example.org/table",
    "licence": "CC0 1.0",
    "privacy": "rho = 0.1",
    "keys": {"page": "as_published", "day": {"range": [1, 4]}},
    "columns": {
        "views": {
            "noise": {"law": "geometric", "scale": 4},
            "suppressed": {"below": 20, "shown_as": "absent"},
        }
    },
    "statistics": {
        "rate": {"family": "poisson", "column": "views", "upper": 1000},
        "views": {"family": "count", "column": "views", "upper": 1000},
    },
}

TABLE = {"page": ["A", "A", "B", "B", "B"], "day": [1, 3, 1, 2, 4], "views": [25, 31, 400, 410, 395]}


def changed(**parts: Any) -> dict[str, Any]:
    law = copy.deepcopy(LAW)
    law.update(parts)
    return law


def of_column(**parts: Any) -> dict[str, Any]:
    """Return a law whose only key is a row number, so that nothing is absent."""
    return changed(
        keys={"row": "as_published"}, columns={"views": {"noise": {"law": "geometric", "scale": 4}, **parts}}
    )


LAPLACE: dict[str, Any] = {"noise": {"law": "laplace", "scale": 5}}

SUPPRESSED = {**LAPLACE, "suppressed": {"below": 17.5, "shown_as": "*"}, "rounded": {"to": 5}}


def small(table: dict[str, list[Any]], statistic: dict[str, Any], column: dict[str, Any]) -> Any:
    """Adopt a table of one column ``c``, and of what else the statistic is of."""
    noisy = dict.fromkeys(statistic.get("columns", ["c"]), column)
    terms = {"keys": {"k": "as_published"} if "k" in table else {}, "statistics": {"s": statistic}}
    about = {"name": "x", "publisher": "p", "source": "https://e.org", "licence": "l", "privacy": "p"}
    return suffice.adopt(table, {**about, **terms, "columns": noisy})["s"]


COUNT = {"family": "count", "column": "c", "upper": 100}

SHARE = {"family": "bernoulli", "column": "c", "total": "n"}

RATE = {**COUNT, "family": "poisson"}
