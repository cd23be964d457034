"""Whether a prior and what was released disagree, as every reader that judges has to say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.ask.pooling.release import Release

PRIORS: dict[str, dict[str, tuple[str, ...]]] = {
    "first-families": {
        "cancelled": ("Beta(1, 1)", "Beta(800, 200)", "Beta(80, 20)", "Beta(8, 2)"),
        "stops": ("Gamma(1000, 100)", "Gamma(10, 1)"),
        "carrier": ("Dirichlet(1)", "Dirichlet(1, 1, 1000)", "Dirichlet(1, 1, 10)"),
    },
    "one-sum": {
        "late": ("Beta(90, 100)", "Beta(2, 5)"),
        "failures": ("Beta(90, 100)", "Beta(2, 5)"),
        "failures_of_two": ("Beta(90, 20)", "Beta(2, 5)"),
        "waits": ("Gamma(90, 300)", "Gamma(5, 10)"),
        "waits_by_shape": ("Gamma(90, 90)", "Gamma(5, 10)"),
        "waits_weibull": ("Gamma(90, 90)", "Gamma(5, 10)"),
        "weights": ("Gamma(90, 45)", "Gamma(2, 1)"),
        "distances": ("InverseGamma(90, 450)", "InverseGamma(30, 400)"),
        "squares": ("InverseGamma(90, 20000)", "InverseGamma(3, 2000)"),
        "means": ("Normal(60, 3)", "Normal(0, 10)"),
    },
}
TOGETHER: dict[str, dict[str, tuple[str, ...]]] = {
    "first-families": {
        "cancelled": (
            "Beta(1, 1)",
            "Beta(10, 2)",
            "Beta(20, 60)",
            "Mixture(0.5, Beta(2, 98), 0.5, Beta(9, 1))",
        ),
        "stops": ("Gamma(900, 150)", "Gamma(1, 1)"),
    },
    "one-sum": {name: (priors[1],) for name, priors in PRIORS["one-sum"].items()},
}
"""Priors that are judged by all cells; ``Beta(10, 2)`` contradicts them all, and no cell alone."""
FILES = {"first-families": "conflicts.json", "one-sum": "conflicts-of-sums.json"}
PLAIN = 0.01
"""A tail above it is stated by a bound from below alone, and readers need not agree on it."""


def conflicts_document(release: Release, vector: str) -> dict[str, Any]:
    """Return tails of all quantities but n by priors and cells, and what all cells say together."""
    cases = [
        _case(release, statistic, prior, where)
        for statistic, priors in PRIORS[vector].items()
        for prior in priors
        for where in _cells(release.statistic(statistic).groups)
    ]
    together = [
        _together(release, statistic, prior)
        for statistic, priors in TOGETHER[vector].items()
        for prior in priors
    ]
    return {
        "release": f"valid/{vector}/release",
        "relative_tolerance": 0.01,
        "cases": cases,
        "together": together,
    }


def _cells(groups: Mapping[str, Sequence[str | int]]) -> list[dict[str, str | int]]:
    return [dict(zip(groups, keys, strict=True)) for keys in zip(*groups.values(), strict=True)] or [{}]


def _case(release: Release, statistic: str, prior: str, where: dict[str, str | int]) -> dict[str, Any]:
    conflict = release.posterior(statistic, prior=prior, where=where, clipping="ignored").conflict
    judged = [place for place, of_n in enumerate(conflict.of_n.tolist()) if not of_n]
    tails = conflict.tails[0, judged].tolist()
    return {
        "statistic": statistic,
        "prior": prior,
        "where": where,
        "quantities": [conflict.quantities[place] for place in judged],
        "tails": [tail if tail < PLAIN else None for tail in tails],
        "is_said": conflict.is_said[0, judged].tolist(),
    }


def _together(release: Release, statistic: str, prior: str) -> dict[str, Any]:
    conflict = release.posterior(statistic, prior=prior, clipping="ignored").conflict
    return {
        "statistic": statistic,
        "prior": prior,
        "alternative": conflict.alternative,
        "log_bayes_factor": float(conflict.log_bayes_factors.sum()),
        "is_against_all": conflict.is_against_all,
    }
