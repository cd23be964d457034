"""A part's answer: the rows that the whole posterior has, and draws that are every cell's own.

Which cells a part has: all of them once, in order, and nothing of the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.data_files.tables import table_of
from suffice.errors import UsageError
from suffice.pipeline.ask.batches import part_answer
from suffice.pipeline.ask.batches.part_answer import (
    DRAWN_VALUES,
    PartTerms,
    answer_part,
    cells_per_part,
    parts_of,
    posterior_of_alike,
)
from suffice.pipeline.ask.inference.posterior_terms import PosteriorTerms
from suffice.pipeline.ask.posterior.choice_of_engine import inferred, posterior_of
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.pipeline.math.distributions import many_cells
from suffice.pipeline.math.distributions.many_cells import Loops
from support.many_cells import many_cells_plan, noisy_values
from support.noisy import noisy_statistic

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic


DRAWS = 50


def cells(family: str, values: list[list[int]] | None = None) -> NoisyStatistic:
    """Some cells, with a key that a spreadsheet would run and one that is a number."""
    plan = many_cells_plan(family, 2, 3)
    values_of_cells = (
        noisy_values(plan, np.random.default_rng(7)) if values is None else np.array(values, dtype=object)
    )
    return noisy_statistic(
        plan.statistics[0],
        values_of_cells,
        groups={
            "shop": [f"=SUM({cell})" for cell in range(len(values_of_cells))],
            "day": list(range(len(values_of_cells))),
        },
    )


def asked(**changes: Any) -> PartTerms:
    options = {"mass": 0.9, "interval": "central", "draws": 0, "seed": 3, "place": 0, "n_cells": 6}
    return PartTerms(**{"terms": PosteriorTerms(), **options, **changes})


def test_loops_pay_for_all_cells_of_a_publication(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part has too few: machine code would never be made."""
    loops, paid = Loops(module="loops_that_are_not_kept", made_in=40.0, saves=1.0, fewest=1), []

    def watched(*given: Any) -> Posterior:
        paid.append(loops.pay(6))
        return inferred(*given)

    monkeypatch.setattr(part_answer, "inferred", watched)
    monkeypatch.setattr(many_cells, "is_kept", lambda _: False)
    for n_cells in (39, 40):
        answer_part(asked(n_cells=n_cells), 0, cells("bernoulli"))
    assert paid == [False, True]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bernoulli", "categorical", "normal"])
def test_the_rows_are_those_of_the_whole_posterior(family: str) -> None:
    statistic = cells(family)
    answer = answer_part(asked(), 0, statistic)
    expected = summarise(posterior_of(statistic), 0.9, 4000, np.random.default_rng(1), interval="central")
    rows = table_of(answer.summaries).to_pylist()
    assert [list(row) for row in rows] == [list(row) for row in expected]
    for ours, theirs in zip(rows, expected, strict=True):
        for name, value in theirs.items():
            if isinstance(value, float) and (family != "categorical" or name in {"mean", "sd"}):
                assert ours[name] == pytest.approx(value, rel=1e-9), name
            elif isinstance(value, float):
                assert abs(ours[name] - value) < theirs["sd"], "quantiles of draws"
            else:
                assert ours[name] == value
    assert answer.draws is None


def test_numbers_that_do_not_exist_are_null() -> None:
    # A cell that may have no record has no standard deviation of the variance under this prior.
    statistic = cells("normal", [[1 << 34, 1 << 34, 0]])
    terms: dict[str, Any] = {"prior": "NormalInverseGamma(0, 1, 1.5, 100)"}
    answer = answer_part(asked(terms=PosteriorTerms(**terms, clipping="modelled")), 0, statistic)
    rows = table_of(answer.summaries).to_pylist()
    assert rows[1]["parameter"] == "variance"
    assert rows[1]["sd"] is None
    assert rows[1]["lower"] is not None
    bounded = table_of(answer_part(asked(terms=PosteriorTerms(**terms)), 0, statistic).summaries).to_pylist()
    assert bounded[1]["sd"] is not None, "numbers within bounds have a largest variance"


ALIKE = [[100, 20], [60, 10], [100, 20], [100, 20], [60, 10], [5, 5]]


def test_cells_that_are_alike_have_one_posterior_and_draws_of_their_own() -> None:
    statistic = cells("bernoulli", ALIKE)
    computed: list[int] = []

    def counting(part: NoisyStatistic) -> Any:
        computed.append(len(part.values))
        return posterior_of(part)

    shared, whole = posterior_of_alike(statistic, counting, DRAWS), posterior_of(statistic)
    assert computed == [3]
    assert shared.groups == whole.groups
    np.testing.assert_allclose(shared.mean("probability"), whole.mean("probability"), rtol=1e-12)
    np.testing.assert_allclose(shared.conflict.tails, whole.conflict.tails, rtol=1e-12)
    points = np.linspace(0.01, 0.99, 18).reshape(6, 3)
    densities = [each.distribution.density("probability", points) for each in (shared, whole)]
    assert densities[0] is not None
    assert densities[1] is not None
    np.testing.assert_allclose(densities[0], densities[1], rtol=1e-9, atol=1e-300)
    draws = shared.sample(DRAWS)["probability"]
    assert draws.shape == (DRAWS, 6)
    assert len(np.unique(draws)) == draws.size, "no draw is given to two cells"


