r"""How a statistic changed between two releases, and which of several priors a release speaks for.

**Two releases** of disjoint data, whose parameters are independent a priori:

.. math:: p(\theta_1, \theta_2 \mid y_1, y_2) = p(\theta_1 \mid y_1)\, p(\theta_2 \mid y_2)

The change is :math:`\theta_2 - \theta_1`, or :math:`\theta_2 / \theta_1`, by draws of both. What one sees who
takes noisy numbers for exact is the change of plug-in estimates, :math:`\hat\theta(y_2) - \hat\theta(y_1)`.
What noise alone does to it is told by adding the noise Z of either release once more, R times:

.. math::
    \delta_r = \hat\theta(y_2 + Z_{2r}) - \hat\theta(y_1 + Z_{1r}) - \hat\theta(y_2) + \hat\theta(y_1), \qquad
    p = \frac{1 + \#\{r : |\delta_r| \ge |\hat\theta(y_2) - \hat\theta(y_1)|\}}{1 + R}

**Several priors** of one release are compared by the probability of what was released,

.. math:: B_{AB} = \frac{p(y \mid A)}{p(y \mid B)}

by cell, and of all cells together, whose parameters are independent, their product. Odds between the priors
after the release are those before it times this. It says nothing of whether any of them is right
(``Posterior.conflict`` does), and a prior chosen by it has used the release once already. Its error is that
of the posterior's evidence.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference import posterior_terms
from suffice.pipeline.ask.inference.any_joint_prior import conjugate_like
from suffice.pipeline.ask.pooling.adopted import refuse_adopted
from suffice.pipeline.ask.pooling.pool import Relation, aligned, relation_of, require, require_agreement
from suffice.pipeline.ask.posterior.choice_of_engine import noise_aware, plug_in
from suffice.pipeline.ask.posterior.shown import change_table
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.parameters import contrasts
from suffice.pipeline.math.parameters.arguments import checked_draws, generator
from suffice.pipeline.math.parameters.parameter_posterior import DRAWS, MASS
from suffice.pipeline.terms.declaration.documents import Rows, printed
from suffice.pipeline.terms.declaration.wording import text_table
from suffice.pipeline.terms.statistics.simulated_noise import simulated_noise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Unpack

    from suffice.pipeline.ask.borrowing.held_out import HeldOutComparison
    from suffice.pipeline.ask.borrowing.pooling import Pooling
    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.math.engines.histogram.column_law import ColumnChange
    from suffice.pipeline.math.priors.mixtures import Mixture
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.released.table import Table
    from suffice.typing import Floats


class Evidence(TypedDict):
    """Of a prior: the log evidence of all cells, and its difference from that of the first prior.

    The error is that of the difference: None where no evidence is an estimate.
    """

    prior: str
    log_evidence: float
    log_bayes_factor: float
    standard_error: float | None


@printed("statistic priors n_prior totals rows")
@dataclass(frozen=True, slots=True, kw_only=True)
class PriorComparison:
    """Log evidence of a release's statistic under several priors.

    Attributes
    ----------
    statistic : str
    priors : tuple of str
        In the order given; Bayes factors are against the first.
    n_prior : str
        The prior of N, the same with all of them.
    groups : dict of str to list
        The key of every cell, by group column.
    log_evidence : ndarray of shape (n_cells, n_priors), float64
        Log probability of the released values.
    standard_error : ndarray of shape (n_cells, n_priors), float64, or None
        Of its estimates by Monte Carlo, whose errors are independent; None where it is worked out.
    """

    statistic: str
    priors: tuple[str, ...]
    n_prior: str
    groups: Mapping[str, list[str | int]] = field(repr=False)
    log_evidence: Floats = field(repr=False)
    standard_error: Floats | None = field(default=None, repr=False)

    @property
    def factor_errors(self) -> Floats | None:
        """Standard errors of log Bayes factors, (n_cells, n_priors), two of which are a 95 % interval."""
        if self.standard_error is None:
            return None
        errors: Floats = np.hypot(self.standard_error, self.standard_error[:, :1])
        errors[:, 0] = 0.0
        return errors

    @property
    def total_errors(self) -> Floats | None:
        """The same of all cells together, (n_priors,)."""
        errors = self.factor_errors
        return None if errors is None else np.asarray(np.sqrt(np.sum(errors**2, axis=0)))

    @property
    def log_bayes_factors(self) -> Floats:
        """Log of each prior's evidence over the first's, (n_cells, n_priors)."""
        return self.log_evidence - self.log_evidence[:, :1]

    @property
    def total_log_bayes_factors(self) -> Floats:
        """The same of all cells together, (n_priors,)."""
        return np.asarray(np.sum(self.log_bayes_factors, axis=0))

    def rows(
        self,
    ) -> Annotated[
        list[dict[str, Any]],
        Rows(prior=str, log_evidence=float, log_bayes_factor=float, standard_error=float | None),
    ]:
        """One row a cell and prior: keys, log_evidence, log_bayes_factor against the first, its error."""
        factors, errors = self.log_bayes_factors, self.factor_errors
        return [
            {
                **{column: keys[cell] for column, keys in self.groups.items()},
                "prior": prior,
                "log_evidence": float(self.log_evidence[cell, position]),
                "log_bayes_factor": float(factors[cell, position]),
                "standard_error": None if errors is None else float(errors[cell, position]),
            }
            for cell in range(len(factors))
            for position, prior in enumerate(self.priors)
        ]

    def totals(self) -> list[Evidence]:
        """One row a prior, of all cells together: prior, log_evidence, log_bayes_factor, its error."""
        sums, errors = np.sum(self.log_evidence, axis=0), self.total_errors
        return [
            {
                "prior": prior,
                "log_evidence": float(sums[position]),
                "log_bayes_factor": float(sums[position] - sums[0]),
                "standard_error": None if errors is None else float(errors[position]),
            }
            for position, prior in enumerate(self.priors)
        ]

    def __str__(self) -> str:
        """Return the totals as a text table."""
        totals = shown(self.totals())
        digits = {"log_evidence": 6, "log_bayes_factor": 4, "standard_error": 2}
        cells = [
            [f"{value:.{digits[name]}g}" if name in digits else value for name, value in row.items()]
            for row in totals
        ]
        return text_table(list(totals[0]), cells)


def shown(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of a comparison without the column of errors where none is an estimate."""
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


