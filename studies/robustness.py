"""Calculators of Dimitrakakis et al.: each returns a bound together with whether it is a guarantee.

Assumption 1: |log p(x|theta) - log p(y|theta)| <= L rho(x, y) for every theta of the declared set. What
follows from it, Theorems 1(i), 2(i) and 3, is proved, and a draw of the posterior costs 2 L rho.

Assumption 2: the prior gives the parameters where that holds at least the mass 1 - exp(-c L), for every L >
0. What the paper concludes from it, Theorems 1(ii) and 2(ii), is false: ``studies.robustness_checks`` has
counterexamples. So nothing that rests on it is a guarantee.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import integrate, optimize, special, stats

from studies.bound import Bound, interval_of
from studies.plotting import draw_line, logarithmic, picture
from studies.result import conclude
from studies.robustness_checks import RECORDS, counterexample, rows_of_checks
from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from studies.result import Result, Size

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
CONCLUSION = (
    "Theorems 1(i) and 2(i), Remark 1 and Lemmas 3 and 7 hold. Theorems 1(ii) and 2(ii) are false as "
    "stated: their proof integrates against the prior where the posterior stands, and exponential data "
    "with one record of 1 among zeros break the claim from 16 records on. Lemma 4 needs s >= 1/L for s >= "
    "L, Lemmas 5 and 6 fail (6 holds for the precision), and the constant of Lemma 1 is L, not L n: the "
    "sum stands in the metric already."
)


def _check(family: str, metric: str) -> None:
    if METRICS.get(family) != metric:
        known = ", ".join(f"{name} ({own})" for name, own in METRICS.items())
        message = f"a family goes with its metric: {known}"
        raise UsageError(message)


def lipschitz(family: str, parameters: dict[str, tuple[float, float]], metric: str) -> Bound:
    """Return L of Assumption 1 over declared intervals of the parameters.

    Parameters
    ----------
    family : {"exponential", "laplace", "beta-binomial", "normal", "network"}
    parameters : dict of str to (float, float)
        ``rate``; ``scale``; ``probability`` and ``trials``; ``mean`` and ``variance``;
        ``least_probability`` of any entry of a network's tables. Intervals are public.
    metric : str
        The family's, of `METRICS`.

    Raises
    ------
    UsageError
        Where the family has another metric, an interval is missing, or no finite L exists.
    """
    _check(family, metric)
    if family == "exponential":
        found = interval_of(parameters, "rate")[1]
    elif family == "laplace":
        found = _inverse(interval_of(parameters, "scale")[0])
    elif family == "beta-binomial":
        low, high = interval_of(parameters, "probability")
        trials = interval_of(parameters, "trials", 1.0)[1]
        # log C(n, k) is concave: its steepest chords are the first and the last, of slope log n and -log n.
        found = math.log(trials) + max(abs(float(special.logit(end))) for end in (low, high))
    elif family == "normal":
        mean = interval_of(parameters, "mean", -math.inf)
        found = max(1.0, *map(abs, mean)) / 2.0 * _inverse(interval_of(parameters, "variance")[0])
    else:
        found = math.log(_inverse(interval_of(parameters, "least_probability")[0]))
    if not math.isfinite(found):
        message = f"{family}: the log likelihood is unbounded on these intervals; no finite L exists"
        raise UsageError(message)
    return Bound(value=float(found), is_guarantee=True, rests_on="Assumption 1")


def _inverse(value: float) -> float:
    return 1.0 / value if value > 0.0 else math.inf


def concentration(family: str, prior: dict[str, float], metric: str) -> Bound:
    """Return c of Assumption 2: of no conclusion of the paper's is it a guarantee.

    Parameters
    ----------
    family : {"exponential", "laplace", "beta-binomial", "normal"}
    prior : dict of str to float
        ``rate``: of the exponential prior of the rate; ``inverse_scale``: of that of 1/scale; ``alpha`` and
        ``trials``: of Beta(alpha, alpha) and a binomial; ``precision``: of the exponential prior of
        1/variance, for means within [-1, 1]; ``variance``: of that of the variance.
    metric : str

    Raises
    ------
    UsageError
        Where no c > 0 satisfies Assumption 2: two trials or more (Lemma 5), a prior on the variance (Lemma
        6).
    """
    _check(family, metric)
    match family, prior:
        case "exponential", {"rate": rate}:
            found = rate
        case "laplace", {"inverse_scale": rate}:
            found = rate
        case "normal", {"precision": rate}:
            found = 2.0 * rate
        case "beta-binomial", {"alpha": alpha, "trials": 1.0}:
            found = _concentration_of_one_trial(alpha)
        case "beta-binomial", {"alpha": _, "trials": _}:
            message = "beta-binomial: below L = log(trials) no parameter qualifies: no c > 0 exists (Lemma 5)"
            raise UsageError(message)
        case "normal", {"variance": _}:
            message = "normal: a prior on the variance leaves mass near 0 (Lemma 6); use the precision"
            raise UsageError(message)
        case _:
            message = f"{family}: this prior has no c of Assumption 2"
            raise UsageError(message)
    return Bound(value=float(found), is_guarantee=False, rests_on="Assumption 2")


def _concentration_of_one_trial(alpha: float) -> float:
    """The least of -log(1 - mass) / L over L, where the mass is that of [1/(1+e^L), 1/(1+e^-L)]."""
    steps = np.geomspace(1e-4, 400.0, 4001)
    outside = 2.0 * special.betainc(alpha, alpha, special.expit(-steps))
    own = -np.log(np.maximum(outside, 1e-300)) / steps
    return float(own[outside > 1e-290].min())


def kl_bound(smoothness: Bound, rho: float) -> Bound:
    """Return Theorem 1's bound on the KL divergence of posteriors: 2 L rho, or kappa rho / c."""
    value = 2.0 * smoothness.value * rho if smoothness.is_guarantee else KAPPA * rho / smoothness.value
    return Bound(value=value, is_guarantee=smoothness.is_guarantee, rests_on=smoothness.rests_on)


