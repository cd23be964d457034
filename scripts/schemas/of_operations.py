"""What commands print that make, show and check releases: plans, windows, rehearsals, keys, profiles."""

from __future__ import annotations

from scripts.schemas.of_answers import (
    SIGNATURE,
    SUMMARIES,
    WITHDRAWAL,
    reading,
)
from scripts.schemas.of_publications import VERIFIED_PUBLICATION
from scripts.schemas.shapes import (
    BOOLEAN,
    COUNT,
    COUNT_OR_NULL,
    DESIGN,
    EXACT,
    EXACT_OR_NULL,
    FAMILY,
    HASH,
    HOUR,
    KEY_ID,
    METHOD,
    NEIGHBORING,
    NUMBER,
    NUMBER_OR_NULL,
    RELEASE_ID,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    UNIT_NULLS,
    Schema,
    closed,
    each,
    either,
    listed,
    mapped,
    of_dataclass,
    of_model,
    or_null,
    rows,
)
from scripts.schemas.typed import CONTRACT, ERROR, schema_of
from suffice.cataloguing.catalogue import Catalogue
from suffice.doctor.examination import Diagnosis
from suffice.monitoring.standing import Standing
from suffice.releasing.backfill import Backfill
from suffice.releasing.gap_report import GapReport
from suffice.releasing.rehearsal import Rehearsal
from suffice.storage.operations.audits import AuditDocument
from suffice.storage.operations.disclosure import TO_STATE

COMPARED: Schema = {"enum": ["checked", "not_checked"]}
VERIFIED: Schema = {"ok": BOOLEAN, "problems": TEXTS}
FAILED = closed({"error": closed(ERROR)})
"""What every command prints in place of its document where it fails."""

STATISTIC: dict[str, Schema] = {
    "name": TEXT,
    "family": FAMILY,
    "columns": TEXTS,
    "rows_of": TEXT_OR_NULL,
    "design": DESIGN,
    "epsilon": EXACT,
}
TWO_ENDS: Schema = {"type": "array", "items": EXACT, "minItems": 2, "maxItems": 2}
SAMPLE = closed(
    {
        **each(TEXT, "parameter prior"),
        **each({"type": "integer", "minimum": 1}, "draws grid range_sensitivity scale candidates"),
        "within": TWO_ENDS,
        **each(EXACT, "temperature epsilon_unused"),
    }
)
PLAN: Schema = {
    **each(TEXT, "name dataset unit"),
    **each(EXACT, "epsilon epsilon_per_window"),
    "neighboring": NEIGHBORING,
    "max_rows": COUNT,
    "unit_nulls": UNIT_NULLS,
    "window": TEXT_OR_NULL,
    "amend": TEXTS,
    "derived": mapped(TEXT),
    "groups": mapped(COUNT),
    "cells": COUNT,
    "plan_hash": HASH,
    "statistics": listed(
        either(
            closed(
                {
                    **STATISTIC,
                    "l1_sensitivity": {"type": "integer", "minimum": 1},
                    **each(EXACT, "scale moment_weight"),
                    "components": listed(closed({"name": TEXT})),
                    "derived": rows({"quantity": TEXT, "noise_sd": NUMBER}),
                },
                optional=("moment_weight",),
            ),
            closed({**STATISTIC, "sample": SAMPLE}),
        )
    ),
    "beside": closed(
        {
            "seed": COUNT_OR_NULL,
            "statistics": listed(
                closed(
                    {
                        **each(TEXT, "statistic parameter prior"),
                        "n_prior": TEXT_OR_NULL,
                        "method": METHOD,
                        "epsilon": EXACT,
                        **each(NUMBER, "truth temperature"),
                        "within": TWO_ENDS,
                        **each(COUNT, "draws simulations"),
                        "errors": listed(
                            closed(
                                {
                                    "n": COUNT,
                                    **each(
                                        closed(each(NUMBER_OR_NULL, "value standard_error")),
                                        "laplace_mean laplace_draw sample_draw sample_mean",
                                    ),
                                }
                            )
                        ),
                    }
                )
            ),
        }
    ),
    "target": closed(
        {
            **each(TEXT, "statistic parameter category prior n_prior"),
            **each(COUNT, "n simulations"),
            **each(EXACT, "epsilon statistic_epsilon"),
            **each(NUMBER, "width mass epsilon_standard_error median_width"),
            **each(NUMBER, "median_width_standard_error median_width_without_noise"),
            "seed": COUNT_OR_NULL,
            "count_clipped": closed(
                {
                    "stated": EXACT_OR_NULL,
                    "epsilon_without": EXACT,
                    "weights": listed(closed({**each(EXACT, "weight epsilon"), "noise_sd": NUMBER})),
                }
            ),
        },
        optional=("category", "count_clipped"),
    ),
}
RELEASE: Schema = {
    **each(TEXT, "name dataset window window_ended uri unit"),
    "released": HOUR,
    "closed": BOOLEAN,
    "amendment": COUNT,
    **each(or_null(RELEASE_ID), "amends amended_by"),
    "release_id": RELEASE_ID,
    "epsilon": EXACT,
    "neighboring": NEIGHBORING,
    "max_rows": COUNT,
    "unit_nulls": UNIT_NULLS,
    **each(or_null(HASH), "contract audit"),
    "one_unit": TEXT,
    "status": {"enum": ["published", "already_published"]},
    "signed_by": or_null(KEY_ID),
    "signature": SIGNATURE,
    "files": listed(
        closed(
            {
                **each(TEXT, "statistic path"),
                "sha256": HASH,
                "rows": COUNT,
                "rows_of": TEXT_OR_NULL,
                "mechanism": {"enum": ["discrete_laplace", "exponential"]},
            }
        )
    ),
}
OF_WINDOWS = (
    *("window_ended", "released", "closed", "amendment", "amends", "amended_by"),
    *("max_rows", "unit_nulls"),
)
"""What a release of a spec without windows, or whose unit is a row, has not."""
EXPECT: Schema = closed(
    {
        **each(TEXT, "name fits"),
        "epsilon": EXACT,
        **each(COUNT, "floor l1_sensitivity"),
        "counts": {"enum": ["rows", "units"]},
        "empty_passes": NUMBER,
        "stopped": listed(closed({"size": COUNT, "probability": NUMBER})),
    }
)
YEAR: Schema = closed(
    {
        **each(EXACT, "in_a_window in_a_year"),
        "windows_in_a_year": COUNT,
        "max_windows": COUNT_OR_NULL,
        **each(EXACT_OR_NULL, "per_year epsilon"),
    }
)
EDITION: Schema = {"window": TEXT, "amendment": COUNT}
DISCLOSURE = reading(
    {
        "registry": TEXT,
        "entry": closed(
            {
                **each(TEXT, "url_slug status"),
                "tier": {"const": 3},
                "deployment": closed(
                    {
                        "basic": closed(each(TEXT, "name data_product_type description publication_date")),
                        "dp_variant": closed(each(TEXT, "variant_name unprotected_quantities")),
                        "privacy_loss": closed(
                            {
                                **each(TEXT, "privacy_unit privacy_unit_details privacy_parameters_details"),
                                "privacy_parameters": closed({"epsilon": NUMBER}),
                            }
                        ),
                        "deployment_model": closed(
                            each(TEXT, "model_name model_name_details actors access_type")
                        ),
                        "accounting": closed(each(TEXT, "post_processing composition")),
                        "implementation": closed(
                            each(TEXT, "preprocessing_and_hyperparameter_tuning mechanisms")
                        ),
                        "administrative": closed({"notes": TEXT}),
                    }
                ),
            }
        ),
        "to_state": closed(dict.fromkeys(TO_STATE, TEXT)),
    }
)
_found = of_dataclass(Catalogue)["properties"]
STANDING = schema_of(Standing)
"""How an installation stands, whatever command says it."""

