"""Distributions that answer by their draws."""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.typing import Floats


class Draws(ABC):
    """A distribution whose quantiles are those of its draws."""

    __slots__ = ()

    @abstractmethod
    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws."""

    @property
    def is_from_draws(self) -> bool:
        """Whether quantiles are those of draws."""
        return True

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Return None: only draws are known."""
        return None

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Marginal quantiles of draws."""
        drawn = np.moveaxis(self.sample(draws, rng)[parameter], 0, -1)
        return np.moveaxis(np.quantile(drawn, q, axis=-1, overwrite_input=True), 0, -1)


def from_draws(distribution: object) -> bool:
    """Tell whether the quantiles of a distribution are those of draws: other draws give slightly others."""
    return bool(getattr(distribution, "is_from_draws", False))
