"""Likelihoods of count tables: against all joint counts written out, and against our posteriors."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from suffice.errors import UsageError
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.engines.network.decomposition import families
from suffice.pipeline.terms.statistics.count_table import released_tables
from support.noisy import noisy_statistic, statistic_plan
from support.tables import conditional_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.count_table import CountTable
    from suffice.typing import Floats


numpyro = pytest.importorskip("numpyro")
numpyro.enable_x64()

import jax  # noqa: E402 - after the check that it is there

from suffice import numpyro as likelihood  # noqa: E402

BITS = ["0", "1"]
SMALL: dict[str, tuple[dict[str, Any], list[int]]] = {
    "contingency": ({"family": "contingency", "columns": {"a": BITS, "b": BITS}}, [4, -2, 2, 1]),
    "naive_bayes": (
        {"family": "naive_bayes", "outcome": {"y": BITS}, "features": {"a": BITS, "b": BITS}},
        [4, -2, 2, 1, 1, 3, -1, 0],
    ),
    "star": (
        {
            "family": "bayesian_network",
            "nodes": {"a": {"categories": BITS, "parents": ["y"]}, "y": BITS, "alone": BITS},
        },
        [4, -2, 2, 1, 6, -1],
    ),
    "chain": (
        {
            "family": "bayesian_network",
            "nodes": {
                "a": BITS,
                "b": {"categories": BITS, "parents": ["a"]},
                "c": {"categories": BITS, "parents": ["b"]},
            },
        },
        [4, -2, 2, 1, 0, 2, -1, 3],
    ),
    "markov_chain": (
        {"family": "markov_chain", "column": "s", "categories": BITS, "order": "t", "transitions": "1"},
        [4, -2, 2, 1],
    ),
}
"""Entries of a spec, and released counts."""
QUICK = {"contingency", "markov_chain"}
MOST = 5
"""The largest N."""


def released(name: str, epsilon: str, cells: int = 1) -> NoisyStatistic:
    entry, row = SMALL[name]
    return noisy_statistic(
        statistic_plan(entry, epsilon=epsilon, public_n=False), np.array([row] * cells, dtype=object)
    )


def compiled(statistic: NoisyStatistic, n_prior: str, probability: Floats) -> Floats:
    """The likelihood, compiled as a whole: far quicker than operation by operation."""
    of = jax.jit(lambda given: likelihood.log_likelihood(statistic, n_prior=n_prior, probability=given))
    return np.asarray(of(probability))


def drawn(tables: Sequence[CountTable], count: int, *, joint: bool, rng: np.random.Generator) -> list[Floats]:
    """Each table's probabilities from the uniform prior, (count, n_rows, n_categories)."""
    return [
        rng.dirichlet(
            np.ones(table.size if joint else table.shape[-1]),
            (count, 1 if joint else table.size // table.shape[-1]),
        )
        for table in tables
    ]


def of_family(
    features: list[tuple[Floats, Floats]],
    scale: float,
    *,
    root: Floats | None,
) -> float:
    """Sum over all vectors of joint counts of class and features; each feature is its noisy table and
    distribution.

    `root` has the probabilities of the classes, else they are drawn uniformly.
    """
    n_classes = len(features[0][0])
    shape = (n_classes, *(noisy.shape[1] for noisy, _ in features))
    joint = np.ones(shape)
    for axis, (_, distribution) in enumerate(features, start=1):
        joint = joint * distribution.reshape(
            [n_classes, *(-1 if each == axis else 1 for each in range(1, len(shape)))]
        )
    if root is not None:
        joint = joint * root.reshape(-1, *[1] * len(features))
    terms = []
    for n in range(MOST + 1):
        for positions in combinations_with_replacement(range(joint.size), n):
            counts = np.bincount(np.array(positions, dtype=int), minlength=joint.size).reshape(shape)
            m = counts.reshape(n_classes, -1).sum(axis=1)
            log_p = gammaln(n + 1) - gammaln(counts + 1).sum() + np.sum(counts * np.log(joint))
            if root is None:
                log_p += gammaln(m + 1).sum() - gammaln(n + n_classes)
            for axis, (noisy, _) in enumerate(features, start=1):
                others = tuple(each for each in range(1, len(shape)) if each != axis)
                log_p -= np.abs(noisy - counts.sum(axis=others)).sum() / scale
            terms.append(log_p)
    return float(logsumexp(terms))


def written_out(statistic: NoisyStatistic, probabilities: list[Floats], *, is_root: bool = True) -> float:
    """The log likelihood by enumeration of all rows that there could be."""
    plan = statistic.plan
    values = statistic.values[0].astype(np.float64)
    tables = released_tables(plan.parameters.tables)
    ends = np.cumsum([table.size for table in tables])[:-1]
    observed = {
        table.name: part.reshape(-1, table.shape[-1])
        for part, table in zip(np.split(values, ends), tables, strict=True)
    }
    noisy = list(observed.values())
    if plan.family == "contingency":
        (joint,) = probabilities
        return of_family([(values[None], joint)], plan.scale, root=np.ones(1))
    if plan.family == "naive_bayes":
        features = list(zip(noisy, probabilities[1:], strict=True))
        return of_family(features, plan.scale, root=probabilities[0][0])
    if plan.family == "markov_chain":
        return of_family([(noisy[0], probabilities[0])], plan.scale, root=None)
    total = 0.0
    names = [table.name for table in plan.parameters.tables]
    for root, nodes in families(plan.parameters.tables):
        if root is not None and not nodes:
            alone = [(observed[names[root]], probabilities[root])]
            total += of_family(alone, plan.scale, root=np.ones(1))
            continue
        total += of_family(
            [(observed[names[node]], probabilities[node]) for node in nodes],
            plan.scale,
            root=None if root is None or not is_root else probabilities[root][0],
        )
    return total


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_sums_over_tables_are_those_of_all_rows(name: str) -> None:
    points = 3
    statistic = released(name, "3", points)
    tables = conditional_tables(statistic.plan)
    parts = drawn(tables, points, joint=name == "contingency", rng=np.random.default_rng(7))
    probability = np.concatenate([part.reshape(points, -1) for part in parts], axis=1)
    log_density = compiled(statistic, f"Uniform(0, {MOST})", probability)
    exact = np.array([written_out(statistic, [part[point] for part in parts]) for point in range(points)])
    assert log_density - log_density[0] == pytest.approx(exact - exact[0], abs=1e-9)
    if name == "star":  # the class's probabilities matter
        wrong = np.array(
            [
                written_out(statistic, [part[point] for part in parts], is_root=False)
                for point in range(points)
            ]
        )
        assert log_density - log_density[0] != pytest.approx(wrong - wrong[0], abs=1e-9)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.audit) for name in SMALL],
)
def test_these_likelihoods_have_our_posteriors(name: str) -> None:
    """Means by importance sampling from the prior: within six standard errors, which the weights estimate.

    The control has the released counts in reverse; its worst mean lies fifteen standard errors away and more.
    """
    count = 2000 if name == "chain" else 800
    statistic = released(name, "8")
    tables = conditional_tables(statistic.plan)
    parts = drawn(tables, count, joint=name == "contingency", rng=np.random.default_rng(7))
    probability = np.concatenate([part.reshape(count, -1) for part in parts], axis=1)
    cells = noisy_statistic(statistic.plan, np.repeat(statistic.values, count, axis=0))
    log_weight = np.asarray(
        likelihood.log_likelihood(cells, n_prior="Uniform(0, 30)", probability=probability)
    )
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = weight @ probability
    error = np.sqrt(weight**2 @ (probability - mean) ** 2)
    ours = posterior_of(statistic, n_prior="Uniform(0, 30)").mean("probability")[0]
    assert np.all(np.abs(mean - ours) < 6.0 * error)
    turned = noisy_statistic(statistic.plan, statistic.values[:, ::-1])
    wrong = posterior_of(turned, n_prior="Uniform(0, 30)").mean("probability")[0]
    assert np.any(np.abs(mean - wrong) > 6.0 * error)


def test_a_table_needs_all_its_probabilities() -> None:
    statistic = released("naive_bayes", "1")
    with pytest.raises(UsageError, match="give probability, not rate"):
        likelihood.log_likelihood(statistic, rate=1.0)
    with pytest.raises(UsageError, match="no latent numbers"):
        likelihood.log_likelihood(statistic, probability=np.full(10, 0.5), latent=np.zeros((1, 2)))
