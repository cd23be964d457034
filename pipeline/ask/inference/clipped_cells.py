r"""In which cells clipping is modelled, by public numbers and released statistics; pooled posteriors.

Question. With :math:`x(\theta)` the parameter's position on the line (its logarithm or logit), and
:math:`s(\theta)` the shift that clipping gives to it in the limit of many records, a cell's posterior without
clipping is left as it is where

.. math:: E |s(\theta)| \le 0.01 \; \mathrm{sd}(x(\theta)) \qquad (1)

over that posterior. Means and variances go the same way, with :math:`s(\theta)` the shift of the mean, or of
the variance, where for both

.. math:: E |s(\theta)| \le 0.05 \; w, \qquad w = (q_{.84} - q_{.16}) / 2. \qquad (2)

A 95 % interval that is off by :math:`\epsilon` standard deviations covers

.. math:: \Phi(1.96 + \epsilon) - \Phi(-1.96 + \epsilon) = .95 - 1.96 \, \phi(1.96) \, \epsilon^2
    + O(\epsilon^4) : \qquad (3)

94.999 % at .01 and 94.97 % at .05. On the line no far tail of large rates hides what happens to the small
ones. Most cells are decided by the shift eight standard deviations from their means: where the shift is that
small even there, it is so on average. The posterior comes from clipped records and so understates what was
clipped. But where the distribution at the clipped mean has almost no mass beyond the bound, the distribution
before clipping has almost none there either. Elsewhere the likelihood is that of ``clipped.py``, or of
``engines.mean_variance.likelihood``, which knows clipped records by their first four moments.

Pooling. With R disjoint data sets that share a parameter and nothing else

.. math:: p(\theta \mid y_1, \dots, y_R) \propto \pi(\theta) \prod_r p(y_r \mid \theta), \qquad (4)

each likelihood by (1) of ``any_prior.py``: from references under the family's default prior and another like
the given. Where the product lies in the far tails of a data set's references, further ones have priors that
pull as strongly from the other side: a normal likelihood about m and a prior of the same width about 2 c - m
meet at c.

Symbols:

- x: ``position``; s: ``shift``
- theta: the parameter, or ``mean`` and ``variance``
- m, c: ``middle`` of the last reference, and ``centre`` of the product
- pi: ``prior``

Method. (1) is an average over the posterior's nodes, by a table of the shift at 8193 positions; (2) is over
10 by 10 strata of marginal quantiles, the parameters taken for independent. (4) is integrated by quadrature,
and refused unless at most 1e-5 of it lies where no reference is resolved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.inference import any_prior
from suffice.pipeline.ask.inference.clipped import clipped_distribution
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.adaptive_blocks import divide_line
from suffice.pipeline.math.distributions.composite import PartlyClipped
from suffice.pipeline.math.distributions.distribution import coordinate_of
from suffice.pipeline.math.distributions.mixed import MixedDistribution
from suffice.pipeline.math.distributions.quadrature import GriddedDistribution, integral_rule
from suffice.pipeline.math.engines.posterior_mixture import mixture_distribution
from suffice.pipeline.math.priors.composed import ComposedOnLine, OfOneNumber, composed_on_line
from suffice.pipeline.math.priors.density import Density
from suffice.pipeline.math.priors.mixtures import Mixture, SpreadScale

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from suffice.pipeline.families.shared.contract import Family
    from suffice.pipeline.math.distributions.distribution import Distribution, Line, Prior
    from suffice.pipeline.math.distributions.quadrature import Cell
    from suffice.pipeline.math.engines.mean_variance.prior_on_grid import AnyJointPrior
    from suffice.pipeline.math.engines.one_sum.sum_posterior import LatentSumPosterior
    from suffice.pipeline.math.priors.composed import OnLine
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats, Mask


NEGLIGIBLE_OF_MOMENTS = 0.05
"""Posterior widths of expected shift up to which clipping is left out."""
_STRATA = np.array([0.0, 0.01, 0.05, 0.16, 0.3, 0.5, 0.7, 0.84, 0.95, 0.99, 1.0])
_MIDDLES = (_STRATA[1:] + _STRATA[:-1]) / 2.0
NEGLIGIBLE = 0.01
"""Posterior standard deviations of expected shift up to which clipping is left out."""
_FAR = 8.0
_POSITIONS = np.linspace(-30.0, 30.0, 8193)
"""About that of the parameter whose mean is at the bound."""
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


def distribution_with_clipping(
    statistic: NoisyStatistic, prior: Prior | Mixture | OfOneNumber, n_prior: NPrior, where: Mask
) -> tuple[Distribution, Mask]:
    """Return the posterior that models clipping where it may and can matter, and where that is, (n_cells,).

    Under a density it is modelled wherever it may be: that costs no more.
    """
    cells = len(statistic.values)
    is_possible = can_be_modelled(FAMILIES[statistic.plan.family], [statistic])
    if isinstance(prior, OfOneNumber):
        if not is_possible:
            return any_prior.any_prior_posterior(statistic, prior, n_prior), np.zeros(cells, dtype=bool)
        if where.all():
            return clipped_distribution([statistic], prior, [n_prior]), where
        return _partly(
            any_prior.any_prior_posterior(statistic, prior, n_prior), [statistic], prior, [n_prior], where
        ), where
    components: Sequence[Prior | Mixture] = (prior,)
    if isinstance(prior, Mixture) and not isinstance(prior, SpreadScale):
        components = prior.components
    distributions = [_noise_aware(statistic, component, n_prior) for component in components]
    matters = np.zeros(cells, dtype=bool)
    if is_possible:
        for distribution in distributions:
            matters |= _matters(statistic, distribution) & where
    plain: Distribution = distributions[0]
    if isinstance(prior, Mixture) and not isinstance(prior, SpreadScale):
        plain = mixture_distribution(prior, distributions)
    return _partly(plain, [statistic], prior, [n_prior], matters), matters


def pooled_with_clipping(
    parts: Sequence[NoisyStatistic],
    prior: Prior | Mixture | OfOneNumber,
    n_priors: Sequence[NPrior],
    where: Mask,
) -> tuple[Distribution, Mask]:
    """Return the same of a parameter that aligned statistics of disjoint data share, each with its own N."""
    cells = len(parts[0].values)
    is_possible = can_be_modelled(FAMILIES[parts[0].plan.family], parts)
    if isinstance(prior, OfOneNumber) and is_possible and where.all():
        return clipped_distribution(parts, prior, n_priors), where
    plain = pooled_grid_distribution(parts, prior, n_priors)
    matters = np.zeros(cells, dtype=bool)
    if is_possible:
        # Beside point masses clipping is refused wherever it may be modelled.
        matters = where if isinstance(plain, MixedDistribution) else _matters(parts[0], plain) & where
    return _partly(plain, parts, prior, n_priors, matters), matters


def _partly(
    plain: Distribution,
    parts: Sequence[NoisyStatistic],
    prior: Prior | Mixture | OfOneNumber,
    n_priors: Sequence[NPrior],
    matters: Mask,
) -> Distribution:
    """The distribution without clipping, and with it where that matters."""
    if not matters.any():
        return plain
    rows = np.flatnonzero(matters)
    distribution = clipped_distribution([part.take(rows) for part in parts], prior, n_priors)
    return (
        distribution if matters.all() else PartlyClipped(plain=plain, clipped=distribution, modelled=matters)
    )


def _matters(statistic: NoisyStatistic, distribution: LatentSumPosterior | GriddedDistribution) -> Mask:
    """Whether the expected shift under a posterior without clipping is more than negligible, (n_cells,)."""
    (name,) = distribution.parameters
    mean, sd = distribution.mean(name), distribution.sd(name)
    # A bound of (1): the shift eight standard deviations away.
    matters: Mask = ~(np.max(_shifts(statistic, _far(name, mean, sd)), axis=1) <= NEGLIGIBLE * sd)
    near = np.flatnonzero(matters)
    if near.size:
        # A shift depends on the parameter alone: one table serves all cells.
        family = FAMILIES[statistic.plan.family]
        line = any_prior.LINES[family.prior]
        positions = _POSITIONS + _at_bound(family, statistic.plan.parameters)
        values = line.parameter(positions)
        with np.errstate(invalid="ignore"):
            # s(theta), as a function of x alone.
            shift = np.abs(line.position(values + _signed(statistic, values)) - positions)
        # E |s| over the posterior.
        average = distribution.average(lambda position: np.interp(position, positions, shift), near)
        centre = distribution.average(lambda position: position, near)
        square = distribution.average(lambda position: position**2, near)
        # sd(x) = sqrt(E x^2 - (E x)^2).
        spread = np.sqrt(np.maximum(square - centre**2, 0.0))
        matters[near] = ~(average <= NEGLIGIBLE * spread)
    return matters


def _at_bound(family: Family, constants: Constants) -> float:
    """The position of the parameter at which the mean of T is the bound."""
    assert family.limits is not None  # noqa: S101 - every family with a clipped record has them
    low, high = family.limits(constants)
    return float(any_prior.LINES[family.prior].position(np.array([low if low > 0.0 else high]))[0])


def _far(name: str, mean: Floats, sd: Floats) -> Floats:
    """Parameters far to either side of the mean, (n_cells, 2)."""
    largest = 1.0 if name == "probability" else np.inf
    return np.stack([np.maximum(mean - _FAR * sd, 0.0), np.minimum(mean + _FAR * sd, largest)], axis=1)


def _shifts(statistic: NoisyStatistic, values: Floats) -> Floats:
    """How far clipping moves these values of the parameter; NaN where nothing can be told."""
    return np.abs(_signed(statistic, values))


def _signed(statistic: NoisyStatistic, values: Floats) -> Floats:
    outside: Any = FAMILIES[statistic.plan.family].outside
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        (shift,) = outside(values.ravel(), statistic.plan.parameters).shifts
    moved: Floats = np.reshape(shift, values.shape)
    return moved


def _noise_aware(statistic: NoisyStatistic, prior: Prior | Mixture, n_prior: NPrior) -> LatentSumPosterior:
    noise_aware: Any = FAMILIES[statistic.plan.family].noise_aware
    distribution: LatentSumPosterior = noise_aware(statistic, prior, n_prior)
    return distribution


def can_be_modelled(family: Family, parts: Sequence[NoisyStatistic]) -> bool:
    """Whether clipping can be modelled in statistics of disjoint data.

    Of one sum: where one record's lattice is short enough, and there is one noise of every part's sums.
    """
    record = family.clipped_record
    if record is None:
        return family.mean_and_variance is not None
    return all(record.can_be_modelled(part.plan.parameters) and not part.further for part in parts)


def moments_with_clipping(
    plain: Distribution,
    parts: Sequence[NoisyStatistic],
    prior: AnyJointPrior,
    n_priors: Sequence[NPrior],
    where: Mask,
) -> tuple[Distribution, Mask]:
    """Return the posterior that models clipping where it matters, and where that is, (n_cells,).

    Parameters
    ----------
    plain : Distribution
        The posterior without clipping.
    parts : sequence of NoisyStatistic
        One, or several of disjoint data with both parameters in common, cell by cell.
    prior : Independent, JointDensity, NormalInverseGamma or Mixture
        Of both parameters.
    n_priors : sequence of NPrior
        Of every part's own number of rows.
    where : ndarray of shape (n_cells,), bool
        The cells in which it may be modelled.

    Notes
    -----
    Where prior and released values are so far apart that the likelihood cannot be resolved, the posterior
    without clipping stays, and with it the warning.
    """
    from suffice.pipeline.ask.inference.any_joint_prior import pooled_joint_distribution

    modelled = np.zeros(len(parts[0].values), dtype=bool)
    distribution, pending = plain, [np.flatnonzero(_matters_for_moments(plain, parts[0]) & where)]
    while pending:
        rows = pending.pop()
        if not rows.size:
            continue
        try:
            clipped = pooled_joint_distribution(
                [part.take(rows) for part in parts], prior, n_priors, clips=True
            )
        except (PriorError, UsageError):
            pending += np.array_split(rows, 2) if rows.size > 1 else []
            continue
        is_modelled = np.isin(np.arange(len(modelled)), rows)
        modelled |= is_modelled
        distribution = (
            clipped
            if is_modelled.all()
            else PartlyClipped(plain=distribution, clipped=clipped, modelled=is_modelled)
        )
    return distribution, modelled


def _matters_for_moments(plain: Distribution, statistic: NoisyStatistic) -> Mask:
    """Whether the expected shift of either parameter is more than negligible, (n_cells,)."""
    outside: Any = FAMILIES[statistic.plan.family].outside
    at = [*_MIDDLES, _STRATA[3], _STRATA[7]]
    # Marginal quantiles rest on no draws here: nothing random is taken of the generator.
    by_parameter = [plain.quantiles(name, at, 0, np.random.default_rng(0)).T for name in plain.parameters]
    mean, variance = (quantiles[: len(_MIDDLES)] for quantiles in by_parameter)
    # Probabilities of pairs of strata.
    share = np.outer(np.diff(_STRATA), np.diff(_STRATA))
    matters = np.zeros(mean.shape[1], dtype=bool)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # s of both parameters at every pair of strata.
        shifts = outside(mean[:, None], variance[None], statistic.plan.parameters).shifts
        for shift, quantiles in zip(shifts, by_parameter, strict=True):
            # w of (2), which no far tail moves.
            width = (quantiles[-1] - quantiles[-2]) / 2.0
            average: Floats = np.einsum("ij,ijc->c", share, np.abs(shift))
            matters |= ~(average <= NEGLIGIBLE_OF_MOMENTS * width)
    return matters


def pooled_grid_distribution(
    parts: Sequence[NoisyStatistic], prior: Prior | Mixture | OfOneNumber, n_priors: Sequence[NPrior]
) -> GriddedDistribution | MixedDistribution:
    """Return the posterior of the one parameter that statistics of disjoint data share, cell by cell.

    Parameters
    ----------
    parts : sequence of NoisyStatistic
        Of a family with one parameter.
    prior : Prior, Mixture, or another of one number
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
    default = any_prior.conjugate_default(family, plan.parameters)
    _, update = _latent(family, parts[0], default, n_priors[0])
    none = update(np.zeros(1), np.zeros(1))
    line, typical = any_prior.LINES[family.prior], float(coordinate_of(none).centre[0])
    (name,) = none.parameters
    given = prior if isinstance(prior, OfOneNumber) else _density(family, parts[0], prior, n_priors[0], line)
    line_prior = composed_on_line(given, line, typical)
    if isinstance(line_prior, ComposedOnLine) and line_prior.together is None:
        return MixedDistribution.of(name, line_prior.atoms, _log_chance(parts, line_prior, n_priors), None)
    on_line: Any = line_prior.together if isinstance(line_prior, ComposedOnLine) else line_prior
    # A conjugate prior has neither kinks nor several modes: all but the octaves are found by dividing.
    edges = on_line.edges if isinstance(prior, Mixture | OfOneNumber) else _octaves(on_line)
    start = [default, any_prior.alike(family.prior, on_line.centre, max(on_line.width, any_prior.NARROWEST))]

    def cells() -> Iterator[Cell]:
        for first in range(0, len(parts[0].values), _CELLS):
            rows = np.arange(first, min(first + _CELLS, len(parts[0].values)))
            few = [part.take(rows) for part in parts]
            by_part = [
                _by_cell(family, part, start, given) for part, given in zip(few, n_priors, strict=True)
            ]
            for position, row in enumerate(rows.tolist()):

                def further(release: int, given: Any, row: int = row) -> any_prior.Reference:
                    statistic = parts[release].take(np.array([row]))
                    return _by_cell(family, statistic, [given], n_priors[release])[0][0]

                yield _cell(family.prior, on_line, edges, [of_part[position] for of_part in by_part], further)

    gridded = GriddedDistribution.of(name, line, cells())
    if not isinstance(line_prior, ComposedOnLine):
        return gridded
    return MixedDistribution.of(name, line_prior.atoms, _log_chance(parts, line_prior, n_priors), gridded)