@posterior_terms.lists_terms
def compare_priors(
    release: Release, statistic: str, priors: Sequence[AnyPrior], **terms: Unpack[posterior_terms.SharedTerms]
) -> PriorComparison:
    """Compare priors by the probability of what was released under each. Costs no privacy.

    Where posteriors are restricted to what records within the bounds can have, so are the priors: what a
    prior holds of other parameters costs it nothing.

    Parameters
    ----------
    release : Release
    statistic : str
        Its name in the release.
    priors : sequence of priors
        Two or more, each as ``Release.posterior`` takes it; None stands for the family's default.
    **terms
        As in ``Release.posterior``, the same with all priors.

    Raises
    ------
    UsageError
        Where fewer than two priors are given, or the statistic's posterior has no evidence.
    PriorError
        Where the family does not take one of the priors.
    """
    refuse_adopted(release)
    if isinstance(priors, str) or len(priors) < 2:
        message = "compare_priors takes a list of two priors or more, as ['Beta(1, 1)', 'Beta(1, 9)']"
        raise UsageError(message)
    posterior_terms.noise_aware_terms(None, terms)  # refuses what would change nothing
    posteriors = [release.posterior(statistic, prior, **terms) for prior in priors]
    first = posteriors[0]
    evidences = [posterior.evidence() for posterior in posteriors]
    errors = [each.standard_error for each in evidences if each.standard_error is not None]
    return PriorComparison(
        statistic=statistic,
        priors=tuple(str(posterior.prior) for posterior in posteriors),
        n_prior=str(first.n_prior),
        groups=first.groups,
        log_evidence=np.stack([each.log for each in evidences], axis=1),
        standard_error=np.stack(errors, axis=1) if len(errors) == len(evidences) else None,
    )


@posterior_terms.lists_terms
def compare_pooled(
    release: Release,
    statistic: str,
    pooled: Sequence[bool | str | Sequence[str] | Pooling],
    **terms: Unpack[posterior_terms.SharedTerms],
) -> HeldOutComparison:
    """Compare cells alone and pooled by how well each way predicts cells that are held out.

    It costs no privacy, and decides nothing: which answer is asked for is said where it is asked for.

    Parameters
    ----------
    release : Release
    statistic : str
        Its name in the release.
    pooled : sequence of bool, str, sequence of str or Pooling
        Ways to pool, each as ``Release.posterior`` takes it: ``[True, "beta", ["region", "beta"]]``.
    **terms
        As in ``Release.posterior``, the same with all; cells alone have the family's default prior.

    Raises
    ------
    UsageError
        Where no way to pool is given, or one has no score.
    """
    refuse_adopted(release)
    if isinstance(pooled, str | bool) or not len(pooled):
        message = "compare_pooled takes a list of ways to pool, as [True, 'beta', ['region', 'beta']]"
        raise UsageError(message)
    from suffice.pipeline.ask.borrowing import held_out  # few ask

    for each in pooled:
        held_out.check_of_one_release(each)
    posteriors: dict[str, Any] = {
        name: release.posterior(statistic, pooled=each, **terms)
        for name, each in zip(held_out.names_of(pooled), pooled, strict=True)
    }
    return held_out.held_out(posteriors)


