r"""The released likelihood of a family's one parameter, as an object: asked once, and kept.

Model. Latent sums and a latent N are integrated out, under a prior of N, and the noise is exact:

.. math::
    \ell(\theta) = \log p(y \mid \theta), \qquad
    p(\theta \mid y) \propto \pi(\theta) \, e^{\ell(\theta)} \qquad (1)

for whatever prior somebody has. It is of records as bounds leave them.

Symbols:

- theta: the parameter, in its natural scale; x = its position on the line of its family
- l: ``Likelihood.log_prob``, in nats

Method. Tables of ``tabled_likelihood``, whose error is stated for every cell. (1) is integrated on the panels
of the table and of the prior together (``tabled_posterior``).
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.ask.inference import chosen_priors
from suffice.pipeline.ask.inference.any_prior import density_posterior, on_line
from suffice.pipeline.ask.inference.counted_likelihood import COUNTED, tabled_counts
from suffice.pipeline.ask.inference.tabled_likelihood import several_parameters, tabled_likelihood
from suffice.pipeline.ask.inference.tabled_posterior import PriorOnLine, tabled_posterior
from suffice.pipeline.ask.inference.within_unit import refuse_within_unit
from suffice.pipeline.ask.posterior.cells import require_whole
from suffice.pipeline.ask.posterior.choice_of_engine import of_distribution
from suffice.pipeline.ask.posterior.counts_likelihood import CountsLikelihood, counts_likelihood
from suffice.pipeline.ask.posterior.likelihood_tables import LikelihoodTables
from suffice.pipeline.ask.posterior.moments_likelihood import MomentsLikelihood, moments_likelihood
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.distribution import Prior, coordinate_of
from suffice.pipeline.math.distributions.mixed import MixedDistribution
from suffice.pipeline.math.priors.density import DensityOnLine
from suffice.pipeline.math.priors.record_count import Fixed
from suffice.pipeline.terms.released.noisy_statistic import rows_alone

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.distributions.quadrature import GriddedDistribution
    from suffice.pipeline.math.priors.composed import Together
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

_PANELS = np.linspace(-11.0, 11.0, 12)
_OCTAVES = np.exp2(np.arange(4.0, 80.0))
_TAIL = 40.0
"""Nats below its highest density at which a prior ends, lengths counted."""
_LOST = 1e-6
"""Mass of a conjugate prior that may lie where no number is."""
_KEPT = 32
"""Likelihoods that are kept: of a thousand cells each takes some 3 MB."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Likelihood(LikelihoodTables):
    """The log likelihood of one parameter in every cell of a released statistic.

    Attributes
    ----------
    noisy : NoisyStatistic
        The cells.
    described : callable
        A posterior -> the same, which says of which release it is.
    """

    noisy: NoisyStatistic = field(repr=False)
    described: Callable[[Posterior], Posterior] = field(repr=False, compare=False)

    def posterior(self, prior: AnyPrior) -> Posterior:
        """Return the posterior under a prior: what ``Release.posterior`` does, with the likelihood at hand.

        It is of records as bounds leave them, as with ``clipping="ignored"``.

        Parameters
        ----------
        prior : Prior, Density, distribution of scipy.stats or str
            A conjugate prior, any density of the parameter, or points and sums of all these.

        Raises
        ------
        PriorError
            Where the family does not take it, or it is where the table is not known.
        """
        chosen = chosen_priors.prior_for(self.noisy, prior)
        if isinstance(chosen, Prior):
            distribution = self._gridded(chosen, self._of_conjugate(chosen))
            distribution = dataclasses.replace(distribution, log_evidence=distribution.log_mass)
            return self.described(of_distribution(self.noisy, chosen, distribution, self.n_prior))
        family, constants = FAMILIES[self.family], self.noisy.plan.parameters
        stated: Any = chosen
        line_prior = on_line(stated, family, constants)
        if isinstance(line_prior, DensityOnLine):
            distribution = self._gridded(chosen, _on_edges(line_prior))
            # Z = integral of pi times the likelihood, over that of pi.
            of_prior = density_posterior(stated, family, constants).log_mass
            weighed: Any = dataclasses.replace(distribution, log_evidence=distribution.log_mass - of_prior)
        else:
            together = line_prior.together
            continuous = None if together is None else self._gridded(chosen, _on_edges(together))
            log_chance = line_prior.log_chance + self.log_prob(line_prior.atoms)
            mixed = MixedDistribution.of(self.parameter, line_prior.atoms, log_chance, continuous)
            # A composed prior is normalised.
            weighed = dataclasses.replace(mixed, log_evidence=mixed.log_mass)
        return self.described(of_distribution(self.noisy, stated, weighed, self.n_prior))

    def _gridded(self, prior: object, on_line: PriorOnLine) -> GriddedDistribution:
        described = f"prior {prior} and the released values of {self.statistic}"
        return tabled_posterior(self.tables, self.parameter, self.line, on_line, described)

    def _of_conjugate(self, prior: Prior) -> PriorOnLine:
        """A conjugate prior is integrated about where it is and where the table is.

        Under small concentrations much of it lies beyond the numbers next to an end of the domain, where
        the likelihood is its limit: positions go on, and parameters are rounded to the end.
        """
        chosen_priors.require_range(self.noisy, prior)
        latent: Any = FAMILIES[self.family].latent
        _, update = latent(self.noisy, prior, Fixed(0))
        coordinate = coordinate_of(update(np.zeros(1), np.zeros(1)))

        def log_density(position: Floats) -> Floats:
            return coordinate.log_density(position.ravel()[:, None])[:, 0].reshape(position.shape)

        edges = _edges_of(float(coordinate.centre[0]), float(coordinate.width[0]), log_density)
        (least, most), (low, high) = self.line.domain, self.line.ends
        low = min(low, float(edges[0])) if np.isfinite(least) else low
        high = max(high, float(edges[-1])) if np.isfinite(most) else high
        # Where a parameter can be larger than numbers are, it has no end to be rounded to.
        lost = 0.0 if np.isfinite(most) else 1.0 - float(coordinate.cdf(np.array([high]))[0])
        if lost > _LOST:
            message = (
                f"prior {prior}: {lost:.2g} of it lies where {self.parameter} is too large for the table of "
                f"its likelihood: ask Release.posterior({self.statistic!r}, prior=...), which counts it"
            )
            raise PriorError(message)
        return PriorOnLine(ends=(low, high), edges=edges, log_density=log_density)


