r"""Exact posteriors of a normal's mean and variance when N and the sums are latent behind Laplace noise.

Model. z is a column in half ranges about the centre, N, m and :math:`E = q / N - m^2` its number of rows,
their mean and their mean square deviation, q the sum of squares; every released component is :math:`N (A +
B m + C (m^2 + E))` plus Laplace noise. The density p(N, m, log E, y) is (3) of ``moment_weights``; the
question is

.. math:: p(\mu, \sigma^2 \mid y) = \sum_N \int \mathrm{NIG}(\mu, \sigma^2 \mid N, m, E) \,
    p(N, m, \log E \mid y) \, dm \, d\log E \qquad (1)

N = 0 is a point and N = 1 a curve (E = 0), both with their own weight. Where rows of one unit are alike, with
design effects d of which all are equally likely, N and E are as probable as before, and the parameters are
:math:`\mathrm{NIG}(\mu, \sigma^2 \mid N / d, m, E)`, averaged over d: an approximation.

Method and error: integrals of few cells are sums over boxes with bounds (``covering``), those of many are by
``nested_rule``, which states its error, and by boxes where it settles none; ``MomentPosterior.by_nodes`` is
where that is chosen. Draws are exact and independent: a box by the bound of its mass, a point in it, accepted
by density over bound (2). Integrals of either kind differed from those of boxes thirty times as fine by up to
0.01 sd in means and 2 % in sds, of any number of cells:
docs/decisions/0014-latent-moments-exactly.md and docs/decisions/0150-nested-rules-with-an-error.md.

.. math:: P(\text{accept}) = p(N, m, \log E, y) \, / \, \text{bound of the box} \qquad (2)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.distributions.joint_components import JointComponents
from suffice.pipeline.math.distributions.many_cells import MOMENT_NODES, MOMENT_NODES_OF_FEW
from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGammaDistribution
from suffice.pipeline.math.engines.normal.covering import SHARE, cover
from suffice.pipeline.math.engines.normal.marginal_quantiles import MarginalMixture, smeared
from suffice.pipeline.math.engines.normal.moment_weights import (
    Given,
    MomentWeights,
    integrate,
    mean_moments,
    variance_moments,
)
from suffice.pipeline.math.engines.normal.nested_rule import can_integrate, integrate_nested, nodes_of_cells

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.pipeline.math.engines.normal.moment_weights import Boxes, Nodes, NoisyMoments
    from suffice.typing import Cells, Floats, Mask, Parts


# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsDistribution:
    """Means and variances behind latent sums, as ``centre + half_range`` times what the posterior holds.

    Attributes
    ----------
    posterior : MomentPosterior
        In half ranges about the centre.
    centre, half_range : float
        In the column's unit.
    names : (str, str)
        The mean's and the variance's.
    """

    posterior: MomentPosterior
    centre: float
    half_range: float
    names: tuple[str, str] = ("mean", "variance")

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.names

    @property
    def log_evidence(self) -> Floats:
        """Log densities of the noisy statistics under the prior, (n_cells,), up to one constant."""
        return self.posterior.log_evidence

    def take(self, cells: Cells) -> Self:
        """Return the distribution of some cells, ascending."""
        return replace(self, posterior=self.posterior.take(cells))

    def mean(self, parameter: str) -> Floats:
        """Means."""
        if parameter == self.names[0]:
            return self.centre + self.half_range * self.posterior.mean[:, 0]
        return self.half_range**2 * self.posterior.mean[:, 1]

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        if parameter == self.names[0]:
            return self.half_range * self.posterior.sd[:, 0]
        return self.half_range**2 * self.posterior.sd[:, 1]

    def bounded_moments(self, parameter: str) -> tuple[Floats, Floats]:
        """Means and standard deviations, but for tails that are next to impossible."""
        mean, sd = (both[:, self.names.index(parameter)] for both in self.posterior.bounded_moments)
        if parameter == self.names[0]:
            return self.centre + self.half_range * mean, self.half_range * sd
        return self.half_range**2 * mean, self.half_range**2 * sd

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Marginal quantiles, from the integrals: they rest on no draws."""
        values = self.posterior.quantiles(self.names.index(parameter), q)
        if parameter == self.names[0]:
            return self.centre + self.half_range * values
        return self.half_range**2 * values

    def density(self, parameter: str, points: Floats) -> Floats:
        """Marginal densities at points (n_cells, n_points), from the integrals."""
        if parameter == self.names[0]:
            inside = (points - self.centre) / self.half_range
            return self.posterior.marginal(0).density(inside) / self.half_range
        square = self.half_range**2
        return self.posterior.marginal(1).density(points / square) / square

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        mean, variance = self.posterior.sample(draws, rng)
        return {
            self.names[0]: self.centre + self.half_range * mean,
            self.names[1]: self.half_range**2 * variance,
        }

    def joint_components(self, centre: float, half_range: float) -> Iterator[JointComponents]:
        """Yield the components of every cell, in such half ranges about a centre."""
        shift, factor = (self.centre - centre) / half_range, self.half_range / half_range
        for components in self.posterior.joint_components():
            yield components.moved(shift, factor)

    def prior_distribution(self) -> NormalInverseGammaDistribution:
        """The prior, which is no mixture, as the distribution of one cell."""
        prior = self.posterior.noisy.prior
        return self._distribution(prior.loc, prior.precision, prior.concentration, prior.scale)

    def mixture(self, draws: int, rng: np.random.Generator) -> NormalInverseGammaDistribution:
        """Conjugate distributions given draws of the latent sums, draw by draw, then by cell."""
        given = self.posterior.sample_given(draws, rng)
        return self._distribution(given.loc, given.precision, given.concentration, given.scale)

    def _distribution(
        self, loc: Floats, precision: Floats, concentration: Floats, scale: Floats
    ) -> NormalInverseGammaDistribution:
        """A distribution in half ranges about the centre, in the column's unit."""
        return NormalInverseGammaDistribution(
            loc=(self.centre + self.half_range * loc).ravel(),
            precision=precision.ravel(),
            concentration=concentration.ravel(),
            scale=(self.half_range**2 * scale).ravel(),
            names=self.names,
        )


