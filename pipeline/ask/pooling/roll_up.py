"""Cells of one release merged over some of its group columns, with noise counted right."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.bounded_records import BY_EVIDENCE, require_way_of_clipping
from suffice.pipeline.ask.pooling.pool import pooled
from suffice.pipeline.ask.pooling.union import summed, union_posterior
from suffice.pipeline.math.parameters.contrasts import matched_cells
from suffice.pipeline.math.parameters.draws import generator
from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
from suffice.pipeline.terms.released.sample import ReleasedSample, no_statistics

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.distributions.prior import Prior
    from suffice.pipeline.math.priors.record_count import NPrior


ONE_PARAMETER = "one parameter"
"""The assumption that merged cells share their parameters."""


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

    @property
    def statistic(self) -> NoisyStatistic:
        """The merged cells: sums of released values, behind so many noises."""
        return summed(self.parts)

    def table(self) -> list[dict[str, Any]]:
        """Return one row per merged cell and quantity, as ``NoisyStatistic.table`` does.

        Values add up, and so do their noises: with m cells merged, the noise of a sum of components is a sum
        of m discrete Laplace variables, whose standard deviation is sqrt(m) times that of one.
        """
        root = math.sqrt(len(self.parts))
        return [{**row, "noise_sd": row["noise_sd"] * root} for row in self.statistic.table()]

    def posterior(
        self,
        prior: AnyPrior = None,
        n_prior: NPrior | int | str | None = None,
        rng: np.random.Generator | int | None = None,
        clipping: str = BY_EVIDENCE,
        predictor_prior: Prior | str | None = None,
        *,
        assume: str | None = None,
    ) -> Posterior:
        """Return the noise-aware posterior of what the records of the merged cells add up to.

        The answer is of the records that were released: their number, total, mean, variance, counts and
        shares (see ``UnionPosterior``), as bounds and lattice leave them. Nothing is assumed of how cells
        differ. It has no part for how another sample of records would differ, so no parameter of a family.

        Parameters
        ----------
        prior, n_prior, rng, clipping, predictor_prior : optional
            Of the shared parameter, as in ``suffice.pool(disjoint=...)``; of ``assume="one parameter"``.
        assume : {"one parameter"}, optional
            The merged cells share their parameters, and each has its own N. Where cells differ, such an
            answer is about no cell, and its intervals are wrong.

        Raises
        ------
        UsageError
            Where there is no such assumption, a prior has no use, or the quantities of the family's merged
            cells are not worked out.
        """
        require_way_of_clipping(clipping)
        require_assumption(assume, prior, n_prior, predictor_prior)
        if assume is None:
            return union_posterior(self.statistic)
        shared = pooled(
            self.parts,
            prior=prior,
            n_prior=n_prior,
            clipping=clipping,
            predictor_prior=predictor_prior,
            rng=generator(rng),
        )
        kept = f"{shared.rows_of}; " if shared.rows_of else ""
        of = f"{kept}assumed to be the same in {len(self.parts)} merged cells: wrong where these differ"
        return dataclasses.replace(shared, rows_of=of)


def require_assumption(assume: str | None, *priors: object) -> None:
    """Refuse assumptions that there are not, and priors of parameters that nobody assumes.

    Raises
    ------
    UsageError
    """
    if assume not in {None, ONE_PARAMETER}:
        message = f"assume: a roll-up assumes nothing of its cells, or {ONE_PARAMETER!r}: not {assume!r}"
        raise UsageError(message)
    if assume is None and any(prior is not None for prior in priors):
        message = (
            "a roll-up's totals, shares and means are of the released records, and take no prior of a "
            f"parameter or of N: leave it out, or assume {ONE_PARAMETER!r} for all merged cells"
        )
        raise UsageError(message)


def roll_up(statistic: NoisyStatistic, *columns: str) -> RolledUp:
    """Merge cells over some group columns: their sums with noise counted right, and posteriors of these.

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
