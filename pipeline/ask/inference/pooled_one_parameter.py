r"""Products of likelihoods of one parameter, by quadrature: exact but for it, and free of draws.

With R disjoint data sets that share a parameter and nothing else

.. math:: p(\theta \mid y_1, \dots, y_R) \propto \pi(\theta) \prod_r p(y_r \mid \theta),

each likelihood from ``any_prior.Reference``: those under the family's default prior and one like the given.
Where the product lies in the far tails of a data set's own, its further references have priors that pull as
strongly from the other side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.any_prior import (
    LINES,
    NARROWEST,
    Reference,
    alike,
    conjugate_default,
    likelihood,
    references_of,
)
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.adaptive_blocks import divide_line
from suffice.pipeline.math.distributions.distribution import coordinate_of
from suffice.pipeline.math.distributions.quadrature import GriddedDistribution, integral_rule
from suffice.pipeline.math.priors.density import Density, DensityOnLine
from suffice.pipeline.math.priors.mixtures import Mixture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.math.distributions.distribution import Line, Prior
    from suffice.pipeline.math.distributions.quadrature import Cell
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


_CELLS = 64
_FINENESS = 2.0
_NOTHING = -1e100
_RISE = 24.0
_NATS = 45.0
"""Panels lower than the highest by so much at both ends are left out."""
_DEEP = 16.0
"""Nats below its highest density at which a reference posterior no longer counts as resolved."""
_TOLERABLE = 1e-5
_MOST_ROUNDS = 12
_HARDER = 0.7
"""How much narrower each further reference's prior is."""


def pooled_grid_distribution(
    parts: Sequence[NoisyStatistic], prior: Prior | Mixture | Density, n_priors: Sequence[NPrior]
) -> GriddedDistribution:
    """Return the posterior of the one parameter that statistics of disjoint data share, cell by cell.

    Parameters
    ----------
    parts : sequence of NoisyStatistic
        Of a family with one parameter.
    prior : Prior, Mixture or Density
    n_priors : sequence of NPrior
        Of every part's own number of rows.

    Raises
    ------
    PriorError
        Where the prior cannot be told from an improper one.
    UsageError
        Where the data sets contradict each other so much that the posterior cannot be resolved.
    """
    plan = parts[0].plan
    family = FAMILIES[plan.family]
    default = conjugate_default(family, plan.parameters)
    _, update = _latent(family, parts[0], default, n_priors[0])
    none = update(np.zeros(1), np.zeros(1))
    line, typical = LINES[family.prior], float(coordinate_of(none).centre[0])
    density = prior if isinstance(prior, Density) else _density(family, parts[0], prior, n_priors[0], line)
    on_line = DensityOnLine.of(density, line, typical)
    # A conjugate prior has neither kinks nor several modes: all but the octaves are found by dividing.
    edges = on_line.edges if isinstance(prior, Mixture | Density) else _octaves(on_line)
    start = [default, alike(family.prior, on_line.centre, max(on_line.width, NARROWEST))]

    def cells() -> Iterator[Cell]:
        for first in range(0, len(parts[0].values), _CELLS):
            rows = np.arange(first, min(first + _CELLS, len(parts[0].values)))
            few = [part.take(rows) for part in parts]
            by_part = [
                _by_cell(family, part, start, given) for part, given in zip(few, n_priors, strict=True)
            ]
            for position, row in enumerate(rows.tolist()):

                def one_more(release: int, given: Any, row: int = row) -> Reference:
                    statistic = parts[release].take(np.array([row]))
                    return _by_cell(family, statistic, [given], n_priors[release])[0][0]

                yield _cell(
                    family.prior, on_line, edges, [of_part[position] for of_part in by_part], one_more
                )

    (name,) = none.parameters
    return GriddedDistribution.of(name, line, cells())


def _octaves(prior: DensityOnLine) -> Floats:
    sides = prior.width * np.exp2(np.arange(1.0, 250.0, 2.0))
    positions = np.concatenate([prior.centre - sides, [prior.centre], prior.centre + sides])
    return np.unique(np.clip(positions, prior.first, prior.last))


def _latent(family: Family, statistic: NoisyStatistic, prior: Any, n_prior: NPrior) -> Any:
    if family.latent is None:
        raise TypeError(family.name)
    return family.latent(statistic, prior, n_prior)


def _by_cell(
    family: Family, statistic: NoisyStatistic, priors: Sequence[Any], n_prior: NPrior
) -> list[list[Reference]]:
    """Return every cell's references under these priors."""
    by_part = [references_of(_latent(family, statistic, prior, n_prior), _FINENESS) for prior in priors]
    return [list(of_cell) for of_cell in zip(*by_part, strict=True)]


