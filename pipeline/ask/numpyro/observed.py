"""The likelihood that a family states, of parameters that are checked before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.inference.chosen_priors import n_prior_for, predictor_prior_for
from suffice.pipeline.ask.inference.within_unit import refuse_within_unit
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.contract import Absent
from suffice.pipeline.families.shared.parameter_space import Support
from suffice.pipeline.math.distributions.spread_scales import SpreadNormalInverseWishart
from suffice.pipeline.math.engines.cone.latent_noise import ConePoints
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic, rows_alone
from suffice.pipeline.terms.released.sample import ReleasedSample, no_statistics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from suffice.pipeline.families.shared.parameter_space import ParameterSpace
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.math.priors.record_count import NPrior


def n_latent(statistic: NoisyStatistic) -> int:
    """Return how many latent numbers every cell has beside the parameters; 0 where all is summed.

    Noise on a cone adds those of its two matrices, of every release.
    """
    count = FAMILIES[statistic.plan.family].n_latent(statistic.plan.parameters)
    cones = [each.plan.cone for each in statistic.observations if each.plan.cone is not None]
    of_matrix = [ConePoints(columns=cone.columns, linear=cone.linear).n_coordinates for cone in cones]
    return count + 2 * sum(of_matrix)


def log_likelihood(
    statistic: NoisyStatistic,
    n_prior: NPrior | int | str | None,
    parameters: Mapping[str, Any],
    latent: Any = None,
    predictor_prior: Prior | str | None = None,
) -> Any:
    """Return the log likelihood of every cell, (n_cells,); see ``suffice.numpyro.log_likelihood``."""
    require_statistic(statistic)
    statistic = rows_alone(statistic)  # without counts of moved records, where there are any
    plan = statistic.plan
    family = FAMILIES[plan.family]
    if isinstance(family.jax_likelihood, Absent):
        reason = family.jax_likelihood.reason
        message = f"{plan.name} is {plan.family}, which has no likelihood in NumPyro: {reason}"
        raise UsageError(message)
    names = family.parameter_names(plan.parameters)
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
    predictors = predictor_prior_for(statistic, predictor_prior)
    given = {
        space.name: _array(statistic, space, parameters[space.name])
        for space in family.parameter_spaces(plan.parameters)
    }
    if predictors is None:
        return family.jax_likelihood(statistic, prior, given, latent)
    if not isinstance(predictors, SpreadNormalInverseWishart):
        message = (
            f"{plan.name}: in NumPyro the prior of predictors must be SpreadNormalInverseWishart(middle, "
            f"half_range), not {predictors}; Release.posterior takes both"
        )
        raise PriorError(message)
    return family.jax_likelihood(statistic, prior, given, latent, predictors)


def require_statistic(statistic: object) -> None:
    """Refuse what is no released statistic."""
    if isinstance(statistic, ReleasedSample):
        raise no_statistics(statistic.plan)
    if not isinstance(statistic, NoisyStatistic):
        message = (
            "a likelihood is of a released statistic, as release.statistic('cancelled') returns it, not of "
            f"{type(statistic).__name__}"
        )
        raise UsageError(message)
    refuse_within_unit(statistic, "a likelihood")


def _array(statistic: NoisyStatistic, space: ParameterSpace, value: Any) -> Any:
    """Return a parameter as an array that broadcasts to its shape; refuse what is none."""
    wanted = (len(statistic.values), *space.shape)
    try:
        array = jnp.asarray(value)
        fits = jnp.broadcast_shapes(array.shape, wanted) == wanted
    except (TypeError, ValueError):
        fits = False
    if not fits:
        shape = f" of shape {jnp.shape(value)}" if hasattr(value, "shape") else ""
        message = (
            f"{statistic.plan.name}: {space.name} has to be numbers that broadcast to {wanted}, not "
            f"{type(value).__name__}{shape}"
        )
        raise UsageError(message)
    if not isinstance(array, jax.core.Tracer):
        _require_possible(statistic.plan.name, space, np.broadcast_to(np.asarray(array), wanted))
    return array


def _require_possible(statistic: str, space: ParameterSpace, values: NDArray[Any]) -> None:
    """Refuse numbers that no parameter can be, where they are at hand: a sampler's are not."""
    if np.iscomplexobj(values) or not np.all(np.isfinite(values)):
        wanted = "finite"
    elif space.support is Support.PROBABILITY and not np.all((values >= 0.0) & (values <= 1.0)):
        wanted = "between 0 and 1"
    elif space.starts and not np.allclose(np.add.reduceat(values, space.starts, axis=-1), 1.0):
        wanted = "of distributions, each with the sum 1"
    elif space.support is Support.POSITIVE and not np.all(values > 0.0):
        wanted = "above 0"
    else:
        return
    message = f"{statistic}: {space.name} has to be numbers that are {wanted}"
    raise UsageError(message)
