"""Noise on a cone: every record lies in the cone at l = 1, neighbours differ by few, and the noise's law.

Cone membership and l are worked out in fractions, through the map and the kernels that releases take.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from suffice.errors import SpecError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.beside_sums import totals_of
from suffice.pipeline.rows.chunk.exact_sums import combine, to_python
from suffice.pipeline.rows.chunk.partition import chunk, chunk_job
from suffice.pipeline.spec.compiled_statistics import block_of
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.released.noise_distribution import noise_half_width
from suffice.pipeline.terms.statistics.cone_noise import ConeNoise, gamma_bound
from suffice.pipeline.terms.statistics.moment_columns import cone_map
from suffice.pipeline.terms.statistics.sensitivity import NeighboringRelation, cone_records
from suffice.pipeline.terms.statistics.simulated_noise import simulated_noise
from support.cones import in_cone, is_semidefinite, records_of
from support.hostile import make_spec
from support.units import by_customer, partitions_of, sum_tasks, write_row_groups

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from suffice.pipeline.spec.spec import Spec

RELATIONS = [str(relation) for relation in NeighboringRelation]
UNIT = {"lower": "-1", "upper": "1"}
LINEAR = [True, False]


def cone(columns: int, *, linear: bool = True, steps: int = 2, rate: str = "1") -> ConeNoise:
    return ConeNoise(rate=Fraction(rate), columns=columns, linear=linear, steps=steps)


def components_of(points: NDArray[Any], noise: ConeNoise, *, n_is_public: bool = False) -> NDArray[Any]:
    """Return what records add, through the map that releases take."""
    names = tuple(f"x{i}" for i in range(noise.columns))
    ones = np.concatenate([np.ones((len(points), 1), int), points], axis=1).astype(object)
    first, second = np.triu_indices(noise.columns + 1)
    released = cone_map(names, noise, n_is_public=n_is_public)
    return np.asarray((ones[:, first] * ones[:, second]) @ released.matrix.T)


# Records


@pytest.mark.parametrize("linear", LINEAR)
@pytest.mark.parametrize(("columns", "steps"), [(1, 8), (2, 1), (2, 4), (3, 1), (3, 2), (4, 1)])
def test_every_lattice_record_is_one_in_the_cone(columns: int, steps: int, linear: bool) -> None:
    noise = cone(columns, linear=linear, steps=steps)
    points = np.array(list(itertools.product(range(-steps, steps + 1), repeat=columns)))
    records = components_of(points, noise)
    assert records.shape[1] == noise.n_components == len(noise.pairs)
    for record in records:
        assert in_cone(record, noise)
        assert records_of(record, noise) == 1
    # One step beyond the bounds is out.
    beyond = np.zeros((1, columns), int)
    beyond[0, -1] = steps + 1
    assert not in_cone(components_of(beyond, noise)[0], noise)


@pytest.mark.slow
@pytest.mark.parametrize("linear", LINEAR)
def test_records_of_many_columns_are_one_in_the_cone_and_the_cone_adds_up(linear: bool) -> None:
    rng, steps = np.random.default_rng(7), 1 << 16
    for columns in (5, 11, 20):
        noise = cone(columns, linear=linear, steps=steps)
        corners = rng.choice([-steps, 0, steps], (3, columns))
        points = np.concatenate([corners, rng.integers(-steps, steps + 1, (3, columns))])
        records = components_of(points, noise)
        for record in records:
            assert in_cone(record, noise)
            assert records_of(record, noise) == 1
        weights = [Fraction(int(each), 7) for each in rng.integers(0, 20, len(records))]
        point = sum((w * record for w, record in zip(weights, records, strict=True)), 0 * records[0])
        assert in_cone(point, noise)
        for record in records:
            assert in_cone(point + record, noise)
            assert records_of(point + record, noise) == records_of(point, noise) + 1


@pytest.mark.parametrize("linear", LINEAR)
def test_components_that_are_not_the_matrix_leave_the_cone(linear: bool) -> None:
    """Controls: what a wrong map would release is told apart."""
    noise = cone(3, linear=linear, steps=4)
    (record,) = components_of(np.array([[4, -4, 3]]), noise)
    counted_once = record.copy()
    counted_once[0] = 1  # n itself, and not M^2 of it
    assert not in_cone(counted_once, noise)
    doubled = record.copy()
    doubled[noise.pairs.index((1, 2))] *= 2
    assert not in_cone(doubled, noise)
    assert not is_semidefinite([[0, 1], [1, 5]])
    assert not is_semidefinite([[1, 2], [2, 3]])
    assert is_semidefinite([[1, 2], [2, 4]])
    assert is_semidefinite([[0, 0], [0, 0]])


# Neighbours

ENTRIES: dict[str, dict[str, Any]] = {
    "columns": {"family": "multivariate_normal", "columns": {"v": UNIT, "u": UNIT}},
    "origin": {
        "family": "linear_regression",
        "predictors": {"v": UNIT},
        "outcome": {"u": {**UNIT, "lower": "-0.3"}},
        "intercept": "false",
    },
    "counted nulls": {
        "family": "multivariate_normal",
        "columns": {name: {**UNIT, "nulls": {"value": "-0.25"}} for name in "vu"},
    },
}
VALUES = [(-9.0, 1.0), (0.5, -1.0), (None, 0.3), (float("nan"), 9.0)]
ROWS = [(*values, cell) for values in VALUES for cell in ("a", "b", "unknown")]


def spec_of(directory: Path, entry: str, neighboring: str, unit: Any = "row") -> Spec:
    stated = {**ENTRIES[entry], "noise": "cone", "lattice_bits": "2"}
    privacy = {"epsilon": "1", "neighboring": neighboring, "unit": unit}
    return make_spec(directory, {"s": stated}, groups={"g": ["a", "b"]}, privacy=privacy)


def totals(directory: Path, spec: Spec, rows: list[Any]) -> NDArray[Any]:
    """Return the totals of rows (v, u, cell), or (v, u, cell, unit), by the kernels: (n_cells, D)."""
    names, kinds = ("v", "u", "g", "customer"), (pa.float64(), pa.float64(), pa.string(), pa.string())
    given = list(zip(*rows, strict=True))
    table = pa.table(
        {name: pa.array(list(of), kind) for name, kind, of in zip(names, kinds, given, strict=False)}
    ).rename_columns(["v", "u", "g", *(["u_"] if len(given) > 3 else [])])
    if len(given) > 3:
        table = pa.table({"v": table["v"], "w": table["u"], "g": table["g"], "u": table["u_"]})
    write_row_groups(directory, table, [1] * len(rows))
    job = chunk_job(spec)
    if len(given) > 3:
        sums = sum_tasks(job, partitions_of(spec))
    else:
        sums = combine([chunk(partition, job) for partition in partitions_of(spec)])
    (statistic,) = compile_plan(spec).statistics
    entry = spec.statistics["s"]
    return np.asarray(totals_of(FAMILIES[entry.family], entry, statistic, to_python(sums)["s"]))


def moved(before: NDArray[Any], shared: NDArray[Any], after: NDArray[Any], noise: ConeNoise) -> Fraction:
    """Return the sum of l over what goes and what comes, which all has to lie in the cone."""
    parts = [*(before - shared), *(after - shared)]
    assert all(in_cone(part, noise) for part in parts)
    return sum((records_of(part, noise) for part in parts), Fraction(0))


@pytest.mark.slow
@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_neighbours_differ_by_as_many_records_as_stated(tmp_path: Path, entry: str, neighboring: str) -> None:
    spec = spec_of(tmp_path, entry, neighboring)
    (statistic,) = compile_plan(spec).statistics
    assert statistic.cone is not None
    stated = statistic.loss.amount / statistic.cone.rate
    empty = totals(tmp_path, spec, [(None, None, "unknown")])
    assert not empty.any()
    single = {row: totals(tmp_path, spec, [row]) for row in ROWS}
    both = totals(tmp_path, spec, [ROWS[0], ROWS[4]])
    assert (both == single[ROWS[0]] + single[ROWS[4]]).all(), "totals are sums over records"
    if neighboring == "add_or_remove_one":
        changes = [moved(empty, empty, each, statistic.cone) for each in single.values()]
    else:
        pairs = itertools.combinations(single.values(), 2)
        changes = [moved(first, empty, second, statistic.cone) for first, second in pairs]
    assert max(changes) == stated


def units_of(most: int) -> list[list[tuple[Any, ...]]]:
    """Return all units of up to so many rows, in two cells."""
    rows = [(-1.0, 1.0, "a"), (1.0, 0.5, "a"), (1.0, 1.0, "b")]
    return [
        list(unit) for size in range(most + 1) for unit in itertools.combinations_with_replacement(rows, size)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("in_cell", [None, "1"])
def test_units_differ_by_twice_or_once_their_kept_rows(
    tmp_path: Path, neighboring: str, in_cell: str | None
) -> None:
    unit = by_customer(2, **({} if in_cell is None else {"max_rows_per_cell": in_cell}))
    entry = {"family": "multivariate_normal", "columns": {"v": UNIT, "w": UNIT}, "noise": "cone"}
    privacy = {"epsilon": "1", "neighboring": neighboring, "unit": unit}
    groups = {"g": ["a", "b"]}
    spec = make_spec(tmp_path, {"s": {**entry, "lattice_bits": "2"}}, groups=groups, privacy=privacy)
    (statistic,) = compile_plan(spec).statistics
    assert statistic.cone is not None
    stated = statistic.loss.amount / statistic.cone.rate
    assert stated == (2 if neighboring == "add_or_remove_one" else 4)
    others = [(0.5, 0.5, "a", "other"), (-0.5, 0.5, "b", "other")]
    sums = [totals(tmp_path, spec, [*others, *((*row, "one") for row in rows)]) for rows in units_of(3)]
    without = sums[0]
    if neighboring == "add_or_remove_one":
        changes = [moved(without, without, each, statistic.cone) for each in sums]
    else:
        changes = [
            moved(first, without, second, statistic.cone) for first, second in itertools.combinations(sums, 2)
        ]
    assert max(changes) == stated


def test_records_are_those_of_the_relation_and_the_unit() -> None:
    add, replace = NeighboringRelation
    assert (cone_records(add), cone_records(replace)) == (1, 2)
    assert (cone_records(add, 5), cone_records(replace, 5)) == (5, 10)


# Plans


def privacy_of(**stated: Any) -> dict[str, Any]:
    return {"neighboring": "add_or_remove_one", **stated}


def planned(columns: int = 3, epsilon: str = "1", **stated: Any) -> Any:
    entry = {"family": "multivariate_normal", "columns": {f"x{i}": UNIT for i in range(columns)}, **stated}
    privacy = privacy_of(epsilon=epsilon)
    return compile_plan(make_spec("rows", {"s": entry}, privacy=privacy, max_total_rows="100000"))


def test_a_rate_is_exact_and_the_shares_of_a_release_add_up() -> None:
    entry = {"family": "multivariate_normal", "columns": dict.fromkeys("abc", UNIT)}
    three = {name: {**entry, "share": share} for name, share in (("s", "1"), ("t", "2"), ("w", "4"))}
    privacy = {"epsilon": "0.1", "neighboring": "replace_one", "unit": by_customer(3)}
    plan = compile_plan(make_spec("rows", three, privacy=privacy))
    rates = [statistic.cone.rate for statistic in plan.statistics if statistic.cone is not None]
    assert rates == [Fraction(share, 7 * 10 * 6) for share in (1, 2, 4)]
    assert 6 * sum(rates) == plan.loss.amount
    assert sum(statistic.rho for statistic in plan.statistics) == sum(
        (6 * rate) ** 2 / 2 for rate in rates
    ), "an account of rho takes it for epsilon^2 / 2"


@pytest.mark.parametrize(
    ("columns", "stated", "is_on_cone"),
    [
        (2, {}, False),
        (3, {}, True),
        (8, {}, True),
        (2, {"noise": "cone"}, True),
        (8, {"noise": "laplace"}, False),
    ],
)
def test_the_default_is_what_is_predicted_to_err_less(
    columns: int, stated: dict[str, str], is_on_cone: bool
) -> None:
    plan = planned(columns, **stated)
    assert (plan.statistics[0].cone is not None) is is_on_cone
    assert ('"noise":"cone"' in plan.canonical) is is_on_cone
    assert '"laplace"' not in plan.canonical, "what all plans had before needs no name"
    assert "times that of Laplace noise" in " ".join(str(plan).split())


def test_what_says_laplace_is_the_plan_that_stood_before_there_was_a_choice() -> None:
    """Its hash at the version before noise on a cone."""
    assert planned(2).plan_hash == planned(2, noise="laplace").plan_hash
    assert planned(3, noise="laplace").plan_hash == BEFORE


BEFORE = "d696901ef926a6023650a9aef9f40bcbbfd05fd5e984825099c94be86c5481f5"


def test_the_prediction_is_the_ratio_of_the_noise_on_products() -> None:
    on, off = planned(4), planned(4, noise="laplace")
    squares = [
        sum(
            plan.statistics[0].quantity_noise_sd(quantity) ** 2
            for quantity in plan.statistics[0].quantities
            if quantity.name == "total_of_products"
        )
        for plan in (on, off)
    ]
    assert f"is {math.sqrt(squares[0] / squares[1]):.3g} times" in str(on)


@pytest.mark.parametrize(
    ("privacy", "stated", "rule"),
    [
        ({"rho": "0.1"}, {"noise": "cone"}, "noise on a cone is of epsilon"),
        ({"epsilon": "1"}, {"noise": "cone", "moment_weight": "2"}, "no weight of second moments"),
        ({"epsilon": "1"}, {"noise": "gaussian"}, "neither laplace nor cone; leave it out"),
    ],
)
def test_noise_that_does_not_fit_is_refused(
    privacy: dict[str, str], stated: dict[str, str], rule: str
) -> None:
    entry = {"family": "multivariate_normal", "columns": dict.fromkeys("abc", UNIT), **stated}
    with pytest.raises(SpecError, match=rule):
        make_spec("rows", {"s": entry}, privacy=privacy_of(**privacy))


def test_other_families_have_no_such_key() -> None:
    with pytest.raises(SpecError, match="noise"):
        make_spec("rows", {"s": {"family": "normal", "column": "x", **UNIT, "noise": "cone"}})


def test_in_rho_the_default_is_laplace_noise() -> None:
    entry = {"family": "multivariate_normal", "columns": dict.fromkeys("abc", UNIT)}
    plan = compile_plan(make_spec("rows", {"s": entry}, privacy=privacy_of(rho="0.1")))
    assert plan.statistics[0].cone is None
    assert '"noise"' not in plan.canonical


def test_a_plan_on_a_cone_is_read_back_and_one_that_lies_is_not() -> None:
    from suffice.pipeline.spec.recompile import read_canonical_plan

    plan = planned(3)

    def read(text: str) -> Any:
        canonical = read_canonical_plan(text, plan.order)
        return canonical.assemble(list(canonical.statistics()))

    assert read(plan.canonical) == plan
    with pytest.raises(SpecError, match="canonical"):
        read(plan.canonical.replace('"noise":"cone"', '"noise":"laplace"'))
    without = plan.canonical.replace('"noise":"cone",', "")
    assert read(without).statistics[0].cone is None, "no plan is predicted anew"
    with pytest.raises(SpecError, match="of epsilon"):
        read(plan.canonical.replace('"epsilon":"1"', '"rho":"1"'))


# The law


def simulated(plan: Any, cells: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return simulated_noise(plan, (cells,), rng).astype(np.float64)


LAWS = [(1, True), (2, True), (4, True), (1, False), (2, False), (4, False)]
CELLS = 20_000
FARTHEST = 6.5
"""Standard errors, of some 600 numbers: a false alarm has the chance 2e-7, for all their skewness of 7."""


def plan_with(noise: ConeNoise) -> Any:
    statistic = planned(max(2, noise.columns), noise="cone").statistics[0]
    return dataclasses.replace(statistic, cone=noise, components=tuple(map(str, noise.pairs)))


def farthest(draws: NDArray[np.float64], covariance: NDArray[np.float64]) -> float:
    """Return how many standard errors covariances of draws with mean 0 are away, at most."""
    draws = draws / np.sqrt(np.diag(covariance))
    expected = covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    products = draws[:, :, None] * draws[:, None, :]
    error = products.std(axis=0) / math.sqrt(len(draws))
    return float(np.max(np.abs(products.mean(axis=0) - expected) / error))


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "linear"), LAWS)
def test_the_covariances_are_those_of_the_law(columns: int, linear: bool) -> None:
    noise = cone(columns, linear=linear, steps=64, rate="1/3")
    draws = simulated(plan_with(noise), CELLS, np.random.default_rng())
    assert farthest(draws, noise.covariance) < FARTHEST
    entries = [[float(noise.covariance_of(a, b)) for b in noise.pairs] for a in noise.pairs]
    assert np.array_equal(entries, noise.covariance)
    assert noise.variance_of({0: Fraction(1)}) == noise.covariance_of((0, 0), (0, 0))
    changes = {place: Fraction(place + 1, 3) for place in range(noise.n_components)}
    weights = np.array([float(each) for each in changes.values()])
    assert float(noise.variance_of(changes)) == pytest.approx(weights @ noise.covariance @ weights, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [2, 4])
def test_other_laws_are_told_apart(columns: int) -> None:
    """Controls: t of fewer components, noise times 1.1, P without Q, and no covariances.

    Each is fourteen standard errors away or more, and missed with a chance below 1e-9.
    """
    noise = cone(columns, steps=64)
    draws = simulated(plan_with(noise), CELLS, np.random.default_rng())
    fewer = dataclasses.replace(noise, columns=columns - 1).n_components / noise.n_components
    assert farthest(draws, noise.covariance * fewer) > FARTHEST
    assert farthest(1.1 * draws, noise.covariance) > FARTHEST
    assert farthest(draws, noise.covariance / 2) > FARTHEST
    assert farthest(draws, np.diag(np.diag(noise.covariance))) > FARTHEST


def test_the_published_standard_deviations() -> None:
    """Of n, a sum, a square and a product, at epsilon 1 in half ranges."""
    of_columns = {2: [3.5, 3.7, 3.2, 3.1], 4: [5.5, 7.7, 5.9, 6.7], 7: [8.5, 15.6, 10.4, 14.1]}
    for columns, published in of_columns.items():
        noise = cone(columns, steps=1)
        pairs = [(0, 0), (0, 1), (1, 1), (1, 2)]
        sds = [math.sqrt(noise.covariance_of(pair, pair)) for pair in pairs]
        assert sds == pytest.approx(published, abs=0.051)


@pytest.mark.slow
def test_sums_of_releases_and_some_components_are_of_the_same_law() -> None:
    noise = cone(3, steps=64)
    plan, rng = plan_with(noise), np.random.default_rng()
    both = simulated_noise(plan, (CELLS,), rng, 2).astype(np.float64)
    assert farthest(both, 2 * noise.covariance) < FARTHEST
    part = [noise.pairs.index((1, 1)), 0, noise.pairs.index((1, 2))]
    draws = simulated_noise(plan, (CELLS,), rng, components=part).astype(np.float64)
    assert farthest(draws, noise.covariance[np.ix_(part, part)]) < FARTHEST
    large = dataclasses.replace(noise, rate=Fraction(1, 10**16))
    drawn = simulated_noise(plan_with(large), (10,), rng)
    assert drawn.dtype == object
    assert max(map(abs, drawn.ravel().tolist())) > 2**50


@pytest.mark.slow
@pytest.mark.parametrize("columns", [2, 4, 7])
def test_half_widths_hold_as_much_as_they_say(columns: int) -> None:
    """At 1e-9 a quantity and mass, of which there are 171 in all.

    Widths of .84 times as much are seven standard errors too narrow, or more.
    """
    statistic = planned(columns, noise="cone").statistics[0]
    draws = simulated(statistic, CELLS, np.random.default_rng())
    for quantity in statistic.quantities:
        weights = np.array([float(each) for each in quantity.coefficients.values()])
        noise = np.abs(draws[:, list(quantity.coefficients)] @ weights)
        for mass in (0.95, 0.99, 0.999):
            beyond = int(np.sum(noise > noise_half_width(statistic, quantity, mass)))
            assert beyond <= stats.binom.isf(1e-9, CELLS, 1.0 - mass)
        narrow = int(np.sum(noise > 0.84 * noise_half_width(statistic, quantity)))
        assert narrow > stats.binom.isf(1e-7, CELLS, 0.05), "and not much more"


def test_noise_beside_a_public_n_is_less_for_it() -> None:
    """The noise of N M^2 is known then, and takes away what squares have in common with it."""
    columns = {name: {**UNIT, "nulls": {"value": "0"}} for name in "abc"}
    entry = {"family": "multivariate_normal", "columns": columns, "noise": "cone"}
    spec = make_spec("rows", {"s": entry}, privacy={"epsilon": "1", "neighboring": "replace_one"})
    (statistic,) = compile_plan(spec).statistics
    noise = statistic.cone
    assert noise is not None
    assert noise.rate == Fraction(1, 2)
    of = {(quantity.name, quantity.component): quantity for quantity in statistic.quantities}
    assert statistic.quantity_noise_sd(of["n", None]) == 0.0
    square = of["total_of_squares", "a"]
    plain = math.sqrt(noise.covariance_of((1, 1), (1, 1))) / noise.steps**2
    assert statistic.quantity_noise_sd(square) < 0.9 * plain
    # Without bias: of exact totals of records the estimate is exact.
    points = np.array([[noise.steps, 0, -3], [5, -noise.steps, 7]])
    exact = components_of(points, noise, n_is_public=True).sum(axis=0)
    value = sum(exact[place] * weight for place, weight in square.coefficients.items())
    assert value + 2 * square.public_n_coefficient == Fraction(noise.steps**2 + 25, noise.steps**2)


# Saturation


@pytest.mark.parametrize("shape", [2, 6, 15, 36, 231])
def test_the_bound_of_a_gamma_number_is_the_least(shape: int) -> None:
    bound = gamma_bound(shape, 100)
    bits = -np.asarray(stats.gamma.logsf([bound - 1, bound], shape)) / math.log(2.0)
    assert bits[0] < 100 <= bits[1] + 1e-9


def test_noise_is_within_its_reach_and_wide_noise_takes_decimals() -> None:
    """Noise is beyond its reach with chance 2^-99 a cell; none of 20,000 beyond a tenth of it with e^-70."""
    noise = cone(3, steps=64, rate="1/7")
    draws = simulated(plan_with(noise), 20_000, np.random.default_rng())
    assert np.max(np.abs(draws)) < noise.reach
    assert noise.reach < 10 * np.max(np.abs(draws))
    assert planned(3).statistics[0].value_type == "int64"
    assert planned(3, epsilon="0.000001", lattice_bits="20").statistics[0].value_type == "decimal128(38, 0)"
    with pytest.raises(ValueError, match="rate above 0"):
        cone(3, rate="0")


@pytest.mark.parametrize("columns", [1, 2, 3, 8])
@pytest.mark.parametrize("linear", LINEAR)
def test_noise_that_is_cut_off_in_64_bits_is_as_rare_as_stated(columns: int, linear: bool) -> None:
    """Chernoff's bound at the widest noise that a plan stores in them, as ``cone-reach`` states it."""
    shape = cone(columns, linear=linear).n_components
    at = gamma_bound(shape, 100)
    widest = dataclasses.replace(cone(columns, linear=linear), steps=1, rate=Fraction(at, 2**62 - 2))
    assert widest.reach < 2**63
    assert widest.rate * (2**63 - 2) >= 2 * at
    assert -2 * at + 2 * shape * (1 + math.log(at / shape)) < -186 * math.log(2)


def test_a_block_on_a_cone_has_no_sensitivity_by_l1() -> None:
    entry = load_spec(
        {
            "name": "a",
            "dataset": "a",
            "privacy": privacy_of(epsilon="1"),
            "statistics": {"s": {**ENTRIES["columns"], "noise": "cone"}},
        }
    ).statistics["s"]
    with pytest.raises(ValueError, match="cone"):
        block_of(entry, n_may_be_public=False).l1_sensitivity(NeighboringRelation.ADD_OR_REMOVE_ONE)
    with pytest.raises(ValueError, match="component"):
        _ = planned(3).statistics[0].component_noise_sd
