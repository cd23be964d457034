"""What ``suffice model`` prints."""

from __future__ import annotations

from scripts.schemas.of_answers import BASIS, INTERVAL, SOMETIMES, SOURCE, reading
from scripts.schemas.of_publications import PUBLISHED
from scripts.schemas.shapes import (
    BOOLEAN,
    COUNT,
    COUNT_OR_NULL,
    NUMBER,
    NUMBER_OR_NULL,
    TEXT,
    TEXTS,
    Schema,
    closed,
    each,
    either,
    mapped,
    or_null,
    rows,
)
from scripts.schemas.typed import fields_of, may_lack
from suffice.pipeline.ask.models.hidden_markov import StateComparison
from suffice.pipeline.ask.models.hidden_markov_fit import FitSummary

FIT = reading({"source": SOURCE, **fields_of(FitSummary), "seed": COUNT_OR_NULL}, may_lack(FitSummary))
COMPARED_STATES = reading(
    {"source": SOURCE, **fields_of(StateComparison), "seed": COUNT_OR_NULL}, may_lack(StateComparison)
)

_answers = dict.fromkeys(("rows", "predicted", "extrapolated", "incomplete", "of_no_cell"), COUNT)


COMMANDS: dict[str, Schema] = {
    "model classify": reading(
        {
            **{name: shape for name, shape in BASIS.items() if name not in {"mass", "interval"}},
            "classes": TEXTS,
            "counts": closed({**each(COUNT, "rows classified"), "left_out": mapped(COUNT), "absent": TEXTS}),
            "score": or_null(closed({**each(NUMBER, "accuracy mean_log_score"), "rows": COUNT})),
            "rows": rows({"row": COUNT}),
        },
        (*SOMETIMES, "rows"),
    ),
    "model predict": reading(
        {
            **BASIS,
            "outcome": TEXT,
            "counts": closed(_answers),
            "rows": rows(
                {
                    "row": COUNT,
                    **each(NUMBER_OR_NULL, "mean lower upper predictive_lower predictive_upper"),
                    "is_extrapolated": BOOLEAN,
                }
            ),
        },
        (*SOMETIMES, "rows"),
    ),
    "model query": either(
        PUBLISHED,
        reading(
            {
                **BASIS,
                "target": TEXTS,
                **each(mapped(TEXT), "given do"),
                "rows": rows({"parameter": TEXT, **INTERVAL, "median": NUMBER_OR_NULL}),
                "undefined_share": NUMBER,
            },
            SOMETIMES,
        ),
    ),
    "model transitions": either(
        PUBLISHED,
        reading(
            {
                **BASIS,
                "states": TEXTS,
                "rows": rows({"quantity": TEXT, **INTERVAL, "median": NUMBER_OR_NULL}),
                "undefined_share": NUMBER,
            },
            SOMETIMES,
        ),
    ),
    "model hidden-markov": either(PUBLISHED, FIT, COMPARED_STATES),
}
"""By command: what it prints with ``--json``."""
