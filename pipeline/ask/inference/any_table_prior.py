r"""Posteriors of a table's probabilities under any joint prior: exact draws of another one, reweighted.

Model. With :math:`g(p \mid y)` the noise-aware posterior under the uniform prior, whose engine draws from it
independently and without error, and a prior of log density f with respect to the uniform one,

.. math:: \pi(p \mid y) \propto e^{f(p)} \, g(p \mid y), \qquad
    \frac{\pi(y)}{g(y)} = \frac{\mathrm{E}_g[e^{f(p)} \mid y]}{\mathrm{E}_g[e^{f(p)}]}. \qquad (1)

The weights are :math:`e^f` alone. A prior whose weights under the uniform one have a tail of shape k above
.7 is refused, whatever is released: at k = 1 and above its integral diverges, and noise leaves every category
a chance of having no record, so that its posterior is improper as well.

Symbols:

- f: ``prior``; p: ``probability``, (n_draws, n_cells, K)
- k and n_eff, of draws given y and of the prior: ``shape``, ``effective``

Method. 20,000 draws a cell; 320,000 where fewer than 400 of them count. Refused where k is above .7 or fewer
count even so. Always the same draws: what is asked of a posterior twice is answered alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.dirichlet import Dirichlet
from suffice.pipeline.math.distributions.reweighted import (
    FEWEST_EFFECTIVE,
    LARGEST_SHAPE,
    ReweightedDraws,
    effective,
    resampled,
    smoothed,
)
from suffice.pipeline.terms.statistics.count_table import entry_names

if TYPE_CHECKING:
    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.math.priors.log_prior import LogPrior
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats


_DRAWS, _MORE, _KEPT, _OF_PRIOR = 20_000, 16, 8000, 200_000
_NUMBERS = 1 << 24
"""Numbers of draws that are looked at together: 128 MB."""


def table_posterior(statistic: NoisyStatistic, prior: LogPrior, n_prior: NPrior | None) -> ReweightedDraws:
    """Return the distribution of a table's probabilities; plug-in where there is no prior of N.

    Raises
    ------
    PriorError
        Where the prior cannot be told from an improper one, or too few draws count for an answer to rest on.
    """
    family = FAMILIES[statistic.plan.family]
    names = names_of(family, statistic.plan.parameters)
    of_prior = _log_mean_of_prior(prior, names)
    rng = np.random.default_rng(0)
    step = max(1, _NUMBERS // (_DRAWS * len(names)))
    parts: list[tuple[Any, ...]] = []
    for first in range(0, len(statistic.values), step):
        few = statistic.take(np.arange(first, min(first + step, len(statistic.values))))
        drawn, log_evidence = _drawn(family, few, n_prior, _DRAWS, rng)
        for cell in range(len(few.values)):
            answer = _of_cell(prior, names, drawn[:, cell], rng)
            if answer is None and _DRAWS * _MORE * len(names) <= 8 * _NUMBERS:
                more, _ = _drawn(family, few.take(np.array([cell])), n_prior, _DRAWS * _MORE, rng)
                answer = _of_cell(prior, names, more[:, 0], rng)
            if answer is None:
                raise _too_few(statistic, prior)
            parts.append((*answer, log_evidence[cell]))
    mean, sd, kept, shape, count, log_mean, log_evidence = (
        np.array(column) for column in zip(*parts, strict=True)
    )
    largest = float(np.max(shape))
    if largest > LARGEST_SHAPE:
        raise _heavy(statistic, prior, int(np.sum(shape > LARGEST_SHAPE)), largest)
    return ReweightedDraws(
        name="probability",
        means=mean,
        sds=sd,
        drawn=np.moveaxis(kept, 0, 1),
        shape=shape,
        effective=count,
        draws=_DRAWS,
        # (1).
        log_evidence=None if n_prior is None else log_evidence + log_mean - of_prior,
    )


def draws_of_prior(prior: LogPrior, names: tuple[str, ...], size: int, rng: np.random.Generator) -> Floats:
    """Draw probabilities from a prior, (size, K): draws of the uniform one, resampled by their weights.

    Raises
    ------
    PriorError
        Where it cannot be told from an improper one.
    """
    drawn = Dirichlet(1).sample(_OF_PRIOR, rng, len(names))
    weight = _weight_of_prior(prior, prior(drawn, names))
    chosen: Floats = drawn[rng.permutation(resampled(weight, size, rng))]
    return chosen


def names_of(family: Family, constants: Constants) -> tuple[str, ...]:
    """Return the names of a table's entries."""
    return tuple(entry_names(family.labels(constants)))


