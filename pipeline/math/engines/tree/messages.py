r"""Messages over whole numbers: weights on windows, many rows at once.

A message is a function of a count n that is not negative. It is held on a window, from ``low`` on, with
weights that add up to 1, and the logarithm of what it was divided by. Rows of a block have windows of equal
width, so that one call of the FFT serves all of them. Of two parts with the messages L and R, the sum has

.. math:: S(s) = \sum_l L(l) R(s - l), \qquad (1)

and what the rest of the tree says of s, D(s), says of the first part

.. math:: O_L(l) = \sum_r R(r) D(l + r). \qquad (2)

(1) is a convolution, (2) a correlation. Both are products of the same spectra, of any length from
:math:`W_L + W_R - 1` on, for l and r stay inside their windows. The FFT errs by rounding of the largest
weight: what comes out below 0 is 0, and windows are cut where the weights outside add up to at most a share
``tail`` of all, on either side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy import fft

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.typing import Counts, Floats, Rows


@dataclass(frozen=True, slots=True)
class Block:
    """Messages with windows of equal width.

    Attributes
    ----------
    low : ndarray of int64, shape (n_rows,)
        Where each window begins.
    weights : ndarray, shape (n_rows, width)
        At ``low``, ``low + 1`` and on; of each row they add up to 1.
    """

    low: Counts
    weights: Floats

    def __len__(self) -> int:
        """Return how many messages there are."""
        return len(self.low)

    @property
    def width(self) -> int:
        """How many counts a window holds."""
        return int(self.weights.shape[1])

    def take(self, rows: Rows) -> Self:
        """Return the given rows, in the given order."""
        return type(self)(self.low[rows], self.weights[rows])


@dataclass(frozen=True, slots=True)
class Ragged:
    """Messages with windows of any width, one after the other.

    Attributes
    ----------
    low, width, offset : ndarray of int64, shape (n_rows,)
        Where each window begins, how many counts it holds, and where its weights begin.
    weights : ndarray
        Of all rows.
    """

    low: Counts
    width: Counts
    offset: Rows
    weights: Floats

    @classmethod
    def empty(cls, n_rows: int) -> RaggedParts:
        """Return a collection of so many rows to be put in."""
        return RaggedParts(np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64))

    def block(self, rows: Rows) -> Block:
        """Return some rows with the width of the widest, 0 beyond their own."""
        width = self.width[rows]
        columns = np.arange(int(width.max()))
        inside = columns < width[:, None]
        places = np.where(inside, self.offset[rows][:, None] + columns, 0)
        return Block(self.low[rows], np.where(inside, self.weights.take(places), 0.0))

    def add(self, rows: Rows, block: Block, factor: float) -> None:
        """Add a multiple of a block's weights to some rows, where they have windows."""
        columns = np.arange(block.width)
        within = (block.low - self.low[rows])[:, None] + columns
        places = self.offset[rows][:, None] + within
        inside = within < self.width[rows][:, None]
        if inside.all():
            self.weights[places] += factor * block.weights
        else:
            self.weights[places[inside]] += factor * block.weights[inside]

    def row(self, row: int) -> Floats:
        """Return the weights of one row."""
        start = int(self.offset[row])
        return self.weights[start : start + int(self.width[row])]


class RaggedParts:
    """Rows that come block by block, until all are there."""

    def __init__(self, low: Counts, width: Counts, offset: Rows) -> None:
        self._low, self._width, self._offset = low, width, offset
        self._blocks: list[Floats] = []
        self._length = 0

    def put(self, rows: Rows, block: Block) -> None:
        """Put a block in as the given rows."""
        self._low[rows], self._width[rows] = block.low, block.width
        self._offset[rows] = self._length + np.arange(len(rows)) * block.width
        self._blocks.append(block.weights.ravel())
        self._length += block.weights.size

    def done(self) -> Ragged:
        """Return all rows."""
        weights = np.concatenate(self._blocks) if self._blocks else np.zeros(0)
        return Ragged(self._low, self._width, self._offset, weights)


def windows(weights: Floats, start: Rows, width: int) -> Floats:
    """Return so many weights of each row from its start on, which lie inside it."""
    row = np.arange(len(weights), dtype=np.int64) * weights.shape[1]
    kept: Floats = weights.ravel().take((row + start)[:, None] + np.arange(width))
    return kept


def placed(block: Block, low: Counts, width: int) -> Floats:
    """Return a block's weights on other windows, from low on; 0 where it has none."""
    columns = np.arange(width)
    places = columns + (low - block.low)[:, None]
    inside = (places >= 0) & (places < block.width)
    places += (np.arange(len(block), dtype=np.int64) * block.width)[:, None]
    return np.where(inside, block.weights.take(np.where(inside, places, 0)), 0.0)


