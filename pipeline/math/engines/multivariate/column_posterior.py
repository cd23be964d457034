r"""Posteriors of several columns behind noisy moments: normal, or a regression; of one data set or several.

Model: each data set r has N_r normal rows and noisy moments (``log_posterior``); data sets share the
parameters, whose prior is conjugate or spread over scales (``exact_moments``). Given the parameters data
sets are independent, and the evidence of all rows depends on the sums of their moments alone. The question
is the posterior of the parameters,

.. math:: \log p(\{N_r, t_r, Q_r\} \mid y) = \sum_r \log \bigl[p(y_r \mid N_r, t_r, Q_r) \, \pi_r(N_r) \,
    p(t_r, Q_r \mid N_r)\bigr]
    + \log e\Bigl(\sum_r N_r, \sum_r t_r, \sum_r Q_r\Bigr) + \text{const} \qquad (1)

    p(\theta \mid y) = E\bigl[p(\theta \mid \textstyle\sum_r (N_r, t_r, Q_r), \text{scales})\bigr] \qquad (2)

where the factors of a data set have no evidence but of what is not shared: of a regression, the predictors,
whose mean and covariance each data set has for itself.

Method and error: chains draw (1) by Hamiltonian Monte Carlo (``hmc``); (2) is a mixture of conjugate
distributions over their states. The error is that of Monte Carlo, with R-hat and effective draws. Rounding
to the lattice adds a twelfth of a squared step to every square, on average (Sheppard), which is part of the
map from moments to components. Sums add up as

.. math:: S / N = \sum_r \frac{N_r}{N} \bigl(S_r / N_r + (\bar z_r - \bar z)(\bar z_r - \bar z)^T\bigr)
    \qquad (3)
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.normal_inverse_wishart import estimate
from suffice.pipeline.math.engines.cone.latent_noise import SHARE
from suffice.pipeline.math.engines.multivariate.compiled_target import compiled_if_it_pays
from suffice.pipeline.math.engines.multivariate.evidence import (
    MomentState,
    OutcomeNoise,
    outer,
)
from suffice.pipeline.math.engines.multivariate.exact_moments import (
    lengths,
    mixture_of_states,
    moments_of,
    normal_evidence,
    normal_update,
    regression_evidence,
    regression_update,
)
from suffice.pipeline.math.engines.multivariate.hmc import Course, sample_until_settled
from suffice.pipeline.math.engines.multivariate.integrals import log_integral
from suffice.pipeline.math.engines.multivariate.latent_scales import along
from suffice.pipeline.math.engines.multivariate.log_posterior import LatentN, LatentTarget
from suffice.pipeline.math.engines.multivariate.near_moments import near
from suffice.pipeline.math.engines.multivariate.noise_coordinates import NoiseTarget, is_flat
from suffice.pipeline.math.engines.multivariate.normalisers import log_constant
from suffice.pipeline.math.engines.multivariate.released_moments import cone_noises, noisy_moments
from suffice.pipeline.math.engines.multivariate.shared_target import SharedTarget
from suffice.pipeline.math.priors.record_count import Reciprocal
from suffice.pipeline.terms.statistics.moment_columns import is_linear, least_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.distributions.composite import ConjugateMixture
    from suffice.pipeline.math.distributions.normal_inverse_wishart import Moments
    from suffice.pipeline.math.engines.multivariate.evidence import Evidence
    from suffice.pipeline.math.engines.multivariate.exact_moments import (
        AnyNormalPrior,
        AnyRegressionPrior,
        ConjugateDistribution,
        Update,
    )
    from suffice.pipeline.math.engines.multivariate.integrals import Integral
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


_SEEN = 5.0
"""Conditional variances of so many times the noise are taken for seen."""
_UNIT = 0.3
"""Below so much of the noise's standard deviation chains move along the logarithm of a column's scatter."""
_OF_UNIT = 0.5
"""How far chains start apart where coordinates are in units of their standard deviation."""
MOST_ITERATIONS = 128
"""Draws of each chain that are kept behind cone noise, whose states have many coordinates."""
_OF_MOMENTS = Course(doublings=6, abreast=True)
_OF_NOISE = Course(
    stages=(20, 30, 30), fewest_steps=3, first_step=0.4, independent=True, doublings=5, abreast=True
)
_COEFFICIENT = 0.5
"""About how large a coefficient is, in half ranges, of a predictor whose scale noise hides."""


def with_lengths(target: LatentTarget, sums: Moments, *, outcome: bool) -> LatentTarget:
    """Return the target in coordinates that suit its cells; see ``LatentTarget.relative``.

    Where noise hides a column's scale, products with it are in units of that scale, or of what the noise
    leaves where it is smaller; where it is seen they stay as they are. Those of an outcome, the last column,
    go along with the predictor's scale or, where that is next to nothing, with the sampling error.
    """
    n, noise, _, spread = near(target, sums)
    rows, _ = np.tril_indices(target.size, -1)
    pivots = np.einsum("cii->ic", np.linalg.cholesky(np.moveaxis(spread, 2, 0))) ** 2
    # A conditional variance below a few times the noise cannot be told from 0.
    hidden = (pivots < _SEEN * noise).astype(np.float64)
    # A correlation may be near 1: then an entry is far larger than its row's conditional scale.
    unit = np.sqrt(np.minimum(1.0, noise))
    relative = np.stack(
        [np.zeros((len(rows), len(n))), hidden[rows], np.where(hidden[rows] > 0.0, unit, 1.0)]
    )
    if outcome:
        of_outcome = rows == target.size - 1
        # An outcome's entry is beta L_jj plus a sampling error of L_yy / sqrt(n).
        relative[0, of_outcome] = _COEFFICIENT
        relative[1, of_outcome] = 1.0 / np.sqrt(n)
        relative[2, of_outcome] = 0.0
    units = np.repeat(_UNIT * unit[None], target.size, axis=0)
    if not outcome:
        return replace(target, relative=relative, units=units)
    # Of every moment, by least squares over all components.
    sds = target.noise_sds
    _, second = np.triu_indices(target.size)
    lengths = OutcomeNoise(
        rows=n,
        noise=sds[1 + target.size :][second == target.size - 1][:-1, None] / n,
        noise_of_mean=sds[target.size] / n,
        most=np.sqrt(spread[-1, -1] + 2.0 * noise),
    )
    return replace(target, relative=relative, units=units, outcome=lengths)


def starts(
    target: LatentTarget,
    sums: Moments,
    n_chains: int,
    squares: Floats | None,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return overdispersed starts about the noisy moments, made possible, and a guess of the spread.

    Parameters
    ----------
    target : LatentTarget
    sums : Moments
        The unbiased estimates.
    n_chains : int
        Of each cell.
    squares : ndarray of shape (k, n_cells), float64, or None
        Of likely coefficients of a regression.
    rng : numpy.random.Generator

    Returns
    -------
    start : ndarray of shape (n_coordinates, n_cells, n_chains), float64
    guess : ndarray of shape (n_coordinates, n_cells), float64
        Of the posterior's standard deviations.
    """
    size, latent_n = target.size, target.latent_n
    n, noise_of_products, average, spread = near(target, sums)
    doubt = np.minimum(1.0, noise_of_products)
    base_point = target.coordinates(n, average, spread, squares)
    state = MomentState(n=n, mean=average, spread=spread, second=spread + outer(average, average))
    whole: Floats = np.moveaxis(np.linalg.cholesky(np.moveaxis(spread, 2, 0)), 0, 2).astype(np.float64)
    latent = [evidence.start(state) for evidence in target.evidence]
    relative_to = along(target.evidence, whole)
    noise = target.noise_sds[0]
    scales = [np.minimum(0.5, noise / n)[None]] if not latent_n.fixed else []
    if target.linear:
        of_means = np.repeat(0.3 * doubt[None], size, axis=0)
        if squares is not None:
            of_means[-1] = _OF_UNIT
        scales.append(of_means)
    rows, columns = np.tril_indices(size)
    root = np.sqrt(np.einsum("iic->ic", spread))
    below = np.minimum(0.5 * root[rows], doubt / root[columns])
    if target.relative is not None:
        below[rows != columns] /= target.lengths(root, size * (size - 1) // 2)[0]
    if squares is not None:
        below[rows == size - 1] = _OF_UNIT
    relative = np.minimum(0.3, doubt / root[rows] ** 2)
    if target.units is not None:
        relative *= np.maximum(1.0, (root / target.units)[rows])
    scales.append(np.where((rows == columns)[:, None], relative, below))
    scales += [sd for _, sd in latent]
    guess = np.maximum(np.concatenate(scales), 1e-12)
    scales_start = np.concatenate([relative_to[:0], *(each for each, _ in latent)]) - relative_to
    base_point = np.concatenate([base_point, scales_start])
    # Starts farther apart than the posterior is wide, so that R-hat can tell (Gelman et al. 2013).
    jitter = rng.standard_normal((len(base_point), len(n), n_chains))
    start = base_point[:, :, None] + guess[:, :, None] * jitter
    of_noise = [noise.draw(len(n) * n_chains, rng).reshape(-1, len(n), n_chains) for noise in target.cone]
    guesses = [np.repeat(noise.spread()[:, None], len(n), axis=1) for noise in target.cone]
    return np.concatenate([start, *of_noise]), np.concatenate([guess, *guesses])


def shared_start(
    target: SharedTarget, begun: Sequence[Floats], rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return starts of the shared latent scales where those of data sets are, and a guess of the spread."""
    _, n_cells, n_chains = begun[0].shape
    x = np.concatenate(begun).reshape(-1, n_cells * n_chains)
    empty = np.zeros((sum(evidence.n_latent for evidence in target.shared), x.shape[1]))
    whole = np.concatenate([x, empty])
    # Shared scales start where the added moments are.
    state = target.total(whole)
    starts = [evidence.start(state) for evidence in target.shared]
    start, guess = (np.concatenate([empty[:0], *parts]) for parts in zip(*starts, strict=True))
    start = start - target.latent(whole) + guess * rng.standard_normal(start.shape)
    shape = (-1, n_cells, n_chains)
    return start.reshape(shape), guess.reshape(shape)[:, :, 0]


def normal_posterior(
    statistics: Sequence[NoisyStatistic], prior: AnyNormalPrior, n_priors: Sequence[NPrior]
) -> ConjugateMixture:
    """Return the posterior of means, variances and covariances given noisy moments of some data sets.

    Raises
    ------
    PriorError
        Where the prior does not fit the columns, or leaves N below the number of columns plus 2.
    """
    return normal_chains(statistics, prior, n_priors).mixture()


def normal_chains(
    statistics: Sequence[NoisyStatistic], prior: AnyNormalPrior, n_priors: Sequence[NPrior]
) -> Chains:
    """Run chains of means, variances and covariances given noisy moments; see ``normal_posterior``."""
    columns = statistics[0].plan.parameters.columns
    sums = estimate(statistics[0])
    shared = normal_evidence(prior, len(columns), sums.centre, sums.half_range, linear=True)
    update = normal_update(prior, shared, tuple(column.name for column in columns))
    return _chains(statistics, (), (shared,), n_priors, f"{prior}", update)


def regression_posterior(
    statistics: Sequence[NoisyStatistic],
    prior: AnyRegressionPrior,
    n_priors: Sequence[NPrior],
    predictors: AnyNormalPrior,
) -> ConjugateMixture:
    """Return the posterior of a regression given noisy moments; see ``regression_chains``."""
    return regression_chains(statistics, prior, n_priors, predictors).mixture()


def regression_chains(
    statistics: Sequence[NoisyStatistic],
    prior: AnyRegressionPrior,
    n_priors: Sequence[NPrior],
    predictors: AnyNormalPrior,
) -> Chains:
    """Run chains of a regression given noisy moments; the rows' predictors are modelled as normal.

    Parameters
    ----------
    statistics : sequence of NoisyStatistic
        Of one or several data sets with one regression. Each has predictors of its own mean and covariance.
    prior : NormalInverseGammaRegression or SpreadNormalInverseGammaRegression
    n_priors : sequence of NPrior
        Of each data set's number of rows.
    predictors : NormalInverseWishart or SpreadNormalInverseWishart
        The public prior of the predictors' mean and covariance. Without an intercept they are normal about 0.

    Raises
    ------
    PriorError
        As for ``normal_posterior``.
    """
    parameters = statistics[0].plan.parameters
    linear, size = is_linear(parameters), len(parameters.columns) - 1
    sums = estimate(statistics[0])
    evidence = normal_evidence(predictors, size, sums.centre[:-1], sums.half_range[:-1], linear=linear)
    shared = regression_evidence(prior, parameters)
    update = regression_update(prior, shared, parameters)
    return _chains(statistics, (evidence,), (shared,), n_priors, f"{prior} {predictors}", update)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chains:
    """What chains have drawn from (1).

    Attributes
    ----------
    target : SharedTarget
    kept : ndarray of shape (iterations, n_coordinates, n_cells, n_chains), float64
    update : Update
    centre, half_range : ndarray of shape (d,), float64
        Of the columns.
    rng : numpy.random.Generator
    """

    target: SharedTarget
    kept: Floats
    update: Update
    centre: Floats
    half_range: Floats
    rng: np.random.Generator

    def given(self, x: Floats) -> ConjugateDistribution:
        """Return the parameters given states (n_coordinates, b), those of a cell together."""
        moments = moments_of(self.target.total(x), self.centre, self.half_range)
        return self.update(moments, self.target.latent(x), self.rng)

    def mixture(self) -> ConjugateMixture:
        """Return the mixture (2) over states."""
        # The target wants the states of every cell together; what follows, draws, then chains, then cells.
        flat = self.kept.transpose(1, 2, 0, 3).reshape(self.kept.shape[1], -1)
        order = np.arange(flat.shape[1]).reshape(self.kept.shape[2], -1).T.ravel()
        moments = moments_of(self.target.total(flat), self.centre, self.half_range).take(order)
        given = self.update(moments, self.target.latent(flat)[:, order], self.rng)
        mixture = mixture_of_states(given, self.kept, self.rng)
        if not any(target.cone for target in self.target.targets):
            return mixture
        return replace(mixture, diagnostics={**mixture.diagnostics, "noise_taken_for_normal": SHARE})

    def take(self, cell: int) -> Self:
        """Return those of one cell."""
        cells = np.array([cell])
        return replace(self, target=self.target.take(cells), kept=self.kept[:, :, cells])

    def log_evidence(self) -> Integral:
        """Return the log density of what was released under conjugate priors, in units of Laplace noise.

        It is given that N is at least the least number of rows.
        """
        integral = log_integral(self.target, self.kept, self.rng)
        return replace(integral, log=integral.log + log_constant(self.target))

    @property
    def states(self) -> Floats:
        """States of one cell, (n_coordinates, b)."""
        return self.kept.transpose(1, 2, 0, 3).reshape(self.kept.shape[1], -1)


def _chains(
    statistics: Sequence[NoisyStatistic],
    of_data_set: tuple[Evidence, ...],
    shared: tuple[Evidence, ...],
    n_priors: Sequence[NPrior],
    prior: str,
    update: Update,
) -> Chains:
    sums = [estimate(statistic) for statistic in statistics]
    size, n_cells = sums[0].total.shape[1], len(sums[0].n)
    target = SharedTarget(
        targets=tuple(
            with_lengths(_target(statistic, of_data_set, n_prior, size), moments, outcome=bool(of_data_set))
            for statistic, moments, n_prior in zip(statistics, sums, n_priors, strict=True)
        ),
        shared=shared,
    )
    rng = generator_of(statistics, prior, *map(str, n_priors))
    n_chains, iterations = lengths(n_cells)
    cells = np.arange(n_cells)
    flat = cells[:0]
    if any(part.cone for part in target.targets):
        iterations = min(iterations, MOST_ITERATIONS)
        flat = _flat_cells(target, rng)
    kept = np.empty((iterations, target.n_coordinates, n_cells, n_chains))
    if len(flat):
        kept[:, :, flat] = _through_noise(target.take(flat), n_chains, iterations, rng)
    rest = np.setdiff1d(cells, flat)
    if len(rest):
        near = [moments.take(rest) for moments in sums]
        kept[:, :, rest] = _through_moments(target.take(rest), near, n_chains, iterations, rng)
    first = sums[0]
    return Chains(
        target=target, kept=kept, update=update, centre=first.centre, half_range=first.half_range, rng=rng
    )


def _flat_cells(target: SharedTarget, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the cells whose noise is well below their scatter, of one release with cone noise alone."""
    only = target.targets[0]
    is_one = len(target.targets) == 1 and len(only.cone) == 1 and not len(only.scaled.scale)
    if not is_one or only.latent_n.fixed:
        return np.arange(0)
    return np.flatnonzero(is_flat(NoiseTarget.of(only, target.shared), rng))


def _through_noise(target: SharedTarget, n_chains: int, iterations: int, rng: np.random.Generator) -> Floats:
    """Return states of chains that move along coordinates of noise."""
    by_noise = NoiseTarget.of(target.targets[0], target.shared)
    start, spread = by_noise.start(n_chains, rng)
    kept = sample_until_settled(by_noise, start, spread, iterations, rng, _OF_NOISE)
    squares = target.likely_squares(1)
    return by_noise.in_other_coordinates(kept, None if squares is None else squares[:, 0])


def _through_moments(
    target: SharedTarget,
    sums: Sequence[Moments],
    n_chains: int,
    iterations: int,
    rng: np.random.Generator,
) -> Floats:
    """Return states of chains that move along coordinates of moments."""
    squares = target.likely_squares(len(sums[0].n))
    begun = [
        starts(part, moments, n_chains, squares, rng)
        for part, moments in zip(target.targets, sums, strict=True)
    ]
    begun.append(shared_start(target, [base for base, _ in begun], rng))
    start, spread = (np.concatenate(parts) for parts in zip(*begun, strict=True))
    density = compiled_if_it_pays(target, len(sums[0].n))
    return sample_until_settled(density, start, spread, iterations, rng, _OF_MOMENTS)


def _target(
    statistic: NoisyStatistic, evidence: tuple[Evidence, ...], n_prior: NPrior, size: int
) -> LatentTarget:
    return LatentTarget(
        size=size,
        linear=is_linear(statistic.plan.parameters),
        evidence=evidence,
        latent_n=_latent_n(n_prior, size, least_rows(statistic.plan.parameters)),
        scaled=noisy_moments(statistic).in_scales(),
        cone=cone_noises(statistic),
    )


def require_rows(n_prior: NPrior, size: int, least: int) -> None:
    """Refuse a prior of N that leaves too few rows for their moments to have a density.

    Raises
    ------
    PriorError
    """
    if n_prior.support[1] < least:
        message = (
            f"the prior of N, {n_prior}, ends below {least}: a noise-aware posterior of {size} columns needs "
            f"at least {least} rows"
        )
        raise PriorError(message)


def _latent_n(n_prior: NPrior, size: int, least: int) -> LatentN:
    """Return the prior of N from the least number of rows whose moments have a density."""
    require_rows(n_prior, size, least)
    most = n_prior.support[1]
    lowest = max(least, n_prior.support[0])
    if most == lowest:
        return LatentN(lowest=float(lowest), highest=float(lowest), reciprocal=False, fixed=True)
    return LatentN(
        lowest=lowest - 0.5, highest=most + 0.5, reciprocal=isinstance(n_prior, Reciprocal), fixed=False
    )


def generator_of(statistics: Sequence[NoisyStatistic], *texts: str) -> np.random.Generator:
    """Return a generator that the releases and priors determine: who asks again gets the same chains."""
    observations = [observation for statistic in statistics for observation in statistic.observations]
    content = repr(
        (observations[0].plan.name, [observation.values.tolist() for observation in observations], texts)
    ).encode()
    seed = int.from_bytes(hashlib.sha256(content).digest()[:16], "big")
    return np.random.default_rng(seed)
