r"""Posteriors of cells that walk over time: each is near the one before it and the one after it.

Each cell keeps its exact likelihood, noise and latent number of records included. Between times positions on
the line take random steps, a share of which are jumps; the size of steps has a public hyperprior and is
integrated over (``math.engines.pooled.walk_steps``), for all series of a pool together. A gap in time is a
longer step.

A step is not identified where the standard deviation of its logarithm is above ``UNIDENTIFIED`` of what it is
under its hyperprior: then each cell alone is shown first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing import doubtful_cells
from suffice.pipeline.ask.borrowing.pooled_conflict import OUTSIDE
from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
from suffice.pipeline.ask.borrowing.walk import Walk, times_of
from suffice.pipeline.ask.borrowing.walk_known import (
    Steps,
    WalkConflict,
    WalkPrior,
    doubts,
    in_keys,
    method_of,
)
from suffice.pipeline.ask.inference import chosen_priors
from suffice.pipeline.ask.inference.pooled_sources import cells_source
from suffice.pipeline.ask.inference.posterior_terms import NOISE_AWARE
from suffice.pipeline.ask.judging.conflict import Conflict, conflict_of_n
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines.pooled.ordered_distribution import LONGEST, ordered_distribution
from suffice.pipeline.math.engines.pooled.pools import PooledCells
from suffice.pipeline.math.engines.pooled.returning_walk import returning_distribution
from suffice.pipeline.math.engines.pooled.series import CellsInOrder
from suffice.pipeline.math.engines.pooled.walk_distribution import walk_distribution
from suffice.pipeline.terms.declaration.wording import counted
from suffice.pipeline.terms.released.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.math.engines.pooled.ordered_distribution import OrderedDistribution
    from suffice.pipeline.math.engines.pooled.walk_distribution import WalkDistribution
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Cells, Floats

_NAMED = 6


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WalkedPosterior(PooledPosterior):
    """The posterior of cells that walk over time, and what it rests on; ``pools`` is empty.

    Attributes
    ----------
    walk : Walk
    steps : tuple of Steps
        Of each pool.
    told : ndarray of shape (n_groups,), float64
        Released numbers of records times epsilon; infinite where none was released.
    """

    walk: Walk
    steps: tuple[Steps, ...]
    told: Floats = field(repr=False)

    @property
    def is_identified(self) -> bool:
        """Whether the cells tell the step of every pool."""
        return all(each.identified for each in self.steps)

    @property
    def outside(self) -> Floats:
        """How probable it is that a jump leads to each cell, (n_groups,); 0 of the first of a series."""
        outside: Floats = self.distribution.outside  # type: ignore[attr-defined]
        return outside

    @property
    def own_share(self) -> Floats:
        """How much of each answer is the cell's own, in 0..1, (n_groups,).

        One less the ratio of the posterior variance, on the line, to that without the cell itself.
        """
        own_share: Floats = self.distribution.own_share  # type: ignore[attr-defined]
        return own_share

    def _reasons(self) -> list[str]:
        is_outside = self.outside > OUTSIDE
        return doubtful_cells.reasons(self.told, is_outside, np.zeros_like(is_outside), doubtful_cells.JUMP)

    def known_of_pools(self) -> list[dict[str, Any]]:
        """Return keys and numbers of every pool, as rows."""
        return [each.row for each in self.steps]

    def _doubts(self) -> tuple[str, ...]:
        return doubts(self.steps)

    def jumps(self, above: float = OUTSIDE) -> Table:
        """Return the cells to which a jump leads, the most probable first: keys and ``probability``.

        Parameters
        ----------
        above : float
            The least probability, in 0..1.
        """
        order = np.argsort(-self.outside, kind="stable")
        rows = [
            {
                **{column: keys[cell] for column, keys in self.groups.items()},
                "probability": round(float(self.outside[cell]), 4),
            }
            for cell in order.tolist()
            if self.outside[cell] >= above
        ]
        return Table(rows, title=f"{self.statistic}: cells to which a jump leads")

    def seasons(self) -> Table:
        """Return the effects of the season of each series: keys, ``mean`` and ``sd`` on the line.

        The line is the logit of a probability, or the logarithm of a rate or a scale. Each effect stands at
        the first key of the column that has it.

        Raises
        ------
        UsageError
            Where there is no season.
        """
        if self.walk.season is None:
            message = f"{self.statistic}: over={self.walk} has no season"
            raise UsageError(message)
        rows: list[dict[str, Any]] = []
        pools = zip(self.distribution.pools, self.distribution.cells, strict=True)  # type: ignore[attr-defined]
        for pool, cells in pools:
            placed = pool.walked.cells.cell
            for numbers, means, sds in zip(placed, *pool.seasons(), strict=True):
                done = set()
                for time in np.flatnonzero(numbers >= 0).tolist():
                    effect = time % self.walk.season
                    if effect in done:
                        continue
                    done.add(effect)
                    cell = int(cells[numbers[time]])
                    keys = {column: keys[cell] for column, keys in self.groups.items()}
                    rows.append({**keys, "mean": float(means[effect]), "sd": float(sds[effect])})
        return Table(rows, title=f"{self.statistic}: effects of a season of {self.walk.season}")

    @property
    def conflict(self) -> Conflict:
        """Whether released numbers of records and steps are as their priors expect."""

        def judged(posterior: Posterior) -> Conflict:
            sizes = conflict_of_n(posterior) if posterior.observed else None
            return WalkConflict(
                quantities=sizes.quantities if sizes else (),
                tails=sizes.tails if sizes else np.ones((posterior.n_groups, 0)),
                of_n=sizes.of_n if sizes else np.zeros(0, dtype=bool),
                prior=str(posterior.prior),
                n_prior="" if posterior.n_prior is None else str(posterior.n_prior),
                not_judged=sizes.not_judged if sizes else (),
                unidentified=self._doubts(),
            )

        conflict: Conflict = self._once("conflict", judged)
        return conflict


def walked_posterior(
    statistic: NoisyStatistic,
    walk: Walk,
    within: Sequence[str],
    line: Line,
    stated_n_prior: Any,
    alone: Callable[[], Posterior],
    *,
    declared: Sequence[str | int] | None = None,
    parts: Sequence[tuple[NoisyStatistic, Cells]] | None = None,
) -> WalkedPosterior:
    """Return the posterior of cells that walk over a column.

    Parameters
    ----------
    statistic : NoisyStatistic
        All cells.
    walk : Walk
    within : sequence of str
        Group columns within whose keys series share their step; all do otherwise.
    line : Line
    stated_n_prior : NPrior, int, str or None
    alone : callable
        Returns the posterior of the same cells, each alone.
    declared : sequence of str or int, optional
        The keys of the column in order; as the plan declares them otherwise.
    parts : sequence of (NoisyStatistic, ndarray of int64), optional
        The same cells by the noise that they have, with their numbers among all.

    Raises
    ------
    UsageError
        Where the column is no group, no series has two cells, or the walk cannot be worked out.
    """
    name = statistic.plan.name
    pools = ordered_pools(statistic, walk, within, stated_n_prior, declared=declared, parts=parts)
    _check_span(name, walk, pools.series)
    try:
        distributions = [worked_out(series, pools.parameter, line, walk) for series in pools.series]
    except np.linalg.LinAlgError:
        message = (
            f"{name}: expectation propagation does not settle over={walk}: walk over {walk.over} alone, "
            "whose recursions are exact"
        )
        raise UsageError(message) from None
    steps = tuple(Steps.of(keys, part) for keys, part in zip(pools.keys, distributions, strict=True))
    posterior = WalkedPosterior(
        **pools.terms(statistic, distributions),
        prior=WalkPrior(walk=walk, line=line),
        rows_of=None,
        population="walk",
        pools=(),
        walk=walk,
        steps=steps,
        _alone=alone,
    )
    sizes = "sizes are each cell's own, and have no slope"
    return replace(posterior, rows_of=in_words(posterior, pools.order, sizes))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedPools:
    """Cells of a statistic as series over a column, in pools.

    Attributes
    ----------
    keys : tuple of dict
        What the cells of each pool have in common.
    cells : tuple of ndarray of int64
        Which cells each pool holds.
    series : tuple of CellsInOrder
    order : str
        In which order keys of the column are, in words.
    parts : sequence of (NoisyStatistic, ndarray of int64)
        The cells by the noise that they have.
    n_priors : tuple of NPrior
        Of each part.
    parameter : str
        The name of what is asked.
    """

    keys: tuple[dict[str, str | int], ...]
    cells: tuple[Cells, ...]
    series: tuple[CellsInOrder, ...]
    order: str
    parts: Sequence[tuple[NoisyStatistic, Cells]]
    n_priors: tuple[NPrior, ...]
    parameter: str

    def terms(self, statistic: NoisyStatistic, distributions: Sequence[Any]) -> dict[str, Any]:
        """Return what any posterior of these cells is made of."""
        family, n_cells = FAMILIES[statistic.plan.family], len(statistic.values)
        told = np.empty(n_cells)
        for (part, of_part), n_prior in zip(self.parts, self.n_priors, strict=True):
            told[of_part] = doubtful_cells.size_times_epsilon(part, n_prior)
        return {
            "statistic": statistic.plan.name,
            "family": statistic.plan.family,
            "method": NOISE_AWARE,
            "n_prior": self.n_priors[0] if len({str(each) for each in self.n_priors}) == 1 else None,
            "groups": statistic.groups,
            "label_columns": {},
            "distribution": PooledCells(pools=tuple(distributions), cells=self.cells),
            "constants": statistic.plan.parameters,
            "models_clipping": np.zeros(n_cells, dtype=bool) if family.models_clipping else None,
            "observed": (statistic,) if len(self.parts) == 1 else (),
            "told": told,
        }


def ordered_pools(
    statistic: NoisyStatistic,
    walk: Walk,
    within: Sequence[str],
    stated_n_prior: Any,
    *,
    declared: Sequence[str | int] | None,
    parts: Sequence[tuple[NoisyStatistic, Cells]] | None,
) -> OrderedPools:
    """Put cells in order; parameters are those of ``walked_posterior``.

    Raises
    ------
    UsageError
        Where the column is no group, or no series has two cells.
    """
    name = statistic.plan.name
    if walk.over not in statistic.groups:
        known = ", ".join(statistic.groups) or "none"
        message = (
            f"over={walk.over!r}: {name} has no such group column (its columns: {known}); window is of a "
            "series: suffice.open_series opens it, and `suffice posterior` does by NAME without @WINDOW"
        )
        raise UsageError(message)
    if walk.over in within:
        message = f"{name}: cells walk over {walk.over}, so that they are not pooled within it: leave one out"
        raise UsageError(message)
    if declared is None:
        declared = list(statistic.plan.groups.get(walk.over) or dict.fromkeys(statistic.groups[walk.over]))
    present = set(statistic.groups[walk.over])
    time_of, order = times_of(
        walk.over, [key for key in declared if key in present], by_unit=walk.season is not None
    )
    parts = [(statistic, np.arange(len(statistic.values)))] if parts is None else parts
    n_priors = [chosen_priors.n_prior_for(part, stated_n_prior) for part, _ in parts]
    of_keys: dict[tuple[str | int, ...], list[int]] = {}
    for cell in range(len(statistic.values)):
        of_keys.setdefault(tuple(statistic.groups[column][cell] for column in within), []).append(cell)
    pools = tuple(np.array(cells, dtype=np.int64) for cells in of_keys.values())
    family = FAMILIES[statistic.plan.family]
    (space,) = family.parameter_spaces(statistic.plan.parameters)
    ordered = [_in_order(statistic, walk.over, time_of, cells, parts, n_priors) for cells in pools]
    for keys, series in zip(of_keys, ordered, strict=True):
        if int(np.max(np.sum(series.cell >= 0, axis=1))) < 2:
            where = in_keys(dict(zip(within, keys, strict=True)))
            message = (
                f"{name}: no series{where} has two cells over {walk.over}: there is nothing to walk over"
            )
            raise UsageError(message)
    return OrderedPools(
        keys=tuple(dict(zip(within, keys, strict=True)) for keys in of_keys),
        cells=pools,
        series=tuple(ordered),
        order=order,
        parts=parts,
        n_priors=tuple(n_priors),
        parameter=space.name,
    )


def _check_span(name: str, walk: Walk, ordered: Sequence[CellsInOrder]) -> None:
    """Refuse too many times for normal laws, and fewer than two seasons.

    Raises
    ------
    UsageError
    """
    if walk.season is None and walk.order == 1 and walk.kind == "walk":
        return
    for series in ordered:
        n_times = series.cell.shape[1]
        if n_times > LONGEST:
            message = (
                f"{name}: {n_times} times of over={walk}: order, season and kind are worked out over at most "
                f"{LONGEST}: walk over {walk.over} alone"
            )
            raise UsageError(message)
        is_seen = series.cell >= 0
        spans = n_times - np.argmax(is_seen[:, ::-1], axis=1) - np.argmax(is_seen, axis=1)
        if walk.season is not None and int(np.max(spans)) < 2 * walk.season:
            message = (
                f"{name}: season={walk.season}: no series spans two seasons, {2 * walk.season} times, so "
                "that nothing tells a season from steps: leave season out"
            )
            raise UsageError(message)


def worked_out(
    series: CellsInOrder, name: str, line: Line, walk: Walk
) -> WalkDistribution | OrderedDistribution:
    """Return the posterior of one pool: by recursions on a line where there is one, else by propagation."""
    if not walk.is_on_a_line:
        return ordered_distribution(series, name, line, walk.law, jumps=walk.share_of_jumps)
    if walk.kind == "ar1":
        return returning_distribution(series, name, line, walk.law, jumps=walk.share_of_jumps)
    return walk_distribution(series, name, line, jumps=walk.share_of_jumps, scale=walk.step)


def _in_order(
    statistic: NoisyStatistic,
    over: str,
    time_of: Mapping[str | int, int],
    cells: Cells,
    parts: Sequence[tuple[NoisyStatistic, Cells]],
    n_priors: Sequence[NPrior],
) -> CellsInOrder:
    """Return cells of one pool as series over a column."""
    others = [keys for column, keys in statistic.groups.items() if column != over]
    times = np.array([time_of[statistic.groups[over][cell]] for cell in cells.tolist()])
    numbers: dict[tuple[str | int, ...], int] = {}
    series = [
        numbers.setdefault(tuple(keys[cell] for keys in others), len(numbers)) for cell in cells.tolist()
    ]
    placed = np.full((len(numbers), int(np.max(times) - np.min(times)) + 1), -1, dtype=np.int64)
    placed[series, times - np.min(times)] = np.arange(len(cells))
    sources = []
    for (part, of_part), n_prior in zip(parts, n_priors, strict=True):
        _, here, among = np.intersect1d(of_part, cells, return_indices=True)
        if len(here):
            whole = len(here) == len(part.values) and np.array_equal(here, np.arange(len(here)))
            sources.append((cells_source(part if whole else part.take(here), n_prior), among))
    return CellsInOrder(sources=tuple(sources), cell=placed)


def in_words(posterior: WalkedPosterior, order: str, of_sizes: str) -> str:
    """Say what walks over what, and how far, and what is said of sizes."""
    walk, steps = posterior.walk, posterior.steps
    n_series = sum(each.n_series for each in steps)
    said = (
        f"{counted(n_series, 'series', 'series')} of {counted(posterior.n_groups, 'cell')} walk over "
        f"{walk.over}, in the order of {order}"
    )
    if len(steps) == 1:
        n_missing = steps[0].n_series * steps[0].n_times - steps[0].n_cells
        if n_missing:
            said += f", {n_missing} of {steps[0].n_series * steps[0].n_times} times without a cell"
        said += f"; {steps[0]}"
    else:
        said += f"; steps differ between the {counted(len(steps), 'pool')}"
    named = posterior.jumps()
    if named:
        cells = "; ".join(
            f"{', '.join(str(row[column]) for column in posterior.groups)}: {row['probability']:.2f}"
            for row in named[:_NAMED]
        )
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        said += f"; a jump leads to {cells}{more}"
    said += method_of(steps)
    return f"{said}; {of_sizes}; own_share: how much of an answer is the cell's own"
