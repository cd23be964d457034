"""Where the chains of latent moments start."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.multivariate.evidence import State, outer
from suffice.pipeline.math.engines.multivariate.log_posterior import along
from suffice.pipeline.math.engines.multivariate.outcome_coordinates import OutcomeNoise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.distributions.moment_projection import Moments
    from suffice.pipeline.math.engines.multivariate.log_posterior import Target
    from suffice.pipeline.math.engines.multivariate.pooled import SharedTarget
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


_LEAST_SPREAD = 1e-12
"""Added so that a start is positive definite where there is next to no noise."""


_SEEN = 5.0
"""Conditional variances of so many times the noise are taken for seen."""
_UNIT = 0.3
"""Below so much of the noise's standard deviation chains move along the logarithm of a column's scatter."""
_OF_UNIT = 0.5
"""How far chains start apart where coordinates are in units of their standard deviation."""
_COEFFICIENT = 0.5
"""About how large a coefficient is, in half ranges, of a predictor whose scale noise hides."""


def with_lengths(target: Target, sums: Moments, *, outcome: bool) -> Target:
    """Return the target in coordinates that suit its cells; see ``Target.relative``.

    Where noise hides a column's scale, products with it are in units of that scale; where it is seen they
    stay as they are. Those of an outcome, the last column, go along with the predictor's scale or, where
    that is next to nothing, with the sampling error.
    """
    n, noise, _, spread = _near(target, sums)
    rows, _ = np.tril_indices(target.size, -1)
    pivots = np.einsum("cii->ic", np.linalg.cholesky(np.moveaxis(spread, 2, 0))) ** 2
    hidden = (pivots < _SEEN * noise).astype(np.float64)
    relative = np.stack([np.zeros((len(rows), len(n))), hidden[rows], 1.0 - hidden[rows]])
    if outcome:
        of_outcome = rows == target.size - 1
        relative[0, of_outcome] = _COEFFICIENT
        relative[1, of_outcome] = 1.0 / np.sqrt(n)
        relative[2, of_outcome] = 0.0
    units = np.repeat(_UNIT * np.sqrt(np.minimum(1.0, noise))[None], target.size, axis=0)
    if not outcome:
        return replace(target, relative=relative, units=units)
    # Of every moment, by least squares over all components.
    sds = math.sqrt(2.0) * np.linalg.norm(np.linalg.pinv(target.scaled.coefficients), axis=1)
    _, second = np.triu_indices(target.size)
    lengths = OutcomeNoise(
        rows=n,
        noise=sds[1 + target.size :][second == target.size - 1][:-1, None] / n,
        noise_of_mean=sds[target.size] / n,
        most=np.sqrt(spread[-1, -1] + 2.0 * noise),
    )
    return replace(target, relative=relative, units=units, outcome=lengths)


def starts(
    target: Target,
    sums: Moments,
    statistic: NoisyStatistic,
    n_chains: int,
    squares: Floats | None,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return overdispersed starts about the noisy moments, made possible, and a guess of the spread.

    Parameters
    ----------
    target : Target
    sums : Moments
        The unbiased estimates.
    statistic : NoisyStatistic
    n_chains : int
        Of each cell.
    squares : ndarray of shape (k, n_cells), float64, or None
        Of likely coefficients of a regression.
    rng : numpy.random.Generator

    Returns
    -------
    start : ndarray of shape (n_coordinates, n_cells, n_chains), float64
    guess : ndarray of shape (n_coordinates, n_cells), float64
        Of the posterior's standard deviations.
    """
    size, latent_n = target.size, target.latent_n
    n, noise_of_products, average, spread = _near(target, sums)
    doubt = np.minimum(1.0, noise_of_products)
    base_point = target.coordinates(n, average, spread, squares)
    state = State(n=n, mean=average, spread=spread, second=spread + outer(average, average))
    logs = np.log(np.einsum("cii->ic", np.linalg.cholesky(np.moveaxis(spread, 2, 0))))
    latent = [evidence.start(state) for evidence in target.evidence]
    relative_to = along(target.evidence, logs)
    noise = statistic.plan.quantity_noise_sd(statistic.plan.quantities[0])
    scales = [np.minimum(0.5, noise / n)[None]] if not latent_n.fixed else []
    if target.linear:
        of_means = np.repeat(0.3 * doubt[None], size, axis=0)
        if squares is not None:
            of_means[-1] = _OF_UNIT
        scales.append(of_means)
    rows, columns = np.tril_indices(size)
    root = np.sqrt(np.einsum("iic->ic", spread))
    below = np.minimum(0.5 * root[rows], doubt / root[columns])
    if target.relative is not None:
        below[rows != columns] /= target.lengths(root, size * (size - 1) // 2)[0]
    if squares is not None:
        below[rows == size - 1] = _OF_UNIT
    relative = np.minimum(0.3, doubt / root[rows] ** 2)
    if target.units is not None:
        relative *= np.maximum(1.0, (root / target.units)[rows])
    scales.append(np.where((rows == columns)[:, None], relative, below))
    scales += [sd for _, sd in latent]
    guess = np.maximum(np.concatenate(scales), 1e-12)
    scales_start = np.concatenate([relative_to[:0], *(each for each, _ in latent)]) - relative_to
    base_point = np.concatenate([base_point, scales_start])
    jitter = rng.standard_normal((target.n_coordinates, len(n), n_chains))
    return base_point[:, :, None] + guess[:, :, None] * jitter, guess


def _near(target: Target, sums: Moments) -> tuple[Floats, Floats, Floats, Floats]:
    """Return n (c,), the noise of products (c,), means (d, c) and S / n (d, d, c) near the noisy moments."""
    size, latent_n = target.size, target.latent_n
    if latent_n.fixed:
        n = np.full(len(sums.n), latent_n.lowest)
    else:
        room = min(1.0, (latent_n.highest - latent_n.lowest) / 4.0)
        n = np.clip(sums.n, latent_n.lowest + room, latent_n.highest - room)
    noise_of_products = (
        math.sqrt(2.0) / np.abs(target.scaled.coefficients[:, 1 + size :]).max(axis=0).min() / n
    )
    average, spread = _possible(sums, n, noise_of_products, linear=target.linear)
    # Noise leaves less than it adds: a spread of a tenth of the half range is mixed in where it is large.
    mixed = _LEAST_SPREAD + 0.1 * np.minimum(1.0, noise_of_products)
    return n, noise_of_products, average, spread + mixed * np.eye(size)[:, :, None]


def shared_start(
    target: SharedTarget, begun: Sequence[Floats], rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return starts of the shared latent scales where those of data sets are, and a guess of the spread."""
    _, n_cells, n_chains = begun[0].shape
    x = np.concatenate(begun).reshape(-1, n_cells * n_chains)
    empty = np.zeros((sum(evidence.n_latent for evidence in target.shared), x.shape[1]))
    whole = np.concatenate([x, empty])
    state = target.total(whole)
    found = [evidence.start(state) for evidence in target.shared]
    start, guess = (np.concatenate([empty[:0], *parts]) for parts in zip(*found, strict=True))
    start = start - target.latent(whole) + guess * rng.standard_normal(start.shape)
    shape = (-1, n_cells, n_chains)
    return start.reshape(shape), guess.reshape(shape)[:, :, 0]


def _possible(sums: Moments, n: Floats, noise: Floats, *, linear: bool) -> tuple[Floats, Floats]:
    """Return means (d, c) and S / n (d, d, c) near unbiased moments, that some rows could have.

    What lies beyond the bounds by more than a few times the noise is left there: the distribution knows no
    bounds, and chains would not find their way back from them.
    """

    def within(values: Floats) -> Floats:
        size = np.abs(values)
        return np.sign(values) * np.minimum(size, np.maximum(1.0, size - 4.0 * noise))

    average = within(sums.total.T / n) if linear else np.zeros_like(sums.total.T)
    spread = np.moveaxis(sums.products, 0, 2) / n - outer(average, average)
    values, vectors = np.linalg.eigh(np.moveaxis(spread, 2, 0))
    spread = np.moveaxis((vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, 1, 2), 0, 2)
    variance = np.einsum("iic->ic", spread)
    shrink = np.sqrt(np.divide(within(variance), variance, out=np.ones_like(variance), where=variance > 0.0))
    return average, spread * outer(shrink, shrink)
