r"""What several synthetic data sets say of a quantity together.

The question is a quantity Q of the law that rows come from. Each of the sets i = 1..M is drawn from the law
of a posterior draw of its own; an analysis of it as if it were data gives an estimate :math:`q_i` and its
variance :math:`v_i`. Estimates differ as the posterior of Q does, and by the draw of their rows besides:

.. math::
    \mathrm{Var}(q_i \mid y) = \mathrm{Var}(Q \mid y) + v, \qquad
    b = \frac{1}{M - 1} \sum_i (q_i - \bar q)^2, \qquad \bar v = \frac 1 M \sum_i v_i

so that the variance of Q about :math:`\bar q` is estimated (Raghunathan, Reiter, Rubin 2003) by

.. math::
    T = \Bigl(1 + \frac 1 M\Bigr) b - \bar v, \qquad
    \nu = (M - 1) \Bigl(1 - \frac{\bar v}{(1 + 1 / M) b}\Bigr)^2, \qquad (1)

with an interval of a t distribution with :math:`\nu` degrees of freedom. T may be negative, and the interval
endless, where v is larger than the posterior variance. Without the last term,

.. math:: T = \Bigl(1 + \frac 1 M\Bigr) b, \qquad \nu = M - 1, \qquad (2)

is never too small. The shorter interval of (1) and (2) is taken. Where the posterior is normal, 95 %
intervals from 100 sets held Q in .950 to .952 of 200 000 simulated cases with v up to Var(Q | y), and more
often where rows or sets are fewer; never in less than .950, with 5, 10, 20 and 100 sets and v from .01 to 10
times Var(Q | y).

The privacy noise is in the posterior, so that b has it already. Rules for other data do not hold here. That
of missing values, :math:`\bar v + (1 + 1 / M) b` (Rubin 1987), adds what has to be taken off. That of
partially synthetic data, :math:`\bar v + b / M` (Reiter 2003), is right only where v happens to be
Var(Q | y), and knows nothing of the noise.

References
----------
Raghunathan, Reiter, Rubin. Multiple imputation for statistical disclosure limitation. Journal of Official
Statistics 19, 2003. Reiter. Inference for partially synthetic, public use microdata sets. Survey Methodology
29, 2003. Räisä, Jälkö, Kaski, Honkela. Noise-aware statistical inference with differentially private
synthetic data. AISTATS 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.math.parameters import arguments, parameter_posterior

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from suffice.typing import Floats, Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedEstimate:
    """What several synthetic data sets say of quantities together; made by :func:`combine_imputations`.

    Every array has the shape of the estimates of a set.

    Attributes
    ----------
    estimate : ndarray of float64
        The mean of the sets' estimates.
    sd : ndarray of float64
        Of the quantity about it: the root of T.
    lower, upper : ndarray of float64
        Ends of the central interval.
    degrees_of_freedom : ndarray of float64
        Of the t distribution that it is of.
    is_within_subtracted : ndarray of bool
        Whether the interval is by (1), and not by the wider (2): more rows a set would make it so.
    mass : float
        Of the interval.
    imputations : int
        The number of sets.
    """

    estimate: Floats
    sd: Floats
    lower: Floats
    upper: Floats
    degrees_of_freedom: Floats
    is_within_subtracted: Mask
    mass: float
    imputations: int


def combine_imputations(
    estimates: ArrayLike, variances: ArrayLike, mass: float = parameter_posterior.MASS
) -> CombinedEstimate:
    r"""Combine estimates from several wholly synthetic data sets into one, with a calibrated interval.

    .. math:: T = (1 + 1 / M) \, b - \bar v

    with b the variance of the M estimates, and v the mean of their variances (Raghunathan, Reiter, Rubin
    2003). Where that would be negative, or the interval wider, the last term is left out.

    Parameters
    ----------
    estimates : array_like
        One from each data set, along the first axis, of at least two sets: near normal, as a share, a mean or
        a log odds ratio is.
    variances : array_like
        Their squared standard errors, of the same shape: by the usual formula, as if the set were data.
    mass : float
        Of the intervals, between 0 and 1.

    Raises
    ------
    UsageError
        Where these are no finite numbers of one shape, a variance is negative, there is one set, or the mass
        is not between 0 and 1.

    Notes
    -----
    It is for sets from ``synthesize`` of a field or a network, one from each posterior draw. Rules for
    missing values, or for data of which a part is synthetic, are other ones.

    References
    ----------
    Raghunathan, Reiter, Rubin. Multiple imputation for statistical disclosure limitation. Journal of Official
    Statistics 19, 2003.
    """
    from scipy.stats import t as student

    _, above = arguments.ends_of(mass)
    q, v = _numbers("estimates", estimates), _numbers("variances", variances)
    if q.shape != v.shape:
        message = f"estimates and variances must have the same shape, not {q.shape} and {v.shape}"
        raise UsageError(message)
    if q.ndim == 0 or len(q) < 2:
        message = "estimates must be of at least two synthetic data sets, along the first axis"
        raise UsageError(message)
    if (v < 0.0).any():
        message = "variances must not be negative: they are squared standard errors"
        raise UsageError(message)
    sets = len(q)
    between = (1.0 + 1.0 / sets) * q.var(axis=0, ddof=1)
    within = v.mean(axis=0)
    # The share of the variance between sets that is of Q, not of the draw of rows.
    share = np.clip(1.0 - np.divide(within, between, out=np.ones_like(within), where=between > 0.0), 0.0, 1.0)
    freedom = (sets - 1.0) * share**2
    # Far below one degree of freedom a quantile is past all numbers, and (2) is shorter.
    is_possible = freedom > 0.05
    quantile = student.ppf(above, np.where(is_possible, freedom, 1.0))
    narrow = np.where(is_possible, quantile * np.sqrt(share * between), np.inf)
    wide = student.ppf(above, sets - 1.0) * np.sqrt(between)
    is_within_subtracted = narrow < wide
    half = np.where(is_within_subtracted, narrow, wide)
    estimate = q.mean(axis=0)
    return CombinedEstimate(
        estimate=estimate,
        sd=np.sqrt(np.where(is_within_subtracted, share, 1.0) * between),
        lower=estimate - half,
        upper=estimate + half,
        degrees_of_freedom=np.where(is_within_subtracted, freedom, sets - 1.0),
        is_within_subtracted=np.asarray(is_within_subtracted),
        mass=mass,
        imputations=sets,
    )


def _numbers(name: str, values: ArrayLike) -> Floats:
    try:
        given = np.asarray(values)
        # Texts and dates turn into numbers too.
        numbers = given.astype(np.float64) if given.dtype.kind in "iufO" else np.array(np.nan)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if not np.isfinite(numbers).all():
        message = f"{name} must be finite numbers, one along the first axis for each synthetic data set"
        raise UsageError(message)
    return numbers
