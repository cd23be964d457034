"""A released quantity against its posterior predictive: whether the model would release it again.

A replicate draws the parameters from the posterior, a number of records, records from the family's model,
clipped as the release's are, and noise of the release's distribution. Where N is private it is drawn from its
prior given the released n alone. The released values are used twice, once to find the parameters: tails are
drawn to the middle, and a model that is wrong may still reproduce what it was fitted to. A small tail says
that something is wrong; a large one says little.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.expected_records import n_quantity
from suffice.pipeline.ask.judging.conflict import n_prior_of
from suffice.pipeline.ask.judging.prior_worlds import names_of
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.ask.judging.judged import Judged
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Counts, Floats


_CANDIDATES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """How the released quantities lie among replicates of the release.

    Attributes
    ----------
    quantities : tuple of str
        As ``total``, ``total[x]`` or ``count[UA]``.
    released : ndarray of shape (n_cells, n_quantities), float64
        Unbiased estimates, in the column's unit.
    replicated : ndarray of shape (draws, n_cells, n_quantities), float64
        Those of the replicates.
    groups : dict of str to list
        The key of every cell, by group column.
    """

    quantities: tuple[str, ...]
    released: Floats = field(repr=False)
    replicated: Floats = field(repr=False)
    groups: Mapping[str, list[str | int]] = field(repr=False)

    @property
    def tails(self) -> Floats:
        """Twice the smaller share of replicates that are as far out, (n_cells, n_quantities), at most 1.

        The release counts as one of them: no tail is below ``2 / (draws + 1)``.
        """
        draws = len(self.replicated)
        above, below = (
            np.sum(sign * self.replicated >= sign * self.released, axis=0) + 1.0 for sign in (1.0, -1.0)
        )
        tails: Floats = np.minimum(2.0 * np.minimum(above, below) / (draws + 1.0), 1.0)
        return tails

    def rows(self) -> list[dict[str, Any]]:
        """One row a cell and quantity: keys, quantity, released, mean and sd of the replicates, tail."""
        mean, sd, tails = np.mean(self.replicated, axis=0), np.std(self.replicated, axis=0), self.tails
        return [
            {
                **{column: keys[cell] for column, keys in self.groups.items()},
                "quantity": name,
                "released": float(self.released[cell, position]),
                "mean": float(mean[cell, position]),
                "sd": float(sd[cell, position]),
                "tail": float(tails[cell, position]),
            }
            for cell in range(len(self.released))
            for position, name in enumerate(self.quantities)
        ]


def check_of(posterior: Judged, quantity: str | None, draws: int, rng: np.random.Generator) -> Check:
    """Replicate what a posterior rests on; see ``Posterior.check``."""
    model = posterior.model
    if model is None or len(posterior.observed) != 1:
        message = f"{posterior.statistic}: a check takes the posterior of one release, of Release.posterior"
        raise UsageError(message)
    if posterior.design_effect is not None:
        message = (
            f"{posterior.statistic}: replicates are of independent rows, which rows of one unit are not; to "
            "check all the same, ask the posterior with within_unit='ignored'"
        )
        raise UsageError(message)
    statistic = posterior.observed[0]
    quantities = [
        quantity_of_plan for quantity_of_plan in statistic.plan.quantities if quantity_of_plan.name != "n"
    ]
    names = names_of(quantities)
    chosen = [
        (quantity_of_plan, name)
        for quantity_of_plan, name in zip(quantities, names, strict=True)
        if quantity in {None, name}
    ]
    if not chosen:
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        message = f"{posterior.statistic} has no quantity {str(quantity)[:40]!r} to check: it has {shown}"
        raise UsageError(message)
    drawn = posterior.sample(draws, rng)
    sizes = _numbers_of_records(statistic, n_prior_of(posterior, statistic), draws, rng)
    exact = model.released([drawn[name] for name in posterior.parameters], sizes, rng)
    noise = discrete_laplace(statistic.plan.scale, exact.values.shape, rng, statistic.cells_summed)
    replicate = dataclasses.replace(exact, values=exact.values + noise.astype(object))
    return Check(
        quantities=tuple(name for _, name in chosen),
        released=np.stack([statistic.estimates(quantity_of_plan) for quantity_of_plan, _ in chosen], axis=-1),
        replicated=np.stack(
            [replicate.estimates(quantity_of_plan).reshape(draws, -1) for quantity_of_plan, _ in chosen],
            axis=-1,
        ),
        groups=posterior.groups,
    )


def _numbers_of_records(
    statistic: NoisyStatistic, n_prior: NPrior | None, draws: int, rng: np.random.Generator
) -> Counts:
    """Numbers of records given the released n, (draws, n_cells), by importance."""
    cells = len(statistic.values)
    if n_prior is not None and n_prior.support[0] == n_prior.support[1]:
        return np.full((draws, cells), n_prior.support[0])
    n_map = n_quantity(statistic)
    if n_map is None:
        message = f"{statistic.plan.name} does not tell the number of records: it cannot be replicated"
        raise UsageError(message)
    coefficients = np.array([float(weight) for weight in n_map.coefficients.values()])
    estimate = statistic.estimates(n_map)
    shape = (_CANDIDATES, draws, cells, len(coefficients))
    noise = discrete_laplace(statistic.plan.scale, shape, rng, statistic.cells_summed) @ coefficients
    candidates = np.maximum(np.rint(estimate - noise), 0.0)
    if n_prior is None:
        return np.asarray(candidates[0], dtype=np.int64)
    low, high = n_prior.support
    candidates = np.clip(candidates, low, high)
    # Outside of the support the nearest number stands: with a prior in conflict there may be no other.
    log_weight = n_prior.log_prob(candidates) + rng.gumbel(size=candidates.shape)
    best = np.argmax(log_weight, axis=0)[None]
    return np.asarray(np.take_along_axis(candidates, best, axis=0)[0], dtype=np.int64)
