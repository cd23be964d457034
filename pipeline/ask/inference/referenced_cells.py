r"""Nodes of the likelihood of cells of any family with one sum, by posteriors under conjugate references.

Model. By Bayes' theorem a posterior over its conjugate prior is the likelihood, latent sums integrated out
(``any_prior``). It is a mixture of conjugate distributions, each given a number of records; those of about
the same number together are what the likelihood has of that size,

.. math:: L(x, B) = Z \sum_{i: N_i \in B} \omega_i \, p(x \mid N_i, S_i) / \pi(x). \qquad (1)

Method. Three references: the family's default, and two about the middle of all cells, whose widths on the
line are ``_WIDTHS``, so that one of them is resolved wherever a population of the cells may be. Where none
is, by ``_DEEP`` nats below its top, the likelihood is taken for 0. Sizes are in ``_CLASSES`` classes, even
in log(1 + N), each of which counts as its mean. Pairs (N, S) are merged with the fineness ``_FINENESS``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice.pipeline.ask.inference.any_prior import LINES, alike, conjugate_default, references_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines.pooled.cells import Focus, Nodes, nodes_of_positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.ask.inference.any_prior import Reference
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Cells, Floats

_WIDTHS = (0.5, 1.5)
_DEEP = 16.0
_CLASSES = 8
_FINENESS, _NEGLIGIBLE = 2.0, 1e-8


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
    has_sizes : bool
        Whether numbers of records are latent.
    """

    references: list[tuple[Reference, ...]] = field(repr=False)
    ends: tuple[float, float]
    middle: float
    has_sizes: bool

    @classmethod
    def of(cls, statistic: NoisyStatistic, n_prior: NPrior) -> Self:
        """Work out all references."""
        family = FAMILIES[statistic.plan.family]
        latent: Any = family.latent
        default = conjugate_default(family, statistic.plan.parameters)
        first = references_of(latent(statistic, default, n_prior), _FINENESS, _NEGLIGIBLE)
        middle = float(np.median([reference.middle for reference in first]))
        others = [
            references_of(
                latent(statistic, alike(family.prior, middle, width), n_prior), _FINENESS, _NEGLIGIBLE
            )
            for width in _WIDTHS
        ]
        low, high = n_prior.support
        return cls(
            references=list(zip(first, *others, strict=True)),
            ends=LINES[family.prior].ends,
            middle=middle,
            has_sizes=low < high,
        )

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return len(self.references)

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        """Nodes of some cells."""
        chosen = [self.references[cell] for cell in cells.tolist()]
        centre = np.array([each[-1].middle for each in chosen])
        width = np.clip([each[-1].spread for each in chosen], 1e-3, 2.0)
        x, log_dx = nodes_of_positions(centre, width, focus, self.ends)
        log_size, log_likelihood = [], []
        for references, position in zip(chosen, x, strict=True):
            members, of_class = _classes(references, _CLASSES if self.has_sizes else 1)
            log_size.append(of_class)
            log_likelihood.append(_log_likelihood(references, members, position))
        return Nodes.of(x, log_dx, np.stack(log_size), np.stack(log_likelihood))


def _classes(references: Sequence[Reference], n_classes: int) -> tuple[list[NDArray[np.float32]], Floats]:
    """Return which distributions are of which class, of every reference, and each class' mean log(1 + N)."""
    sizes = [np.log1p(reference.n) for reference in references]
    weights = [np.exp(reference.log_weight) for reference in references]
    size, weight = np.concatenate(sizes), np.concatenate(weights)
    # Classes are even where all but 1e-4 of the weight of some reference is.
    order = np.argsort(size)
    below = np.cumsum(weight[order]) / np.sum(weight)
    low, high = size[order][np.searchsorted(below, [1e-4, 1.0 - 1e-4])]
    edges = np.linspace(low, high, n_classes + 1)[1:-1]
    of_all = [np.searchsorted(edges, each, side="right") for each in sizes]
    numbers = np.concatenate(of_all)
    total = np.bincount(numbers, weight, n_classes)
    middle = np.bincount(numbers, weight * size, n_classes) / np.maximum(total, 1e-300)
    members = [np.zeros((len(each), n_classes), dtype=np.float32) for each in of_all]
    for of_reference, each in zip(members, of_all, strict=True):
        of_reference[np.arange(len(each)), each] = 1.0
    return members, np.where(total > 0.0, middle, low)


def _log_likelihood(
    references: Sequence[Reference], members: Sequence[NDArray[np.float32]], position: Floats
) -> Floats:
    """Return (1) of one cell at positions, (n_positions, n_classes)."""
    of_prior = np.stack([reference.log_prior(position) for reference in references])
    ratio = np.stack(
        [
            reference.ratio.of_classes(position, each)
            for reference, each in zip(references, members, strict=True)
        ]
    )
    tops, evidences = np.array([[each.top, each.log_evidence] for each in references]).T[:, :, None]
    depth = np.max(np.logaddexp.reduce(ratio, axis=2) + of_prior - tops, axis=0)
    # (1) of ``any_prior``, class by class: those of all references over their priors.
    share = of_prior - np.max(of_prior, axis=0)
    together = np.logaddexp.reduce(ratio + share[:, :, None])
    value = together - np.logaddexp.reduce(share - evidences)[:, None]
    return np.where(depth[:, None] < -_DEEP, -np.inf, value)
