"""Distributions of several columns' parameters, given that they lie where those of bounded records can.

A posterior under a prior that is restricted to a region is the posterior under the whole prior, given that
region. Cells of which less than a 10,000th lies outside stay as they are, but for draws outside, which are
moved to the edge. Of the others draws outside are left out, and moments and quantiles are those of the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np

from suffice.pipeline.math.distributions.distribution import Distribution
from suffice.pipeline.math.distributions.composite import Draws
from suffice.pipeline.math.distributions.within_limits import NEGLIGIBLE, Restricted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.math.distributions.regions import Region
    from suffice.typing import Cells, Floats, Mask

_DRAWN, _FEWEST, _MOST_ROUNDS = 20_000, 500, 5
"""Draws of a round, draws of a cell that are enough, and rounds."""
_LEAST_KEPT, _MOST_KEPT = 1000, 8000
"""Draws of a cell that are kept."""
_NUMBERS, _KEPT_NUMBERS = 1 << 22, 1 << 24
"""Numbers that are drawn at once, and that all cells keep within the limits of one."""


@runtime_checkable
class OfSomeCells(Distribution, Protocol):
    """A distribution of which some cells can be taken."""

    def take(self, cells: Cells) -> Self:
        """Return the distribution of some cells, ascending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithinSeveral(Draws, Restricted):
    """A distribution given that its parameters lie in a region; made by ``within_several``.

    Attributes
    ----------
    region : Region
    drawn : dict of str to ndarray of shape (n_kept, n_cut, ...), float64
        Draws in the region, of the cells of which it cuts off a part.
    cut : ndarray of shape (n_cells,), bool
        Which they are.
    """

    region: Region
    drawn: Mapping[str, Floats]
    cut: Mask

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.plain.parameters

    @property
    def components(self) -> Mapping[str, tuple[str, ...]]:
        """What each parameter is of, where it is of several."""
        components: Mapping[str, tuple[str, ...]] = getattr(self.plain, "components", {})
        return components

    @property
    def diagnostics(self) -> dict[str, Any]:
        """Those of the distribution without a region."""
        return dict(getattr(self.plain, "diagnostics", {}))

    def mean(self, parameter: str) -> Floats:
        """Means."""
        mean = np.array(self.plain.mean(parameter))
        mean[self.cut] = self.drawn[parameter].mean(axis=0)
        return mean

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        sd = np.array(self.plain.sd(parameter))
        sd[self.cut] = self.drawn[parameter].std(axis=0)
        return sd

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        sample = self.plain.sample(draws, rng)
        if not self.region.inside(sample).all():
            sample = self.region.nearest(sample)
        if self.cut.any():
            kept = len(self.drawn[self.parameters[0]])
            chosen = rng.integers(kept, size=(draws, int(self.cut.sum())))
            for name, values in self.drawn.items():
                sample[name][:, self.cut] = values[chosen, np.arange(values.shape[1])]
        return sample


def within_several(plain: Distribution, region: Region) -> Distribution:
    """Restrict the parameters of several columns to a region."""
    cut = region.near(plain)
    if not cut.any() or not isinstance(plain, OfSomeCells):
        # One draw of no cell: moments and quantiles of no draws would be asked of nothing.
        nothing = {name: np.empty((1, 0, *plain.mean(name).shape[1:])) for name in plain.parameters}
        return WithinSeveral(plain=plain, region=region, drawn=nothing, cut=np.zeros_like(cut))
    cells = np.flatnonzero(cut)
    entries = sum(int(np.prod(plain.mean(name).shape[1:])) for name in plain.parameters)
    kept = int(np.clip(_KEPT_NUMBERS // (entries * len(cells)), _LEAST_KEPT, _MOST_KEPT))
    step = max(1, _NUMBERS // (_DRAWN * entries))
    parts = [
        _drawn_inside(plain.take(cells[start : start + step]), region, kept)
        for start in range(0, len(cells), step)
    ]
    is_cut = np.concatenate([outside for outside, _ in parts])
    cut[cut] = is_cut
    drawn = {
        name: np.concatenate([part_draws[name] for _, part_draws in parts], axis=1)
        for name in plain.parameters
    }
    return WithinSeveral(
        plain=plain, region=region, drawn={name: values[:, is_cut] for name, values in drawn.items()}, cut=cut
    )


def _drawn_inside(part: Distribution, region: Region, kept: int) -> tuple[Mask, dict[str, Floats]]:
    """Return of which cells more than ``NEGLIGIBLE`` lies outside, and draws inside, (kept, n_cells, ...)."""
    # Always the same draws: what is asked of a posterior twice is answered alike.
    rng = np.random.default_rng(0)
    drawn = part.sample(_DRAWN, rng)
    inside = region.inside(drawn)
    is_cut = np.asarray(np.mean(~inside, axis=0) > NEGLIGIBLE)
    for _ in range(_MOST_ROUNDS - 1):
        if not is_cut.any() or inside.sum(axis=0)[is_cut].min() >= _FEWEST:
            break
        more = part.sample(_DRAWN, rng)
        drawn = {name: np.concatenate([values, more[name]]) for name, values in drawn.items()}
        inside = np.concatenate([inside, region.inside(more)])
    # Where prior and released values contradict each other: the nearest that bounded records can have.
    few = inside.sum(axis=0) < _FEWEST
    if few.any():
        moved = region.nearest({name: values[:, few] for name, values in drawn.items()})
        for name, values in moved.items():
            drawn[name][:, few] = values
        inside[:, few] = True
    kept_draws = {name: np.empty((kept, *values.shape[1:])) for name, values in drawn.items()}
    for cell in np.flatnonzero(is_cut):
        rows = np.resize(np.flatnonzero(inside[:, cell]), kept)
        for name, values in drawn.items():
            kept_draws[name][:, cell] = values[rows, cell]
    return is_cut, kept_draws
