r"""Posteriors of a parameter under any prior, by quadrature: exact but for it, and free of draws.

Model. Under a conjugate prior :math:`\pi_k` the noise-aware posterior :math:`p_k(\theta \mid y)` is a mixture
of conjugate distributions and has an evidence :math:`Z_k`, so that the likelihood of the noisy statistics is

.. math::
    p(y \mid \theta) = \frac{\sum_k c_k Z_k \, p_k(\theta \mid y)}{\sum_k c_k \pi_k(\theta)} \qquad (1)

for any :math:`c_k > 0`: by Bayes' theorem :math:`Z_k \, p_k(\theta \mid y) = \pi_k(\theta) \, p(y \mid
\theta)` for every k. Under a prior :math:`\pi`

.. math:: p(\theta \mid y) \propto \pi(\theta) \, p(y \mid \theta). \qquad (2)

Of a prior that is composed of atoms :math:`a_k` and densities, normalised, it is a mixed distribution whose
evidence and atoms' shares are

.. math:: Z = \int \pi_0(\theta) \, p(y \mid \theta) \, d\theta + \sum_k w_k \, p(y \mid a_k), \qquad
    P(\theta = a_k \mid y) = w_k \, p(y \mid a_k) / Z. \qquad (4)

Two conjugate priors are taken, the family's default and one as wide as the given prior and where that is,
with :math:`c_k = 1 / Z_k`: where one posterior is resolved poorly, far out in its tails, the other counts. In
cells where both are, more are taken on either side.

The conjugate prior of centre c and width w on the line is

.. math:: \mathrm{Normal}(c, w), \quad \mathrm{Gamma}(w^{-2}, w^{-2} e^{-c}),
    \quad \mathrm{InverseGamma}(w^{-2}, w^{-2} e^c), \quad
    \mathrm{Beta}\bigl(w^{-2} (1 + e^c), w^{-2} (1 + e^{-c})\bigr), \qquad (3)

for the last has the centre log(a / b) = c and the width :math:`\sqrt{1 / a + 1 / b} = w`.

Symbols:

- theta: the parameter; x = ``position`` on the line
- pi_k, p_k: ``Reference.prior`` and ``posteriors``, with ``log_weight``
- Z_k: ``log_evidence``
- pi: ``prior``

Method. Numerical: (2) is integrated cell by cell on panels about the prior and all references. A reference
counts as resolved down to 16 nats below its highest density; the posterior is refused unless at most 1e-5 of
it lies elsewhere.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.ask.inference.chosen_priors import refused_prior
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.dirichlet import Beta
from suffice.pipeline.math.distributions.distribution import Coordinate, Line, coordinate_of
from suffice.pipeline.math.distributions.gamma import Gamma, InverseGamma
from suffice.pipeline.math.distributions.merged import Components
from suffice.pipeline.math.distributions.mixed import MixedDistribution
from suffice.pipeline.math.distributions.normal import Normal
from suffice.pipeline.math.distributions.quadrature import GriddedDistribution, integral_rule
from suffice.pipeline.math.engines.combined import MixtureRatio
from suffice.pipeline.math.engines.one_sum.nodes import batches, resolve
from suffice.pipeline.math.priors.composed import ComposedOnLine, OnLine, composed_on_line
from suffice.pipeline.math.priors.density import DensityOnLine
from suffice.pipeline.math.priors.mixtures import Mixture
from suffice.pipeline.math.priors.record_count import Fixed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.math.distributions.distribution import Distribution, Prior
    from suffice.pipeline.math.distributions.quadrature import Cell
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.pipeline.math.priors.composed import OfOneNumber
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.sensitivity import Constants
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
_TOLERABLE, _ROUGHLY = 1e-5, 1e-4
"""Share of a posterior that may lie there, and that at the edges alone, a rough look."""
_NATS = 45.0
"""Panels lower than the highest by so much at both ends are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The posterior of one cell under a conjugate prior, as a mixture on the line.

    Attributes
    ----------
    prior, posteriors : Coordinate
        The prior's distribution, and those of the mixture.
    ratio : MixtureRatio
        Of the mixture and the prior.
    log_weight : ndarray of shape (n_laws,), float64
    log_evidence : float
    n : ndarray of shape (n_laws,), float64
        Numbers of records that they are given; empty where sums are taken for exact.
    """

    prior: Coordinate
    posteriors: Coordinate
    ratio: MixtureRatio
    log_weight: Floats
    log_evidence: float
    n: Floats

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
        # The law of total variance over the mixture.
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
        # p_k = (p_k / pi_k) pi_k: the ratio stays smooth where both are steep.
        return self.ratio(position) + self.log_prior(position)

    def log_prior(self, position: Floats) -> Floats:
        """Log prior density at positions (n,)."""
        return self.prior.log_density(position[:, None])[:, 0]


def any_prior_posterior(
    statistic: NoisyStatistic, prior: OfOneNumber, n_prior: NPrior | None
) -> GriddedDistribution | MixedDistribution:
    """Return the distribution of a family's one parameter; plug-in where there is no prior of N.

    Raises
    ------
    PriorError
        Where the family has several parameters, the prior is improper or leaves the parameter's domain, or
        prior and released values disagree so much that the posterior cannot be resolved.
    """
    plan = statistic.plan
    family = FAMILIES[plan.family]
    if family.latent is None:
        raise refused_prior(plan, prior)
    line_prior = on_line(prior, family, plan.parameters)
    if isinstance(line_prior, DensityOnLine):
        gridded = _gridded(statistic, prior, line_prior, n_prior)
        if n_prior is None:
            return gridded
        # Z = integral of pi times the likelihood, over that of pi.
        of_prior = density_posterior(prior, family, plan.parameters).log_mass
        return dataclasses.replace(gridded, log_evidence=gridded.log_mass - of_prior)
    together = line_prior.together
    continuous = None if together is None else _gridded(statistic, prior, together, n_prior)
    log_chance = line_prior.log_chance + log_likelihood_at(statistic, line_prior, n_prior)
    mixed = MixedDistribution.of(_name_of(statistic), line_prior.atoms, log_chance, continuous)
    # A composed prior is normalised: (4).
    return mixed if n_prior is None else dataclasses.replace(mixed, log_evidence=mixed.log_mass)


def _gridded(
    statistic: NoisyStatistic, named: OfOneNumber, prior: OnLine, n_prior: NPrior | None
) -> GriddedDistribution:
    """Return the distribution under a density on the line, with the mass of (2); `named` is it in errors."""
    plan = statistic.plan
    family = FAMILIES[plan.family]
    default = conjugate_default(family, plan.parameters)
    latent: Any = family.latent
    line, name = prior.line, _name_of(statistic)
    if n_prior is None:
        return GriddedDistribution.of(name, line, _exact_cells(statistic, prior))
    references: list[list[Reference]] = [[] for _ in statistic.values]
    cells_by_row: dict[int, Cell] = {}
    pending = np.arange(len(references))
    for more in _stages(family.prior, default, prior):
        few = statistic.take(pending)
        for reference in more:
            more_references = references_of(latent(few, reference, n_prior))
            for cell, reference_of_cell in zip(pending.tolist(), more_references, strict=True):
                references[cell].append(reference_of_cell)
        for cell in pending.tolist():
            resolved = _cell(prior, references[cell])
            if resolved is not None:
                cells_by_row[cell] = resolved
        pending = np.array([cell for cell in pending.tolist() if cell not in cells_by_row], dtype=np.int64)
        if not pending.size:
            cells = (cells_by_row[cell] for cell in range(len(references)))
            return GriddedDistribution.of(name, line, cells)
    message = (
        f"prior {named} and the released values of {plan.name} disagree so much, or its tails are so "
        "heavy, that the posterior cannot be resolved: give a prior closer to what is possible, or a "
        "narrower support"
    )
    raise PriorError(message)


def _name_of(statistic: NoisyStatistic) -> str:
    """Return the name of a family's one parameter."""
    plan = statistic.plan
    (space,) = FAMILIES[plan.family].parameter_spaces(plan.parameters)
    return space.name