def _log_chance(parts: Sequence[NoisyStatistic], prior: ComposedOnLine, n_priors: Sequence[NPrior]) -> Floats:
    """Return logs of the atoms' prior probabilities times all likelihoods, (n_cells, n_atoms)."""
    pairs = zip(parts, n_priors, strict=True)
    # (4), at the atoms.
    return prior.log_chance + sum(
        any_prior.log_likelihood_at(part, prior, n_prior) for part, n_prior in pairs
    )


def _octaves(prior: OnLine) -> Floats:
    # Steps of factors of four: heavy tails are reached, and dividing does the rest.
    sides = prior.width * np.exp2(np.arange(1.0, 250.0, 2.0))
    positions = np.concatenate([prior.centre - sides, [prior.centre], prior.centre + sides])
    return np.unique(np.clip(positions, prior.first, prior.last))


def _latent(family: Family, statistic: NoisyStatistic, prior: Any, n_prior: NPrior) -> Any:
    if family.latent is None:
        raise TypeError(family.name)
    return family.latent(statistic, prior, n_prior)


def _by_cell(
    family: Family, statistic: NoisyStatistic, priors: Sequence[Any], n_prior: NPrior
) -> list[list[any_prior.Reference]]:
    """Return every cell's references under these priors."""
    by_part = [
        any_prior.references_of(_latent(family, statistic, prior, n_prior), _FINENESS) for prior in priors
    ]
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
        # p(theta) = f(x) / h'(x): from the line to the parameter.
        mixed: Floats = np.logaddexp.reduce(np.log(weights)[:, None] + parts) - line.log_slope(position)
        return mixed

    hints = line.parameter(np.array([float(distribution.centre[0]) for distribution in distributions]))
    return Density(log_density, *line.domain, name=str(prior), hints=tuple(hints.tolist()))


