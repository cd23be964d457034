"""Likelihoods as files: Parquet whose metadata say what reading them back takes; and names in xarray."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import MissingExtraError, UsageError, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    import pyarrow as pa

    from suffice.typing import Floats

KEY = b"suffice.likelihood"
FORMAT = 1
TABLES, COUNTS, MOMENTS = "tables", "counts", "moments"
"""Kinds of likelihoods: of one parameter, of a table's probabilities, of a mean and a standard deviation."""


def with_metadata(columns: Mapping[str, Any], kind: str, stated: Mapping[str, Any]) -> pa.Table:
    """Return columns as a table of Arrow that says which likelihood it is."""
    import pyarrow as pa

    document = {"format_version": FORMAT, "kind": kind, **stated}
    return pa.table(dict(columns)).replace_schema_metadata({KEY: json.dumps(document).encode()})


def write_table(table: pa.Table, path: str | PathLike[str]) -> None:
    """Write a table to a new file: uncompressed and plainly encoded, which small readers read.

    Raises
    ------
    UsageError
        Where there is such a file.
    """
    import pyarrow.parquet as pq

    try:
        with Path(path).open("xb") as file:
            pq.write_table(table, file, compression="none", use_dictionary=False, write_statistics=False)
    except FileExistsError:
        message = f"there is a file {path} already: choose another name"
        raise UsageError(message) from None


def read_table(source: str | PathLike[str] | bytes) -> tuple[pa.Table, dict[str, Any]]:
    """Return the table of a file, or of its bytes, and what its metadata say.

    Raises
    ------
    UsageError
        Where it is of a later format.
    ValueError, KeyError, TypeError, OSError
        Where it is no likelihood.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        read = pq.read_table(io.BytesIO(source) if isinstance(source, bytes) else source)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from None
    stated = json.loads((read.schema.metadata or {})[KEY])
    if stated["format_version"] != FORMAT:
        message = f"{named(source)} is a likelihood of format {stated['format_version']}: this reads {FORMAT}"
        raise UsageError(message)
    return read, stated


def named(source: str | PathLike[str] | bytes) -> str:
    """Return what a source is called in a message."""
    return "the file" if isinstance(source, bytes) else shortened(str(source), 200)


def as_list(values: Any) -> pa.Array:
    """Return rows of numbers of several lengths as a column of lists."""
    import pyarrow as pa

    return pa.array([np.asarray(row, dtype=np.float64) for row in values], pa.list_(pa.float64()))


def from_lists(column: Any) -> list[Floats]:
    """Return what :func:`as_list` made."""
    return [np.array(row.values.to_numpy(), dtype=np.float64) for row in column]


def in_xarray(what: str) -> Any:
    """Return xarray.

    Raises
    ------
    MissingExtraError
        Where it is not installed.
    """
    try:
        import xarray
    except ImportError:
        raise MissingExtraError(what, "arviz") from None
    return xarray