def log_likelihood_at(statistic: NoisyStatistic, prior: ComposedOnLine, n_prior: NPrior | None) -> Floats:
    """Return the log likelihood of every cell at the atoms of a prior, (n_cells, n_atoms).

    But for the constant that likelihoods on the line leave out as well.

    Raises
    ------
    PriorError
        Where an atom leaves records no distribution.
    """
    plan = statistic.plan
    family = FAMILIES[plan.family]
    default = conjugate_default(family, plan.parameters)
    latent: Any = family.latent
    if not len(prior.atoms):
        return np.zeros((len(statistic.values), 0))
    if n_prior is None:
        return np.stack(
            [likelihood(blocks[:1], prior.positions)[0] for blocks in _exact_references(statistic, [default])]
        )
    from suffice.pipeline.math.engines.one_sum.known_parameter import given_parameter  # few priors have atoms

    sums, _ = latent(statistic, default, n_prior)
    columns = []
    for atom in prior.atoms.tolist():
        marginal = given_parameter(sums.marginal, atom, is_scale=family.prior is InverseGamma)
        of_atom = dataclasses.replace(sums, marginal=marginal)
        # The evidence under a point mass is the likelihood there.
        columns.append(np.concatenate([resolve(of_atom.take(few)).log_evidence for few in batches(of_atom)]))
    return np.stack(columns, axis=1)


