"""A sensitivity table: one statistic's posterior under several named priors, side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.posterior.posterior import summarise
from suffice.pipeline.ask.publication.draw_columns import draw_columns, joined
from suffice.pipeline.math.parameters.contrasts import finite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The posteriors of one statistic under several priors.

    Attributes
    ----------
    posteriors : dict of str to Posterior
        By the prior's name, in the order given.
    log_bayes_factors : ndarray of shape (n_cells, n_priors), float64, or None
        Log of each prior's evidence over the first's; None where posteriors have no evidence.
    notes : tuple of str
        Why there are none.
    """

    posteriors: Mapping[str, Posterior] = field(repr=False)
    log_bayes_factors: Floats | None = field(repr=False)
    notes: tuple[str, ...] = ()

    def rows(
        self, mass: float, draws: int, rng: np.random.Generator, *, interval: str | None = None
    ) -> list[dict[str, Any]]:
        """One row a cell, parameter, entry and prior.

        Keys, parameter, labels; ``prior_name``, ``prior``; ``mean``, ``sd``, ``lower``, ``upper``; and
        ``log_bayes_factor`` of the cell, against the first prior.
        """
        by_prior = [
            summarise(posterior, mass, draws, rng, interval=interval)
            for posterior in self.posteriors.values()
        ]
        entries = len(by_prior[0]) // next(iter(self.posteriors.values())).n_groups
        numbers = ("mean", "sd", "lower", "upper")
        rows = []
        for place, same in enumerate(zip(*by_prior, strict=True)):
            for position, (name, row) in enumerate(zip(self.posteriors, same, strict=True)):
                factors = self.log_bayes_factors
                rows.append(
                    {
                        **{key: value for key, value in row.items() if key not in numbers},
                        "prior_name": name,
                        "prior": str(self.posteriors[name].prior),
                        **{key: row[key] for key in numbers},
                        "log_bayes_factor": (
                            None if factors is None else finite(factors[place // entries, position])
                        ),
                    }
                )
        return rows

    def draw_columns(self, draws: int, rng: np.random.Generator) -> dict[str, Any]:
        """Return draws under every prior as tidy columns; ``prior_name`` says which."""
        parts = []
        for name, posterior in self.posteriors.items():
            part = draw_columns(posterior, draws, rng)
            parts.append({**part, "prior_name": np.full(len(part["draw"]), name)})
        return joined(parts)


def sensitivity(
    release: Release,
    statistic: str,
    priors: Mapping[str, str],
    *,
    n_prior: NPrior | int | str | None = None,
    clipping: str,
    within_unit: str,
    predictor_prior: str | None = None,
    where: Mapping[str, object] | None = None,
) -> Sensitivity:
    """Compute the posterior under each of several named priors. Costs no privacy.

    Raises
    ------
    UsageError, PriorError
        As ``Release.posterior``.
    """
    posteriors = {
        name: release.posterior(
            statistic,
            prior=prior,
            n_prior=n_prior,
            clipping=clipping,
            within_unit=within_unit,
            predictor_prior=predictor_prior,
            where=where,
        )
        for name, prior in priors.items()
    }
    try:
        evidence = np.stack([posterior.log_evidence for posterior in posteriors.values()], axis=1)
    except UsageError as error:
        return Sensitivity(
            posteriors=posteriors, log_bayes_factors=None, notes=(f"no Bayes factors: {error}",)
        )
    return Sensitivity(posteriors=posteriors, log_bayes_factors=evidence - evidence[:, :1])
