"""The joint posterior of a tree of which no process holds all messages: pieces are tasks.

Three kinds of tasks: messages of pieces' roots go up; what the top says of these roots comes down, and
summaries of marginals are returned; or draws of the roots' counts come down, and draws are returned. A task
works its pieces' messages out again, so that nothing is kept where it ran. What it returns depends on the
tree alone, neither on where tasks run nor on the order in which they end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from suffice.pipeline.math.engines.tree.division import Division, leaves_of_a_piece
from suffice.pipeline.math.engines.tree.drawing import draw_below, draw_tree
from suffice.pipeline.math.engines.tree.hyperparameters import weighed_points
from suffice.pipeline.math.engines.tree.messages import Block, Ragged
from suffice.pipeline.math.engines.tree.passes import Downward, LeafKeys, passed_up
from suffice.pipeline.math.engines.tree.posterior import MOST_DRAWN, TAIL, mixed
from suffice.pipeline.math.engines.tree.summaries import equal_tailed, moments, shortest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.tree.hyperparameters import WeighedPoints
    from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
    from suffice.pipeline.math.engines.tree.passes import Passer, Upward
    from suffice.pipeline.math.engines.tree.populations import Population
    from suffice.typing import Counts, Floats, Rows

Run = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], Iterator[Any]]
"""Runs a task for each tuple of arguments, and gives results in any order, as ``cluster.stream`` does."""
Columns = tuple["Floats", "Floats", "Counts", "Counts"]
"""Means, standard deviations, lower and upper ends."""
CENTRAL, SHORTEST = "central", "shortest"
_ENDS = {CENTRAL: equal_tailed, SHORTEST: shortest}
_MASS = 0.95
_KEY_WEIGHTS = 1 << 23
"""Counts in the windows of leaves' keys that a task weighs."""


class RootMessages(NamedTuple):
    """Of a piece, at every point: the message of its root, and the log evidence of all below."""

    roots: list[Block]
    log_evidence: list[float]


class PieceAnswer(NamedTuple):
    """Of a piece: of every level below its root what was asked, and what chances may be off by."""

    levels: list[Any]
    rounding: float
    cut: float


def root_messages(number: int, passers: Sequence[Passer], points: Floats) -> tuple[int, list[RootMessages]]:
    """Pass messages up to the root of each piece; runs as a task."""
    answers = []
    for passer in passers:
        roots, log_evidence = [], []
        for point in points:
            upward = passer.up(point)
            roots.append(upward.inner[0].block(np.zeros(1, np.int64)))
            log_evidence.append(upward.log_evidence)
        answers.append(RootMessages(roots, log_evidence))
    return number, answers


def marginals(
    number: int,
    passers: Sequence[Passer],
    points: Floats,
    weights: Floats,
    outsides: Sequence[Sequence[Ragged]],
    reduced: Callable[[Ragged], Any],
) -> tuple[int, list[PieceAnswer]]:
    """Reduce the marginals of every level of each piece, given what the top says of its root; a task.

    Parameters
    ----------
    number : int
        Of the task.
    passers : sequence of Passer
        A piece each.
    points : ndarray, shape (n_points, d)
    weights : ndarray, shape (n_points,)
    outsides : sequence of sequence of Ragged
        Of every piece and point, one message.
    reduced : callable
    """
    answers = []
    for passer, outside in zip(passers, outsides, strict=True):
        ways = [Downward(passer.up(point), of_root) for point, of_root in zip(points, outside, strict=True)]
        levels = [reduced(law) for law in mixed(ways, weights)[1:]]
        answers.append(PieceAnswer(levels, max(way.rounding for way in ways), max(way.cut for way in ways)))
    return number, answers


@dataclass(frozen=True, slots=True)
class Summarised:
    """Reduce chances to moments and intervals."""

    kind: str
    mass: float

    def __call__(self, law: Ragged) -> Columns:
        """Return the columns of some nodes."""
        return (*moments(law), *_ENDS[self.kind](law, self.mass))


def kept(law: Ragged) -> Ragged:
    """Return chances as they are."""
    return law