def density_posterior(
    prior: OfOneNumber, family: Family, parameters: Constants
) -> GriddedDistribution | MixedDistribution:
    """Return the distribution of a prior itself."""
    line_prior = on_line(prior, family, parameters)
    if isinstance(line_prior, DensityOnLine):
        return _alone(line_prior)
    continuous = None if line_prior.together is None else _alone(line_prior.together)
    return MixedDistribution.of("parameter", line_prior.atoms, line_prior.log_chance[None], continuous)


def _alone(prior: OnLine) -> GriddedDistribution:
    edges = prior.edges
    return GriddedDistribution.of("parameter", prior.line, [(edges[:-1], edges[1:], prior.log_density)])


def conjugate_alike(prior: OfOneNumber, family: Family, parameters: Constants) -> Prior:
    """Return the family's conjugate prior about where a prior is and as wide."""
    line_prior = on_line(prior, family, parameters)
    centre, width = (
        line_prior.centre_and_width
        if isinstance(line_prior, ComposedOnLine)
        else (line_prior.centre, line_prior.width)
    )
    return alike(family.prior, centre, max(width, NARROWEST))


def on_line(prior: OfOneNumber, family: Family, parameters: Constants) -> DensityOnLine | ComposedOnLine:
    """The prior on the line of the family's parameter, looked for about the default prior."""
    default: Any = conjugate_default(family, parameters)
    match default:
        case Beta():
            typical = math.log(default.concentration1 / default.concentration0)
        case Gamma():
            typical = math.log(default.concentration / default.rate)
        case InverseGamma():
            typical = math.log(default.scale / default.concentration)
        case _:
            typical = default.loc
    return composed_on_line(prior, LINES[family.prior], typical)


def conjugate_default(family: Family, parameters: Constants) -> Prior:
    """Return a family's default prior; of one that is spread over scales, its component of the largest."""
    default = family.default_prior(parameters)
    prior: Prior = default.components[-1] if isinstance(default, Mixture) else default
    return prior


def _stages(kind: type[Prior], default: Prior, prior: OnLine) -> Iterator[list[Any]]:
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
        # (3).
        odds = math.exp(centre)
        return Beta((1.0 + odds) / width**2, (1.0 + 1.0 / odds) / width**2)
    if kind is Gamma:
        return Gamma(width**-2.0, width**-2.0 * math.exp(-centre))
    return InverseGamma(width**-2.0, width**-2.0 * math.exp(centre))


def references_of(
    latent: tuple[NoisySums, Callable[[Floats, Floats], Distribution]],
    fineness: float = _FINENESS,
    negligible: float = 0.0,
) -> list[Reference]:
    """Return the mixtures of every cell, of pairs above a negligible weight."""
    sums, update = latent
    prior = update(np.zeros(1), np.zeros(1))
    panels = []
    for batch in batches(sums):
        # Sums over counts have to be as accurate in the tails; integrals are so as they are.
        nodes = resolve(sums.take(batch), evenly=sums.is_sum)
        # Pairs of few and of many records have tails of their own, by which far likelihoods go: together they
        # were off by up to .02 nats, and standard deviations by up to .0016 of themselves.
        merged = Components.of(
            nodes, update, len(batch), fineness=fineness, negligible=negligible, within_widths=True
        )
        ends = np.searchsorted(merged.cell, np.arange(len(batch) + 1))
        for cell, (start, stop) in enumerate(itertools.pairwise(ends)):
            distributions = update(merged.n[start:stop], merged.total[start:stop])
            log_weight = np.log(merged.weight[start:stop])
            panels.append(
                _reference(
                    prior, distributions, log_weight, float(nodes.log_evidence[cell]), merged.n[start:stop]
                )
            )
    return panels


