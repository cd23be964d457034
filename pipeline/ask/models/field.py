r"""A pairwise Markov random field over the variables of released tables of one and two variables.

.. math::
    p(x \mid \theta) \propto \exp\Bigl(\sum_i \theta_i(x_i) + \sum_{ij} \theta_{ij}(x_i, x_j)\Bigr)

with an edge ij for each table of two variables. Of all laws with the same tables it is the one of largest
entropy. Effects have Normal priors, on contrasts that sum to 0; the engine ``field`` states the likelihood
of the noisy tables, and the approximation in it. It is refused where entries may well be empty.

Every question is a sum over combinations of categories in each posterior draw. ``field_edges`` says what an
edge's strength is, and how well tables agree; those that contradict each other are refused.
"""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import ConflictWarning, UsageError
from suffice.pipeline.ask.models import field_edges, field_tables
from suffice.pipeline.ask.models.network import (
    Conditional,
    intervals_text,
    names_of,
    require_variables,
    stated_categories,
)
from suffice.pipeline.ask.models.rows_and_draws import DrawnQuantity
from suffice.pipeline.ask.models.synthetic_rows import IMPUTATIONS, SyntheticRows, synthetic_rows
from suffice.pipeline.ask.posterior.notes import LARGEST_R_HAT, rough_text
from suffice.pipeline.math.engines import field as engine
from suffice.pipeline.math.engines.elimination import Factor, marginal
from suffice.pipeline.math.engines.field_tree import NoisyTree, tree_of
from suffice.pipeline.math.engines.multivariate.hmc import effective_draws, split_r_hat
from suffice.pipeline.math.parameters import arguments, parameter_posterior
from suffice.pipeline.terms.released.table import Table
from suffice.pipeline.terms.statistics.count_table import label_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.count_table import Variable
    from suffice.typing import Floats

