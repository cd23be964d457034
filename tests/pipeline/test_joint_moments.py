"""Statistics of several columns: exact sums, maps, weights, projections, plug-in posteriors, likelihoods."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import PriorError, SpecError, UsageError
from suffice.pipeline.accumulators import (
    MatrixAccumulator,
    MomentAccumulator,
    multiplies_matrices,
    rows_before_carry,
    rows_before_rounding,
)
from suffice.pipeline.exact import to_python
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.inference import default_prior, plug_in_posterior
from suffice.pipeline.joint_moments.projection import Moments, estimate, project
from suffice.pipeline.joint_priors import NormalInverseGammaRegression, NormalInverseWishart
from suffice.pipeline.kernels import NOTHING
from suffice.pipeline.lattice import Quantiser
from suffice.pipeline.plan import compile_plan
from suffice.pipeline.posterior import summarise
from suffice.pipeline.priors import NormalInverseGamma, parse_prior
from suffice.pipeline.sensitivity import Design
from suffice.pipeline.spec import load_spec
from suffice.pipeline.sums import LatticeColumn, MomentSums
from support.noisy import noisy_statistic

if TYPE_CHECKING:
    from suffice.pipeline.plan import StatisticPlan
    from suffice.pipeline.release import NoisyStatistic

X = {"lower": 2, "upper": 12}
W = {"lower": "-0.5", "upper": 4}
Y = {"lower": -20, "upper": 30}
ENTRIES: dict[str, dict[str, Any]] = {
    "normal": {"family": "multivariate_normal", "columns": {"x": X, "w": W, "y": Y}},
    "regression": {"family": "linear_regression", "predictors": {"x": X, "w": W}, "outcome": {"y": Y}},
    "origin": {
        "family": "linear_regression",
        "predictors": {"x": X, "w": W},
        "outcome": {"y": Y},
        "intercept": False,
    },
}


def with_nulls(entry: dict[str, Any]) -> dict[str, Any]:
    """Every physical row counts: each column says what a null stands for."""

    def column(bounds: dict[str, Any]) -> dict[str, Any]:
        return {**bounds, "nulls": {"value": 3}}

    return {
        key: {name: column(bounds) for name, bounds in value.items()}
        if key in {"columns", "predictors", "outcome"}
        else value
        for key, value in entry.items()
    }


def spec_of(entry: dict[str, Any], *, minimal: bool = False, **more: Any) -> Any:
    content = {
        "name": "n",
        "dataset": "d",
        "source": {"parquet": "x"},
        "privacy": {"epsilon": "1", "neighboring": "replace_one" if minimal else "add_or_remove_one"},
        "statistics": {"s": with_nulls(entry) if minimal else entry},
    }
    return load_spec({**content, **more})


def plan_of(entry: dict[str, Any], *, minimal: bool = False, **more: Any) -> StatisticPlan:
    (plan,) = compile_plan(spec_of(entry, minimal=minimal, **more)).statistics
    return plan


def lattice_sums(rows: np.ndarray) -> np.ndarray:
    """Return exact moments of integer rows (n, d), Python integers."""
    ones = np.concatenate([np.ones((len(rows), 1), int), rows.astype(int)], axis=1).astype(object)
    first, second = np.triu_indices(rows.shape[1] + 1)
    return np.array([(ones[:, first] * ones[:, second]).sum(axis=0)], dtype=object)


def released(entry: dict[str, Any], data: np.ndarray, *, minimal: bool = False) -> NoisyStatistic:
    """The statistic of rows, on a fine lattice and without noise."""
    fine = {**entry, "lattice_bits": 24}
    spec = spec_of(fine, minimal=minimal)
    (plan,) = compile_plan(spec).statistics
    measure = FAMILIES[plan.family].measure(spec.statistics["s"])
    assert isinstance(measure, MomentSums)
    lattice = np.stack(
        [of.quantiser.quantise(column) for of, column in zip(measure.of, data.T, strict=True)], axis=1
    )
    totals = FAMILIES[plan.family].totals(spec.statistics["s"], plan.design, lattice_sums(lattice))
    return noisy_statistic(plan, totals, public_n=len(data) if minimal else None)


def rows_of(n: int, rng: np.random.Generator) -> np.ndarray:
    x = rng.normal(7, 1.2, n)
    w = rng.normal(1.8, 0.4, n) + 0.2 * (x - 7)
    y = 3.0 + 1.5 * x - 4.0 * w + rng.normal(0, 1.5, n)
    return np.clip(np.stack([x, w, y], axis=1), [2, -0.5, -20], [12, 4, 30])


@pytest.mark.parametrize("minimal", [False, True])
@pytest.mark.parametrize("name", ENTRIES)
def test_quantities_are_recovered_exactly_from_exact_totals(name: str, minimal: bool) -> None:
    entry = {**ENTRIES[name], "lattice_bits": 5}
    spec = spec_of(entry, minimal=minimal)
    (plan,) = compile_plan(spec).statistics
    measure = FAMILIES[plan.family].measure(spec.statistics["s"])
    assert isinstance(measure, MomentSums)
    rng = np.random.default_rng()
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
            (weight * int(totals[0, place]) for place, weight in quantity.coefficients.items()),
            quantity.public_n_coefficient * 40,
        )
        for quantity in plan.quantities
    }
    assert recovered == expected
    assert plan.design is (Design.MINIMAL if minimal else Design.BOUNDED)
    assert np.abs(totals).max() <= 40 * plan.l1_sensitivity


def test_noise_is_that_of_the_rotated_design() -> None:
    """Variances times epsilon^2 in half ranges, of d = 3: D = 9, so 81 and, without a partner, 162."""
    unit = {"lower": -1, "upper": 1}
    plan = plan_of({"family": "multivariate_normal", "columns": dict.fromkeys("abc", unit)})
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
    (document,) = plan.to_dict()["statistics"]
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
    ("change", "place", "rule"),
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
        ({"columns": ["x", "w"]}, "statistics.s.columns", "dictionary"),
        ({"lattice_bits": 25}, "statistics.s.lattice_bits", r"2\.\.24"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], place: str, rule: str) -> None:
    with pytest.raises(SpecError, match=rule) as caught:
        spec_of({**ENTRIES["normal"], **change})
    assert place in str(caught.value)


def test_a_regression_needs_one_outcome_that_is_no_predictor() -> None:
    for outcome, rule in [({"y": Y, "z": Y}, "one column"), ({"x": X}, "columns|differ"), ({}, "one column")]:
        with pytest.raises(SpecError, match=rule):
            spec_of({**ENTRIES["regression"], "outcome": outcome})


def measure_of(size: int, bits: int) -> MomentSums:
    quantiser = Quantiser.centred(Fraction(-1), Fraction(1), bits)
    columns = (LatticeColumn(column=str(i), quantiser=quantiser, fallback=None) for i in range(size))
    return MomentSums(of=tuple(columns))


def exact(cells: np.ndarray, columns: list[np.ndarray], n_cells: int) -> list[list[int]]:
    """Add rows up in Python integers."""
    complete = np.all([column != NOTHING for column in columns], axis=0)
    sums = []
    for cell in range(n_cells):
        rows = np.stack(columns, axis=1)[complete & (cells == cell)]
        sums.append(lattice_sums(rows)[0].tolist())
    return sums


@pytest.mark.parametrize("bits", [2, 16, 20, 24])
@pytest.mark.parametrize("n_cells", [1, 7])
def test_both_ways_of_adding_equal_python_integers(bits: int, n_cells: int) -> None:
    rng = np.random.default_rng()
    n_rows, top = 5000, 1 << bits
    measure = measure_of(4, bits)
    columns = [rng.integers(-top, top + 1, n_rows).astype(np.int32) for _ in range(4)]
    columns[0][rng.random(n_rows) < 0.5] = top
    columns[1] = np.where(columns[0] == top, -top, columns[1]).astype(np.int32)
    columns[2][rng.random(n_rows) < 0.1] = NOTHING
    cells = rng.integers(-1, n_cells, n_rows).astype(np.int32)
    expected = exact(cells, columns, n_cells)
    for kind in (MomentAccumulator, MatrixAccumulator):
        adding = kind(measure, n_cells)
        for rows in np.array_split(np.arange(n_rows), 7):
            adding.add(cells[rows], [column[rows] for column in columns])
        assert to_python({"s": adding.table()})["s"].tolist() == expected


@pytest.mark.parametrize("value", [2**24, 2**24 - 1])
@pytest.mark.parametrize("kind", [MomentAccumulator, MatrixAccumulator])
def test_carries_come_before_an_int64_is_full(kind: type[MomentAccumulator], value: int) -> None:
    """Every product at its largest, over more rows than an int64 takes without a carry."""
    limit = rows_before_carry(2**24, 2)
    n_rows = 3 * limit + 5
    columns = [np.full(n_rows, value, np.int32), np.full(n_rows, -value, np.int32)]
    adding = kind(measure_of(2, 24), 1)
    adding._table.low[0] = 2**48 - 1
    adding._room = limit
    for rows in np.array_split(np.arange(n_rows), 3):
        adding.add(np.zeros(len(rows), np.int32), [column[rows] for column in columns])
    square = n_rows * value**2
    added = [n_rows, n_rows * value, -n_rows * value, square, -square, square]
    assert to_python({"s": adding.table()})["s"][0].tolist() == [2**48 - 1 + number for number in added]


def test_one_block_more_would_round() -> None:
    """A control: odd squares add up exactly to the last row of a block, and no longer in twice the rows."""
    value = 2**24 - 1
    rows = rows_before_rounding(value)
    assert rows * value**2 <= 2**53 < (rows + 1) * value**2

    def float_sum(n_rows: int) -> int:
        column = np.append(np.full(n_rows - 1, float(value)), 2.0)
        return int(column @ column)

    assert float_sum(rows) == (rows - 1) * value**2 + 4
    assert float_sum(2 * rows) != (2 * rows - 1) * value**2 + 4


def test_the_way_is_chosen_by_public_numbers() -> None:
    assert multiplies_matrices(5, 1, 2**16)
    assert not multiplies_matrices(4, 1, 2**16), "few columns"
    assert not multiplies_matrices(5, 65, 2**16), "many cells"
    assert not multiplies_matrices(5, 1, 2**20), "blocks would be short"


def brute_force_niw(data: np.ndarray, prior: tuple[Any, ...]) -> tuple[np.ndarray, float, float, np.ndarray]:
    loc, precision, df, scale = prior
    n, average = len(data), data.mean(axis=0)
    scatter = (data - average).T @ (data - average)
    distance = (average - loc)[:, None]
    updated = scale + scatter + precision * n / (precision + n) * distance @ distance.T
    return (precision * np.asarray(loc) + n * average) / (precision + n), precision + n, df + n, updated


@pytest.mark.parametrize("minimal", [False, True])
def test_the_normal_plug_in_posterior_is_the_closed_form(minimal: bool) -> None:
    data = rows_of(60, np.random.default_rng())
    matrix = [[4.0, 1, 0], [1, 2, 0.5], [0, 0.5, 30]]
    prior = NormalInverseWishart([6, 1, 2], 2, 9, matrix)
    loc, precision, df, scale = brute_force_niw(data, ([6, 1, 2], 2, 9, np.array(matrix)))
    posterior = plug_in_posterior(released(ENTRIES["normal"], data, minimal=minimal), prior=prior)
    assert posterior.parameters == ("mean", "variance", "covariance")
    assert posterior.components["covariance"] == ("x, w", "x, y", "w, y")
    assert posterior.mean("mean")[0] == pytest.approx(loc, rel=1e-4)
    freedom = df - 2
    for i in range(3):
        t = stats.t(freedom, loc[i], np.sqrt(scale[i, i] / precision / freedom))
        variance = stats.invgamma(freedom / 2, scale=scale[i, i] / 2)
        assert posterior.sd("mean")[0, i] == pytest.approx(t.std(), rel=1e-4)
        assert posterior.mean("variance")[0, i] == pytest.approx(variance.mean(), rel=1e-4)
        assert posterior.sd("variance")[0, i] == pytest.approx(variance.std(), rel=1e-4)
        for q in (0.01, 0.5, 0.9):
            assert posterior.quantile("mean", q)[0, i] == pytest.approx(t.ppf(q), rel=1e-4)
            assert posterior.quantile("variance", q)[0, i] == pytest.approx(variance.ppf(q), rel=1e-4)
    above = np.triu_indices(3, 1)
    assert posterior.mean("covariance")[0] == pytest.approx(scale[above] / (df - 4), rel=1e-3)
    draws = 20_000
    sample = posterior.sample(draws)
    wishart = stats.invwishart(df, scale).rvs(draws, random_state=np.random.default_rng())
    reference = np.asarray(wishart)[:, *above]
    for parameter in posterior.parameters:
        sd = posterior.sd(parameter)[0]
        error = np.abs(sample[parameter][:, 0].mean(axis=0) - posterior.mean(parameter)[0])
        assert (error < 6 * sd / np.sqrt(draws)).all()
        assert sample[parameter][:, 0].std(axis=0) == pytest.approx(sd, rel=0.2)
    for pair in range(3):
        assert stats.ks_2samp(sample["covariance"][:, 0, pair], reference[:, pair]).pvalue > 1e-9
        lower, upper = posterior.credible_interval("covariance", 0.8, draws=draws)[0, pair]
        inside = np.mean((reference[:, pair] > lower) & (reference[:, pair] < upper))
        assert inside == pytest.approx(0.8, abs=6 * np.sqrt(0.32 / draws))


@pytest.mark.parametrize("minimal", [False, True])
@pytest.mark.parametrize("name", ["regression", "origin"])
def test_the_regression_plug_in_posterior_is_the_closed_form(name: str, minimal: bool) -> None:
    data = rows_of(60, np.random.default_rng())
    design, y = data[:, :2], data[:, 2]
    if name == "regression":
        design = np.column_stack([design, np.ones(len(data))])
    size = design.shape[1]
    root = np.random.default_rng().normal(size=(size, size)) * [3, 3, 0.3][:size]
    loc, precision = np.linspace(1, 2, size), root.T @ root + np.eye(size) / 4
    prior = NormalInverseGammaRegression(loc.tolist(), precision.tolist(), 2.5, 4)
    updated = precision + design.T @ design
    mean = np.linalg.solve(updated, precision @ loc + design.T @ y)
    concentration = 2.5 + len(data) / 2
    scale = 4 + (y @ y + loc @ precision @ loc - mean @ updated @ mean) / 2
    posterior = plug_in_posterior(released(ENTRIES[name], data, minimal=minimal), prior=prior)
    sample = posterior.sample(20_000)
    covariance = np.linalg.inv(updated)
    for k in range(size):
        t = stats.t(2 * concentration, mean[k], np.sqrt(scale / concentration * covariance[k, k]))
        parameter, place = ("coefficient", (0, k)) if k < 2 else ("intercept", (0,))
        assert posterior.mean(parameter)[place] == pytest.approx(t.mean(), rel=1e-3, abs=1e-3)
        assert posterior.sd(parameter)[place] == pytest.approx(t.std(), rel=1e-3)
        assert posterior.quantile(parameter, 0.9)[place] == pytest.approx(t.ppf(0.9), rel=1e-3, abs=1e-3)
        drawn = sample[parameter][(slice(None), *place)]
        assert stats.kstest(drawn, t.cdf).pvalue > 1e-9
    variance = stats.invgamma(concentration, scale=scale)
    assert posterior.mean("variance")[0] == pytest.approx(variance.mean(), rel=1e-3)
    assert posterior.sd("variance")[0] == pytest.approx(variance.std(), rel=1e-3)
    assert posterior.quantile("variance", 0.1)[0] == pytest.approx(variance.ppf(0.1), rel=1e-3)
    assert stats.kstest(sample["variance"][:, 0], variance.cdf).pvalue > 1e-9
    joint = np.asarray(np.corrcoef(sample["coefficient"][:, 0].T))[0, 1]
    expected = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert joint == pytest.approx(expected, abs=6 / np.sqrt(20_000))


def test_the_log_likelihoods_are_those_of_the_rows() -> None:
    data = rows_of(50, np.random.default_rng())
    sums = estimate(released(ENTRIES["normal"], data))
    pairs = [(np.array([6, 1, 2.0]), np.diag([2, 1, 9.0])), (np.array([7, 2, 5.0]), np.eye(3) + 0.5)]
    own = [
        FAMILIES["multivariate_normal"].log_likelihood(mean, covariance, sums, None)[0]
        for mean, covariance in pairs
    ]
    rows = [np.sum(stats.multivariate_normal(mean, covariance).logpdf(data)) for mean, covariance in pairs]
    assert own[0] - own[1] == pytest.approx(rows[0] - rows[1], rel=1e-4)
    for name, betas in {
        "regression": [np.array([1, -2, 3.0]), np.array([1.4, -3, 1.0])],
        "origin": [np.array([1, -2.0]), np.array([1.4, -3.0])],
    }.items():
        statistic = released(ENTRIES[name], data)
        design = np.column_stack([data[:, :2], np.ones(50)])[:, : len(betas[0])]
        family = FAMILIES["linear_regression"]
        values = [
            family.log_likelihood(beta, np.array(v), estimate(statistic), statistic.plan.parameters)[0]
            for beta, v in zip(betas, (2.0, 3.0), strict=True)
        ]
        expected = [
            np.sum(stats.norm.logpdf(data[:, 2], design @ beta, np.sqrt(v)))
            for beta, v in zip(betas, (2.0, 3.0), strict=True)
        ]
        assert values[0] - values[1] == pytest.approx(expected[0] - expected[1], rel=1e-3)


@pytest.mark.parametrize("name", ENTRIES)
def test_whatever_the_noise_the_projected_moments_are_possible(name: str) -> None:
    plan = plan_of(ENTRIES[name])
    rng = np.random.default_rng()
    values = rng.laplace(0, plan.scale, (300, len(plan.components)))
    values[:50, 0] += 100 * 3 * 2.0**32
    sums = project(noisy_statistic(plan, np.rint(values)))
    assert_possible(sums)
    assert (sums.n == 0).any()
    data = rows_of(200, rng)
    unharmed = released(ENTRIES[name], data)
    raw, kept = estimate(unharmed), project(unharmed)
    assert kept.products == pytest.approx(raw.products, rel=1e-9)
    assert kept.total == pytest.approx(raw.total, rel=1e-9)
    posterior = plug_in_posterior(noisy_statistic(plan, np.rint(values)))
    for parameter in posterior.parameters:
        assert np.isfinite(posterior.mean(parameter)).all()
        assert (posterior.sd(parameter) > 0).all()


def assert_possible(sums: Moments) -> None:
    room = 1e-9 * (1 + sums.n)
    assert (sums.n >= 0).all()
    assert (np.abs(sums.total) <= (sums.n + room)[:, None]).all()
    assert (np.abs(sums.products) <= (sums.n + room)[:, None, None]).all()
    assert (np.linalg.eigvalsh(sums.scatter).min(axis=1) >= -room).all()


@pytest.mark.parametrize("name", ENTRIES)
def test_rows_are_labelled_and_default_priors_are_public(name: str) -> None:
    data = rows_of(40, np.random.default_rng())
    statistic = released(ENTRIES[name], data)
    prior = default_prior(statistic)
    assert parse_prior(str(prior)) == prior
    posterior = plug_in_posterior(statistic)
    rows = summarise(posterior, draws=50)
    labels = {(row["parameter"], row["component"]) for row in rows}
    if name == "normal":
        marginal = FAMILIES["normal"].default_prior(
            compile_plan(spec_of({"family": "normal", "column": "x", **X})).statistics[0].parameters
        )
        assert isinstance(prior, NormalInverseWishart)
        assert isinstance(marginal, NormalInverseGamma)
        assert (prior.df - 2) / 2 == marginal.concentration
        assert prior.of(3)[3][0, 0] / 2 == marginal.scale
        assert ("covariance", "w, y") in labels
        assert len(rows) == 9
    else:
        intercept = {("intercept", "")} if name == "regression" else set()
        assert labels == {("coefficient", "x"), ("coefficient", "w"), ("variance", ""), *intercept}
    table = statistic.table()
    assert all({"quantity", "component", "estimate", "noise_sd"} == set(row) - {"cell"} for row in table)
    by_name = {(row["quantity"], row["component"]): row["estimate"] for row in table}
    assert by_name["n", ""] == pytest.approx(40)
    assert by_name["total_of_products", "x, y"] == pytest.approx(np.sum(data[:, 0] * data[:, 2]), rel=1e-4)
    assert statistic.quantity("total_of_squares", "w")[0][0] == pytest.approx(
        np.sum(data[:, 1] ** 2), rel=1e-4
    )
    with pytest.raises(UsageError, match=r"no quantity 'total_of_squares\[v\]'"):
        statistic.quantity("total_of_squares", "v")


def test_draws_go_to_arviz_with_their_components() -> None:
    statistic = released(ENTRIES["normal"], rows_of(40, np.random.default_rng()))
    tree = plug_in_posterior(statistic).to_arviz(draws=30, rng=1)
    covariance = tree["posterior"]["covariance"]
    assert covariance.dims == ("chain", "draw", "group", "covariance_component")
    assert covariance.sel(covariance_component="x, y").shape == (1, 30, 1)


@pytest.mark.parametrize(
    "text",
    [
        "NormalInverseWishart(0, 1, 5, 2)",
        "NormalInverseWishart([0, 1.5], precision=1, df=5, scale=[1, 2])",
        "NormalInverseWishart([0, -1], 1, 5, [[1, 0.5], [0.5, 2]])",
        "NormalInverseGammaRegression([1, 2], [[1, 0], [0, 2]], 3, 4)",
    ],
)
def test_priors_are_read_and_written_alike(text: str) -> None:
    prior = parse_prior(text)
    assert parse_prior(str(prior)) == prior
    assert hash(prior) == hash(parse_prior(text))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("NormalInverseWishart(0, 0, 5, 2)", "above 0"),
        ("NormalInverseWishart(0, 1, [5], 2)", "above 0"),
        ("NormalInverseWishart([[[1]]], 1, 5, 2)", "plain number"),
        ("NormalInverseWishart([0, 'x'], 1, 5, 2)", "plain number"),
        ("NormalInverseWishart([], 1, 5, 2)", "finite numbers"),
        ("NormalInverseWishart(0, 1, 5)", r"takes exactly \(loc, precision, df, scale\)"),
        ("Beta([1, 2], 3)", "must be a number"),
    ],
)
def test_priors_that_are_none_are_refused(text: str, rule: str) -> None:
    with pytest.raises(PriorError, match=rule):
        parse_prior(text)


@pytest.mark.parametrize(
    ("prior", "rule"),
    [
        (NormalInverseWishart(0, 1, 2, 1), "df must be above 2"),
        (NormalInverseWishart([0, 1], 1, 5, 1), "loc needs 1 or 3 numbers"),
        (NormalInverseWishart(0, 1, 5, [1, 2]), "3 lists of 3"),
        (NormalInverseWishart(0, 1, 5, [1, -2, 1]), "positive definite"),
        (NormalInverseWishart(0, 1, 5, [1, 0, 1]), "positive definite"),
        (NormalInverseWishart(0, 1, 5, [[1, 2, 0], [2, 1, 0], [0, 0, 1]]), "positive definite"),
        (NormalInverseWishart(0, 1, 5, [[1, 2, 0], [1, 5, 0], [0, 0, 1]]), "symmetric"),
        (NormalInverseWishart(0, 1, 5, [[1, 2], [1]]), "equal lists"),
        (NormalInverseGammaRegression(0, 1, 1, 1), "must be NormalInverseWishart"),
    ],
)
def test_priors_that_do_not_fit_are_refused(prior: Any, rule: str) -> None:
    statistic = released(ENTRIES["normal"], rows_of(40, np.random.default_rng()))
    with pytest.raises(PriorError, match=rule):
        plug_in_posterior(statistic, prior=prior)
