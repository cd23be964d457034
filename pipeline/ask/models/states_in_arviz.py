"""Draws of a hidden Markov model in the container of the installed ArviZ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.ask.posterior.arviz import container, write_container

if TYPE_CHECKING:
    import os

    from suffice.pipeline.ask.models.hidden_markov_fit import HiddenMarkovFit

_TAKEN = {"chain", "draw", "cell", "state", "to_state"}


def to_arviz(fit: HiddenMarkovFit) -> Any:
    """Return draws as ``HiddenMarkovFit.to_arviz`` says.

    Raises
    ------
    MissingExtraError
        Where ArviZ is not installed.
    """
    draws = fit.draws
    lead = ["chain", "draw"]
    n_restarts, n_draws = draws.log_joint.shape
    numbers = np.arange(1, fit.n_states + 1)
    data: dict[str, Any] = {
        "start": ([*lead, "to_state"], draws.transitions[:, :, 0]),
        "transition": ([*lead, "state", "to_state"], draws.transitions[:, :, 1:]),
        "cell_state": ([*lead, "cell"], draws.states.reshape(n_restarts, n_draws, -1) + 1),
    }
    sampled = {"chain": np.array(fit.diagnostics.kept), "draw": np.arange(n_draws)}
    coordinates: dict[str, Any] = {
        **sampled,
        "state": numbers,
        "to_state": numbers,
        "cell": np.arange(fit.table.n_chains * fit.table.n_times),
    }
    for feature, values in zip(fit.table.features, draws.emissions, strict=True):
        dimension = f"{feature.name}_category"
        data[f"emission_{feature.name}"] = ([*lead, "state", dimension], values)
        coordinates[dimension] = list(feature.categories)
    if draws.expected_rows is not None:
        data["expected_rows"] = ([*lead, "cell"], draws.expected_rows.reshape(n_restarts, n_draws, -1))
    for column, keys in fit.table.cell_keys.items():
        coordinates[f"{column}_" if column in _TAKEN else column] = ("cell", keys)
    attributes = {name: str(value) for name, value in fit.settings.to_dict().items()}
    attributes["releases"] = ", ".join(fit.table.releases)
    statistics = {"lp": (lead, draws.log_joint)}
    return container({"posterior": (data, coordinates), "sample_stats": (statistics, sampled)}, attributes)


def write_netcdf(fit: HiddenMarkovFit, path: str | os.PathLike[str]) -> None:
    """Write draws as ``HiddenMarkovFit.to_netcdf`` says.

    Raises
    ------
    MissingExtraError
        Where ArviZ, or what it writes netCDF with, is not installed.
    UsageError
        Where the file cannot be written.
    """
    write_container(to_arviz(fit), path)
