"""Releases of count tables with made-up counts: a naive Bayes model of two sites, and a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from support.making import mapping
from support.releases import publish

if TYPE_CHECKING:
    from pathlib import Path

SITES = ("p", "q")
LATE: dict[str, Any] = {
    "family": "naive_bayes",
    "outcome": {"late": {"column": "is_late", "categories": ["false", "true"]}},
    "features": {
        "origin": {"column": "from", "categories": ["EWR", "JFK"], "other": True},
        "month": {"range": [1, 3]},
        "kind": ["jet", "prop"],
    },
}
CAUSES: dict[str, Any] = {
    "family": "bayesian_network",
    "nodes": {
        "severe": ["no", "yes"],
        "treated": {"categories": ["no", "yes"], "parents": ["severe"]},
        "well": {"categories": ["no", "yes"], "parents": ["severe", "treated"]},
    },
}
ROWS_CSV = """from,month,kind,site,is_late
EWR,1,jet,p,true
JFK,2,prop,q,false
LGA,3,,q,false
,,other,p,
EWR,9,jet,z,true
"""


def publish_tables(root: Path, **changes: Any) -> str:
    """Publish the release ``tables`` in a new store, and return where it stands."""
    content = {
        "name": "tables",
        "groups": {"site": list(SITES)},
        "statistics": {"late": LATE, "causes": CAUSES},
    }
    plan = compile_plan(load_spec(mapping("data", **{**content, **changes})))
    rng = np.random.default_rng(4)
    values = {
        statistic.name: rng.integers(0, 60, (statistic.n_cells, len(statistic.components))).astype(object)
        for statistic in plan.statistics
    }
    return str(publish(root, plan, values))
