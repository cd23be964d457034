r"""Rates of groups of pooled cells: averages by the number of records, with all that cells have in common.

Of the cells c of a merged one,

.. math:: \bar\theta = \frac{\sum_c N_c \theta_c}{\sum_c N_c}, \qquad n = \sum_c N_c, \qquad (1)

by joint draws of parameters and latent numbers of records of all cells. A population is uncertain for all its
cells at once: where noise hides them, averages are hardly better known than one cell, which independent draws
would not show. Draws in which no merged cell has a record leave the ratio to plain averages.

Method. ``DRAWS`` draws with a fixed generator for moments; quantiles are of as many as are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.judging.conflict import Conflict
from suffice.pipeline.ask.posterior.posterior import Posterior
from suffice.pipeline.math.distributions.composite import Draws
from suffice.pipeline.math.distributions.interval_kinds import CENTRAL
from suffice.pipeline.math.engines.pooled.distribution import PooledDistribution
from suffice.pipeline.math.engines.pooled.pools import PooledCells
from suffice.pipeline.math.parameters.parameter_posterior import DRAWS
from suffice.pipeline.math.priors.record_count import Fixed
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.typing import Cells, Floats

_SEED = 0
N = "n"


@dataclass(frozen=True, slots=True)
class RolledUpDraws(Draws):
    """Draws of (1).

    Attributes
    ----------
    cells : PooledCells
    merged : tuple of ndarray of int64
        Which cells each merged one is made of.
    records : float or None
        The number of records of every cell, where it is public.
    """

    cells: PooledCells
    merged: tuple[Cells, ...]
    records: float | None
    _drawn: dict[str, Floats] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The average's name, and n."""
        return (*self.cells.parameters, N)

    def _fixed(self, parameter: str) -> Floats:
        if not self._drawn:
            self._drawn.update(self.sample(DRAWS, np.random.default_rng(_SEED)))
        return self._drawn[parameter]

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return np.asarray(np.mean(self._fixed(parameter), axis=0))

    def sd(self, parameter: str) -> Floats:
        """Standard deviations."""
        return np.asarray(np.std(self._fixed(parameter), axis=0))

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws of all merged cells."""
        (name,) = self.cells.parameters
        if self.records is None:
            drawn, records = self.cells.sample_with_records(draws, rng)
        else:
            drawn = self.cells.sample(draws, rng)[name]
            records = np.full_like(drawn, self.records)
        totals = np.stack([np.sum(records[:, cells], axis=1) for cells in self.merged], axis=1)
        weighted = [np.sum((records * drawn)[:, cells], axis=1) for cells in self.merged]
        plain = np.stack([np.mean(drawn[:, cells], axis=1) for cells in self.merged], axis=1)
        # (1)
        average = np.divide(np.stack(weighted, axis=1), totals, out=plain, where=totals > 0.0)
        return {name: average, N: totals}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PooledRollUp(Posterior):
    """Averages of pooled cells by their numbers of records; made by ``PooledPosterior.roll_up``.

    Its parameters are that of the cells, averaged, and ``n``, the number of records.
    """

    prior: Any

    @property
    def default_interval(self) -> str:
        """Central, as of the cells."""
        return CENTRAL

    @property
    def conflict(self) -> Conflict:
        """Nothing is judged here: the cells are, by the posterior that this was made of."""
        return Conflict.of_nothing(self.n_groups, self.prior)

    @property
    def decided_by_default(self) -> dict[str, Any]:
        """Nothing: no default prior is of a merged cell."""
        return {}

    @property
    def moved_by_default(self) -> dict[str, Any]:
        """Nothing, as above."""
        return {}

    @property
    def log_evidence(self) -> Never:
        """Refused: merged cells have no prior of their own."""
        self._refuse("evidence")

    @property
    def clipping(self) -> None:
        """None: cells describe records as the bounds leave them, and so do their averages."""
        return

    def predictive(self, *_: object, **__: object) -> Never:
        """Refuse: new rows are of a cell, not of an average."""
        self._refuse("new rows")

    def robustness(self, *_: object, **__: object) -> Never:
        """Refuse, as above."""
        self._refuse("robustness")

    def check(self, *_: object, **__: object) -> Never:
        """Refuse: cells are checked before they are merged."""
        self._refuse("check")

    def prior_density(self, parameter: str, points: Any) -> None:  # noqa: ARG002
        """Return None: pictures of merged cells show no prior."""
        return

    def _refuse(self, what: str) -> Never:
        message = (
            f"{self.statistic}: averages of pooled cells have no {what}: ask the pooled posterior for it"
        )
        raise UsageError(message)


def roll_up(pooled: Posterior, columns: Sequence[str]) -> PooledRollUp:
    """Return the averages; see ``PooledPosterior.roll_up``."""
    unknown = [column for column in columns if column not in pooled.groups]
    if unknown or not columns:
        known = ", ".join(pooled.groups) or "none"
        message = f"roll_up takes group columns of the pooled cells, which are: {known}"
        raise UsageError(message)
    distribution: Any = pooled.distribution
    records = _public_records(pooled)
    has_sizes = isinstance(distribution, PooledCells) and all(
        isinstance(pool, PooledDistribution) and pool.tells_records for pool in distribution.pools
    )
    if records is None and not has_sizes:
        message = (
            f"{pooled.statistic}: a roll-up of pooled cells weighs them by their numbers of records, which "
            "are told for bernoulli and poisson cells that do not walk: state them as n_prior where they "
            "are public; suffice.roll_up adds up what was released, without a population"
        )
        raise UsageError(message)
    left = [column for column in pooled.groups if column not in columns]
    of_keys: dict[tuple[str | int, ...], list[int]] = {}
    for cell in range(pooled.n_groups):
        of_keys.setdefault(tuple(pooled.groups[column][cell] for column in left), []).append(cell)
    groups: Mapping[str, list[str | int]] = {
        column: [keys[place] for keys in of_keys] for place, column in enumerate(left)
    }
    most = max(map(len, of_keys.values()))
    return PooledRollUp(
        statistic=pooled.statistic,
        family=pooled.family,
        method=pooled.method,
        prior=pooled.prior,
        n_prior=pooled.n_prior,
        groups=groups,
        label_columns={},
        distribution=RolledUpDraws(
            distribution, tuple(np.array(cells, dtype=np.int64) for cells in of_keys.values()), records
        ),
        constants=pooled.constants,
        rows_of=(
            f"averages of up to {counted(most, 'pooled cell')} by their numbers of records, by {DRAWS} joint "
            f"draws, merged over {', '.join(columns)}; {pooled.rows_of}"
        ),
        observed=pooled.observed,
        releases=pooled.releases,
        about=pooled.about,
        titled=pooled.titled,
        prices=pooled.prices,
    )


def _public_records(pooled: Posterior) -> float | None:
    return float(pooled.n_prior.support[0]) if isinstance(pooled.n_prior, Fixed) else None
