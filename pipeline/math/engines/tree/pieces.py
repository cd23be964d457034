"""The joint posterior of a tree of which no process holds all messages: pieces are tasks.

Messages of pieces' roots go up; what the top says of these roots comes down, and summaries of marginals are
returned; or draws of the roots' counts come down, and draws are returned. Answers depend on the tree alone,
neither on where tasks run nor on the order in which they end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from suffice.pipeline.math.engines.tree.division import Division, leaves_of_a_piece
from suffice.pipeline.math.engines.tree.drawing import draw_tree
from suffice.pipeline.math.engines.tree.hyperparameters import weighed_points
from suffice.pipeline.math.engines.tree.messages import Block, Ragged
from suffice.pipeline.math.engines.tree.passes import Downward, LeafKeys, passed_up
from suffice.pipeline.math.engines.tree.piece_tasks import (
    CENTRAL,
    SHORTEST,
    Summarised,
    draws,
    in_turn,
    kept,
    leaf_evidence,
    marginals,
    root_messages,
)
from suffice.pipeline.math.engines.tree.posterior import MOST_DRAWN, TAIL, MixedTree, mixed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from suffice.pipeline.math.engines.tree.hyperparameters import WeighedPoints
    from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
    from suffice.pipeline.math.engines.tree.passes import Passer, Upward
    from suffice.pipeline.math.engines.tree.piece_tasks import Columns, PieceAnswer, Run
    from suffice.pipeline.math.engines.tree.populations import Population
    from suffice.typing import Counts, Floats, Rows

_MASS = 0.95
_KEY_WEIGHTS = 1 << 23
"""Counts in the windows of leaves' keys that a task weighs."""


@dataclass(frozen=True, kw_only=True)
class PiecePasser:
    """What passes over a tree in pieces have in common: a ``Passer`` whose messages end at pieces' roots.

    Attributes
    ----------
    tree : NoisyTree
    population : Population
    tail : float
    keys : LeafKeys
    division : Division
    most : int
        Leaves of a task.
    run : callable
        Runs tasks.
    """

    tree: NoisyTree
    population: Population
    tail: float
    keys: LeafKeys = field(repr=False)
    division: Division = field(repr=False)
    most: int
    run: Run = field(repr=False)

    @classmethod
    def of(cls, tree: NoisyTree, population: Population, tail: float, run: Run) -> Self:
        """Divide a tree."""
        keys = LeafKeys.of(tree, tail)
        most = leaves_of_a_piece(keys, tree.scales[-1], tail)
        division = Division.of(tree, most)
        return cls(
            tree=tree, population=population, tail=tail, keys=keys, division=division, most=most, run=run
        )

    @cached_property
    def batches(self) -> list[tuple[int, int]]:
        """Pieces of each task, from the first to before the last."""
        return self.division.batches(self.most)

    def passers(self, start: int, stop: int) -> list[Passer]:
        """Return what passes over some pieces need."""
        return [
            self.division.passer(piece, self.keys, self.population, self.tail) for piece in range(start, stop)
        ]

    def each(
        self, task: Callable[..., Any], arguments: Callable[[int, int, int], tuple[Any, ...]]
    ) -> Iterator[tuple[int, Any]]:
        """Run a task for each batch, with its further arguments, and give each piece's number and answer."""
        asked = (
            (number, self.passers(start, stop), *arguments(number, start, stop))
            for number, (start, stop) in enumerate(self.batches)
        )
        for number, answers in self.run(task, asked):
            yield from enumerate(answers, self.batches[number][0])

    def log_evidence_of_leaves(self, point: Floats) -> float:
        """Return the log chance of the leaves' released values alone."""
        keys, scale = self.keys, self.tree.scales[-1]
        # Keys are in the order of their values: those of like windows stand together.
        widths = np.cumsum(keys.bounds - keys.low(scale, self.tail) + 1) // _KEY_WEIGHTS
        groups = np.split(np.arange(len(widths)), np.flatnonzero(np.diff(widths)) + 1)
        asked = (
            (number, keys.of_keys(rows), scale, self.population, point, self.tail)
            for number, rows in enumerate(groups)
        )
        answers = in_turn(leaf_evidence, asked) if len(groups) == 1 else self.run(leaf_evidence, asked)
        by_number: dict[int, float] = dict(answers)
        return sum(by_number[number] for number in range(len(groups)))

    def up(self, point: Floats) -> Upward:
        """Pass messages up to the root."""
        return self.ups(point[None])[0]

    def ups(self, points: Floats) -> tuple[Upward, ...]:
        """Pass messages up at several points."""
        n_pieces = self.division.n_pieces
        parts = [Ragged.empty(n_pieces) for _ in points]
        below = np.empty((len(points), n_pieces))
        for piece, answer in self.each(root_messages, lambda *_: (points,)):
            below[:, piece] = answer.log_evidence
            for part, block in zip(parts, answer.roots, strict=True):
                part.put(np.array([piece]), block)
        return tuple(
            passed_up(self.division.top, last, last.width, float(log_evidence), self.tail)
            for last, log_evidence in zip((part.done() for part in parts), below.sum(axis=1), strict=True)
        )


