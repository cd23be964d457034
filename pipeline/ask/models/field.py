r"""A pairwise Markov random field over the variables of released tables of one and two variables.

.. math::
    p(x \mid \theta) \propto \exp\Bigl(\sum_i \theta_i(x_i) + \sum_{ij} \theta_{ij}(x_i, x_j)\Bigr)

with an edge ij for each table of two variables. Of all laws with the same tables it is the one of largest
entropy. Effects have Normal priors, on contrasts that sum to 0; the engine ``field`` states the likelihood
of the noisy tables, and the approximation in it. It is refused where entries may well be empty.

Every question is a sum over combinations of categories in each posterior draw. An edge's strength is the
standard deviation of its effects over categories,

.. math:: \lVert\theta_{ij}\rVert / \sqrt{K_i K_j}

0 where the two variables are independent given all others. How well tables agree with each other is a
posterior predictive chance (Gelman, Meng, Stern 1996): that of noise with a larger sum of sizes, over entries
of a table than what lies between released and latent counts,

.. math:: P\bigl(\mathrm{Gamma}(K, 1) > \textstyle\sum_k |y_k - (M m)_k| / b\bigr)
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.models.network import Conditional
from suffice.pipeline.ask.models.rows_and_draws import DrawnQuantity, require_family
from suffice.pipeline.ask.models.synthetic_rows import IMPUTATIONS, SyntheticRows, synthetic_rows
from suffice.pipeline.math.engines import field as engine
from suffice.pipeline.math.engines.elimination import Factor, marginal
from suffice.pipeline.math.engines.field_tree import NoisyTree, tree_of
from suffice.pipeline.math.engines.multivariate.hmc import effective_draws, split_r_hat
from suffice.pipeline.math.parameters import arguments, parameter_posterior
from suffice.pipeline.terms.released.noisy_statistic import rows_alone
from suffice.pipeline.terms.statistics.count_table import label_columns
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.count_table import CountTable, Variable
    from suffice.typing import Floats

FAMILIES_OF_FIELDS = ("contingency",)
MOST_COMBINATIONS = 1024
"""Of categories of all variables, up to which each is a term of sums; of more, sums are along cliques."""
MOST_EFFECTS, MOST_EFFECTS_OF_CIRCLES = 400, 100
"""Chains move among twice as many numbers; with circles of pairs each step takes a matrix of all."""
MOST_IN_CLIQUE = 128
"""Combinations of the variables of a clique, where pairs form circles."""
SINGLE_SD, PAIR_SD = 2.5, 1.0
SETTLED = 1.05
"""The largest R-hat of a fit that is returned."""
FEW, FEW_CHANCE = 2.0, 0.25
"""Refused where an entry of a table is expected to be below `FEW` with more than this chance."""


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
        least = min(self.agreement, key=lambda name: self.agreement[name])
        return (
            f"prior of effects: {prior}; number of rows: flat",
            "law of tables: saddlepoint approximation; noise: exact law between whole numbers",
            f"sums: exact, {self.sums}",
            (
                f"sampler: Hamiltonian Monte Carlo, {engine.N_CHAINS} chains, R-hat at most "
                f"{self.largest_r_hat:.3f}, effective draws at least {self.fewest_effective_draws:.0f}"
            ),
            f"tables agree: chance of more noise at least {self.agreement[least]:.2g}, of {least}",
        )

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
        targets = (target,) if isinstance(target, str) else tuple(target)
        arguments.ends_of(mass)
        observed = {name: str(value) for name, value in (given or {}).items()}
        self._check(targets, observed)
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
        )

    def edges(self, mass: float = parameter_posterior.MASS) -> list[dict[str, Any]]:
        """One row an edge: its variables and the strength's mean, sd, median, lower and upper.

        Strengths are positive by definition: an edge without interaction has one near 0, not below.
        """
        arguments.ends_of(mass)
        rows = []
        for (first, second), part in self._parts(2):
            sizes = len(self.variables[first].categories), len(self.variables[second].categories)
            # Contrasts are orthonormal: the norm of coefficients is that of effects.
            strength = np.linalg.norm(part, axis=1) / math.sqrt(math.prod(sizes))
            summary = DrawnQuantity(draws=strength).summary(mass)
            rows.append(
                {"first": first, "second": second}
                | {name: float(np.asarray(value)) for name, value in summary.items()}
            )
        return rows

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

    def _check(self, targets: tuple[str, ...], observed: Mapping[str, str]) -> None:
        known = ", ".join(self.variables)
        if not targets:
            message = f"target names a variable: one of {known}"
            raise UsageError(message)
        every = [*targets, *observed]
        for name in every:
            if name not in self.variables:
                message = f"the field has no variable {name!r}: it has {known}"
                raise UsageError(message)
            if every.count(name) > 1:
                message = f"{name} stands twice: a variable is a target or given"
                raise UsageError(message)
        for name, category in observed.items():
            if category not in self.variables[name].categories:
                listed = ", ".join(self.variables[name].categories[:10])
                message = f"given {name}: the variable has no category {category!r}: it has {listed}"
                raise UsageError(message)


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
        Where tables do not fit together, are too large or too nearly empty, or chains do not agree.
    """
    draws, source = arguments.checked_draws(draws), arguments.generator(rng)
    for name, sd in (("single_sd", single_sd), ("pair_sd", pair_sd)):
        if not 0.0 < sd < math.inf:
            message = f"{name} must be a finite number above 0, not {sd!r}"
            raise UsageError(message)
    parts = _parts(release, statistics, where)
    tables = {name: part.plan.parameters.tables[0] for name, part in parts.items()}
    variables = _variables(tables)
    names = list(variables)
    sizes = [len(variable.categories) for variable in variables.values()]
    places = {name: [names.index(each.name) for each in table.variables] for name, table in tables.items()}
    pairs = [(place[0], place[1]) for place in places.values() if len(place) > 1]
    noisy, sums = _noisy(parts, sizes, places, (float(single_sd), float(pair_sd)))
    eta, zeta = engine.draw(noisy, max(-(-draws // engine.N_CHAINS), 100), source)
    both = np.concatenate([eta, zeta], axis=2)
    r_hat, effective = float(split_r_hat(both).max()), float(effective_draws(both).min())
    if not r_hat <= SETTLED:
        message = (
            f"chains of the field do not agree (R-hat {r_hat:.3g}): tables that contradict each other, as of "
            "different rows, or too many edges may be why; name fewer tables"
        )
        raise UsageError(message)
    eta, zeta = (each.reshape(-1, each.shape[2])[-draws:] for each in (eta, zeta))
    _check_entries(noisy.tables(eta.T)[1].T, tables)
    rows, latent = noisy.tables(zeta.T)
    return Field(
        release=release.label,
        statistics=tuple(parts),
        variables=variables,
        pairs=tuple((names[first], names[second]) for first, second in pairs),
        groups=next(iter(parts.values())).groups,
        effects=eta[:, 1:],
        rows=rows,
        single_sd=float(single_sd),
        pair_sd=float(pair_sd),
        largest_r_hat=r_hat,
        fewest_effective_draws=effective,
        agreement=_agreement(noisy, latent.T, tables),
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


def _parts(
    release: Release, statistics: Sequence[str], where: Mapping[str, object] | None
) -> dict[str, NoisyStatistic]:
    """Return the one chosen cell of every statistic; refuse what is no table of one or two variables."""
    names = [statistics] if isinstance(statistics, str) else list(statistics)
    parts = {}
    for name in names:
        if names.count(name) > 1:
            message = f"{name} is given twice: each table is one statistic"
            raise UsageError(message)
        require_family(release, name, FAMILIES_OF_FIELDS, "a field")
        part = rows_alone(release.selected(name, where))
        if part.plan.design is not Design.PARTITION_OF_UNITY or part.plan.scale <= 0.0:
            message = (
                f"{name} was released without a noisy count of every entry: a field needs all of them, as "
                "add_or_remove_one releases them"
            )
            raise UsageError(message)
        if len(part.values) != 1:
            message = (
                f"{name} has {len(part.values)} cells, and a field is of one: keep one with where, by "
                f"{', '.join(part.groups)}"
            )
            raise UsageError(message)
        size = len(part.plan.parameters.tables[0].variables)
        if size > 2:
            message = (
                f"{name} is over {size} columns, and a field is made of tables of one or two: query it alone "
                "with suffice model query"
            )
            raise UsageError(message)
        parts[name] = part
    return parts


def _variables(tables: Mapping[str, CountTable]) -> dict[str, Variable]:
    """Return all variables; refuse those that differ between tables, and pairs given twice."""
    variables: dict[str, Variable] = {}
    pairs: dict[frozenset[str], str] = {}
    for name, table in tables.items():
        for variable in table.variables:
            known = variables.setdefault(variable.name, variable)
            if known.categories != variable.categories:
                message = f"{variable.name} has other categories in {name} than in the tables before"
                raise UsageError(message)
        ends = frozenset(variable.name for variable in table.variables)
        if len(ends) > 1 and ends in pairs:
            message = f"{name} and {pairs[ends]} are over the same two variables: name one of them"
            raise UsageError(message)
        pairs[ends] = name
    if not any(len(ends) > 1 for ends in pairs):
        message = "a field needs a table of two variables: name at least one"
        raise UsageError(message)
    return variables


def _check_entries(expected: Floats, tables: Mapping[str, CountTable]) -> None:
    """Refuse tables in which the approximation of their law does not hold."""
    is_few = np.split((expected < FEW).mean(axis=0), np.cumsum([each.size for each in tables.values()])[:-1])
    for name, chances in zip(tables, is_few, strict=True):
        if chances.max() > FEW_CHANCE:
            message = (
                f"{name} has {int((chances > FEW_CHANCE).sum())} entries that may well be expected below "
                f"{FEW:g} rows, where the law of tables is not approximated well: leave the statistic out"
            )
            raise UsageError(message)


def _agreement(
    noisy: engine.NoisyField | NoisyTree, latent: Floats, tables: Mapping[str, CountTable]
) -> dict[str, float]:
    from scipy.special import gammaincc

    sizes = np.abs(noisy.counts - latent) / noisy.scales
    parts = np.split(sizes, np.cumsum([table.size for table in tables.values()])[:-1], axis=1)
    return {
        name: float(np.mean(gammaincc(part.shape[1], part.sum(axis=1))))
        for name, part in zip(tables, parts, strict=True)
    }