def total_variation_bound(smoothness: Bound, rho: float) -> Bound:
    """Return Pinsker's bound on the total variation: the square root of half of `kl_bound`."""
    kl = kl_bound(smoothness, rho)
    return Bound(value=math.sqrt(kl.value / 2.0), is_guarantee=kl.is_guarantee, rests_on=kl.rests_on)


def privacy_of_posterior_sampling(smoothness: Bound, rho: float, queries: int) -> Bound:
    """Return epsilon of answering queries by a fresh draw each: 2 L rho queries (Theorem 2(i), Algorithm 1).

    Raises
    ------
    UsageError
        Where the smoothness is no guarantee, or there is no query.
    """
    if queries < 1 or not rho >= 0.0:
        message = "posterior sampling: at least one query and a distance that is not negative"
        raise UsageError(message)
    return Bound(
        value=2.0 * smoothness.guaranteed() * rho * queries, is_guarantee=True, rests_on=smoothness.rests_on
    )


def distinguishability(smoothness: Bound, n: int, delta: float) -> Bound:
    """Return the least distance rho at which Theorem 3 lets an adversary tell data apart by n draws.

    It is a *necessary* condition, for a test by the empirical distribution: below it this test cannot tell
    them apart with probability 1 - delta. 3 log(1/delta) / (4 L n), or 3 c log(1/delta) / (2 kappa n).
    """
    base = 3.0 * math.log(1.0 / delta) / n
    value = (
        base / (4.0 * smoothness.value) if smoothness.is_guarantee else base * smoothness.value / 2.0 / KAPPA
    )
    return Bound(value=value, is_guarantee=smoothness.is_guarantee, rests_on=smoothness.rests_on)


def le_cam(prior: tuple[str, float, float], x: Sequence[float], y: Sequence[float]) -> Bound:
    """Return Le Cam's lower bound on the expected distance of a guess of the data from one draw.

    Half of the distance of x and y times the overlap of their posteriors, by quadrature (Appendix A). A bound
    on an adversary's error from below, and no privacy parameter.

    Parameters
    ----------
    prior : ("gamma", shape, rate) or ("beta", a, b)
        Of the rate of exponential data, or of the probability of Bernoulli data.
    x, y : sequence of float
        Data sets of one length.
    """
    rho = math.fsum(abs(first - second) for first, second in zip(x, y, strict=True))
    kind, first, second = prior
    laws: list[Any]
    if kind == "gamma":
        laws = [stats.gamma(first + len(data), scale=1.0 / (second + math.fsum(data))) for data in (x, y)]
        high = max(float(law.isf(1e-14)) for law in laws)
    elif kind == "beta":
        laws = [stats.beta(first + math.fsum(data), second + len(data) - math.fsum(data)) for data in (x, y)]
        high = 1.0
    else:
        message = f"prior {kind}: gamma or beta"
        raise UsageError(message)
    centres = sorted({float(law.mean()) for law in laws})
    overlap, _ = integrate.quad(
        lambda theta: min(float(law.pdf(theta)) for law in laws), 0.0, high, points=centres, limit=400
    )
    return Bound(value=rho / 2.0 * float(overlap), is_guarantee=True, rests_on="Le Cam's lemma")


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
    curves = {"records": RECORDS, "kl at rho 1": kl, "total variation at rho 0.1": variation}
    return conclude(out, "robustness", rows, pictures=[path], curves=curves)
