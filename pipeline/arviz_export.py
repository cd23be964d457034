"""Posterior draws in the container of the installed ArviZ, and as the netCDF files that it reads."""

from __future__ import annotations

import importlib.util
import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from suffice.pipeline.posterior import Posterior

_NETCDF = "h5netcdf"


def to_arviz(posterior: Posterior, draws: int, rng: np.random.Generator | int | None) -> Any:
    """Return draws as ``Posterior.to_arviz`` says.

    Raises
    ------
    MissingExtraError
        Where ArviZ is not installed.
    """
    try:
        with warnings.catch_warnings():
            # ArviZ 0.x announces ArviZ 1.x, which is served below as well.
            warnings.simplefilter("ignore", FutureWarning)
            import arviz  # noqa: PLC0415 - slow to import, and an extra
            import xarray  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError("to_arviz()", "arviz") from None
    data = {
        parameter: (["chain", "draw", "group", *_last_dimension(posterior, parameter)], values[None])
        for parameter, values in posterior.sample(draws, rng).items()
    }
    coordinates: dict[str, Any] = {
        "chain": [0],
        "draw": np.arange(draws),
        "group": np.arange(posterior.n_groups),
    }
    for name, values in posterior.label_columns.items():
        texts = ["" if value is None else value for value in values]
        coordinates[_coordinate(name)] = (*_last_dimension(posterior), texts)
    for parameter, names in posterior.components.items():
        coordinates[f"{parameter}_component"] = list(names)
    for column, keys in posterior.groups.items():
        coordinates[column if column == "group" else _coordinate(column)] = ("group", keys)
    attributes = {
        "method": posterior.method,
        "prior": str(posterior.prior),
        "statistic": posterior.statistic,
    }
    dataset = xarray.Dataset(data, coordinates, attributes)
    if int(arviz.__version__.split(".")[0]) < 1:
        return arviz.InferenceData(posterior=dataset)
    return xarray.DataTree.from_dict({"posterior": dataset})


def write_netcdf(
    posterior: Posterior, path: str | os.PathLike[str], draws: int, rng: np.random.Generator | int | None
) -> None:
    """Write draws as ``Posterior.to_netcdf`` says.

    Raises
    ------
    MissingExtraError
        Where ArviZ, or what it writes netCDF with, is not installed.
    UsageError
        Where the file cannot be written.
    """
    drawn = to_arviz(posterior, draws, rng)
    if importlib.util.find_spec(_NETCDF) is None:
        raise MissingExtraError("netCDF files", "arviz")
    try:
        drawn.to_netcdf(os.fspath(path), engine=_NETCDF)
    except OSError:
        message = f"{os.fspath(path)}: the file cannot be written"
        raise UsageError(message) from None


def _last_dimension(posterior: Posterior, parameter: str | None = None) -> tuple[str, ...]:
    """The dimension that tells entries apart: a component, the one label that they have, or ``entry``."""
    if posterior.components:
        return (f"{parameter}_component",) if parameter in posterior.components else ()
    return tuple(posterior.label_columns) if len(posterior.label_columns) <= 1 else ("entry",)


def _coordinate(name: str) -> str:
    """Name a coordinate for ArviZ, which has dimensions of these names."""
    return f"{name}_" if name in {"chain", "group", "entry"} else name
