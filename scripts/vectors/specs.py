"""What the valid test vectors release: their specs, and which posteriors are stated of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROW = {"epsilon": "2", "neighboring": "add_or_remove_one", "unit": "row"}
PERSON = {
    "epsilon": "6",
    "neighboring": "add_or_remove_one",
    "unit": {"column": "person", "max_rows": "3", "type": "text"},
}
IN_CELLS = {"unit": {"column": "person", "max_rows": "3", "max_rows_per_cell": "2", "type": "text"}}
ORIGINS = ["EWR", "JFK", "LGA"]
DELAY = {"lower": "-60", "upper": "120"}
WEIGHT = {"lower": "20", "upper": "120"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A posterior that a vector states: the arguments of ``Release.posterior``."""

    statistic: str
    arguments: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSpec:
    """One release.

    Attributes
    ----------
    about : str
        What of the format it shows.
    spec : dict
        But for name, dataset and source.
    window : str
    amends : str or None
        The vector that it amends.
    signed : bool
    noise : {"drawn", "large", "none"}
        Noise of the plan's scale; so much that many values are negative; or none, which no reader can tell.
    ends : bool
        Whether the first cell's values are moved to the ends of their type.
    words : tuple of dict
        What the release is about, each mended by the next.
    asked : tuple of Asked
    """

    about: str
    spec: dict[str, Any]
    window: str = "all"
    amends: str | None = None
    signed: bool = False
    noise: str = "drawn"
    ends: bool = False
    words: tuple[dict[str, Any], ...] = ()
    asked: tuple[Asked, ...] = ()


_OF_ONE_SCALE = {
    "waits": "Gamma(1, 25)",
    "waits_by_shape": "Gamma(1, 12.5)",
    "waits_weibull": "Gamma(1, 176.7766952966369)",
    "weights": "Gamma(1, 1.1512925465358421)",
    "distances": "InverseGamma(3, 50)",
    "squares": "InverseGamma(3, 4050)",
}
"""Where the default is spread over scales: its plain summation takes ten times as long."""


def _noise_aware(*statistics: str) -> Iterator[Asked]:
    """Ask for the default posterior, or one under a stated prior where the default is spread over scales."""
    for name in statistics:
        prior = _OF_ONE_SCALE.get(name)
        yield Asked(statistic=name, arguments={} if prior is None else {"prior": prior})


def _both(*statistics: str, **priors: str) -> tuple[Asked, ...]:
    """Ask for a noise-aware posterior, one without the noise, and one under a prior of one's own."""
    return (
        *_noise_aware(*statistics),
        *(Asked(statistic=name, arguments={"method": "plug-in"}) for name in statistics),
        *(
            Asked(statistic=name, arguments={"prior": prior, "n_prior": "Uniform(0, 400)"})
            for name, prior in priors.items()
        ),
    )


def _sum(family: str, column: str = "wait", **keys: str) -> dict[str, str]:
    return {"family": family, "column": column, **keys}


FIRST: dict[str, dict[str, Any]] = {
    "cancelled": {"family": "bernoulli", "column": "cancelled"},
    "carrier": {"family": "categorical", "column": "carrier", "categories": ["UA", "DL"], "other": "true"},
    "stops": {"family": "poisson", "column": "stops", "upper": "12"},
    "delay": {"family": "normal", "column": "delay", **DELAY, "lattice_bits": "10", "share": "2"},
}

