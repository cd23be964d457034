"""Statistics of several columns: exact sums, maps, weights, sensitivities and what is refused."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from suffice.errors import SpecError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.plan import compile_plan, plan_document
from suffice.pipeline.terms.statistics.measure import MomentSums
from suffice.pipeline.terms.statistics.sensitivity import Design
from support.several import ENTRIES, W, X, Y, lattice_sums, plan_of, spec_of, with_nulls


@pytest.mark.parametrize("noise", ["laplace", "cone"])
@pytest.mark.parametrize("minimal", [False, True])
@pytest.mark.parametrize("name", ENTRIES)
def test_quantities_are_recovered_exactly_from_exact_totals(name: str, minimal: bool, noise: str) -> None:
    entry = {**ENTRIES[name], "lattice_bits": 5, "noise": noise}
    spec = spec_of(entry, minimal=minimal)
    (plan,) = compile_plan(spec).statistics
    measure = FAMILIES[plan.family].measure(spec.statistics["s"])
    assert isinstance(measure, MomentSums)
    rng = np.random.default_rng(7)
    lattice = np.stack(
        [rng.integers(of.quantiser.lowest, of.quantiser.highest + 1, 40) for of in measure.of], axis=1
    )
    totals = FAMILIES[plan.family].totals(spec.statistics["s"], plan.design, lattice_sums(lattice))
    centre: list[Any] = [0, 0, 0] if name == "origin" else [7, Fraction(7, 4), 5]
    half_range: list[Any] = [12, 4, 30] if name == "origin" else [5, Fraction(9, 4), 25]
    values = [
        [Fraction(c) + Fraction(h) * int(v) / 32 for v in column]
        for c, h, column in zip(centre, half_range, lattice.T, strict=True)
    ]
    names = ["x", "w", "y"]
    expected: dict[tuple[str, str | None], Fraction] = {("n", None): Fraction(40)}
    for i, j in itertools.combinations_with_replacement(range(3), 2):
        products = sum((a * b for a, b in zip(values[i], values[j], strict=True)), Fraction(0))
        key = ("total_of_squares", names[i]) if i == j else ("total_of_products", f"{names[i]}, {names[j]}")
        expected[key] = products
    if name != "origin":
        expected |= {("total", names[i]): sum(values[i], Fraction(0)) for i in range(3)}
    recovered = {
        (quantity.name, quantity.component): sum(
            (weight * int(totals[0, position]) for position, weight in quantity.coefficients.items()),
            quantity.public_n_coefficient * 40,
        )
        for quantity in plan.quantities
    }
    assert recovered == expected
    assert plan.design is (Design.MINIMAL if minimal else Design.BOUNDED)
    largest = plan.l1_sensitivity if plan.cone is None else plan.cone.steps**2
    assert np.abs(totals).max() <= 40 * largest


def test_noise_is_that_of_the_rotated_design() -> None:
    """Variances times epsilon^2 in half ranges, of d = 3: D = 9, so 81 and, without a partner, 162."""
    unit = {"lower": -1, "upper": 1}
    columns = dict.fromkeys("abc", unit)
    plan = plan_of({"family": "multivariate_normal", "columns": columns, "noise": "laplace"})
    variances = {
        (quantity.name, quantity.component): plan.quantity_noise_sd(quantity) ** 2
        for quantity in plan.quantities
    }
    assert variances["n", None] == pytest.approx(81 * 5 / 9)
    assert variances["total", "a"] == variances["total_of_squares", "b"] == pytest.approx(81)
    assert variances["total_of_products", "a, b"] == pytest.approx(81)
    assert variances["total_of_products", "b, c"] == pytest.approx(162)


@pytest.mark.parametrize(
    ("weight", "component", "sensitivity"),
    [
        (None, "2^(m-1)", 1600),
        ("0.5", "2^(m+1)", 4096),
        (1, "2^m", 2304),
        ("4", "2^(m-2)", 1296),
        (32, "2^(m-5)", 1056),
    ],
)
def test_the_weight_of_moments_moves_the_sensitivity(weight: Any, component: str, sensitivity: int) -> None:
    stated = {} if weight is None else {"moment_weight": weight}
    entry = {"family": "normal", "column": "v", "lower": -1, "upper": 1, "lattice_bits": 5}
    spec = spec_of({**entry, "nulls": {"value": 0}, **stated}, minimal=True)
    plan = compile_plan(spec)
    (statistic,) = plan.statistics
    assert statistic.components[0] == f"{component} sum(X)"
    assert statistic.l1_sensitivity == sensitivity
    (document,) = plan_document(plan)["statistics"]
    assert Fraction(document["moment_weight"]) == Fraction(weight or 2)
    assert f"second moments weigh {weight or 2} beside first ones" in str(plan)
    total, squares = statistic.quantities[1:]
    ratio = statistic.quantity_noise_sd(total) / statistic.quantity_noise_sd(squares)
    assert ratio == pytest.approx(float(Fraction(weight or 2)))
    # What was charged before weights could be stated keeps its identity.
    assert ("moment_weight" in json.loads(spec.canonical_plan())["statistics"]["s"]) is (weight is not None)


def test_a_weight_without_use_is_refused() -> None:
    with pytest.raises(SpecError, match=r"statistics\.s\.moment_weight.*private.*leave it out"):
        plan_of({**ENTRIES["normal"], "moment_weight": 2})
    with pytest.raises(SpecError, match="without an intercept"):
        plan_of({**ENTRIES["origin"], "moment_weight": 2}, minimal=True)
    for weight, rule in [(3, "power of two"), ("0.25", "power of two"), (0, "power of two"), (64, "at most")]:
        with pytest.raises(SpecError, match=rule):
            plan_of({**ENTRIES["normal"], "lattice_bits": 5, "moment_weight": weight}, minimal=True)
    lighter, heavier = (
        plan_of({**ENTRIES["regression"], "moment_weight": weight}, minimal=True) for weight in (1, 4)
    )
    assert heavier.l1_sensitivity < lighter.l1_sensitivity
    assert lighter.moment_weight == 1


@pytest.mark.parametrize("more", [{"groups": {"g": ["a"]}}, {"window": {"column": "t", "every": "day"}}, {}])
def test_minimal_moments_only_where_every_row_counts(more: dict[str, Any]) -> None:
    for entry in ENTRIES.values():
        assert plan_of(entry, minimal=True, **more).design is (Design.BOUNDED if more else Design.MINIMAL)
        content = with_nulls(entry)
        key = "outcome" if "outcome" in entry else "columns"
        content[key] = {**content[key], "y": Y}
        spec = spec_of(content, privacy={"epsilon": "1", "neighboring": "replace_one"}, **more)
        (partly,) = compile_plan(spec).statistics
        assert partly.design is Design.BOUNDED
        (once,) = compile_plan(spec_of(entry)).statistics
        assert partly.l1_sensitivity == 2 * once.l1_sensitivity


@pytest.mark.parametrize(
    ("change", "where", "rule"),
    [
        ({"columns": {"x": X}}, "statistics.s", "2 to 64 columns"),
        (
            {"columns": {"x": {**X, "upper": 2}, "w": W}},
            "statistics.s.columns.x",
            "lower must be below upper",
        ),
        (
            {"columns": {"x": {**X, "other": 2}, "w": W}},
            "statistics.s.columns.x.other",
            "known keys: lower, upper",
        ),
        ({"columns": {"x": {"lower": 0}, "w": W}}, "statistics.s.columns.x", "'upper' is missing"),
        ({"columns": {"a": X, "b": X, "a, b": W}}, "statistics.s", "names have to differ"),
        ({"columns": ["x", "w"]}, "statistics.s.columns", "mapping"),
        ({"lattice_bits": 25}, "statistics.s.lattice_bits", r"2\.\.24"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], where: str, rule: str) -> None:
    with pytest.raises(SpecError, match=rule) as caught:
        spec_of({**ENTRIES["normal"], **change})
    assert where in str(caught.value)


def test_a_regression_needs_one_outcome_that_is_no_predictor() -> None:
    for outcome, rule in [({"y": Y, "z": Y}, "one column"), ({"x": X}, "columns|differ"), ({}, "one column")]:
        with pytest.raises(SpecError, match=rule):
            spec_of({**ENTRIES["regression"], "outcome": outcome})
