"""A spec skeleton from a schema alone: what a person must state is left empty, and refused until stated."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from suffice.errors import UsageError
from suffice.pipeline.declaration.source_spec import is_url, source_path
from suffice.pipeline.sources.file_access import PinnedFile, opened, status
from suffice.pipeline.sources.file_listing import list_files, list_objects

if TYPE_CHECKING:
    from collections.abc import Iterable

_ID = re.compile(r"(?:^|[_\W]|(?<=[a-z]))(?:Id|ID)$|(?:^|[_\W])(?:id|uuid|guid|key)$|^(?:uuid|guid)$")
"""Names of columns that tell records or people apart: a mean of them says nothing."""

_HEAD = """\
# A skeleton: state what is empty, delete what you do not want, then run `suffice plan`.
# Bounds, categories and keys must come from what is publicly known, never from looking at the data.
name: {name}
dataset:                            # the protected population: the account that pays
source: {{parquet: {source}}}
privacy:
  epsilon:                          # decimal text, as "1.0"
  neighboring: add_or_remove_one    # or replace_one
  unit: row
# groups:                           # optional: public keys; the cells are their product
#   region: [north, south]
#   month: {{range: [1, 12]}}
statistics:
"""


def skeleton(data: str, *, relative_to: Path) -> str:
    """Return the text of a spec for a Parquet source.

    Parameters
    ----------
    data : str
        A Parquet file, directory, glob or URL; only its schema is read.
    relative_to : Path
        The directory the spec will stand in.

    Returns
    -------
    str
        YAML in which epsilon, dataset, bounds and categories are empty, which a spec may not be.

    Raises
    ------
    UsageError
        Where there is no Parquet file.
    """
    first = _first(data)
    try:
        with opened(first) as file, pq.ParquetFile(file) as parquet:
            schema = parquet.schema_arrow
    except (OSError, pa.ArrowException):
        message = f"{first.address} is no Parquet file"
        raise UsageError(message) from None
    stem = re.sub(r"[^a-z0-9_.-]+", "-", Path(data.rstrip("/*")).stem.lower()).strip("-._") or "release"
    source = data if is_url(data) else os.path.relpath(data, relative_to)
    head = _HEAD.format(name=stem[:63], source=_quoted(source + ("/" if data.endswith("/") else "")))
    return head + "".join(_statistics(schema))


def _first(data: str) -> PinnedFile:
    """Return the first of the files; of a URL that is written as specs write it."""
    if not is_url(data):
        return status(list_files(os.path.abspath(data))[0])  # noqa: PTH100 - no link is followed
    try:
        return list_objects(source_path(data))[0]
    except ValueError as error:
        raise UsageError(str(error)) from None


def _statistics(schema: pa.Schema) -> Iterable[str]:
    used: set[str] = set()
    for field in schema:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", field.name).lstrip("_.-")[:63] or "column"
        while name.lower() in used:
            name = f"{name[:58]}_{len(used)}"
        used.add(name.lower())
        entry = _entry(field)
        if entry:
            yield f"  {name}: {entry}\n"
        elif _ID.search(field.name):
            yield f"  # {name}: named like an id: a unit perhaps (privacy.unit), and nothing to sum\n"
        else:
            yield f"  # {name}: no family for a column of type {field.type}\n"


def _entry(field: pa.Field) -> str | None:
    if _ID.search(field.name):
        return None
    column = _quoted(field.name)
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_boolean(kind):
        return f"{{family: bernoulli, column: {column}}}"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return f"{{family: normal, column: {column}, lower: , upper: }}"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return f"{{family: categorical, column: {column}, categories: , other: true}}"
    return None


def _quoted(text: str) -> str:
    return (
        text
        if re.fullmatch(r"[A-Za-z0-9_./-]+", text)
        else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    )
