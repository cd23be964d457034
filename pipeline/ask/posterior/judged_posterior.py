"""What a posterior rests on, judged: by what its priors expect, and by what they decide."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from suffice.errors import ConflictWarning
from suffice.pipeline.ask.posterior.column_posterior import ColumnPosterior
from suffice.pipeline.math.parameters.arguments import checked_draws, generator
from suffice.pipeline.spec.about import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from suffice.pipeline.ask.judging.checking import Check
    from suffice.pipeline.ask.judging.conflict import Conflict
    from suffice.pipeline.ask.judging.judged import LogEvidence
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.math.priors.coefficients import NonConjugate
    from suffice.pipeline.math.priors.mixtures import Mixture
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.spec.about import About
    from suffice.pipeline.terms.declaration.documents import Method
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JudgedPosterior(ColumnPosterior):
    """Parameters beside their priors and what was released; attributes as in ``Posterior``."""

    method: Method
    prior: Prior | Mixture | NonConjugate
    n_prior: NPrior | None
    predictor_prior: str | None = None
    observed: tuple[NoisyStatistic, ...] = field(default=(), repr=False)
    design_effect: Floats | None = field(default=None, repr=False)
    releases: tuple[str, ...] = ()
    about: About = field(default=NOTHING, repr=False)
    _judged: list[bool] = field(default_factory=list, init=False, repr=False, compare=False)
    _judgements: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def warn_of_conflict(self, *, stacklevel: int = 3) -> None:
        """Say once what contradicts the intervals; of simulated statistics nothing is judged."""
        if not self.releases or self._judged:
            return
        self._judged.append(True)
        if lines := self.conflict.lines():
            warnings.warn(ConflictWarning("; ".join(lines)), stacklevel=stacklevel)

    def _once(self, name: str, judge: Callable[[Self], Any]) -> Any:
        """Return what is judged of this posterior, worked out when it is asked for first."""
        if name not in self._judgements:
            self._judgements[name] = judge(self)
        return self._judgements[name]

    @property
    def estimand(self) -> str:
        """Which records the parameters are of, in a sentence; empty where nothing is clipped."""
        from suffice.pipeline.ask.judging.judged import estimand_text  # few ask

        return estimand_text(self)

    @property
    def conflict(self) -> Conflict:
        """Whether the released quantities are where the priors expect them, cell by cell.

        For every quantity its two-sided tail under the prior predictive; ``is_said`` where that, times the
        number of quantities and cells, is below 1e-4. The released n is judged by the prior of N, the others
        by the prior of the parameters given that n. Worked out when asked, without draws.

        Raises
        ------
        UsageError
            Where the posterior does not know what was released.
        """
        from suffice.pipeline.ask.judging.conflict import conflict_of  # few ask

        def in_words(posterior: Self) -> Conflict:
            judged = conflict_of(posterior)
            names = (self.about.quantity(self.statistic, name) for name in judged.quantities)
            return replace(judged, called=tuple(names))

        judged: Conflict = self._once("conflict", in_words)
        return judged

    @property
    def decided_by_default(self) -> dict[str, NDArray[np.bool_]]:
        """Where the default prior, and not the release, decides intervals: by parameter, shaped as ``mean``.

        True where the family's default prior by itself gives two thirds or more to the posterior's central
        interval of 95 %; and where one half of the interval takes two thirds of its length or more, and the
        posterior there, or beyond that end, has the prior's shape. Of regressions and of several columns by
        draws of it. Empty under any other prior and under ``plug-in``.
        """
        from suffice.pipeline.ask.judging.checking import decided_by_default  # few ask

        return dict(self._once("decided", decided_by_default))

    @property
    def moved_by_default(self) -> dict[str, NDArray[np.bool_]]:
        """Where the default prior of categories draws shares towards the others: as ``decided_by_default``.

        True where half its concentrations would move the posterior mean by two fifths of a posterior standard
        deviation or more, and the shortest 95 % interval reaches neither 0 nor 1. Empty where the default
        is no ``Dirichlet``.
        """
        from suffice.pipeline.ask.judging.checking import moved_by_default  # few ask

        return dict(self._once("moved", moved_by_default))

    @property
    def log_evidence(self) -> Floats:
        """Log probability of the released values under the priors, (n_groups,).

        Of all released integers together, noise included: differences between priors of the same release
        are log Bayes factors. Where the posterior is restricted to what records within the bounds can have,
        the prior is too. Where bounds cut off a part of a cell's posterior that part is known to some
        thousandths, and of a mean and a variance to .01 where half is cut off and .07 where 99 % are.

        Raises
        ------
        UsageError
            Where the posterior is not worked out with its normaliser: by MCMC (``evidence`` has an estimate,
            of some), by importance sampling, with clipping modelled, of several disjoint data sets, or
            without the noise; and where less than a hundredth of the prior, or of a cell's posterior under
            it, lies where parameters of records within the bounds can be.
        """
        from suffice.pipeline.ask.judging.evidence import log_evidence_of  # few ask

        return log_evidence_of(self)

    def evidence(self) -> LogEvidence:
        """Return the same with its standard error; of regressions and of several columns too, by Monte Carlo.

        Raises
        ------
        UsageError
            As `log_evidence`, but for regressions and several columns behind Laplace noise under conjugate
            priors; of these where weighted draws do not tell it.
        """
        from suffice.pipeline.ask.judging.evidence import evidence_of  # few ask

        judged: LogEvidence = self._once("evidence", evidence_of)
        return judged

    def prior_density(self, parameter: str, points: ArrayLike) -> Floats | None:
        """Marginal prior densities of one cell's parameter, to be shown beside ``density``.

        Parameters
        ----------
        parameter : str
            Its name.
        points : array_like
            Values of the parameter, in its unit: (n_points,), or one row for every category or component.

        Returns
        -------
        ndarray of shape (n_points,), float64, or None
            In one over the parameter's unit; (n_categories, n_points) where there are categories. None of
            regressions and of several columns, and of a prior that lies beyond what the posterior is
            restricted to, but for less than a millionth. Of an ``Independent`` or a ``JointDensity`` prior
            that is restricted it is a kernel density of 8,000 draws.

        Raises
        ------
        UsageError
            Where the parameter is unknown, or the points are shaped otherwise.
        """
        from suffice.pipeline.ask.judging.bounded_prior import prior_density_of  # few ask

        return prior_density_of(self, parameter, points)

    def check(
        self,
        quantity: str | None = None,
        draws: int = 1000,
        rng: np.random.Generator | int | None = None,
    ) -> Check:
        """Compare released quantities with replicates of the release: a posterior predictive check.

        A replicate draws the parameters from this posterior, N from its prior given the released n, records
        from the model, clipped as the release's are, and noise. A small tail says that model and release
        do not go together. A large one says little: the parameters were fitted to the same values, and of
        quantities that determine them (a mean's total) tails are near 1 whatever the data are. What can be
        seen is a quantity that no parameter explains, as the squares of an exponential column would be.

        Parameters
        ----------
        quantity : str, optional
            As ``Check.quantities`` names it; all but n otherwise.
        draws : int, > 0
            How many replicates; each draws all records of every cell.
        rng : numpy.random.Generator or int, optional
            A generator or the seed of one; a fresh one otherwise.

        Raises
        ------
        UsageError
            Where there is no such quantity, the posterior is not of one release, or so many records cannot
            be drawn.
        """
        from suffice.pipeline.ask.judging.checking import check_of  # few ask

        return check_of(self, quantity, checked_draws(draws), generator(rng))
