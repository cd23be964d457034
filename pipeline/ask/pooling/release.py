"""A release: noisy statistics and the distribution of their noise. Everything here is post-processing."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.posterior_terms import FurtherTerms, PosteriorTerms, lists_terms
from suffice.pipeline.ask.pooling.shown_release import (
    CALLED_HERE,
    release_html,
    release_text,
    unknown_statistic,
)
from suffice.pipeline.ask.pooling.statistic import Statistic, Statistics
from suffice.pipeline.spec.about import NOTHING, About
from suffice.pipeline.spec.windows_and_amendments import ALL, edition
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.pipeline.terms.declaration.wording import counted, not_a_name
from suffice.pipeline.terms.released.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Unpack

    from suffice.pipeline.ask.borrowing.pooling import Pooling
    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.posterior.likelihood import AnyLikelihood
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.ask.trees.count_tree import CountTree
    from suffice.pipeline.math.distributions.composite import CellProgress
    from suffice.pipeline.math.engines.tree.piece_tasks import Run
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.declaration.documents import ShortId
    from suffice.pipeline.terms.released.noisy_statistic import Cells, NoisyStatistic
    from suffice.pipeline.terms.released.sample import ReleasedSample
    from suffice.pipeline.terms.released.withdrawal import Withdrawal
    from suffice.pipeline.terms.statistics.sensitivity import NeighboringRelation
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


_NAMES = frozenset({"noisy", "sampled"})
"""What tells which statistics there are."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Release(Mapping[str, Statistic]):
    """A published release, as its manifest and its verified files tell it.

    A mapping of the statistics' names to what can be asked: ``release["cancelled"].posterior()``.

    Attributes
    ----------
    name, dataset, window, release_id : str
        Which release: the series, the protected population, the window label, 16 hex digits.
    uri : str
        Where it stands.
    loss : PrivacyLoss
        Of the whole release, in nats.
    neighboring : NeighboringRelation
        The neighbouring relation of the guarantee.
    unit : str
        The privacy unit.
    public_n : int or None
        The public number of records, where there is one.
    noisy : dict of str to NoisyStatistic
        The noisy statistics, in declared order; ``statistics`` has the same, and shows them as a table.
    sampled : dict of str to ReleasedSample
        The statistics of which draws were released and no sums, in declared order.
    manifest : dict
        The manifest as parsed.
    withdrawn : Withdrawal or None
        Why it was withdrawn, where it was.
    about : About
        What it is about, in words for the public; empty where there are none.
    """

    name: str
    dataset: str
    window: str
    release_id: ShortId
    uri: str
    loss: PrivacyLoss
    neighboring: NeighboringRelation
    unit: str
    public_n: int | None
    noisy: Mapping[str, NoisyStatistic] = field(repr=False)
    sampled: Mapping[str, ReleasedSample] = field(default_factory=dict, repr=False)
    manifest: Mapping[str, Any] = field(repr=False)
    withdrawn: Withdrawal | None = None
    about: About = field(default=NOTHING, repr=False)

    def __getitem__(self, name: str) -> Statistic:
        """Return a statistic, or a sample, to ask."""
        if name not in self.noisy and name not in self.sampled:
            raise unknown_statistic(self, name)
        return Statistic(release=self, name=name)

    def __iter__(self) -> Iterator[str]:
        """Give the names of statistics, then of samples."""
        yield from self.noisy
        yield from self.sampled

    def __len__(self) -> int:
        """Return how many statistics and samples there are."""
        return len(self.noisy) + len(self.sampled)

    if not TYPE_CHECKING:  # a type checker knows what there is

        def __getattr__(self, name: str) -> Any:
            if name not in _NAMES and name in self:
                message = f"statistics are no attributes: release[{name!r}]"
                raise AttributeError(message)
            raise not_a_name(type(self), name, CALLED_HERE)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    @property
    def statistics(self) -> Statistics:
        """The noisy statistics by name, in declared order; shown, a table of what can be asked."""
        return Statistics(self)

    @property
    def group_columns(self) -> tuple[str, ...]:
        """The columns whose keys name a cell of any statistic, in declared order; none where there is one."""
        used = dict.fromkeys(column for name in self for column in self.plan_of(name).groups)
        declared: list[str] = self.manifest["declared_order"]["groups"]
        return tuple(dict.fromkeys([*(column for column in declared if column in used), *used]))

    @property
    def trees(self) -> dict[str, list[str]]:
        """The levels of every tree, root first; each is a statistic, ``NAME.LEVEL``."""
        return dict(self.manifest.get("plan", {}).get("hierarchies", {}))

    def __repr__(self) -> str:
        held = counted(len(self), "statistic")
        return f"<Release {self.named}: {held}, {self.loss}>"

    def __str__(self) -> str:
        return release_text(self)

    def _repr_html_(self) -> str:
        return release_html(self)

    @property
    def amendment(self) -> int:
        """The number of the amendment that it is; 0 for its window's first release."""
        amends = self.manifest["amends"]
        return 0 if amends is None else int(amends["number"])

    @property
    def rho(self) -> Fraction:
        """What it costs an account of rho, as its manifest tells: the sum over its statistics, rounded up."""
        blocks = sum((self.plan_of(file["statistic"]).rho for file in self.files), Fraction(0))
        return PrivacyLoss.of_rho(self.loss.rho or blocks).rounded_up.amount

    @property
    def one_unit(self) -> str:
        """What one unit loses by this release, and by its series in a year, as far as the manifest tells."""
        from suffice.pipeline.spec.person import of_release
        from suffice.pipeline.terms.declaration.domains import Every  # only who asks needs it

        window = self.manifest["plan"]["window"]
        every = None if window is None else Every(window["every"])
        return of_release(self.loss, every, self.unit, self.amendment)

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
        where = self.in_names(where)
        if isinstance(self.noisy, StatisticsBySlices):
            return self.noisy.cells(statistic, where)
        return HeldCells(self.noisy[statistic].where(where))

    def statistic(self, name: str) -> NoisyStatistic:
        """Return one statistic.

        Raises
        ------
        UsageError
            Where the release has none of that name.
        """
        self._require(name)
        return self.noisy[name]

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
            return self.sampled[name].where(self.in_names(where))
        self._require(name)
        message = (
            f"{name} was released as noisy statistics, not as a sample: posterior({name!r}) gives any "
            "number of draws"
        )
        raise UsageError(message)

    def _require(self, name: str) -> None:
        if name in self.sampled:
            from suffice.pipeline.terms.released.sample import no_statistics  # numpy is slow to import

            raise no_statistics(self.sampled[name].plan)
        if name not in self.noisy:
            raise unknown_statistic(self, name)

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

    def table(
        self,
        statistic: str,
        where: Mapping[str, object] | None = None,
        *,
        pooled: bool | str | Sequence[str] | Pooling = False,
    ) -> Table:
        """Return a statistic's unbiased estimates, or a sample's draws: a list that shows itself as a table.

        See :meth:`NoisyStatistic.table` and :meth:`ReleasedSample.table`. With `pooled`, as in ``posterior``,
        every cell together with the others beside itself alone: ``mean``, ``sd``, ``lower``, ``upper`` (a
        central 95 % interval), ``own_share``, ``outside``, and ``alone_mean`` to ``alone_upper``.
        """
        if pooled is not False:
            from suffice.pipeline.ask.borrowing.side_by_side import rows_beside_alone  # scipy is slow

            together: Any = self.posterior(statistic, pooled=pooled, where=where)
            return self.in_words(statistic, rows_beside_alone(together))
        if statistic in self.sampled:
            return self.in_words(statistic, self.samples(statistic, where).table())
        return self.in_words(statistic, self.selected(statistic, where).table())

    def titled(self, statistic: str) -> str:
        """Return what a picture or a table of a statistic is called."""
        title = self.about.title or self.label
        if self.about.title and self.window != ALL:
            title = f"{title}, {edition(self.window, self.amendment)}"
        return f"{title}: {self.about.label(statistic)}"

    def in_names(self, where: Mapping[str, object] | None) -> Mapping[str, object] | None:
        """Return wanted keys by names, where they are stated by the labels that tables show.

        Raises
        ------
        UsageError
            Where several groups or keys have the label.
        """
        return self.about.in_names(where, self.group_columns) if isinstance(where, Mapping) else where

    def in_words(self, statistic: str, rows: Iterable[dict[str, Any]]) -> Table:
        """Return rows of a statistic as a table that shows labels where there are any."""
        return Table(
            rows,
            title=self.titled(statistic),
            in_words=partial(self.about.rows, statistic, columns=self.plan_of(statistic).groups),
            digits=partial(self.about.digits, statistic),
        )

    def tree(
        self,
        name: str,
        where: Mapping[str, object] | None = None,
        *,
        population: str = "contaminated",
        sizes: Sequence[float] | None = None,
        run: Run | None = None,
    ) -> CountTree:
        """Return the counts at all nodes of a tree, inferred together: whole numbers that add up.

        Costs no privacy.

        Parameters
        ----------
        name : str
            As the spec called the statistic that has a hierarchy.
        where : mapping, optional
            One key of each group beside the leaves': there is a tree for each.
        population : {"contaminated", "zero-inflated", "negative-binomial", "reciprocal"}
            What the leaves' counts are drawn from; see :meth:`CountTree.of`.
        sizes : sequence of float, optional
            Known sizes of the leaves, in the order of their keys.
        run : callable, optional
            Runs pieces of the tree as tasks; :func:`suffice.open_tree` hands it over, of a cluster.

        Raises
        ------
        UsageError
            Where the release has no such tree, or groups beside it are left open.
        """
        from suffice.pipeline.ask.pooling.released_tree import released_tree
        from suffice.pipeline.ask.trees.count_tree import CountTree  # numpy is slow to import

        keys, levels = released_tree(self, name, where)
        return CountTree.of(keys, levels, population=population, sizes=sizes, run=run)

    @lists_terms
    def posterior(
        self,
        statistic: str,
        prior: AnyPrior = None,
        *,
        progress: CellProgress | None = None,
        pooled: bool | str | Sequence[str] | Pooling = False,
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
            frozen distribution of ``scipy.stats``, NumPyro or PreliZ, a ``suffice.Density``, points, and
            sums and truncations of all these, as ``"0.5*Point(0.3) + 0.5*Beta(1, 1)"``; for a mean and a
            variance two priors, ``suffice.Independent``, or a ``suffice.JointDensity``; for counts of one
            table a ``suffice.LogPrior``. The family's default otherwise.
        progress : callable, optional
            Gets the number of cells that are done, and of all, after each block of them: a posterior of many
            cells is worked out a block at a time.
        pooled : bool, str, sequence of str or Pooling, optional
            Let cells borrow strength from one population, in the place of a prior: a ``PooledPosterior``.
            True, a population (``"contaminated"``, which True is, ``"dictionary"``, ``"logit-normal"``,
            ``"beta"``, ``"lognormal"``, ``"gamma"``, of means ``"normal"``, of categories ``"dirichlet"``,
            which True is there), group columns within whose keys cells are pooled, or a
            :class:`Pooling`, which also takes covariates, neighbours and an order in time.
        **terms
            The prior of a private N, the cells, the method, the ways of clipping and of units, the prior of
            predictors: see :class:`PosteriorTerms`.

        Raises
        ------
        UsageError, PriorError
            Where the method or the prior does not fit.
        """
        for column in self.group_columns:
            if column in terms:
                message = f"keys are stated together, as where={{{column!r}: ...}}"
                raise UsageError(message)
        stated = PosteriorTerms(prior=prior, **terms)
        chosen = self.chosen(statistic, stated.where)
        if pooled is False:
            return self.posterior_of(chosen, stated, progress)
        from suffice.pipeline.ask.borrowing.pooled_posterior import pooled_posterior  # few ask
        from suffice.pipeline.ask.inference.model import Model
        from suffice.pipeline.terms.released.noisy_statistic import rows_alone  # numpy is slow to import

        together = pooled_posterior(chosen, stated, pooled, lambda: self.posterior_of(chosen, stated))
        model = Model.of(rows_alone(chosen), self.entry(statistic))
        return self.described(dataclasses.replace(together, model=model))

    def likelihood(
        self,
        statistic: str,
        *,
        n_prior: NPrior | int | str | None = None,
        where: Mapping[str, object] | None = None,
    ) -> AnyLikelihood:
        """Return the likelihood of one parameter, a table's probabilities, or a mean and a deviation.

        Latent sums and a latent N are integrated out.

        It is worked out once: the same question of the same release is answered by what was kept.

        Parameters
        ----------
        statistic : str
            Its name in the release.
        n_prior : NPrior, int or str, optional
            Of a private number of records, as in :meth:`posterior`.
        where : mapping, optional
            Keep the cells with these group keys.

        Raises
        ------
        UsageError
            Where the family has several parameters, or a likelihood is not resolved.
        """
        from suffice.pipeline.ask.inference.model import Model
        from suffice.pipeline.ask.posterior.likelihood import likelihood_of  # scipy is slow to import
        from suffice.pipeline.terms.declaration import canonical_json
        from suffice.pipeline.terms.released.noisy_statistic import rows_alone  # numpy is slow to import

        chosen = self.chosen(statistic, where)
        model = Model.of(rows_alone(chosen), self.entry(statistic))
        return likelihood_of(
            chosen,
            n_prior,
            lambda posterior: self.described(dataclasses.replace(posterior, model=model)),
            hashlib.sha256(canonical_json.encode(dict(self.manifest))).hexdigest(),
        )

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
        from suffice.pipeline.ask.inference.model import Model
        from suffice.pipeline.ask.posterior.choice_of_engine import inferred  # scipy is slow to import
        from suffice.pipeline.terms.released.noisy_statistic import rows_alone  # numpy is slow to import

        posterior = inferred(chosen, terms, progress)
        model = Model.of(rows_alone(chosen), self.entry(chosen.plan.name))
        return self.described(dataclasses.replace(posterior, model=model))

    def described(self, posterior: Posterior) -> Posterior:
        """Return a posterior of this release that says so, in the release's words."""
        return dataclasses.replace(
            posterior,
            releases=(self.named,),
            about=self.about,
            titled=self.titled(posterior.statistic),
            prices=(self.price_of(posterior.statistic),),
        )

    def price_of(self, statistic: str) -> str:
        """Return what a statistic cost of all that the release did, as ``epsilon 0.25 of 1``."""
        return f"{self.plan_of(statistic).loss} of {self.loss.text}"
