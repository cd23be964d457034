r"""Conditional distributions of a joint model of categories: what is probable, given or set what.

.. math::
    p(v_1, \ldots, v_n \mid \theta) = \prod_v \theta_{v, \mathrm{pa}_v, v}, \qquad
    \theta \sim p(\theta \mid y)

The question is, of variables t, given others g and with others s set from outside,

.. math:: p(t \mid g, \mathrm{do}(s), \theta) \propto \sum_u \prod_{v \notin s} \theta_{v, \mathrm{pa}_v, v}

over the variables u that are neither asked for, given nor set. It is worked out by variable elimination in
each posterior draw of theta, without any error but that of the draws. Variables that are no ancestors of
others asked for or given sum to 1, and are left out. To set a variable cuts it from its parents: the tables
of all other nodes stay as they are (Pearl's truncated factorisation).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.posterior_terms import lists_terms
from suffice.pipeline.ask.models.rows_and_draws import (
    DrawnQuantity,
    drawn_tables,
    require_family,
    tables_of,
    tidy_draws,
)
from suffice.pipeline.ask.models.synthetic_rows import IMPUTATIONS, SyntheticRows, synthetic_rows
from suffice.pipeline.math.distributions.interval_kinds import CENTRAL
from suffice.pipeline.math.engines.elimination import Factor, marginal
from suffice.pipeline.math.parameters import arguments, parameter_posterior
from suffice.pipeline.math.parameters.contrasts import in_words, tidy_rows
from suffice.pipeline.terms.released.table import Table
from suffice.pipeline.terms.statistics.count_table import CountTable, label_columns

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import NDArray

    from suffice.pipeline.ask.inference.posterior_terms import FurtherTerms
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.math.priors.mixtures import Mixture
    from suffice.pipeline.terms.statistics.count_table import Variable
    from suffice.typing import Floats

GRAPHS = ("bayesian_network", "naive_bayes")
"""Families whose tables are conditional, by a declared graph."""
FAMILIES_OF_NETWORKS = (*GRAPHS, "contingency")
_NAMED = 10
"""How many categories the refusal of an unknown one names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditional:
    """A conditional distribution in every cell, and how sure it is; made by :meth:`Network.query`.

    Attributes
    ----------
    target : tuple of str
        The variables that it is of.
    given, do : dict of str to str
        What was observed, and what was set.
    mass : float
        Of the intervals.
    groups : dict of str to list
        The key of every cell, by group column.
    label_columns : dict of str to tuple
        The categories of each entry, by variable.
    probability : DrawnQuantity
        Of each entry, (n_cells, n_entries); the entries' sum to 1 in each draw and cell.
    notes : tuple of str
        What has to be said beside the numbers, a sentence each.
    """

    target: tuple[str, ...]
    given: Mapping[str, str]
    do: Mapping[str, str]
    mass: float
    groups: Mapping[str, list[str | int]] = field(repr=False)
    label_columns: Mapping[str, tuple[str | None, ...]] = field(repr=False)
    probability: DrawnQuantity = field(repr=False)
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return str(self.rows())

    def rows(self) -> Table:
        """One row a cell and entry: keys, parameter, a category of each target, and numbers.

        These are mean, sd, median, lower and upper.
        """
        rows = tidy_rows(
            self.groups, self.label_columns, {"probability": self.probability.summary(self.mass)}
        )
        stated = [("given", self.given), ("do", self.do)]
        said = [f" {word} {in_words(each)}" for word, each in stated if each]
        return Table(
            rows,
            title=f"Probability of {', '.join(self.target)}{''.join(said)}",
            notes=self.notes,
            in_words=_without_parameter,
            foot=[intervals_text(self.mass)],
        )

    def draw_columns(self) -> dict[str, NDArray[Any]]:
        """Return draws as tidy columns: group columns, targets, draw, parameter, value."""
        return tidy_draws(self.groups, self.label_columns, "probability", self.probability.draws)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Posterior draws of the tables of a joint model of categories; made by :func:`network`.

    All queries of one network rest on the same draws, and agree with each other.

    Attributes
    ----------
    posterior : Posterior
        What was drawn from.
    variables : dict of str to Variable
        In declared order, with their categories.
    tables : tuple of CountTable
        Of which there are draws.
    """

    posterior: Posterior = field(repr=False)
    variables: Mapping[str, Variable]
    tables: tuple[CountTable, ...] = field(repr=False)
    _drawn: tuple[Floats, ...] = field(repr=False)

    @property
    def n_draws(self) -> int:
        """The number of posterior draws."""
        return len(self._drawn[0])

    def query(
        self,
        target: str | Sequence[str],
        given: Mapping[str, object] | None = None,
        do: Mapping[str, object] | None = None,
        mass: float = parameter_posterior.MASS,
    ) -> Conditional:
        """Return the distribution of a variable, or of several together, given or set others.

        Parameters
        ----------
        target : str or sequence of str
            What is asked for.
        given : mapping of str to str, optional
            Categories observed, as ``{"sex": "Male"}``.
        do : mapping of str to str, optional
            Categories set from outside, whatever the parents: the distribution is that of the network without
            the edges into these variables. That it holds in the world rests on the declared graph alone.
        mass : float
            Of the credible intervals, between 0 and 1.

        Returns
        -------
        Conditional
            Draws of the distribution in every cell.

        Raises
        ------
        UsageError
            Where a variable or a category does not exist or stands twice, a contingency table is asked for
            ``do``, or the tables on the way would be too large.
        """
        targets = names_of(target)
        arguments.ends_of(mass)
        observed, chosen = (
            stated_categories(argument, stated, self.variables, self.posterior.statistic)
            for argument, stated in (("given", given), ("do", do))
        )
        self._check(targets, observed, chosen)
        fixed = {
            name: self.variables[name].categories.index(category)
            for name, category in {**observed, **chosen}.items()
        }
        factors = [
            _reduced(table, values, fixed)
            for table, values in self._needed({*targets, *observed}, set(chosen))
        ]
        probabilities = marginal(factors, targets)
        shape = CountTable(name="", variables=tuple(self.variables[name] for name in targets))
        labels = label_columns([label[1:] for label in shape.labels()])
        return Conditional(
            target=targets,
            given=observed,
            do=chosen,
            mass=mass,
            groups=self.posterior.groups,
            label_columns=labels,
            probability=DrawnQuantity(draws=probabilities.reshape(*probabilities.shape[:2], -1)),
        )

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
            Where the network has several cells, a number is none, or posterior draws are too few.
        """
        cells = self.posterior.n_groups
        if cells != 1:
            message = (
                f"{self.posterior.statistic} has {cells} cells, and rows are of one: keep one with where, by "
                f"{', '.join(self.posterior.groups)}"
            )
            raise UsageError(message)
        diagnostics = self.posterior.diagnostics or {}
        if self.posterior.family in GRAPHS:
            names = [table.variables[-1].name for table in self.tables]
        else:
            names = [variable.name for variable in self.tables[0].variables]
        return synthetic_rows(
            {name: self.variables[name] for name in names},
            [_reduced(table, values, {}) for table, values in zip(self.tables, self._drawn, strict=True)],
            rows=rows,
            imputations=imputations,
            independent=min(self.n_draws, diagnostics.get("fewest_effective_draws", math.inf)),
            rng=rng,
        )

    def _needed(self, wanted: set[str], cut: set[str]) -> list[tuple[CountTable, Floats]]:
        """Return the tables of what is wanted and of all its ancestors, but for what is set."""
        if self.posterior.family not in GRAPHS:
            return [(self.tables[0], self._drawn[0])]
        parents = {
            table.variables[-1].name: [variable.name for variable in table.variables[:-1]]
            for table in self.tables
        }
        ancestors, waiting = set(), sorted(wanted - cut)
        while waiting:
            name = waiting.pop()
            if name not in ancestors:
                ancestors.add(name)
                waiting += [parent for parent in parents[name] if parent not in cut]
        return [
            (table, values)
            for table, values in zip(self.tables, self._drawn, strict=True)
            if table.variables[-1].name in ancestors
        ]

    def _check(self, targets: tuple[str, ...], given: Mapping[str, str], do: Mapping[str, str]) -> None:
        require_variables(targets, (given, do), self.variables, self.posterior.statistic)
        if do and self.posterior.family not in GRAPHS:
            message = (
                f"do sets variables of a declared graph, and {self.posterior.statistic} is "
                f"{self.posterior.family}, which has none: use given, or a bayesian_network"
            )
            raise UsageError(message)


