"""The law of a family's parameter when N and the sum are latent: a mixture of its conjugate posteriors."""

# ruff: noqa: ARG002 - the laws share one interface, and no law needs all of it

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from suffice.pipeline.latent_sums.components import Components
from suffice.pipeline.latent_sums.latent import batches, resolve
from suffice.pipeline.latent_sums.sampling import tiles_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.latent_sums.noisy import NoisySums
    from suffice.pipeline.laws import Law

    Floats: TypeAlias = NDArray[np.float64]
    Update: TypeAlias = Callable[[Floats, Floats], Law]


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentSumLaw:
    """The law of one parameter; made by ``LatentSumLaw.of``.

    Attributes
    ----------
    sums : NoisySums
        The noisy sums and the law that they came from.
    update : callable
        N and S, each (n,) -> the parameter's conjugate law, n cells of it.
    name : str
        The parameter's.
    components : tuple of Components
        Of every batch of cells.
    means, sds, log_evidence : ndarray of shape (n_cells,), float64
        Posterior means and standard deviations, and the log of the marginal likelihood but for a constant
        that does not depend on the prior.
    """

    sums: NoisySums
    update: Update
    name: str
    components: tuple[Components, ...]
    means: Floats
    sds: Floats
    log_evidence: Floats

    @classmethod
    def of(cls, sums: NoisySums, update: Update) -> Self:
        """Sum up the moments of every cell."""
        cells = len(sums.first)
        means, sds, log_evidence = np.empty(cells), np.empty(cells), np.empty(cells)
        components = []
        (name,) = update(np.zeros(1), np.zeros(1)).parameters
        for batch in batches(sums):
            nodes = resolve(sums.take(batch))
            law = update(nodes.n, nodes.total)
            mean, sd = law.mean(name), law.sd(name)
            used = nodes.weight > 0.0
            cell, weight = nodes.cell[used], nodes.weight[used]
            centre = np.bincount(cell, weight * mean[used], len(batch))
            with np.errstate(invalid="ignore"):
                squares = sd[used] ** 2 + (mean[used] - centre[cell]) ** 2
            squares[np.isnan(squares)] = np.inf
            means[batch] = centre
            sds[batch] = np.sqrt(np.bincount(cell, weight * squares, len(batch)))
            log_evidence[batch] = nodes.log_evidence
            components.append(Components.of(nodes, law, len(batch)))
        return cls(
            sums=sums,
            update=update,
            name=name,
            components=tuple(components),
            means=means,
            sds=sds,
            log_evidence=log_evidence,
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return (self.name,)

    def mean(self, parameter: str) -> Floats:
        """Means; infinite where there is none."""
        return self.means

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations; infinite where there is none."""
        return self.sds

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles of merged components; see ``components``. They do not rest on draws."""
        return np.concatenate(
            [
                part.quantiles(self.update, q, len(batch))
                for part, batch in zip(self.components, batches(self.sums), strict=True)
            ]
        )

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws."""
        result = np.empty((draws, len(self.means)))
        for batch in batches(self.sums):
            n, total = tiles_of(self.sums.take(batch)).sample(np.tile(np.arange(len(batch)), draws), rng)
            drawn = self.update(n, total).sample(1, rng)[self.name][0]
            result[:, batch] = drawn.reshape(draws, len(batch))
        return {self.name: result}