_SLOTS = 2**16


def sample_sums(
    weights: MomentWeights, boxes: Boxes, mass: Floats, draws: int, rng: np.random.Generator
) -> tuple[Floats, Parts]:
    """Draws of (N, m, log E), (n_cells, draws, 3), and the part of the prior of each, (n_cells, draws).

    m and E are the mean and the mean square deviation of the rows.
    ``boxes`` stand cell by cell, ``mass`` is the log of a bound of the mass on each. Where N is 0 or 1, log E
    stands for an E of 0.
    """
    cells = weights.noisy.totals.n_cells
    bound = mass - boxes.log_volume()
    starts = np.searchsorted(boxes.cell, np.arange(cells))
    top = np.maximum.reduceat(mass, starts)
    share = np.exp(mass - top[boxes.cell])
    share /= np.bincount(boxes.cell, share, cells)[boxes.cell]
    # Cell i owns i..i + 1 of this: one search finds the box of any cell.
    ends = np.cumsum(share)
    ends += boxes.cell - (ends[starts] - share[starts])[boxes.cell]
    lasts = np.append(starts[1:], len(mass)) - 1
    result, part = np.empty((cells * draws, 3)), np.empty(cells * draws, dtype=np.int64)
    for start in range(0, len(result), _SLOTS):
        pending = np.arange(start, min(start + _SLOTS, len(result)))
        while pending.size:
            cell = pending // draws
            chosen = np.searchsorted(ends, cell + rng.random(len(cell)), side="right")
            chosen = np.clip(chosen, starts[cell], lasts[cell])
            chosen_boxes = boxes.take(chosen)
            point = _points(chosen_boxes, rng)
            log_weight = weights.log_weight(cell, chosen_boxes.part, *point.T)
            # (2).
            accepted = np.log1p(-rng.random(len(cell))) < log_weight - bound[chosen]
            result[pending[accepted]], part[pending[accepted]] = point[accepted], chosen_boxes.part[accepted]
            pending = pending[~accepted]
    return result.reshape(cells, draws, 3), part.reshape(cells, draws)


