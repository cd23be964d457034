r"""Posteriors of cells that borrow strength: their parameters come from one population.

Each cell keeps its exact likelihood, noise and latent number of records included. A population says how
parameters differ between cells; its location, spread and slope on log size have public hyperpriors and are
integrated over (``math.engines.pooled``). The posterior of a cell then rests on all cells of its pool.

Where the cells do not tell a spread (``pool``), what they have in common rests on its hyperprior, and each
cell alone is shown first.

References
----------
Fay, Herriot. Estimates of income for small places. J. Amer. Statist. Assoc. 74, 1979.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.borrowing import doubtful_cells, pooled_roll_up
from suffice.pipeline.ask.borrowing.by_family import of_covariates, way_of
from suffice.pipeline.ask.borrowing.covariates import coefficients_table, design_of
from suffice.pipeline.ask.borrowing.pool import Pool, in_sentence
from suffice.pipeline.ask.borrowing.pooled_conflict import NAMED, OUTSIDE, PooledConflict
from suffice.pipeline.ask.borrowing.pooling import Pooling
from suffice.pipeline.ask.borrowing.population_check import PopulationCheck
from suffice.pipeline.ask.borrowing.walk import Walk
from suffice.pipeline.ask.inference import chosen_priors
from suffice.pipeline.ask.inference.pooled_sources import line_of
from suffice.pipeline.ask.inference.posterior_terms import IGNORED, MODELLED, NOISE_AWARE
from suffice.pipeline.ask.inference.within_unit import refuse_within_unit
from suffice.pipeline.ask.judging.conflict import conflict_of_n
from suffice.pipeline.ask.posterior.cells import refuse_shared
from suffice.pipeline.ask.posterior.posterior import Posterior
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.interval_kinds import CENTRAL
from suffice.pipeline.math.engines.pooled.pools import PooledCells
from suffice.pipeline.math.parameters.parameter_posterior import DRAWS, MASS
from suffice.pipeline.terms.declaration.wording import counted
from suffice.pipeline.terms.released.noisy_statistic import rows_alone
from suffice.pipeline.terms.released.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from suffice.pipeline.ask.borrowing.pooled_roll_up import PooledRollUp
    from suffice.pipeline.ask.inference.posterior_terms import PosteriorTerms
    from suffice.pipeline.ask.judging.conflict import Conflict
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Cells, Floats


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PooledPosterior(Posterior):
    """The posterior of cells whose parameters come from one population, and what it rests on.

    Attributes
    ----------
    population : str
        ``contaminated``, ``dictionary``, ``logit-normal``, ``beta``, ``lognormal``, ``gamma``, ``normal`` or
        ``dirichlet``.
    pools : tuple of Pool
        What is known of each population.
    """

    prior: Any
    population: str
    pools: tuple[Pool, ...]
    _alone: Callable[[], Posterior] = field(repr=False, compare=False)

    @property
    def default_interval(self) -> str:
        """Central: outliers' tails on the line would draw the shortest interval of a small rate to 0."""
        return CENTRAL

    @property
    def alone(self) -> Posterior:
        """The posterior of each cell alone, under the family's default prior."""
        posterior: Posterior = self._once("alone", lambda _: self._alone())
        return posterior

    @property
    def own_share(self) -> Floats:
        """How much of each answer is the cell's own, in 0..1, (n_groups,).

        One less the ratio of the posterior variance, on the line, to that of the population: s^2 / (s^2 + v)
        with normal likelihoods of variance v; averaged over the components of a population. Of means and
        variances it is that of the mean; of categories variances of probabilities, all together.
        """
        return self._own_shares[:, 0]

    @property
    def _own_shares(self) -> Floats:
        """Own shares of every parameter, (n_groups, n_parameters)."""
        own_share: Floats = self.distribution.own_share  # type: ignore[attr-defined]
        return own_share.reshape(len(own_share), -1)

    @property
    def outside(self) -> Floats:
        """How probable it is that each cell is an outlier, (n_groups,); 0 where populations have none."""
        outside: Floats = self.distribution.outside  # type: ignore[attr-defined]
        return outside

    @property
    def coefficients(self) -> Table:
        """One row a covariate of each pool: of the logit or the logarithm, for one unit; and in words.

        Rows have the keys of the pool, ``covariate``, ``mean``, ``sd``, ``lower``, ``upper`` (a central 95 %
        interval), ``step`` (the standard deviation of the covariate over cells, in its unit; 1 of an
        indicator) and ``in_words``, what odds or rates multiply by for a step. Empty without covariates.
        """
        return coefficients_table(self.pools)

    @property
    def is_identified(self) -> bool:
        """Whether the cells tell the spread of every population."""
        return all(pool.identified for pool in self.pools)

    def __str__(self) -> str:
        # super() has no class to start from in slots of a dataclass.
        pooled = Posterior.__str__(self)
        if self.is_identified:
            return pooled
        return f"Each cell alone:\n{self.alone}\n\nPooled:\n{pooled}"

    def with_own(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return rows of the first cells, all entries of each, with how much of each answer is its own."""
        own_shares = np.round(self.own_shares_of(rows), 3).tolist()
        return [{**row, "own_share": share} for row, share in zip(rows, own_shares, strict=True)]

    @property
    def entries(self) -> int:
        """How many rows a cell has: its parameters, each with all its categories."""
        return sum(len(self.labels(name)[1]) or 1 for name in self.parameters)

    def own_shares_of(self, rows: Sequence[Mapping[str, Any]]) -> Floats:
        """Return the own share of the parameter of each row, of the first cells, all entries of each."""
        places = {name: place for place, name in enumerate(self.parameters)}
        last = self._own_shares.shape[1] - 1
        columns = [min(places[row["parameter"]], last) for row in rows]
        shares: Floats = self._own_shares[np.arange(len(rows)) // self.entries, columns]
        return shares

    def summary(
        self,
        mass: float = MASS,
        *,
        interval: str | None = None,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Table:
        """Return one row a cell: its keys, mean, sd, interval, ``own_share``, and ``conflict`` of an outlier.

        Parameters
        ----------
        mass, interval, draws, rng
            As in ``credible_interval``.
        """
        from suffice.pipeline.ask.posterior.shown import marked

        rows = self.with_own(summarise(self, mass, draws, rng, interval=interval))
        return marked(self, rows, self.n_groups)

    @property
    def conflict(self) -> Conflict:
        """Which cells are outliers of their population, and whether spreads are identified."""

        def judged(posterior: Posterior) -> Conflict:
            names = self.entry_names(self.parameters[0])
            order = np.argsort(-self.outside, kind="stable")[
                : min(NAMED, int(np.sum(self.outside > OUTSIDE)))
            ]
            return PooledConflict(
                quantities=("population",),
                tails=np.ones((posterior.n_groups, 1)),
                of_n=np.zeros(1, dtype=bool),
                prior=str(posterior.prior),
                n_prior=str(posterior.n_prior),
                outside=self.outside,
                sizes=conflict_of_n(posterior),
                called_cells=tuple(names[cell] for cell in order.tolist()),
                unidentified=_once(
                    f"the integral over the hyperparameters{pool.called} is not resolved: "
                    "intervals may be off"
                    for pool in self.pools
                    if not pool.settled
                )
                + _once(
                    f"the spread of the population{pool.called} is not identified by its "
                    f"{counted(pool.n_cells, 'cell')}{pool.at_most}: its hyperprior decides how much they "
                    "borrow; each cell alone is shown first"
                    for pool in self.pools
                    if not pool.identified
                )
                + _once(pool.of_collinear_size for pool in self.pools if pool.of_collinear_size)
                + _once(pool.of_far_sizes for pool in self.pools if pool.of_far_sizes),
            )

        conflict: Conflict = self._once("conflict", judged)
        return conflict

    def roll_up(self, *columns: str) -> PooledRollUp:
        """Return averages over some group columns, by the number of records of each cell, and that number.

        Cells have much in common, which their joint draws keep.

        Parameters
        ----------
        *columns : str
            The group columns that disappear.

        Raises
        ------
        UsageError
            Where no column is named, or one is no group; where numbers of records are neither public nor
            told by the cells.
        """
        return pooled_roll_up.roll_up(self, columns)

    def check_population(self) -> PopulationCheck:
        """Hold every cell out, and compare what it released with the population of all others.

        Costs no privacy. Of releases whose population is right fewer than 1 in 100 has a line.

        Returns
        -------
        PopulationCheck
            Tails and log scores of cells, tails of keys, and whether all lie as the population says.

        Raises
        ------
        UsageError
            Where cells are pooled by other means than populations.
        """
        check: PopulationCheck = self._once(
            "check_population", lambda _: PopulationCheck.of(cast("Any", self.distribution), self.groups)
        )
        return check

    @property
    def is_checked(self) -> bool:
        """Whether cells are pooled by populations, so that ``check_population`` can be asked."""
        known = self.distribution
        return isinstance(known, PooledCells) and bool(known.by_one_population)

    def doubtful(self, mass: float = MASS) -> Table:
        """Return cells of which the population is to be doubted, each alone beside the pooled answer.

        Small cells, in which an outlier would not be told; outliers, or cells to which a jump leads; and what
        ``check_population`` finds.

        Parameters
        ----------
        mass : float
            Of intervals, in 0..1.
        """
        why = self._reasons()
        return Table(doubtful_cells.beside_alone(self, self.alone, why, mass) if any(why) else [])

    def _reasons(self) -> list[str]:
        is_outlier = self.outside > OUTSIDE
        is_misfit = self.check_population().is_misfit if self.is_checked else np.zeros_like(is_outlier)
        (statistic,) = self.observed
        told = doubtful_cells.size_times_epsilon(statistic, self.n_prior)
        return doubtful_cells.reasons(told, is_outlier, is_misfit)

    def misfits(self) -> list[str]:
        """Return sentences of ``check_population``, and one of small cells; none of other ways to pool."""
        if not self.is_checked:
            return []
        said = self.check_population().lines(self.entry_names(self.parameters[0]))
        small = doubtful_cells.small_cells_text(self._reasons())
        return [*said, small] if small else said

    @property
    def decided_by_default(self) -> dict[str, Any]:
        """Nothing: no default prior is of one cell."""
        return {}

    @property
    def moved_by_default(self) -> dict[str, Any]:
        """Nothing, as above."""
        return {}

    @property
    def log_evidence(self) -> NoReturn:
        """Refused: cells of a pool have no evidence each.

        Raises
        ------
        UsageError
        """
        message = f"{self.statistic}: pooled cells have no evidence each: ask each cell alone, without pooled"
        raise UsageError(message)

    def robustness(self, *_: object, **__: object) -> NoReturn:
        """Refuse: the prior of a cell is its population.

        Raises
        ------
        UsageError
        """
        message = (
            f"{self.statistic}: the prior of pooled cells is their population: compare populations by name"
        )
        raise UsageError(message)

    def prior_density(self, parameter: str, points: ArrayLike) -> None:  # noqa: ARG002
        """Return None: pictures of pooled cells show no prior."""
        return


def _once(sentences: Iterable[str]) -> tuple[str, ...]:
    """Return each sentence once: populations of one pool may share it."""
    return tuple(dict.fromkeys(sentences))


def pooled_posterior(
    statistic: NoisyStatistic,
    terms: PosteriorTerms,
    pooled: bool | str | Sequence[str] | Pooling,
    alone: Callable[[], Posterior],
) -> PooledPosterior:
    """Return the posterior of cells whose parameters come from one population, or one for each key.

    Parameters
    ----------
    statistic : NoisyStatistic
        The cells that are pooled.
    terms : PosteriorTerms
        Without a prior.
    pooled : True, str, sequence of str or Pooling
        A population, and group columns.
    alone : callable
        Returns the posterior of the same cells under the default prior.

    Raises
    ------
    UsageError, PriorError
        Where the family or a term does not go with it, or there are fewer than two cells.
    """
    check_terms(statistic, terms)
    refuse_within_unit(statistic, "a pooled posterior")
    statistic = rows_alone(statistic)
    refuse_shared(statistic)
    line = line_of(statistic)
    pooling = Pooling.of(statistic, pooled, line)
    name, within = pooling.population, pooling.within
    design = design_of(statistic, pooling)
    if isinstance(pooling.over, Walk):
        from suffice.pipeline.ask.borrowing.panels import posterior_over  # few ask

        return posterior_over(statistic, pooling, line, terms.n_prior, alone)
    n_prior = chosen_priors.n_prior_for(statistic, terms.n_prior)
    if pooling.adjacency is not None:
        from suffice.pipeline.ask.borrowing.adjacency import map_posterior  # it is a PooledPosterior

        return map_posterior(statistic, pooling, line, n_prior, alone)
    family = FAMILIES[statistic.plan.family]
    n_cells = len(statistic.values)
    of_keys: dict[tuple[str | int, ...], list[int]] = {}
    for cell in range(n_cells):
        of_keys.setdefault(tuple(statistic.groups[column][cell] for column in within), []).append(cell)
    small = [keys for keys, cells in of_keys.items() if len(cells) < 2]
    if small:
        where = in_sentence(dict(zip(within, small[0], strict=True)))
        message = f"{statistic.plan.name}: a pool{where} has one cell, and borrows from none: pool more cells"
        raise UsageError(message)
    places: list[Cells] = [np.array(cells, dtype=np.int64) for cells in of_keys.values()]
    named = [dict(zip(within, keys, strict=True)) for keys in of_keys]
    each = [statistic if len(places) == 1 else statistic.take(cells) for cells in places]
    if design is None:
        prior, parts, known = way_of(family)(each, named, n_prior, name, line)
    else:
        prior, parts, known = of_covariates(design, places, each, named, n_prior, name, line)
    return PooledPosterior(
        statistic=statistic.plan.name,
        family=statistic.plan.family,
        method=NOISE_AWARE,
        prior=prior,
        n_prior=n_prior,
        groups=statistic.groups,
        label_columns=family.labels(statistic.plan.parameters),
        distribution=PooledCells(pools=tuple(parts), cells=tuple(places)),
        constants=statistic.plan.parameters,
        models_clipping=np.zeros(n_cells, dtype=bool) if family.models_clipping else None,
        rows_of=_in_words(known, within, n_cells, family.name, has_slope=prior.has_slope),
        observed=(statistic,),
        population=name,
        pools=tuple(known),
        _alone=alone,
    )


def _in_words(
    pools: Sequence[Pool], within: Sequence[str], n_cells: int, family: str, *, has_slope: bool
) -> str:
    """Say what was pooled with what, and how far."""
    said = f"{counted(n_cells, 'cell')} pooled"
    if within:
        keys = {tuple(pool.keys.items()) for pool in pools}
        said += f" within the {counted(len(keys), 'key')} of {', '.join(within)}"
    if pools[0].category:
        said += "; spread: of the logits of each category's probability"
    elif pools[0].parameter:
        said += _of_moments([] if within else pools, family)
    elif len(pools) == 1:
        (spread, sd), (slope, slope_sd) = pools[0].spread, pools[0].slope
        left = " that covariates leave" if pools[0].coefficients else ""
        said += f"; spread between cells{left} {spread:.2g} (sd {sd:.2g}) on the log scale of odds or rates"
        if has_slope:
            said += f", slope on log(1 + size) {slope:.2g} (sd {slope_sd:.2g})"
        if pools[0].spread_slope is not None:
            slope, slope_sd = pools[0].spread_slope
            said += f", of the log spread {slope:.2g} (sd {slope_sd:.2g})"
    if not has_slope:
        said += "; without a slope on the size of cells: where answers move with it, small cells are off"
    gaps = [pool.chain_gap for pool in pools if pool.chain_gap is not None]
    if gaps:
        said += f"; by draws of the population: halves of them differ by at most {max(gaps):.2g} sd of a cell"
    for coefficient in pools[0].coefficients[:NAMED] if len(pools) == 1 else ():
        said += f"; {coefficient}"
    return f"{said}; own_share: how much of an answer is the cell's own"


def _of_moments(pools: Sequence[Pool], family: str) -> str:
    """Say how far means and log standard deviations are apart, and what intervals rest on."""
    spreads = [f"of {pool.parameter} {pool.spread[0]:.2g} (sd {pool.spread[1]:.2g})" for pool in pools]
    said = f"; spread between cells {', '.join(spreads)}" if spreads else ""
    # Intervals of exact sums fail as well: neither noise nor pooling is to blame.
    return (
        f"{said}; rows are taken to be {family}: where tails are heavier, intervals of variances hold too "
        "seldom, and of few rows those of means do"
    )


def check_terms(statistic: NoisyStatistic, terms: PosteriorTerms) -> None:
    """Refuse terms that pooled cells do not have."""
    name = statistic.plan.name
    if terms.prior is not None:
        message = (
            f"{name}: the prior of pooled cells is their population: leave prior out, or name a population"
        )
        raise PriorError(message)
    if terms.method != NOISE_AWARE:
        message = f"{name}: pooled cells have a {NOISE_AWARE} posterior alone: leave method out"
        raise UsageError(message)
    if terms.clipping == MODELLED:
        message = f"{name}: pooled cells are of records as the bounds leave them: leave clipping out"
        raise UsageError(message)
    if terms.predictor_prior is not None or terms.within_unit == IGNORED:
        message = f"{name}: pooled cells take no within_unit and no predictor_prior: leave them out"
        raise UsageError(message)
