"""The joint posterior of counts at all nodes of a public tree: whole numbers that add up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice.errors import UnknownNameError, UsageError
from suffice.pipeline.ask.trees.agreement import check_agreement
from suffice.pipeline.ask.trees.beside_released import rows_beside_released
from suffice.pipeline.ask.trees.released_levels import noisy_trees
from suffice.pipeline.ask.trees.wanted_nodes import checked_highest, marked_leaves
from suffice.pipeline.math.engines.tree.pieces import piecewise_posterior
from suffice.pipeline.math.engines.tree.populations import DEFAULT, named_population
from suffice.pipeline.math.engines.tree.posterior import tree_posterior
from suffice.pipeline.math.parameters.arguments import checked_draws, generator
from suffice.pipeline.math.parameters.contrasts import require_share
from suffice.pipeline.terms.declaration.hierarchy import level_place
from suffice.pipeline.terms.declaration.wording import not_a_name
from suffice.pipeline.terms.released.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike

    from suffice.pipeline.ask.trees.units import TreeUnit
    from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
    from suffice.pipeline.math.engines.tree.piece_tasks import Run
    from suffice.pipeline.math.engines.tree.pieces import PiecewisePosterior
    from suffice.pipeline.math.engines.tree.posterior import TreePosterior
    from suffice.pipeline.terms.declaration.key_tree import KeyTree
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Counts, Floats

DRAWS = 2000
"""Joint draws behind a share, a ratio, a rank or a roll-up, where a caller names no number."""


_CALLED_HERE = {
    **dict.fromkeys(("mean", "sd", "interval", "summary", "posterior"), "table()"),
    **dict.fromkeys(("levels", "keys"), "tree.$"),
    **dict.fromkeys(("total", "totals", "sums"), "sum(level), of components; of nodes roll_up()"),
    **dict.fromkeys(
        ("mean_per_row", "average", "per_row"),
        'release["NAME.LEVEL"].posterior(), each level by itself; or draws() of a tree of totals divided by '
        "those of a tree of counts",
    ),
    "sample": "draws()",
    "rank": "rank_probabilities(level)",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CountTree:
    """Counts at all nodes of a tree, or totals, given what was released; made by :meth:`of`.

    A statistic may count several components: false and true of a boolean column, or a column's categories.
    There is a tree of each then, independent of the others given what was released. A sum of values from 0
    on, clipped at a public bound, is one component, its total; answers are in the column's unit.

    Attributes
    ----------
    tree : KeyTree
        The levels and the keys of their nodes.
    released : dict of str to NoisyTree
        By component: the noisy counts, and the scales of their noise.
    posteriors : dict of str to TreePosterior or PiecewisePosterior
        By component: the joint law of the counts.
    unit : TreeUnit
        What a whole number of these stands for.
    population : str
        What the leaves' counts are drawn from.
    """

    tree: KeyTree
    released: Mapping[str, NoisyTree] = field(repr=False)
    posteriors: Mapping[str, TreePosterior | PiecewisePosterior] = field(repr=False)
    unit: TreeUnit = field(repr=False)
    population: str

    @classmethod
    def of(
        cls,
        tree: KeyTree,
        levels: Sequence[NoisyStatistic | None],
        *,
        population: str = DEFAULT,
        sizes: ArrayLike | None = None,
        run: Run | None = None,
    ) -> Self:
        """Infer all counts of a tree from what was released of its levels.

        Parameters
        ----------
        tree : KeyTree
        levels : sequence of (NoisyStatistic or None)
            A statistic that counts records, or has a total, for each level, the root's first, with a cell for
            every node; None where a level was not released.
        population : {"contaminated", "zero-inflated", "negative-binomial", "reciprocal"}
            What the leaves' counts are drawn from: Poisson behind gamma rates, with 5 % outliers or none, or
            with a share of empty leaves beside, all of this integrated over; or weights 1 / (n + 1).
        sizes : array_like, optional
            Known sizes of the leaves, in the order of their keys, to which mean counts are proportional.
        run : callable, optional
            Runs pieces of the tree as tasks, as :func:`suffice.open_tree` has a cluster do. Answers stay what
            they are, but for rounding, and other draws of the same law.

        Raises
        ------
        UsageError
            Where levels do not fit the tree, or a statistic has neither counts nor a total; where levels
            contradict each other further than noise explains, so that cut tails would be the answer.
        PriorError
            Where there is no such population.
        """
        law = named_population(population)
        released, unit = noisy_trees(tree, levels, None if sizes is None else np.asarray(sizes, np.float64))
        posteriors = {
            name: tree_posterior(noisy, law) if run is None else piecewise_posterior(noisy, law, run)
            for name, noisy in released.items()
        }
        for name, posterior in posteriors.items():
            check_agreement(tree, posterior, name)
        return cls(tree=tree, released=released, posteriors=posteriors, unit=unit, population=population)

    @classmethod
    def of_leaves(
        cls,
        tree: KeyTree,
        leaves: NoisyStatistic,
        *,
        population: str = DEFAULT,
        sizes: ArrayLike | None = None,
    ) -> Self:
        """Infer all counts of a tree from noisy ones of its leaves alone, as :meth:`of` does."""
        above: list[NoisyStatistic | None] = [None] * (len(tree.levels) - 1)
        return cls.of(tree, [*above, leaves], population=population, sizes=sizes)

    def __repr__(self) -> str:
        """Name the levels and how many nodes they have."""
        levels = ", ".join(
            f"{len(keys)} {level}" for level, keys in zip(self.tree.levels, self.tree.keys, strict=True)
        )
        return f"CountTree({levels}; {', '.join(self.components)})"

    if not TYPE_CHECKING:  # a type checker knows what there is

        def __getattr__(self, name: str) -> Any:
            raise not_a_name(type(self), name, _CALLED_HERE)

    @property
    def components(self) -> tuple[str, ...]:
        """What is counted, a tree for each."""
        return tuple(self.posteriors)

    @property
    def log_evidence(self) -> float:
        """The log chance of all that was released."""
        return sum(posterior.log_evidence for posterior in self.posteriors.values())

    @property
    def error(self) -> float:
        """What a chance may be off by, about: rounding, cut tails, and the rule over hyperparameters."""
        return max(
            posterior.rounding + posterior.cut + posterior.hyperparameters.error
            for posterior in self.posteriors.values()
        )

    def table(self, mass: float = 0.95, *, level: str | None = None) -> Table:
        """Return a row for each node: level, key, mean, sd, lower, upper; several components have a column.

        Parameters
        ----------
        mass : float, in (0, 1)
            The chance between lower and upper is at least as much; outside it is at most half of the rest on
            either side.
        level : str, optional
            One level's nodes alone.
        """
        mass = require_share("mass", mass)
        rows: list[dict[str, Any]] = []
        for place in self._levels(level):
            rows += self._rows(place, lambda posterior, at: posterior.interval(at, mass))
        return Table(rows, title=f"{self.unit.what} of {', '.join(self.tree.levels)}", notes=self.notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """What has to be said beside the numbers."""
        notes, posteriors = list(self.unit.notes), self.posteriors.values()
        by_points = max(posterior.hyperparameters.error for posterior in posteriors)
        if by_points > _WORTH_SAYING:
            notes.append(
                f"Chances may be off by up to {min(by_points, 1.0):.1g}: the population's mean and spread "
                "are summed over points. Compare the population reciprocal, which has neither."
            )
        # Levels that contradict each other were refused: windows are so narrow that ends are all of them.
        if max(posterior.cut for posterior in posteriors) > _WORTH_SAYING:
            notes.append(
                "A level has next to no noise: its released values are taken as they are, and no others were "
                "weighed."
            )
        return tuple(notes)

    def highest_density(self, mass: float = 0.95, *, level: str | None = None) -> Table:
        """Return the table with the shortest intervals that hold at least the chance."""
        mass = require_share("mass", mass)
        rows: list[dict[str, Any]] = []
        for place in self._levels(level):
            rows += self._rows(place, lambda posterior, at: posterior.highest_density(at, mass))
        return Table(rows, title=f"{self.unit.what} of {', '.join(self.tree.levels)}", notes=self.notes)

    def counts(self, level: str, component: str | None = None) -> dict[str, dict[float, float]]:
        """Return the law of each of a level's counts, or totals: by key, its values and their chances."""
        place = self._place(level)
        laws = self._posterior(component).laws(place)
        rows = [(key, laws.row(node), laws.low[node]) for node, key in enumerate(self.tree.keys[place])]
        return {
            key: {
                value: chance
                for value, chance in zip(
                    self.unit.values(low + np.arange(len(row))).tolist(), row.tolist(), strict=True
                )
                if chance > 0.0
            }
            for key, row, low in rows
        }

    def draws(
        self, n: int, rng: np.random.Generator | int | None = None, *, component: str | None = None
    ) -> dict[str, Counts | Floats]:
        """Draw all counts, or totals, jointly: by level (n, n_nodes), in the order of the tree's keys.

        None is below 0, counts are whole numbers, and children add up to their parent in every draw.
        """
        drawn = self._posterior(component).draws(checked_draws(n), generator(rng))
        return dict(zip(self.tree.levels, map(self.unit.values, drawn), strict=True))

    def noisy(self, component: str | None = None) -> NoisyTree:
        """Return what was released of a component, in whole numbers of :attr:`unit`."""
        return self.released[self._named_component(component)]

    def roll_up(
        self,
        nodes: Mapping[str, Sequence[str]],
        *,
        mass: float = 0.95,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Table:
        """Return what any nodes hold together, each leaf below them once; from joint draws.

        Parameters
        ----------
        nodes : mapping of str to sequence of str
            By level, keys.
        """
        is_below = marked_leaves(self.tree, nodes)
        rng = generator(rng)
        rows = []
        for component, posterior in self.posteriors.items():
            total = posterior.weighted_draws(checked_draws(draws, least=2), is_below, rng)
            summary = _summary(self.unit.values(total[:, None]), mass)
            rows.append({**self._named(component), **{name: of[0] for name, of in summary.items()}})
        return Table(rows, title="Roll-up")

    def share(
        self,
        level: str,
        *,
        above: str | None = None,
        component: str | None = None,
        mass: float = 0.95,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Table:
        """Return each node's share of the node that it is below, of a level above it; from joint draws.

        Parameters
        ----------
        level : str
        above : str, optional
            The level above; where left out, that of the parents.
        component : str, optional
            One component's shares; where left out, each component's, with a column that names it.
        """
        place = self._place(level)
        of = place - 1 if above is None else self._place(above)
        if not 0 <= of < place:
            message = f"{level} is the root, of which there is no share: name a level below it"
            if place > 0:
                levels = ", ".join(self.tree.levels[:place])
                message = f"a share is of a level above {level}, one of {levels}"
            raise UsageError(message)
        ancestor = np.arange(len(self.tree.keys[place]))
        for below in range(place, of, -1):
            ancestor = self.tree.parent_of(below)[ancestor]
        rng, rows = generator(rng), []
        names = self.components if component is None else (self._named_component(component),)
        for name in names:
            posterior, parts = self.posteriors[name], []
            for drawn in self._batches(posterior, checked_draws(draws, least=2), rng, of, place):
                whole = drawn[of][:, ancestor]
                # Of nothing there are no shares: such draws are left out of the quantiles.
                parts.append(np.where(whole > 0, drawn[place] / np.maximum(whole, 1), np.nan))
            rows += self._of_nodes(name, place, _summary(np.concatenate(parts), mass))
        return Table(rows, title=f"Shares of {self.tree.levels[of]}")

    def ratio(
        self,
        component: str,
        level: str,
        *,
        of: Sequence[str] | None = None,
        mass: float = 0.95,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Table:
        """Return the part that a component has in several, as true in false and true; from joint draws.

        Parameters
        ----------
        component : str
            The numerator.
        level : str
        of : sequence of str, optional
            The components that are added up in the denominator; where left out, all.
        """
        place, names, parts = self._place(level), self._several(of), []
        wanted = tuple(dict.fromkeys((self._named_component(component), *names)))
        for by_name in self._together(wanted, place, checked_draws(draws, least=2), generator(rng)):
            whole = np.sum([by_name[name] for name in names], axis=0)
            parts.append(np.where(whole > 0, by_name[component] / np.maximum(whole, 1), np.nan))
        rows = self._of_nodes(component, place, _summary(np.concatenate(parts), mass))
        return Table(rows, title=f"{component} of {', '.join(names)}")

    def sum(
        self,
        level: str,
        *,
        of: Sequence[str] | None = None,
        mass: float = 0.95,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Table:
        """Return what components have together, as all rows of false and true; from joint draws.

        Parameters
        ----------
        level : str
        of : sequence of str, optional
            The components that are added up; where left out, all.
        """
        place, names = self._place(level), self._several(of)
        together = self._together(names, place, checked_draws(draws, least=2), generator(rng))
        drawn = np.concatenate([np.sum(list(by_name.values()), axis=0) for by_name in together])
        rows = self._of_nodes(None, place, _summary(self.unit.values(drawn), mass))
        return Table(rows, title=f"{' and '.join(names)} together")

    def rank_probabilities(
        self,
        level: str,
        *,
        within: int = 1,
        component: str | None = None,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Table:
        """Return how probably each of a level's counts is among so many highest; from joint draws.

        Of equal counts one is as probably the higher as the other.
        """
        place, rng = self._place(level), generator(rng)
        n_nodes, within = len(self.tree.keys[place]), checked_highest(self.tree, level, within)
        times, number = np.zeros(n_nodes), checked_draws(draws)
        for drawn in self._batches(self._posterior(component), number, rng, place):
            ties = rng.random(drawn[place].shape)
            order = np.lexsort((ties, drawn[place]), axis=1)[:, n_nodes - within :]
            times += np.bincount(order.ravel(), minlength=n_nodes)
        rows = self._of_nodes(None, place, {"probability": (times / number).tolist()})
        return Table(rows, title=f"Among the {within} highest of {level}")

    def least_squares(self, mass: float = 0.95) -> Table:
        """Return what was released, what of it contradicts itself, and points that add up, beside posteriors.

        Columns: level, key, released, below (what the values right below add up to; None of leaves, and where
        either level was not released), least_squares with sd, lower and upper of normal intervals, and mean,
        posterior_lower and posterior_upper of the posterior.
        """
        mass, rows = require_share("mass", mass), []
        for component, posterior in self.posteriors.items():
            for place, beside in enumerate(rows_beside_released(posterior, self.unit, mass)):
                rows += self._of_nodes(component, place, beside)
        return Table(rows, title="Released, least squares, posterior")

    def _named(self, component: str) -> dict[str, str]:
        """Return the column that tells components apart, where there are several."""
        return {"component": component} if len(self.components) > 1 else {}

    def _posterior(self, component: str | None) -> TreePosterior | PiecewisePosterior:
        return self.posteriors[self._named_component(component)]

    def _named_component(self, component: str | None) -> str:
        if component is None:
            if len(self.components) > 1:
                message = f"name one of the components: {', '.join(self.components)}"
                raise UsageError(message)
            return self.components[0]
        if component not in self.posteriors:
            message = f"the tree has no component {component!r}: it has {', '.join(self.components)}"
            raise UnknownNameError(message)
        return component

    def _several(self, of: Sequence[str] | None) -> tuple[str, ...]:
        """Return the components that are named, or all."""
        if isinstance(of, str) or (of is not None and not of):
            message = f"of is a list of components, as [{self.components[0]!r}]"
            raise UsageError(message)
        return self.components if of is None else tuple(map(self._named_component, dict.fromkeys(of)))

    def _place(self, level: str) -> int:
        return level_place(self.tree.levels, level)

    def _levels(self, level: str | None) -> Sequence[int]:
        return range(len(self.tree.levels)) if level is None else [self._place(level)]

    def _rows(
        self, place: int, interval: Callable[[TreePosterior | PiecewisePosterior, int], tuple[Counts, Counts]]
    ) -> list[dict[str, Any]]:
        rows = []
        for component, posterior in self.posteriors.items():
            middle = map(self.unit.values, (posterior.means(place), posterior.sds(place)))
            columns = (*middle, *self.unit.ends(*interval(posterior, place)))
            named = dict(zip(("mean", "sd", "lower", "upper"), map(np.ndarray.tolist, columns), strict=True))
            rows += self._of_nodes(component, place, named)
        return rows

    def _of_nodes(
        self, component: str | None, place: int, columns: Mapping[str, Sequence[Any]]
    ) -> list[dict[str, Any]]:
        """Return a row for each of a level's nodes, from columns; of no component, where none is named."""
        of_all = {**({} if component is None else self._named(component)), "level": self.tree.levels[place]}
        return [
            {**of_all, "key": key, **{name: column[node] for name, column in columns.items()}}
            for node, key in enumerate(self.tree.keys[place])
        ]

    def _together(
        self, names: Sequence[str], place: int, n: int, rng: np.random.Generator
    ) -> Iterator[dict[str, Counts]]:
        """Give draws of one level of several components, which are independent, some at a time."""
        batches = [self._batches(self.posteriors[name], n, rng, place) for name in names]
        for drawn in zip(*batches, strict=True):
            yield {name: levels[place] for name, levels in zip(names, drawn, strict=True)}

    def _batches(
        self, posterior: TreePosterior | PiecewisePosterior, n: int, rng: np.random.Generator, *places: int
    ) -> Iterator[tuple[Counts, ...]]:
        """Give so many joint draws of some levels, some at a time."""
        at_a_time = max(1, posterior.most_drawn // self.tree.n_leaves)
        for begin in range(0, n, at_a_time):
            yield posterior.draws(min(at_a_time, n - begin), rng, places)


_WORTH_SAYING = 0.01
"""An error of chances that a reader may want to know of: an interval of 95 % then holds 94 % or 96 %."""


def _summary(draws: Counts | Floats, mass: float) -> dict[str, list[Any]]:
    """Return mean, sd and the ends of the central interval of each column of draws; nan is left out."""
    outside = 0.5 * (1.0 - require_share("mass", mass))
    drawn = draws.astype(np.float64)
    lower, upper = np.nanquantile(drawn, [outside, 1.0 - outside], axis=0, method="inverted_cdf")
    columns = {
        "mean": np.nanmean(drawn, axis=0),
        "sd": np.nanstd(drawn, axis=0),
        "lower": lower.astype(draws.dtype),  # an end is one of the draws, and whole as they are
        "upper": upper.astype(draws.dtype),
    }
    return {name: column.tolist() for name, column in columns.items()}