MOST_COMBINATIONS = 1024
"""Of categories of all variables, up to which each is a term of sums; of more, sums are along cliques."""
MOST_EFFECTS, MOST_EFFECTS_OF_CIRCLES = 400, 100
"""Chains move among twice as many numbers; with circles of pairs each step takes a matrix of all."""
MOST_IN_CLIQUE = 128
"""Combinations of the variables of a clique, where pairs form circles."""
SINGLE_SD, PAIR_SD = 2.5, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Posterior draws of a field; made by :func:`field_model`.

    Attributes
    ----------
    release : str
        The label of the release.
    statistics : tuple of str
        Whose tables it was fitted to.
    variables : dict of str to Variable
    pairs : tuple of (str, str)
        The edges.
    groups : dict of str to list
        The keys of the one cell.
    effects : ndarray of shape (n_draws, R), float64
        Coefficients of orthonormal contrasts, without the first.
    rows : ndarray of shape (n_draws,), float64
        The number of rows behind the tables.
    single_sd, pair_sd : float
        Prior standard deviations of the coefficients of variables and of pairs.
    largest_r_hat, fewest_effective_draws : float
        Over all coefficients and latent tables.
    agreement : dict of str to float
        Of each statistic, the posterior predictive chance of more noise; small where tables disagree.
    agreement_together : float
        The same, of all tables together.
    sums : str
        Over what sums over categories ran.
    """

    release: str
    statistics: tuple[str, ...]
    variables: Mapping[str, Variable]
    pairs: tuple[tuple[str, str], ...]
    groups: Mapping[str, list[str | int]] = field(repr=False)
    effects: Floats = field(repr=False)
    rows: Floats = field(repr=False)
    single_sd: float
    pair_sd: float
    largest_r_hat: float
    fewest_effective_draws: float
    agreement: Mapping[str, float]
    agreement_together: float
    sums: str

    @property
    def joint(self) -> Floats:
        """Probabilities of all combinations of categories, in each draw, (n_draws, *sizes).

        Raises
        ------
        UsageError
            Where they are too many: a query is of some variables.
        """
        size = math.prod(len(variable.categories) for variable in self.variables.values())
        if size > MOST_COMBINATIONS:
            message = (
                f"the variables have {size} combinations of categories, and joint is of at most "
                f"{MOST_COMBINATIONS}: query some of them"
            )
            raise UsageError(message)
        return marginal(self._factors(), tuple(self.variables))[:, 0]

    @property
    def lines(self) -> tuple[str, ...]:
        """What the numbers rest on, in words."""
        prior = f"Normal(0, {self.single_sd:g}) of variables, Normal(0, {self.pair_sd:g}) of pairs"
        least, chance, _ = field_edges.worst_of(self.agreement, self.agreement_together)
        agree = (
            "tables DISAGREE"
            if field_edges.disagreement(self.agreement, self.agreement_together)
            else "tables agree"
        )
        return (
            f"prior of effects: {prior}; number of rows: flat",
            "law of tables: saddlepoint approximation; noise: exact law between whole numbers",
            f"sums: exact, {self.sums}",
            (
                f"sampler: Hamiltonian Monte Carlo, {engine.N_CHAINS} chains, R-hat at most "
                f"{self.largest_r_hat:.3f}, effective draws at least {self.fewest_effective_draws:.0f}"
            ),
            f"{agree}: chance of more noise at least {chance:.2g}, of {least}",
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What has to be said beside every number, a sentence each: tables disagree, draws are few."""
        said = (
            field_edges.disagreement(self.agreement, self.agreement_together),
            rough_text(self.fewest_effective_draws),
        )
        return tuple(line for line in said if line)

    @property
    def _disagreement(self) -> str:
        return field_edges.disagreement(self.agreement, self.agreement_together)

    def __str__(self) -> str:
        return "\n".join([str(self.edges()), "", *self.lines])

    def query(
        self,
        target: str | Sequence[str],
        given: Mapping[str, object] | None = None,
        mass: float = parameter_posterior.MASS,
    ) -> Conditional:
        """Return the distribution of a variable, or of several together, given others.

        Parameters
        ----------
        target : str or sequence of str
        given : mapping of str to str, optional
            Categories observed.
        mass : float
            Of the credible intervals, between 0 and 1.

        Raises
        ------
        UsageError
            Where a variable or a category does not exist or stands twice.
        """
        targets = names_of(target)
        arguments.ends_of(mass)
        observed = stated_categories("given", given, self.variables, "the field")
        require_variables(targets, (observed,), self.variables, "the field")
        probability = marginal(self._factors(observed), targets)
        chosen = [self.variables[name] for name in targets]
        labels = [
            tuple((variable.name, category) for variable, category in zip(chosen, entry, strict=True))
            for entry in itertools.product(*(variable.categories for variable in chosen))
        ]
        return Conditional(
            target=targets,
            given=observed,
            do={},
            mass=mass,
            groups=self.groups,
            label_columns=label_columns(labels),
            probability=DrawnQuantity(draws=probability.reshape(*probability.shape[:2], -1)),
            notes=self.notes,
        )

    def edges(self, mass: float = parameter_posterior.MASS, below: float = field_edges.BELOW) -> Table:
        r"""One row an edge: its variables, and its strength beside what the prior says of it.

        The strength is :math:`\lVert\theta_{ij}\rVert / \sqrt{K_i K_j}`, the standard deviation of the edge's
        effects over pairs of categories. It is 0 where the two variables are independent given all others; of
        two categories each, it is a quarter of the size of the log odds ratio. It is never negative, so that
        an interval never holds 0: see how probable it is to be small, and ``log_odds_ratios``.

        Parameters
        ----------
        mass : float
            Of the credible intervals, between 0 and 1.
        below : float, > 0
            The strength that ``probability_below`` is of.

        Returns
        -------
        Table
            Rows of first, second, mean, sd, median, lower, upper, probability_below, prior_lower,
            prior_upper and prior_probability_below.

        Raises
        ------
        UsageError
            Where a number is none.
        """
        arguments.ends_of(mass)
        bound = arguments.positive("below", below)
        rows = [
            {"first": first, "second": second}
            | field_edges.strength_row(
                part,
                (len(self.variables[first].categories), len(self.variables[second].categories)),
                self.pair_sd,
                mass,
                bound,
            )
            for (first, second), part in self._parts(2)
        ]
        return Table(
            rows,
            title="Strengths of pairs, given all other variables",
            notes=self.notes,
            foot=[
                field_edges.STRENGTH,
                field_edges.of_below(bound, len(self.rows)),
                intervals_text(mass),
            ],
        )

    def log_odds_ratios(self, mass: float = parameter_posterior.MASS) -> Table:
        """One row a pair of categories of an edge: their log odds ratio against the first ones of both.

        It is given all other variables, whatever they are. Where the two are independent given these, all log
        odds ratios of an edge are 0.

        Parameters
        ----------
        mass : float
            Of the credible intervals, between 0 and 1.

        Returns
        -------
        Table
            Rows of first, second, first_category, second_category, mean, sd, median, lower, upper and
            probability_above: that it is above 0.

        Raises
        ------
        UsageError
            Where the mass is not between 0 and 1.
        """
        arguments.ends_of(mass)
        rows = [
            row
            for (first, second), part in self._parts(2)
            for row in field_edges.log_odds_rows(part, (self.variables[first], self.variables[second]), mass)
        ]
        return Table(
            rows,
            title="Log odds ratios of pairs, given all other variables",
            notes=self.notes,
            foot=[field_edges.LOG_ODDS, intervals_text(mass)],
        )

    def _parts(self, size: int) -> list[tuple[tuple[str, ...], Floats]]:
        """Return variables, or pairs of size 2, and the draws of their coefficients."""
        names = list(self.variables)
        sizes = [len(variable.categories) for variable in self.variables.values()]
        pairs = [(names.index(first), names.index(second)) for first, second in self.pairs]
        return [
            (tuple(names[place] for place in places), self.effects[:, columns.start - 1 : columns.stop - 1])
            for places, columns in engine.blocks(sizes, pairs).items()
            if len(places) == size
        ]

    def _factors(self, observed: Mapping[str, str] | None = None) -> list[Factor]:
        """Return what the law is a product of, in each draw, where these categories are observed."""
        factors = []
        for names, coefficients in (*self._parts(1), *self._parts(2)):
            bases = [engine.contrasts(len(self.variables[name].categories)) for name in names]
            basis = bases[0] if len(bases) == 1 else np.kron(*bases)
            shape = (len(coefficients), 1, *(len(each) for each in bases))
            values = np.exp(coefficients @ basis.T).reshape(shape)
            known = observed or {}
            places = tuple(
                self.variables[name].categories.index(known[name]) if name in known else slice(None)
                for name in names
            )
            left = tuple(name for name in names if name not in known)
            factors.append(Factor(variables=left, values=values[(slice(None), slice(None), *places)]))
        return factors

    def synthesize(
        self,
        *,
        rows: int,
        imputations: int = IMPUTATIONS,
        rng: np.random.Generator | int | None = None,
    ) -> SyntheticRows:
        """Draw synthetic data sets, each from a posterior draw of its own. Costs no privacy.

        Parameters
        ----------
        rows : int, > 0
            Of each set; the more, the narrower the intervals of ``combine_imputations``, and as many as
            there were records are enough.
        imputations : int, > 1
            Sets.
        rng : numpy.random.Generator or int, optional
            A generator or the seed of one; a fresh one otherwise.

        Returns
        -------
        SyntheticRows

        Raises
        ------
        UsageError
            Where a number is none, or posterior draws are too few.
        """
        return synthetic_rows(
            self.variables,
            self._factors(),
            rows=rows,
            imputations=imputations,
            independent=min(len(self.rows), self.fewest_effective_draws),
            rng=rng,
        )