VALID: dict[str, VectorSpec] = {
    "one-cell": VectorSpec(
        about="no groups: one cell, one statistic of two components",
        spec={"privacy": {**ROW, "epsilon": "0.5"}, "statistics": {"cancelled": FIRST["cancelled"]}},
        asked=_both("cancelled", cancelled="Beta(1, 9)"),
    ),
    "first-families": VectorSpec(
        about="bernoulli, categorical, poisson and normal in three cells; words, mended once; signed",
        spec={"privacy": ROW, "groups": {"origin": ORIGINS}, "statistics": FIRST},
        signed=True,
        words=(
            {"title": "Flights from New York", "statistics": {"cancelled": {"label": "canceled"}}},
            {
                "title": "Flights from New York",
                "description": "Departures of generated rows, and what became of them.",
                "licence": "CC0-1.0",
                "statistics": {
                    "cancelled": {"label": "cancelled flights", "digits": 3},
                    "carrier": {"label": "airline", "values": {"UA": "United", "DL": "Delta"}},
                    "delay": {
                        "label": "departure delay",
                        "unit": "min",
                        "parameters": {"mean": {"label": "mean delay", "digits": 1}},
                    },
                },
                "keys": {"origin": {"label": "airport", "values": {"JFK": "Kennedy", "EWR": "Newark"}}},
            },
        ),
        asked=(
            *_both("cancelled", "stops", "carrier", "delay", cancelled="Beta(2, 3)", stops="Gamma(3, 1)"),
            Asked(statistic="carrier", arguments={"prior": "Dirichlet(1, 2, 3)"}),
            Asked(statistic="stops", arguments={"clipping": "ignored"}),
            Asked(statistic="delay", arguments={"clipping": "ignored"}),
        ),
    ),
    "one-sum": VectorSpec(
        about="the other families with one sum; the value of some columns is between lattice points",
        spec={
            "privacy": {**ROW, "epsilon": "20"},
            "groups": {"month": {"range": ["1", "3"]}},
            "statistics": {
                "late": _sum("binomial", "late_of_five", trials="5"),
                "failures": _sum("geometric", "stops", upper="12"),
                "failures_of_two": _sum("negative_binomial", "stops", successes="2", upper="12"),
                "waits": _sum("exponential", upper="50", lattice_bits="8"),
                "waits_by_shape": _sum("gamma", shape="2", upper="50", lattice_bits="8"),
                "waits_weibull": _sum("weibull", shape="1.5", upper="50", lattice_bits="8"),
                "weights": _sum("pareto", "weight", minimum="20", upper="200", lattice_bits="8"),
                "distances": _sum("laplace", "delay", location="10", half_range="100", lattice_bits="8"),
                "squares": _sum("normal_known_mean", "delay", mean="10", half_range="90", lattice_bits="8"),
                "means": _sum("normal_known_variance", "delay", variance="900", **DELAY, lattice_bits="8"),
            },
        },
        asked=(
            *_both("late", "waits", "waits_by_shape", "waits_weibull", "weights", "distances", "squares"),
            *_both("means", late="Beta(2, 2)", waits="Gamma(2, 10)", means="Normal(0, 50)"),
            *(
                Asked(statistic=name, arguments={"clipping": "ignored"})
                for name in ("failures", "failures_of_two")
            ),
        ),
    ),
    "moments": VectorSpec(
        about="second moments: lognormal, several columns, a regression with and without an intercept",
        spec={
            "privacy": {**ROW, "epsilon": "8"},
            "groups": {"origin": ["JFK", "EWR"]},
            "statistics": {
                "log_wait": _sum("lognormal", lower="0.05", upper="60", lattice_bits="8"),
                "size": {
                    "family": "multivariate_normal",
                    "columns": {"weight": WEIGHT, "delay": DELAY},
                    "lattice_bits": "6",
                },
                "slope": {
                    "family": "linear_regression",
                    "outcome": {"weight": WEIGHT},
                    "predictors": {"delay": DELAY},
                    "lattice_bits": "6",
                },
                "through_zero": {
                    "family": "linear_regression",
                    "outcome": {"weight": WEIGHT},
                    "predictors": {"delay": DELAY},
                    "intercept": "false",
                    "lattice_bits": "6",
                },
            },
        },
        asked=(Asked(statistic="size", arguments={"method": "plug-in"}),),
    ),
    "tables": VectorSpec(
        about="counts of combinations: a contingency table, naive Bayes, a Bayesian network",
        spec={
            "privacy": {**ROW, "epsilon": "9"},
            "groups": {"month": {"range": ["1", "2"]}},
            "statistics": {
                "joint": {
                    "family": "contingency",
                    "columns": {
                        "carrier": {"categories": ["UA", "DL"], "other": "true"},
                        "state": ["a", "b", "c"],
                    },
                },
                "classes": {
                    "family": "naive_bayes",
                    "outcome": {"late": {"column": "cancelled", "categories": ["false", "true"]}},
                    "features": {"state": ["a", "b"], "carrier": ["UA", "DL", "AA"]},
                },
                "network": {
                    "family": "bayesian_network",
                    "nodes": {
                        "state": ["a", "b", "c"],
                        "carrier": {"categories": ["UA", "DL"], "parents": ["state"]},
                    },
                },
            },
        },
        asked=(Asked(statistic="joint", arguments={"method": "plug-in"}),),
    ),
    "units": VectorSpec(
        about="persons of three rows at most: rows, units instead of rows, products, transitions",
        spec={
            "privacy": PERSON,
            "groups": {"origin": ["JFK", "EWR"]},
            "statistics": {
                "cancelled": FIRST["cancelled"],
                "cancelled_units": {**FIRST["cancelled"], "rows_of": "units"},
                "cancelled_within": {**FIRST["cancelled"], "within_unit": "true"},
                "delay_within": {
                    "family": "normal",
                    "column": "delay",
                    **DELAY,
                    "lattice_bits": "6",
                    "within_unit": "true",
                },
                "steps": {
                    "family": "markov_chain",
                    "column": "state",
                    "categories": ["a", "b", "c"],
                    "order": "day",
                    "transitions": "2",
                },
                "rows": {"family": "rows_per_unit", "upper": "5"},
                "rows_histogram": {"family": "rows_per_unit", "upper": "5", "histogram": "true"},
            },
        },
        asked=(
            *_both("cancelled", cancelled="Beta(2, 3)"),
            Asked(statistic="cancelled_within", arguments={"within_unit": "ignored"}),
        ),
    ),
    "public-n": VectorSpec(
        about="replace_one: a public number of records, and the minimal components",
        spec={
            "privacy": {**ROW, "epsilon": "6", "neighboring": "replace_one"},
            "statistics": {
                "cancelled": {**FIRST["cancelled"], "nulls": {"value": "0"}},
                "stops": {**FIRST["stops"], "nulls": {"value": "0"}},
                "carrier": FIRST["carrier"],
                "delay": {
                    "family": "normal",
                    "column": "delay",
                    **DELAY,
                    "lattice_bits": "6",
                    "nulls": {"value": "0"},
                },
                "waits": {**_sum("exponential", upper="50", lattice_bits="8"), "nulls": {"value": "0"}},
            },
        },
        asked=(
            *(Asked(statistic=name) for name in ("cancelled", "waits", "delay")),
            *(Asked(statistic=name, arguments={"method": "plug-in"}) for name in ("cancelled", "delay")),
            Asked(statistic="cancelled", arguments={"prior": "Beta(1, 9)"}),
            Asked(statistic="stops", arguments={"clipping": "ignored"}),
        ),
    ),
    "public-n-groups": VectorSpec(
        about="replace_one with groups: cells move, so that the number of records of a cell is private",
        spec={
            "privacy": {**ROW, "neighboring": "replace_one"},
            "groups": {"origin": ORIGINS},
            "statistics": {"cancelled": FIRST["cancelled"], "stops": FIRST["stops"]},
        },
        asked=_both("cancelled", cancelled="Beta(2, 3)"),
    ),
    "several-groups": VectorSpec(
        about="groups of texts, of integers and of periods; the last runs fastest; keys in any script",
        spec={
            "privacy": {**ROW, "epsilon": "10"},
            "groups": {
                "origin": ["JFK", "Łódź 𝄞", '=1+1 <b>&"'],
                "month": {"range": ["-1", "2"]},
                "day": {"from": "2013-01", "to": "2013-02", "every": "month"},
            },
            "statistics": {"stops": FIRST["stops"]},
        },
        asked=(Asked(statistic="stops", arguments={"method": "plug-in"}),),
    ),
    "window": VectorSpec(
        about="one month of a series",
        spec={
            "privacy": {**ROW, "epsilon": "0.7"},
            "window": {"column": "day", "every": "month"},
            "statistics": {"cancelled": FIRST["cancelled"]},
        },
        window="2013-01",
        asked=_both("cancelled"),
    ),
    "amendment": VectorSpec(
        about="the first amendment of that month, which names the release that it replaces",
        spec={
            "privacy": {**ROW, "epsilon": "0.7"},
            "window": {"column": "day", "every": "month"},
            "statistics": {"cancelled": FIRST["cancelled"]},
        },
        window="2013-01",
        amends="window",
        signed=True,
        asked=_both("cancelled"),
    ),
    "wide-values": VectorSpec(
        about="decimal128 values, some negative: 16 bytes each, the highest first",
        spec={
            "privacy": {**ROW, "epsilon": "0.01"},
            "max_total_rows": str(10**15),
            "statistics": {
                "delay": {"family": "normal", "column": "delay", "lower": "-2000", "upper": "3000"},
                "size": {
                    "family": "multivariate_normal",
                    "columns": {"weight": WEIGHT, "delay": DELAY},
                    "lattice_bits": "20",
                },
            },
        },
        noise="large",
    ),
    "negative": VectorSpec(
        about="so much noise that counts and sums are negative: nothing is cut off",
        spec={"privacy": {**ROW, "epsilon": "0.05"}, "groups": {"origin": ORIGINS}, "statistics": FIRST},
        noise="large",
        asked=_both("cancelled"),
    ),
    "saturated": VectorSpec(
        about="values at the ends of int64 and decimal128: there were more records than the bound",
        spec={
            "privacy": ROW,
            "max_total_rows": "1000000000000",
            "statistics": {
                "cancelled": FIRST["cancelled"],
                "delay": {"family": "normal", "column": "delay", **DELAY, "lattice_bits": "24"},
            },
        },
        ends=True,
    ),
    "no-rows": VectorSpec(
        about="cells without any record, released like all others",
        spec={
            "privacy": ROW,
            "groups": {"origin": ["nowhere", "elsewhere"]},
            "statistics": {"cancelled": FIRST["cancelled"], "stops": FIRST["stops"]},
        },
        asked=_both("cancelled"),
    ),
    "samples": VectorSpec(
        about="posterior samples beside noisy statistics: draws of a grid, of one parameter each",
        spec={
            "privacy": {**ROW, "epsilon": "3"},
            "groups": {"origin": ORIGINS},
            "statistics": {
                "cancelled_drawn": {
                    **FIRST["cancelled"],
                    "sample": {
                        "draws": "3",
                        "within": ["0.005", "0.5"],
                        "grid": "1025",
                        "prior": "Beta(1, 30)",
                    },
                },
                "cancelled": FIRST["cancelled"],
                "stops_drawn": {
                    **FIRST["stops"],
                    "sample": {"draws": "1", "within": ["0.1", "2.1"], "grid": "4"},
                },
            },
        },
        signed=True,
        asked=_both("cancelled"),
    ),
    "counted": VectorSpec(
        about="counts of the records that clipping moved, beside their sums, one with a weight of its own",
        spec={
            "privacy": {**ROW, "epsilon": "4"},
            "groups": {"origin": ORIGINS},
            "statistics": {
                "delay": {
                    "family": "normal",
                    "column": "delay",
                    **DELAY,
                    "lattice_bits": "6",
                    "count_clipped": "true",
                },
                "stops": {**FIRST["stops"], "count_clipped": {"weight": "0.5"}},
            },
        },
        asked=(
            Asked(statistic="delay", arguments={"method": "plug-in"}),
            Asked(statistic="stops", arguments={"clipping": "ignored"}),
        ),
    ),
    "counted-public-n": VectorSpec(
        about="the same beside a public number of records",
        spec={
            "privacy": {**ROW, "epsilon": "6", "neighboring": "replace_one"},
            "statistics": {
                "delay": {
                    "family": "normal",
                    "column": "delay",
                    **DELAY,
                    "lattice_bits": "6",
                    "nulls": {"value": "0"},
                    "count_clipped": "true",
                },
                "stops": {**FIRST["stops"], "nulls": {"value": "0"}, "count_clipped": {"weight": "0.5"}},
            },
        },
        asked=(Asked(statistic="delay", arguments={"method": "plug-in"}),),
    ),
    "groups-of-statistics": VectorSpec(
        about="statistics with groups of their own: fewer, others, none; one takes those of the spec",
        spec={
            "privacy": {**ROW, "epsilon": "5"},
            "groups": {"origin": ["JFK", "EWR"], "month": {"range": ["1", "3"]}},
            "statistics": {
                "cancelled": FIRST["cancelled"],
                "stops": {**FIRST["stops"], "groups": {"month": {"range": ["1", "3"]}, "state": ["b", "a"]}},
                "cancelled_in_all": {**FIRST["cancelled"], "groups": {}},
                "stops_drawn": {
                    **FIRST["stops"],
                    "sample": {"draws": "2", "within": ["0.1", "2.1"], "grid": "5"},
                    "groups": {"day": {"from": "2013-01", "to": "2013-02", "every": "month"}},
                },
                "size": {
                    "family": "multivariate_normal",
                    "columns": {"weight": WEIGHT, "delay": DELAY},
                    "lattice_bits": "6",
                    "groups": {"origin": ["LGA"]},
                },
            },
        },
        asked=(
            *_both("cancelled_in_all", cancelled_in_all="Beta(2, 3)"),
            Asked(statistic="stops", arguments={"method": "plug-in"}),
        ),
    ),
    "rows-in-cells": VectorSpec(
        about="persons of three rows at most, two of them in a cell: of two cells, and of one",
        spec={
            "privacy": {**PERSON, **IN_CELLS},
            "groups": {"origin": ["JFK", "EWR"]},
            "statistics": {
                "cancelled": FIRST["cancelled"],
                "cancelled_in_all": {**FIRST["cancelled"], "groups": {}},
                "cancelled_within": {**FIRST["cancelled"], "within_unit": "true"},
                "stops_drawn": {
                    **FIRST["stops"],
                    "sample": {"draws": "2", "within": ["0.1", "2.1"], "grid": "5"},
                },
            },
        },
        asked=_both("cancelled", cancelled="Beta(2, 3)"),
    ),
    "bins": VectorSpec(
        about="histograms: equal bins, bins that thin out beyond a body, values with bins of their own",
        spec={
            "privacy": {**ROW, "epsilon": "3"},
            "groups": {"origin": ORIGINS[:2]},
            "statistics": {
                "delay": {
                    "family": "histogram",
                    "column": "delay",
                    **DELAY,
                    "bins": {"body": ["-20", "40"], "equal": "12", "tail": "4"},
                    "atoms": ["0"],
                },
                "wait": {"family": "histogram", "column": "wait", "lower": "0", "upper": "50", "bins": "10"},
            },
        },
    ),
    "in-rho": VectorSpec(
        about="rho instead of epsilon: scales by L2 sensitivities; signed",
        spec={
            "privacy": {"rho": "0.5", "neighboring": "add_or_remove_one", "unit": "row"},
            "groups": {"origin": ["JFK", "EWR"]},
            "statistics": {
                "cancelled": FIRST["cancelled"],
                "delay": FIRST["delay"],
                "network": {
                    "family": "bayesian_network",
                    "nodes": {"state": ["a", "b"], "carrier": {"categories": ["UA", "DL"], "other": "true"}},
                },
            },
        },
        signed=True,
        asked=_both("cancelled", cancelled="Beta(2, 3)"),
    ),
    "drawn-quantiles": VectorSpec(
        about="draws of the bin that a quantile is in: bins that thin out, atoms, beside noisy statistics",
        spec={
            "privacy": {**ROW, "epsilon": "6"},
            "groups": {"origin": ORIGINS},
            "statistics": {
                "delay_p90": {
                    "family": "histogram",
                    "column": "delay",
                    **DELAY,
                    "bins": {"body": ["-20", "40"], "equal": "12", "tail": "4"},
                    "atoms": ["0"],
                    "sample": {"quantile": "0.9", "draws": "3"},
                },
                "cancelled": FIRST["cancelled"],
                "wait_median": {
                    "family": "histogram",
                    "column": "wait",
                    "lower": "0",
                    "upper": "50",
                    "bins": "10",
                    "groups": {},
                    "sample": {"quantile": "0.5", "draws": "1"},
                },
            },
        },
        signed=True,
        asked=_both("cancelled"),
    ),
    "on-a-cone": VectorSpec(
        about="noise on a cone: several columns, a regression through 0, persons of three rows; signed",
        spec={
            "privacy": {**PERSON, "neighboring": "replace_one"},
            "groups": {"origin": ["JFK", "EWR"]},
            "statistics": {
                "size": {
                    "family": "multivariate_normal",
                    "columns": {"weight": WEIGHT, "delay": DELAY, "wait": {"lower": "0", "upper": "50"}},
                    "lattice_bits": "6",
                    "noise": "cone",
                },
                "through_zero": {
                    "family": "linear_regression",
                    "outcome": {"weight": WEIGHT},
                    "predictors": {"delay": DELAY},
                    "intercept": "false",
                    "lattice_bits": "6",
                    "share": "2",
                    "noise": "cone",
                },
            },
        },
        signed=True,
    ),
    "on-a-cone-beside-n": VectorSpec(
        about="noise on a cone beside a public number of records",
        spec={
            "privacy": {**ROW, "neighboring": "replace_one"},
            "statistics": {
                "size": {
                    "family": "multivariate_normal",
                    "columns": {
                        "weight": {**WEIGHT, "nulls": {"value": "70"}},
                        "delay": {**DELAY, "nulls": {"value": "0"}},
                    },
                    "noise": "cone",
                },
            },
        },
    ),
    "trees": VectorSpec(
        about="trees: keys by a public map, days of months, a tree for each key of another group; signed",
        spec={
            "privacy": {**ROW, "epsilon": "4"},
            "derived": {
                "city": {"column": "origin", "map": {"EWR": "Newark", "JFK": "New York", "LGA": "New York"}}
            },
            "statistics": {
                "flights": {
                    **FIRST["cancelled"],
                    "groups": {"origin": ORIGINS},
                    "hierarchy": ["all", "city", "origin"],
                },
                "daily": {
                    **FIRST["carrier"],
                    "groups": {
                        "state": ["a", "b"],
                        "day": {"from": "2013-01-01", "to": "2013-03-31", "every": "day"},
                    },
                    "hierarchy": ["year_so_far", "month", "day"],
                    "level_shares": ["1", "1", "2"],
                },
            },
        },
        signed=True,
    ),
    "trees-of-totals": VectorSpec(
        about="trees of clipped totals: whole numbers, and steps of a fine lattice that are joined",
        spec={
            "privacy": {**ROW, "epsilon": "8"},
            "derived": {
                "city": {"column": "origin", "map": {"EWR": "Newark", "JFK": "New York", "LGA": "New York"}}
            },
            "groups": {"origin": ORIGINS},
            "statistics": {
                "stops": {**FIRST["stops"], "hierarchy": ["all", "city", "origin"]},
                "late": {
                    **_sum("binomial", "late_of_five", trials="5"),
                    "hierarchy": ["everywhere", "origin"],
                },
                "waits": {
                    **_sum("exponential", upper="50", lattice_bits="8"),
                    "hierarchy": ["whole", "city", "origin"],
                },
            },
        },
    ),
}
