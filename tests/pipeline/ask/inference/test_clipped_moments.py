"""Posteriors of clipped normals: where clipping is modelled, what of it is said, and that intervals hold."""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import PriorError
from suffice.pipeline.ask.inference import any_joint_prior
from suffice.pipeline.ask.inference.chosen_priors import n_prior_for
from suffice.pipeline.ask.inference.posterior_terms import IGNORED, MODELLED
from suffice.pipeline.ask.pooling.pool import observed_again
from suffice.pipeline.ask.pooling.pool import pooled as pooled_by_default
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import normal
from suffice.pipeline.math.distributions.composite import PartlyClipped
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
from suffice.pipeline.math.priors.by_name import Independent
from suffice.pipeline.math.priors.mixtures import Mixture
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

ENTRY = {"family": "normal", "lower": "-10", "upper": "10"}
PRIOR = NormalInverseGamma(0, 0.5, 2, 20)
STEPS = 1 << 16
modelled_posterior = partial(posterior_of, clipping=MODELLED)
pooled = partial(pooled_by_default, clipping=MODELLED)


def released(
    means: list[float], sd: float, n: int, rng: np.random.Generator, *, family: str = "normal"
) -> NoisyStatistic:
    """Cells of n records with these means, at an epsilon of 1."""
    entry = (
        ENTRY
        if family == "normal"
        else {"family": family, "lower": str(math.exp(-10)), "upper": "22026.465794806718"}
    )
    plan = statistic_plan(entry, epsilon="1", public_n=False)
    x = np.rint(np.clip(rng.normal(np.array(means)[:, None], sd, (len(means), n)) / 10.0, -1.0, 1.0) * STEPS)
    x = x.astype(object)
    sums = np.stack([np.full(len(means), n, dtype=object), x.sum(axis=1), (x * x).sum(axis=1)], axis=1)
    spec = normal.NormalSpec.model_validate({**ENTRY, "column": "x"}, strict=False)
    return noisy_statistic(
        plan, normal.totals(spec, plan.design, sums) + discrete_laplace(plan.scale, (len(means), 3), rng)
    )


def interval(posterior: Posterior, parameter: str) -> np.ndarray:
    return posterior.distribution.quantiles(parameter, [0.025, 0.975], 0, np.random.default_rng(0))


def held(posterior: Posterior, parameter: str, truth: float) -> int:
    low, high = interval(posterior, parameter).T
    return int(np.sum((low <= truth) & (truth <= high)))


@pytest.mark.slow
def test_intervals_hold_what_they_do_not_where_clipping_is_ignored() -> None:
    """16 cells with 10 % clipped: fewer than 7 hold with a chance of 4.5e-7 for each parameter even at 90 %.

    The truth is fixed, so intervals of 95 % need not cover exactly: of 144 cells 93 and 94 % did.
    Where clipping is ignored, none of 160 did; at 2 %, 7 of 16 would with a chance of 1e-8.
    """
    rng = np.random.default_rng()
    statistic = released([5.0] * 16, 3.9, 16_000, rng)
    modelled = modelled_posterior(statistic, prior=PRIOR)
    ignored = modelled_posterior(statistic, prior=PRIOR, clipping=IGNORED)
    assert modelled.models_clipping is not None
    assert modelled.models_clipping.all()
    assert modelled.clipping is not None
    # What lies beyond the bounds is the model's word; what the bounds leave is the release's.
    assert modelled.clipping.is_warned.all()
    assert ignored.models_clipping is not None
    assert not ignored.models_clipping.any()
    assert ignored.clipping is not None
    assert not ignored.clipping.is_warned.any()
    for parameter, truth in (("mean", 5.0), ("variance", 3.9**2)):
        assert held(modelled, parameter, truth) >= 7
        assert held(ignored, parameter, truth) < 7