REPLICATES = 1000
_NUMBERS = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseComparison:
    """How a statistic's parameters changed from one release to another, and what noise alone would do.

    Attributes
    ----------
    statistic, first, second : str
        What is compared; the releases, as ``name@window``.
    before, after : Posterior
        The noise-aware posteriors of the same cells.
    differences, ratios : dict of str to Contrast
        Second minus first and second over first, by parameter.
    apparent : dict of str to ndarray
        Change of the plug-in estimates, by parameter: what one sees who takes noisy numbers for exact.
    noise_sd : dict of str to ndarray
        Standard deviation that noise alone gives to the apparent change.
    noise_probability : dict of str to ndarray
        Probability that noise alone moves the estimates as far apart as they appear.
    """

    statistic: str
    first: str
    second: str
    before: Posterior = field(repr=False)
    after: Posterior = field(repr=False)
    differences: Mapping[str, contrasts.Contrast] = field(repr=False)
    ratios: Mapping[str, contrasts.Contrast] = field(repr=False)
    apparent: Mapping[str, Floats] = field(repr=False)
    noise_sd: Mapping[str, Floats] = field(repr=False)
    noise_probability: Mapping[str, Floats] = field(repr=False)

    def __str__(self) -> str:
        return str(self.rows())

    def _repr_html_(self) -> str:
        return self.rows()._repr_html_()

    def to_frame(self, library: str | None = None) -> Any:
        """Return the rows as a frame of pandas or Polars; see :meth:`Table.to_frame`."""
        return self.rows().to_frame(library)

    def column(
        self, of: str = "law", *, draws: int = DRAWS, rng: np.random.Generator | int | None = None
    ) -> ColumnChange:
        """Return how the column behind a histogram changed: quantiles, tail shares and the mean.

        ``suffice.compare(january, february, "delay").column().quantile(0.9)``, of the second less the first.

        Parameters
        ----------
        of : {"law", "rows"}
            The laws that records come from, or the records that were counted.
        draws, rng
            As in ``compare``; both columns are drawn independently.

        Raises
        ------
        UsageError
            Where the statistic is no histogram, or `of` is neither.
        """
        from suffice.pipeline.math.engines.histogram.column_law import ColumnChange, column_law  # few ask

        source, size = generator(rng), checked_draws(draws)
        before, after = (
            column_law(posterior.distribution, size, source, of=of) for posterior in (self.before, self.after)
        )
        return ColumnChange(before=before, after=after)

    def rows(self, mass: float = MASS, *, interval: str | None = None) -> Table:
        """One row a cell, parameter and category.

        Keys, parameter, category; ``before`` and ``after`` (posterior means); ``change``, ``sd``, ``lower``,
        ``upper`` (of the difference); ``ratio`` (its median), ``probability_above`` (that it rose);
        ``apparent``, ``noise_sd``, ``noise_probability``; ``conflict``: whether a prior and what was released
        disagree there before or after, None where that is not known. Intervals are of the kind that is asked
        for, or the posteriors' own.
        """
        parameters = {}
        for parameter, change in self.differences.items():
            ends = change.credible_interval(mass, interval=interval)
            parameters[parameter] = {
                "before": self.before.mean(parameter),
                "after": self.after.mean(parameter),
                "change": change.mean(),
                "sd": change.sd(),
                "lower": ends[..., 0],
                "upper": ends[..., 1],
                "ratio": self.ratios[parameter].quantile(0.5),
                "probability_above": change.probability(),
                "apparent": self.apparent[parameter],
                "noise_sd": self.noise_sd[parameter],
                "noise_probability": self.noise_probability[parameter],
            }
        rows = contrasts.tidy_rows(
            self.before.groups, self.before.label_columns, parameters, self.before.components
        )
        return change_table(self.before, self.after, rows, title=f"from {self.first} to {self.second}")


