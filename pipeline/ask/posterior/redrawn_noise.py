r"""How far answers would move if the noise of a release were drawn again, its records the same.

Model. The released components are :math:`y = x + z`, with exact components x and noise z of the declared law.
Given y, x and so z are uncertain. A redraw is

.. math:: y' = y - z + z', \qquad z \sim p(z \mid y), \quad z' \sim p(z), \qquad (1)

what the same data, as far as they are known, would have released with fresh noise. With :math:`a(y)` an
answer, as a posterior mean, R redraws give its predictive distribution :math:`a(y') \mid y`; of it the
:math:`\alpha/2` and the :math:`1 - \alpha/2` quantile are reported.

Method. N and S are drawn exactly under conjugate priors, by ``one_sum/tiles.py``, with the parameter given
them where it has to lie within limits; under any other prior the parameter is drawn from the posterior, and N
and S given it. Posteriors of redraws are those of the engines. The Monte Carlo error of a quantile at level q
is half the distance of the order statistics one standard error of levels, :math:`\sqrt{q (1 - q) / R}`, away
on either side.

Symbols:

- y, y', z, z': ``values``, in lattice units; R: ``redraws``
- N, S: ``n``, ``total``; A: ``amount``, of :math:`S = l N + \text{step} \, A`
"""

from __future__ import annotations

import dataclasses
import importlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.any_prior import conjugate_default
from suffice.pipeline.ask.inference.posterior_terms import IGNORED, PosteriorTerms
from suffice.pipeline.ask.judging.bounded_prior import is_restricted
from suffice.pipeline.ask.judging.robustness import reason_against_nodes
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.gamma import InverseGamma
from suffice.pipeline.math.distributions.within_limits import unrestricted
from suffice.pipeline.math.engines.one_sum.known_parameter import given_parameter
from suffice.pipeline.math.engines.one_sum.spread_sums import SpreadGammaGamma
from suffice.pipeline.math.engines.one_sum.sum_posterior import LatentSumPosterior
from suffice.pipeline.math.engines.one_sum.tiles import tiles_of
from suffice.pipeline.math.parameters.arguments import ends_of
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

REDRAWN = "noise drawn again"
REDRAWS = 400
"""Where posteriors are quick."""
LEAST_REDRAWS = 40
"""Of fewer the percentiles are the extremes."""
LEVELS = (0.025, 0.975)
_MANY = 10
"""Cells whose redraws are left out unless they are asked for."""
_TRIES = 1000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Redrawn:
    """Answers under redrawn noise.

    Attributes
    ----------
    answers : dict of str to ndarray of shape (redraws, n_cells)
        ``mean``, ``lower``, ``upper``, and ``above`` where it was asked for.
    """

    answers: dict[str, Floats]

    def between(self, cell: int) -> dict[str, tuple[float, float]]:
        """Return both quantiles of every answer of a cell."""
        return {
            name: (float(low), float(high))
            for name, of in self.answers.items()
            for low, high in [np.quantile(of[:, cell], LEVELS)]
        }

    def error(self, name: str) -> Floats:
        """Return the larger standard error of both quantiles of an answer, (n_cells,)."""
        of = self.answers[name]
        errors = []
        for level in LEVELS:
            step = math.sqrt(level * (1.0 - level) / len(of))
            ends = np.quantile(of, np.clip([level - step, level + step], 0.0, 1.0), axis=0)
            errors.append((ends[1] - ends[0]) / 2.0)
        return np.asarray(np.max(errors, axis=0))


def reason_to_ask(posterior: Posterior) -> str:
    """Return why redraws are left out unless they are asked for; empty where all take a few seconds."""
    if _engine(posterior) is None:
        return "under this prior each redraw takes about a tenth of a second a cell"
    return "of so many cells it takes long" if posterior.n_groups > _MANY else ""


def reason_against(posterior: Posterior) -> str:
    """Return why the noise is not drawn again; empty where it is."""
    reason = reason_against_nodes(posterior)
    if reason:
        return reason
    return (
        "" if len(posterior.observed[0].observations) == 1 else "it is of several releases of the same data"
    )


def redrawn(
    posterior: Posterior,
    redraws: int,
    mass: float,
    above: float | None,
    draws: int,
    rng: np.random.Generator,
) -> Redrawn:
    """Work out answers of a posterior under noise that is drawn again so many times.

    Raises
    ------
    UsageError
        Where there is a reason against it.
    """
    if reason := reason_against(posterior):
        message = f"robustness: the noise is not drawn again, as {reason}: leave redraws out"
        raise UsageError(message)
    (statistic,) = posterior.observed
    cells = len(statistic.values)
    (name,) = posterior.parameters
    again = _again(posterior, _redrawn_statistic(posterior, redraws, rng))
    low, high = ends_of(mass)
    ends = again.distribution.quantiles(name, (low, high), draws, rng)
    answers = {"mean": again.mean(name), "lower": ends[:, 0], "upper": ends[:, 1]}
    if above is not None:
        answers["above"] = _above(again, name, above, draws, rng)
    return Redrawn(answers={key: np.reshape(value, (redraws, cells)) for key, value in answers.items()})


def _above(again: Posterior, name: str, value: float, draws: int, rng: np.random.Generator) -> Floats:
    distribution: Any = again.distribution
    if hasattr(distribution, "cdf"):
        return np.asarray(1.0 - distribution.cdf(np.full((again.n_groups, 1), value))[:, 0])
    return np.asarray(again.probability(name, above=value, draws=draws, rng=rng))


