"""Which likelihood a family has, and of which parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.distributions.dirichlet_blocks import block_starts
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.naive_bayes import estimated_tables
from suffice.pipeline.numpyro_likelihoods import count_vectors, one_sum, two_moments
from suffice.pipeline.posterior.infer import n_prior_for
from suffice.pipeline.released.noisy_statistic import NoisyStatistic
from suffice.pipeline.statistics.moment_columns import is_linear

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from suffice.pipeline.priors.record_count import NPrior
    from suffice.pipeline.statistics.block import Parameters

COUNTS: dict[str, Callable[..., Any]] = {
    "bernoulli": count_vectors.vector,
    "categorical": count_vectors.vector,
    "contingency": count_vectors.vector,
    "naive_bayes": count_vectors.naive_bayes,
    "bayesian_network": count_vectors.bayesian_network,
    "markov_chain": count_vectors.markov_chain,
}
"""Of a ``probability``."""

MOMENTS: dict[str, Callable[..., Any]] = {
    "normal": two_moments.normal,
    "lognormal": two_moments.normal,
    "multivariate_normal": two_moments.multivariate_normal,
    "linear_regression": two_moments.linear_regression,
}
"""With latent numbers beside the parameters."""

PARAMETERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(COUNTS, ("probability",)),
    **dict.fromkeys(("binomial", "geometric", "negative_binomial"), ("probability",)),
    **dict.fromkeys(("poisson", "exponential", "gamma", "weibull"), ("rate",)),
    "pareto": ("shape",),
    "laplace": ("scale",),
    "normal_known_mean": ("variance",),
    "normal_known_variance": ("mean",),
    "normal": ("mean", "variance"),
    "lognormal": ("log_mean", "log_variance"),
    "multivariate_normal": ("mean", "covariance"),
    "linear_regression": ("coefficient", "intercept", "variance"),
}
"""The parameters of every family, in the order of its likelihood."""

_POSITIVE = {"rate", "shape", "scale", "variance", "log_variance"}


def parameters_of(family: str, constants: Parameters) -> tuple[str, ...]:
    """Return the names of the parameters of a statistic."""
    names = PARAMETERS[family]
    return names if is_linear(constants) else tuple(name for name in names if name != "intercept")


def n_latent(statistic: NoisyStatistic) -> int:
    """Return how many latent numbers every cell has beside the parameters; 0 where all is summed."""
    return two_moments.n_latent(statistic) if statistic.plan.family in MOMENTS else 0


def log_likelihood(
    statistic: NoisyStatistic,
    n_prior: NPrior | int | str | None,
    parameters: Mapping[str, Any],
    latent: Any = None,
) -> Any:
    """Return the log likelihood of every cell, (n_cells,); see ``suffice.numpyro.log_likelihood``."""
    require_statistic(statistic)
    plan = statistic.plan
    names = parameters_of(plan.family, plan.parameters)
    if set(parameters) != set(names):
        message = (
            f"{plan.name} is {plan.family}: give {', '.join(names)}, not {', '.join(parameters) or 'nothing'}"
        )
        raise UsageError(message)
    shape = (len(statistic.values), n_latent(statistic))
    if (None if latent is None else jnp.shape(latent)) != (shape if shape[1] else None):
        wanted = f"latent numbers of shape {shape}" if shape[1] else "no latent numbers"
        message = f"{plan.name} is {plan.family}: it takes {wanted}; observe() has them drawn"
        raise UsageError(message)
    prior = n_prior_for(statistic, n_prior)
    given = {name: _array(statistic, name, parameters[name]) for name in names}
    if plan.family in COUNTS:
        return COUNTS[plan.family](statistic, prior, given["probability"])
    if plan.family in MOMENTS:
        return MOMENTS[plan.family](statistic, prior, given, latent)
    return one_sum.one_sum(statistic, prior, given)


def require_statistic(statistic: object) -> None:
    """Refuse what is no released statistic.

    Raises
    ------
    UsageError
    """
    if not isinstance(statistic, NoisyStatistic):
        message = (
            "a likelihood is of a released statistic, as release.statistic('cancelled') returns it, not of "
            f"{type(statistic).__name__}"
        )
        raise UsageError(message)


def _array(statistic: NoisyStatistic, name: str, value: Any) -> Any:
    """Return a parameter as an array that broadcasts to its shape.

    Raises
    ------
    UsageError
        Where it is none.
    """
    wanted = _shape(statistic, name)
    try:
        array = jnp.asarray(value)
        fits = jnp.broadcast_shapes(array.shape, wanted) == wanted
    except (TypeError, ValueError):
        fits = False
    if not fits:
        shape = f" of shape {jnp.shape(value)}" if hasattr(value, "shape") else ""
        message = (
            f"{statistic.plan.name}: {name} has to be numbers that broadcast to {wanted}, not "
            f"{type(value).__name__}{shape}"
        )
        raise UsageError(message)
    if not isinstance(array, jax.core.Tracer):
        _require_possible(statistic, name, np.broadcast_to(np.asarray(array), wanted))
    return array


def _require_possible(statistic: NoisyStatistic, name: str, values: NDArray[Any]) -> None:
    """Refuse numbers that no parameter can be, where they are at hand: a sampler's are not.

    Raises
    ------
    UsageError
    """
    if np.iscomplexobj(values) or not np.all(np.isfinite(values)):
        wanted = "finite"
    elif name == "probability" and not np.all((values >= 0.0) & (values <= 1.0)):
        wanted = "between 0 and 1"
    elif values.ndim > 1 and name == "probability" and not np.allclose(_sums(statistic, values), 1.0):
        wanted = "of distributions, each with the sum 1"
    elif name in _POSITIVE and not np.all(values > 0.0):
        wanted = "above 0"
    else:
        return
    message = f"{statistic.plan.name}: {name} has to be numbers that are {wanted}"
    raise UsageError(message)


def _sums(statistic: NoisyStatistic, probability: NDArray[Any]) -> NDArray[Any]:
    """Sums over every distribution that the probabilities of a row make up one after the other."""
    plan = statistic.plan
    match plan.family:
        case "naive_bayes":
            starts = block_starts(estimated_tables(plan.parameters))
        case "bayesian_network" | "markov_chain":
            starts = block_starts(plan.parameters.tables)
        case _:
            starts = np.zeros(1, dtype=np.int64)
    sums: NDArray[Any] = np.add.reduceat(probability, starts, axis=-1)
    return sums


def _shape(statistic: NoisyStatistic, name: str) -> tuple[int, ...]:
    """The shape of a parameter of all cells."""
    plan, cells = statistic.plan, len(statistic.values)
    columns = len(plan.parameters.columns)
    if plan.family == "multivariate_normal":
        return (cells, columns) if name == "mean" else (cells, columns, columns)
    if plan.family == "linear_regression":
        return (cells, columns - 1) if name == "coefficient" else (cells,)
    labels = FAMILIES[plan.family].labels(plan.parameters)
    return (cells, max(map(len, labels.values()))) if labels else (cells,)
