"""Posteriors under small concentrations, much of which lies beyond numbers, against sums over N and S."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pytest
from scipy import special

from suffice.errors import PriorError
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.ask.posterior.likelihood import Likelihood, likelihood_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.dirichlet import Beta
from suffice.pipeline.math.distributions.distribution import Line, coordinate_of
from suffice.pipeline.math.distributions.gamma import InverseGamma
from suffice.pipeline.math.priors.record_count import Reciprocal
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

ENTRIES: dict[str, dict[str, Any]] = {
    "bernoulli": {},
    "binomial": {"trials": "3"},
    "poisson": {"upper": "6"},
    "geometric": {"upper": "8"},
}
REACH = {"bernoulli": 1, "binomial": 3, "poisson": 6, "geometric": 8}
LIMITS = {"poisson": (0.0, 6.0), "geometric": (1.0 / 9.0, 1.0)}
CELLS = [[0, 1], [5, 3], [-1, 2]]
N_PRIOR = Reciprocal(10**9)
CONCENTRATIONS = [(1.0, 1.0), (0.1, 0.1), (0.01, 0.01), (0.001, 0.001), (1.0, 0.01), (0.001, 3.0)]


def released(family: str) -> NoisyStatistic:
    """Two cells of few records and one of none, in multiples of one record's share."""
    plan = statistic_plan({"family": family, **ENTRIES[family]}, epsilon="1.2", public_n=False)
    return noisy_statistic(plan, np.array(CELLS) * REACH[family])


def enumerated(statistic: NoisyStatistic, a: float, b: float) -> tuple[Floats, Floats]:
    """Log evidence and the posterior mean given the bounds, from every N and S and no engine."""
    family, scale, reach = statistic.plan.family, statistic.plan.scale, REACH[statistic.plan.family]
    n, total = (each.ravel() for each in np.meshgrid(np.arange(101.0), np.arange(801.0), indexing="ij"))
    rows = np.maximum(n, 1.0)
    log_n = N_PRIOR.log_prob(n)
    if family in {"bernoulli", "binomial"}:
        possible, trials = total <= reach * n, reach * n
        rest = np.where(possible, trials - total, 0.0)
        ways = special.gammaln(trials + 1) - special.gammaln(total + 1) - special.gammaln(rest + 1)
        first, second = a + total, b + rest
    elif family == "geometric":
        possible = (n > 0) | (total == 0)
        ways = special.gammaln(total + rows) - special.gammaln(rows) - special.gammaln(total + 1)
        first, second = a + n, b + total
    else:
        possible = (n > 0) | (total == 0)
        ways = total * np.log(rows) - special.gammaln(total + 1)
        first, second = a + total, b + n
    inside, times_parameter = of(family, first, second)
    # Pairs next to none of which is within the bounds have no weight.
    possible &= np.isfinite(inside)
    with np.errstate(invalid="ignore"):
        given_bounds = np.where(possible, np.exp(times_parameter - inside), 0.0)
    ways = ways + inside - of(family, a, b)[0]
    evidence, mean = [], []
    for values in statistic.values.astype(np.float64):
        of_sum, of_rest = values[::-1] if family == "bernoulli" else values
        noise = -(np.abs(of_sum - total) + np.abs(of_rest - (reach * n - total))) / scale
        weight = np.where(possible, log_n + ways + noise, -np.inf)
        top = special.logsumexp(weight)
        evidence.append(top + 2.0 * np.log(np.tanh(0.5 / scale)))
        mean.append(np.sum(np.exp(weight - top) * given_bounds))
    return np.array(evidence), np.array(mean)


def of(family: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Logs of the integrals of a conjugate density's kernel, and of it times the parameter, within bounds."""
    with np.errstate(divide="ignore"):
        if family == "poisson":
            high = LIMITS[family][1]
            kernel = [
                special.gammaln(each) - each * np.log(b) + np.log(special.gammainc(each, high * b))
                for each in (a, a + 1.0)
            ]
        else:
            high = 1.0 - LIMITS.get(family, (0.0, 1.0))[0]
            kernel = [
                special.betaln(each, b) + np.log(special.betainc(b, each, high)) for each in (a, a + 1.0)
            ]
    return kernel[0], kernel[1]


def asked(statistic: NoisyStatistic) -> Likelihood:
    """Its likelihood, worked out anew."""
    answer = likelihood_of(statistic, N_PRIOR, lambda posterior: posterior, uuid4().hex)
    assert isinstance(answer, Likelihood)
    return answer


@pytest.mark.slow
@pytest.mark.parametrize("family", ENTRIES)
def test_evidence_and_means_are_sums_over_latent_pairs(family: str) -> None:
    statistic = released(family)
    likelihood = asked(statistic)
    kind: Any = FAMILIES[family].prior
    for a, b in CONCENTRATIONS:
        if family == "geometric" and (a, b) == (0.001, 3.0):  # next to none of it is within the bounds
            continue
        prior = kind(a, b)
        evidence, mean = enumerated(statistic, a, b)
        for posterior in (
            likelihood.posterior(prior),
            posterior_of(statistic, prior=prior, n_prior=N_PRIOR, clipping="ignored"),
        ):
            # What lies within the bounds is known from tables, to a thousandth of it.
            np.testing.assert_allclose(posterior.log_evidence, evidence, atol=2e-3, err_msg=str(prior))
            np.testing.assert_allclose(posterior.mean(), mean, atol=1e-3, err_msg=str(prior))


def test_much_of_them_lies_beyond_numbers() -> None:
    # What a sum over numbers alone would leave out is a hundred times what the test above allows.
    low, high = Line.LOGIT.ends
    beyond = special.betainc(0.01, 0.01, np.exp(low)) + special.betainc(0.01, 0.01, np.exp(-high))
    assert beyond > 0.3
    assert special.gammainc(0.01, np.exp(Line.LOGARITHM.ends[0])) > 0.1


def test_densities_far_out_are_exponentials() -> None:
    latent: Any = FAMILIES["bernoulli"].latent
    _, update = latent(released("bernoulli"), Beta(0.001, 0.002), N_PRIOR)
    coordinate = coordinate_of(update(np.zeros(1), np.zeros(1)))
    position = np.array([-5000.0, -700.0, 700.0, 5000.0])
    expected = np.where(position < 0, 0.001 * position, -0.002 * position) - special.betaln(0.001, 0.002)
    np.testing.assert_allclose(coordinate.log_density(position[:, None])[:, 0], expected, atol=1e-9)


def test_what_a_table_would_leave_out_is_refused() -> None:
    entry = {"family": "laplace", "location": "-3", "half_range": "8"}
    plan = statistic_plan(entry, epsilon="1", public_n=False)
    statistic = noisy_statistic(plan, np.array([[40, 40 * 4]])[:, -len(plan.components) :])
    with pytest.raises(PriorError, match=r"too large for the table.*Release.posterior\("):
        asked(statistic).posterior(InverseGamma(0.01, 1.0))