def _again(posterior: Posterior, statistic: NoisyStatistic) -> Posterior:
    """Return the posterior of a redrawn statistic on the terms of the given one."""
    # By name, as pictures are: engines are chosen above posteriors, which ask for this.
    engines = importlib.import_module("suffice.pipeline.ask.posterior.choice_of_engine")
    prior: Any = posterior.prior
    n_prior = posterior.n_prior if statistic.public_n is None else None
    again: Posterior = engines.inferred(
        statistic, PosteriorTerms(prior=prior, n_prior=n_prior, clipping=IGNORED)
    )
    if is_restricted(posterior):
        return again
    return dataclasses.replace(again, distribution=unrestricted(again.distribution))


def _redrawn_statistic(posterior: Posterior, redraws: int, rng: np.random.Generator) -> NoisyStatistic:
    """Return (1), redraw by redraw and then by cell."""
    (statistic,) = posterior.observed
    family = FAMILIES[posterior.family]
    latent: Any = family.latent
    # Totals do not depend on the prior: any conjugate one does.
    prior = conjugate_default(family, statistic.plan.parameters)
    sums, _ = latent(statistic, prior, posterior.n_prior)
    n, total = _latent(posterior, sums, redraws, rng)
    amount = (total - sums.lower * n) / sums.step
    # The exact components of a pair, in the engine's order.
    exact = np.stack([n, amount], axis=-1) @ sums.totals.coefficients.T
    order = _order(statistic, lambda given: latent(given, prior, posterior.n_prior)[0])
    many = statistic.take(np.tile(np.arange(len(statistic.values)), redraws))
    values = many.values.copy()
    old = np.rint(sums.totals.values - exact).reshape(len(values), -1).astype(np.int64)
    fresh = discrete_laplace(statistic.plan.scale, old.shape, rng, statistic.cells_summed)
    values[:, order] = values[:, order] - old.astype(object) + fresh.astype(object)
    return dataclasses.replace(many, values=values)


def _order(statistic: NoisyStatistic, sums_of: Any) -> list[int]:
    """Return which released component each of the engine's totals is."""
    single = statistic.take(np.zeros(1, dtype=np.int64))
    base = sums_of(single).totals.values[0]
    order: dict[int, int] = {}
    for component in range(single.values.shape[1]):
        moved = single.values.copy()
        moved[:, component] += 1
        changed = np.flatnonzero(sums_of(dataclasses.replace(single, values=moved)).totals.values[0] != base)
        order.update(dict.fromkeys(changed.tolist(), component))
    return [order[total] for total in range(len(base))]


def _engine(posterior: Posterior) -> LatentSumPosterior | None:
    """Return the latent sums of a posterior under one conjugate prior; None under any other."""
    plain = unrestricted(posterior.distribution)
    return plain if isinstance(plain, LatentSumPosterior) and plain.levels is None else None


def _latent(
    posterior: Posterior, sums: NoisySums, redraws: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw N and S given what was released, each (redraws, n_cells)."""
    engine = _engine(posterior)
    shape = (redraws, sums.n_cells)
    if engine is not None:
        n, total = _conjugate_pairs(posterior, engine, np.tile(np.arange(sums.n_cells), redraws), rng)
        return n.reshape(shape), total.reshape(shape)
    is_scale = FAMILIES[posterior.family].prior is InverseGamma
    drawn = posterior.distribution.sample(redraws, rng)[posterior.parameters[0]]
    n, total = np.empty(shape), np.empty(shape)
    for redraw, cell in np.ndindex(shape):
        of_cell = sums.take(np.array([cell]))
        marginal = given_parameter(sums.marginal, float(drawn[redraw, cell]), is_scale=is_scale)
        given = dataclasses.replace(of_cell, marginal=marginal)
        n[redraw, cell], total[redraw, cell] = (
            each[0] for each in tiles_of(given).sample(np.zeros(1, dtype=np.int64), rng)
        )
    return n, total


def _conjugate_pairs(
    posterior: Posterior, engine: LatentSumPosterior, cells: Any, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw a pair for every entry of cells, with a parameter within limits where there are any."""
    family = FAMILIES[posterior.family]
    constants: Any = posterior.constants
    limits = (
        family.limits(constants)
        if family.limits is not None and is_restricted(posterior)
        else (-np.inf, np.inf)
    )
    tiles = tiles_of(engine.sums)
    n, total = np.empty(len(cells)), np.empty(len(cells))
    pending = np.arange(len(cells))
    for _ in range(_TRIES):
        n[pending], total[pending] = tiles.sample(cells[pending], rng)
        marginal = engine.sums.marginal
        seen = total[pending]
        if isinstance(marginal, SpreadGammaGamma):
            seen = marginal.shifted(seen, n[pending], rng)
        parameter = engine.update(n[pending], seen).sample(1, rng)[engine.name].ravel()
        pending = pending[(parameter < limits[0]) | (parameter > limits[1])]
        if not pending.size:
            return n, total
    message = (
        f"{posterior.statistic}: records within the bounds hardly ever have such parameters: what the noise "
        "was cannot be drawn; leave redraws out"
    )
    raise UsageError(message)