@posterior_terms.lists_terms
def compare(
    first: Release,
    second: Release,
    statistic: str,
    *,
    prior: AnyPrior = None,
    vouched: bool = False,
    draws: int = DRAWS,
    rng: np.random.Generator | int | None = None,
    **terms: Unpack[posterior_terms.SharedTerms],
) -> ReleaseComparison:
    """Compare a statistic of two releases of disjoint data, cell by cell. Costs no privacy.

    Parameters
    ----------
    first, second : Release
        As two windows of a series; the change is from the first to the second.
    statistic : str
        Its name in both.
    prior, **terms
        As in ``Release.posterior``: the same for both, whose parameters are independent a priori. What is
        apparent rests, under a density, on a conjugate prior about where that is and as wide.
    vouched : bool
        The caller knows that the two hold disjoint data, although their manifests do not show it.
    draws : int
        Of the differences and ratios.
    rng : numpy.random.Generator or int, optional
        A generator or the seed of one; a fresh one otherwise.

    Raises
    ------
    UsageError
        Where the two are of the same or of overlapping data, or their statistics or cells differ.

    Warns
    -----
    ConflictWarning
        Where a prior and what was released disagree.
    """
    refuse_adopted(first, second)
    stated = posterior_terms.noise_aware_terms(prior, terms)
    if first.release_id == second.release_id:
        message = (
            f"{first.label} and {second.label} are the same release, "
            f"{first.release_id}: there is nothing to compare; name two"
        )
        raise UsageError(message)
    require_agreement(first, second, statistic)
    relation, reason = relation_of(first, second, statistic)
    if relation is Relation.SAME_DATA:
        message = f"{reason}: whatever differs is noise; pool them with same_data instead"
        raise UsageError(message)
    require([first, second], statistic, Relation.DISJOINT, vouched=vouched)
    source = generator(rng)
    parts = aligned([release.chosen(statistic, stated.where) for release in (first, second)])
    before, after = (
        release.described(noise_aware(part, stated))
        for release, part in zip((first, second), parts, strict=True)
    )
    differences, ratios = (
        {
            parameter: contrasts.contrast_between(
                kind, parameter, after, before, names=(second.label, first.label), draws=draws, rng=source
            )
            for parameter in before.parameters
        }
        for kind in (contrasts.DIFFERENCE, contrasts.RATIO)
    )
    for posterior in (before, after):
        posterior.warn_of_conflict()
    plan = parts[0].plan
    like = conjugate_like(before.prior, FAMILIES[plan.family], plan.parameters)
    apparent, noise_sd, noise_probability = _noise_alone(parts[0], parts[1], like, source)
    return ReleaseComparison(
        statistic=statistic,
        first=first.label,
        second=second.label,
        before=before,
        after=after,
        differences=differences,
        ratios=ratios,
        apparent=apparent,
        noise_sd=noise_sd,
        noise_probability=noise_probability,
    )


def _noise_alone(
    before: NoisyStatistic, after: NoisyStatistic, prior: Prior | Mixture, rng: np.random.Generator
) -> tuple[dict[str, Floats], dict[str, Floats], dict[str, Floats]]:
    """Change of the plug-in estimates, and how they move when the noise is drawn once more on top of it."""
    terms = posterior_terms.PosteriorTerms(prior=prior, method=posterior_terms.PLUG_IN)
    estimates = [plug_in(part, terms) for part in (before, after)]
    replicates = max(100, min(REPLICATES, _NUMBERS // before.values.size))
    further = [plug_in(_noisy_again(part, replicates, rng), terms) for part in (before, after)]
    apparent, noise_sd, probability = {}, {}, {}
    for parameter in estimates[0].parameters:
        change = estimates[1].mean(parameter) - estimates[0].mean(parameter)
        moved = further[1].mean(parameter) - further[0].mean(parameter)
        delta = moved.reshape(replicates, *change.shape) - change
        apparent[parameter] = change
        noise_sd[parameter] = np.std(delta, axis=0)
        reached = np.sum(np.abs(delta) >= np.abs(change), axis=0)
        probability[parameter] = (reached + 1.0) / (replicates + 1.0)
    return apparent, noise_sd, probability


def _noisy_again(statistic: NoisyStatistic, replicates: int, rng: np.random.Generator) -> NoisyStatistic:
    """Every cell so many times over, each with fresh noise of the release's distribution added."""
    values = np.tile(statistic.values, (replicates, 1))
    noise = simulated_noise(statistic.plan, values.shape[:-1], rng, statistic.cells_summed)
    groups = {column: keys * replicates for column, keys in statistic.groups.items()}
    return dataclasses.replace(statistic, values=values + noise.astype(object), groups=groups)
