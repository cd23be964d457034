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
"""Families whose posteriors the reader in JavaScript works out by itself."""


def explored(
    release: Release,
    files: Mapping[str, bytes],
    uri: str,
    pools: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any] | None:
    """Return the explorer's data; None where it has a posterior of no statistic.

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
    likelihoods = {
        name: table
        for name in release.statistics
        if (table := likelihood_tables(release.statistic(name))) is not None
    }
    tabled = {name for name, table in likelihoods.items() if "reason" not in table}
    if not any(name in tabled or _is_read(release.plan_of(name)) for name in release.statistics):
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


def _is_read(plan: StatisticPlan) -> bool:
    return plan.family in READ and plan.within_unit is None and plan.counted is None
