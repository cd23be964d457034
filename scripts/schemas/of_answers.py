"""What commands print that answer questions about releases: tables, posteriors, calibrations."""

from __future__ import annotations

from scripts.schemas.shapes import (
    BOOLEAN,
    COUNT,
    COUNT_OR_NULL,
    EXACT,
    FAMILY,
    HASH,
    METHOD,
    NUMBER,
    NUMBER_OR_NULL,
    RELEASE_ID,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    Schema,
    closed,
    each,
    either,
    listed,
    named,
    or_null,
    rows,
    without_nulls,
)
from scripts.schemas.typed import fields_of, schema_of
from suffice.data_files.source import Provenance, ReleaseSource
from suffice.pipeline.ask.calibration.calibrate import Calibration
from suffice.pipeline.ask.pooling.comparison import PriorComparison
from suffice.pipeline.terms.released.withdrawal import Withdrawal

SIGNATURE: Schema = {"enum": ["checked", "not_checked", "unsigned", "wrong"]}
WITHDRAWAL = schema_of(Withdrawal)
WITHDRAWN = named(
    "withdrawn",
    listed(
        closed(
            {
                "release": TEXT,
                "release_id": RELEASE_ID,
                **each(TEXT, "reason created"),
                "signed_by": TEXT_OR_NULL,
                "signature": SIGNATURE,
            }
        )
    ),
)
"""The withdrawn releases that a document rests on, where a command was told to read them."""

_source, _rests_on = map(without_nulls, (Provenance, ReleaseSource))
_rests_on["properties"] |= {"release_id": RELEASE_ID, "manifest_sha256": HASH}
_source["properties"] |= {"written_by": TEXT, "releases": {**listed(_rests_on), "minItems": 1}}
SOURCE = named("source", {**_source, "required": ["written_by", *_source["required"]]})
"""Where the numbers of a document come from: ``suffice.data_files.source``."""


def reading(fields: Schema, optional: tuple[str, ...] = ()) -> Schema:
    """Return a document that rests on releases, which may have been withdrawn."""
    return closed({**fields, "withdrawn": WITHDRAWN}, (*optional, "withdrawn"))


DIAGNOSTICS = named(
    "diagnostics",
    closed(
        {
            "sampler": TEXT,
            **each(COUNT, "chains draws"),
            "largest_r_hat": NUMBER_OR_NULL,
            "fewest_effective_draws": NUMBER,
        },
        optional=("chains", "largest_r_hat"),
    ),
)
"""How a posterior was drawn, where draws are not independent."""
CLIPPING = or_null(
    named(
        "clipping",
        closed(
            {
                "is_warned": BOOLEAN,
                "cells": rows(
                    {
                        **each(NUMBER_OR_NULL, "share bias"),
                        **each(BOOLEAN, "is_modelled is_warned"),
                    }
                ),
            }
        ),
    )
)
DESIGN_EFFECT = or_null(rows({"design_effect": NUMBER}))
INTERVAL = each(NUMBER_OR_NULL, "mean sd lower upper")
SUMMARIES = rows({"parameter": TEXT, **INTERVAL})
INTERVAL_KIND: Schema = {"enum": ["central", "highest-density"]}
TERMS: Schema = {
    "source": SOURCE,
    "statistic": TEXT,
    "rows_of": TEXT_OR_NULL,
    "method": METHOD,
    "prior": TEXT,
    "n_prior": TEXT_OR_NULL,
    "predictor_prior": TEXT_OR_NULL,
    "mass": NUMBER,
    "interval": INTERVAL_KIND,
    "draws": COUNT,
    "seed": COUNT_OR_NULL,
}
"""Of one statistic, under one prior."""
BASIS: Schema = {
    **TERMS,
    "release": TEXT,
    "family": FAMILY,
    "plug_in": TEXTS,
    "diagnostics": DIAGNOSTICS,
    "conflicts": TEXTS,
}
"""Of a posterior of one release."""
SOMETIMES = ("plug_in", "diagnostics")


def of_two(schema: Schema) -> Schema:
    """Return the same of the first release and of the second."""
    return closed({"first": schema, "second": schema})


CALIBRATION = reading({"source": SOURCE, "release": TEXT, **fields_of(Calibration), "seed": COUNT_OR_NULL})
_TABLE: Schema = {"source": SOURCE, "statistic": TEXT, "family": FAMILY, "rows_of": TEXT_OR_NULL}
COMMANDS: dict[str, Schema] = {
    "table": either(
        reading(
            {
                "release": TEXT,
                "statistics": listed(
                    closed(
                        {
                            **each(TEXT, "statistic columns estimates posterior_of"),
                            "family": FAMILY,
                            "cells": COUNT,
                            "epsilon": EXACT,
                        }
                    )
                ),
            }
        ),
        reading(
            {
                **_TABLE,
                "saturated": COUNT,
                "rows": rows({"quantity": TEXT, **each(NUMBER, "estimate noise_sd")}),
            }
        ),
        reading(
            {
                **_TABLE,
                "prior": TEXT,
                "grid": COUNT,
                "within": {**listed(EXACT), "minItems": 2, "maxItems": 2},
                "temperature": EXACT,
                "rows": rows({"parameter": TEXT, "draw": COUNT, "value": NUMBER}),
            }
        ),
    ),
    "posterior": reading(
        {
            **BASIS,
            "rows": SUMMARIES,
            "clipping": CLIPPING,
            "decided_by_default": TEXTS,
            "estimand": TEXT_OR_NULL,
            "design_effect": DESIGN_EFFECT,
            "probability": rows({"parameter": TEXT, "statement": TEXT, "probability": NUMBER_OR_NULL}),
            "comparison": rows({"parameter": TEXT, **INTERVAL, "probability_above": NUMBER_OR_NULL}),
        },
        (*SOMETIMES, "probability", "comparison"),
    ),
    "compare": reading(
        {
            **TERMS,
            "estimand": of_two(TEXT_OR_NULL),
            **each(TEXT, "first second"),
            "rows": rows(
                {
                    "parameter": TEXT,
                    **each(NUMBER_OR_NULL, "before after change sd lower upper ratio probability_above"),
                    **each(NUMBER_OR_NULL, "apparent noise_sd noise_probability"),
                }
            ),
            "clipping": of_two(CLIPPING),
            "design_effect": of_two(DESIGN_EFFECT),
            **each(of_two(TEXTS), "conflicts decided_by_default"),
            "diagnostics": of_two(either(DIAGNOSTICS, closed({}))),
        },
        ("diagnostics",),
    ),
    "pool": reading(
        {
            **TERMS,
            "estimand": TEXT_OR_NULL,
            "family": FAMILY,
            **each(TEXTS, "disjoint same_data conflicts decided_by_default"),
            "diagnostics": DIAGNOSTICS,
            "rows": SUMMARIES,
            "clipping": CLIPPING,
        },
        ("diagnostics", "disjoint", "same_data"),
    ),
    "compare-priors": reading(
        {
            "source": SOURCE,
            "release": TEXT,
            **fields_of(PriorComparison),
        }
    ),
    "calibrate": CALIBRATION,
}
"""By command: what it prints with ``--json``."""
