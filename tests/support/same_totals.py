"""Exact sums of the same rows by several specs, from any source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.reduce.tree import exact_sums
from suffice.pipeline.rows.sources.schema_check import check_schema
from suffice.pipeline.spec.spec import load_spec
from support.hostile import bernoulli, categorical, normal, poisson

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.cluster.connection import Cluster
    from suffice.pipeline.spec.spec import Spec

    Totals = dict[str, dict[str, list[Any]]]

SPECS: dict[str, dict[str, Any]] = {
    "numbers by city": {
        "groups": {"city": ["Oslo", "Łódź", "null", "4"]},
        "statistics": {
            "x": normal("real", "-10", "10"),
            "single": normal("single", "-10", "10"),
            "whole": poisson("whole", "9", nulls={"value": "1"}),
            "price": normal("price", "-0.5", "99.95"),
            "long": normal("long_price", "0", "1000000"),
            "flag": bernoulli("flag"),
        },
    },
    "months of instants": {
        "window": {"column": "instant", "every": "month"},
        "statistics": {"colour": categorical("colour", ["red", "green", "€"], other=True)},
    },
    "months of instants elsewhere": {
        "window": {"column": "instant", "every": "month", "time_zone": "America/New_York"},
        "statistics": {"flag": bernoulli("flag")},
    },
    "months of times without a zone": {
        "window": {"column": "wall_time", "every": "month"},
        "statistics": {"x": normal("real", "-10", "10")},
    },
    "days, and keys of numbers": {
        "window": {"column": "day", "every": "month"},
        "groups": {"price": ["0", "0.5", "12.25", "-0.5"], "whole": {"range": ["-2", "7"]}},
        "statistics": {"flag": bernoulli("flag", nulls={"value": "false"})},
    },
    "units": {
        "privacy": {
            "epsilon": "1",
            "neighboring": "add_or_remove_one",
            "unit": {"column": "unit", "max_rows": "100"},
        },
        "statistics": {"x": normal("real", "-10", "10")},
    },
    "months that texts write, and units that texts name": {
        "window": {"column": "at", "every": "month", "time_zone": "America/New_York"},
        "derived": {
            "at": {"column": "began", "parse": "timestamp", "format": "%d-%b-%y %H:%M:%S", "pivot": "1970"},
            "who": {"column": "person", "normalize": "NFKC", "trim": "true", "case": "lower"},
        },
        "privacy": {
            "epsilon": "1",
            "neighboring": "add_or_remove_one",
            "unit": {"column": "who", "max_rows": "3000"},
        },
        "statistics": {
            "rows": {"family": "rows_per_unit", "upper": "3001"},
            "flag": bernoulli("flag"),
        },
    },
    "months of counted milliseconds": {
        "window": {"column": "at", "every": "month"},
        "derived": {"at": {"column": "counted", "parse": "timestamp", "epoch": "milliseconds"}},
        "statistics": {"flag": bernoulli("flag")},
    },
    "months of dates as integers": {
        "window": {"column": "at", "every": "month"},
        "derived": {"at": {"column": "written", "parse": "date", "format": "%Y%m%d"}},
        "statistics": {"flag": bernoulli("flag")},
    },
}


def totals(
    entry: dict[str, Any], cluster: Cluster, *, meanwhile: Callable[[], object] = lambda: None
) -> Totals:
    """Return the exact sums of every spec over a source; do something between pinning it and reading it."""
    by_name: Totals = {}
    for what, parts in SPECS.items():
        spec = spec_of(entry, **parts)
        window = "2013-01" if spec.window else "all"
        pin = sources.pin(spec, window)
        check_schema(spec, sources.schema(pin))
        splits = sources.splits(pin)
        meanwhile()
        sums = to_python(exact_sums(chunk_job(spec, window), splits, cluster).open_totals())
        sources.check(pin)
        sources.close(pin)
        by_name[what] = {name: values.tolist() for name, values in sums.items()}
    return by_name


def spec_of(entry: dict[str, Any], **parts: Any) -> Spec:
    return load_spec(
        {
            "name": "test",
            "dataset": "test",
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "source": entry,
            **parts,
        }
    )
