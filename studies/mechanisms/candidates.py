r"""The exponential mechanism over candidate posteriors, scored by Hellinger distance ("the Notes").

A data set of n records in m categories is its counts x; its posterior is Dirichlet(prior + x). Candidates
r are the posteriors of all data sets of n records. One is drawn with a chance proportional to

.. math:: \exp(-\epsilon\, H(x, r) / (2 S(x))), \qquad
    H^2(x, r) = 1 - B((a + b) / 2) / \sqrt{B(a) B(b)},\; a = prior + x,\; b = prior + r.

S is one of three sensitivities. *global*: the largest H between neighbours, the same for every x; epsilon
is a proved bound, about twice what is lost. *local*: the largest H between x and its neighbours; the
scale itself tells data sets apart, and there is **no guarantee**. *smooth*: the largest :math:`e^{-\beta
d(x, y)}` local S(y) over y; the Notes claim (epsilon, delta), but their proof does not hold. Neighbours
replace a record; n is public.

There are finitely many candidates, so the pure loss of each mechanism can be *certified*: the largest log
ratio of chances over all candidates and all neighbours is computed, and stands beside the claim in every
output.

The code behind the Notes' figures leaves the 2 out of the exponent: it draws with twice the epsilon of the
text. ``is_halved=False`` does the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from studies.mechanisms.count_simplex import CountSimplex, count_simplex
from studies.mechanisms.not_a_release import NotARelease, check_positive
from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.typing import Floats, Rows

Sensitivity = Literal["global", "local", "smooth"]

_BLOCK = 4_000_000
"""Distances held at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateMechanism(NotARelease):
    """The mechanism for every data set of n records, with what is claimed of it and what it loses.

    Attributes
    ----------
    prior : tuple of m floats
        Parameters of the Dirichlet distribution.
    sensitivity : {"global", "local", "smooth"}
    epsilon : float
        In the exponent.
    is_halved : bool
        Whether the exponent is that of the text, with 2 S; else it is that of the code.
    delta : float or None
        Of the claim for smooth sensitivity. A delta near 1 is not privacy.
    beta : float or None
        How fast smooth sensitivity may change.
    simplex : CountSimplex
        All data sets, which are all candidates.
    scales : ndarray of shape (n_candidates,), float64
        S of each data set.
    claim : str
        What the Notes say of it, and what is known of that.
    certified_loss : float
        The largest log ratio of a candidate's chances over all pairs of neighbours: the mechanism is
        (certified_loss, 0)-private, and nothing less is true. In exact arithmetic.
    """

    prior: tuple[float, ...]
    sensitivity: Sensitivity
    epsilon: float
    delta: float | None
    beta: float | None
    simplex: CountSimplex
    scales: Floats
    claim: str
    certified_loss: float
    is_halved: bool = True

    @property
    def caveats(self) -> tuple[str, ...]:
        """The claim, and the certified loss beside it."""
        return (
            f"{self.sensitivity} sensitivity: {self.claim}",
            f"loss certified by enumeration of neighbours: {self.certified_loss:.6g}",
        )

    @property
    def columns(self) -> Mapping[str, NDArray[np.generic]]:
        """One row for each data set: its counts, and its scale."""
        counts = {f"count_{place}": column for place, column in enumerate(self.simplex.counts.T)}
        return {**counts, "sensitivity": self.scales}

    def log_chances(self, rows: Rows) -> Floats:
        """Return the log chance of every candidate for the data sets of these rows of the simplex."""
        return _log_chances(
            self.prior, self.simplex, rows, self.scales[rows], self.epsilon * (1.0 if self.is_halved else 2.0)
        )

    def expected_distances(self, rows: Rows) -> Floats:
        """Return the mean distance of a drawn candidate from the posterior of each of these data sets."""
        expected = np.empty(len(rows))
        for part in _parts(len(rows), len(self.simplex.counts)):
            distances = hellinger(self.prior, self.simplex.counts[rows[part]], self.simplex.counts)
            expected[part] = (np.exp(self.log_chances(rows[part])) * distances).sum(axis=1)
        return expected

    def draw(self, counts: Sequence[int], *, rng: np.random.Generator) -> CandidateDraw:
        """Draw one candidate for these counts: its law is exact up to float rounding."""
        row = self.simplex.row_of(counts)
        chances = np.exp(self.log_chances(row)[0])
        drawn = rng.choice(len(chances), p=chances / chances.sum())
        return CandidateDraw(
            counts=self.simplex.counts[drawn],
            posterior=np.array(self.prior) + self.simplex.counts[drawn],
            claim=self.claim,
            certified_loss=self.certified_loss,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateDraw(NotARelease):
    """One drawn candidate: the counts that it is the posterior of, and its parameters."""

    counts: NDArray[np.int64]
    posterior: Floats
    claim: str
    certified_loss: float

    @property
    def caveats(self) -> tuple[str, ...]:
        """The claim, and the certified loss beside it."""
        return (self.claim, f"loss certified by enumeration of neighbours: {self.certified_loss:.6g}")

    @property
    def columns(self) -> Mapping[str, NDArray[np.generic]]:
        """One row for each category."""
        return {"count": self.counts, "posterior": self.posterior}


def hellinger(prior: Sequence[float], first: NDArray[np.int64], second: NDArray[np.int64]) -> Floats:
    """Return the Hellinger distances of posteriors, every one of `first` to every one of `second`.

    Parameters
    ----------
    prior : sequence of m floats
        Parameters of the Dirichlet distribution.
    first, second : ndarrays of shapes (n_first, m) and (n_second, m), int64
        Counts of one total.

    Returns
    -------
    ndarray of shape (n_first, n_second), float64
        In [0, 1].
    """
    from scipy.special import gammaln

    highest = int(max(first.max(), second.max()))
    log_affinity = np.zeros((len(first), len(second)))
    for place, parameter in enumerate(prior):
        # Half sums of counts are a short lattice: log gamma is looked up.
        table = gammaln(parameter + np.arange(2 * highest + 1) / 2.0)
        first_counts, second_counts = first[:, place], second[:, place]
        log_affinity += table[first_counts[:, None] + second_counts]
        log_affinity -= (table[2 * first_counts] / 2.0)[:, None] + table[2 * second_counts] / 2.0
    return np.sqrt(np.maximum(-np.expm1(log_affinity), 0.0))


def local_sensitivities(prior: Sequence[float], simplex: CountSimplex) -> Floats:
    """Return the largest distance of each data set's posterior from that of a neighbour, (n_candidates,).

    It is the largest change of a score over all candidates as well: by the triangle inequality the change
    at r is at most H(x, y), and at r = x it is that.
    """
    largest = np.zeros(len(simplex.counts))
    for rows, others in simplex.neighbours:
        distances = _paired_hellinger(prior, simplex.counts[rows], simplex.counts[others])
        np.maximum.at(largest, rows, distances)
        np.maximum.at(largest, others, distances)
    return largest


def global_sensitivity(prior: Sequence[float], n_records: int) -> float:
    """Return the largest Hellinger distance between posteriors of neighbours with n records."""
    return float(local_sensitivities(prior, count_simplex(n_records, len(prior))).max())


def smooth_sensitivities(prior: Sequence[float], simplex: CountSimplex, beta: float) -> Floats:
    """Return max over y of exp(-beta d(x, y)) times the local sensitivity of y, (n_candidates,).

    d is the number of records to replace; any two data sets are joined by so many steps to a neighbour, so
    the largest spreads from neighbour to neighbour until nothing changes.
    """
    smooth = local_sensitivities(prior, simplex)
    shrink = math.exp(-beta)
    while True:
        spread = smooth.copy()
        for rows, others in simplex.neighbours:
            np.maximum.at(spread, rows, shrink * smooth[others])
            np.maximum.at(spread, others, shrink * smooth[rows])
        if np.array_equal(spread, smooth):
            return smooth
        smooth = spread


def smoothness(epsilon: float, delta: float, n_outcomes: int) -> float:
    """Return the Notes' beta = log(1 - epsilon / (2 log(delta / (2 n_outcomes)))).

    Their formula has n + 1 outcomes, their figures n; their proof needs the number of candidates, which is
    n + 1 for two categories only.
    """
    check_positive(epsilon=epsilon, delta=delta, n_outcomes=n_outcomes)
    if not delta < 1:
        raise UsageError("delta must be below 1")
    return math.log1p(-epsilon / (2.0 * math.log(delta / (2.0 * n_outcomes))))


def candidate_mechanism(
    prior: Sequence[float],
    n_records: int,
    *,
    epsilon: float,
    sensitivity: Sensitivity,
    delta: float | None = None,
    n_outcomes: int | None = None,
    is_halved: bool = True,
) -> CandidateMechanism:
    """Return the mechanism for all data sets of n records, its loss certified by enumeration.

    Law and claims are those of the module. The loss takes as many chances as there are pairs of neighbours
    times candidates: 2.1 million for three categories and 40 records, 78 million for 100.

    Parameters
    ----------
    prior : sequence of m floats, > 0
    n_records : int, >= 1
    epsilon : float, > 0
    sensitivity : {"global", "local", "smooth"}
    delta : float, optional
        Of smooth sensitivity, in (0, 1).
    n_outcomes : int, optional
        Of ``smoothness``; n_records, as in the Notes' figures, without it.
    is_halved : bool
        False: the exponent of the Notes' code, twice the text's.
    """
    check_positive(epsilon=epsilon, **{f"prior_{place}": each for place, each in enumerate(prior)})
    if (sensitivity == "smooth") != (delta is not None):
        raise UsageError("delta belongs to smooth sensitivity, which needs it")
    simplex = count_simplex(n_records, len(prior))
    beta = None
    scales = local_sensitivities(prior, simplex)
    claim = "no guarantee: the scale depends on the data"
    if sensitivity == "global":
        scales = np.full_like(scales, scales.max())
        claim = f"epsilon {epsilon:g}, proved"
    elif sensitivity == "smooth":
        beta = smoothness(epsilon, delta or 0.0, n_outcomes or n_records)
        scales = smooth_sensitivities(prior, simplex, beta)
        claim = f"epsilon {epsilon:g}, delta {delta:g}, claimed with beta {beta:.6g}: the proof does not hold"
    return CandidateMechanism(
        prior=tuple(prior),
        sensitivity=sensitivity,
        epsilon=epsilon,
        delta=delta,
        beta=beta,
        simplex=simplex,
        scales=scales,
        claim=claim,
        certified_loss=_largest_log_ratio(
            tuple(prior), simplex, scales, epsilon * (1.0 if is_halved else 2.0)
        ),
        is_halved=is_halved,
    )


def _largest_log_ratio(
    prior: tuple[float, ...], simplex: CountSimplex, scales: Floats, epsilon: float
) -> float:
    largest = 0.0
    for rows, others in simplex.neighbours:
        for part in _parts(len(rows), len(simplex.counts)):
            left, right = rows[part], others[part]
            ratio = _log_chances(prior, simplex, left, scales[left], epsilon)
            ratio -= _log_chances(prior, simplex, right, scales[right], epsilon)
            largest = max(largest, float(np.abs(ratio, out=ratio).max()))
    return largest


def _parts(n_rows: int, n_candidates: int) -> list[slice]:
    """Return parts of rows, so that the distances of a part fit into memory."""
    at_once = max(1, _BLOCK // n_candidates)
    return [slice(start, start + at_once) for start in range(0, n_rows, at_once)]


def _log_chances(
    prior: tuple[float, ...], simplex: CountSimplex, rows: Rows, scales: Floats, epsilon: float
) -> Floats:
    scores = hellinger(prior, simplex.counts[rows], simplex.counts)
    scores *= (-epsilon / (2.0 * scales))[:, None]
    # The best candidate is the data set's own posterior, at 0: sums of exponentials cannot overflow.
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return scores


def _paired_hellinger(prior: Sequence[float], first: NDArray[np.int64], second: NDArray[np.int64]) -> Floats:
    from scipy.special import gammaln

    first_parameters, second_parameters = np.array(prior) + first, np.array(prior) + second
    log_affinity = (
        gammaln((first_parameters + second_parameters) / 2.0)
        - (gammaln(first_parameters) + gammaln(second_parameters)) / 2.0
    )
    distances: Floats = np.sqrt(np.maximum(-np.expm1(log_affinity.sum(axis=1)), 0.0))
    return distances
