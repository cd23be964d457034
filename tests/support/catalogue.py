"""An entry of every family over the columns of `hostile.hostile_table`, for tests that take any statistic."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NUMBERS = ["tiny", "integer", "unsigned", "float", "single", "price", "precise", "measure", "whole"]
NULLS = st.sampled_from(["drop", {"value": "1"}])
BITS = st.integers(2, 24).map(str)
BOUNDS = st.fixed_dictionaries(
    {"lower": st.sampled_from(["-3", "1"]), "upper": st.sampled_from(["3", "100"]), "nulls": NULLS}
)
"""Of one column of several."""


def _on_a_number(family: str, **fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    strategies = {
        name: field if isinstance(field, st.SearchStrategy) else st.just(field)
        for name, field in fields.items()
    }
    return st.fixed_dictionaries(
        {"family": st.just(family), "column": st.sampled_from(NUMBERS), "nulls": NULLS, **strategies}
    )


VARIABLES: dict[str, dict[str, Any]] = {
    "colour": {"column": "text", "categories": ["a", "b", "", "01"]},
    "number": {"column": "tiny", "categories": {"range": ["0", "3"]}, "other": "true"},
    "sign": {"column": "flag", "categories": ["true", "false"]},
    "date": {"column": "day", "categories": {"from": "2013-01", "to": "2013-02", "every": "month"}},
}
FIRST, SECOND, THIRD, FOURTH = ({name: entry} for name, entry in VARIABLES.items())

ENTRIES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "bernoulli": st.fixed_dictionaries(
        {"family": st.just("bernoulli"), "column": st.sampled_from(["flag", "tiny"]), "nulls": NULLS}
    ),
    "categorical": st.fixed_dictionaries(
        {
            "family": st.just("categorical"),
            "column": st.sampled_from(["text", "dictionary", "digits", "integer", "day"]),
            "categories": st.sampled_from([["a", "b", ""], ["0", "1", "12"], ["1970-01-01"]]),
            "other": st.sampled_from(["true", "false"]),
        }
    ),
    "contingency": st.fixed_dictionaries(
        {
            "family": st.just("contingency"),
            "columns": st.sampled_from([FIRST, {**SECOND, **THIRD}, {**FOURTH, **FIRST, **SECOND}]),
        }
    ),
    "naive_bayes": st.fixed_dictionaries(
        {
            "family": st.just("naive_bayes"),
            "outcome": st.sampled_from([FIRST, SECOND]),
            "features": st.sampled_from([THIRD, {**FOURTH, **THIRD}]),
        }
    ),
    "bayesian_network": st.fixed_dictionaries(
        {
            "family": st.just("bayesian_network"),
            "nodes": st.sampled_from(
                [
                    VARIABLES,
                    {
                        **SECOND,
                        "colour": {**VARIABLES["colour"], "parents": ["sign", "number"]},
                        "sign": {**VARIABLES["sign"], "parents": ["number"]},
                    },
                ]
            ),
        }
    ),
    "binomial": _on_a_number("binomial", trials="12"),
    "poisson": _on_a_number("poisson", upper=st.sampled_from(["3", "1000000000"])),
    "geometric": _on_a_number("geometric", upper="12"),
    "negative_binomial": _on_a_number("negative_binomial", successes="2.5", upper="12"),
    "exponential": _on_a_number("exponential", upper=st.sampled_from(["0.3", "100"]), lattice_bits=BITS),
    "gamma": _on_a_number("gamma", shape="2", upper="100", lattice_bits=BITS),
    "weibull": _on_a_number("weibull", shape=st.sampled_from(["0.7", "1.7"]), upper="60", lattice_bits=BITS),
    "pareto": _on_a_number("pareto", minimum="0.7", upper="90", lattice_bits=BITS),
    "laplace": _on_a_number("laplace", location="0.1", half_range="60", lattice_bits=BITS),
    "normal": _on_a_number("normal", lower="-3", upper=st.sampled_from(["3", "100"]), lattice_bits=BITS),
    "normal_known_mean": _on_a_number("normal_known_mean", mean="0.1", half_range="60", lattice_bits=BITS),
    "normal_known_variance": _on_a_number(
        "normal_known_variance", variance="3", lower="-3", upper="100", lattice_bits=BITS
    ),
    "lognormal": _on_a_number("lognormal", lower="0.1", upper="100", lattice_bits=BITS),
    "multivariate_normal": st.fixed_dictionaries(
        {
            "family": st.just("multivariate_normal"),
            "columns": st.dictionaries(st.sampled_from(NUMBERS), BOUNDS, min_size=2, max_size=7),
            "lattice_bits": BITS,
        }
    ),
    "linear_regression": st.fixed_dictionaries(
        {
            "family": st.just("linear_regression"),
            "outcome": st.fixed_dictionaries({"whole": BOUNDS}),
            "predictors": st.dictionaries(st.sampled_from(NUMBERS[:-1]), BOUNDS, min_size=1, max_size=6),
            "intercept": st.sampled_from(["true", "false"]),
            "lattice_bits": BITS,
        }
    ),
}
"""Entries by family, as a spec's mapping states them."""

ANY_STATISTIC: st.SearchStrategy[dict[str, Any]] = st.sampled_from(sorted(ENTRIES)).flatmap(
    ENTRIES.__getitem__
)
"""Any statistic of any family."""
