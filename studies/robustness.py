"""Calculators of Dimitrakakis et al.: each returns a bound together with whether it is a guarantee.

Assumption 1: |log p(x|theta) - log p(y|theta)| <= L rho(x, y) for every theta of the declared set. What
follows from it, Theorems 1(i), 2(i) and 3, is proved, and a draw of the posterior costs 2 L rho.

Assumption 2: the prior gives the parameters where that holds at least the mass 1 - exp(-c L), for every L >
0. What the paper concludes from it, Theorems 1(ii) and 2(ii), is false: ``studies.robustness_checks`` has
counterexamples. So nothing that rests on it is a guarantee.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize, special

from studies.bound import (
    Bound,
    Quantity,
    interval_of,
    number_of,
    smoothness_of,
    whole_number_of,
)
from studies.le_cam import le_cam
from studies.plotting import draw_line, logarithmic, picture
from studies.result import conclude
from studies.robustness_checks import RECORDS, counterexample, rows_of_checks
from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from studies.result import Result, Size

__all__ = [
    "KAPPA",
    "OMEGA",
    "concentration",
    "distinguishability",
    "kl_bound",
    "le_cam",
    "lipschitz",
    "privacy_of_posterior_sampling",
    "total_variation_bound",
]

OMEGA = float(optimize.brentq(lambda w: math.exp(w) - 2.0 * w - 1.0, 0.5, 3.0, xtol=1e-15))
"""The solution of exp(w) = 2 w + 1 that is not 0."""
KAPPA = 2.0 * OMEGA / (1.0 - math.exp(-OMEGA)) ** 2
METRICS = {
    "exponential": "absolute",
    "laplace": "absolute",
    "beta-binomial": "absolute",
    "normal": "squares",
    "network": "degrees",
}
"""Of each family: |x - y|; |x^2 - y^2| + 2 |x - y|; the sum over variables that differ of 1 + degree."""
PARAMETERS = {
    "exponential": ("rate",),
    "laplace": ("scale",),
    "beta-binomial": ("probability", "trials"),
    "normal": ("mean", "variance"),
    "network": ("least_probability",),
}
CONCLUSION = (
    "Theorems 1(i) and 2(i), Remark 1 and Lemma 3 hold, and Lemma 7 where its epsilon is the least chance of "
    "an outcome. Theorems 1(ii) and 2(ii) are false as stated: exponential data with one record of 1 among "
    "zeros break the claim from 16 records on."
)


def _check(family: str, metric: str) -> None:
    if METRICS.get(family) != metric:
        known = ", ".join(f"{name} ({formula})" for name, formula in METRICS.items())
        message = f"a family goes with its metric: {known}"
        raise UsageError(message)


def lipschitz(family: str, parameters: Mapping[str, tuple[float, float]], metric: str) -> Bound:
    """Return L of Assumption 1 over declared intervals of the parameters.

    It is a guarantee for priors that give all else no mass.

    Parameters
    ----------
    family : {"exponential", "laplace", "beta-binomial", "normal", "network"}
    parameters : mapping of str to (float, float)
        Lowest and highest value of each: ``rate``; ``scale``; ``probability`` and ``trials``; ``mean`` and
        ``variance``; ``least_probability`` of any entry of a network's tables. Intervals are public.
    metric : str
        The family's, of `METRICS`.

    Raises
    ------
    UsageError
        Where the family has another metric, an interval is missing, empty or of another parameter, or no
        finite L exists.
    """
    _check(family, metric)
    if unknown := [name for name in parameters if name not in PARAMETERS[family]]:
        message = f"{family}: no parameter {unknown[0]}; it has {' and '.join(PARAMETERS[family])}"
        raise UsageError(message)
    if family == "exponential":
        constant = interval_of(parameters, "rate")[1]
    elif family == "laplace":
        constant = _inverse(interval_of(parameters, "scale")[0])
    elif family == "beta-binomial":
        low, high = interval_of(parameters, "probability", 0.0, 1.0)
        trials = interval_of(parameters, "trials", 1.0)[1]
        # log C(n, k) is concave: its steepest chords are the first and the last, of slope log n and -log n.
        constant = math.log(trials) + max(abs(float(special.logit(end))) for end in (low, high))
    elif family == "normal":
        mean = interval_of(parameters, "mean", -math.inf)
        constant = max(1.0, *map(abs, mean)) / 2.0 * _inverse(interval_of(parameters, "variance")[0])
    else:
        constant = math.log(_inverse(interval_of(parameters, "least_probability", 0.0, 1.0)[0]))
    if not math.isfinite(constant):
        message = f"{family}: the log likelihood is unbounded on these intervals; no finite L exists"
        raise UsageError(message)
    return Bound(
        value=float(constant), quantity=Quantity.LIPSCHITZ, is_guarantee=True, rests_on="Assumption 1"
    )


def _inverse(value: float) -> float:
    return 1.0 / value if value > 0.0 else math.inf


def concentration(family: str, prior: Mapping[str, float], metric: str) -> Bound:
    """Return c of Assumption 2: of no conclusion of the paper's is it a guarantee.

    Parameters
    ----------
    family : {"exponential", "laplace", "beta-binomial", "normal"}
    prior : mapping of str to float
        All above 0:
        ``rate``: of the exponential prior of the rate; ``inverse_scale``: of that of 1/scale; ``alpha`` and
        ``trials``: of Beta(alpha, alpha) and a binomial; ``precision``: of the exponential prior of
        1/variance, for means within [-1, 1]; ``variance``: of that of the variance.
    metric : str

    Raises
    ------
    UsageError
        Where no c > 0 satisfies Assumption 2: two trials or more (Lemma 5), a prior on the variance (Lemma
        6); or a number is not above 0.
    """
    _check(family, metric)
    prior = {name: number_of(name, value, above=0.0) for name, value in prior.items()}
    match family, prior:
        case "exponential", {"rate": rate}:
            constant = rate
        case "laplace", {"inverse_scale": rate}:
            constant = rate
        case "normal", {"precision": rate}:
            constant = 2.0 * rate
        case "beta-binomial", {"alpha": alpha, "trials": 1.0}:
            constant = _concentration_of_one_trial(alpha)
        case "beta-binomial", {"alpha": _, "trials": _}:
            message = "beta-binomial: below L = log(trials) no parameter qualifies: no c > 0 exists (Lemma 5)"
            raise UsageError(message)
        case "normal", {"variance": _}:
            message = "normal: a prior on the variance leaves mass near 0 (Lemma 6); use the precision"
            raise UsageError(message)
        case _:
            message = f"{family}: this prior has no c of Assumption 2"
            raise UsageError(message)
    return Bound(
        value=float(constant), quantity=Quantity.CONCENTRATION, is_guarantee=False, rests_on="Assumption 2"
    )


def _concentration_of_one_trial(alpha: float) -> float:
    """The least of -log(1 - mass) / L over L, where the mass is that of [1/(1+e^L), 1/(1+e^-L)]."""
    steps = np.geomspace(1e-4, 400.0, 4001)
    outside = 2.0 * special.betainc(alpha, alpha, special.expit(-steps))
    slopes = -np.log(np.maximum(outside, 1e-300)) / steps
    return float(slopes[outside > 1e-290].min())


def kl_bound(smoothness: Bound | float, rho: float) -> Bound:
    """Return Theorem 1's bound on the KL divergence of posteriors: 2 L rho, or kappa rho / c.

    Parameters
    ----------
    smoothness : Bound or float
        What `lipschitz` or `concentration` returns; a number is L of Assumption 1, for which you vouch.
    rho : float
        The distance of the two data sets in the family's metric, at least 0.

    Raises
    ------
    UsageError
        Where the bound is another one, or the distance is negative.
    """
    bound, rho = smoothness_of(smoothness), number_of("rho", rho, least=0.0)
    value = 2.0 * bound.value * rho if bound.is_guarantee else KAPPA * rho / bound.value
    return Bound(value=value, quantity=Quantity.KL, is_guarantee=bound.is_guarantee, rests_on=bound.rests_on)


def total_variation_bound(smoothness: Bound | float, rho: float) -> Bound:
    """Return Pinsker's bound on the total variation: the square root of half of `kl_bound`.

    Above 1 it says nothing.

    Raises
    ------
    UsageError
        Where `kl_bound` raises it.
    """
    kl = kl_bound(smoothness, rho)
    return Bound(
        value=math.sqrt(kl.value / 2.0),
        quantity=Quantity.VARIATION,
        is_guarantee=kl.is_guarantee,
        rests_on=kl.rests_on,
    )


def privacy_of_posterior_sampling(smoothness: Bound | float, rho: float, queries: int) -> Bound:
    """Return epsilon of answering queries by a fresh draw each: 2 L rho queries (Theorem 2(i), Algorithm 1).

    Parameters
    ----------
    smoothness : Bound or float
        What `lipschitz` returns; a number is L of Assumption 1, for which you vouch.
    rho : float
        The distance of data sets that must not be told apart, in the family's metric, at least 0.
    queries : int
        At least 1.

    Raises
    ------
    UsageError
        Where the smoothness is no guarantee, the distance is negative, or there is no query.
    """
    bound = smoothness_of(smoothness)
    lipschitz_constant = bound.guaranteed()
    value = 2.0 * lipschitz_constant * number_of("rho", rho, least=0.0) * whole_number_of("queries", queries)
    return Bound(value=value, quantity=Quantity.EPSILON, is_guarantee=True, rests_on=bound.rests_on)


def distinguishability(smoothness: Bound | float, n: int, delta: float) -> Bound:
    """Return the least distance rho at which Theorem 3 lets an adversary tell data apart by n draws.

    It is a *necessary* condition, for a test by the empirical distribution: below it this test cannot tell
    them apart with probability 1 - delta. 3 log(1/delta) / (4 L n), or 3 c log(1/delta) / (2 kappa n).

    Parameters
    ----------
    smoothness : Bound or float
        What `lipschitz` or `concentration` returns; a number is L of Assumption 1, for which you vouch.
    n : int
        Draws, at least 1.
    delta : float
        Above 0 and below 1.

    Raises
    ------
    UsageError
        Where one of them is not so.
    """
    bound, draws = smoothness_of(smoothness), whole_number_of("n", n)
    if not number_of("delta", delta, above=0.0) < 1.0:
        message = "delta: a number below 1 is needed"
        raise UsageError(message)
    if bound.value == 0.0:
        message = "smoothness: at L = 0 no data can be told apart; there is no such distance"
        raise UsageError(message)
    base = 3.0 * math.log(1.0 / delta) / draws
    value = base / (4.0 * bound.value) if bound.is_guarantee else base * bound.value / 2.0 / KAPPA
    return Bound(
        value=value, quantity=Quantity.DISTANCE, is_guarantee=bound.is_guarantee, rests_on=bound.rests_on
    )


def run(out: Path, seed: int, size: Size) -> Result:
    """Hold every theorem and lemma against quadrature; no chance enters, and every size is the same."""
    del seed, size
    assumption1 = lipschitz("exponential", {"rate": (0.0, 1.0)}, "absolute")
    assumption2 = concentration("exponential", {"rate": 1.0}, "absolute")
    rows = rows_of_checks(
        omega=OMEGA,
        kappa=KAPPA,
        claimed_kl=kl_bound(assumption2, 1.0).value,
        claimed_variation=total_variation_bound(assumption2, 0.1).value,
        thresholds=(
            distinguishability(assumption1, 100, 0.05).value,
            distinguishability(assumption2, 100, 0.05).value,
        ),
    )
    kl = [counterexample(records, 1.0)[0] for records in RECORDS]
    variation = [counterexample(records, 0.1)[1] for records in RECORDS]
    claims = [kl_bound(assumption2, 1.0).value], [total_variation_bound(assumption2, 0.1).value]
    path = out / "robustness.png"
    with picture(
        path,
        title="Under Assumption 2 a posterior is not robust",
        subtitle="Exponential data, prior Exp(1): all zeros beside the same with one record moved",
        footer="Dimitrakakis et al. 2014, Theorems 1(ii) and 2(ii); closed forms and quadrature.",
        panels=2,
    ) as (left, right):
        for axis, values, claim, label in (
            (left, kl, claims[0], "KL divergence, one record of 1"),
            (right, variation, claims[1], "total variation, one record of 0.1"),
        ):
            draw_line(axis, RECORDS, values, "of the two posteriors", 0)
            draw_line(axis, RECORDS, claim * len(RECORDS), "the paper's bound", 1, marker=False)
            logarithmic(axis, x=True, y=axis is left)
            axis.set_xlabel("records")
            axis.set_title(label)
        right.set_ylim(0.0, 1.05)
        left.legend(loc="upper left")
    curves = {
        "records": RECORDS,
        "KL divergence, one record of 1, nats": kl,
        "the paper's bound on it, nats": claims[0] * len(RECORDS),
        "total variation, one record of 0.1": variation,
        "the paper's bound on the total variation": claims[1] * len(RECORDS),
    }
    return conclude(out, "robustness", rows, pictures=[path], curves=curves)
