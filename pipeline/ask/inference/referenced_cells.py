r"""Nodes of the likelihood of cells of any family with one sum, by posteriors under conjugate references.

Model. By Bayes' theorem a posterior over its conjugate prior is the likelihood, the latent sum and the number
of records integrated out (``any_prior``). The sizes of cells are not told apart, so that populations have no
slope on them.

Method. Three references: the family's default, and two about the middle of all cells, whose widths on the
line are ``_WIDTHS``, so that one of them is resolved wherever a population of the cells may be. Where none
is, by ``_DEEP`` nats below its top, the likelihood is taken for 0. Under fine and rough mixtures log
likelihoods of 60 cells of 12 to 500 records differed by at most .005 nats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice.pipeline.ask.inference.any_prior import (
    LINES,
    alike,
    conjugate_default,
    likelihood,
    references_of,
)
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines.pooled.cells import Focus, Nodes, nodes_of_positions

if TYPE_CHECKING:
    from suffice.pipeline.ask.inference.any_prior import Reference
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Cells

_WIDTHS = (0.5, 1.5)
_DEEP = 16.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencedCells:
    """Made by ``of``; a ``CellsSource``.

    Attributes
    ----------
    references : list of tuple of Reference
        Of every cell.
    ends : (float, float)
        Of the line.
    middle : float
    """

    references: list[tuple[Reference, ...]] = field(repr=False)
    ends: tuple[float, float]
    middle: float

    @classmethod
    def of(cls, statistic: NoisyStatistic, n_prior: NPrior) -> Self:
        """Work out all references."""
        family = FAMILIES[statistic.plan.family]
        latent: Any = family.latent
        default = conjugate_default(family, statistic.plan.parameters)
        first = references_of(latent(statistic, default, n_prior))
        middle = float(np.median([reference.middle for reference in first]))
        others = [
            references_of(latent(statistic, alike(family.prior, middle, width), n_prior)) for width in _WIDTHS
        ]
        return cls(
            references=list(zip(first, *others, strict=True)), ends=LINES[family.prior].ends, middle=middle
        )

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return len(self.references)

    @property
    def has_sizes(self) -> bool:
        """False."""
        return False

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        """Nodes of some cells."""
        chosen = [self.references[cell] for cell in cells.tolist()]
        centre = np.array([each[-1].middle for each in chosen])
        width = np.clip([each[-1].spread for each in chosen], 1e-3, 2.0)
        x, log_dx = nodes_of_positions(centre, width, focus, self.ends)
        rows = []
        for references, position in zip(chosen, x, strict=True):
            log_likelihood, depth = likelihood(references, position)
            rows.append(np.where(depth < -_DEEP, -np.inf, log_likelihood))
        return Nodes.of(x, log_dx, np.zeros((len(cells), 1)), np.stack(rows)[:, :, None])
