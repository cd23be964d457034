"""A tree of counts with released values: every inner count is the sum of those right below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.typing import Counts, Floats, Rows

MOST = 2**52
"""The largest released value: floats hold whole numbers exactly so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyTree:
    """A tree of counts, the root's level first, and what was released of each level.

    Attributes
    ----------
    parents : tuple of ndarray of int64
        Of every level but the first: where each node's parent stands in the level above.
    values : tuple of (ndarray of int64 or None)
        The released value of each node of a level; None where the level was not released.
    scales : tuple of (float or None)
        Of the discrete Laplace noise of each level, above 0; None where it was not released.
    sizes : ndarray or None, shape (n_leaves,)
        Known sizes of leaves, above 0, to which the mean of their counts is proportional; None of equal ones.
    is_part : bool
        Part of a larger tree, of which other parts or levels may be the only ones that were released.

    Raises
    ------
    UsageError
        Where these do not fit each other, or nothing was released.
    """

    parents: tuple[Rows, ...]
    values: tuple[Counts | None, ...]
    scales: tuple[float | None, ...]
    sizes: Floats | None = None
    is_part: bool = False

    def __post_init__(self) -> None:
        if len(self.values) != len(self.parents) + 1 or len(self.scales) != len(self.values):
            message = (
                "a tree has values and a scale of every level, or None, and parents of all but the first"
            )
            raise UsageError(message)
        if not self.is_part and all(values is None for values in self.values):
            message = "no level of the tree was released: there is nothing to learn from"
            raise UsageError(message)
        for level, (values, scale) in enumerate(zip(self.values, self.scales, strict=True)):
            if (values is None) != (scale is None):
                message = (
                    f"level {level} of the tree has values or a scale, and not both: give both or neither"
                )
                raise UsageError(message)
            if values is None or scale is None:
                continue
            if values.shape != (self.n_nodes(level),):
                message = (
                    f"level {level} of the tree has {self.n_nodes(level)} nodes, and needs a value of each"
                )
                raise UsageError(message)
            if not 0.0 < scale < np.inf:
                message = f"the noise of level {level} of the tree has a scale above 0, not {scale!r}"
                raise UsageError(message)
            if np.abs(values).max() > MOST:
                message = f"level {level} of the tree has a value beyond 2^52, where floats are not whole"
                raise UsageError(message)
        if self.sizes is not None and (
            self.sizes.shape != (self.n_leaves,)
            or not np.isfinite(self.sizes).all()
            or not (self.sizes > 0.0).all()
        ):
            message = f"sizes are of all {self.n_leaves} leaves, and above 0"
            raise UsageError(message)

    @property
    def depth(self) -> int:
        """The number of the leaves' level."""
        return len(self.parents)

    @property
    def n_leaves(self) -> int:
        """How many leaves there are."""
        return self.n_nodes(self.depth)

    def n_nodes(self, level: int) -> int:
        """Return how many nodes a level has."""
        return 1 if level == 0 else len(self.parents[level - 1])

    def bounds(self, reach: float) -> Floats:
        """Return a count, (n_leaves,), that each leaf exceeds only if a noise above it exceeds its reach.

        Parameters
        ----------
        reach : float
            In scales of the noise.
        """
        bounds: Floats = np.full(1, np.inf)
        for level, (values, scale) in enumerate(zip(self.values, self.scales, strict=True)):
            if level:
                bounds = bounds[self.parents[level - 1]]
            if values is not None and scale is not None:
                bounds = np.minimum(bounds, np.maximum(values, 0) + np.ceil(reach * scale))
        return bounds

    def contradictions(self) -> Iterator[Floats]:
        """Give for every level but the leaves' how far each value is from the sum released below it.

        In standard deviations of the noise of their difference, that of b being about sqrt(2) b; 0 where the
        level was not released, or none below it.
        """
        for level in range(self.depth):
            far = np.zeros(self.n_nodes(level))
            value, scale = self.values[level], self.scales[level]
            ancestor = np.arange(self.n_nodes(level))
            for below in range(level + 1, self.depth + 1):
                ancestor = ancestor[self.parents[below - 1]]
                values, noise = self.values[below], self.scales[below]
                if value is None or scale is None or values is None or noise is None:
                    continue
                sums = np.bincount(ancestor, weights=values, minlength=len(far))
                variance = 2.0 * (scale**2 + np.bincount(ancestor, minlength=len(far)) * noise**2)
                far = np.maximum(far, np.abs(value - sums) / np.sqrt(variance))
            yield far