def draws(
    number: int,
    passers: Sequence[Passer],
    points: Floats,
    totals: Counts,
    point_of_draw: Rows,
    weights: Sequence[Rows] | None,
    rng: np.random.Generator,
) -> tuple[int, list[Any]]:
    """Draw the counts of each piece given draws of its root's; runs as a task.

    Parameters
    ----------
    number : int
        Of the task.
    passers : sequence of Passer
        A piece each.
    points : ndarray, shape (n_points, d)
    totals : ndarray of int64, shape (n_draws, n_pieces)
    point_of_draw : ndarray of int64, shape (n_draws,)
    weights : sequence of ndarray, optional
        Of every piece's leaves. With them, sums of leaves times weights are returned, (n_draws,), and
        otherwise counts of every level, (n_draws, n_nodes).
    rng : numpy.random.Generator
    """
    answers: list[Any] = []
    for piece, passer in enumerate(passers):
        tree, n_draws = passer.tree, len(totals)
        at_a_time = n_draws if weights is None else max(1, MOST_DRAWN // tree.n_leaves)
        upwards = {point: passer.up(points[point]) for point in np.unique(point_of_draw).tolist()}
        batches = []
        for begin in range(0, n_draws, at_a_time):
            of_draw = point_of_draw[begin : begin + at_a_time]
            drawn = [
                np.empty((len(of_draw), tree.n_nodes(level)), np.int64) for level in range(tree.depth + 1)
            ]
            drawn[0][:, 0] = totals[begin : begin + at_a_time, piece]
            for point, upward in upwards.items():
                draw_below(upward, drawn, np.flatnonzero(of_draw == point), rng)
            batches.append(drawn[1:] if weights is None else drawn[-1] @ weights[piece])
        answers.append(batches[0] if weights is None else np.concatenate(batches))
    return number, answers


def leaf_evidence(
    number: int, keys: LeafKeys, scale: float | None, population: Population, point: Floats, tail: float
) -> tuple[int, float]:
    """Return the log chance of some leaves' released values alone; runs as a task."""
    _, log_sums = keys.messages(scale, population, point, tail)
    return number, float(log_sums @ keys.number)


def in_turn(task: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
    """Run tasks here, one after the other."""
    return (task(*each) for each in arguments)


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
class PiecewisePosterior:
    """The joint law of all counts of a tree in pieces: what a ``TreePosterior`` answers, task by task.

    Attributes
    ----------
    passer : PiecePasser
    hyperparameters : WeighedPoints
        With messages of the top.
    marginals : tuple of Ragged
        Of the top's levels.
    outsides : tuple of Ragged
        At every point, what the top says of the pieces' roots.
    rounding, cut : float
        What rounding and the cut of tails may change a chance by, about.
    answers : dict
        Columns of every level, by kind and mass of the intervals.
    """

    passer: PiecePasser = field(repr=False)
    hyperparameters: WeighedPoints
    marginals: tuple[Ragged, ...] = field(repr=False)
    outsides: tuple[Ragged, ...] = field(repr=False)
    rounding: float
    cut: float
    answers: dict[tuple[str, float], list[Columns]] = field(repr=False)

    @property
    def tree(self) -> NoisyTree:
        """The tree and what was released of it."""
        return self.passer.tree

    @property
    def log_evidence(self) -> float:
        """The log chance of what was released; of weights that are no probability but for a constant."""
        return self.hyperparameters.log_evidence

    @property
    def most_drawn(self) -> int:
        """Counts that draws hold at a time, where they are not asked for themselves."""
        # More than in one process: every time pieces are passed anew.
        return 8 * MOST_DRAWN

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
        passer=passer,
        hyperparameters=hyperparameters,
        marginals=tuple(of_top),
        outsides=outsides,
        rounding=max(*(way.rounding for way in ways), *(piece.rounding for piece in pieces.values())),
        cut=max(*(way.cut for way in ways), *(piece.cut for piece in pieces.values())),
        answers={(CENTRAL, _MASS): columns},
    )
