"""Cells of one release merged over some of its group columns, with noise counted right."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.pooling.pool import pooled
from suffice.pipeline.posterior.bounded_records import BY_EVIDENCE, require_way_of_clipping
from suffice.pipeline.posterior.contrasts import matched_cells
from suffice.pipeline.posterior.draws import generator
from suffice.pipeline.released.noisy_statistic import NoisyStatistic
from suffice.pipeline.released.sample import ReleasedSample, no_statistics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.distributions.prior import Prior
    from suffice.pipeline.posterior.chosen_priors import AnyPrior
    from suffice.pipeline.posterior.posterior import Posterior
    from suffice.pipeline.priors.record_count import NPrior


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledUp:
    """Cells merged over group columns; made by ``roll_up``.

    Attributes
    ----------
    columns : tuple of str
        The group columns that are gone.
    parts : tuple of NoisyStatistic
        One for every combination of their keys, with the remaining cells in one order.
    """

    columns: tuple[str, ...]
    parts: tuple[NoisyStatistic, ...] = field(repr=False)

    @property
    def groups(self) -> Mapping[str, list[str | int]]:
        """The keys of every merged cell, by remaining group column."""
        return self.parts[0].groups

    def table(self) -> list[dict[str, Any]]:
        """Return one row per merged cell and quantity, as ``NoisyStatistic.table`` does.

        Values add up, and so do their noises: with m cells merged, the noise of a sum of components is a sum
        of m discrete Laplace variables, whose standard deviation is sqrt(m) times that of one.
        """
        values = np.sum([part.values for part in self.parts], axis=0, dtype=object)
        merged = dataclasses.replace(self.parts[0], values=values)
        root = math.sqrt(len(self.parts))
        return [{**row, "noise_sd": row["noise_sd"] * root} for row in merged.table()]

    def posterior(
        self,
        prior: AnyPrior = None,
        n_prior: NPrior | int | str | None = None,
        rng: np.random.Generator | int | None = None,
        clipping: str = BY_EVIDENCE,
        predictor_prior: Prior | str | None = None,
    ) -> Posterior:
        """Return the noise-aware posterior of one parameter for all cells that are merged into one.

        The cells hold disjoint data, so they are pooled as ``suffice.pool(disjoint=...)`` pools releases:
        the model is that the merged cells share their parameters, and each has its own N.
        """
        require_way_of_clipping(clipping)
        return pooled(
            self.parts,
            prior=prior,
            n_prior=n_prior,
            clipping=clipping,
            predictor_prior=predictor_prior,
            rng=generator(rng),
        )


def roll_up(statistic: NoisyStatistic, *columns: str) -> RolledUp:
    """Merge cells over some group columns: their sums with noise counted right, and pooled posteriors.

    Parameters
    ----------
    statistic : NoisyStatistic
        As ``Release.statistic`` returns it.
    *columns : str
        The group columns that disappear.

    Raises
    ------
    UsageError
        Where no column is named, or one is no group; where another thing than a statistic is given.
    """
    if isinstance(statistic, ReleasedSample):
        raise no_statistics(statistic.plan.name)
    if not isinstance(statistic, NoisyStatistic):
        message = 'roll_up takes a statistic of a release, as release.statistic("cancelled"), then columns'
        raise UsageError(message)
    unknown = [column for column in columns if column not in statistic.groups]
    if unknown or not columns:
        known = ", ".join(statistic.groups) or "none"
        message = f"roll_up takes group columns of the release, which are: {known}"
        raise UsageError(message)
    by_key: dict[tuple[str | int, ...], list[int]] = {}
    for row in range(len(statistic.values)):
        key = tuple(statistic.groups[column][row] for column in columns)
        by_key.setdefault(key, []).append(row)
    first = next(iter(by_key.values()))
    parts = []
    for rows in by_key.values():
        _, order, keys = matched_cells(
            (statistic.groups, first), (statistic.groups, rows), apart_from=columns
        )
        parts.append(dataclasses.replace(statistic.take(order), groups=keys))
    return RolledUp(columns=columns, parts=tuple(parts))