def test_one_cell_stands_for_no_more_than_draws_allow() -> None:
    statistic = cells("bernoulli", [[100, 20]] * 7)
    for draws, different in ((0, 1), (100, 4), (128, 4), (129, 7)):
        computed: list[int] = []

        def counting(part: NoisyStatistic, computed: list[int] = computed) -> Any:
            computed.append(len(part.values))
            return posterior_of(part)

        posterior_of_alike(statistic, counting, draws)
        assert computed == [different]


@pytest.mark.slow
def test_draws_of_shared_cells_follow_their_posterior() -> None:
    """Means of 6,000 draws are within 6 standard errors: a false alarm of 1e-8 for 6 cells."""
    shared = posterior_of_alike(cells("bernoulli", ALIKE), posterior_of, DRAWS)
    drawn = np.concatenate([shared.sample(DRAWS)["probability"] for _ in range(120)])
    error = (drawn.mean(axis=0) - shared.mean("probability")) / shared.sd("probability") * len(drawn) ** 0.5
    assert np.all(np.abs(error) < 6.0)
    wrong = np.roll(shared.mean("probability"), 1)
    control = (drawn.mean(axis=0) - wrong) / shared.sd("probability") * len(drawn) ** 0.5
    assert np.max(np.abs(control)) > 6.0


def test_a_part_is_a_function_of_its_number_and_of_the_seed() -> None:
    statistic = cells("bernoulli")

    def values(number: int, **changes: Any) -> list[float]:
        answer = answer_part(asked(draws=DRAWS, **changes), number, statistic)
        assert answer.draws is not None
        drawn: list[float] = answer.draws["value"].tolist()
        return drawn

    assert values(2) == values(2)
    assert values(2) != values(3)
    assert values(2) != values(2, place=1)
    assert values(2) != values(2, seed=4)


def test_conflicts_are_judged_with_all_cells_in_mind() -> None:
    """A tail that six cells call a conflict is none among a hundred million."""
    statistic = cells("bernoulli", [[1000, 0]] + [[80, 20]] * 5)
    terms: dict[str, Any] = {"prior": "Beta(2, 2)"}
    few = answer_part(asked(terms=PosteriorTerms(prior="Beta(300, 1000)")), 0, statistic)
    assert any(line.startswith("conflict") for line in few.notes)
    posterior = posterior_of(statistic, prior="Beta(2, 2)")
    least = float(posterior.conflict.tails.min())
    assert least > 0.0
    cells_enough = int(1.0 / least) + 10
    many = answer_part(asked(terms=PosteriorTerms(**terms), n_cells=cells_enough), 0, statistic)
    assert not any(line.startswith("conflict") for line in many.notes)


@given(n_keys=st.integers(1, 40), of_key=st.integers(1, 40), most=st.integers(1, 200))
def test_every_cell_is_in_one_part_and_keys_are_whole_where_they_fit(
    n_keys: int, of_key: int, most: int
) -> None:
    n_cells = n_keys * of_key
    parts = parts_of(n_cells, n_keys, most)
    assert [cell for part in parts for cell in range(part.start, part.stop)] == list(range(n_cells))
    assert [part.number for part in parts] == list(range(len(parts)))
    assert all(0 < part.stop - part.start <= most for part in parts)
    for part in parts:
        first, last = part.start // of_key, (part.stop - 1) // of_key
        assert of_key <= most or first == last, "a key that has more than a part shares none with others"
        assert of_key > most or (part.start % of_key == 0 and part.stop % of_key == 0), "keys are whole"


def test_a_part_has_fewer_cells_the_more_is_drawn_of_each() -> None:
    bernoulli, normal, categories = (
        many_cells_plan(family, 2, 2).statistics[0] for family in ("bernoulli", "normal", "categorical")
    )
    sizes = [cells_per_part(bernoulli, draws) for draws in (0, 1, 100, 4000, 10_000_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1
    assert cells_per_part(bernoulli, 0) > cells_per_part(normal, 0), "cells of a normal take longer"
    assert cells_per_part(categories, 1000) < cells_per_part(bernoulli, 1000), "each category has draws"
    assert cells_per_part(bernoulli, 4000) * 4000 <= DRAWN_VALUES


def test_too_many_parts_are_refused_with_a_way_out() -> None:
    with pytest.raises(UsageError, match="at most 4000: ask for fewer draws, or for fewer cells"):
        parts_of(10_000_000, 10_000_000, 131)
    assert len(parts_of(10_000_000, 10_000_000, 32_768)) == 306
