r"""The posterior of a normal's latent sums by nested Gauss rules, for many cells, with an error estimate.

Model: (1) to (4) of ``moment_weights``. The question is moments, evidence and marginals of every cell:

.. math:: \int g \, dp = \sum_N \int dm \int d\log E \; g(N, m, E) \sum_k p_k(N, m, \log E, y) \qquad (1)

Method. All parts k of the prior are summed at every node. N is one by one where there are few, and else by a
Gauss rule on the integers of a panel. Over m panels end where two kinks of the noise meet, and where one
meets E = 0; over log E they end at the kinks. They span a number of nats of the noise, or less where the
prior bends; what the noise leaves less than e^-17 of is cut off. A panel's length is measured by the prior
too: no part, however narrow or far from the data, is stepped over.

Tails. Of no records, or of one, second moments may be infinite. Where these have next to no probability, and
both second moments of the rest next to nothing of few records, moments are those of the rest (``near``).

Error. Two rules are compared, with other numbers of nodes and other cuts. Where they differ by more than
``TOLERANCE`` a finer one follows, up to the fourth; cells that none settles are left to boxes with bounds.
Stated are the differences, each no less than the largest of them in units of ``TOLERANCE``, nor than 0.3 of
these: rules agree in one number by chance, and are off alike by a little. No bound, but held by random cells:

.. math:: |\Delta \bar\mu| / sd, \; |\Delta \log sd|, \; |\Delta \log p(y)| \qquad (2)

Nodes themselves are picked, one for each step of the mass, in the order in which they come, for whoever needs
mean and variance together (``nodes_of_cells``).

A rule with more panels is not always nearer: over m and N the integrand is a sum of exponentials with up to
three times the slope of the least noise, so that panels of four nats of it span twelve, and what is seen of
them turns on where they happen to end. Panels over m and N are shorter for it, and rules differ in their
nodes before they differ in their panels.

========= ================== ============================================ =====================
symbol    in the code        meaning                                      shape
========= ================== ============================================ =====================
(1)       ``moments``        mean, sd of both parameters, log p(y), N     (n_cells, 6)
(2)       ``error``          of mean, sd, mean, sd, log p(y)              (n_cells, 5)
========= ================== ============================================ =====================
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from suffice.pipeline.math.distributions.joint_components import JointComponents
from suffice.pipeline.math.distributions.many_cells import MOMENT_NODES, is_compiled, on_threads
from suffice.pipeline.math.engines.normal.marginal_quantiles import MarginalMixture
from suffice.pipeline.math.priors.record_count import Fixed, Reciprocal

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.normal.moment_weights import NoisyMoments
    from suffice.typing import Cells, Floats, Mask

TOLERANCE = (0.008, 0.015, 0.008, 0.015, 0.02)
"""By how much two rules may differ, (2); measured errors of the finer one are in decision 150."""
_COMPONENTS, _BATCH = 3000, 64
_PICKED, _FEW_CELLS = 4096, 16
"""Nodes of a cell that are picked, and cells whose nodes are picked on a thread."""
_MOST_PRECISION = 1.0
"""Records that the prior of the mean counts as: random cells had no more."""
_MOST_ROWS, _MOST_PARTS = 9, 40
"""What the compiled loops have room for."""
_LEAST_CONCENTRATION = 1.0
"""Of less, two records have no second moment, and how likely two are is not asked."""
_MOST_CONCENTRATION, _MOST_OF_SEVERAL = 20.0, 5.1
"""Of one part, and of several: of more, two rules were off alike with two records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NestedIntegrals:
    """What the rules settled.

    Attributes
    ----------
    settled : ndarray of shape (n_cells,), bool
        The cells of which two rules agree; numbers of others mean nothing.
    near : ndarray of shape (n_cells,), bool
        Those where tails so heavy that they have no moments are next to impossible: moments leave them out.
    moments : ndarray of shape (n_cells, 6), float64
        Mean and standard deviation of the mean, and of the variance, log evidence in noise scales, mean N.
    error : ndarray of shape (n_cells, 5), float64
        By how much the last two rules differ, (2), each as far as the worst, and at least 0.3 `TOLERANCE`.
    level : ndarray of shape (n_cells,), int64
        How fine the last rule was.
    marginals : (MarginalMixture, MarginalMixture)
        Of the mean and of the variance, of all cells; none of cells that are not settled.
    """

    settled: Mask
    near: Mask
    moments: Floats
    error: Floats
    level: Cells
    marginals: tuple[MarginalMixture, MarginalMixture]


