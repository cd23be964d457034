r"""A release as an observed likelihood, its noise included, in a NumPyro model of one's own.

.. code-block:: python

    import numpyro
    import numpyro.distributions as dist
    import suffice.numpyro

    numpyro.enable_x64()
    cancelled = release.statistic("cancelled")

    def model():
        centre = numpyro.sample("centre", dist.Normal(-3, 1))
        spread = numpyro.sample("spread", dist.HalfNormal(1))
        with numpyro.plate("origin", 3):
            logit = numpyro.sample("logit", dist.Normal(centre, spread))
        suffice.numpyro.observe(cancelled, probability=jax.nn.sigmoid(logit))

The likelihood of what was released is that of the family's own model, with everything that is latent summed
or integrated out:

.. math:: p(y \mid \theta) = \sum_N \pi(N) \int p(S \mid N, \theta) \prod_j \mathrm{DLap}_b(y_j - s_j)\, dS

Counts, and tables of counts, are summed one by one, without approximation, over all values within ``NATS``
noise scales of the released ones. One continuous sum is integrated by tanh-sinh quadrature between the kinks
of the noise's distribution, to about nine digits. Where there are several (normal, lognormal, multivariate
normal, regression) N is still summed, and means and scatter given N, whose distribution is known exactly, are
latent sites of the model. Of a tree all counts are summed, whatever the law of its leaves. Nothing is
replaced by a normal approximation; the lattice of continuous sums counts as continuous.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.errors import MissingExtraError, UsageError

try:
    import jax
    import numpyro
    from numpyro import distributions as dist
except ModuleNotFoundError:
    raise MissingExtraError("suffice.numpyro", "numpyro") from None

from suffice.pipeline.ask.numpyro import observed, observed_tree

if TYPE_CHECKING:
    from suffice.pipeline.ask.trees.count_tree import CountTree
    from suffice.pipeline.math.distributions.spread_scales import SpreadNormalInverseWishart
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic


def observe(
    statistic: NoisyStatistic,
    *,
    n_prior: NPrior | int | str | None = None,
    predictor_prior: SpreadNormalInverseWishart | str | None = None,
    name: str | None = None,
    **parameters: Any,
) -> None:
    """Condition a NumPyro model on a released statistic.

    Statistics of first and second moments add a latent site, ``NAME_latent`` of shape (n_cells, n_latent):
    standard normal before the data, and what is unknown of means and scatter is a function of it.

    Parameters
    ----------
    statistic : NoisyStatistic
        As ``release.statistic("cancelled").where({"month": "1"})``.
    n_prior : optional
        The public prior of a private number of rows, of each cell independently; as in ``Release.posterior``.
    predictor_prior : optional
        The public prior of a regression's predictors, ``SpreadNormalInverseWishart(middle, half_range)`` or
        its text; the family's default otherwise.
    name : str, optional
        Of the factor; the statistic's own otherwise.
    **parameters
        The family's parameters by name, as arrays that broadcast to (n_cells,); of several numbers a cell to
        (n_cells, n_numbers): the ``probability`` of categories and tables in the order of the posterior's
        rows, ``coefficient`` by predictor, ``mean`` by column; ``covariance`` to (n_cells, d, d).

    Raises
    ------
    UsageError
        Where it is called outside of a model, the statistic is none, or the parameters or the noise do not
        fit; see ``log_likelihood``.
    PriorError
        Where the prior of N leaves too few rows for a statistic of several columns, or that of predictors is
        another distribution or not of so many columns.
    """
    _require_64_bits()
    observed.require_statistic(statistic)
    _require_model("observe", "log_likelihood")
    site = statistic.plan.name if name is None else name
    latent, count = None, observed.n_latent(statistic)
    if count:
        shape = (len(statistic.values), count)
        latent = numpyro.sample(f"{site}_latent", dist.Normal().expand(shape).to_event(2))
    value = log_likelihood(
        statistic, n_prior=n_prior, predictor_prior=predictor_prior, latent=latent, **parameters
    )
    numpyro.factor(site, value.sum())


def observe_tree(
    tree: CountTree, leaves: dist.Distribution, *, component: str | None = None, name: str = "tree"
) -> None:
    """Condition a NumPyro model on all that was released of a tree, with a law of its leaves.

    Parameters
    ----------
    tree : CountTree
        As ``release.tree("flights")``; its own posterior and population are not asked.
    leaves : numpyro.distributions.Distribution
        Of whole numbers from 0 on, one law or one a leaf, in the order of ``tree.tree.keys[-1]``. Of totals a
        whole number is a step, ``tree.unit.size`` in the column's unit.
    component : str, optional
        Which of the tree's, where there are several: call it once for each.
    name : str
        Of the factor.

    Raises
    ------
    UsageError
        Where it is called outside of a model, or as of ``log_likelihood_of_tree``.
    """
    _require_64_bits()
    observed_tree.released_tree(tree, component)
    _require_model("observe_tree", "log_likelihood_of_tree")
    numpyro.factor(name, log_likelihood_of_tree(tree, leaves, component=component))


def log_likelihood_of_tree(
    tree: CountTree, leaves: dist.Distribution, *, component: str | None = None
) -> Any:
    """Return the log likelihood of all that was released of a tree, a number; differentiable.

    It is the log chance of the released values of all levels, given the law of the leaves: their counts,
    which add up, are summed over. Totals are rounded to the tree's unit, as in its posterior.

    Raises
    ------
    UsageError
        Where JAX computes in 32 bits, ``leaves`` is no law of whole numbers from 0 on, or of another number
        of leaves, or the noise is so wide that exact sums would take too long.
    UnknownNameError
        Where the tree has no such component.
    """
    _require_64_bits()
    return observed_tree.log_likelihood_of_tree(tree, leaves, component)


def log_likelihood(
    statistic: NoisyStatistic,
    *,
    n_prior: NPrior | int | str | None = None,
    predictor_prior: SpreadNormalInverseWishart | str | None = None,
    latent: Any = None,
    **parameters: Any,
) -> Any:
    """Return the log likelihood of what was released, (n_cells,), but for a constant; differentiable.

    With `latent` numbers, (n_cells, n_latent), of statistics of first and second moments, it is the log of a
    weight whose mean over independent standard normal numbers is the likelihood.

    Raises
    ------
    UsageError
        Where JAX computes in 32 bits, a parameter is missing, unknown, of another shape or, where its numbers
        are at hand and not traced, out of its range, latent numbers are missing or have no use, or the noise
        is so wide that exact sums would not fit into memory.
    PriorError
        As for ``observe``.
    """
    _require_64_bits()
    return observed.log_likelihood(statistic, n_prior, parameters, latent, predictor_prior)


def _require_model(called: str, instead: str) -> None:
    if not numpyro.primitives._PYRO_STACK:  # noqa: SLF001 - NumPyro has no other name for it
        message = (
            f"{called} was called outside of a model, where it has no effect: call it in the "
            f"function that is given to NUTS or another algorithm of NumPyro; {instead} returns numbers"
        )
        raise UsageError(message)


def _require_64_bits() -> None:
    if not jax.config.jax_enable_x64:
        message = "32 bits are not enough for log likelihoods of counts: call numpyro.enable_x64() first"
        raise UsageError(message)