@lists_terms
def network(
    release: Release,
    statistic: str,
    *,
    prior: Prior | Mixture | str | None = None,
    draws: int = parameter_posterior.DRAWS,
    rng: np.random.Generator | int | None = None,
    **terms: Unpack[FurtherTerms],
) -> Network:
    """Make a joint model of categories to query from a statistic of count tables. Costs no privacy.

    Parameters
    ----------
    release : Release
        As ``suffice.open_release`` returns it.
    statistic : str
        Its name in the release: ``bayesian_network``, ``naive_bayes`` or ``contingency``.
    prior, **terms
        As in ``Release.posterior``.
    draws : int, > 0
        Posterior draws of the tables; each query is worked out in all of them.
    rng : numpy.random.Generator or int, optional
        A generator or the seed of one; a fresh one otherwise.

    Raises
    ------
    UsageError, PriorError
        Where the statistic is of another family, or the prior, the method or the keys do not fit.
    """
    require_family(release, statistic, FAMILIES_OF_NETWORKS, "a network")
    draws, source = arguments.checked_draws(draws, least=2), arguments.generator(rng)
    posterior = release.posterior(statistic, prior, **terms)
    tables = tables_of(posterior)
    every = (variable for table in tables for variable in reversed(table.variables))
    return Network(
        posterior=posterior,
        variables={variable.name: variable for variable in every},
        tables=tables,
        _drawn=tuple(drawn_tables(posterior, draws, source)),
    )


