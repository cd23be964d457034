"""Chains of latent tables: compiled loops beside arrays, from the same random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.math.distributions import many_cells
from suffice.pipeline.math.engines.network.table_chains import Chains, first_tables, numbers_of
from suffice.pipeline.math.engines.network.table_network import TableNetwork
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform
from suffice.pipeline.terms.statistics.count_table import CountTable, Variable

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.network.table_moves import Moves
    from suffice.typing import Floats

CELLS, EACH = 3, 8
SIZES = {"a": 2, "b": 3, "c": 2, "d": 3}
NODES = {"a": (), "b": ("a",), "c": ("b",), "d": ("b", "c")}
SCALES = (3.0, 5.0)


def chains_of(n_priors: tuple[NPrior, ...], releases: int) -> Chains:
    """Chains of data sets whose tables were released some times."""
    rng = np.random.default_rng(3)
    variables = {
        name: Variable(name=name, categories=tuple(map(str, range(size)))) for name, size in SIZES.items()
    }
    released = [
        CountTable(name=name, variables=tuple(variables[each] for each in (*parents, name)))
        for name, parents in NODES.items()
    ]
    priors = [rng.choice([0.5, 1.0, 2.0], (t.size // t.shape[-1], t.shape[-1])) for t in released]
    network = TableNetwork.of(released, priors, n_priors)
    start, noisy = [], []
    for prior in n_priors:
        tables = [
            {
                scope: rng.integers(-2, 9, (network.size(scope), CELLS)).astype(float)
                for scope in network.scopes
            }
            for _ in range(releases)
        ]
        noisy.append(list(zip(tables, SCALES, strict=False)))
        projected = {
            scope: np.repeat(np.maximum(table, 1.0), EACH, axis=1) for scope, table in tables[0].items()
        }
        start.append(first_tables(network, projected, prior, SCALES[0], rng))
    return Chains(network, noisy, start, np.random.default_rng(5))


def swept(chains: Chains, *, loops: bool) -> tuple[Floats, list[Floats]]:
    """Return tables of some sweeps, and the shares of moves that were accepted on the way."""
    shares = []
    route = chains.by_loops if loops else chains.by_arrays

    def watched(moves: Moves, sizes: Floats, uniform: Floats, exponentials: Floats) -> Floats:
        shares.append(route(moves, sizes, uniform, exponentials))
        return shares[-1]

    chains.accept = watched
    chains.warm_up(6)
    chains.keep(np.array([2, 0]))
    return chains.run(5, 1), shares


@pytest.mark.parametrize(
    ("n_priors", "releases"),
    [
        ((Reciprocal(60),), 1),
        ((Uniform(12, 40),), 2),
        ((Fixed(25), Reciprocal(1000)), 1),
        ((Uniform(5, 60), Uniform(5, 70), Fixed(30)), 2),
    ],
    ids=str,
)
def test_loops_and_arrays_go_the_same_way(n_priors: tuple[NPrior, ...], releases: int) -> None:
    """Every table and every share accepted: rounding would part them at one move in 1e9."""
    by_arrays, shares = swept(chains_of(n_priors, releases), loops=False)
    by_loops, of_loops = swept(chains_of(n_priors, releases), loops=True)
    assert np.array_equal(by_loops, by_arrays)
    assert np.array([len(each) for each in shares]).tolist() == [len(each) for each in of_loops]
    assert all(each == pytest.approx(other) for each, other in zip(of_loops, shares, strict=True))
    assert 0.1 < np.mean([share.mean() for share in shares]) < 0.9
    assert (by_arrays.std(axis=0) > 0).any(axis=-1).all()


@pytest.mark.parametrize("prior", [Reciprocal(1000), Uniform(5, 60), Fixed(30)], ids=str)
def test_four_numbers_are_the_prior_of_n(prior: NPrior) -> None:
    constant, falls, low, high = numbers_of(prior)
    n = np.arange(low, high + 1)
    assert constant - falls * np.log1p(n) == pytest.approx(prior.log_prob(n), rel=1e-12, abs=1e-12)
    assert np.isneginf(prior.log_prob(np.array([low - 1, high + 1]))).all()


@pytest.mark.parametrize("pays", [False, True])
def test_chains_take_loops_where_these_pay(monkeypatch: pytest.MonkeyPatch, *, pays: bool) -> None:
    monkeypatch.setattr(many_cells.Loops, "pay", lambda _loops, _counts: pays)
    chains = chains_of((Uniform(5, 60),), 1)
    assert chains.accept == (chains.by_loops if pays else chains.by_arrays)
