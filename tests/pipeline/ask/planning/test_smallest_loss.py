"""Planning backwards: the answer reaches its target, less does not, and what cannot be is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import suffice
from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.planning import smallest_loss as planning
from suffice.pipeline.ask.planning.smallest_loss import (
    NeededLoss,
    Trials,
    WantedWidth,
    parse_target,
    smallest_loss,
)
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.documents import document
from support.entries import entry_of
from support.honest_populations import MODEL, populations
from support.noisy import noisy_statistic, statistic_plan
from support.samples import drawn, sampled_spec

if TYPE_CHECKING:
    from suffice.pipeline.spec.spec import Spec


def spec_of(share: str = "1", neighboring: str = "add_or_remove_one") -> Spec:
    return load_spec(
        {
            "name": "planned",
            "dataset": "planned",
            "source": {"parquet": "rows/"},
            "privacy": {"epsilon": "0.001", "neighboring": neighboring},
            "statistics": {
                "flag": {"family": "bernoulli", "column": "f", "nulls": {"value": "0"}},
                "kind": {
                    "family": "categorical",
                    "column": "k",
                    "categories": ["U A", "[B]"],
                    "other": "true",
                    "share": share,
                },
            },
        }
    )


@pytest.mark.parametrize(
    ("family", "parameter"), [("exponential", "rate"), ("pareto", "shape"), ("normal_known_mean", "variance")]
)
def test_without_noise_there_is_none_that_matters(
    family: str, parameter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where records are clipped widths without noise are those of a large epsilon; of 0.1 they are not."""
    document: dict[str, Any] = {
        "name": "planned",
        "dataset": "planned",
        "source": {"parquet": "rows/"},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
        "statistics": {"measured": entry_of(family, dict(populations(family, MODEL).entry))},
    }
    target = WantedWidth(statistic="measured", parameter=parameter, category=None, width=1.0)
    trials = Trials.of(load_spec(document), target, n=30, simulations=21, rng=1)
    silent = np.median(trials.widths_without_noise())
    for epsilon, is_same in (("10000", True), ("0.1", False)):
        monkeypatch.setattr(planning, "_NO_NOISE", Fraction(epsilon))
        assert (np.median(trials.widths_without_noise()) == pytest.approx(silent, rel=1e-3)) == is_same


def widths(epsilon: Fraction, n: int, simulations: int, rng: np.random.Generator) -> np.ndarray:
    """Widths at an epsilon, by other code and other random numbers than those under test."""
    plan = statistic_plan({"family": "bernoulli"}, epsilon=f"{float(epsilon):.6f}", public_n=True)
    true = rng.binomial(n, rng.random(simulations))[:, None] + np.rint(
        rng.laplace(0, plan.scale, (simulations, 1))
    ).astype(int)
    posterior = posterior_of(noisy_statistic(plan, true, public_n=n))
    interval = posterior.credible_interval("probability", draws=1000, rng=rng)
    return np.asarray(interval[:, 1] - interval[:, 0])


@pytest.mark.slow
def test_the_answer_is_where_the_width_is_reached() -> None:
    """Median widths of 1,000 fresh simulations: 6 standard errors of both sides' medians, and no more."""
    needed = smallest_loss(spec_of(neighboring="replace_one"), "flag probability width 0.12", n=1000)
    assert needed.statistic_loss.amount == needed.loss.amount / 2
    assert needed.width <= 0.12
    assert needed.width_without_noise < 0.07
    error = 6 * np.hypot(needed.width_standard_error, needed.width_standard_error * np.sqrt(200 / 1000))
    assert 0 < error < 0.02
    assert 0 < needed.standard_error < 0.2 * needed.loss.amount
    rng = np.random.default_rng(7)
    assert abs(np.median(widths(needed.statistic_loss.amount, 1000, 1000, rng)) - 0.12) < error + 0.002
    assert np.median(widths(needed.statistic_loss.amount * 2 / 3, 1000, 1000, rng)) > 0.12 + error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "neighboring", "prior", "target", "n", "size"),
    [
        (
            {"family": "bernoulli", "column": "x"},
            "add_or_remove_one",
            "Beta(1, 1)",
            "x probability width 0.1",
            500,
            40,
        ),
        (
            {"family": "poisson", "column": "x", "upper": "60"},
            "add_or_remove_one",
            "Gamma(20, 2)",
            "x rate width 0.6",
            1000,
            40,
        ),
        (
            {"family": "poisson", "column": "x", "upper": "4", "nulls": {"value": "0"}},
            "replace_one",
            "Gamma(5, 2)",
            "x rate width 0.9",
            100,
            12,
        ),
    ],
    ids=["bernoulli", "poisson", "clipped"],
)
def test_a_fine_grid_of_all_simulations_agrees(
    entry: dict[str, Any], neighboring: str, prior: str, target: str, n: int, size: int
) -> None:
    """The smallest epsilon of a fine grid of the same simulations is at most 2 % smaller, and no larger."""
    spec = load_spec(
        {
            "name": "grid",
            "dataset": "grid",
            "source": {"parquet": "rows/"},
            "privacy": {"epsilon": "1", "neighboring": neighboring},
            "statistics": {"x": entry},
        }
    )
    asked = parse_target(target)
    needed = smallest_loss(spec, asked, n=n, prior=prior, simulations=size, rng=3)
    trials = Trials.of(spec, asked, n=n, prior=prior, simulations=size, rng=3)
    grid = [needed.loss.amount * (1 + Fraction(step, 100)) for step in (-8, -5, -3, -2, 0, 4)]
    medians = [float(np.median(trials.widths(epsilon))) for epsilon in grid]
    assert [median <= asked.width for median in medians] == [False, False, False, False, True, True]
    assert needed.width == pytest.approx(medians[4], rel=1e-6)
    assert needed.width_without_noise == pytest.approx(np.median(trials.widths_without_noise()))
    assert needed.width_without_noise < np.median(trials.widths(Fraction(50))) * 1.001