@dataclass(frozen=True, slots=True)
class _Product:
    """The log of the prior and all likelihoods of one cell, but for a constant."""

    prior: OnLine
    releases: Sequence[Sequence[any_prior.Reference]]

    def __call__(self, position: Floats) -> tuple[Floats, list[Floats]]:
        """Log densities at positions (n,), and how far below its mode each release's best reference is."""
        # (4).
        product = self.prior.log_density(position)
        depths = []
        for references in self.releases:
            log_likelihood, depth = any_prior.likelihood(references, position)
            product += log_likelihood
            depths.append(depth)
        return product, depths


def _cell(
    kind: type[Prior],
    prior: OnLine,
    edges: Floats,
    releases: list[list[any_prior.Reference]],
    further: Callable[[int, Prior], any_prior.Reference],
) -> Cell:
    """Return panels and the log density; with further references where those at hand know too little."""
    pulled: dict[int, tuple[float, float]] = {}
    for turn in range(2 * _MOST_ROUNDS):
        product = _Product(prior, releases)
        left, right = _panels(product, edges)
        nodes, weights = integral_rule(left, right)
        log_value, depths = product(nodes.ravel())
        # The product's mass at every node.
        share = np.exp(log_value - np.max(log_value)) * weights.ravel()
        share /= np.sum(share)
        hidden = [np.where(depth < -_DEEP, share, 0.0) for depth in depths]
        unresolved = [release for release, mass in enumerate(hidden) if np.sum(mass) > _TOLERABLE]
        if not unresolved:
            return left, right, _known(log_value)
        # The mean of the product so far.
        centre = float(share @ nodes.ravel())
        releases = [list(references) for references in releases]
        for release in unresolved:
            first, last = releases[release][0], releases[release][-1 if release in pulled else 0]
            if turn < _MOST_ROUNDS:
                # A normal likelihood about m and a prior of the same width about 2 c - m meet at c.
                position, width = pulled.get(release, (centre, max(last.spread, any_prior.NARROWEST)))
                position += (2.0 if release in pulled else 1.0) * (centre - last.middle)
                pulled[release] = position, width
            else:
                # Wide noise leaves likelihoods no normal ones: ever harder, to where most is not known.
                position = float(nodes.ravel()[np.argmax(hidden[release])])
                width = max(first.spread * _HARDER ** (turn - _MOST_ROUNDS), any_prior.NARROWEST)
            releases[release].append(further(release, any_prior.alike(kind, position, width)))
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