def field_model(
    release: Release,
    statistics: Sequence[str],
    *,
    where: Mapping[str, object] | None = None,
    single_sd: float = SINGLE_SD,
    pair_sd: float = PAIR_SD,
    draws: int = parameter_posterior.DRAWS,
    rng: np.random.Generator | int | None = None,
) -> Field:
    """Fit a Markov random field to released tables of one and two variables. Costs no privacy.

    Parameters
    ----------
    release : Release
        As ``suffice.open_release`` returns it.
    statistics : sequence of str
        ``contingency`` statistics over one or two columns, of the same rows: a table of two is an edge.
    where : mapping, optional
        The keys of the one cell, where the release has several.
    single_sd, pair_sd : float, > 0
        Prior standard deviations of the effects of variables, and of pairs.
    draws : int, > 0
        Posterior draws.
    rng : numpy.random.Generator or int, optional
        A generator or the seed of one; a fresh one otherwise.

    Raises
    ------
    UsageError
        Where tables do not fit together, contradict each other, are too large or too nearly empty, or chains
        do not agree.

    Warns
    -----
    ConflictWarning
        Where tables disagree, though not so far that they are refused; see ``Field.notes``.
    """
    draws, source = arguments.checked_draws(draws), arguments.generator(rng)
    sds = arguments.positive("single_sd", single_sd), arguments.positive("pair_sd", pair_sd)
    parts = field_tables.parts_of(release, statistics, where)
    tables = {name: part.plan.parameters.tables[0] for name, part in parts.items()}
    variables = field_tables.variables_of(tables)
    names = list(variables)
    sizes = [len(variable.categories) for variable in variables.values()]
    places = {name: [names.index(each.name) for each in table.variables] for name, table in tables.items()}
    pairs = [(place[0], place[1]) for place in places.values() if len(place) > 1]
    noisy, sums = _noisy(parts, sizes, places, sds)
    eta, zeta = engine.draw(noisy, max(-(-draws // engine.N_CHAINS), 100), source)
    both = np.concatenate([eta, zeta], axis=2)
    r_hat, effective = float(split_r_hat(both).max()), float(effective_draws(both).min())
    eta, zeta = (each.reshape(-1, each.shape[2])[-draws:] for each in (eta, zeta))
    rows, latent = noisy.tables(zeta.T)
    agreement, together = field_edges.agreement_of(noisy.counts, noisy.scales, latent.T, tables)
    field_tables.require_entries(noisy.tables(eta.T)[1].T, tables)
    field_edges.require_agreement(agreement, together)
    if not r_hat <= LARGEST_R_HAT:
        message = (
            f"chains of the field do not agree (R-hat {r_hat:.3g}, above {LARGEST_R_HAT}): too many edges "
            "may be why; name fewer tables, or ask for more draws"
        )
        raise UsageError(message)
    if said := field_edges.disagreement(agreement, together):
        warnings.warn(ConflictWarning(said), stacklevel=2)
    return Field(
        release=release.label,
        statistics=tuple(parts),
        variables=variables,
        pairs=tuple((names[first], names[second]) for first, second in pairs),
        groups=next(iter(parts.values())).groups,
        effects=eta[:, 1:],
        rows=rows,
        single_sd=sds[0],
        pair_sd=sds[1],
        largest_r_hat=r_hat,
        fewest_effective_draws=effective,
        agreement=agreement,
        agreement_together=together,
        sums=sums,
    )


def _noisy(
    parts: Mapping[str, NoisyStatistic],
    sizes: Sequence[int],
    places: Mapping[str, Sequence[int]],
    sds: tuple[float, float],
) -> tuple[engine.NoisyField | NoisyTree, str]:
    """Return the field behind the tables, and over what it sums; refuse what would be too large."""
    pairs = [(place[0], place[1]) for place in places.values() if len(place) > 1]
    columns = engine.blocks(sizes, pairs)
    spread = np.full(columns[pairs[-1]].stop, sds[1])
    spread[0], spread[1 : columns[pairs[0]].start] = np.inf, sds[0]
    counts = [part.values.astype(np.float64).ravel() for part in parts.values()]
    scales = np.repeat([part.plan.scale for part in parts.values()], [len(each) for each in counts])
    known = {"counts": np.concatenate(counts), "scales": scales, "sds": spread}
    combinations = math.prod(sizes)
    if combinations <= MOST_COMBINATIONS:
        margins = np.concatenate([engine.margins(sizes, place) for place in places.values()])
        every = engine.NoisyField(features=engine.features(sizes, pairs), margins=margins, **known)
        return every, f"over {combinations} combinations"
    tree, effects = tree_of(sizes, pairs), len(spread) - 1
    most = MOST_EFFECTS
    if tree.has_circle:
        most = MOST_EFFECTS_OF_CIRCLES
        if tree.largest > MOST_IN_CLIQUE:
            message = (
                f"the variables have {combinations} combinations of categories, and sums along their circles "
                f"of pairs take tables of {tree.largest} entries, more than {MOST_IN_CLIQUE}: leave out a "
                "table of each circle"
            )
            raise UsageError(message)
    if effects > most:
        message = f"the field has {effects} effects, and at most {most} are drawn: name fewer tables"
        raise UsageError(message)
    numbers = np.arange(len(tree.features))
    released = np.concatenate([numbers[tree.entries[tuple(each)]] for each in places.values()])
    said = f"along a tree of cliques, the largest of {tree.largest} combinations"
    return NoisyTree(tree=tree, released=released, **known), said
