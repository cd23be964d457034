"""Simulated data sets: summed as the engine's reference sums them, drawn from the family's distribution."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.errors import UsageError
from suffice.pipeline.ask.calibration.simulated_release import GenerativeModel
from suffice.pipeline.ask.calibration.simulation import simulate
from suffice.pipeline.ask.calibration.verdict import LEFT_OUT
from suffice.pipeline.ask.inference.model import Model
from suffice.pipeline.ask.inference.posterior_terms import PLUG_IN
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions import normal_inverse_wishart
from suffice.pipeline.terms.statistics.count_table import CountTable, Variable
from suffice.pipeline.terms.statistics.measure import MomentSums, PowerSums
from suffice.pipeline.terms.statistics.simulated_sums import (
    _RECORDS,
    code_counts,
    discrete_laplace,
    moment_sums,
    power_sums,
    table_counts,
    transition_counts,
)
from support.audit import designs
from support.generative_models import families_measured_by, generative_model_for, most_clipped

if TYPE_CHECKING:
    from suffice.pipeline.terms.statistics.simulated_sums import SimulatedSums
    from suffice.typing import Counts, Floats


SUMMED = families_measured_by(PowerSums)
SIMULATIONS = 1000
FALSE_ALARM = 1e-6 / (2 * 10 * len(FAMILIES) * (len(LEFT_OUT) + 1))
"""Of one check: 1e-6 over both designs of all families, of at most ten parameters or categories each."""


def summed(generative_model: GenerativeModel) -> PowerSums:
    measure = generative_model.family.measure(generative_model.entry)
    assert isinstance(measure, PowerSums)
    return measure


@pytest.mark.parametrize("family", SUMMED)
def test_sums_are_those_of_the_public_lattice(family: str) -> None:
    generative_model = generative_model_for(family, n=10, method=PLUG_IN)
    measure = summed(generative_model)
    rng = np.random.default_rng(7)
    sizes = np.array([0, 3, 1, _RECORDS + 5, 0, 2000, 0])
    values = rng.standard_cauchy(int(sizes.sum())) * 10.0
    values[:3] = [np.inf, -np.inf, 0.0]
    taken = 0

    def draw(data_set: np.ndarray) -> np.ndarray:
        nonlocal taken
        taken += len(data_set)
        return values[taken - len(data_set) : taken]

    sums = power_sums(measure, sizes, draw)
    transformed = values if measure.of.transform is None else measure.of.transform.apply(values)
    lattice = measure.of.quantiser.quantise(transformed)
    for row, part in zip(sums.clipped, np.split(lattice, np.cumsum(sizes)[:-1]), strict=True):
        exact = [sum(int(entry) ** power for entry in part) for power in range(measure.degree + 1)]
        assert row.tolist() == exact
    assert taken == sizes.sum()
    assert sums.n_clipped > 0
    assert sums.unclipped[:, 0].tolist() == sizes.tolist()


def test_moments_are_those_of_the_public_lattices() -> None:
    """Beside Python integers, with values beyond the bounds of one column or both, in several parts."""
    generative_model = generative_model_for("multivariate_normal", n=10, method=PLUG_IN)
    measure = generative_model.family.measure(generative_model.entry)
    assert isinstance(measure, MomentSums)
    sizes = np.array([0, 4, _RECORDS + 3, 0])
    values = np.random.default_rng(7).standard_normal((int(sizes.sum()), 2)) * 3.0
    values[:4] = [[7.0, 0.0], [-7.0, -10.0], [1.0, 1.0], [0.0, 9.5]]
    taken = 0

    def draw(data_set: np.ndarray) -> np.ndarray:
        nonlocal taken
        taken += len(data_set)
        return values[taken - len(data_set) : taken]

    sums = moment_sums(measure, sizes, draw)
    lattice = np.column_stack([of.quantiser.quantise(values[:, i]) for i, of in enumerate(measure.of)])
    for row, part in zip(sums.clipped, np.split(lattice, np.cumsum(sizes)[:-1]), strict=True):
        extended = [(1, int(x), int(y)) for x, y in part]
        exact = [sum(z[i] * z[j] for z in extended) for i in range(3) for j in range(i, 3)]
        assert row.tolist() == exact
    steps = measure.of[0].quantiser.steps
    every = np.rint(values / [6.0, 9.0] * steps)
    assert sums.n_clipped == np.count_nonzero(np.any(np.abs(every) > steps, axis=1))
    free = every[:4]
    assert sums.unclipped[1].tolist() == [
        4,
        *free.sum(axis=0),
        *((free[:, i] * free[:, j]).sum() for i, j in ((0, 0), (0, 1), (1, 1))),
    ]


def test_without_bounds_nothing_is_clipped() -> None:
    """Values beyond the bounds, by hand: 7 and 3 of 0..4 in steps of one, and powers past their unit."""
    generative_model = generative_model_for("poisson", n=1, method=PLUG_IN, conditions=({"upper": "4"}, None))
    sums = power_sums(summed(generative_model), np.array([2]), lambda _: np.array([7.0, 3.0]))
    assert (sums.clipped.tolist(), sums.unclipped.tolist(), sums.n_clipped) == ([[2, 7]], [[2, 10]], 1)
    generative_model = generative_model_for(
        "weibull", n=1, method=PLUG_IN, conditions=({"shape": "2", "upper": "2", "lattice_bits": "2"}, None)
    )
    sums = power_sums(summed(generative_model), np.array([2]), lambda _: np.array([4.0, 1.0]))
    assert (sums.clipped.tolist(), sums.unclipped.tolist()) == ([[2, 5]], [[2, 17]])


NOT_CONJUGATE = {"rows_per_unit", "histogram"}
"""Shares of the data themselves are known without noise; a walk over bins has no conjugate update."""


def test_codes_are_counted_by_their_probabilities() -> None:
    """Within six standard errors: a false alarm has the chance 2e-9."""
    rng = np.random.default_rng()
    probability = np.array([[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]])
    sums = code_counts(np.array([10**12, 10**15]), probability, rng)
    assert sums.clipped[1].tolist() == [10**15, 0, 0]
    assert sums.clipped[0, 0] == 0
    assert abs(sums.clipped[0, 1] / 10**12 - 0.25) < 6 * (0.25 * 0.75 / 10**12) ** 0.5
    assert sums.n_clipped == 0


def test_simulated_noise_has_its_distribution() -> None:
    """Mean absolute value of 40,000 draws within 6 standard errors: 1e-8 at three scales."""
    rng = np.random.default_rng()
    assert not discrete_laplace(1e-3, (100,), rng).any()
    for scale in (0.5, 40.0, 2.0**57):
        noise = np.abs(discrete_laplace(scale, (40_000,), rng).astype(np.float64))
        q = np.exp(-1 / scale)
        expected = 2 * q / -np.expm1(-2 / scale)
        assert abs(noise.mean() - expected) < 6 * noise.std() / 200


@pytest.mark.parametrize(
    ("family", "public_n"),
    [(name, known) for name in FAMILIES if name not in NOT_CONJUGATE for known in designs(name)],
)
def test_without_noise_the_conjugate_posterior_is_calibrated(
    family: str, public_n: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draws, sums, totals and priors fit one another in every family: the plug-in posterior is then exact.

    But for the projection of several columns onto what their bounds allow: those of these generative models
    have no end.
    """
    monkeypatch.setattr(normal_inverse_wishart, "project", normal_inverse_wishart.estimate)
    generative_model = generative_model_for(family, n=40, public_n=public_n, method=PLUG_IN)
    simulation = simulate(
        dataclasses.replace(generative_model, scale=1e-3), SIMULATIONS, np.random.default_rng()
    )
    assert simulation.clipped_share < most_clipped(SIMULATIONS, 40)
    for ranks in simulation.clipped:
        assert min(ranks.p_values()) > FALSE_ALARM, ranks