def sample_parameters(given: Given, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw mean and variance, in half ranges, given the latent sums."""
    variance = given.scale / rng.standard_gamma(given.concentration)
    mean = given.loc + np.sqrt(variance / given.precision) * rng.standard_normal(variance.shape)
    return mean, variance


def _points(boxes: Boxes, rng: np.random.Generator) -> Floats:
    """Draw one point in every box, uniformly; N is an integer."""
    sides = boxes.high - boxes.low
    sides[:, 0] += 1.0
    point: Floats = boxes.low + sides * rng.random(sides.shape)
    point[:, 0] = np.minimum(np.floor(point[:, 0]), boxes.high[:, 0])
    return point


_ENOUGH = 0.05
"""Probability of what records in -1..1 can have from which on a sample of nodes is enough."""
_MANY_PARTS = 4
"""Of a prior, from which on boxes are many."""
_CELLS, _TOGETHER = 32, 96
"""Cells, and parts of the prior in all of them, that are worked on together: their boxes stay in caches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Integrals:
    """Of every cell: moments (n_cells, 2), log evidence, N, marginals, and differences of rules.

    Moments leave out what has none where that is next to impossible: there ``near`` is true.
    """

    mean: Floats
    sd: Floats
    log_evidence: Floats
    n: Floats
    error: Floats
    near: Mask
    marginals: tuple[MarginalMixture, MarginalMixture]

    def take(self, cells: Cells) -> Integrals:
        """Those of some cells, ascending."""
        of_mean, of_variance = self.marginals
        columns = {name: getattr(self, name)[cells] for name in _COLUMNS}
        return Integrals(**columns, marginals=(of_mean.take(cells), of_variance.take(cells)))

    def replaced(self, cells: Cells, others: Integrals) -> Integrals:
        """These, but for some cells, ascending."""
        columns = {name: getattr(self, name).copy() for name in _COLUMNS}
        for name, column in columns.items():
            column[cells] = getattr(others, name)
        of_mean, of_variance = (
            mine.replaced(cells, other) for mine, other in zip(self.marginals, others.marginals, strict=True)
        )
        return Integrals(**columns, marginals=(of_mean, of_variance))


_COLUMNS = ("mean", "sd", "log_evidence", "n", "error", "near")
"""Of the cells' integrals."""


@dataclass(frozen=True, kw_only=True)
class MomentPosterior:
    """The posterior of every cell, in half ranges about the centre.

    Attributes
    ----------
    noisy : NoisyMoments
        What it is the posterior of.
    share : float
        How fine the boxes are: no box that could be halved has more of its cell's mass. Where the prior is
        a mixture this counts by its parts, so that each is about as fine as it would be alone.
    levels : ndarray of shape (n_cells, n_levels), float64, or None
        Design effects, equally likely: rows count as that many times fewer independent ones.
    nested : bool or None
        Whether integrals are by nested rules where those are made for the problem; by default where there are
        cells enough.
    """

    noisy: NoisyMoments
    share: float = SHARE
    levels: Floats | None = None
    nested: bool | None = None

    @property
    def n(self) -> Floats:
        """Posterior means of N, (n_cells,), over the design effect where there are levels."""
        return self._integrals.n

    @property
    def mean(self) -> Floats:
        """Posterior means of mean and variance, (n_cells, 2); NaN or infinite where there are none."""
        least = self._least
        none = [np.nan if least <= 0.5 else 0.0, np.inf if least <= 1.0 else 0.0]
        return self._integrals.mean + none

    @property
    def sd(self) -> Floats:
        """Posterior standard deviations of mean and variance, (n_cells, 2); infinite where there are none."""
        return np.where(self._least > np.array([1.0, 2.0]), self._integrals.sd, np.inf)

    @property
    def bounded_moments(self) -> tuple[Floats, Floats]:
        """Means and standard deviations without tails that have none, where these are next to impossible.

        Of records within bounds they are the same to a thousandth.
        """
        near = self._integrals.near[:, None]
        return (
            np.where(near, self._integrals.mean, self.mean),
            np.where(near, self._integrals.sd, self.sd),
        )

    @property
    def _least(self) -> float:
        """The smallest N has positive probability, so its tails decide which moments there are."""
        return self.noisy.least_concentration

    @property
    def log_evidence(self) -> Floats:
        """Log densities of the noisy components, in records, under the prior: (n_cells,)."""
        return self._integrals.log_evidence

    def take(self, cells: Cells) -> Self:
        """Return the posterior of some cells, ascending; what is integrated already stays known."""
        levels = None if self.levels is None else self.levels[cells]
        taken = replace(self, noisy=self.noisy.take(cells), levels=levels)
        if "_integrals" in self.__dict__:
            # Where a cached property looks first.
            taken.__dict__["_integrals"] = self._integrals.take(cells)
        return taken

    def quantiles(self, parameter: int, q: Sequence[float]) -> Floats:
        """Quantiles of the mean (0) or the variance (1), (n_cells, len(q)), from the integrals."""
        return self.marginal(parameter).quantiles(q, self.noisy.totals.n_cells)

    def marginal(self, parameter: int) -> MarginalMixture:
        """The distribution of the mean (0) or the variance (1) of every cell."""
        return self._integrals.marginals[parameter]

    @property
    def by_nodes(self) -> bool:
        """Whether integrals are by ``nested_rule`` rather than by boxes: the one place that chooses.

        Of few cells compiled code is not loaded. Rules have no design effects and one fineness of their own.
        """
        usual = self.share == SHARE and self.levels is None
        loops = MOMENT_NODES if self.noisy.prior.n_parts >= _MANY_PARTS else MOMENT_NODES_OF_FEW
        wanted = loops.pay(self.noisy.totals.n_cells) if self.nested is None else self.nested
        return usual and wanted and can_integrate(self.noisy)

    @property
    def error(self) -> Floats:
        """The error that nested rules state, (n_cells, 5); NaN where integrals are by boxes.

        Of the means of mean and variance in standard deviations, of the logs of both standard deviations, and
        of the log evidence: mean, its deviation, variance, its deviation, evidence.
        """
        return self._integrals.error

    @cached_property
    def _integrals(self) -> Integrals:
        """What draws need none of."""
        if not self.by_nodes:
            integrals = self._by_boxes()
        else:
            nested = integrate_nested(self.noisy)
            integrals = Integrals(
                mean=nested.moments[:, [0, 2]],
                sd=nested.moments[:, [1, 3]],
                log_evidence=nested.moments[:, 4] + np.sum(np.log(self.noisy.totals.rate / 2.0)),
                n=nested.moments[:, 5],
                error=nested.error,
                near=nested.near,
                marginals=nested.marginals,
            )
            rest = np.flatnonzero(~nested.settled)
            if rest.size:
                boxes = replace(self, noisy=self.noisy.take(rest), nested=False)
                integrals = integrals.replaced(rest, boxes._by_boxes())  # noqa: SLF001 - of the same class
        return integrals

    def _by_boxes(self) -> Integrals:
        shape = (self.noisy.totals.n_cells, 2)
        mean, sd, log_evidence, n = np.empty(shape), np.empty(shape), np.empty(shape[0]), np.empty(shape[0])
        means, variances, starts = [], [], []
        for cells in _batches(self.noisy):
            nodes = self._nodes(cells)
            mean[cells, 0], sd[cells, 0] = mean_moments(nodes, len(cells))
            mean[cells, 1], sd[cells, 1] = variance_moments(nodes, len(cells))
            log_evidence[cells] = nodes.log_evidence + np.sum(np.log(self.noisy.totals.rate / 2.0))
            n[cells] = np.bincount(nodes.cell, nodes.weight * nodes.n, len(cells))
            means.append(MarginalMixture.of_mean(nodes, len(cells)))
            variances.append(MarginalMixture.of_variance(nodes, len(cells)))
            starts.append(int(cells[0]))
        return Integrals(
            mean=mean,
            sd=sd,
            log_evidence=log_evidence,
            n=n,
            error=np.full((shape[0], 5), np.nan),
            near=np.zeros(shape[0], dtype=bool),
            marginals=(MarginalMixture.joined(means, starts), MarginalMixture.joined(variances, starts)),
        )

    def joint_components(self) -> Iterator[JointComponents]:
        """Yield the components of every cell: nodes, each of which stands for its part of a box.

        Of cells that nested rules settled they are a sample of the rules' nodes, where enough of these are
        what records in -1..1 can have.
        """
        by_rules = np.isfinite(self.error[:, -1])
        for cells in _batches(self.noisy):
            settled = cells[by_rules[cells]]
            picked = nodes_of_cells(self.noisy.take(settled)) if settled.size else []
            components = {
                cell: each
                for cell, each in zip(settled.tolist(), picked, strict=True)
                if each is not None and np.sum(each.weight * each.inside()) > _ENOUGH
            }
            rest = cells[[cell not in components for cell in cells.tolist()]]
            if rest.size:
                components.update(zip(rest.tolist(), self._in_boxes(rest), strict=True))
            for cell in cells.tolist():
                yield components.pop(cell)

    def _in_boxes(self, cells: Cells) -> Iterator[JointComponents]:
        nodes = self._nodes(cells)
        given = nodes.given
        # The marginals of mean and variance given a node, as in ``MarginalMixture``.
        loc, width = smeared(given.loc, np.sqrt(given.scale / given.concentration / given.precision))
        log_ratio, log_width = smeared(
            np.log(given.scale / given.concentration), 1.0 / np.sqrt(given.concentration)
        )
        batch = JointComponents(
            weight=nodes.weight,
            loc=loc,
            width=width,
            degrees=2.0 * given.concentration,
            log_ratio=log_ratio,
            log_width=log_width,
        )
        for cell in range(len(cells)):
            yield batch.take(nodes.cell == cell)

    def sample_given(self, draws: int, rng: np.random.Generator) -> Given:
        """Conjugate distributions given independent draws of the latent sums: arrays (draws, n_cells)."""
        parts = np.empty((4, draws, self.noisy.totals.n_cells))
        for cells in _batches(self.noisy):
            weights = MomentWeights.of(self.noisy.take(cells))
            given = self._given(weights, cells, draws, rng)
            parts[:, :, cells] = [given.loc, given.precision, given.concentration, given.scale]
        loc, precision, concentration, scale = parts
        return Given(loc=loc, precision=precision, concentration=concentration, scale=scale)

    def sample(self, draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Independent joint draws of mean and variance, each (draws, n_cells)."""
        mean = np.empty((draws, self.noisy.totals.n_cells))
        variance = np.empty_like(mean)
        for cells in _batches(self.noisy):
            weights = MomentWeights.of(self.noisy.take(cells))
            mean[:, cells], variance[:, cells] = sample_parameters(
                self._given(weights, cells, draws, rng), rng
            )
        return mean, variance

    def _given(self, weights: MomentWeights, cells: Cells, draws: int, rng: np.random.Generator) -> Given:
        """Conjugate distributions given draws of the latent sums of some cells: arrays (draws, n_cells)."""
        sums, part = sample_sums(weights, *self._cover(weights), draws, rng)
        n, mean, log_e = np.moveaxis(sums.swapaxes(0, 1), -1, 0)
        if self.levels is not None:
            levels = self.levels[cells]
            # Under a design effect d the likelihood counts as that of N / d rows.
            n = n / levels[np.arange(len(cells)), rng.integers(levels.shape[1], size=n.shape)]
        return Given.of(weights.noisy.prior.at(part.T), n, mean, log_e)

    def _nodes(self, cells: Cells) -> Nodes:
        """Nodes in the boxes of some cells."""
        weights = MomentWeights.of(self.noisy.take(cells))
        levels = None if self.levels is None else self.levels[cells]
        return integrate(weights, self._cover(weights)[0], levels)

    def _cover(self, weights: MomentWeights) -> tuple[Boxes, Floats]:
        """Boxes of some cells, and the log of a bound of the mass on each."""
        return cover(weights, self.share / weights.noisy.prior.n_parts)


def _batches(noisy: NoisyMoments) -> Iterator[Cells]:
    """Consecutive cells that fit into memory together."""
    cells = np.arange(noisy.totals.n_cells)
    step = min(_CELLS, max(1, _TOGETHER // noisy.prior.n_parts))
    for start in range(0, len(cells), step):
        yield cells[start : start + step]
