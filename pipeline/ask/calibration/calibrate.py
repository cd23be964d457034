"""Simulation-based calibration: whether 95 % intervals of a release's posteriors hold 95 % of the truths.

For every simulation the parameters are drawn from their prior and a private N from its own, a data set from
the model, its sums are clipped and rounded as the release's were, and noise of the release's distribution is
added. The posterior of these is then sampled as a user samples it; that of the same records without clipping
ignores it. Where model and posterior fit, the rank of the truth among ``DRAWS`` independent draws is uniform
on ``0..DRAWS``, whatever the problem.

References
----------
`talts2018validating`.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.ask.calibration.remedies import tried_remedies
from suffice.pipeline.ask.calibration.result import Calibration, NoiseSeen
from suffice.pipeline.ask.calibration.simulated_release import (
    generative_model_of,
    require_drawable,
    require_positive,
)
from suffice.pipeline.ask.calibration.verdict import (
    DRAWS,
    NOT_CALIBRATED,
    Ranks,
    batch_of,
    judge,
    ranks_of,
    simulations_needed,
)
from suffice.pipeline.ask.calibration.world_coverage import SIMULATIONS as WORLD_SIMULATIONS
from suffice.pipeline.ask.calibration.world_coverage import world_coverages
from suffice.pipeline.ask.inference.bounded_records import (
    BY_EVIDENCE,
    IGNORED,
    require_way_of_clipping,
)
from suffice.pipeline.ask.posterior.cells import cells_of
from suffice.pipeline.ask.posterior.posterior import NOISE_AWARE, PLUG_IN
from suffice.pipeline.math.parameters.draws import generator
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.ask.calibration.remedies import Remedy
    from suffice.pipeline.ask.calibration.simulated_release import AnyPredictors, GenerativeModel
    from suffice.pipeline.ask.calibration.verdict import Progress
    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.math.distributions.prior import Prior
    from suffice.pipeline.math.priors.record_count import NPrior

SIMULATIONS = 5000
"""Or more where several parameters need more, to be called calibrated with chance .99."""
SLOW_SIMULATIONS = 200
"""Where posteriors are slow, by MCMC or quadrature: 20 milliseconds to several seconds, twice if clipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Ranks of the truth over many simulations.

    Attributes
    ----------
    clipped, unclipped : tuple of Ranks
        With clipping as in the release, and of the very same records without.
    ignored : tuple of Ranks
        Of the same noisy sums without clipping, under the plug-in posterior; empty unless asked for.
    widening : tuple of float
        Of each parameter, the median over all data sets of the width of the central 80 % interval over that
        of the plug-in posterior of the sums without noise; empty unless asked for.
    clipped_share : float
        The share of all simulated records that were clipped.
    """

    clipped: tuple[Ranks, ...]
    unclipped: tuple[Ranks, ...]
    ignored: tuple[Ranks, ...]
    widening: tuple[float, ...]
    clipped_share: float


def calibrate(
    release: Release,
    statistic: str,
    *,
    where: Mapping[str, object] | None = None,
    method: str = NOISE_AWARE,
    prior: AnyPrior = None,
    n_prior: NPrior | int | str | None = None,
    clipping: str = BY_EVIDENCE,
    predictor_prior: Prior | str | None = None,
    predictors: AnyPredictors = None,
    worlds: Sequence[str] | bool = False,
    simulations: int | None = None,
    rng: np.random.Generator | int | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Measure whether posteriors of a release's statistic are calibrated, clipping and noise included.

    Everything is simulated from public numbers; it costs no privacy.

    Parameters
    ----------
    release : Release
    statistic : str
        Its name in the release.
    where : mapping, optional
        The cells whose noisy numbers of records the default prior of N rests on; all otherwise.
    method : {"noise-aware", "plug-in"}
        As in ``Release.posterior``. The plug-in method is no calibrated one, and this shows by how much.
    prior : optional
        Any that ``Release.posterior`` takes. The truth is drawn from it; the family's default otherwise.
    n_prior : optional
        A private N is drawn from it, and the posterior is computed under it. By default uniform on
        ``0..2 N0`` with ``N0`` the median of the cells' noisy numbers of records, at least 1.
    clipping : {"by-evidence", "modelled", "ignored"}
        As in ``Release.posterior``, of the run with clipping: its truths are the parameters of records
        before clipping where that is modelled, and else those that the records tend to once clipped. Counts
        of clipped records are left out of simulations, so that by evidence none is modelled.
    predictor_prior : Prior or str, optional
        As in ``Release.posterior``, of a regression's predictors.
    predictors : optional
        What the predictors of simulated records are like, where not as their prior says: a distribution by
        its name, as ``Normal(0, 1)``, or one of ``scipy.stats``, one for all or one for each; or public rows,
        as columns by name or the name of a .csv or .parquet file.
    worlds : bool or sequence of str
        Whether coverage is measured in worlds that are not the model as well, all of them or those named:
        skewed, heavy-tailed, rounded, mixture, zero-inflated, overdispersed, correlated, clipped. There the
        truth is the parameter of a whole population as the public bounds leave its records, and is not drawn
        from the prior.
    simulations : int, > 0, optional
        By default ``SIMULATIONS``, more where several parameters need more for a verdict, or
        ``SLOW_SIMULATIONS`` where posteriors take MCMC (seconds for several columns), quadrature of a density
        or that of clipped normals (a minute or a few): too few to be called calibrated. The result says how
        many it takes, and how long. Of each world as many, by default 2,000 or ``SLOW_SIMULATIONS``.
    rng : numpy.random.Generator or int, optional
        A generator or the seed of one; a fresh one otherwise.
    progress : callable, optional
        Told how many of all simulations are done.

    Returns
    -------
    Calibration

    Raises
    ------
    UsageError, PriorError
        Where the statistic, the method or a prior does not fit, or too many records would have to be drawn.
    """
    if simulations is not None:
        require_positive("simulations", simulations)
    chosen = cells_of(release.statistic(statistic), where)
    require_way_of_clipping(clipping)
    generative_model = generative_model_of(
        chosen,
        release.entry(statistic),
        method,
        prior,
        n_prior,
        predictor_prior,
        predictors,
    )
    generative_model = dataclasses.replace(generative_model, clipping=clipping)
    of_each_world = simulations or (SLOW_SIMULATIONS if generative_model.is_slow else WORLD_SIMULATIONS)
    if simulations is None:
        simulations = default_simulations(generative_model)
    source = generator(rng)
    started = time.monotonic()
    simulated = simulate(generative_model, simulations, source, progress, sees_noise=True)
    seconds = time.monotonic() - started
    remedies: tuple[Remedy, ...] = ()
    if judge(simulated.clipped).conclusion == NOT_CALIBRATED:
        remedies = tried_remedies(generative_model, simulations, source, prior_follows_bounds=prior is None)
    coverages = world_coverages(generative_model, worlds, of_each_world, source, progress) if worlds else ()
    widest = int(np.argmax(simulated.widening))
    noise = NoiseSeen(
        ignored=simulated.ignored,
        variance_ratio=None if method == PLUG_IN else simulated.widening[widest] ** 2 - 1.0,
        parameter=simulated.clipped[widest].name,
    )
    return Calibration(
        statistic=statistic,
        family=generative_model.plan.family,
        method=method,
        prior=str(generative_model.prior),
        n_prior=str(generative_model.n_prior),
        predictor_prior=_text(None if method == PLUG_IN else generative_model.predictor_prior),
        predictors=_text(generative_model.predictor_prior and (generative_model.predictors or "their prior")),
        epsilon=generative_model.plan.epsilon,
        simulations=simulations,
        seconds=seconds,
        clipped_share=simulated.clipped_share,
        clipped=simulated.clipped,
        unclipped=simulated.unclipped,
        noise=noise,
        remedies=remedies,
        worlds=coverages,
        leaves_out_units=chosen.plan.within_unit is not None,
    )


