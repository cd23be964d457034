"""Remedies: told by the same data sets, beyond chance, and never at the cost of truths within the bounds."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from suffice.pipeline.ask.calibration.remedies import (
    SIMULATIONS,
    SLOW_SIMULATIONS,
    Remedy,
    advice,
    comes_nearer,
    data_sets,
    tried_remedies,
)
from suffice.pipeline.ask.calibration.verdict import DRAWS, ranks_of
from suffice.pipeline.ask.inference.posterior_terms import BY_EVIDENCE, IGNORED, MODELLED, PLUG_IN
from support.generative_models import generative_model_for


def test_what_chance_explains_does_not_help() -> None:
    """Ten truths gained and none lost have a chance of 2^-10: among four remedies that is no help."""
    before = np.arange(100) < 60
    ten, fifteen = np.arange(100) < 70, np.arange(100) < 75
    assert comes_nearer(before, ten, 1)
    assert not comes_nearer(before, ten, 4)
    assert comes_nearer(before, fifteen, 4)
    assert not comes_nearer(fifteen, before, 4)
    every = np.ones(1000, dtype=bool)
    assert comes_nearer(every, np.arange(1000) < 950, 4)  # intervals that were too wide


def test_the_noise_aware_method_helps_where_noise_was_ignored() -> None:
    """Plug-in intervals hold 50 % where the others hold 95: of 200, no help has a chance below 1e-12.

    140 of 200 hold with chance 1e-8, and even at 53 % with 7e-7.
    """
    model = generative_model_for("bernoulli", n=20, epsilon="0.1", method=PLUG_IN)
    remedies = tried_remedies(model, 200, np.random.default_rng(), prior_follows_bounds=True)
    (method, epsilon) = remedies
    assert (method.change, method.helps) == ("method noise-aware", True)
    assert method.before == epsilon.before < 0.7 < method.after
    assert epsilon.change == "4 times the epsilon"


@pytest.mark.slow
@pytest.mark.parametrize("clipping", [BY_EVIDENCE, IGNORED])
def test_each_is_judged_by_the_records_that_its_posterior_is_of(clipping: str) -> None:
    """Rates about 3.3 with a bound of 5: an eighth of the records is clipped.

    Asked for rates before clipping, posteriors of clipped records would hold hardly any; nor would those that
    model clipping, asked for rates of clipped records. Of 40 truths that are held in 95 %, fewer than 28 are
    held with chance 4e-8: 2e-7 for five runs.
    """
    conditions = ({"upper": "5"}, "Gamma(40, 12)")
    model = dataclasses.replace(
        generative_model_for("poisson", n=5000, conditions=conditions), clipping=clipping
    )
    remedies = tried_remedies(model, 40, np.random.default_rng(), prior_follows_bounds=False)
    by_change = {remedy.change: remedy for remedy in remedies}
    assert set(by_change) == {"clipping modelled", "4 times the epsilon", "upper: 10", "upper: 2"}
    for remedy in remedies:
        assert min(remedy.before, remedy.after) >= 0.7
        assert not remedy.helps  # what holds all truths cannot be told from 95 % by 40 of them
    truth, sizes = model.truth(40, np.random.default_rng(1)), np.full(40, 5000)
    sums = model.sums(truth, sizes, np.random.default_rng(2)).clipped
    noise = np.zeros((40, len(model.plan.components)), dtype=np.int64)
    _, before_clipping, _ = ranks_of(model, truth, sums, noise, 3)
    assert np.mean((before_clipping > 0) & (before_clipping < DRAWS)) < 0.3  # what not judging would find


def test_remedies_with_slow_posteriors_are_tried_on_few_data_sets() -> None:
    model = generative_model_for("normal", n=20)
    modelled = dataclasses.replace(model, clipping=MODELLED)
    assert data_sets([model], 1000) == SIMULATIONS
    assert data_sets([model, modelled], 1000) == SLOW_SIMULATIONS
    assert data_sets([model, modelled], 3) == 3


@pytest.mark.slow
def test_bounds_that_spoil_truths_within_them_are_not_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where noise is ignored, bounds twice as wide clip less, and add noise to truths that the bounds hold.

    In eight runs 95 % intervals held 29 to 35 % of the truths with a bound of 60, and 60 to 66 % with one of
    120; of those within the bounds 38 to 44 % and 18 to 28 %. Of 1,000 within them 192 were lost and 17
    gained; 51 more losses than gains are told, nine standard deviations less: 1e-9 with some room.
    """
    monkeypatch.setattr("suffice.pipeline.ask.calibration.remedies.SIMULATIONS", 1000)
    model = generative_model_for(
        "weibull", n=300, conditions=({"shape": "1.7", "upper": "60"}, "Gamma(1, 527)"), method=PLUG_IN
    )
    remedies = tried_remedies(model, 1000, np.random.default_rng(), prior_follows_bounds=False)
    (_, epsilon, wider, narrower) = remedies
    assert [remedy.change for remedy in remedies] == [
        "method noise-aware",
        "4 times the epsilon",
        "upper: 120",
        "upper: 30",
    ]
    assert wider.after > wider.before + 0.1
    assert wider.before_within is not None
    assert wider.after_within is not None
    assert wider.after_within < wider.before_within
    assert not wider.helps
    assert not narrower.helps
    assert epsilon.before == wider.before


def test_advice_names_what_helps_alone() -> None:
    spoils = Remedy(
        change="upper: 120",
        parameter="rate",
        before=0.33,
        after=0.69,
        before_within=0.34,
        after_within=0.0,
        helps=False,
        simulations=400,
    )
    (first, table) = advice([spoils])
    assert first.startswith("what helps: nothing that was tried")
    assert "69.0 %" in table
    assert "0.0 %" in table
    (first, _) = advice([spoils, dataclasses.replace(spoils, change="clipping modelled", helps=True)])
    assert first.startswith("what helps: clipping modelled,")
    assert advice([]) == ()
