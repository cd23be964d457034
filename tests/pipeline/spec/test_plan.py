"""The plan: cells, split of epsilon, sensitivities, scales, designs and exact maps to quantities."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from suffice.errors import SpecError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.plan import Plan, compile_plan, plan_document
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.terms.statistics.sensitivity import Design
from suffice.pipeline.terms.statistics.statistic_plan import discrete_laplace_sd

FAMILY_ENTRIES: dict[str, dict[str, Any]] = {
    "bernoulli": {"family": "bernoulli", "column": "b"},
    "categorical": {"family": "categorical", "column": "c", "categories": ["x", "y"]},
    "poisson": {"family": "poisson", "column": "p", "upper": 7},
    "normal": {"family": "normal", "column": "v", "lower": "-1.5", "upper": "4", "lattice_bits": 5},
    "binomial": {"family": "binomial", "column": "p", "trials": 7},
    "geometric": {"family": "geometric", "column": "p", "upper": 7},
    "negative_binomial": {"family": "negative_binomial", "column": "p", "successes": "2.5", "upper": 7},
    "exponential": {"family": "exponential", "column": "v", "upper": "0.3", "lattice_bits": 5},
    "gamma": {"family": "gamma", "column": "v", "shape": "0.5", "upper": 4, "lattice_bits": 5},
    "weibull": {"family": "weibull", "column": "v", "shape": "1.7", "upper": 4, "lattice_bits": 5},
    "pareto": {"family": "pareto", "column": "v", "minimum": 2, "upper": 9, "lattice_bits": 5},
    "laplace": {"family": "laplace", "column": "v", "location": -3, "half_range": 2, "lattice_bits": 5},
    "normal_known_mean": {
        "family": "normal_known_mean",
        "column": "v",
        "mean": "0.1",
        "half_range": "0.3",
        "lattice_bits": 5,
    },
    "normal_known_variance": {
        "family": "normal_known_variance",
        "column": "v",
        "variance": 3,
        "lower": "-1.5",
        "upper": "4",
        "lattice_bits": 5,
    },
    "lognormal": {"family": "lognormal", "column": "v", "lower": "0.1", "upper": 12, "lattice_bits": 5},
}
EVERY_ROW_COUNTS: dict[str, dict[str, Any]] = {
    "bernoulli": {"nulls": {"value": 0}},
    "categorical": {"other": True},
    "poisson": {"nulls": {"value": 3}},
    "normal": {"nulls": {"value": 1}},
    **{
        family: {"nulls": {"value": 3}}
        for family in FAMILY_ENTRIES
        if family not in {"bernoulli", "categorical", "poisson", "normal"}
    },
}


def make(
    *families: str, neighboring: str = "add_or_remove_one", every_row: bool = False, **more: Any
) -> tuple[Spec, Plan]:
    spec = load_spec(
        {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": "x.parquet"},
            "privacy": {"epsilon": "0.7", "neighboring": neighboring, "unit": "row"},
            "statistics": {
                family: {**FAMILY_ENTRIES[family], **(EVERY_ROW_COUNTS[family] if every_row else {})}
                for family in families
            },
            **more,
        }
    )
    return spec, compile_plan(spec)


@pytest.mark.parametrize(
    ("family", "add_or_remove", "replace", "minimal"),
    [
        ("bernoulli", 1, 2, 1),
        ("categorical", 1, 2, 2),
        ("normal", 4096, 8192, 1600),
        ("lognormal", 4096, 8192, 1600),
        ("normal_known_variance", 64, 128, 64),
        *((family, 7, 14, 7) for family in ("poisson", "binomial", "geometric", "negative_binomial")),
        *(
            (family, 32, 64, 32)
            for family in ("exponential", "gamma", "weibull", "pareto", "laplace", "normal_known_mean")
        ),
    ],
)
def test_sensitivities_are_those_of_the_table(
    family: str, add_or_remove: int, replace: int, minimal: int
) -> None:
    for every_row in (False, True):
        _, plan = make(family, every_row=every_row)
        assert plan.statistics[0].l1_sensitivity == add_or_remove
        assert plan.statistics[0].design is Design.PARTITION_OF_UNITY
        assert not plan.n_is_public
    _, plan = make(family, neighboring="replace_one")
    assert plan.statistics[0].l1_sensitivity == replace
    assert not plan.n_is_public
    _, plan = make(family, neighboring="replace_one", every_row=True)
    assert plan.statistics[0].l1_sensitivity == minimal
    assert plan.statistics[0].design is Design.MINIMAL
    assert plan.n_is_public


@pytest.mark.parametrize("family", FAMILY_ENTRIES)
@pytest.mark.parametrize("more", [{"groups": {"g": ["a"]}}, {"window": {"column": "t", "every": "day"}}])
def test_groups_and_windows_make_n_private(family: str, more: dict[str, Any]) -> None:
    _, plan = make(family, neighboring="replace_one", every_row=True, **more)
    assert plan.statistics[0].design is Design.PARTITION_OF_UNITY
    assert (
        plan.statistics[0].l1_sensitivity
        == make(family, neighboring="replace_one")[1].statistics[0].l1_sensitivity
    )


def test_epsilon_is_split_by_shares_exactly() -> None:
    spec = load_spec(
        {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": "x"},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "statistics": {
                "a": {"family": "bernoulli", "column": "b", "share": "0.5"},
                "b": {"family": "bernoulli", "column": "b"},
                "c": {"family": "bernoulli", "column": "b", "share": 1.5},
            },
        }
    )
    plan = compile_plan(spec)
    assert [statistic.loss.amount for statistic in plan.statistics] == [
        Fraction(1, 6),
        Fraction(1, 3),
        Fraction(1, 2),
    ]
    document = plan_document(plan)
    assert [entry["epsilon"] for entry in document["statistics"]] == ["1/6", "1/3", "0.5"]
    for statistic, entry in zip(plan.statistics, document["statistics"], strict=True):
        assert Fraction(entry["scale"]) == Fraction(statistic.scale)
        assert statistic.l1_sensitivity / Fraction(statistic.scale) <= statistic.loss.amount


@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("family", FAMILY_ENTRIES)
@pytest.mark.parametrize("every_row", [False, True])
def test_quantities_are_recovered_exactly_from_exact_totals(
    family: str, neighboring: str, every_row: bool
) -> None:
    """Without noise the maps give n, total and total_of_squares of the quantised rows exactly."""
    spec, plan = make(family, neighboring=neighboring, every_row=every_row)
    statistic, entry = plan.statistics[0], spec.statistics[family]
    rng = np.random.default_rng(7)
    if family in {"bernoulli", "categorical"}:
        n_codes = FAMILIES[family].measure(entry).width
        counts = rng.integers(0, 50, n_codes)
        sums = np.array([[int(count) for count in counts]], dtype=object)
        expected = {"n": Fraction(int(counts.sum())), "total": Fraction(int(counts[1]))}
        by_category = {
            quantity.category: Fraction(int(counts[index]))
            for index, quantity in enumerate(statistic.quantities)
            if quantity.category is not None
        }
        n = int(counts.sum())
    else:
        measure = FAMILIES[family].measure(entry)
        quantiser = measure.of.quantiser  # type: ignore[union-attr]
        lattice = rng.integers(quantiser.lowest, quantiser.highest + 1, 30)
        n = len(lattice)
        sums = np.array([[n, int(lattice.sum()), int((lattice**2).sum())]], dtype=object)
        sums = sums[:, : 3 if family in {"normal", "lognormal"} else 2]
        lower, upper = statistic.parameters.lower, statistic.parameters.upper
        assert lower is not None
        assert upper is not None
        step = (upper - lower) / (quantiser.highest - quantiser.lowest)
        values = [lower + step * int(value - quantiser.lowest) for value in lattice]
        expected = {
            "n": Fraction(n),
            "total": sum(values, Fraction(0)),
            "total_of_squares": sum((value**2 for value in values), Fraction(0)),
        }
        by_category = {}
    totals = FAMILIES[family].totals(entry, statistic.design, sums)
    assert totals.shape == (1, len(statistic.components))
    if statistic.partition_total is not None:
        assert totals.sum() == n * statistic.partition_total
        assert (totals >= 0).all()
    for quantity in statistic.quantities:
        recovered = sum(
            (
                coefficient * int(totals[0, component])
                for component, coefficient in quantity.coefficients.items()
            ),
            quantity.public_n_coefficient * n,
        )
        assert recovered == (by_category[quantity.category] if quantity.category else expected[quantity.name])


def test_the_noise_of_quantities_is_that_of_the_reference_table() -> None:
    """Variances times epsilon^2 of the Bernstein release, in the continuous limit: 6, 4 and 6."""
    spec = load_spec(
        {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": "x"},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "statistics": {"v": {"family": "normal", "column": "v", "lower": -1, "upper": 1}},
        }
    )
    statistic = compile_plan(spec).statistics[0]
    variances = [statistic.quantity_noise_sd(quantity) ** 2 for quantity in statistic.quantities]
    assert variances == pytest.approx([6, 4, 6], rel=1e-9)


@pytest.mark.parametrize("scale", [0.01, 0.5, 1.0, 7.25, 1e3, 2.0**40])
def test_the_noise_sd_is_that_of_the_exact_distribution(scale: float) -> None:
    q = math.exp(-1 / scale)
    assert discrete_laplace_sd(scale) == pytest.approx(math.sqrt(2 * q) / -math.expm1(-1 / scale), rel=1e-12)
    assert discrete_laplace_sd(1e-4) == 0


def test_a_scale_that_would_saturate_is_refused() -> None:
    """Sensitivity 2^50: the scale is 2^55 where epsilon is 2^-5, and more below it."""

    def scale(epsilon: str) -> float:
        statistics = {"v": {**FAMILY_ENTRIES["normal"], "lattice_bits": 24}}
        privacy = {"epsilon": epsilon, "neighboring": "add_or_remove_one"}
        return make("normal", statistics=statistics, privacy=privacy)[1].statistics[0].scale

    with pytest.raises(SpecError, match=r"^statistics\.v: its noise scale 3\.6e\+16 is above 2\^55.*more"):
        scale("0.031249")
    assert 2.0**54 < scale("0.031251") < 2.0**55


def test_value_types_follow_public_bounds_only() -> None:
    assert make("normal")[1].statistics[0].value_type == "int64"
    wide = {"v": {**FAMILY_ENTRIES["normal"], "lattice_bits": 20}}
    assert make("normal", statistics=wide)[1].statistics[0].value_type == "decimal128(38, 0)"
    assert make("normal", statistics=wide, max_total_rows=10**6)[1].statistics[0].value_type == "int64"


def test_the_plan_prints_and_its_json_has_the_promised_fields() -> None:
    _, plan = make(*FAMILY_ENTRIES, groups={"g": ["a", "b"], "h": {"range": [1, 3]}})
    document = plan_document(plan)
    assert {"name", "dataset", "epsilon", "neighboring", "cells", "statistics"} <= set(document)
    assert document["cells"] == 6
    for entry in document["statistics"]:
        assert {"name", "family", "epsilon", "l1_sensitivity", "scale", "components", "derived"} <= set(entry)
        assert isinstance(entry["l1_sensitivity"], int)
        assert all({"quantity", "noise_sd"} <= set(quantity) for quantity in entry["derived"])
        assert entry["name"] in str(plan)


@pytest.mark.parametrize("family", sorted(FAMILY_ENTRIES))
@pytest.mark.parametrize(("neighboring", "factor"), [("add_or_remove_one", 1), ("replace_one", 2)])
def test_a_column_unit_costs_its_rows(family: str, neighboring: str, factor: int) -> None:
    unit = {"column": "customer_id", "max_rows": "20"}
    privacy = {"epsilon": "0.7", "neighboring": neighboring, "unit": unit}
    _, row = make(family)
    # Counted nulls and a single cell would make N public for rows; for units they do not.
    _, plan = make(family, every_row=True, privacy=privacy)
    assert plan.statistics[0].l1_sensitivity == 20 * factor * row.statistics[0].l1_sensitivity
    assert plan.statistics[0].design is not Design.MINIMAL
    assert not plan.n_is_public


def test_a_column_unit_is_stated_with_its_bound() -> None:
    unit = {"column": "customer_id", "max_rows": "20", "nulls": "own_unit"}
    privacy = {"epsilon": "1", "neighboring": "replace_one", "unit": unit}
    spec, plan = make("bernoulli", privacy=privacy)
    assert (plan.unit, plan.column_unit) == ("column:customer_id", spec.privacy.column_unit)
    document = plan_document(plan)
    assert (document["unit"], document["max_rows"], document["unit_nulls"]) == (
        "column:customer_id",
        20,
        "own_unit",
    )
    assert "unit column:customer_id, at most 20 rows of each; rows without one are a unit each" in str(plan)
    _, dropping = make("bernoulli", privacy={**privacy, "unit": {**unit, "nulls": "drop"}})
    _, by_default = make(
        "bernoulli", privacy={**privacy, "unit": {"column": "customer_id", "max_rows": "20"}}
    )
    assert dropping.canonical == by_default.canonical != plan.canonical
    assert "rows without one enter nothing" in str(dropping)
    each_once = {"late": {"family": "bernoulli", "column": "late", "rows_of": "units"}}
    _, of_units = make(privacy=privacy, statistics=each_once)
    assert "unit column:customer_id; rows without one are a unit each" in str(of_units), "it keeps no rows"
    _, row = make("bernoulli")
    assert (row.unit, row.column_unit) == ("row", None)
    assert not {"max_rows", "unit_nulls"} & plan_document(row).keys()