class Faster(GenerativeModel):
    """A simulator with one wrong factor."""

    def sums(self, truth: Floats, sizes: Counts, rng: np.random.Generator) -> SimulatedSums:
        return super().sums(1.2 * truth, sizes, rng)


def test_data_of_another_distribution_fail_the_same_check() -> None:
    """The control: rates a fifth too high at N = 40, of which the posterior knows about a sixth."""
    generative_model = dataclasses.replace(
        generative_model_for("exponential", n=40, method=PLUG_IN), scale=1e-3
    )
    wrong = Faster(
        **{
            entry.name: getattr(generative_model, entry.name)
            for entry in dataclasses.fields(generative_model)
        }
    )
    simulation = simulate(wrong, SIMULATIONS, np.random.default_rng())
    assert min(simulation.clipped[0].p_values()) < FALSE_ALARM


def test_rows_of_tables_are_drawn_from_parents_to_children() -> None:
    """Certain steps, by hand: b is not a, c is b; declared out of order, and beside another data set.

    What is not certain is within six standard errors: 2e-9.
    """
    first, second, third = (Variable(name=name, categories=("0", "1")) for name in "abc")
    tables = (
        CountTable(name="c", variables=(second, third)),
        CountTable(name="b", variables=(first, second)),
        CountTable(name="a", variables=(first,)),
    )
    same, other = [1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]
    probability = np.array([[*same, *other, 0.0, 1.0], [*same, *other, 0.25, 0.75]])
    size = 2 * _RECORDS
    sums = table_counts(tables, tables, probability, np.array([7, size]), np.random.default_rng())
    assert sums.clipped[0].tolist() == [7, 0, 0, 0, 0, 0, 7, 0, 0, 7]
    ones = sums.clipped[1, -1]
    assert abs(ones - 0.75 * size) < 6 * (0.75 * 0.25 * size) ** 0.5
    assert sums.clipped[1].tolist() == [ones, 0, 0, size - ones, 0, size - ones, ones, 0, size - ones, ones]