def _density(
    family: Family, statistic: NoisyStatistic, prior: Prior | Mixture, n_prior: NPrior, line: Line
) -> Density:
    """Return the density of a conjugate prior, or of a mixture of such."""
    components = prior.components if isinstance(prior, Mixture) else (prior,)
    weights = np.array(prior.weights if isinstance(prior, Mixture) else (1.0,))
    distributions = []
    for component in components:
        _, update = _latent(family, statistic, component, n_prior)
        distributions.append(coordinate_of(update(np.zeros(1), np.zeros(1))))

    def log_density(parameter: Floats) -> Floats:
        position = line.position(parameter)
        parts = [distribution.log_density(position[:, None])[:, 0] for distribution in distributions]
        mixed: Floats = np.logaddexp.reduce(np.log(weights)[:, None] + parts) - line.log_slope(position)
        return mixed

    hints = line.parameter(np.array([float(distribution.centre[0]) for distribution in distributions]))
    return Density(log_density, *line.domain, name=str(prior), hints=tuple(hints.tolist()))


@dataclass(frozen=True, slots=True)
class _Product:
    """The log of the prior and all likelihoods of one cell, but for a constant."""

    prior: DensityOnLine
    releases: Sequence[Sequence[Reference]]

    def __call__(self, position: Floats) -> tuple[Floats, list[Floats]]:
        """Log densities at positions (n,), and how far below its mode each release's best reference is."""
        product = self.prior.log_density(position)
        depths = []
        for references in self.releases:
            log_likelihood, depth = likelihood(references, position)
            product += log_likelihood
            depths.append(depth)
        return product, depths


def _cell(
    kind: type[Prior],
    prior: DensityOnLine,
    edges: Floats,
    releases: list[list[Reference]],
    one_more: Callable[[int, Prior], Reference],
) -> Cell:
    """Return panels and the log density; with further references where those at hand know too little."""
    pulled: dict[int, tuple[float, float]] = {}
    for turn in range(2 * _MOST_ROUNDS):
        product = _Product(prior, releases)
        left, right = _panels(product, edges)
        nodes, weights = integral_rule(left, right)
        log_value, depths = product(nodes.ravel())
        share = np.exp(log_value - np.max(log_value)) * weights.ravel()
        share /= np.sum(share)
        hidden = [np.where(depth < -_DEEP, share, 0.0) for depth in depths]
        unresolved = [release for release, mass in enumerate(hidden) if np.sum(mass) > _TOLERABLE]
        if not unresolved:
            return left, right, _known(log_value)
        centre = float(share @ nodes.ravel())
        releases = [list(references) for references in releases]
        for release in unresolved:
            first, last = releases[release][0], releases[release][-1 if release in pulled else 0]
            if turn < _MOST_ROUNDS:
                # A normal likelihood about m and a prior of the same width about 2 c - m meet at c.
                position, width = pulled.get(release, (centre, max(last.spread, NARROWEST)))
                position += (2.0 if release in pulled else 1.0) * (centre - last.middle)
                pulled[release] = position, width
            else:
                # Wide noise leaves likelihoods no normal ones: ever harder, to where most is not known.
                position = float(nodes.ravel()[np.argmax(hidden[release])])
                width = max(first.spread * _HARDER ** (turn - _MOST_ROUNDS), NARROWEST)
            releases[release].append(one_more(release, alike(kind, position, width)))
    message = (
        "the pooled data barely fit one parameter, so that its posterior cannot be resolved: pool fewer "
        "of them, or keep cells with where"
    )
    raise UsageError(message)


def _known(log_value: Floats) -> Callable[[Floats], Floats]:
    """Return a density that is asked for at the nodes of its panels, where it has just been worked out."""
    return lambda _nodes: log_value


def _panels(product: _Product, edges: Floats) -> tuple[Floats, Floats]:
    """Panels that are fine where the product is, and coarse ones out to the ends of the prior's support."""
    middles = [reference.middle for references in product.releases for reference in references]
    start = np.unique(np.concatenate([edges, np.clip(middles, edges[0], edges[-1])]))

    def evaluate(position: Floats) -> Floats:
        return np.maximum(product(position.ravel())[0], _NOTHING).reshape(position.shape)

    left, right, _ = divide_line(evaluate, start, most_rise=_RISE)
    # Halves: the distribution function has a number of knots in every panel.
    edges = np.unique(np.concatenate([start, left, (left + right) / 2.0, right]))
    value, _ = product(edges)
    kept = np.maximum(value[:-1], value[1:]) > np.max(value) - _NATS
    kept[[0, -1]] = True
    return edges[:-1][kept], edges[1:][kept]