@dataclass(frozen=True, kw_only=True)
class PiecewisePosterior(MixedTree):
    """The joint law of all counts of a tree in pieces: what a ``TreePosterior`` answers, task by task.

    Marginals are of the top's levels, and hyperparameters have the messages of the top.

    Attributes
    ----------
    passer : PiecePasser
    outsides : tuple of Ragged
        At every point, what the top says of the pieces' roots.
    answers : dict
        Columns of every level, by kind and mass of the intervals.
    """

    passer: PiecePasser = field(repr=False)
    outsides: tuple[Ragged, ...] = field(repr=False)
    answers: dict[tuple[str, float], list[Columns]] = field(repr=False)
    most_drawn: ClassVar[int] = 8 * MOST_DRAWN  # more than in one process: every time pieces are passed anew

    def means(self, level: int) -> Floats:
        """Return posterior means of a level's counts."""
        return next(iter(self.answers.values()))[level][0]

    def sds(self, level: int) -> Floats:
        """Return posterior standard deviations of a level's counts."""
        return next(iter(self.answers.values()))[level][1]

    def interval(self, level: int, mass: float) -> tuple[Counts, Counts]:
        """Return intervals with at most (1 - mass) / 2 of the chance outside on either side."""
        return self._columns(CENTRAL, mass)[level][2:]

    def highest_density(self, level: int, mass: float) -> tuple[Counts, Counts]:
        """Return the shortest intervals that hold at least so much of the chance."""
        return self._columns(SHORTEST, mass)[level][2:]

    def laws(self, level: int) -> Ragged:
        """Return the chances of each of a level's counts."""
        division = self.passer.division
        if level < division.level:
            return self.marginals[level]
        place = level - division.level
        parts = Ragged.empty(self.tree.n_nodes(level))
        for piece, answer in self._each(kept):
            nodes, law = division.nodes_of(piece, piece + 1)[place], answer.levels[place]
            for row in range(len(nodes)):
                parts.put(nodes[row : row + 1], Block(law.low[row : row + 1], law.row(row)[None]))
        return parts.done()

    def draws(
        self, n: int, rng: np.random.Generator, levels: Sequence[int] | None = None
    ) -> tuple[Counts, ...]:
        """Draw all counts jointly: of every level an array of shape (n, n_nodes).

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator
        levels : sequence of int, optional
            Those that are asked for: where all are above the pieces, nothing is drawn below, and levels
            there are empty.
        """
        division, tree = self.passer.division, self.tree
        top, point_of_draw = self._top_draws(n, rng)
        if levels is not None and max(levels) < division.level:
            nothing = [np.empty((n, 0), np.int64)] * (tree.depth + 1 - division.level)
            return (*top[:-1], *nothing)
        below = [
            np.empty((n, tree.n_nodes(level)), np.int64) for level in range(division.level, tree.depth + 1)
        ]
        for piece, drawn in self._drawn(top[-1], point_of_draw, None, rng):
            for level, nodes, counts in zip(below, division.nodes_of(piece, piece + 1), drawn, strict=True):
                level[:, nodes] = counts
        return (*top[:-1], *below)

    def weighted_draws(self, n: int, weights: Rows, rng: np.random.Generator) -> Counts:
        """Draw the sum of leaves times whole weights, (n,), added up where pieces are."""
        top, point_of_draw = self._top_draws(n, rng)
        sums = np.zeros(n, np.int64)
        for _, drawn in self._drawn(top[-1], point_of_draw, weights, rng):
            sums += drawn
        return sums

    def _columns(self, kind: str, mass: float) -> list[Columns]:
        if (kind, mass) not in self.answers:
            reduced = Summarised(kind, mass)
            division, tree = self.passer.division, self.tree
            pieces = [(piece, answer.levels) for piece, answer in self._each(reduced)]
            self.answers[kind, mass] = _columns(division, tree, self.marginals, pieces, reduced)
        return self.answers[kind, mass]

    def _each(self, reduced: Callable[[Ragged], Any]) -> Iterator[tuple[int, PieceAnswer]]:
        return _marginals(self.passer, self.hyperparameters, self.outsides, reduced)

    def _top_draws(self, n: int, rng: np.random.Generator) -> tuple[tuple[Counts, ...], Rows]:
        """Draw the counts of the top, each at a point by its weight."""
        top, hyperparameters = self.passer.division.top, self.hyperparameters
        point_of_draw = rng.choice(len(hyperparameters.weights), size=n, p=hyperparameters.weights)
        drawn = tuple(np.empty((n, top.n_nodes(level)), np.int64) for level in range(top.depth + 1))
        for point, upward in enumerate(hyperparameters.upwards):
            places = np.flatnonzero(point_of_draw == point)
            if len(places):
                draw_tree(upward, drawn, places, rng)
        return drawn, point_of_draw

    def _drawn(
        self, totals: Counts, point_of_draw: Rows, weights: Rows | None, rng: np.random.Generator
    ) -> Iterator[tuple[int, Any]]:
        passer, streams = self.passer, rng.spawn(len(self.passer.batches))
        points = self.hyperparameters.points

        def arguments(number: int, start: int, stop: int) -> tuple[Any, ...]:
            of_pieces = None
            if weights is not None:
                of_pieces = [
                    weights[passer.division.nodes_of(piece, piece + 1)[-1]] for piece in range(start, stop)
                ]
            return points, totals[:, start:stop], point_of_draw, of_pieces, streams[number]

        return passer.each(draws, arguments)


