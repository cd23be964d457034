"""The likelihood of a tree in JAX, against the messages of its posterior and against enumeration."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.errors import UsageError
from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
from suffice.pipeline.math.engines.tree.passes import Passer
from suffice.pipeline.math.engines.tree.populations import named_population

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.typing import Counts, Floats

numpyro = pytest.importorskip("numpyro")
numpyro.enable_x64()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.scipy.special import gammaln  # noqa: E402
from numpyro import distributions as dist  # noqa: E402

from suffice.pipeline.math.engines.jax_tree import tree_log_likelihood  # noqa: E402

PARENTS = ([0, 0], [0, 1, 1], [0, 0, 1, 2, 2, 2, 2])
SCALES = (2.0, 1.5, 1.0, 0.7)
TREES = {"all levels": SCALES, "the leaves and another level left out": (2.0, None, 1.0, None)}


def noisy_tree(scales: tuple[float | None, ...], *, times: int = 1) -> NoisyTree:
    """Return a tree whose values contradict each other by a few scales, and some of which are below 0."""
    values: list[Counts | None] = []
    for scale, counts in zip(scales, ([42], [5, 33], [7, 9, 30], [3, 2, 11, 25, -2, 0, 4]), strict=True):
        values.append(None if scale is None else times * np.array(counts))
    return NoisyTree(
        parents=tuple(np.array(parents) for parents in PARENTS), values=tuple(values), scales=scales
    )


def negative_binomial(mean: Any, shape: Any) -> Callable[[Counts], Any]:
    """Return log chances: those of NumPyro are off by some 1e-6."""

    def log_weight(n: Counts) -> Any:
        kinds = gammaln(n + shape) - gammaln(shape) - gammaln(n + 1.0)
        return kinds - shape * jnp.log1p(mean / shape) - n * jnp.log1p(shape / mean)

    return log_weight


def exact(tree: NoisyTree, mean: float, shape: float, sizes: Floats | None = None) -> float:
    passer = Passer.of(replace(tree, sizes=sizes), named_population("negative-binomial"), 1e-14)
    return passer.up(np.array([np.log(mean), -0.5 * np.log(shape)])).log_evidence


@pytest.mark.slow
@pytest.mark.parametrize("about", TREES)
def test_a_tree_has_the_evidence_of_its_messages(about: str) -> None:
    tree = noisy_tree(TREES[about])
    sizes = np.array([1.0, 2.0, 0.5, 4.0, 1.0, 0.1, 1.0])
    at = jax.jit(lambda mean, shape: tree_log_likelihood(tree, negative_binomial(mean * sizes, shape)))
    for mean, shape in ((5.0, 1.3), (40.0, 6.0)):
        # What windows leave out is e^-45 here, and 1e-14 there.
        assert float(at(mean, shape)) == pytest.approx(exact(tree, mean, shape, sizes), abs=1e-9)
    other = replace(tree, scales=tuple(None if scale is None else 1.02 * scale for scale in tree.scales))
    assert abs(exact(other, 5.0, 1.3, sizes) - exact(tree, 5.0, 1.3, sizes)) > 1e-3


@pytest.mark.slow
def test_a_small_tree_has_the_sum_over_all_counts() -> None:
    tree = NoisyTree(
        parents=(np.array([0, 0]), np.array([0, 1, 1])),
        values=(np.array([9]), np.array([2, 5]), np.array([4, -1, 3])),
        scales=(1.0, 0.8, 0.5),
    )
    counts = np.indices((70, 70, 70)).reshape(3, -1).T
    levels = (counts.sum(1, keepdims=True), np.stack([counts[:, 0], counts[:, 1:].sum(1)], 1), counts)
    rates = np.array([2.0, 1.0, 4.0])
    logs = np.asarray(dist.Poisson(rates).log_prob(counts)).sum(1)
    for level, values, scale in zip(levels, tree.values, tree.scales, strict=True):
        assert scale is not None
        logs = logs + (np.log(np.tanh(0.5 / scale)) - np.abs(level - values) / scale).sum(1)
    expected = float(np.logaddexp.reduce(logs))
    at = jax.jit(lambda rates: tree_log_likelihood(tree, dist.Poisson(rates).log_prob))
    assert float(at(rates)) == pytest.approx(expected, abs=1e-10)


@pytest.mark.slow
def test_gradients_are_those_of_the_evidence_and_lead_back_from_afar() -> None:
    tree = noisy_tree(SCALES, times=40)

    def log_likelihood(log_means: Any) -> Any:
        return tree_log_likelihood(tree, dist.Poisson(jnp.exp(log_means)).log_prob)

    slopes = jax.jit(jax.value_and_grad(log_likelihood))
    # A sampler begins near 0: rates of 1 where there are up to a thousand records.
    value, far = slopes(jnp.zeros(7))
    assert np.isfinite(value)
    assert np.isfinite(far).all()
    assert far[3] > 100.0
    there = jnp.log(jnp.array([115.0, 90.0, 430.0, 1000.0, 3.0, 5.0, 170.0]))
    _, near = slopes(there)
    for leaf in (0, 4):
        step = jnp.zeros(7).at[leaf].set(1e-4)
        by_difference = (slopes(there + step)[0] - slopes(there - step)[0]) / 2e-4
        assert near[leaf] == pytest.approx(float(by_difference), rel=1e-5)


def test_wide_noise_is_refused_before_it_is_summed() -> None:
    tree = replace(noisy_tree(SCALES), scales=(200.0, 200.0, 200.0, 100.0))
    with pytest.raises(UsageError, match="noise so wide"):
        tree_log_likelihood(tree, dist.Poisson(3.0).log_prob)
