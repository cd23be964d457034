"""Draws as netCDF files that ArviZ reads, each with what it comes from in its attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.data_files.source import Source

_GROUPS = ("posterior", "sample_stats")


def write_netcdf(drawn: Any, path: Path, source: Source) -> None:
    """Write a container of ArviZ, as ``Posterior.to_arviz`` returns it.

    Raises
    ------
    MissingExtraError
        Where what ArviZ writes netCDF with is not installed.
    UsageError
        Where the file cannot be written.
    """
    from suffice.pipeline.ask.posterior.arviz import write_container

    for group in _GROUPS:
        if group in drawn:
            drawn[group].attrs.update(source.attributes())
    write_container(drawn, path)
