r"""Posteriors of one parameter under any prior, by quadrature: exact but for it, and free of draws.

Under a conjugate prior :math:`\pi_k` the noise-aware posterior :math:`p_k(\theta \mid y)` is a mixture of
conjugate distributions and has an evidence :math:`Z_k`, so that the likelihood of the noisy statistics is

.. math::
    p(y \mid \theta) = \frac{\sum_k c_k Z_k \, p_k(\theta \mid y)}{\sum_k c_k \pi_k(\theta)}

for any :math:`c_k > 0`. Two conjugate priors are taken, the family's default and one as wide as the given
prior and where that is, with :math:`c_k = 1 / Z_k`: where one posterior is resolved poorly, far out in its
tails, the other counts. Where both are, more are taken on either side. Times the given
prior this is integrated cell by cell, on panels about all of them.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.distributions.beta import Beta
from suffice.pipeline.distributions.gamma import Gamma
from suffice.pipeline.distributions.inverse_gamma import InverseGamma
from suffice.pipeline.distributions.line import Line
from suffice.pipeline.distributions.normal import Normal
from suffice.pipeline.distributions.on_grid import GriddedDistribution
from suffice.pipeline.distributions.one_parameter import Coordinate, coordinate_of
from suffice.pipeline.engines.one_sum.merged import Components
from suffice.pipeline.engines.one_sum.nodes import batches, resolve
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.posterior.accepted import refused_prior
from suffice.pipeline.priors.density import Density, DensityOnLine
from suffice.pipeline.priors.record_count import Fixed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from suffice.pipeline.distributions.distribution import Distribution
    from suffice.pipeline.distributions.on_grid import Cell
    from suffice.pipeline.distributions.prior import Prior
    from suffice.pipeline.engines.one_sum.noisy_sum import NoisySums
    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.priors.record_count import NPrior
    from suffice.pipeline.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.statistics.block import Parameters
    from suffice.typing import Floats


LINES: dict[type[Prior], Line] = {
    Beta: Line.LOGIT,
    Gamma: Line.LOGARITHM,
    InverseGamma: Line.LOGARITHM,
    Normal: Line.IDENTITY,
}
_FINENESS = 6.0
NARROWEST, _WIDEST, _FARTHEST = 1e-6, 4.0, 200.0
_MOST_STAGES = 9
_PANELS = np.linspace(-11.0, 11.0, 12)
_DEEP = 16.0
"""Nats below its highest density at which a reference posterior no longer counts as resolved."""
_TOLERABLE = 1e-5
_NATS = 45.0
"""Panels lower than the highest by so much at both ends are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The posterior of one cell under a conjugate prior, as a mixture on the line.

    Attributes
    ----------
    prior, posteriors : Coordinate
        The prior's distribution, and those of the mixture.
    log_weight : ndarray of shape (n_laws,), float64
    log_evidence : float
    """

    prior: Coordinate
    posteriors: Coordinate
    log_weight: Floats
    log_evidence: float

    @property
    def top(self) -> float:
        """About the highest log posterior density."""
        heaviest = self.posteriors.centre[int(np.argmax(self.log_weight))]
        return float(np.max(self.log_density(np.array([self.middle, heaviest]))))

    @property
    def middle(self) -> float:
        """Where the mixture is, on average."""
        return float(np.sum(np.exp(self.log_weight) * self.posteriors.centre))

    @property
    def spread(self) -> float:
        """Standard deviation of the mixture."""
        square = self.posteriors.width**2 + (self.posteriors.centre - self.middle) ** 2
        return math.sqrt(float(np.sum(np.exp(self.log_weight) * square)))

    @property
    def edges(self) -> Floats:
        """Panels about the mixture, and about its heaviest distribution."""
        heaviest = int(np.argmax(self.log_weight))
        centre, width = self.posteriors.centre[heaviest], self.posteriors.width[heaviest]
        return np.concatenate([self.middle + self.spread * _PANELS, centre + width * _PANELS])

    def log_density(self, position: Floats) -> Floats:
        """Log posterior density at positions (n,)."""
        parts = self.posteriors.log_density(position[:, None])
        parts += self.log_weight
        top = np.max(parts, axis=1)
        finite = np.where(np.isfinite(top), top, 0.0)
        parts -= finite[:, None]
        with np.errstate(divide="ignore"):
            log_density: Floats = finite + np.log(np.sum(np.exp(parts, out=parts), axis=1))
        return log_density

    def log_prior(self, position: Floats) -> Floats:
        """Log prior density at positions (n,)."""
        return self.prior.log_density(position[:, None])[:, 0]


class _UnresolvedError(Exception):
    """Some cell's posterior lies where no reference posterior is resolved."""