def can_integrate(noisy: NoisyMoments) -> bool:
    """Whether the rules are made for a problem: its prior, prior of N and number of releases."""
    prior = noisy.prior
    return (
        len(noisy.totals.scale) <= _MOST_ROWS
        and prior.n_parts <= _MOST_PARTS
        # Of parts with means or shapes of their own two rules were off by more than they differed.
        and len(prior.loc) == 1
        and len(prior.concentration) == 1
        and float(prior.concentration[0]) <= (_MOST_CONCENTRATION if prior.n_parts == 1 else _MOST_OF_SEVERAL)
        and float(np.max(prior.precision)) <= _MOST_PRECISION
        # Parts of the noise that are N, or a plane through it, alone are not kinks of m and E.
        and bool(np.all(np.any(noisy.totals.coefficients[:, 1:] != 0.0, axis=1)))
        and (isinstance(noisy.n_prior, Fixed) or _nats_of_n(noisy) > 0.0)
        and is_compiled()
    )


@functools.cache
def _kernel() -> Any:
    # Late: compiled code takes longer to load than a few cells take.
    return importlib.import_module(MOMENT_NODES.module)


def integrate_nested(noisy: NoisyMoments, threads: int | None = None) -> NestedIntegrals:
    """Integrate all cells; the numbers are the same for any number of threads.

    Parameters
    ----------
    noisy : NoisyMoments
        For which `can_integrate` holds.
    threads : int, optional
        As many as there are processors by default.
    """
    run = _run(noisy, _BATCH, 0, threads)
    counts, cells = run.counts, len(run.level)
    # Two records have second moments; whether there is none or one, loops know.
    has_spread = bool(np.min(noisy.prior.concentration) > _LEAST_CONCENTRATION)
    marginals = []
    for parameter in range(2):
        weight, loc, width, degrees = run.components[parameter].T
        cell = np.repeat(np.arange(cells), counts[:, parameter])
        marginals.append(
            MarginalMixture(
                cell=cell, weight=weight, loc=loc, width=width, degrees=degrees, is_variance=parameter == 1
            )
        )
    return NestedIntegrals(
        settled=run.level >= 0,
        near=(run.level >= 0) & (run.moments[:, 8] > 0.0) & has_spread,
        moments=run.moments[:, :6],
        error=run.error,
        level=run.level,
        marginals=(marginals[0], marginals[1]),
    )


def nodes_of_cells(noisy: NoisyMoments) -> list[JointComponents | None]:
    """Return a systematic sample of each cell's nodes, each of which is as likely; None where not settled.

    They stand for the intervals that they are the nodes of, as components of marginals do.
    """
    run = _run(noisy, _FEW_CELLS, _PICKED, None)
    samples: list[JointComponents | None] = []
    for level, picked in zip(run.level, run.picks, strict=True):
        number = int(picked[0, _kernel().NUMBER])
        if level < 0 or number == 0:
            samples.append(None)
            continue
        loc, square, degrees, log_ratio, log_square = np.ascontiguousarray(picked[1 : number + 1].T)
        samples.append(
            JointComponents(
                weight=np.full(number, 1.0 / number),
                loc=loc,
                width=np.sqrt(square),
                degrees=degrees,
                log_ratio=log_ratio,
                log_width=np.sqrt(log_square),
            )
        )
    return samples


class _Run(NamedTuple):
    """What the loops write: arrays of all cells, and components of the mean and of the variance."""

    moments: Floats
    error: Floats
    level: Cells
    counts: Cells
    picks: Floats
    components: tuple[Floats, Floats]