def _marginals(
    passer: PiecePasser,
    hyperparameters: WeighedPoints,
    outsides: Sequence[Ragged],
    reduced: Callable[[Ragged], Any],
) -> Iterator[tuple[int, PieceAnswer]]:
    """Give each piece's number and answer."""

    def arguments(_: int, start: int, stop: int) -> tuple[Any, ...]:
        of_pieces = [[_single(outside, piece) for outside in outsides] for piece in range(start, stop)]
        return hyperparameters.points, hyperparameters.weights, of_pieces, reduced

    return passer.each(marginals, arguments)


def _single(messages: Ragged, row: int) -> Ragged:
    """Return one message."""
    rows = np.array([row])
    return Ragged(messages.low[rows], messages.width[rows], np.zeros(1, np.int64), messages.row(row))


def _columns(
    division: Division,
    tree: NoisyTree,
    of_top: Sequence[Ragged],
    pieces: Sequence[tuple[int, Sequence[Columns]]],
    reduced: Summarised,
) -> list[Columns]:
    """Return the columns of every level from those of its pieces."""
    levels = [reduced(law) for law in of_top]
    for place in range(len(division.nodes)):
        n_nodes = tree.n_nodes(division.level + place)
        means, sds = np.empty((2, n_nodes))
        lower, upper = np.empty((2, n_nodes), np.int64)
        for piece, columns in pieces:
            nodes = division.nodes_of(piece, piece + 1)[place]
            means[nodes], sds[nodes], lower[nodes], upper[nodes] = columns[place]
        levels.append((means, sds, lower, upper))
    return levels


def piecewise_posterior(
    tree: NoisyTree, population: Population, run: Run = in_turn, *, tail: float = TAIL
) -> PiecewisePosterior:
    """Return the joint posterior of the counts of a tree, pieces of which are tasks.

    Parameters
    ----------
    tree : NoisyTree
    population : Population
        Of the leaves' counts.
    run : callable
        Runs tasks, which can be imported, and gives results in any order.
    tail : float
        The share of a message that is cut at most, on either side.
    """
    passer = PiecePasser.of(tree, population, tail, run)
    hyperparameters = weighed_points(passer)
    ways = [Downward(upward) for upward in hyperparameters.upwards]
    *of_top, _ = mixed(ways, hyperparameters.weights)
    outsides = tuple(way.outside for way in ways)
    reduced = Summarised(CENTRAL, _MASS)
    pieces = dict(_marginals(passer, hyperparameters, outsides, reduced))
    columns = _columns(
        passer.division, tree, of_top, [(piece, answer.levels) for piece, answer in pieces.items()], reduced
    )
    return PiecewisePosterior(
        tree=tree,
        passer=passer,
        hyperparameters=hyperparameters,
        marginals=tuple(of_top),
        outsides=outsides,
        rounding=max(*(way.rounding for way in ways), *(piece.rounding for piece in pieces.values())),
        cut=max(*(way.cut for way in ways), *(piece.cut for piece in pieces.values())),
        answers={(CENTRAL, _MASS): columns},
    )