def any_prior_posterior(
    statistic: NoisyStatistic, density: Density, n_prior: NPrior | None
) -> GriddedDistribution:
    """Return the distribution of a family's one parameter; plug-in where there is no prior of N.

    Raises
    ------
    PriorError
        Where the family has several parameters, the prior is improper or leaves the parameter's domain, or
        prior and released values are so far apart that the posterior cannot be resolved.
    """
    plan = statistic.plan
    family = FAMILIES[plan.family]
    if family.latent is None:
        raise refused_prior(plan, density)
    default: Any = family.default_prior(plan.parameters)
    line = LINES[family.prior]
    _, update = family.latent(statistic, default, Fixed(0))
    none = update(np.zeros(1), np.zeros(1))
    prior = _on_line(density, family, plan.parameters)
    (name,) = none.parameters
    if n_prior is None:
        return GriddedDistribution.of(name, line, _exact_cells(statistic, prior))
    found = []
    for more in _stages(family.prior, default, prior):
        found += [references_of(family.latent(statistic, reference, n_prior)) for reference in more]
        try:
            return GriddedDistribution.of(
                name,
                line,
                (_cell(prior, cell) for cell in zip(*found, strict=True)),
            )
        except _UnresolvedError:
            continue
    message = (
        f"prior {density} and the released values of {plan.name} are so far apart, or its tails are so "
        "heavy, that the posterior cannot be resolved: give a prior closer to what is possible, or a "
        "narrower support"
    )
    raise PriorError(message)


def density_posterior(density: Density, family: Family, parameters: Parameters) -> GriddedDistribution:
    """Return the distribution of a prior itself."""
    prior = _on_line(density, family, parameters)
    edges = prior.edges
    return GriddedDistribution.of("parameter", prior.line, [(edges[:-1], edges[1:], prior.log_density)])


def conjugate_alike(density: Density, family: Family, parameters: Parameters) -> Prior:
    """Return the family's conjugate prior about where a density is and as wide."""
    prior = _on_line(density, family, parameters)
    return alike(family.prior, prior.centre, max(prior.width, NARROWEST))


def _on_line(density: Density, family: Family, parameters: Parameters) -> DensityOnLine:
    """The density on the line of the family's parameter, looked for about the default prior."""
    default: Any = family.default_prior(parameters)
    match default:
        case Beta():
            typical = math.log(default.concentration1 / default.concentration0)
        case Gamma():
            typical = math.log(default.concentration / default.rate)
        case InverseGamma():
            typical = math.log(default.scale / default.concentration)
        case _:
            typical = default.loc
    return DensityOnLine.of(density, LINES[family.prior], typical)


def _stages(kind: type[Prior], default: Prior, prior: DensityOnLine) -> Iterator[list[Any]]:
    """Conjugate priors to start with, then ones farther and farther out on both sides."""
    width = max(prior.width, NARROWEST)
    yield [default, alike(kind, prior.centre, width)]
    for _ in range(_MOST_STAGES):
        yield [alike(kind, prior.centre + side * 3.0 * width, width) for side in (-1.0, 1.0)]
        width *= 4.0


def alike(kind: type[Prior], centre: float, width: float) -> Prior:
    """Return the conjugate prior with about this centre and width on the line."""
    if kind is Normal:
        return Normal(centre, width)
    width = min(width, _WIDEST)
    centre = float(np.clip(centre, -_FARTHEST, _FARTHEST))
    if kind is Beta:
        odds = math.exp(centre)
        return Beta((1.0 + odds) / width**2, (1.0 + 1.0 / odds) / width**2)
    if kind is Gamma:
        return Gamma(width**-2.0, width**-2.0 * math.exp(-centre))
    return InverseGamma(width**-2.0, width**-2.0 * math.exp(centre))