def _run(noisy: NoisyMoments, size: int, picked: int, threads: int | None) -> _Run:
    """Run the loops over all cells, in batches of a size, and pick so many nodes of each."""
    kernel = _kernel()
    scaled = noisy.totals.in_scales()
    # Copies: loops take no array that is read-only.
    rows = np.array(scaled.coefficients, dtype=np.float64, order="C")
    observed = np.array(scaled.values, dtype=np.float64, order="C")
    estimates = np.ascontiguousarray(noisy.estimates(), dtype=np.float64)
    support = np.array(noisy.n_prior.support, dtype=np.float64)
    least = noisy.least_concentration
    # Moments that do not exist are not compared: of the smallest N the tails are that heavy.
    checked = np.array([least > 0.5, least > 1.0, least > 1.0, least > 2.0, True], dtype=np.int64)
    cells = len(observed)
    moments, error = np.full((cells, 9), np.nan), np.full((cells, 5), np.nan)
    level, counts = np.zeros(cells, dtype=np.int64), np.zeros((cells, 2), dtype=np.int64)
    picks = np.zeros((cells, 1 + int(kernel.SPARE * picked), kernel.PICK_FIELDS))
    points = np.array([rule for rule, _ in kernel.RULES], dtype=np.int64)
    nats = np.array([spans for _, spans in kernel.RULES])
    prior, n_terms, nats_of_n = _prior(noisy), _n_terms(noisy), _nats_of_n(noisy)

    def work(batch: slice) -> tuple[Floats, Floats]:
        components = np.empty((batch.stop - batch.start, 2, _COMPONENTS, 4))
        kernel.cells(
            observed[batch], rows, prior, n_terms, support, estimates[batch], nats_of_n, points, nats,
            checked, np.array(TOLERANCE), moments[batch], error[batch], level[batch], counts[batch],
            components, picks[batch],
        )  # fmt: skip
        kept = np.arange(_COMPONENTS) < counts[batch, :, None]
        return components[:, 0][kept[:, 0]], components[:, 1][kept[:, 1]]

    of_means, of_variances = zip(*on_threads(work, cells, size, threads), strict=True)
    components = np.concatenate(of_means), np.concatenate(of_variances)
    return _Run(moments, error, level, counts, picks, components)


def _prior(noisy: NoisyMoments) -> Floats:
    """Log weights, locs, precisions, concentrations and scales (5, n_parts), the largest scale first."""
    prior = noisy.prior
    columns = (np.log(prior.weight), prior.loc, prior.precision, prior.concentration, prior.scale)
    table = np.stack([np.broadcast_to(column, prior.n_parts) for column in columns])
    return np.ascontiguousarray(table[:, np.argsort(-table[4], kind="stable")])


def _n_terms(noisy: NoisyMoments) -> Floats:
    """(c, r) of the prior of N, log pi(N) = c - r log(N + 1)."""
    n_prior = noisy.n_prior
    least = float(n_prior.support[0])
    falls = 1.0 if isinstance(n_prior, Reciprocal) else 0.0
    return np.array([float(n_prior.log_prob(np.array([least]))[0]) + falls * np.log1p(least), falls])


def _nats_of_n(noisy: NoisyMoments) -> float:
    """Nats that the noise takes at least for a record more or less, 0 where N is public.

    Where the components of a release are parts of N, sum |x_j| / b_j >= |sum x_j| / max b_j.
    """
    totals = noisy.totals
    shape = (totals.releases, -1)
    coefficients = totals.coefficients.reshape(*shape, 3)
    whole = np.allclose(coefficients[..., 1:].sum(axis=1), 0.0) and np.all(
        coefficients[..., 0].sum(axis=1) > 0.0
    )
    if isinstance(noisy.n_prior, Fixed) or not whole:
        return 0.0
    return float(np.sum(coefficients[..., 0].sum(axis=1) / totals.scale.reshape(shape).max(axis=1)))
