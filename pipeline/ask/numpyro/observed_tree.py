"""The likelihood of what was released of a tree, given a law of its leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from numpyro.distributions import Distribution, constraints

from suffice.errors import UsageError
from suffice.pipeline.ask.trees.count_tree import CountTree
from suffice.pipeline.math.engines.jax_tree import tree_log_likelihood

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree


def log_likelihood_of_tree(tree: CountTree, leaves: Distribution, component: str | None) -> Any:
    """Return the log likelihood of a component's tree; see ``suffice.numpyro.log_likelihood_of_tree``."""
    noisy = released_tree(tree, component)
    _check_law(leaves, noisy.n_leaves)
    return tree_log_likelihood(noisy, lambda counts: leaves.log_prob(jnp.asarray(counts)))


def released_tree(tree: CountTree, component: str | None) -> NoisyTree:
    """Return what was released of a component, in whole numbers of the tree's unit."""
    if not isinstance(tree, CountTree):
        message = f"a tree is what release.tree returns, not {type(tree).__name__}"
        raise UsageError(message)
    return tree.noisy(component)


def _check_law(leaves: object, n_leaves: int) -> None:
    """Refuse what is no law of whole numbers from 0 on, of each leaf or of all."""
    if not isinstance(leaves, Distribution):
        message = (
            "leaves is a distribution of NumPyro, as numpyro.distributions.Poisson(mean), not "
            f"{type(leaves).__name__}"
        )
        raise UsageError(message)
    is_whole = leaves.support is constraints.nonnegative_integer and not leaves.event_shape
    if not is_whole:
        message = (
            f"leaves have whole numbers from 0 on, and {type(leaves).__name__} is of others: take a law as "
            "Poisson, NegativeBinomial2 or ZeroInflatedPoisson; of totals in steps of the tree's unit"
        )
        raise UsageError(message)
    if leaves.batch_shape not in {(), (1,), (n_leaves,)}:
        message = f"leaves is of one law or of {n_leaves}, not of the shape {leaves.batch_shape}"
        raise UsageError(message)
