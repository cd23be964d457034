"""What tasks do with pieces of a tree: messages upward, marginals, draws, and the evidence of leaves.

A task has all that it needs in its arguments, and returns its number with its answer, as tasks may end in
any order. It works its pieces' messages out again, so that nothing is kept where it ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from suffice.pipeline.math.engines.tree.drawing import draw_below
from suffice.pipeline.math.engines.tree.passes import Downward
from suffice.pipeline.math.engines.tree.posterior import MOST_DRAWN, mixed
from suffice.pipeline.math.engines.tree.summaries import equal_tailed, moments, shortest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.tree.messages import Block, Ragged
    from suffice.pipeline.math.engines.tree.passes import LeafKeys, Passer
    from suffice.pipeline.math.engines.tree.populations import Population
    from suffice.typing import Counts, Floats, Rows

Run = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], Iterator[Any]]
"""Runs a task for each tuple of arguments, and gives results in any order, as ``cluster.stream`` does."""
Columns = tuple["Floats", "Floats", "Counts", "Counts"]
"""Means, standard deviations, lower and upper ends."""
CENTRAL, SHORTEST = "central", "shortest"
_ENDS = {CENTRAL: equal_tailed, SHORTEST: shortest}


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