@pytest.mark.parametrize(("mean", "sd"), [(8.0, 7.05), (20.0, 12.0)])
def test_parameters_far_from_the_moments_of_clipped_records_are_found(mean: float, sd: float) -> None:
    """Many records, of which 40 and 80 % are clipped on one side: released are about their expectations."""
    n = 10_000
    x = np.clip(stats.norm.ppf((np.arange(n) + 0.5) / n, mean / 10.0, sd / 10.0), -1.0, 1.0)
    x = np.rint(x * STEPS).astype(np.int64).astype(object)
    spec = normal.NormalSpec.model_validate({**ENTRY, "column": "x"}, strict=False)
    plan = statistic_plan(ENTRY, epsilon="1", public_n=False)
    sums = np.array([[n, x.sum(), (x * x).sum()]], dtype=object)
    posterior = modelled_posterior(noisy_statistic(plan, normal.totals(spec, plan.design, sums)))
    assert posterior.models_clipping is not None
    assert posterior.models_clipping.all()
    for parameter, truth in (("mean", mean), ("variance", sd**2)):
        low, middle, high = posterior.distribution.quantiles(
            parameter, [0.025, 0.5, 0.975], 0, np.random.default_rng(0)
        )[0]
        assert low < truth < high
        # About normal, so many records; and the records are where they are expected.
        assert high - middle == pytest.approx(middle - low, rel=0.2)
        assert abs(middle - truth) < 0.15 * (high - low)


@pytest.mark.slow
def test_cells_in_which_clipping_cannot_matter_keep_the_exact_posterior() -> None:
    rng = np.random.default_rng(7)
    statistic = released([0.0, 8.5, -1.0], 1.0, 2000, rng)
    # Concentration 3: without a finite deviation of the variance, cells are restricted by draws.
    prior = NormalInverseGamma(0, 0.01, 3, 4)
    posterior = modelled_posterior(statistic, prior=prior)
    plain = modelled_posterior(statistic, prior=prior, clipping=IGNORED)
    assert posterior.models_clipping is not None
    assert posterior.models_clipping.tolist() == [False, True, False]
    assert isinstance(posterior.distribution, PartlyClipped)
    for parameter in ("mean", "variance"):
        both = interval(posterior, parameter), interval(plain, parameter)
        np.testing.assert_array_equal(both[0][[0, 2]], both[1][[0, 2]])
        assert np.all(both[0][1] != both[1][1])
    drawn = posterior.distribution.sample(400, rng)
    assert drawn["variance"].shape == (400, 3)
    wide = modelled_posterior(statistic.take(np.array([0, 2])), prior=prior)
    assert wide.models_clipping is not None
    assert not wide.models_clipping.any()
    assert not isinstance(wide.distribution, PartlyClipped)


@pytest.mark.parametrize(
    "prior",
    [
        Mixture(0.3, NormalInverseGamma(0, 0.5, 2, 20), 0.7, NormalInverseGamma(0, 0.1, 3, 200)),
        Independent(mean=stats.norm(0, 10), sd=stats.halfnorm(scale=10)),
    ],
    ids=["mixture", "independent"],
)
def test_any_prior_of_a_normal_is_taken(prior: Mixture | Independent) -> None:
    """Two thousand records overrule these priors: intervals are those under another, to a tenth."""
    statistic = released([5.0], 4.0, 2000, np.random.default_rng(3))
    posterior, reference = (modelled_posterior(statistic, prior=each) for each in (prior, PRIOR))
    assert posterior.models_clipping is not None
    assert posterior.models_clipping.all()
    for parameter in ("mean", "variance"):
        (low, high), (other_low, other_high) = (
            interval(posterior, parameter)[0],
            interval(reference, parameter)[0],
        )
        assert max(abs(low - other_low), abs(high - other_high)) < 0.15 * (other_high - other_low)


@pytest.mark.slow
def test_a_lognormal_column_is_modelled_on_its_logarithm() -> None:
    """Bounds e^-10 and e^10: the very statistic of a normal column of logarithms."""
    logarithms = released([5.0], 4.0, 500, np.random.default_rng(5), family="lognormal")
    plain = dataclasses.replace(logarithms, plan=released([5.0], 4.0, 500, np.random.default_rng(5)).plan)
    posterior, reference = (modelled_posterior(each, prior=PRIOR) for each in (logarithms, plain))
    assert posterior.models_clipping is not None
    assert posterior.models_clipping.all()
    for parameter, other in (("log_mean", "mean"), ("log_variance", "variance")):
        np.testing.assert_allclose(interval(posterior, parameter), interval(reference, other), rtol=1e-4)