COMMANDS: dict[str, Schema] = {
    "demo": closed(
        {
            **each(TEXT, "release plot catalogue"),
            "status": RELEASE["status"],
            **each(EXACT, "spent remaining"),
            "posteriors": listed(
                closed({**each(TEXT, "statistic prior"), "method": METHOD, "rows": SUMMARIES})
            ),
        }
    ),
    "init": closed({"spec": TEXT, "out": TEXT_OR_NULL}),
    "plan": closed(
        {**PLAN, "contract": or_null(HASH), "expect": or_null(EXPECT), "person": or_null(YEAR)},
        ("contract", "max_rows", "unit_nulls", "target", "beside", "expect", "person"),
    ),
    "inspect": closed(
        {
            "contract": CONTRACT,
            "sha256": HASH,
            **each(TEXT_OR_NULL, "out problem"),
            "exact_counts": or_null(
                closed(
                    {
                        **each(COUNT_OR_NULL, "folders files read rows"),
                        "columns": listed(
                            closed({"column": TEXT, **each(COUNT, "values fit"), "types": mapped(COUNT)})
                        ),
                    }
                )
            ),
        }
    ),
    "release": reading({**RELEASE, "remaining_epsilon": EXACT_OR_NULL}, OF_WINDOWS),
    "audit": of_model(AuditDocument),
    "rehearse": schema_of(Rehearsal),
    "backfill": schema_of(Backfill),
    "status": either(STANDING, schema_of(GapReport)),
    "metrics": closed({"out": TEXT_OR_NULL, "written": BOOLEAN, "standing": STANDING}),
    "doctor": schema_of(Diagnosis),
    "show": reading(RELEASE, OF_WINDOWS),
    "verify": either(
        closed({**VERIFIED, "ledger": COMPARED, "signature": SIGNATURE, "withdrawn": or_null(WITHDRAWAL)}),
        VERIFIED_PUBLICATION,
    ),
    "disclose": DISCLOSURE,
    "withdraw": closed(
        {
            **each(TEXT, "release uri"),
            "release_id": RELEASE_ID,
            "status": {"enum": ["withdrawn", "already_withdrawn"]},
            "withdrawal": WITHDRAWAL,
        }
    ),
    "describe": closed({"files": listed(closed(each(TEXT, "file status")))}),
    "catalogue": closed({**_found, "ok": BOOLEAN}),
    "keys new": closed({"key_id": KEY_ID, **each(TEXT, "private_key public_key")}),
    "keys show": closed({"keys": listed(closed({"key_id": KEY_ID, "public_key": HASH}))}),
    "cluster certificates": closed(
        {
            "directory": TEXT,
            "status": {"enum": ["made", "renewed", "unchanged"]},
            "certificates": listed(closed({**each(TEXT, "role certificate key ends"), "has_ended": BOOLEAN})),
        }
    ),
    "config show": closed(
        {
            "profile": or_null(closed(each(TEXT, "path origin"))),
            "ignored": TEXTS,
            "settings": listed(
                closed(
                    {
                        **each(TEXT, "name origin"),
                        "value": TEXT_OR_NULL,
                        "allowed": TEXTS,
                        "refused": BOOLEAN,
                    }
                )
            ),
        }
    ),
}
"""By command: what it prints with ``--json``."""
