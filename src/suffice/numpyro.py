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

Counts are summed one by one, without approximation, over all values within ``NATS`` noise scales of the
released ones. Continuous sums (exponential, gamma, Weibull, Pareto, Laplace, normal with one parameter known)
are integrated by tanh-sinh quadrature between the kinks of the noise's law, to about nine digits; their
lattice counts as continuous. Nothing is replaced by a normal approximation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.errors import MissingExtraError, UsageError

try:
    import jax
    import numpyro
except ModuleNotFoundError:
    raise MissingExtraError("suffice.numpyro", "numpyro") from None

from suffice.pipeline import likelihoods

if TYPE_CHECKING:
    from suffice.pipeline.n_prior import NPrior
    from suffice.pipeline.release import NoisyStatistic


def observe(
    statistic: NoisyStatistic,
    *,
    n_prior: NPrior | int | str | None = None,
    name: str | None = None,
    **parameters: Any,
) -> None:
    """Condition a NumPyro model on a released statistic.

    Parameters
    ----------
    statistic : NoisyStatistic
        As ``release.statistic("cancelled").where({"month": "1"})``.
    n_prior : optional
        The public prior of a private number of rows, of each cell independently; as in ``Release.posterior``.
    name : str, optional
        Of the factor; the statistic's own otherwise.
    **parameters
        The family's parameters by name: arrays that broadcast to (n_cells,), and (n_cells, n_categories)
        for the ``probability`` of a categorical statistic.

    Raises
    ------
    UsageError
        Where the family, the parameters or the noise do not fit; see ``log_likelihood``.
    """
    site = statistic.plan.name if name is None else name
    numpyro.factor(site, log_likelihood(statistic, n_prior=n_prior, **parameters).sum())


def log_likelihood(
    statistic: NoisyStatistic, *, n_prior: NPrior | int | str | None = None, **parameters: Any
) -> Any:
    """Return the log likelihood of what was released, (n_cells,), but for a constant; differentiable.

    Raises
    ------
    UsageError
        Where JAX computes in 32 bits, the family has no such likelihood, a parameter is missing or unknown,
        or the noise is so wide that exact sums would not fit into memory.
    """
    if not jax.config.jax_enable_x64:
        message = "32 bits are too few for log likelihoods of counts: call numpyro.enable_x64() first"
        raise UsageError(message)
    return likelihoods.log_likelihood(statistic, n_prior, parameters)
