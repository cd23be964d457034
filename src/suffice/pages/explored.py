"""What the explorer on a release's page starts from: the release itself, and tables of likelihoods."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from suffice.pages.likelihood_tables import likelihood_tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

READ = frozenset({"bernoulli", "binomial", "poisson", "normal_known_variance", "categorical"})
"""Families whose posteriors the reader in JavaScript works out by itself, under a prior that readers move."""


def explored(
    release: Release,
    files: Mapping[str, bytes],
    uri: str,
    pools: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any] | None:
    """Return the explorer's data; None where it has a posterior of nothing.

    Trees, and columns behind histograms, are explored whatever groups they have; parameters of other
    statistics where these have the groups of the release.

    Parameters
    ----------
    release : Release
    files : mapping of str to bytes
        The manifest and the data files.
    uri : str
        Of the release, for lines that readers copy.
    pools : mapping of str to mapping, optional
        By statistic, cells that were published together, as ``PoolBeside.explored`` returns them.
    """
    plans = {name: release.plan_of(name) for name in release.statistics}
    likelihoods = {
        name: table
        for name, plan in plans.items()
        if not plan.states_groups and (table := likelihood_tables(release.statistic(name))) is not None
    }
    tabled = {name for name, table in likelihoods.items() if "reason" not in table}
    has_parameters = bool(tabled) or asks_parameters(release)
    has_columns = any(plan.family == "histogram" for plan in plans.values())
    if not (has_parameters or has_columns or release.trees):
        return None
    return {
        "label": release.label,
        "uri": uri,
        "manifest": files["manifest.json"].decode("utf-8"),
        "about": release.about.document(),
        "files": {
            name: base64.b64encode(data).decode("ascii")
            for name, data in files.items()
            if name != "manifest.json"
        },
        "likelihoods": likelihoods,
        "pools": dict(pools or {}),
    }


def asks_parameters(release: Release) -> bool:
    """Tell whether the reader in JavaScript works out a parameter, under a prior that readers move."""
    return any(_is_read(release.plan_of(name)) for name in release.statistics)


def _is_read(plan: StatisticPlan) -> bool:
    is_alone = plan.within_unit is None and plan.counted is None
    return plan.family in READ and is_alone and not plan.states_groups
