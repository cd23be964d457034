"""Joint posteriors of tables that share margins, against enumeration of all data; and their parts."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from suffice.pipeline.math.distributions.composite import Probabilities
from suffice.pipeline.math.engines.network import decomposition
from suffice.pipeline.math.engines.network import table_posterior as posterior
from suffice.pipeline.math.engines.network.table_chains import Chains, first_tables
from suffice.pipeline.math.engines.network.table_network import TableNetwork, junction_tree, parts
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Uniform
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics.count_table import CountTable, Variable, released_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.distributions.composite import PiecewiseTables
    from suffice.typing import Floats, Rows

    Nodes: TypeAlias = dict[str, tuple[str, ...]]

FALSE_ALARM = 1e-8
REPEATS = 30
SCALE = 1.3
CHAIN: Nodes = {"a": (), "b": ("a",), "c": ("b",)}
MARRIED: Nodes = {"a": (), "b": ("a",), "c": ("b", "a")}
CUT: Nodes = {"a": (), "b": (), "c": ("a", "b"), "d": ("c",), "e": ("d",)}


def tables_of(nodes: Nodes, sizes: dict[str, int] | None = None) -> tuple[CountTable, ...]:
    """One table for each node; two categories where no others are stated."""
    variables = {
        name: Variable(name=name, categories=tuple(map(str, range((sizes or {}).get(name, 2)))))
        for name in nodes
    }
    return tuple(
        CountTable(name=name, variables=tuple(variables[each] for each in (*parents, name)))
        for name, parents in nodes.items()
    )


def noisy_tables(
    nodes: Sequence[CountTable], counts: Sequence[Floats], scale: float, n_prior: NPrior, releases: int = 1
) -> posterior.NoisyTables:
    """Tables that were released with the same values, once or several times."""
    totals = [
        NoisyTotals.of_counts([table] * releases, [scale] * releases)
        for node, table in zip(nodes, counts, strict=True)
        if node in released_tables(nodes)
    ]
    return posterior.NoisyTables.of(nodes, totals, n_prior)


class Problem:
    """Noisy tables of one cell, and priors."""

    def __init__(self, nodes: Nodes, rng: np.random.Generator) -> None:
        self.released = tables_of(nodes)
        self.noisy = [rng.integers(-2, 5, table.shape).astype(float) for table in self.released]
        self.concentrations = [rng.choice([0.5, 1.0, 2.0], (table.size // 2, 2)) for table in self.released]

    def distribution(self, n_prior: NPrior, scale: float = SCALE, observations: int = 1) -> PiecewiseTables:
        """The same cell, many times over, each seen `observations` times through so many times the noise."""
        counts = [np.repeat(noisy[None], REPEATS, axis=0) for noisy in self.noisy]
        noisy = noisy_tables(self.released, counts, observations * scale, n_prior, observations)
        return decomposition.network_distribution(self.released, noisy, self.concentrations)

    def enumerated(self, n_prior: NPrior) -> Floats:
        """Means and mean squares of all probabilities, from counts of all combinations of categories."""
        names = [table.name for table in self.released]
        rows = list(itertools.product((0, 1), repeat=len(names)))
        entries = [
            np.array([
                np.ravel_multi_index([row[names.index(v.name)] for v in table.variables], table.shape)
                for row in rows
            ])
            for table in self.released
        ]  # fmt: skip
        logs, moments = [], []
        for n in range(n_prior.support[0], n_prior.support[1] + 1):
            for bars in itertools.combinations(range(n + len(rows) - 1), len(rows) - 1):
                full = np.diff((-1, *bars, n + len(rows) - 1)) - 1
                log = float(
                    n_prior.log_prob(np.array([float(n)]))[0] + gammaln(n + 1) - gammaln(full + 1).sum()
                )
                first, second = [], []
                for at, table, noisy, prior in zip(
                    entries, self.released, self.noisy, self.concentrations, strict=True
                ):
                    counts = np.bincount(at, full, minlength=noisy.size).reshape(prior.shape)
                    updated = prior + counts
                    total = updated.sum(axis=1, keepdims=True)
                    if table in released_tables(self.released):
                        log -= float(np.abs(noisy.ravel() - counts.ravel()).sum()) / SCALE
                    log += float((gammaln(updated) - gammaln(prior)).sum())
                    log += float((gammaln(prior.sum(axis=1)) - gammaln(total[:, 0])).sum())
                    first.append((updated / total).ravel())
                    second.append((updated / total * (updated + 1) / (total + 1)).ravel())
                logs.append(log)
                moments.append(np.concatenate(first + second))
        weights = np.exp(np.array(logs) - max(logs))
        expected: Floats = weights @ np.array(moments) / weights.sum()
        return expected


def distance(distribution: PiecewiseTables, expected: Floats) -> float:
    """The largest t statistic of means and mean squares over the repeated cells."""
    mean, sd = distribution.mean("probability"), distribution.sd("probability")
    moments = np.concatenate([mean, sd**2 + mean**2], axis=1)
    error = moments.std(axis=0, ddof=1) / math.sqrt(REPEATS)
    return float(np.abs((moments.mean(axis=0) - expected) / error).max())


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("nodes", "n_prior", "observations"),
    [(CHAIN, Uniform(0, 5), 1), pytest.param(MARRIED, Fixed(4), 2, marks=pytest.mark.audit)],
)
def test_moments_equal_enumeration(
    nodes: Nodes, n_prior: NPrior, observations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a fixed problem and short chains, with a limit of 9 to 10 standard errors.

    A control: half of the noise believed, which is 65 and 103 standard errors off. For 19 to hide it, 30
    cells would have to scatter three times as much: a chi squared of 29 degrees of freedom above 260.
    """
    monkeypatch.setattr(posterior, "_ITERATIONS_OF_MANY", 64)
    monkeypatch.setattr(posterior, "DOUBLINGS", 0)
    problem = Problem(nodes, np.random.default_rng(2))
    expected = problem.enumerated(n_prior)
    limit = stats.t.isf(FALSE_ALARM / (4 * len(expected)), REPEATS - 1)
    distribution = problem.distribution(n_prior, observations=observations)
    assert distance(distribution, expected) < limit
    assert str(distribution.diagnostics["sampler"]).startswith("MCMC")
    assert distance(problem.distribution(n_prior, SCALE / 2), expected) > 2 * limit


