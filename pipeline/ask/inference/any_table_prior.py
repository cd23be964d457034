r"""Posteriors of tables' probabilities under any joint prior: draws of another one, reweighted.

Model. With :math:`g(p \mid y)` the noise-aware posterior under the uniform prior, of every distribution that
the tables hold, whose engine draws from it, and a prior of log density f with respect to the uniform one,

.. math:: \pi(p \mid y) \propto e^{f(p)} \, g(p \mid y), \qquad
    \frac{\pi(y)}{g(y)} = \frac{\mathrm{E}_g[e^{f(p)} \mid y]}{\mathrm{E}_g[e^{f(p)}]}. \qquad (1)

The weights are :math:`e^f` alone. A prior whose weights under the uniform one have a tail of shape k above
.7 is refused, whatever is released: at k = 1 and above its integral diverges, and noise leaves every category
a chance of having no record, so that its posterior is improper as well.

Symbols:

- f: ``prior``; p: ``probability``, (n_draws, n_cells, K)
- k and n_eff, of draws given y and of the prior: ``shape``, ``effective``

Method. 20,000 draws a cell; 320,000 where fewer than 400 of them count. Refused where k is above .7 or fewer
count even so. Draws are independent and without error, but for networks whose tables chains draw: of these
n_eff is multiplied by the share of draws that are worth an independent one. Always the same draws:
what is asked of a posterior twice is answered alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.ask.inference.reweighting import KEPT, require_light, too_few
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.dirichlet import Dirichlet
from suffice.pipeline.math.distributions.reweighted import (
    FEWEST_EFFECTIVE,
    LARGEST_SHAPE,
    ReweightedDraws,
    WeighedCell,
    effective,
    resampled,
    smoothed,
    weighed,
)
from suffice.pipeline.terms.statistics.count_table import entry_names

if TYPE_CHECKING:
    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.priors.log_prior import LogPrior
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats


_DRAWS, _MORE, _OF_PRIOR = 20_000, 16, 200_000
_NUMBERS = 1 << 24
"""Numbers of draws that are looked at together: 128 MB."""


def table_posterior(statistic: NoisyStatistic, prior: LogPrior, n_prior: NPrior | None) -> ReweightedDraws:
    """Return the distribution of tables' probabilities; plug-in where there is no prior of N.

    Raises
    ------
    PriorError
        Where the prior cannot be told from an improper one, or too few draws count for an answer to rest on.
    """
    family, constants = FAMILIES[statistic.plan.family], statistic.plan.parameters
    names = names_of(family, constants)
    of_prior = _log_mean_of_prior(prior, family, constants)
    rng = np.random.default_rng(0)
    step = max(1, _NUMBERS // (_DRAWS * len(names)))
    cells: list[WeighedCell] = []
    evidence: list[Floats | None] = []
    for first in range(0, len(statistic.values), step):
        few = statistic.take(np.arange(first, min(first + step, len(statistic.values))))
        reference = _Reference.of(family, few, n_prior)
        drawn = reference.sample(_DRAWS, rng)
        for cell in range(len(few.values)):
            answer = _of_cell(prior, names, drawn[:, cell], reference.independent(_DRAWS), rng)
            # Chains have no more to give.
            if answer is None and not reference.draws and _DRAWS * _MORE * len(names) <= 8 * _NUMBERS:
                alone = _Reference.of(family, few.take(np.array([cell])), n_prior)
                answer = _of_cell(prior, names, alone.sample(_DRAWS * _MORE, rng)[:, 0], 1.0, rng)
            if answer is None:
                raise too_few(statistic, prior, _DRAWS * _MORE)
            cells.append(answer)
        evidence.append(reference.log_evidence)
    require_light(statistic, prior, cells)
    log_mean = np.array([cell.log_mean for cell in cells])
    known = [each for each in evidence if each is not None]
    return ReweightedDraws.joined(
        cells,
        draws=_DRAWS,
        of="the posterior under the uniform prior",
        # (1).
        log_evidence=np.concatenate(known) + log_mean - of_prior if known else None,
    )


def draws_of_prior(
    prior: LogPrior, family: Family, constants: Constants, size: int, rng: np.random.Generator
) -> Floats:
    """Draw probabilities from a prior, (size, K): draws of the uniform one, resampled by their weights.

    Raises
    ------
    PriorError
        Where it cannot be told from an improper one.
    """
    drawn = family.truth(Dirichlet(1), constants, _OF_PRIOR, rng)
    weight = _weight_of_prior(prior, prior(drawn, names_of(family, constants)))
    chosen: Floats = drawn[rng.permutation(resampled(weight, size, rng))]
    return chosen


def names_of(family: Family, constants: Constants) -> tuple[str, ...]:
    """Return the names of a table's entries."""
    return tuple(entry_names(family.labels(constants)))


def _log_mean_of_prior(prior: LogPrior, family: Family, constants: Constants) -> float:
    """Return the logarithm of the average of e^f under the uniform prior."""
    drawn = family.truth(Dirichlet(1), constants, _OF_PRIOR, np.random.default_rng(0))
    value = prior(drawn, names_of(family, constants))
    _weight_of_prior(prior, value)
    return float(np.logaddexp.reduce(value) - np.log(len(value)))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reference:
    """The posterior under the uniform prior.

    Attributes
    ----------
    distribution : Distribution
    log_evidence : ndarray of shape (n_cells,), float64, or None
    draws : int
        How many independent draws chains are worth; 0 where draws are independent.
    """

    distribution: Distribution
    log_evidence: Floats | None
    draws: int

    @classmethod
    def of(cls, family: Family, statistic: NoisyStatistic, n_prior: NPrior | None) -> _Reference:
        """Work it out; plug-in where there is no prior of N."""
        if n_prior is None:
            return cls(distribution=family.plug_in(statistic, Dirichlet(1)), log_evidence=None, draws=0)
        assert family.noise_aware is not None  # noqa: S101 - families of tables have one
        distribution: Any = family.noise_aware(statistic, Dirichlet(1), n_prior)
        known = getattr(distribution, "diagnostics", {})
        return cls(
            distribution=distribution,
            log_evidence=getattr(distribution, "log_evidence", None),
            draws=int(known.get("fewest_effective_draws", 0)),
        )

    def sample(self, draws: int, rng: np.random.Generator) -> Floats:
        """Draws, (draws, n_cells, K)."""
        return self.distribution.sample(draws, rng)["probability"]

    def independent(self, draws: int) -> float:
        """Return how many independent draws each of so many is worth."""
        return min(1.0, self.draws / draws) if self.draws else 1.0


def _of_cell(
    prior: LogPrior, names: tuple[str, ...], drawn: Floats, independent: float, rng: np.random.Generator
) -> WeighedCell | None:
    """Weigh the draws of one cell; None where too few count."""
    return weighed({"probability": drawn}, prior(drawn, names), independent, KEPT, rng)
