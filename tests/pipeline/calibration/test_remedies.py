"""Remedies: told by the same data sets, beyond chance, and never at the cost of truths within the bounds."""

from __future__ import annotations

import dataclasses

import numpy as np

from suffice.pipeline.calibration.remedies import Remedy, comes_nearer, tried_remedies
from suffice.pipeline.calibration.result import advice
from suffice.pipeline.posterior.bounded_records import IGNORED
from suffice.pipeline.posterior.posterior import PLUG_IN
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
    """Plug-in intervals hold 50 % where the others hold 95: of 200, no help has a chance below 1e-12."""
    model = generative_model_for("bernoulli", n=20, epsilon="0.1", method=PLUG_IN)
    remedies = tried_remedies(model, 200, np.random.default_rng(), prior_follows_bounds=True)
    (method, epsilon) = remedies
    assert (method.change, method.helps) == ("method noise-aware", True)
    assert method.before == epsilon.before < 0.7 < method.after
    assert epsilon.change == "4 times the epsilon"


def test_modelling_the_clipping_helps_where_rates_lie_at_the_bound() -> None:
    conditions = ({"upper": "5"}, "Gamma(40, 12)")
    model = dataclasses.replace(
        generative_model_for("poisson", n=500, conditions=conditions), clipping=IGNORED
    )
    remedies = tried_remedies(model, 40, np.random.default_rng(), prior_follows_bounds=False)
    by_change = {remedy.change: remedy for remedy in remedies}
    assert set(by_change) == {"clipping modelled", "4 times the epsilon", "upper: 10", "upper: 2"}
    assert by_change["clipping modelled"].helps
    assert by_change["upper: 10"].after > 0.7 > by_change["upper: 2"].after


def test_bounds_that_spoil_truths_within_them_are_not_advised() -> None:
    """Of bounds twice as wide the noise hides more of the truths that the bounds hold."""
    model = generative_model_for(
        "weibull", n=300, conditions=({"shape": "1.7", "upper": "60"}, "Gamma(1, 527)")
    )
    remedies = tried_remedies(model, 60, np.random.default_rng(), prior_follows_bounds=False)
    for remedy in remedies:
        if remedy.before_within is not None and remedy.after_within is not None:
            assert not remedy.helps or remedy.after_within > remedy.before_within - 0.2
    assert [remedy.change for remedy in remedies] == ["4 times the epsilon", "upper: 120", "upper: 30"]


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