def _log_mean_of_prior(prior: LogPrior, names: tuple[str, ...]) -> float:
    """Return the logarithm of the average of e^f under the uniform prior."""
    drawn = Dirichlet(1).sample(_OF_PRIOR, np.random.default_rng(0), len(names))
    value = prior(drawn, names)
    _weight_of_prior(prior, value)
    return _log_mean(value)


def _weight_of_prior(prior: LogPrior, value: Floats) -> Floats:
    if np.max(value) == -np.inf:
        message = (
            f"prior {prior}: of {_OF_PRIOR} draws of the uniform prior none has a density: state a wider one"
        )
        raise PriorError(message)
    weight, shape = smoothed(value)
    if shape > LARGEST_SHAPE:
        message = (
            f"prior {prior} is improper, or cannot be told from an improper one: over the uniform prior its "
            f"density has a tail of shape {shape:.2f}, and above {LARGEST_SHAPE} nothing can rest on it; the "
            "noise leaves every category a chance of no record, so that no release makes its posterior proper"
        )
        raise PriorError(message)
    if effective(weight) < FEWEST_EFFECTIVE:
        message = (
            f"prior {prior}: of {_OF_PRIOR} draws of the uniform prior only {effective(weight):.0f} count: "
            "it is too narrow for draws that are reweighted; state a wider one"
        )
        raise PriorError(message)
    return weight


def _log_mean(value: Floats) -> float:
    return float(np.logaddexp.reduce(value) - np.log(len(value)))


def _drawn(
    family: Family, statistic: NoisyStatistic, n_prior: NPrior | None, draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draws under the uniform prior, (draws, n_cells, K), and the log evidence under it."""
    reference: Any
    if n_prior is None:
        reference = family.plug_in(statistic, Dirichlet(1))
        return reference.sample(draws, rng)["probability"], np.zeros(len(statistic.values))
    assert family.noise_aware is not None  # noqa: S101 - families of one table have one
    reference = family.noise_aware(statistic, Dirichlet(1), n_prior)
    return reference.sample(draws, rng)["probability"], reference.log_evidence


def _of_cell(
    prior: LogPrior, names: tuple[str, ...], drawn: Floats, rng: np.random.Generator
) -> tuple[Any, ...] | None:
    """Return moments, draws and what they rest on, of one cell; None where too few draws count."""
    value = prior(drawn, names)
    if np.max(value) == -np.inf:
        return None
    weight, shape = smoothed(value)
    count = effective(weight)
    if count < FEWEST_EFFECTIVE:
        return None
    mean = weight @ drawn
    sd = np.sqrt(weight @ (drawn - mean) ** 2)
    return mean, sd, drawn[resampled(weight, _KEPT, rng)], shape, count, _log_mean(value)


def _too_few(statistic: NoisyStatistic, prior: LogPrior) -> PriorError:
    message = (
        f"prior {prior} and the released values of {statistic.plan.name} are so far apart in some cell that "
        f"of {_DRAWS * _MORE} draws fewer than {FEWEST_EFFECTIVE:.0f} count: give a prior closer to what is "
        "possible, or keep other cells with where"
    )
    return PriorError(message)


def _heavy(statistic: NoisyStatistic, prior: LogPrior, cells: int, largest: float) -> PriorError:
    message = (
        f"prior {prior}: in {cells} of {len(statistic.values)} cells of {statistic.plan.name} few draws "
        f"would decide the answer: the weights' Pareto k is up to {largest:.2f}, and above {LARGEST_SHAPE} "
        "no average can be relied on; give a prior that is less steep where the release leaves room"
    )
    return PriorError(message)
