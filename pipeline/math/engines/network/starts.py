"""First latent tables: whole numbers that agree on separators, scattered about the projected noisy tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.math.engines.network.connected import Scope
    from suffice.pipeline.math.engines.network.log_posterior import Network
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Floats


_LEAST = 0.01
"""Added so that shares are defined where a row has no counts."""


def first_tables(
    network: Network,
    projected: Mapping[Scope, Floats],
    n_prior: NPrior,
    scale: float,
    rng: np.random.Generator,
) -> Floats:
    """Return the counts of all margins of one data set, (n_own, b).

    Every clique's table is shaken by noise of the release's scale, and split in its proportions what it
    shares with those before it, rounded at random.

    Parameters
    ----------
    network : Network
    projected : mapping of Scope to ndarray of shape (size, b), float64
        Possible counts of each clique.
    n_prior : NPrior
        Of the data set.
    scale : float, > 0
        b of its noise.
    rng : numpy.random.Generator
    """
    cliques = network.tree.cliques
    tables: dict[Scope, Floats] = {}
    for clique, separator in zip(cliques, ((), *network.tree.separators), strict=True):
        noise = rng.laplace(0.0, scale, projected[clique].shape)
        shaken = np.maximum(projected[clique] + noise, 0.0) + _LEAST
        if not tables:
            shared = np.clip(np.rint(shaken.sum(axis=0)), *n_prior.support)[None]
        else:
            before = next(other for other in tables if set(separator) <= set(other))
            shared = network.margin(tables[before], before, separator)
        others = [variable for variable in clique if variable not in separator]
        axes = [*(clique.index(variable) for variable in (*separator, *others)), len(clique)]
        table = shaken.reshape(*network.shape(clique), -1).transpose(axes)
        split = _split(shared, table.reshape(len(shared), -1, table.shape[-1]), rng)
        tables[clique] = split.reshape(table.shape).transpose(np.argsort(axes)).reshape(shaken.shape)
    first = np.empty((network.n_own, shared.shape[1]))
    for scope in network.starts:
        holder = next(clique for clique in cliques if set(scope) <= set(clique))
        first[network.within(scope)] = network.margin(tables[holder], holder, scope)
    return first


def _split(totals: Floats, table: Floats, rng: np.random.Generator) -> Floats:
    """Split totals (rows, b) in about the proportions of a table (rows, entries, b), in whole numbers."""
    below = np.cumsum(table, axis=1)
    share = below / below[:, -1:]
    bounds = np.floor(share * totals[:, None] + rng.random(totals.shape)[:, None])
    bounds[:, -1] = totals
    return np.diff(bounds, axis=1, prepend=0.0)