def test_latent_tables_stay_consistent_and_come_from_everywhere() -> None:
    rng = np.random.default_rng(7)
    nodes: Nodes = {"a": (), "b": ("a",), "c": ("b", "a"), "d": ("c",), "e": ("a",)}
    released = tables_of(nodes, {"a": 3, "b": 1, "c": 3, "d": 4})
    concentrations = [np.ones((table.size // table.shape[-1], table.shape[-1])) for table in released]
    network = TableNetwork.of(released, concentrations, [Uniform(5, 60)])
    exact = {scope: rng.integers(0, 9, (network.size(scope), 4)).astype(float) for scope in network.scopes}
    repeated = {scope: np.repeat(table, 5, axis=1) for scope, table in exact.items()}
    start = first_tables(network, repeated, Uniform(5, 60), 3.0, rng)
    chains = Chains(network, [[(exact, 3.0)]], [start], rng)
    chains.warm_up(30)
    states = chains.run(8, 2).transpose(0, 3, 2, 1).reshape(8, -1, 20)
    tables = np.split(states, np.cumsum([table.size for table in released])[:-1], axis=1)
    assert np.array_equal(states, np.rint(states))
    assert states.min() >= 0
    totals = [table.sum(axis=1) for table in tables]
    assert all(np.array_equal(total, totals[0]) for total in totals)
    assert totals[0].min() >= 5
    assert totals[0].max() <= 60
    a, _, c, d, e = (t.reshape(8, *r.shape, 20) for t, r in zip(tables, released, strict=True))
    assert np.array_equal(c.sum(axis=(1, 3)), a)
    assert np.array_equal(e.sum(axis=2), a)
    assert np.array_equal(c.sum(axis=(1, 2)), d.sum(axis=2))
    assert (states.std(axis=(0, 2)) > 0).all()


def test_parts_are_what_the_tables_alone_decide() -> None:
    assert parts(tables_of(CHAIN)) == [[0, 1, 2]]
    assert parts(tables_of(MARRIED)) == [[0, 1, 2]]
    assert parts(tables_of(CUT)) == [[0], [1], [3, 4], [2]]
    two = tables_of({"a": (), "x": (), "b": ("a",), "y": ("x",), "z": ("x",)})
    assert parts(two) == [[0, 2], [1, 3, 4]]
    # Once the table of c is cut, its parents a and b are no longer joined with it.
    deep = tables_of({"a": (), "b": (), "c": ("a", "b"), "d": ("a", "c"), "e": ("a", "b")})
    assert parts(deep) == [[0], [1], [2, 4], [3]]


def test_cliques_meet_those_before_them_in_one() -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        # Each new variable joins some of a clique there is: a graph without a hole.
        scopes: list[tuple[int, ...]] = [(0,)]
        for variable in range(1, 9):
            within = scopes[rng.integers(len(scopes))]
            kept = [other for other in within if rng.random() < 0.7] or [within[0]]
            scopes.append((*kept, variable))
        tree = junction_tree(scopes)
        assert all(any(set(scope) <= set(clique) for clique in tree.cliques) for scope in scopes)
        for position, separator in enumerate(tree.separators, 1):
            earlier = tree.cliques[:position]
            shared = set(tree.cliques[position]) & set(itertools.chain.from_iterable(earlier))
            assert set(separator) == shared
            assert any(shared <= set(clique) for clique in earlier)


def distribution_of(
    nodes: Nodes, sizes: dict[str, int], noisy: Sequence[Floats] | None = None
) -> PiecewiseTables:
    released = tables_of(nodes, sizes)
    counts = noisy or [np.full((1, *table.shape), 7.0) for table in released]
    prior = [np.ones((table.size // table.shape[-1], table.shape[-1])) for table in released]
    return decomposition.network_distribution(
        released, noisy_tables(released, counts, 2.0, Uniform(0, 2000)), prior
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_what_a_posterior_rests_on_is_told() -> None:
    star: Nodes = {"a": (), "b": ("a",), "c": ("a",), "alone": ()}
    assert distribution_of(star, {}).diagnostics == {}
    chain = distribution_of(CHAIN, {}).diagnostics
    assert set(chain) == {"sampler", "chains", "draws", "largest_r_hat", "fewest_effective_draws"}
    assert chain["largest_r_hat"] < 1.02
    assert chain["fewest_effective_draws"] > posterior.ENOUGH_EFFECTIVE
    assert distribution_of(CHAIN, {"a": 20, "b": 7}).diagnostics == {"not_reconciled": "a, b, c"}
    cut = distribution_of(CUT, {}).diagnostics
    assert cut["not_reconciled"] == "a, b, c"
    assert str(cut["sampler"]).startswith("MCMC")


@pytest.mark.slow
def test_only_cells_that_have_not_settled_are_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of cells of 20, 200 and 2,000 rows, through noise of 2: the last twice, the first three times."""
    judgements = [[1.2, 1.0, 1.2], [1.2, 1.0], [1.0]]
    sweeps: list[int] = []
    run = Chains.run

    def watched(chains: Chains, iterations: int, thin: int) -> Rows:
        sweeps.append(iterations * thin)
        return run(chains, iterations, thin)

    def judged(kept: Rows, *_given: object) -> Floats:
        r_hats = judgements.pop(0)
        assert kept.shape[2] == len(r_hats)
        return np.array([r_hats, np.full(len(r_hats), 1e4)])

    monkeypatch.setattr(Chains, "run", watched)
    monkeypatch.setattr(posterior, "_judged", judged)
    monkeypatch.setattr(posterior, "_ITERATIONS", 8)
    released = tables_of(CHAIN)
    cells = np.array([20.0, 200.0, 2000.0])
    noisy = [
        np.broadcast_to(cells.reshape(3, *[1] * len(table.shape)) / table.size, (3, *table.shape))
        for table in released
    ]
    ((piece, _, _),) = decomposition.network_distribution(
        released,
        noisy_tables(released, noisy, 2.0, Uniform(0, 4000)),
        [np.ones((table.size // 2, 2)) for table in released],
    ).pieces
    assert isinstance(piece, Probabilities)
    assert isinstance(piece.posterior, posterior.NetworkPosterior)
    assert sweeps == [24, 48, 96]
    assert not judgements
    assert piece.diagnostics["largest_r_hat"] == 1.0
    # Of three tables each, 20 rows more or fewer cost 10 nats; a cell in another's place would be 180 off.
    assert np.abs(piece.posterior.counts[..., :2].sum(axis=-1) - cells).max() < 20


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_chains_are_the_same_for_who_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of short chains, whose draws follow what these chains found: .02 and 10 % allow for 5,000 of them."""
    monkeypatch.setattr(posterior, "_ITERATIONS", 16)
    monkeypatch.setattr(posterior, "DOUBLINGS", 0)
    first, second = distribution_of(CHAIN, {}), distribution_of(CHAIN, {})
    assert np.array_equal(first.mean("probability"), second.mean("probability"))
    draws = first.sample(5000, np.random.default_rng(7))["probability"]
    assert draws.shape == (5000, 1, 10)
    assert np.abs(draws.mean(axis=0) - first.mean("probability")).max() < 0.02
    assert draws.std(axis=0) == pytest.approx(first.sd("probability"), rel=0.1)


@pytest.mark.slow
def test_what_tables_share_makes_intervals_narrower(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the table of b alone is far noisier than that of its children, they tell its counts."""
    rng = np.random.default_rng(8)
    sizes = {"a": 8, "b": 2, "c": 2}
    released = tables_of(CHAIN, sizes)
    exact = [np.full((6, *table.shape), 160.0 / table.size) for table in released]
    noisy = [np.rint(table + rng.laplace(0, 2.0, table.shape)) for table in exact]
    joint = distribution_of(CHAIN, sizes, noisy).sd("probability").mean()
    monkeypatch.setattr(decomposition, "MOST_ENTRIES", 1)
    apart = distribution_of(CHAIN, sizes, noisy).sd("probability").mean()
    assert joint < 0.99 * apart
