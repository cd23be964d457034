"""Moves among latent tables that agree on their margins, which keep it so; see ``table_network``.

A *kind* is a set M of variables of one clique. A move adds k to the counts of rows with category i
and takes k from those with j, for every variable of M, at one or several combinations of the others: for M
empty, rows come or go; for one variable, rows change its category; for more, an interaction changes and
every smaller margin stays. Moves of one kind that touch no entry in common are proposed together; k and -k
are equally likely whatever the tables are, so a move is accepted by Metropolis' rule and the density is
invariant, without error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.math.engines.network.table_network import (
        Scope,
        Sites,
        TableNetwork,
    )
    from suffice.typing import Floats, Rows

_MOST_MOVED = 4
_WIDER = 4
"""Every width of moves is so many times the one before."""
_TIMES, _MOST_TIMES = 4, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveKind:
    """A set of variables that moves, and at how many combinations of the others a move does.

    Attributes
    ----------
    moved : Scope
        M.
    parallel : Scope
        Each combination of these variables has moves of its own.
    picked : tuple of (Scope, Scope)
        Cliques that contain M, and their further variables that are not in one before.
    changing : tuple of Scope
        Margins that contain M.
    width : int
        At how many combinations of the picked variables a move changes counts.
    times : int
        How many sets of moves of this kind a sweep proposes.
    data_sets : tuple of int
        Whose tables move together.
    """

    moved: Scope
    parallel: Scope
    picked: tuple[tuple[Scope, Scope], ...]
    changing: tuple[Scope, ...]
    width: int
    times: int
    data_sets: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Moves that touch no entry in common.

    Attributes
    ----------
    sites : Sites
        All entries that may change, move by move.
    of_entry : ndarray of shape (n_entries,), int64
        Each entry's move.
    factors : ndarray of shape (n_entries, 1), float64
        By how many times its step an entry changes.
    steps : ndarray of shape (n_entries,), int64
        Each entry's step: its move's, where one data set moves. Otherwise the steps of all moves stand data
        set by data set, those of the sums last.
    together : bool
        Whether the tables of all data sets move.
    starts : ndarray of shape (n_moves,), int64
        Where the entries of every move begin.
    """

    sites: Sites
    of_entry: Rows
    factors: Floats
    steps: Rows
    together: bool
    starts: Rows


