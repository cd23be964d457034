r"""Series over time with jumps: a mixture over which steps are jumps, by propagation given each.

Model. ``ordered_law``, of whose steps a share :math:`\pi` are jumps. With sets A of jumps (``jump_sets``) and
the evidence :math:`Z_A` of propagation given each,

.. math:: p(A \mid y) \propto \pi^{|A|} (1 - \pi)^{n - |A|} Z_A. \qquad (1)

A jump in doubt has two modes, with it and without: neither is a normal law, their mixture holds both.

Method. Without jumps all series are propagated together. The factors that stand for their cells say which
sets are probable, and are kept for those: cavities, evidence and moments are worked out with them, under the
prior with these jumps. Sets that are at least ``_MOVED`` as probable as the best have their factors moved
until moments agree.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.jump_sets import JUMP_VARIANCE, NO_JUMPS, jump_sets
from suffice.pipeline.math.engines.pooled.ordered_propagation import propagated

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.ordered_law import OrderedLaw
    from suffice.pipeline.math.engines.pooled.walked import Block
    from suffice.typing import Cells, Floats, Mask

_KEPT, _MOVED = 5e-3, 0.05
_FAR = 10.0
"""Standard deviations that exact moments are from those of a set whose evidence is nothing."""
_AT_ONCE = 6_000_000
"""Numbers of likelihoods that are propagated together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Series given sets of jumps: one row for each series and set; first come all series without jumps.

    Attributes
    ----------
    series : ndarray of shape (n_rows,), int64
    sets : tuple of tuple of int
        Which steps are jumps: the first step leads to the second time.
    share : ndarray of shape (n_rows,), float64
        How probable each set is; those of a series add up to 1.
    tau, nu, mu, omega : ndarray of shape (n_rows, n_times), float64
        Factors and cavities, of x less its prior mean.
    """

    series: Cells
    sets: tuple[tuple[int, ...], ...]
    share: Floats
    tau: Floats
    nu: Floats
    mu: Floats
    omega: Floats

    def among(self, series: Cells) -> Cells:
        """Return the rows of some series that count."""
        return np.flatnonzero(np.isin(self.series, series) & (self.share > 0.0))

    def covariances(self, rows: Cells, prior: Floats, moves: Floats) -> Floats:
        """Return prior covariances of rows, (n_rows, n_times, n_times)."""
        return covariances([self.sets[row] for row in rows.tolist()], prior, moves)

    def led_to(self, is_seen: Mask) -> Floats:
        """Return how probable it is that a jump leads from the cell before to each, (n_series, n_times)."""
        result = np.zeros(is_seen.shape)
        for series, chosen, share in zip(self.series.tolist(), self.sets, self.share.tolist(), strict=True):
            seen = np.flatnonzero(is_seen[series])
            reached = np.searchsorted(seen, np.array([step + 1 for step in chosen], dtype=np.int64))
            for place in np.unique(reached).tolist():
                # No cell comes after the last jump, or none before the first.
                if 0 < place < len(seen):
                    result[series, seen[place]] += share
        return np.clip(result, 0.0, 1.0)

    @classmethod
    def together(cls, n_series: int, parts: list[Parts]) -> Parts:
        """Put parts of several blocks together, series without jumps in their order first."""
        series = np.concatenate([part.series for part in parts])
        sets = [chosen for part in parts for chosen in part.sets]
        has_jumps = np.array([bool(chosen) for chosen in sets])
        order = np.lexsort((series, has_jumps))
        assert len(np.unique(series)) == n_series  # noqa: S101 - blocks have all series
        taken = {
            name: np.concatenate([getattr(part, name) for part in parts])[order]
            for name in ("share", "tau", "nu", "mu", "omega")
        }
        return cls(series=series[order], sets=tuple(sets[row] for row in order.tolist()), **taken)


def covariances(sets: list[tuple[int, ...]], prior: Floats, moves: Floats) -> Floats:
    """Return prior covariances given sets of jumps, (n_sets, n_times, n_times)."""
    result = np.repeat(prior[None], len(sets), axis=0)
    for number, chosen in enumerate(sets):
        added = moves[:, list(chosen)]
        result[number] += JUMP_VARIANCE * added @ added.T
    return result


def with_jumps(
    block: Block,
    law: OrderedLaw,
    theta: Floats,
    prior: Floats,
    centre: float,
    is_seen: Mask,
    start: tuple[Floats, Floats],
    jumps: float,
) -> tuple[Parts, float] | None:
    """Return the parts of a block, and log evidence of its series together; None where nothing settles.

    Parameters
    ----------
    block : Block
    law : OrderedLaw
    theta : ndarray
    prior : ndarray of shape (n_times, n_times), float64
        The covariance of x without jumps.
    centre : float
        Its mean.
    is_seen : ndarray of shape (n_series, n_times), bool
    start : (tau, nu)
        Where to begin, of the block's series.
    jumps : float
        The share of steps that are jumps.
    """
    places = block.grid - centre
    try:
        base = propagated(prior, places, block.likelihood, is_seen, start)
    except np.linalg.LinAlgError:
        return None
    if not base.settled:
        return None
    n_series, n_times = is_seen.shape
    moves = law.moves(theta, n_times)
    # Precisions below 0 may leave no law under wider priors, or evidence that may be anything.
    tells = base.tau > 0.0
    told_tau, told_nu = np.where(tells, base.tau, 0.0), np.where(tells, base.nu, 0.0)
    all_sets = [
        jump_sets(prior, np.diag(tau), nu, moves, jumps, _KEPT) if jumps else NO_JUMPS
        for tau, nu in zip(told_tau, told_nu, strict=True)
    ]
    row_series = np.array([row for row, sets in enumerate(all_sets) for _ in sets.sets[1:]], dtype=np.int64)
    row_sets = [chosen for sets in all_sets for chosen in sets.sets[1:]]
    fields = {name: [getattr(base, name)] for name in ("tau", "nu", "mu", "omega")}
    log_z = [base.log_evidence]
    at_once = max(1, _AT_ONCE // block.likelihood[0].size)
    for first in range(0, len(row_sets), at_once):
        rows = row_series[first : first + at_once]
        wide = covariances(row_sets[first : first + at_once], prior, moves)
        seen, likelihood = is_seen[rows], block.likelihood[rows]
        part = propagated(wide, places[rows], likelihood, seen, (told_tau[rows], told_nu[rows]), rounds=1)
        of_sets = {name: getattr(part, name).copy() for name in fields}
        # Where all of a likelihood is beyond a tail, what it integrates to is no more than a smallest number.
        evidence = np.where(part.apart < _FAR, part.log_evidence, -np.inf)
        odds = np.array([len(row_sets[first + each]) for each in range(len(rows))]) * _log_odds(jumps)
        best = base.log_evidence.copy()
        np.maximum.at(best, rows, evidence + odds)
        moved = np.flatnonzero(evidence + odds > best[rows] + np.log(_MOVED))
        # Where there is no law on the way, factors stay.
        with contextlib.suppress(np.linalg.LinAlgError):
            if len(moved):
                part = propagated(
                    wide[moved],
                    places[rows[moved]],
                    likelihood[moved],
                    seen[moved],
                    (of_sets["tau"][moved], of_sets["nu"][moved]),
                )
                # The evidence of factors that do not settle may be anything, too.
                kept = part.settled_series
                for name, values in of_sets.items():
                    values[moved[kept]] = getattr(part, name)[kept]
                evidence[moved[kept]] = part.log_evidence[kept]
        for name, values in of_sets.items():
            fields[name].append(values)
        log_z.append(evidence)
    series = np.concatenate([np.arange(n_series), row_series])
    sets = [()] * n_series + row_sets
    log_weight = np.concatenate(log_z) + np.array([len(chosen) for chosen in sets]) * _log_odds(jumps)
    total = np.full(n_series, -np.inf)
    np.logaddexp.at(total, series, log_weight)
    parts = Parts(
        series=block.series[series],
        sets=tuple(sets),
        share=np.exp(log_weight - total[series]),
        **{name: np.concatenate(values) for name, values in fields.items()},
    )
    return parts, float(np.sum(total) + n_series * (n_times - 1) * np.log1p(-jumps))


def _log_odds(jumps: float) -> float:
    return float(np.log(jumps) - np.log1p(-jumps)) if jumps else 0.0
