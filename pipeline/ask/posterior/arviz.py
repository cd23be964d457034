"""Posterior draws in the container of the installed ArviZ, and as the netCDF files that it reads."""

from __future__ import annotations

import importlib.util
import os
import warnings
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from suffice.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


def method_text(method: str) -> str:
    """Return a method as files name it: with a word on whether it is calibrated where it is not."""
    return f"{method}: not calibrated" if method == "plug-in" else method


_NETCDF = "h5netcdf"


class Sampled(Protocol):
    """What is taken of a posterior."""

    @property
    def statistic(self) -> str:
        """The statistic's name."""

    @property
    def method(self) -> str:
        """How it was computed."""

    @property
    def prior(self) -> object:
        """Under which prior."""

    @property
    def n_prior(self) -> object:
        """And under which prior of N."""

    @property
    def releases(self) -> tuple[str, ...]:
        """What it is of."""

    @property
    def n_groups(self) -> int:
        """Number of cells."""

    @property
    def groups(self) -> Mapping[str, list[str | int]]:
        """The keys of every cell, by group column."""

    @property
    def label_columns(self) -> Mapping[str, tuple[str | None, ...]]:
        """Names of entries, by column."""

    @property
    def components(self) -> Mapping[str, tuple[str, ...]]:
        """Names of entries, by parameter."""

    def sample(self, draws: int, rng: np.random.Generator | int | None) -> dict[str, NDArray[np.float64]]:
        """Independent joint draws, by parameter."""


def to_arviz(posterior: Sampled, draws: int, rng: np.random.Generator | int | None) -> Any:
    """Return draws as ``Posterior.to_arviz`` says.

    Raises
    ------
    MissingExtraError
        Where ArviZ is not installed.
    """
    drawn = posterior.sample(draws, rng)
    taken = {"chain", "draw", "group", "entry", *posterior.label_columns, *drawn}
    axes = _axes_of(posterior.groups, taken)
    shape = () if axes is None else tuple(map(len, axes.values()))
    cells = ["group"] if axes is None else [*axes]
    data: dict[str, Any] = {}
    for parameter, values in drawn.items():
        shaped = values if axes is None else values.reshape(draws, *shape, *values.shape[2:])
        data[parameter] = (["chain", "draw", *cells, *_last_dimension(posterior, parameter)], shaped[None])
    coordinates: dict[str, Any] = {"chain": [0], "draw": np.arange(draws)}
    for name, labels in posterior.label_columns.items():
        texts = ["" if label is None else label for label in labels]
        coordinates[_coordinate(name)] = (*_last_dimension(posterior), texts)
    for parameter, names in posterior.components.items():
        coordinates[f"{parameter}_component"] = list(names)
    if axes is None:
        coordinates["group"] = np.arange(posterior.n_groups)
        for column, keys in posterior.groups.items():
            coordinates[column if column == "group" else _free(column, taken)] = ("group", keys)
    else:
        coordinates |= axes
    attributes = {
        "release": ", ".join(posterior.releases),
        "statistic": posterior.statistic,
        "method": method_text(posterior.method),
        "prior": str(posterior.prior),
        "n_prior": str(posterior.n_prior),
    }
    return container({"posterior": (data, coordinates)}, attributes)


def write_netcdf(
    posterior: Sampled, path: str | os.PathLike[str], draws: int, rng: np.random.Generator | int | None
) -> None:
    """Write draws as ``Posterior.to_netcdf`` says.

    Raises
    ------
    MissingExtraError
        Where ArviZ, or what it writes netCDF with, is not installed.
    UsageError
        Where the file cannot be written.
    """
    write_container(to_arviz(posterior, draws, rng), path)


def container(
    groups: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]], attributes: Mapping[str, str]
) -> Any:
    """Return variables and coordinates by group in the container of the installed ArviZ.

    Raises
    ------
    MissingExtraError
        Where ArviZ is not installed.
    """
    try:
        with warnings.catch_warnings():
            # ArviZ 0.x announces ArviZ 1.x, which is served below as well.
            warnings.simplefilter("ignore", FutureWarning)
            import arviz  # slow to import, and an extra
            import xarray
    except ImportError:
        raise MissingExtraError("to_arviz()", "arviz") from None
    library = {
        "inference_library": "suffice",
        "inference_library_version": importlib.metadata.version("suffice"),
    }
    stated = {**library, **attributes}
    datasets = {name: xarray.Dataset(*content, stated) for name, content in groups.items()}
    if int(arviz.__version__.split(".")[0]) < 1:
        return arviz.InferenceData(**datasets)
    return xarray.DataTree.from_dict(datasets)


def write_container(drawn: Any, path: str | os.PathLike[str]) -> None:
    """Write a container of ArviZ to a netCDF file.

    Raises
    ------
    MissingExtraError
        Where what ArviZ writes netCDF with is not installed.
    UsageError
        Where the file cannot be written.
    """
    if importlib.util.find_spec(_NETCDF) is None:
        raise MissingExtraError("netCDF files", "arviz")
    try:
        drawn.to_netcdf(os.fspath(path), engine=_NETCDF)
    except OSError:
        message = f"{os.fspath(path)}: the file cannot be written"
        raise UsageError(message) from None


def _axes_of(groups: Mapping[str, list[str | int]], taken: set[str]) -> dict[str, list[str | int]] | None:
    """Return the keys along each group column, where the cells are all their combinations in this order.

    None where they are not: then cells are numbered. Of a single cell without keys there is no axis.
    """
    axes = {_free(column, taken): [*dict.fromkeys(keys)] for column, keys in groups.items()}
    return axes if [*zip(*groups.values(), strict=True)] in ([*product(*axes.values())], []) else None


def _last_dimension(posterior: Sampled, parameter: str | None = None) -> tuple[str, ...]:
    """The dimension that tells entries apart: a component, the one label that they have, or ``entry``."""
    if posterior.components:
        return (f"{parameter}_component",) if parameter in posterior.components else ()
    return tuple(posterior.label_columns) if len(posterior.label_columns) <= 1 else ("entry",)


def _free(column: str, taken: set[str]) -> str:
    """Name a group column where nothing else has its name."""
    return f"{column}_" if column in taken else column


def _coordinate(name: str) -> str:
    """Name a coordinate for ArviZ, which has dimensions of these names."""
    return f"{name}_" if name in {"chain", "group", "entry"} else name