def intervals_text(mass: float) -> str:
    """Return what lower and upper are."""
    return f"lower, upper: {arguments.interval_in_words(CENTRAL, mass)}"


def _without_parameter(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "parameter"} for row in rows]


def _reduced(table: CountTable, values: Floats, fixed: Mapping[str, int]) -> Factor:
    """Take the entries of a table where some variables have these categories."""
    index = tuple(fixed.get(variable.name, slice(None)) for variable in table.variables)
    left = tuple(variable.name for variable in table.variables if variable.name not in fixed)
    return Factor(variables=left, values=values[(slice(None), slice(None), *index)])


def names_of(target: object) -> tuple[str, ...]:
    """Return what is asked for as several names; none where it is neither a name nor a sequence of names."""
    if isinstance(target, str):
        return (target,)
    return tuple(target) if isinstance(target, Sequence) else ()


def require_variables(
    targets: Sequence[str],
    stated: Sequence[Mapping[str, str]],
    variables: Mapping[str, Variable],
    model: str,
) -> None:
    """Refuse targets that are none, and variables that stand twice among these and what is stated."""
    if not targets:
        message = f"target names a variable: one of {', '.join(variables)}"
        raise UsageError(message)
    for name in targets:
        _variable(name, variables, model)
    every = [*targets, *(name for each in stated for name in each)]
    for name in every:
        if every.count(name) > 1:
            also = ", given, or set by do" if len(stated) > 1 else " or given"
            message = f"{name} stands twice: a variable is a target{also}"
            raise UsageError(message)


def stated_categories(
    argument: str, stated: object, variables: Mapping[str, Variable], model: str
) -> dict[str, str]:
    """Return the category of each stated variable as it is declared; refuse what is none."""
    if stated is None:
        return {}
    if not isinstance(stated, Mapping):
        message = f"{argument} maps variables to categories, as {{'sex': 'Male'}}, not {stated!r}"
        raise UsageError(message)
    chosen = {}
    for name, value in stated.items():
        category = str(value).lower() if isinstance(value, bool | np.bool_) else str(value)
        known = _variable(name, variables, model).categories
        if category not in known:
            more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
            message = (
                f"{argument} {name}: the variable has no category {category!r}: it has "
                f"{', '.join(known[:_NAMED])}{more}"
            )
            raise UsageError(message)
        chosen[name] = category
    return chosen


def _variable(name: object, variables: Mapping[str, Variable], model: str) -> Variable:
    if not isinstance(name, str) or name not in variables:
        message = f"{model} has no variable {name!r}: it has {', '.join(variables)}"
        raise UsageError(message)
    return variables[name]