def likelihood(references: Sequence[Reference], position: Floats) -> tuple[Floats, Floats]:
    """Log likelihood of one cell at positions (n,), and how far below its top the best reference is there."""
    of_prior = np.stack([reference.log_prior(position) for reference in references])
    ratio = np.stack([reference.ratio(position) for reference in references])
    tops, evidences = np.array([[each.top, each.log_evidence] for each in references]).T[:, :, None]
    # How far each reference's density is below its top: the highest counts.
    depth = np.max(ratio + of_prior - tops, axis=0)
    # Far out, logs of densities are so low that they swallow those of their ratios.
    share = of_prior - np.max(of_prior, axis=0)
    # (1) with c_k = 1 / Z_k: sum of p_k over sum of pi_k / Z_k, both divided by the largest pi_k.
    return np.logaddexp.reduce(ratio + share) - np.logaddexp.reduce(share - evidences), depth


def _exact_cells(statistic: NoisyStatistic, prior: OnLine) -> Iterator[Cell]:
    """Edges and densities of cells whose projected sums are taken for exact."""
    family = FAMILIES[statistic.plan.family]
    default = conjugate_default(family, statistic.plan.parameters)
    references: list[Prior] = [default, alike(family.prior, prior.centre, max(prior.width, NARROWEST))]
    for blocks in _exact_references(statistic, references):
        resolved = _cell(prior, blocks, exact=True)
        if resolved is not None:
            yield resolved


def _exact_references(statistic: NoisyStatistic, references: Sequence[Prior]) -> Iterator[list[Reference]]:
    """Return every cell's posteriors where sums are taken for exact: one conjugate update each."""
    family = FAMILIES[statistic.plan.family]
    latent: Any = family.latent
    nothing = [
        latent(statistic, reference, Fixed(0))[1](np.zeros(1), np.zeros(1)) for reference in references
    ]
    for cell in range(len(statistic.values)):
        single = dataclasses.replace(statistic, values=statistic.values[cell : cell + 1])
        yield [
            _reference(none, family.plug_in(single, reference), np.zeros(1))
            for reference, none in zip(references, nothing, strict=True)
        ]


def _reference(
    prior: Distribution,
    distributions: Distribution,
    log_weight: Floats,
    log_evidence: float = 0.0,
    n: Floats | None = None,
) -> Reference:
    return Reference(
        prior=coordinate_of(prior),
        posteriors=coordinate_of(distributions),
        ratio=MixtureRatio.of(prior, distributions, log_weight),
        log_weight=log_weight,
        log_evidence=log_evidence,
        n=np.empty(0) if n is None else n,
    )


def _cell(prior: OnLine, references: Sequence[Reference], *, exact: bool = False) -> Cell | None:
    """Return panels between which nothing matters, but for the outermost, and the log density at their nodes.

    None where the posterior is where no reference is resolved. Of exact references, which all have the same
    likelihood, the first is enough.
    """
    known = references[:1] if exact else references

    def product(position: Floats) -> tuple[Floats, Floats]:
        log_likelihood, depth = likelihood(known, position)
        # (2).
        return log_likelihood + prior.log_density(position), depth

    # Conjugate distributions under noise may be a comb, which integrates to what it should on panels this
    # dense alone.
    edges = np.concatenate([prior.edges, *(reference.edges for reference in references)])
    edges = np.unique(np.clip(edges, prior.first, prior.last))
    log_value, depth = product(edges)
    if not exact and _hidden(log_value, depth, np.gradient(edges)) > _ROUGHLY:
        return None
    kept = np.maximum(log_value[:-1], log_value[1:]) > np.max(log_value) - _NATS
    kept[[0, -1]] = True
    left, right = edges[:-1][kept], edges[1:][kept]
    nodes, weights = integral_rule(left, right)
    log_value, depth = product(nodes.ravel())
    if not exact and _hidden(log_value, depth, weights.ravel()) > _TOLERABLE:
        return None
    return left, right, lambda _nodes: log_value


def _hidden(log_value: Floats, depth: Floats, weights: Floats) -> float:
    """Share of a posterior that is where no reference is resolved."""
    # The posterior's mass at every node.
    share = np.exp(log_value - np.max(log_value)) * weights
    return float(np.sum(share[depth < -_DEEP]) / np.sum(share))