def _edges_of(centre: float, width: float, log_density: Callable[[Floats], Floats]) -> Floats:
    """Edges about a density, as far as it tells: tails of small concentrations are longer than widths."""
    reach = width * _OCTAVES
    top = np.max(log_density(centre + width * _PANELS) + np.log(width))
    far = []
    for side in (-1.0, 1.0):
        with np.errstate(over="ignore"):
            tells = log_density(centre + side * reach) + np.log(reach) > top - _TAIL
        # The first that tells nothing is an edge too.
        far.append(centre + side * reach[: np.argmin(tells) + 1])
    return np.unique(np.concatenate([centre + width * _PANELS, *far]))


def _on_edges(prior: DensityOnLine | Together) -> PriorOnLine:
    return PriorOnLine(ends=(prior.first, prior.last), edges=prior.edges, log_density=prior.log_density)


AnyLikelihood: TypeAlias = Likelihood | CountsLikelihood | MomentsLikelihood
Described: TypeAlias = "Callable[[Posterior], Posterior]"

_kept: OrderedDict[Any, AnyLikelihood] = OrderedDict()


def likelihood_of(
    chosen: NoisyStatistic,
    n_prior: NPrior | int | str | None,
    described: Callable[[Posterior], Posterior],
    digest: str,
) -> AnyLikelihood:
    """Return the likelihood of cells that are chosen already; that of the same release and terms is kept.

    Of one parameter it is a ``Likelihood``, of a table's probabilities a ``CountsLikelihood``, of a mean and
    a standard deviation a ``MomentsLikelihood``.

    Raises
    ------
    UsageError
        Where the family has several parameters, rows are of units, or a cell is not resolved.
    """
    refuse_within_unit(chosen, "a likelihood")
    statistic = rows_alone(chosen)
    make = _maker(statistic.plan.family)
    if make is None:
        raise several_parameters(statistic)
    require_whole(statistic)
    latent_n = chosen_priors.n_prior_for(statistic, n_prior)
    keys = tuple((column, tuple(map(str, keys))) for column, keys in statistic.groups.items())
    asked = (digest, statistic.plan.name, str(latent_n), keys)
    if asked in _kept:
        _kept.move_to_end(asked)
        return _kept[asked]
    _kept[asked] = make(statistic, latent_n, described)
    while len(_kept) > _KEPT:
        _kept.popitem(last=False)
    return _kept[asked]


def _maker(name: str) -> Callable[[NoisyStatistic, NPrior, Described], AnyLikelihood] | None:
    """Return what makes the likelihood of a family's parameters; None where nothing does."""
    family = FAMILIES[name]
    if family.latent is not None:
        return _of_one_parameter
    if name in COUNTED:
        return lambda statistic, n_prior, _: counts_likelihood(statistic, n_prior)
    if family.mean_and_variance is not None:
        return lambda statistic, n_prior, _: moments_likelihood(statistic, n_prior)
    return None


def _of_one_parameter(
    statistic: NoisyStatistic, latent_n: NPrior, described: Callable[[Posterior], Posterior]
) -> Likelihood:
    (name,) = (
        space.name for space in FAMILIES[statistic.plan.family].parameter_spaces(statistic.plan.parameters)
    )
    return Likelihood(
        statistic=statistic.plan.name,
        family=statistic.plan.family,
        parameter=name,
        groups=statistic.groups,
        n_prior=latent_n,
        tables=tabled_counts(statistic, latent_n) or tabled_likelihood(statistic, latent_n),
        noisy=statistic,
        described=described,
    )