def test_units_walk_their_steps_and_the_last_one_what_is_left() -> None:
    """States that alternate: a unit of three steps leaves one state twice, and the other once."""
    flip = np.array([[[0.0, 1.0], [1.0, 0.0]]] * 3)
    rng = np.random.default_rng(7)
    for _ in range(50):
        counts = transition_counts(flip, 3, np.array([0, 3, 4]), rng).clipped
        assert counts[:, [0, 3]].sum() == 0
        assert counts[0].sum() == 0
        assert sorted(counts[1, [1, 2]].tolist()) == [1, 2]
        assert sorted(counts[2, [1, 2]].tolist()) in ([1, 3], [2, 2])


def test_walks_start_in_states_that_are_equally_likely() -> None:
    """Of 40,000 single steps, within 6 standard errors: 8e-9 for four states."""
    steady = np.broadcast_to(np.eye(4), (1, 4, 4))
    counts = transition_counts(steady, 1, np.array([40_000]), np.random.default_rng()).clipped
    assert np.all(abs(np.diag(counts.reshape(4, 4)) - 10_000) < 6 * (40_000 * 3 / 16) ** 0.5)


@pytest.mark.parametrize("intercept", ["true", "false"])
def test_rows_of_a_regression_lie_about_its_line(intercept: str) -> None:
    """Least squares of 100,000 rows that were not clipped, within 6 standard errors: 2e-8; two predictors."""
    entry = dict(FAMILIES["linear_regression"].generative_case.entry)
    wide = {**entry["predictors"], "z": {"lower": "-2", "upper": "1"}}
    size = 3 if intercept == "true" else 2
    generative_model = generative_model_for(
        "linear_regression",
        n=10,
        method=PLUG_IN,
        conditions=(
            {**entry, "predictors": wide, "intercept": intercept, "lattice_bits": "20"},
            "NormalInverseGammaRegression(0, 1, 4, 0.3)",
        ),
    )
    truth = np.array([*[0.5, -0.7, 0.4][:size], 0.3])
    rows = 100_000
    (sums,) = generative_model.sums(truth[None], np.array([rows]), np.random.default_rng()).unclipped
    statistic = generative_model.noisy(
        sums[None], np.zeros((1, len(generative_model.plan.components)), dtype=np.int64)
    )
    estimates = {
        (each.name, each.component): statistic.estimates(each)[0] for each in generative_model.plan.quantities
    }
    products = "total_of_products"
    gram = np.array(
        [
            [
                estimates["total_of_squares", "x"],
                estimates[products, "x, z"],
                estimates.get(("total", "x"), 0.0),
            ],
            [
                estimates[products, "x, z"],
                estimates["total_of_squares", "z"],
                estimates.get(("total", "z"), 0.0),
            ],
            [estimates.get(("total", "x"), 0.0), estimates.get(("total", "z"), 0.0), rows],
        ]
    )[:size, :size]
    cross = np.array(
        [estimates[products, "x, y"], estimates[products, "z, y"], estimates.get(("total", "y"), 0.0)]
    )[:size]
    fitted = np.linalg.solve(gram, cross)
    assert np.all(abs(fitted - truth[:size]) < 6 * np.sqrt(0.3 * np.diag(np.linalg.inv(gram))))
    residual = (estimates["total_of_squares", "y"] - fitted @ cross) / rows
    assert abs(residual - 0.3) < 6 * 0.3 * (2 / rows) ** 0.5


def test_new_rows_of_tables_are_counted_in_each() -> None:
    """Predictive counts by label; regressions and chains do not tell what new rows start from."""
    rng = np.random.default_rng(7)
    for family, tables in (("contingency", 1), ("bayesian_network", 3)):
        generative_model = generative_model_for(family, n=20, method=PLUG_IN)
        drawn = generative_model.truth(6, rng)
        counts = _model(generative_model).quantities([drawn.reshape(3, 2, -1)], 7, rng)["count"]
        assert counts.shape == (3, 2, drawn.shape[1])
        assert np.all(counts.sum(axis=2) == 7 * tables)
    pair = generative_model_for("multivariate_normal", n=20, method=PLUG_IN)
    parts = np.split(pair.truth(6, rng).reshape(3, 2, -1), [2, 4], axis=2)
    quantities = _model(pair).quantities(parts, 7, rng)
    assert quantities["n"].shape == (3, 2)
    assert quantities["total"].shape == quantities["total_of_squares"].shape == (3, 2, 2)
    assert np.all(quantities["n"] == 7)
    for family in ("linear_regression", "markov_chain"):
        generative_model = generative_model_for(family, n=20, method=PLUG_IN)
        with pytest.raises(UsageError, match="new rows depend on"):
            _model(generative_model).quantities([np.zeros((1, 1, 4))], 1, rng)


def _model(generative_model: GenerativeModel) -> Model:
    zeros = np.zeros((2, len(generative_model.plan.components)), dtype=np.int64)
    return Model(entry=generative_model.entry, statistic=generative_model.noisy(zeros.astype(object), zeros))