def _text(given: object) -> str | None:
    return None if given is None else str(given)


def default_simulations(generative_model: GenerativeModel) -> int:
    """Return how many simulations a verdict takes, or how many slow posteriors are worth by default."""
    if generative_model.is_slow:
        return SLOW_SIMULATIONS
    n_parameters = generative_model.truth(1, np.random.default_rng(0)).size
    return max(SIMULATIONS, simulations_needed(n_parameters))


def simulate(
    generative_model: GenerativeModel,
    simulations: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
    *,
    sees_noise: bool = False,
) -> Simulated:
    """Draw data sets and their noisy sums, and rank each truth among draws of its posterior.

    Parameters
    ----------
    generative model : GenerativeModel
    simulations : int, > 0
    rng : numpy.random.Generator
    progress : callable, optional
        Told how many of all simulations are done.
    sees_noise : bool
        Whether the posteriors that ignore the noise, and those without noise, are worked out as well.

    Raises
    ------
    UsageError
        Where more than ``MOST_RECORDS`` records would have to be drawn.
    """
    sizes = generative_model.sizes(simulations, rng)
    batch = batch_of(generative_model)
    n_records = sum(sizes.tolist())
    require_drawable(generative_model, n_records)
    conjugate = dataclasses.replace(generative_model, method=PLUG_IN, believed_n_prior=None, clipping=IGNORED)
    names: tuple[tuple[str, str | None], ...] = ()
    parts: list[tuple[NDArray[Any], ...]] = []
    n_clipped = 0
    for start in range(0, simulations, batch):
        size = sizes[start : start + batch]
        truth = generative_model.truth(len(size), rng)
        sums = generative_model.sums(truth, size, rng)
        noise = discrete_laplace(
            generative_model.scale,
            (len(size), len(generative_model.plan.components)),
            rng,
            generative_model.cells_summed,
        )
        seed = int(rng.integers(2**63))  # one for all, so that what is compared is all that differs
        judged = generative_model.judged(truth)
        names, clipped, widths = ranks_of(generative_model, judged, sums.clipped, noise, seed)
        unclipped = clipped.copy()
        differs = np.any(sums.clipped != sums.unclipped, axis=1)
        if generative_model.family.models_clipping:
            # Their posteriors differ also where nothing was clipped: that might have been.
            differs |= np.any(differs)
        if np.any(differs):
            free = dataclasses.replace(generative_model, clipping=IGNORED)
            _, unclipped[differs], widths[differs] = ranks_of(
                free,
                truth[differs],
                sums.unclipped[differs],
                noise[differs],
                seed,
                whole_prior=not generative_model.is_of_bounded_records,
            )
        ranks: list[NDArray[Any]] = [clipped, unclipped]
        if sees_noise:
            _, ignored, _ = ranks_of(conjugate, truth, sums.unclipped, noise, seed)
            _, _, without_noise = ranks_of(conjugate, truth, sums.unclipped, 0 * noise, seed)
            with np.errstate(divide="ignore", invalid="ignore"):
                ranks += [ignored, widths / without_noise]
        n_clipped += sums.n_clipped
        parts.append(tuple(ranks))
        if progress is not None:
            progress(start + len(size), simulations)
    runs = [np.concatenate(part) for part in zip(*parts, strict=True)]
    widening = runs.pop() if sees_noise else None
    clipped_run, unclipped_run, *ignored_run = (
        tuple(
            Ranks(
                parameter=parameter, category=category, counts=tuple(np.bincount(column, minlength=DRAWS + 1))
            )
            for (parameter, category), column in zip(names, run.T, strict=True)
        )
        for run in runs
    )
    return Simulated(
        clipped=clipped_run,
        unclipped=unclipped_run,
        ignored=ignored_run[0] if ignored_run else (),
        widening=() if widening is None else tuple(np.nanmedian(widening, axis=0).tolist()),
        clipped_share=n_clipped / max(n_records, 1),
    )