@pytest.mark.slow
def test_a_prior_without_moments_is_planned_for() -> None:
    """What only a prior with a variance can answer, its plug-in posterior, is not asked for."""
    spec = load_spec(
        {
            "name": "planned",
            "dataset": "planned",
            "source": {"parquet": "rows/"},
            "privacy": {"epsilon": "1", "neighboring": "replace_one"},
            "statistics": {
                "delay": {
                    "family": "normal",
                    "column": "delay",
                    "lower": "-60",
                    "upper": "100",
                    "nulls": {"value": "0"},
                }
            },
        }
    )
    prior = "Independent(mean=Normal(20, 10), sd=HalfCauchy(10))"
    needed = smallest_loss(spec, "delay mean width 20", n=500, prior=prior, simulations=3, rng=1)
    assert 0.01 < needed.loss.amount < 1
    assert needed.width <= 20


def test_progress_ends_with_all_that_was_done() -> None:
    told: list[tuple[int, int]] = []
    smallest_loss(
        spec_of(neighboring="replace_one"),
        "flag probability width 0.2",
        n=300,
        simulations=40,
        rng=7,
        progress=lambda done, total: told.append((done, total)),
    )
    *before, last = told
    assert last[0] == last[1]
    assert all(done < total for done, total in before)
    assert [done for done, _ in before] == sorted(done for done, _ in before)


@pytest.mark.slow
def test_a_seed_makes_the_answer_repeatable_and_shares_count() -> None:
    def needed(share: str, text: str, neighboring: str) -> NeededLoss:
        return smallest_loss(spec_of(share, neighboring), text, n=300, simulations=40, rng=7)

    flag = needed("1", "flag probability width 0.2", "replace_one")
    assert needed("1", "flag probability width 0.2", "replace_one") == flag
    smaller = needed("3", "flag probability width 0.2", "replace_one")
    assert flag.statistic_loss.amount == flag.loss.amount / 2
    assert smaller.statistic_loss.amount == smaller.loss.amount / 4
    assert float(smaller.loss.amount / flag.loss.amount) == pytest.approx(2, rel=0.05)
    assert (flag.n_prior, flag.prior) == ("300", "Beta(1, 1)")
    kind = needed("1", "kind probability[U A] width 0.2", "add_or_remove_one")
    assert (kind.n_prior, kind.prior) == ("Uniform(0, 600)", "Dirichlet(1)")
    written = document(kind)
    assert (written["category"], written["width"], written["n"]) == ("U A", 0.2, 300)
    assert "standard error" in str(kind)


@pytest.mark.parametrize(
    ("text", "options", "error", "message"),
    [
        ("flag probability", {}, UsageError, "STATISTIC PARAMETER width"),
        ("flag probability width -1", {}, UsageError, "STATISTIC PARAMETER width"),
        ("flag probability width nan", {}, UsageError, "STATISTIC PARAMETER width"),
        ("flag probability width wide", {}, UsageError, "STATISTIC PARAMETER width"),
        ("absent mean width 1", {}, UsageError, "no statistic"),
        ("flag rate width 1", {}, UsageError, "it has probability"),
        ("flag probability[x] width 1", {}, UsageError, "categories"),
        ("kind probability width 1", {}, UsageError, r"U A, \[B\], other"),
        ("kind probability[x] width 1", {}, UsageError, r"U A, \[B\], other"),
        ("flag probability width 0.05", {}, UsageError, "without any noise"),
        ("flag probability width 0.96", {}, UsageError, "prior alone"),
        ("flag probability width 0.3", {"prior": "Beta(900, 900)"}, UsageError, "prior alone"),
        ("flag probability width 0.3", {"prior": "Gamma(1, 1)"}, PriorError, "must be Beta"),
        ("flag probability width 0.3", {"n": 0}, UsageError, "above 0"),
        ("flag probability width 0.3", {"simulations": 0}, UsageError, "above 0"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    text: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        suffice.smallest_loss(spec_of(), text, **{"n": 500, "simulations": 200, **options})


def test_a_target_reads_back_as_written() -> None:
    for text in ("arr_delay mean width 2", "kind probability[[B]] width 0.01"):
        assert str(parse_target(text)) == text
    assert parse_target(" a  b[c d]  width 1e-3 ") == WantedWidth(
        statistic="a", parameter="b", category="c d", width=1e-3
    )


def test_posteriors_that_take_mcmc_are_refused() -> None:
    bounds = {"lower": 0, "upper": 1}
    spec = load_spec(
        {
            "name": "pairs",
            "dataset": "pairs",
            "source": {"parquet": "rows/"},
            "privacy": {"epsilon": 1, "neighboring": "add_or_remove_one", "unit": "row"},
            "statistics": {"pair": {"family": "multivariate_normal", "columns": {"a": bounds, "b": bounds}}},
        }
    )
    with pytest.raises(UsageError, match="take MCMC"):
        suffice.smallest_loss(spec, "pair mean width 0.1", n=100)


def test_a_sample_has_no_width_to_plan_for() -> None:
    spec = sampled_spec({"flag": drawn("f")})
    with pytest.raises(UsageError, match="flag is released as a posterior sample"):
        suffice.smallest_loss(spec, "flag probability width 0.1", n=100)