def kinds(network: TableNetwork) -> list[MoveKind]:
    """Return all kinds of moves: of every set of variables of a clique, at one combination and at several."""
    sets = {
        moved
        for clique in network.tree.cliques
        for size in range(min(len(clique), _MOST_MOVED) + 1)
        for moved in combinations(clique, size)
    }
    together = tuple(range(network.n_sets))
    movers = [(number,) for number in together] + ([together] if network.n_sets > 1 else [])
    n_is_known = [prior.support[0] == prior.support[1] for prior in network.n_priors]
    kinds = []
    for moved in sorted(sets, key=lambda scope: (len(scope), scope)):
        if any(network.sizes[variable] == 1 for variable in moved):
            continue
        moving = [
            movers_of_width
            for movers_of_width in movers
            if moved or not any(n_is_known[number] for number in movers_of_width)
        ]
        changing = tuple(scope for scope in network.starts if set(moved) <= set(scope))
        # Combinations of these lie in different entries of every margin that changes: their moves are
        # disjoint.
        parallel = set.intersection(*map(set, changing)) - set(moved)
        cliques = [clique for clique in network.tree.cliques if set(moved) <= set(clique)]
        picked, known = [], parallel | set(moved)
        for clique in cliques:
            further = tuple(variable for variable in clique if variable not in known)
            known |= set(further)
            if further:
                picked.append((clique, further))
        most = max(network.size(clique) for clique in cliques) // math.prod(
            network.sizes[variable] for variable in (*parallel, *moved)
        )
        widths = [1]
        while widths[-1] * _WIDER <= most:
            widths.append(widths[-1] * _WIDER)
        for width, movers_of_width in product(widths, moving):
            times = min(_MOST_TIMES, 2 * -(-most // width)) if picked else _TIMES
            kinds.append(
                MoveKind(
                    moved=moved,
                    parallel=tuple(sorted(parallel)),
                    picked=tuple(picked),
                    changing=changing,
                    width=width,
                    times=times,
                    data_sets=movers_of_width,
                )
            )
    return kinds


def disjoint_moves(
    kind: MoveKind, network: TableNetwork, log_weights: Mapping[Scope, Floats], rng: np.random.Generator
) -> Moves:
    """Pair off categories and pick combinations, for moves that touch no entry in common.

    Parameters
    ----------
    kind : MoveKind
    network : TableNetwork
    log_weights : mapping of Scope to ndarray of shape (size,), float64
        Of the entries of each clique.
    rng : numpy.random.Generator
    """
    pairs = [rng.permutation(size)[: size // 2 * 2].reshape(-1, 2) for size in network.shape(kind.moved)]
    lengths = (*map(len, pairs), *network.shape(kind.parallel))
    n_moves = math.prod(lengths)
    grid = np.indices(lengths).reshape(len(lengths), n_moves)
    corners = np.array(list(product((0, 1), repeat=len(pairs))), dtype=np.int64)
    # Categories by variable: (corners or 1, moves, width or 1).
    levels: dict[int, Rows] = {
        variable: pairs[axis][grid[axis], corners[:, axis, None]][:, :, None]
        for axis, variable in enumerate(kind.moved)
    }
    for axis, variable in enumerate(kind.parallel, len(pairs)):
        levels[variable] = grid[axis][None, :, None]
    for clique, further in kind.picked:
        given = tuple(variable for variable in clique if variable not in further)
        order = [clique.index(variable) for variable in (*given, *further)]
        weights = log_weights[clique].reshape(network.shape(clique)).transpose(order)
        # Weights that do not depend on the state keep the proposal symmetric.
        at = weights.reshape(*network.shape(given), -1)[tuple(levels[variable] for variable in given)]
        at = at.mean(axis=0) if given else at
        picked = _pick(np.broadcast_to(at, (n_moves, kind.width, at.shape[-1])), rng)
        for variable, level in zip(further, np.unravel_index(picked, network.shape(further)), strict=True):
            levels[variable] = level[None]
    shape = (len(corners), n_moves, kind.width)
    blocks = [*kind.data_sets, *([network.n_sets] if network.n_sets > 1 else [])]
    keys = []
    for scope, block in product(kind.changing, blocks):
        entry = np.zeros((1, 1, 1), dtype=np.int64)
        for variable in scope:
            entry = entry * network.sizes[variable] + levels[variable]
        keys.append(np.broadcast_to(entry + network.starts[scope] + block * network.n_per_set, shape))
    # A corner of the product of pairs has the sign of its parity, so that every smaller margin stays.
    signs = np.broadcast_to((1.0 - 2.0 * (corners.sum(axis=1) % 2))[:, None, None], (len(keys), *shape))
    by_move = np.array(keys) + network.n_entries * np.arange(n_moves)[:, None]
    distinct, which = np.unique(by_move, return_inverse=True)
    of_entry, entries = np.divmod(distinct, network.n_entries)
    together = len(kind.data_sets) > 1
    return Moves(
        sites=network.sites(entries),
        of_entry=of_entry,
        factors=np.bincount(which.ravel(), signs.ravel())[:, None].astype(np.float64),
        steps=of_entry + (entries // network.n_per_set * n_moves if together else 0),
        together=together,
        starts=np.searchsorted(of_entry, np.arange(n_moves)),
    )


def _pick(log_weights: Floats, rng: np.random.Generator) -> Rows:
    """Pick along the last axis."""
    below = np.cumsum(np.exp(log_weights), axis=-1)
    drawn = rng.random((*below.shape[:-1], 1)) * below[..., -1:]
    picked: Rows = np.sum(below[..., :-1] <= drawn, axis=-1)
    return picked
