"""Trees in models of one's own: what is refused, totals in their unit, the documentation's example."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.errors import UnknownNameError, UsageError
from suffice.pipeline.ask.trees.count_tree import CountTree
from suffice.pipeline.math.engines.tree.passes import Passer
from suffice.pipeline.math.engines.tree.populations import named_population
from suffice.pipeline.terms.declaration.key_tree import KeyTree
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan
from support.small_trees import node_counts

numpyro = pytest.importorskip("numpyro")
numpyro.enable_x64()

import jax  # noqa: E402
from numpyro import distributions as dist  # noqa: E402

from suffice import numpyro as likelihood  # noqa: E402

PLACES = tuple(f"county {number}" for number in range(6))
KEYS = KeyTree(
    levels=("all", "state", "county"),
    keys=(("true",), ("a", "b"), PLACES),
    parents=((0, 0), (0, 0, 0, 1, 1, 1)),
)
LATTICE = 2**6
WAITS: dict[str, Any] = {"family": "exponential", "upper": "20", "lattice_bits": "6"}


def released(statistic: dict[str, Any], epsilons: tuple[str, ...], leaves: np.ndarray) -> CountTree:
    """Release a tree of leaves' components, (n_components, n_leaves)."""
    parents = tuple(KEYS.parent_of(level) for level in (1, 2))
    rng, statistics = np.random.default_rng(8), []
    for keys, sums, epsilon in zip(KEYS.keys, node_counts(parents, leaves), epsilons, strict=True):
        plan = statistic_plan(statistic, epsilon=epsilon, public_n=False)
        values = sums.T + discrete_laplace(plan.scale, sums.T.shape, rng)
        statistics.append(noisy_statistic(plan, values, groups={"place": list(keys)}))
    return CountTree.of(KEYS, statistics)


@pytest.fixture(scope="module")
def counted() -> CountTree:
    leaves = np.array([[30, 41, 12, 5, 22, 9], [4, 9, 0, 3, 12, 2]])
    return released({"family": "bernoulli"}, ("1", "1", "2"), leaves)


def test_what_is_no_law_of_the_leaves_is_refused(counted: CountTree) -> None:
    ask = likelihood.log_likelihood_of_tree
    with pytest.raises(UsageError, match="name one of the components"):
        ask(counted, dist.Poisson(3.0))
    with pytest.raises(UnknownNameError, match="no component"):
        ask(counted, dist.Poisson(3.0), component="maybe")
    for law, words in (
        (dist.Normal(0.0, 1.0), "whole numbers from 0 on"),
        (dist.Poisson(np.ones(5)), "one law or of 6"),
        (3.0, "a distribution of NumPyro"),
    ):
        with pytest.raises(UsageError, match=words):
            ask(counted, law, component="true")
    with pytest.raises(UsageError, match=r"what release\.tree returns"):
        ask(None, dist.Poisson(3.0))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="outside of a model"):
        likelihood.observe_tree(counted, dist.Poisson(3.0), component="true")


@pytest.mark.slow
def test_totals_have_laws_in_steps_of_their_unit() -> None:
    sums = LATTICE * np.array([12, 40, 3, 25, 8, 17])
    tree = released(WAITS, ("0.4", "0.4", "0.8"), np.stack([sums, LATTICE * 60 - sums]))
    assert tree.unit.steps > 1
    size, mean = float(tree.unit.size), 330.0

    def log_likelihood(mean: Any) -> Any:
        # Of the shape 1, which is geometric: NumPyro's other negative binomial laws are off by some 1e-6.
        law = dist.GeometricProbs(1.0 / (1.0 + mean / size))
        return likelihood.log_likelihood_of_tree(tree, law)

    at = jax.jit(log_likelihood)
    passer = Passer.of(tree.released["total"], named_population("negative-binomial"), 1e-14)
    expected = passer.up(np.array([np.log(mean / size), 0.0])).log_evidence
    assert float(at(mean)) == pytest.approx(expected, abs=1e-9)
    assert abs(float(at(mean * size)) - expected) > 0.1


@pytest.mark.audit
@pytest.mark.timeout(900)
def test_the_example_in_the_docs_learns_how_counts_rise_with_size() -> None:
    text = (Path(__file__).parents[4] / "docs" / "how-to" / "model-in-numpyro.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(# a tree\n.*?)```", text, re.DOTALL)
    code = code.replace("num_warmup=400, num_samples=2000", "num_warmup=100, num_samples=150")
    size = np.array([20.0, 2000.0, 60.0, 400.0, 1000.0, 150.0])
    counts = np.round(0.5 * size**0.7).astype(np.int64)
    tree = released({"family": "bernoulli"}, ("1", "1", "2"), np.stack([3 * counts, counts]))
    space: dict[str, Any] = {"tree": tree, "size": size}
    exec(compile(code, "docs/how-to/model-in-numpyro.md", "exec"), space)  # noqa: S102 - our own text
    slopes = np.asarray(space["slopes"])
    assert slopes.mean() == pytest.approx(0.7, abs=0.15)
    # Before the data it was anywhere from -1 to 3.
    assert 0.01 < slopes.std() < 0.15
