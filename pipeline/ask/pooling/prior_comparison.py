r"""Which of several priors the released values speak for: evidence, and Bayes factors.

.. math:: B_{AB} = \frac{p(y \mid A)}{p(y \mid B)}

by cell, and of all cells together, whose parameters are independent, their product. Odds between the priors
after the release are those before it times this. It says nothing of whether any of them is right
(``Posterior.conflict`` does), and a prior chosen by it has used the release once already.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.posterior_terms import SharedTerms, lists_terms
from suffice.pipeline.terms.declaration.wording import text_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Unpack

    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.typing import Floats


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
    """

    statistic: str
    priors: tuple[str, ...]
    n_prior: str
    groups: Mapping[str, list[str | int]] = field(repr=False)
    log_evidence: Floats = field(repr=False)

    @property
    def log_bayes_factors(self) -> Floats:
        """Log of each prior's evidence over the first's, (n_cells, n_priors)."""
        return self.log_evidence - self.log_evidence[:, :1]

    @property
    def total_log_bayes_factors(self) -> Floats:
        """The same of all cells together, (n_priors,)."""
        return np.asarray(np.sum(self.log_bayes_factors, axis=0))

    def rows(self) -> list[dict[str, Any]]:
        """One row a cell and prior: keys, prior, log_evidence, log_bayes_factor against the first."""
        factors = self.log_bayes_factors
        return [
            {
                **{column: keys[cell] for column, keys in self.groups.items()},
                "prior": prior,
                "log_evidence": float(self.log_evidence[cell, position]),
                "log_bayes_factor": float(factors[cell, position]),
            }
            for cell in range(len(factors))
            for position, prior in enumerate(self.priors)
        ]

    def totals(self) -> list[dict[str, Any]]:
        """One row a prior, of all cells together: prior, log_evidence, log_bayes_factor."""
        sums = np.sum(self.log_evidence, axis=0)
        return [
            {"prior": prior, "log_evidence": float(total), "log_bayes_factor": float(total - sums[0])}
            for prior, total in zip(self.priors, sums, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON states it."""
        return {
            "statistic": self.statistic,
            "priors": list(self.priors),
            "n_prior": self.n_prior,
            "totals": self.totals(),
            "rows": self.rows(),
        }

    def __str__(self) -> str:
        """Return the totals as a text table."""
        totals = self.totals()
        cells = [
            [row["prior"], f"{row['log_evidence']:.6g}", f"{row['log_bayes_factor']:.4g}"] for row in totals
        ]
        return text_table(list(totals[0]), cells)


@lists_terms
def compare_priors(
    release: Release,
    statistic: str,
    priors: Sequence[AnyPrior],
    **terms: Unpack[SharedTerms],
) -> PriorComparison:
    """Compare priors by the probability of what was released under each. Costs no privacy.

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
    if isinstance(priors, str) or len(priors) < 2:
        message = "compare_priors takes a list of two priors or more, as ['Beta(1, 1)', 'Beta(1, 9)']"
        raise UsageError(message)
    posteriors = [release.posterior(statistic, prior, **terms) for prior in priors]
    first = posteriors[0]
    return PriorComparison(
        statistic=statistic,
        priors=tuple(str(posterior.prior) for posterior in posteriors),
        n_prior=str(first.n_prior),
        groups=first.groups,
        log_evidence=np.stack([posterior.log_evidence for posterior in posteriors], axis=1),
    )
