"""The windows of a name as one object: what is there, what is missing, and posteriors that walk over them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UnknownNameError, UsageError
from suffice.pipeline.ask.borrowing.panels import posterior_over
from suffice.pipeline.ask.borrowing.pooled_posterior import check_terms, pooled_posterior
from suffice.pipeline.ask.borrowing.pooling import Pooling
from suffice.pipeline.ask.borrowing.side_by_side import rows_beside_alone
from suffice.pipeline.ask.borrowing.walk import WINDOW, Walk
from suffice.pipeline.ask.inference.model import Model
from suffice.pipeline.ask.inference.pooled_sources import line_of
from suffice.pipeline.ask.inference.posterior_terms import FurtherTerms, PosteriorTerms, lists_terms
from suffice.pipeline.ask.inference.within_unit import refuse_within_unit
from suffice.pipeline.ask.pooling.pool import differences
from suffice.pipeline.ask.posterior.cells import refuse_shared
from suffice.pipeline.ask.posterior.choice_of_engine import inferred
from suffice.pipeline.ask.posterior.posterior import Posterior
from suffice.pipeline.math.distributions.composite import CellBlocks, RepeatedCells
from suffice.pipeline.spec.windows_and_amendments import ALL, edition
from suffice.pipeline.terms.declaration.domains import Every, period_labels
from suffice.pipeline.terms.declaration.wording import counted
from suffice.pipeline.terms.released.noisy_statistic import rows_alone
from suffice.pipeline.terms.released.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Unpack

    from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
    from suffice.pipeline.ask.judging.conflict import Conflict
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Cells

_NAMED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """The cells of a statistic in all windows that have it.

    Attributes
    ----------
    statistic : NoisyStatistic
        Of all cells, with a group column ``window``; its plan is that of the newest.
    parts : tuple of (NoisyStatistic, ndarray of int64)
        The same cells by the noise that they have, with their numbers among all.
    releases : tuple of Release
        Whose cells they are, by window.
    left_out : tuple of (str, str)
        Editions without such a statistic, and why.
    """

    statistic: NoisyStatistic
    parts: tuple[tuple[NoisyStatistic, Cells], ...]
    releases: tuple[Release, ...]
    left_out: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Series:
    """All windows of a name, of each the newest edition; made by :func:`open_series`.

    Attributes
    ----------
    name, uri : str
        Of the releases, and of their store.
    every : Every
        The length of a window.
    releases : tuple of Release
        By window.
    left_out : tuple of (str, str)
        Editions that are no part of it, and why: they were withdrawn, or are of another dataset or of windows
        of another length than the last one.
    gaps : tuple of str
        Windows between the first and the last that have no release here.
    amended : dict of str to list of str
        By window, the older editions that the newest one stands for.
    """

    name: str
    uri: str
    every: Every
    releases: tuple[Release, ...]
    left_out: tuple[tuple[str, str], ...]
    gaps: tuple[str, ...]
    amended: Mapping[str, list[str]] = field(repr=False)

    @classmethod
    def of(
        cls,
        name: str,
        uri: str,
        releases: Sequence[Release],
        withdrawn: Sequence[tuple[str, str]],
        older: Mapping[str, list[str]],
    ) -> Series:
        """Put releases, which are by window, together.

        Raises
        ------
        UsageError
            Where they have no windows.
        """
        last = releases[-1]
        grid = last.manifest["plan"]["window"]
        if grid is None or last.window == ALL:
            message = f"{name} has no windows, and is one release: suffice.open_release opens it"
            raise UsageError(message)
        kept, left_out = [], list(withdrawn)
        for release in releases:
            reason = _other_series(release, last)
            if reason:
                left_out.append((edition(release.window, release.amendment), reason))
            else:
                kept.append(release)
        every = Every(grid["every"])
        present = {release.window for release in kept}
        between = period_labels(kept[0].window, kept[-1].window, every)
        return cls(
            name=name,
            uri=uri,
            every=every,
            releases=tuple(kept),
            left_out=tuple(sorted(left_out)),
            gaps=tuple(label for label in between if label not in present),
            amended={window: older[window] for window in sorted(present) if window in older},
        )

    def __iter__(self) -> Iterator[Release]:
        """Give the releases by window."""
        return iter(self.releases)

    def __len__(self) -> int:
        """Return how many windows there are."""
        return len(self.releases)

    def __getitem__(self, window: str) -> Release:
        """Return the release of a window.

        Raises
        ------
        UnknownNameError
        """
        for release in self.releases:
            if release.window == window:
                return release
        message = f"{self.name} has no window {window!r}: it has {self.windows[0]} to {self.windows[-1]}"
        raise UnknownNameError(message)

    @property
    def windows(self) -> tuple[str, ...]:
        """The labels of its windows."""
        return tuple(release.window for release in self.releases)

    @property
    def statistics(self) -> tuple[str, ...]:
        """The names of the newest window's noisy statistics."""
        return tuple(self.releases[-1].noisy)

    def __repr__(self) -> str:
        return (
            f"<Series {self.name}: {counted(len(self), 'window')}, {self.windows[0]} to {self.windows[-1]}>"
        )

    def __str__(self) -> str:
        first, last = self.windows[0], self.windows[-1]
        said = [f"{self.name}: {counted(len(self), 'window')}, every {self.every} from {first} to {last}"]
        if self.gaps:
            said.append(f"without {counted(len(self.gaps), 'window')}: {_some(self.gaps)}")
        if self.amended:
            n, labels = len(self.amended), _some([*self.amended])
            said.append(f"{counted(n, 'window')} amended, of which the newest edition counts: {labels}")
        said += _reasons(self.left_out)
        return "\n".join([*said, f"statistics: {', '.join(self.statistics)}"])

    def table(
        self,
        statistic: str,
        where: Mapping[str, object] | None = None,
        *,
        pooled: bool | str | Sequence[str] | Pooling = False,
    ) -> Table:
        """Return the unbiased estimates of all windows, each row with its ``window``.

        Parameters
        ----------
        statistic : str
        where : mapping, optional
            Keep the cells with these group keys.
        pooled : bool, str, sequence of str or Pooling, optional
            As in ``posterior``: every cell together with the others beside itself alone, as in
            ``Release.table``.

        Raises
        ------
        UsageError
            Where the newest window has no such statistic, column or key.
        """
        windows = self.windows_of(statistic, where)
        if pooled is not False:
            together: Any = self.posterior(statistic, pooled=pooled, where=where)
            notes = tuple(_reasons(windows.left_out))
            return Table(rows_beside_alone(together), title=together.titled, notes=notes)
        rows: list[dict[str, Any]] = [
            {WINDOW: release.window, **row}
            for release in windows.releases
            for row in release.table(statistic, where)
        ]
        notes = tuple(_reasons(windows.left_out))
        return Table(rows, title=f"{self.name}: {statistic}, by window", notes=notes)

    def windows_of(self, statistic: str, where: Mapping[str, object] | None = None) -> Windows:
        """Return the cells of a statistic in all windows whose statistic is that of the newest.

        Raises
        ------
        UsageError
            Where the newest has no such statistic, column or key.
        """
        last = self.releases[-1]
        chosen = rows_alone(last.chosen(statistic, where))
        refuse_shared(chosen)
        if WINDOW in chosen.groups:
            message = f"{statistic} has a group column {WINDOW}, as a series calls its own: open its releases"
            raise UsageError(message)
        kept, left_out = [], list(self.left_out)
        for release in self.releases:
            reason = _other_statistic(release, last, statistic)
            if reason:
                left_out.append((edition(release.window, release.amendment), reason))
            else:
                kept.append((release, rows_alone(release.chosen(statistic, where))))
        keys: list[str | int] = [release.window for release, part in kept for _ in range(len(part.values))]
        groups = {
            column: [key for _, part in kept for key in part.groups[column]] for column in chosen.groups
        }
        whole = dataclasses.replace(
            chosen,
            values=np.concatenate([part.values for _, part in kept]),
            groups={WINDOW: keys, **groups},
        )
        # Windows whose noise and public N are the same are worked out together.
        alike: list[tuple[NoisyStatistic, list[int]]] = []
        done = 0
        for _, part in kept:
            cells = [*range(done, done + len(part.values))]
            done += len(cells)
            for first, numbers in alike:
                if first.plan == part.plan and first.public_n == part.public_n:
                    numbers.extend(cells)
                    break
            else:
                alike.append((part, cells))
        parts = []
        for first, numbers in alike:
            at = np.array(numbers, dtype=np.int64)
            of_part = whole.take(at)
            parts.append((dataclasses.replace(of_part, plan=first.plan, public_n=first.public_n), at))
        return Windows(
            statistic=whole,
            parts=tuple(parts),
            releases=tuple(release for release, _ in kept),
            left_out=tuple(sorted(left_out)),
        )

    @lists_terms
    def posterior(
        self,
        statistic: str,
        *,
        pooled: bool | str | Sequence[str] | Pooling = True,
        **terms: Unpack[FurtherTerms],
    ) -> Posterior:
        """Return the posterior of a statistic in all windows, which walks over them. Costs no privacy.

        Cells of the other group columns are series of their own, which share the size of steps. Windows that
        are not there are gaps, over which the walk takes more steps.

        Parameters
        ----------
        statistic : str
            Of the newest window. Windows whose statistic is another one are left out, and the answer says so.
        pooled : bool, str, sequence of str or Pooling
            True: a random walk over windows. Group columns: series share the size of steps within each of
            their keys. A :class:`Pooling`, as ``Pooling(over="window jumps=0")``. A population: windows
            are cells of it, in no order, and the answer says so. False: each cell alone.
        **terms
            The prior of a private N, and the cells: see :class:`PosteriorTerms`.

        Raises
        ------
        UsageError, PriorError
            Where a term does not go with it, or fewer than two windows have the statistic.
        """
        stated = PosteriorTerms(**terms)
        windows = self.windows_of(statistic, stated.where)
        whole, last = windows.statistic, windows.releases[-1]

        def alone() -> Posterior:
            return self._described(_each_alone(windows, stated), windows, last)

        if pooled is False:
            return alone()
        check_terms(whole, stated)
        refuse_within_unit(whole, "a pooled posterior")
        line = line_of(whole)
        pooling = pooling_of_windows(whole, pooled, line)
        if not isinstance(pooling.over, Walk):
            if len(windows.parts) > 1:
                message = f"{statistic}: the noise of its windows differs: walk over them, with over=window"
                raise UsageError(message)
            together = pooled_posterior(whole, stated, pooling, alone)
            n_windows = counted(len(windows.releases), "window")
            said = f"{n_windows} pooled as cells of one population, in no order: pooled=True walks over them"
            return self._described(_adding(together, said, windows), windows, last)
        walked = posterior_over(
            whole,
            pooling,
            line,
            stated.n_prior,
            alone,
            declared=windows_in_order(windows) if pooling.over.over == WINDOW else None,
            parts=windows.parts,
        )
        return self._described(_adding(walked, "", windows), windows, last)

    def _described(self, posterior: Posterior, windows: Windows, last: Release) -> Posterior:
        """Return a posterior that says whose it is, in the words of the newest window."""
        statistic = posterior.statistic
        return dataclasses.replace(
            posterior,
            model=Model.of(windows.statistic, last.entry(statistic)),
            releases=tuple(release.named for release in windows.releases),
            about=last.about,
            titled=f"{last.about.title or self.name}: {last.about.label(statistic)}, by window",
            prices=tuple(release.price_of(statistic) for release in windows.releases),
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PosteriorOfParts(Posterior):
    """The posterior of cells that have different noise, each alone.

    Attributes
    ----------
    parts : tuple of Posterior
        Of cells whose noise is the same.
    order : ndarray of shape (n_groups,), int64
        Where each cell is among those of all parts.
    """

    parts: tuple[Posterior, ...]
    order: Cells

    @property
    def conflict(self) -> Conflict:
        """What the parts say of their cells."""
        judged = [part.conflict for part in self.parts]
        tails = np.concatenate([each.tails for each in judged])[self.order]
        return dataclasses.replace(judged[-1], tails=tails)


def _adding(posterior: PooledPosterior, said: str, windows: Windows) -> PooledPosterior:
    """Say one thing more of what was pooled, and which windows were left out."""
    words = [str(posterior.rows_of), *([said] if said else []), *_reasons(windows.left_out)]
    return dataclasses.replace(posterior, rows_of="; ".join(words))


def pooling_of_windows(
    whole: NoisyStatistic, pooled: bool | str | Sequence[str] | Pooling, line: Line
) -> Pooling:
    """Return what cells of all windows have in common: where no population is named, they walk over windows.

    Raises
    ------
    UsageError
        As ``Pooling.of``.
    """
    pooling = Pooling.of(whole, pooled, line)
    if pooling.over is None and (pooled is True or pooling.within) and not isinstance(pooled, Pooling):
        return dataclasses.replace(pooling, over=Walk(over=WINDOW))
    return pooling


def windows_in_order(windows: Windows) -> list[str | int]:
    """Return the labels of windows, each once."""
    return [release.window for release in windows.releases]


def _each_alone(windows: Windows, terms: PosteriorTerms) -> Posterior:
    """Return the posterior of each cell alone; of each part under its own noise."""
    posteriors = [inferred(part, terms, None) for part, _ in windows.parts]
    first = posteriors[-1]
    if len(posteriors) == 1:
        return first
    order = np.argsort(np.concatenate([cells for _, cells in windows.parts]), kind="stable")
    blocks = CellBlocks(blocks=tuple(posterior.distribution for posterior in posteriors))
    joined = RepeatedCells(distribution=blocks, of_cell=order, turn=np.zeros(len(order), dtype=np.int64))
    models = [each for each in (part.models_clipping for part in posteriors) if each is not None]
    stated = {each.name: getattr(first, each.name) for each in dataclasses.fields(Posterior) if each.init}
    return PosteriorOfParts(
        **{
            **stated,
            "groups": windows.statistic.groups,
            "distribution": joined,
            "models_clipping": np.concatenate(models)[order] if models else None,
            "observed": (),
            "design_effect": None,
        },
        parts=tuple(posteriors),
        order=order,
    )


def _other_series(release: Release, last: Release) -> str:
    """Say why a release is no window of the series of the last one; empty where it is."""
    ours, others = (each.manifest["plan"]["window"] for each in (release, last))
    if release.dataset != last.dataset:
        return f"is of dataset {release.dataset}, not {last.dataset}"
    if ours is None:
        return "has no window"
    differing = [key for key in ("column", "every", "time_zone") if ours.get(key) != others.get(key)]
    if differing:
        stated = ", ".join(f"{key} {ours.get(key)}, not {others.get(key)}" for key in differing)
        return f"has another kind of window ({stated})"
    return ""


def _other_statistic(release: Release, last: Release, statistic: str) -> str:
    """Say why a window's statistic is not that of the last one; empty where it is."""
    if release is last:
        return ""
    if statistic in release.sampled:
        return f"has {statistic} as a sample, without noisy sums"
    if statistic not in release.noisy:
        return f"has no {statistic}"
    differing = differences(last, release, statistic)
    first, second = (each.plan_of(statistic) for each in (last, release))
    if (first.cone is None) != (second.cone is None):
        differing.append("noise (state noise: laplace, or noise: cone, in all)")  # components are others
    if {column: domain.canonical() for column, domain in first.groups.items()} != {
        column: domain.canonical() for column, domain in second.groups.items()
    }:
        differing.append("groups")
    if last.unit != release.unit or last.neighboring != release.neighboring:
        differing.append("unit")
    return f"has another {statistic}: it differs in {', '.join(differing)}" if differing else ""


def _reasons(left_out: Sequence[tuple[str, str]]) -> list[str]:
    """Say what is left out, and why: one sentence for each reason."""
    by_reason: dict[str, list[str]] = {}
    for label, reason in left_out:
        by_reason.setdefault(reason, []).append(label)
    return [f"left out {_some(labels)}: {reason}" for reason, labels in by_reason.items()]


def _some(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
    return f"{', '.join(labels[:_NAMED])}{more}"
