"""What ``suffice model`` prints."""

from __future__ import annotations

from scripts.schemas.of_answers import BASIS, INTERVAL, SOMETIMES, SOURCE, reading
from scripts.schemas.of_publications import PUBLISHED
from scripts.schemas.shapes import (
    BOOLEAN,
    COUNT,
    COUNT_OR_NULL,
    METHOD,
    NUMBER,
    NUMBER_OR_NULL,
    TEXT,
    TEXTS,
    Schema,
    closed,
    each,
    either,
    listed,
    mapped,
    or_null,
    rows,
)
from suffice.pipeline.ask.models.state_sampling import PROJECTIONS, SAMPLERS

_fit: Schema = {
    "source": SOURCE,
    **each(TEXTS, "releases statistics chain time"),
    "method": METHOD,
    "project": {"enum": list(PROJECTIONS)},
    "sampler": {"enum": list(SAMPLERS)},
    **each(COUNT, "states restarts sweeps draws"),
    "until_settled": BOOLEAN,
    **each(NUMBER, "alpha beta rate"),
    "seed": COUNT_OR_NULL,
}
_of_plug_in = ("project", "sampler")
_of_restarts = closed(
    {
        "log_joint": listed(NUMBER),
        "poorer_restarts": listed(COUNT),
        **each(mapped(NUMBER_OR_NULL), "r_hat effective_draws"),
    }
)
FIT = reading(
    {
        **_fit,
        "mass": NUMBER,
        "diagnostics": _of_restarts,
        "rows": rows({"parameter": TEXT, **INTERVAL}),
        "cells": rows({"is_observed": BOOLEAN, "state": COUNT}),
    },
    _of_plug_in,
)
COMPARED_STATES = reading(
    {
        **{name: shape for name, shape in _fit.items() if name != "states"},
        "holdout": NUMBER,
        **each(COUNT, "splits best"),
        "rows": listed(
            closed(
                {
                    "states": COUNT,
                    **each(NUMBER, "score difference poorer_restarts"),
                    **each(NUMBER_OR_NULL, "sd r_hat"),
                }
            )
        ),
    },
    _of_plug_in,
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
