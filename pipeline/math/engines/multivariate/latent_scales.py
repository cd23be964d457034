"""Latent scales of evidences as chains see them: what they go along with, and the evidences at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.multivariate.evidence import inverse_of_lower

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.multivariate.evidence import Evidence, Gradient, MomentState
    from suffice.typing import Floats


def along(evidences: Sequence[Evidence], root: Floats) -> Floats:
    r"""Return what coordinates of latent scales (n, b) are relative to, given L (d, d, b).

    A scale goes along with what its column has for itself: with the log of its conditional scatter given the
    other columns of its evidence, :math:`-\log (L L^T)^{-1}_{jj}`. Where noise hides a correlation that may
    be near 1, all scales of the columns fall with it.
    """
    shifts = [np.zeros((0, root.shape[2]))]
    for evidence in evidences:
        shift = np.zeros((evidence.n_latent, root.shape[2]))
        places, columns = _of_columns(evidence)
        if columns:
            inverse = inverse_of_lower(root[: max(columns) + 1, : max(columns) + 1])
            shift[places] = -np.log(np.einsum("ijb,ijb->jb", inverse, inverse)[columns])
        shifts.append(shift)
    return np.concatenate(shifts)


def pulled_along(evidences: Sequence[Evidence], by_latent: Floats, root: Floats) -> Floats:
    """Return the derivatives (d, d, b) by L, from those by latent scales."""
    pulled, start = np.zeros_like(root), 0
    for evidence in evidences:
        by = by_latent[start : start + evidence.n_latent]
        start += evidence.n_latent
        places, columns = _of_columns(evidence)
        if not columns:
            continue
        size = max(columns) + 1
        inverse = inverse_of_lower(root[:size, :size])
        weight = np.zeros((size, root.shape[2]))
        weight[columns] = by[places] / np.einsum("ijb,ijb->jb", inverse, inverse)[columns]
        # With K = M^T M and M = L^-1: d(-log K_jj) = 2 (K e_j)^T dL (M e_j) / K_jj.
        inner = np.einsum("ijb,jb,kjb->ikb", inverse, weight, inverse)
        pulled[:size, :size] += 2.0 * np.einsum("jib,jkb->ikb", inverse, inner)
    return pulled


def _of_columns(evidence: Evidence) -> tuple[list[int], list[int]]:
    """Return which latent scales go along with a column, and the columns."""
    pairs = [(place, column) for place, column in enumerate(evidence.columns) if column is not None]
    return [place for place, _ in pairs], [column for _, column in pairs]


def evidence_of(
    evidences: Sequence[Evidence], state: MomentState, latent: Floats, gradient: Gradient
) -> tuple[Floats, Floats]:
    """Return the log of several evidences (b,) and its derivatives by their scales; add those by moments.

    `latent` has the coordinates of one evidence after those of the other.
    """
    value, slopes, start = np.zeros(state.mean.shape[1]), [latent[:0]], 0
    for evidence in evidences:
        more, by, by_latent = evidence(state, latent[start : start + evidence.n_latent])
        start += evidence.n_latent
        value = value + more
        gradient.add(by)
        slopes.append(by_latent)
    return value, np.concatenate(slopes)
