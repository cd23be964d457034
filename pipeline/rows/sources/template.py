"""A spec skeleton from a schema alone: what a person must state is left empty, and refused until stated."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from suffice.errors import SpecError, UsageError
from suffice.pipeline.rows.sources import SOURCES
from suffice.pipeline.rows.sources.file_access import PinnedFile, opened, status
from suffice.pipeline.rows.sources.file_listing import list_files, list_objects
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.document import read_yaml
from suffice.pipeline.terms.declaration.source_specs import is_url, source_path

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MOST_LETTERS = 56
"""Of a name whose count, `NAME.expect`, has one of at most 63."""

_ID = re.compile(r"(?:^|[_\W]|(?<=[a-z]))(?:Id|ID)$|(?:^|[_\W])(?:id|uuid|guid|key)$|^(?:uuid|guid)$")
"""Names of columns that tell records or people apart: a mean of them says nothing."""

_HEAD = """\
# A skeleton: state what is empty, delete what you do not want, then run `suffice plan`.
# Bounds, categories and keys must come from what is publicly known, never from looking at the data.
name: {name}
dataset:                            # the protected population: the account that pays
source: {source}
privacy:
  epsilon:                          # decimal text, as "1.0"
  neighboring: add_or_remove_one    # or replace_one
  unit: row                         # or, for all rows of a person: {{column: ID, max_rows: 20}}
# groups:                           # optional: public keys; the cells are their product
#   region: [north, south]
#   month: {{range: [1, 12]}}
{window}statistics:
"""


_WINDOW = """\
# window: {{column: {column}, every: month}}    # optional: a release for each month
# expect: {{rows: 1000, epsilon: 0.01}}    # with a window: counted first; below it the rest is not charged
"""

_OTHER_KINDS = (
    "a source of another kind is stated as in a spec: suffice init '{csv: flights/, columns: {day: date}}'"
)


def skeleton(data: str, *, relative_to: Path) -> str:
    """Return the text of a spec for a source.

    Parameters
    ----------
    data : str
        A Parquet file, directory, glob or URL; or a source of any kind in braces, as a spec states it. Only
        its schema is read.
    relative_to : Path
        The directory the spec will stand in. Paths in braces start there, as in the spec.

    Returns
    -------
    str
        YAML in which epsilon, dataset, bounds and categories are empty, which a spec may not be.

    Raises
    ------
    UsageError
        Where there is no Parquet file, or the source cannot be opened or has no columns.
    SpecError
        Where the text in braces is no source.
    """
    if data.lstrip().startswith("{"):
        address, schema, folders = _of_source(data, relative_to)
        source = " ".join(data.split())
    else:
        address, schema, folders = data, _of_parquet(data), frozenset[str]()
        path = data if is_url(data) else os.path.relpath(data, relative_to)
        source = f"{{parquet: {_quoted(path + ('/' if data.endswith('/') else ''))}}}"
    head = _HEAD.format(name=_release_name(address), source=source, window=_window(schema, folders))
    return head + "".join(_statistics(schema))


def _of_source(data: str, directory: Path) -> tuple[str, pa.Schema, frozenset[str]]:
    """Return the address of a source that is stated as in a spec, its columns, and which are folders."""
    terms = {
        "name": "skeleton",
        "dataset": "skeleton",
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
        "statistics": {"rows": {"family": "bernoulli", "column": "no column yet"}},
    }
    source = read_yaml(data, "DATA").content
    try:
        spec = load_spec({**terms, "source": source}).model_copy(update={"directory": directory})
    except SpecError as error:
        raise SpecError("DATA", str(error).removeprefix("spec: ")) from None
    kind = SOURCES[spec.source.kind]
    pin = kind.pin(spec)
    try:
        schema = kind.schema(pin)[0].columns
    finally:
        pin.close()
    if not len(schema):
        message = f"source.{kind.KIND}: no column is stated: {_OTHER_KINDS}"
        raise UsageError(message)
    return spec.source_address, schema, frozenset(getattr(spec.source, "hive", ()))


def _of_parquet(data: str) -> pa.Schema:
    """Return the columns of the first of Parquet files."""
    first = _first(data)
    try:
        with opened(first) as file, pq.ParquetFile(file) as parquet:
            return parquet.schema_arrow
    except (OSError, pa.ArrowException):
        message = f"{first.address} is no Parquet file; {_OTHER_KINDS}"
        raise UsageError(message) from None


def _release_name(address: str) -> str:
    """Return a name for the release: the last word of where the rows are."""
    fixed = re.sub(r"/*[*?\[].*$", "", address).rstrip("/")
    last = re.split(r"[/:]", re.sub(r"\.(parquet|csv)$", "", fixed))[-1]
    # Of a table the schema stands before it.
    return re.sub(r"[^a-z0-9_-]+", "-", last.split(".")[-1].lower()).strip("-_")[:MOST_LETTERS] or "release"


def _first(data: str) -> PinnedFile:
    """Return the first of the files; of a URL that is written as specs write it."""
    if not is_url(data):
        return status(list_files(os.path.abspath(data))[0])  # noqa: PTH100 - no link is followed
    try:
        return list_objects(source_path(data))[0]
    except ValueError as error:
        raise UsageError(str(error)) from None


def _window(schema: pa.Schema, folders: frozenset[str]) -> str:
    """Return a window and what is expected of it, to be wanted, of a source with a column of dates.

    A folder's comes first: of the others' windows every folder is read.
    """
    dated = [field for field in schema if pa.types.is_date(field.type) or pa.types.is_timestamp(field.type)]
    dated.sort(key=lambda field: field.name not in folders)
    return _WINDOW.format(column=_quoted(dated[0].name)) if dated else ""


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
        elif pa.types.is_date(field.type) or pa.types.is_timestamp(field.type):
            window = f"window: {{column: {_quoted(field.name)}, every: month}}"
            yield f"  # {name}: dates: a window perhaps ({window}), or what others are derived from\n"
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