def references_of(
    latent: tuple[NoisySums, Callable[[Floats, Floats], Distribution]], fineness: float = _FINENESS
) -> list[Reference]:
    """Return the mixtures of every cell."""
    sums, update = latent
    prior = coordinate_of(update(np.zeros(1), np.zeros(1)))
    found = []
    for batch in batches(sums):
        # Sums over counts have to be as accurate in the tails; integrals are so as they are.
        nodes = resolve(sums.take(batch), evenly=sums.is_sum)
        merged = Components.of(nodes, update, len(batch), fineness=fineness, negligible=0.0)
        ends = np.searchsorted(merged.cell, np.arange(len(batch) + 1))
        for cell, (start, stop) in enumerate(itertools.pairwise(ends)):
            found.append(
                Reference(
                    prior=prior,
                    posteriors=coordinate_of(update(merged.n[start:stop], merged.total[start:stop])),
                    log_weight=np.log(merged.weight[start:stop]),
                    log_evidence=float(nodes.log_evidence[cell]),
                )
            )
    return found


def _exact_cells(statistic: NoisyStatistic, prior: DensityOnLine) -> Iterator[Cell]:
    """Edges and densities of cells whose projected sums are taken for exact: one conjugate update each."""
    family = FAMILIES[statistic.plan.family]
    default = family.default_prior(statistic.plan.parameters)
    references: list[Prior] = [default, alike(family.prior, prior.centre, max(prior.width, NARROWEST))]
    latent: Any = family.latent
    nothing = [
        latent(statistic, reference, Fixed(0))[1](np.zeros(1), np.zeros(1)) for reference in references
    ]
    for cell in range(len(statistic.values)):
        single = dataclasses.replace(statistic, values=statistic.values[cell : cell + 1])
        found = [
            _of_sums(family.plug_in(single, reference), none)
            for reference, none in zip(references, nothing, strict=True)
        ]
        yield _cell(prior, found, exact=True)


def _of_sums(posterior: Distribution, prior: Distribution) -> Reference:
    """Return the conjugate distribution of one cell, given sums that are taken for exact."""
    return Reference(
        prior=coordinate_of(prior),
        posteriors=coordinate_of(posterior),
        log_weight=np.zeros(1),
        log_evidence=0.0,
    )


def _cell(prior: DensityOnLine, references: Sequence[Reference], *, exact: bool = False) -> Cell:
    """Return panels between which nothing matters, but for the outermost ones, and the log density.

    Of exact references, which all have the same likelihood, the first is enough.
    """
    edges = np.concatenate([prior.edges, *(reference.edges for reference in references)])
    edges = np.unique(np.clip(edges, prior.first, prior.last))
    product = _Product(prior, references[:1] if exact else references)
    value = product(edges)
    kept = np.maximum(value[:-1], value[1:]) > np.max(value) - _NATS
    kept[[0, -1]] = True
    return edges[:-1][kept], edges[1:][kept], dataclasses.replace(product, check=not exact)


@dataclass(frozen=True, slots=True)
class _Product:
    """The log of likelihood and prior of one cell, but for a constant."""

    prior: DensityOnLine
    references: Sequence[Reference]
    check: bool = False

    def __call__(self, position: Floats) -> Floats:
        """Log densities at ascending positions."""
        of_position = [reference.log_density(position) for reference in self.references]
        of_prior = [reference.log_prior(position) - reference.log_evidence for reference in self.references]
        own = self.prior.log_density(position)
        above, below = np.logaddexp.reduce(of_position), np.logaddexp.reduce(of_prior)
        with np.errstate(invalid="ignore"):
            product = np.where(np.isneginf(above), -np.inf, above - below + own)
        if self.check:
            # Not far off the weights of the rule; panels may be far apart.
            gap = np.diff(position)
            gap = np.minimum(np.append(gap, gap[-1]), np.append(gap[0], gap))
            share = np.exp(product - np.max(product)) * gap
            depth = np.max([value - np.max(value) for value in of_position], axis=0)
            if np.sum(share[depth < -_DEEP]) > _TOLERABLE * np.sum(share):
                raise _UnresolvedError
        return product