def normalised(low: Counts, weights: Floats, tail: float) -> tuple[Block, Floats]:
    """Cut windows where what is outside is less than a share of all, and divide by the sum.

    Parameters
    ----------
    low : ndarray of int64, shape (n_rows,)
    weights : ndarray, shape (n_rows, width), >= 0
        Of no row are all 0.
    tail : float
        The share that is cut at most, on either side.

    Returns
    -------
    Block
    ndarray, shape (n_rows,)
        Logarithms of the sums.
    """
    total = weights.sum(axis=1)
    # So many weights below this add up to no more than the share.
    is_kept = weights > (tail / weights.shape[1] * total)[:, None]
    start = is_kept.argmax(axis=1)
    stop = weights.shape[1] - is_kept[:, ::-1].argmax(axis=1)
    width = int((stop - start).max())
    start = np.minimum(start, weights.shape[1] - width)
    kept = windows(weights, start, width) if width < weights.shape[1] else weights
    with np.errstate(divide="ignore"):
        return Block(low + start, kept / total[:, None]), np.log(total)


@dataclass(frozen=True, slots=True)
class Halving:
    """How the parts of families are put together two by two.

    Attributes
    ----------
    left, right : ndarray of int64, shape (n_pairs,)
        The parts of every pair.
    pairs, single, alone : ndarray of int64
        Where pairs are among the new parts; where parts without a partner are, and which they were.
    counts : ndarray of int64, shape (n_families,)
        How many parts every family has afterwards.
    """

    left: Rows
    right: Rows
    pairs: Rows
    single: Rows
    alone: Rows
    counts: Rows

    @classmethod
    def of(cls, counts: Rows) -> Self:
        """Pair the parts of families, which stand one after the other; of some the last is left alone."""
        after = (counts + 1) // 2
        starts, new_starts = np.cumsum(counts) - counts, np.cumsum(after) - after
        within = np.arange(int(after.sum()), dtype=np.int64) - np.repeat(new_starts, after)
        left = np.repeat(starts, after) + 2 * within
        is_pair = 2 * within + 1 < np.repeat(counts, after)
        pairs = np.flatnonzero(is_pair)
        single = np.flatnonzero(~is_pair)
        return cls(left[pairs], left[pairs] + 1, pairs, single, left[single], after)

    @property
    def n_parts(self) -> int:
        """How many parts there are afterwards."""
        return len(self.pairs) + len(self.single)


@dataclass(frozen=True, slots=True)
class Sums:
    """One round of sums of two parts, with what its way back needs.

    Attributes
    ----------
    parts : Block
        Messages of the parts; several may be the same row.
    row : ndarray of int64
        The row of every part.
    halving : Halving
    length : int
        Of the FFT.
    spectra : ndarray of complex
        Of the rows.
    block : Block
        Messages of the sums.
    log_sums : ndarray
        What they were divided by.
    """

    parts: Block
    row: Rows
    halving: Halving
    length: int
    spectra: NDArray[np.complex128]
    block: Block
    log_sums: Floats

    @classmethod
    def of(cls, parts: Block, row: Rows, counts: Rows, tail: float) -> Self:
        """Add the parts of families two by two, (1)."""
        halving = Halving.of(counts)
        left, right = row[halving.left], row[halving.right]
        full = 2 * parts.width - 1
        length = fft.next_fast_len(full, real=True)
        spectra = fft.rfft(parts.weights, length, axis=1)
        product = spectra[left] * spectra[right]
        sums = fft.irfft(product, length, axis=1, overwrite_x=True)[:, :full]
        if len(halving.single) == 0:
            low, weights = parts.low[left] + parts.low[right], np.maximum(sums, 0.0)
        else:
            low, weights = np.empty(halving.n_parts, np.int64), np.zeros((halving.n_parts, full))
            low[halving.pairs] = parts.low[left] + parts.low[right]
            np.maximum(sums, 0.0, out=sums)
            weights[halving.pairs] = sums
            low[halving.single] = parts.low[row[halving.alone]]
            weights[halving.single, : parts.width] = parts.weights[row[halving.alone]]
        block, log_sums = normalised(low, weights, tail)
        return cls(parts, row, halving, length, spectra, block, log_sums)

    def back(self, outside: Floats) -> Floats:
        """Return what the rest says of every part, on its window, from what it says of the sums, (2).

        Parameters
        ----------
        outside : ndarray, shape (n_sums, block.width)
            On the windows of the sums.
        """
        halving, width = self.halving, self.parts.width
        left, right = self.row[halving.left], self.row[halving.right]
        result = np.empty((len(self.row), width))
        if len(halving.pairs):
            rows = halving.pairs
            start = self.block.low[rows] - (self.parts.low[left] + self.parts.low[right])
            padded = placed(Block(start, outside[rows]), np.zeros(len(rows), np.int64), 2 * width - 1)
            spectrum = fft.rfft(padded, self.length, axis=1)
            for part, other in ((halving.left, right), (halving.right, left)):
                correlation = fft.irfft(spectrum * self.spectra[other].conj(), self.length, axis=1)
                result[part] = np.maximum(correlation[:, :width], 0.0)
        if len(halving.single):
            rows = halving.single
            block = Block(self.block.low[rows], outside[rows])
            result[halving.alone] = placed(block, self.parts.low[self.row[halving.alone]], width)
        largest = result.max(axis=1, keepdims=True)
        result /= np.where(largest > 0.0, largest, 1.0)
        return result