@pytest.mark.slow
def test_disjoint_and_repeated_releases_are_modelled_likewise() -> None:
    """Two data sets pooled are sharper than one; two noises of one data set are modelled as well."""
    rng = np.random.default_rng(11)
    parts = [released([5.0], 4.0, 1000, rng) for _ in range(2)]
    both = pooled(parts, prior=PRIOR, n_prior=None, rng=rng)
    first = modelled_posterior(parts[0], prior=PRIOR)
    assert both.models_clipping is not None
    assert both.models_clipping.all()
    assert both.sd("mean")[0] < 0.85 * first.sd("mean")[0]
    noise = discrete_laplace(parts[0].plan.scale, (1, 3), rng) - discrete_laplace(
        parts[0].plan.scale, (1, 3), rng
    )
    again = modelled_posterior(
        observed_again([parts[0], dataclasses.replace(parts[0], values=parts[0].values + noise)]), prior=PRIOR
    )
    assert again.models_clipping is not None
    assert again.models_clipping.all()
    ignored = pooled(parts, prior=PRIOR, n_prior=None, clipping=IGNORED, rng=rng)
    assert ignored.models_clipping is not None
    assert not ignored.models_clipping.any()
    assert ignored.mean("variance")[0] < both.mean("variance")[0]


@pytest.mark.slow
def test_what_cannot_be_resolved_keeps_its_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three cells the second is refused, as by a prior far from its values: the others are modelled."""
    resolve = any_joint_prior.pooled_joint_distribution

    def refusing(parts: list[NoisyStatistic], *rest: Any, **options: Any) -> Any:
        if 1 in parts[0].groups["cell"]:
            message = "so far apart that the posterior cannot be resolved"
            raise PriorError(message)
        return resolve(parts, *rest, **options)

    monkeypatch.setattr(any_joint_prior, "pooled_joint_distribution", refusing)
    statistic = released([7.0, 7.0, 7.0], 4.0, 10_000, np.random.default_rng(7))
    posterior = modelled_posterior(statistic, prior=PRIOR)
    plain = modelled_posterior(statistic, prior=PRIOR, clipping=IGNORED)
    assert posterior.models_clipping is not None
    assert posterior.models_clipping.tolist() == [True, False, True]
    assert posterior.clipping is not None
    assert posterior.clipping.is_warned.tolist() == [True, True, True]
    # The second may be restricted by 8,000 draws each time: 6 standard errors of a difference are .1 sds.
    changed = np.abs(posterior.mean("mean") - plain.mean("mean")) > 0.1 * plain.sd("mean")
    assert changed.tolist() == [True, False, True]


def test_a_plug_in_posterior_never_models_clipping() -> None:
    statistic = released([5.0], 4.0, 2000, np.random.default_rng(7))
    posterior = posterior_of(statistic, prior=PRIOR, method="plug-in")
    assert posterior.models_clipping is None
    assert posterior.clipping is not None
    assert not posterior.clipping.is_warned.any()


def test_a_prior_that_contradicts_the_release_keeps_the_warning() -> None:
    """A mean 900 half ranges away, known to 1e-7 of one: refused at once, and never without a typed error."""
    statistic = released([0.0], 3.0, 5000, np.random.default_rng(7))
    prior = NormalInverseGamma(-9000, 1e9, 1e8, 1e4)
    with pytest.raises(PriorError, match="so far apart"):
        any_joint_prior.pooled_joint_distribution(
            [statistic], prior, [n_prior_for(statistic, None)], clips=True
        )
    posterior = modelled_posterior(statistic, prior=prior)
    assert posterior.clipping is not None
    assert posterior.clipping.is_warned.all()
    assert abs(posterior.mean("mean")[0] + 9000.0) < 1.0
