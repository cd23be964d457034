"""Whether a prior and what was released disagree, as every reader that judges has to say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release

RELEASE = "first-families"
PRIORS = {
    "cancelled": ("Beta(1, 1)", "Beta(800, 200)", "Beta(80, 20)", "Beta(8, 2)"),
    "stops": ("Gamma(1000, 100)", "Gamma(10, 1)"),
    "carrier": ("Dirichlet(1)", "Dirichlet(1, 1, 1000)", "Dirichlet(1, 1, 10)"),
}
PLAIN = 0.01
"""A tail above it is stated by a bound from below alone, and readers need not agree on it."""


def conflicts_document(release: Release) -> dict[str, Any]:
    """Return, for every prior and cell, tails of all quantities but n, and which are conflicts."""
    cases = []
    for statistic, priors in PRIORS.items():
        for prior in priors:
            for origin in release.statistic(statistic).groups["origin"]:
                where = {"origin": origin}
                found = release.posterior(statistic, prior=prior, where=where, clipping="ignored").conflict
                judged = [place for place, of_n in enumerate(found.of_n.tolist()) if not of_n]
                tails = found.tails[0, judged].tolist()
                cases.append(
                    {
                        "statistic": statistic,
                        "prior": prior,
                        "where": where,
                        "quantities": [found.quantities[place] for place in judged],
                        "tails": [tail if tail < PLAIN else None for tail in tails],
                        "is_said": found.is_said[0, judged].tolist(),
                    }
                )
    return {"release": f"valid/{RELEASE}/release", "relative_tolerance": 0.01, "cases": cases}
