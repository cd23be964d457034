"""A release: noisy statistics and the distribution of their noise. Everything here is post-processing."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.posterior_terms import FurtherTerms, PosteriorTerms, lists_terms
from suffice.pipeline.spec.windows_and_amendments import edition

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction
    from typing import Unpack

    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.distributions.composite import CellProgress
    from suffice.pipeline.terms.declaration.documents import ShortId
    from suffice.pipeline.terms.released.noisy_statistic import Cells, NoisyStatistic
    from suffice.pipeline.terms.released.sample import ReleasedSample
    from suffice.pipeline.terms.released.withdrawal import Withdrawal
    from suffice.pipeline.terms.statistics.sensitivity import NeighboringRelation
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A published release, as its manifest and its verified files tell it.

    Attributes
    ----------
    name, dataset, window, release_id : str
        Which release: the series, the protected population, the window label, 16 hex digits.
    uri : str
        Where it stands.
    epsilon : Fraction
        Of the whole release, in nats.
    neighboring : NeighboringRelation
        The neighbouring relation of the guarantee.
    unit : str
        The privacy unit.
    public_n : int or None
        The public number of records, where there is one.
    statistics : dict of str to NoisyStatistic
        In declared order.
    sampled : dict of str to ReleasedSample
        The statistics of which draws were released and no sums, in declared order.
    manifest : dict
        The manifest as parsed.
    withdrawn : Withdrawal or None
        Why it was withdrawn, where it was.
    """

    name: str
    dataset: str
    window: str
    release_id: ShortId
    uri: str
    epsilon: Fraction
    neighboring: NeighboringRelation
    unit: str
    public_n: int | None
    statistics: Mapping[str, NoisyStatistic] = field(repr=False)
    sampled: Mapping[str, ReleasedSample] = field(default_factory=dict, repr=False)
    manifest: Mapping[str, Any] = field(repr=False)
    withdrawn: Withdrawal | None = None

    @property
    def amendment(self) -> int:
        """The number of the amendment that it is; 0 for its window's first release."""
        amends = self.manifest["amends"]
        return 0 if amends is None else int(amends["number"])

    @property
    def one_unit(self) -> str:
        """What one unit loses by this release, and by its series in a year, as far as the manifest tells."""
        from suffice.pipeline.spec.person import of_release
        from suffice.pipeline.terms.declaration.domains import Every  # only who asks needs it

        window = self.manifest["plan"]["window"]
        every = None if window is None else Every(window["every"])
        return of_release(self.epsilon, every, self.unit, self.amendment)

    @property
    def label(self) -> str:
        """Name and edition, as ``flights@2013-01``, or ``flights@2013-01.2`` for the second amendment."""
        return f"{self.name}@{edition(self.window, self.amendment)}"

    @property
    def named(self) -> str:
        """Label and id, as files of posteriors name it."""
        return f"{self.label} {self.release_id}"

    @property
    def files(self) -> list[dict[str, Any]]:
        """The data files: statistic, path beside the manifest, sha256, rows."""
        return [
            {field: file[field] for field in ("statistic", "path", "sha256", "rows")}
            for file in self.manifest["files"]
        ]

    def cells(self, statistic: str, where: Mapping[str, object] | None = None) -> Cells:
        """Return cells of a statistic to take some at a time; of very many, no more are in memory.

        Parameters
        ----------
        statistic : str
            Its name in the release.
        where : mapping, optional
            Keep the cells with these group keys.

        Raises
        ------
        UsageError
            Where the release has no such statistic, column or key.
        """
        from suffice.pipeline.terms.released.noisy_statistic import (  # numpy is slow to import
            HeldCells,
            StatisticsBySlices,
        )

        self._require(statistic)
        if isinstance(self.statistics, StatisticsBySlices):
            return self.statistics.cells(statistic, where)
        return HeldCells(self.statistics[statistic].where(where))

    def statistic(self, name: str) -> NoisyStatistic:
        """Return one statistic.

        Raises
        ------
        UsageError
            Where the release has none of that name.
        """
        self._require(name)
        return self.statistics[name]

    def plan_of(self, name: str) -> StatisticPlan:
        """Return the plan of a statistic, whichever mechanism made it.

        Raises
        ------
        UsageError
            Where the release has none of that name.
        """
        return self.sampled[name].plan if name in self.sampled else self.cells(name).plan

    def samples(self, name: str, where: Mapping[str, object] | None = None) -> ReleasedSample:
        """Return the draws of a statistic that was released as a sample.

        Parameters
        ----------
        where : mapping, optional
            Keep the cells with these group keys.

        Raises
        ------
        UsageError
            Where the release has none of that name, or noisy statistics in its place, or no such cell.
        """
        if name in self.sampled:
            return self.sampled[name].where(where)
        self._require(name)
        message = (
            f"{name} was released as noisy statistics, not as a sample: posterior({name!r}) gives any "
            "number of draws"
        )
        raise UsageError(message)

    def _require(self, name: str) -> None:
        if name in self.sampled:
            from suffice.pipeline.terms.released.sample import no_statistics  # numpy is slow to import

            raise no_statistics(name)
        if name not in self.statistics:
            known = ", ".join([*self.statistics, *self.sampled])
            message = f"the release has no statistic {name!r}: it has {known}"
            raise UsageError(message)

    def entry(self, name: str) -> dict[str, Any]:
        """Return one statistic's entry in the spec, with its columns and variables in declared order.

        The canonical plan sorts them, while components, parameters and bounds follow the order declared.

        Raises
        ------
        UsageError
            Where the release has none of that name.
        """
        from suffice.pipeline.spec.terms import DeclaredOrder  # only where rows are drawn

        if name not in self.sampled:
            self._require(name)
        order = DeclaredOrder.read(self.manifest["declared_order"])
        entry: dict[str, Any] = order.restore(self.manifest["plan"])["statistics"][name]
        return entry

    def table(self, statistic: str, where: Mapping[str, object] | None = None) -> list[dict[str, Any]]:
        """Return a statistic's unbiased estimates, or a sample's draws.

        See :meth:`NoisyStatistic.table` and :meth:`ReleasedSample.table`.
        """
        if statistic in self.sampled:
            return self.samples(statistic, where).table()
        return self.selected(statistic, where).table()

    @lists_terms
    def posterior(
        self,
        statistic: str,
        prior: AnyPrior = None,
        *,
        progress: CellProgress | None = None,
        **terms: Unpack[FurtherTerms],
    ) -> Posterior:
        """Return the posterior of a statistic's parameters, vectorised over cells. Costs no privacy.

        Parameters
        ----------
        statistic : str
            Its name in the release.
        prior : prior object or str, optional
            The same prior for every cell, as ``suffice.Beta(1, 9)`` or ``"Beta(1, 9)"``, or a mixture of
            such, as ``"Mixture(0.3, Beta(1, 9), 0.7, Beta(9, 1))"``; for families with one parameter also a
            frozen distribution of ``scipy.stats`` or a ``suffice.Density``; for a mean and a variance two
            priors, ``suffice.Independent``, or a ``suffice.JointDensity``. The family's default otherwise.
        progress : callable, optional
            Gets the number of cells that are done, and of all, after each block of them: a posterior of many
            cells is worked out a block at a time.
        **terms
            The prior of a private N, the cells, the method, the ways of clipping and of units, the prior of
            predictors: see :class:`PosteriorTerms`.

        Raises
        ------
        UsageError, PriorError
            Where the method or the prior does not fit.
        """
        stated = PosteriorTerms(prior=prior, **terms)
        return self.posterior_of(self.chosen(statistic, stated.where), stated, progress)

    def chosen(
        self, statistic: str, where: Mapping[str, object] | None = None, *, first: int | None = None
    ) -> NoisyStatistic:
        """Return the cells that a posterior is of; of very many, no more than these are read as numbers.

        Parameters
        ----------
        statistic : str
            Its name in the release.
        where : mapping, optional
            Keep the cells with these group keys.
        first : int, optional
            Of these so many, in the order of the release; all otherwise. Parameters that are of the whole
            release are of all its cells in any case.

        Raises
        ------
        UsageError
            Where the release has no such statistic, column or key, or parameters are of no single cell.
        """
        from suffice.pipeline.ask.posterior.cells import cells_of  # scipy is slow to import
        from suffice.pipeline.families import FAMILIES

        if FAMILIES[self.cells(statistic).plan.family].of_release:
            return cells_of(self.statistic(statistic), where)
        return self.selected(statistic, where, first=first)

    def selected(
        self, statistic: str, where: Mapping[str, object] | None = None, *, first: int | None = None
    ) -> NoisyStatistic:
        """Return single cells of a statistic, as :meth:`chosen` does those that have parameters.

        Raises
        ------
        UsageError
            Where the release has no such statistic, column or key.
        """
        if not where and first is None:
            return self.statistic(statistic)
        cells = self.cells(statistic, where)
        return cells.slice(0, len(cells) if first is None else min(first, len(cells)))

    def posterior_of(
        self, chosen: NoisyStatistic, terms: PosteriorTerms, progress: CellProgress | None = None
    ) -> Posterior:
        """Return the posterior of cells that are chosen already; else as :meth:`posterior`."""
        from suffice.pipeline.ask.inference.within_unit import Model
        from suffice.pipeline.ask.posterior.choice_of_engine import inferred  # scipy is slow to import
        from suffice.pipeline.terms.released.noisy_statistic import rows_alone  # numpy is slow to import

        posterior = inferred(chosen, terms, progress)
        model = Model.of(rows_alone(chosen), self.entry(chosen.plan.name))
        return dataclasses.replace(posterior, model=model, releases=(self.named,))
