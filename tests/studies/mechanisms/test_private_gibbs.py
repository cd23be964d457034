"""Private Gibbs updates: what updates, sweeps and random scans cost, held against enumerated chances."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from studies.mechanisms.private_gibbs import (
    Order,
    Variable,
    private_gibbs,
    random_scan,
    sweep_cost,
    update_chances,
    update_costs,
)
from suffice.errors import UsageError

Values = NDArray[np.int64]

MATCHES = 0.8
"""The chance that a record is its latent value."""
ONES = np.array([0.2, 0.5, 0.8])
"""The chance that a latent value is 1, by the last variable."""
ORDERS: tuple[Order, ...] = ("systematic", "random")


def _log_joint(values: Values, records: tuple[int, ...]) -> float:
    latent = values[: len(records)]
    ones = ONES[values[-1]]
    return sum(
        math.log(ones if each else 1 - ones) + math.log(MATCHES if each == record else 1 - MATCHES)
        for each, record in zip(latent, records, strict=True)
    )


class _Conditional:
    """The log joint over the values of one variable."""

    def __init__(self, records: tuple[int, ...]) -> None:
        self.records = records

    def __call__(self, place: int, values: Values) -> NDArray[np.float64]:
        chances = []
        for value in range(3 if place == len(self.records) else 2):
            changed = values.copy()
            changed[place] = value
            chances.append(_log_joint(changed, self.records))
        return np.array(chances)


def _variables(n_records: int) -> list[Variable]:
    # Given its latent value a record changes the log joint by log(.8 / .2). The last variable sees none.
    change = math.log(MATCHES / (1 - MATCHES))
    return [Variable(change=change, is_of_one_record=True)] * n_records + [
        Variable(change=0.0, is_of_one_record=False)
    ]


def test_updates_add_up_and_variables_of_one_record_run_in_parallel() -> None:
    local = [Variable(change=change, is_of_one_record=True) for change in (1.0, 3.0, 2.0)]
    common = [Variable(change=change, is_of_one_record=False) for change in (0.5, 0.25)]
    np.testing.assert_allclose(update_costs([*local, *common], 2.0), [1.0, 3.0, 2.0, 0.5, 0.25])
    assert sweep_cost(local, 2.0) == 3.0
    assert sweep_cost(common, 2.0) == 0.75
    assert sweep_cost([*local, *common], 2.0) == 3.75
    assert sweep_cost([], 1.0) == 0.0


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_no_sweep_loses_more_than_it_costs(temperature: float) -> None:
    """Every path of a sweep in every order, from every start; one of two records is replaced."""
    variables = _variables(2)
    cost = sweep_cost(variables, temperature)
    assert cost == pytest.approx(2 * math.log(4) / temperature)
    worst = 0.0
    states = list(itertools.product((0, 1), (0, 1), (0, 1, 2)))
    for order, start, end in itertools.product(itertools.permutations(range(3)), states, states):
        values, log_ratio = np.array(start), 0.0
        for place in order:
            first, second = (
                update_chances(_Conditional(records)(place, values), temperature)[end[place]]
                for records in ((0, 0), (1, 0))
            )
            log_ratio += math.log(first / second)
            values[place] = end[place]
        worst = max(worst, abs(log_ratio))
    assert worst <= cost + 1e-12
    assert worst > cost / 2  # half of the price would not do


@pytest.mark.parametrize("order", ORDERS)
def test_a_chain_ends_where_the_law_says(order: Order) -> None:
    """400 chains of 6 sweeps: the 12 states by chi-square, below its 1e-7 quantile; T = 1 is caught."""
    records, temperature = (1, 1), 5.0
    rng = np.random.default_rng(1)
    variables = _variables(2)
    ends = []
    for _ in range(400):
        chain = private_gibbs(
            (0, 0, 1),
            _Conditional(records),
            variables=variables,
            temperature=temperature,
            n_sweeps=6,
            order=order,
            rng=rng,
        )
        ends.append(tuple(chain.states[-1].tolist()))
    assert chain.epsilon == pytest.approx(6 * 2 * math.log(4) / temperature)
    assert chain.states.shape == (7, 3)
    states = list(itertools.product((0, 1), (0, 1), (0, 1, 2)))
    seen = np.array([ends.count(state) for state in states])
    log_joint = np.array([_log_joint(np.array(state), records) for state in states])

    def statistic(tempered: float) -> float:
        weights = np.exp(log_joint / tempered)
        expected = 400 * weights / weights.sum()
        return float(((seen - expected) ** 2 / expected).sum())

    limit = stats.chi2.isf(1e-7, len(states) - 1)
    assert statistic(temperature) < limit
    assert statistic(1.0) > limit


def test_a_random_scan_is_not_amplified() -> None:
    """2 Delta = 6, a tenth of the variables: the paper's 1.2; 3.72 if places were secret; they are not."""
    scan = random_scan(3.0, 1, 10)
    assert scan.claimed == pytest.approx(1.2)
    assert scan.with_secret_places == pytest.approx(3.7195, abs=5e-5)
    assert scan.with_public_places == 6.0
    assert scan.with_secret_places < scan.enumerated_loss <= scan.with_public_places
    assert scan.enumerated_loss == pytest.approx(6.0, abs=0.01)
    # The price does not depend on the share that is touched, and the false one is 0 in the limit.
    rare = random_scan(3.0, 1, 10_000)
    assert rare.enumerated_loss == pytest.approx(6.0, abs=0.01)
    assert rare.claimed < 0.01


def test_outputs_say_that_they_are_no_releases_and_nonsense_is_refused() -> None:
    rng = np.random.default_rng(2)
    chain = private_gibbs((0, 1, 0, 2), _Conditional((0, 1, 1)), variables=_variables(3), n_sweeps=2, rng=rng)
    for output in (chain, random_scan(1.0, 1, 2)):
        assert output.label == "not a release"
        assert str(output).startswith("not a release\n")
        assert output.csv().startswith("# not a release\n")
    assert "for a sweep in systematic order" in str(chain)
    assert "no amplification" in str(random_scan(1.0, 1, 2))
    with pytest.raises(UsageError, match="temperature"):
        update_costs(_variables(1), 0.0)
    with pytest.raises(UsageError, match="start"):
        private_gibbs((0,), _Conditional((0, 1)), variables=_variables(2), n_sweeps=1, rng=rng)
    with pytest.raises(UsageError, match="n_updated"):
        random_scan(1.0, 3, 2)
