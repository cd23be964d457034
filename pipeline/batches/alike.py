"""Cells with the same released values: their posterior is worked out once.

Under one prior, a cell's posterior is a function of its released integers alone. Of a million cells with few
records, most have the values of others.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from suffice.pipeline.distributions.distribution import Distribution
    from suffice.pipeline.posterior.posterior import Posterior
    from suffice.pipeline.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Cells, Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedCells:
    """A distribution whose cells stand for others too; it has no draws, which would be the same in those.

    Attributes
    ----------
    distribution : Distribution
        Of the different cells.
    of_cell : ndarray of shape (n_cells,), int64
        Which of them stands for each cell.
    """

    distribution: Distribution
    of_cell: Cells

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.distribution.parameters

    @property
    def components(self) -> Mapping[str, tuple[str, ...]]:
        """The entries' names, by parameter."""
        return getattr(self.distribution, "components", {})

    @property
    def diagnostics(self) -> dict[str, Any]:
        """Those of the different cells."""
        return dict(getattr(self.distribution, "diagnostics", {}))

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self.distribution.mean(parameter)[self.of_cell]

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self.distribution.sd(parameter)[self.of_cell]

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Marginal quantiles."""
        return self.distribution.quantiles(parameter, q, draws, rng)[self.of_cell]

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Refuse: cells that are alike have independent draws."""
        raise NotImplementedError


def posterior_of_alike(
    statistic: NoisyStatistic, posterior_of: Callable[[NoisyStatistic], Posterior]
) -> Posterior:
    """Return the posterior of every cell, worked out once for cells that are alike; for summaries alone.

    Parameters
    ----------
    statistic : NoisyStatistic
    posterior_of : callable
        Some of its cells -> their posterior.
    """
    first, of_cell = _different(statistic)
    if len(first) == len(of_cell):
        return posterior_of(statistic)
    found = posterior_of(statistic.take(first))

    def spread(values: Any) -> Any:
        return None if values is None else values[of_cell]

    return dataclasses.replace(
        found,
        groups=statistic.groups,
        distribution=RepeatedCells(distribution=found.distribution, of_cell=of_cell),
        observed=(dataclasses.replace(found.observed[0], **_whole(found, statistic, of_cell)),),
        models_clipping=spread(found.models_clipping),
        design_effect=spread(found.design_effect),
    )


def _whole(found: Posterior, statistic: NoisyStatistic, of_cell: Cells) -> dict[str, Any]:
    """Return what was observed of all cells, as it is observed of the different ones."""
    return {"values": found.observed[0].values[of_cell], "groups": statistic.groups}


def _different(statistic: NoisyStatistic) -> tuple[Cells, Cells]:
    """Return the first cell of every kind, in order, and which of these stands for each cell."""
    found: dict[tuple[int, ...], int] = {}
    kinds = [found.setdefault(tuple(values), len(found)) for values in statistic.values.tolist()]
    of_cell = np.array(kinds, dtype=np.int64)
    return np.unique(of_cell, return_index=True)[1].astype(np.int64), of_cell
