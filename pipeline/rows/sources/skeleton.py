"""The skeleton of a spec, from the names and types of a source's columns, or of a model of dbt.

What a person must state is left empty, and a spec is refused until it is stated.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import yaml

from suffice.errors import SpecError, StageFailedError, UsageError
from suffice.pipeline.rows.sources import SOURCES, csv_files
from suffice.pipeline.rows.sources.column_values import TEXT_TYPES, read_texts
from suffice.pipeline.rows.sources.file_access import (
    PinnedFile,
    is_data_file,
    list_files,
    list_objects,
    opened,
    reaches,
    status,
)
from suffice.pipeline.rows.sources.times_of_96_bits import parquet_file, stored_columns
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.source_specs import CsvSpec, CsvType, is_url, source_path
from suffice.pipeline.terms.declaration.spec_yaml import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from suffice.pipeline.spec.spec import Spec

MOST_LETTERS = 56
"""Of a name whose count, `NAME.expect`, has one of at most 63."""

_ID = re.compile(r"(?:^|[_\W]|(?<=[a-z]))(?:Id|ID)$|(?:^|[_\W])(?:id|uuid|guid|key)$|^(?:uuid|guid)$")
"""Names of columns that tell records or people apart: a mean of them says nothing."""

_HEAD = """\
# A skeleton: state what is empty, delete what you do not want, then run `suffice plan`.
# Bounds, categories and keys must come from what is publicly known, never from looking at the data.
name: {name}
dataset:                            # the protected population: the account that pays
source:{source}
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

_PARSED_WINDOW = """\
# derived:    # optional: the day that a value of {column} says; or {{parse: timestamp, epoch: seconds}}
#   {name}: {{column: {column}, parse: date, format: "%Y%m%d"}}
# window: {{column: {name}, every: month}}    # a release for each month
# expect: {{rows: 1000, epsilon: 0.01}}    # with a window: counted first; below it the rest is not charged
"""

_DATE = re.compile(r"(?:^|[_\W])(?:date|day|time|timestamp|epoch|ds|dt|ts)(?:$|[_\W])", re.IGNORECASE)
"""Names of columns whose numbers or texts may say days or times."""

_OTHER_KINDS = (
    "a source of another kind is stated as in a spec: suffice init '{csv: flights/, columns: {day: date}}'"
)
_UNSTATED = pa.null()
"""The type of a column of text whose type nobody has stated."""
_TYPES = "each is " + " or ".join((", ".join([*CsvType][:-1]), [*CsvType][-1]))
_FITTING = 0.9
"""The share of a sample's values that have to read as a type, for it to be proposed."""
_NARROWEST_FIRST = (
    CsvType.BOOLEAN,
    CsvType.INTEGER,
    CsvType.NUMBER,
    CsvType.DATE,
    CsvType.TIMESTAMP,
    CsvType.TIMESTAMP_WITH_OFFSET,
)
_SAMPLE_ROWS = 1 << 16

_DBT_TYPES = {
    CsvType.BOOLEAN: "bool|boolean",
    CsvType.INTEGER: "(tiny|small|medium|big)?int|u?int[0-9]*|integer|byteint",
    CsvType.NUMBER: "float[0-9]*|double( precision)?|real|(big)?numeric|(big)?decimal|number",
    CsvType.TEXT: "n?(var)?char|character( varying)?|bpchar|text|string",
    CsvType.DATE: "date",
    CsvType.TIMESTAMP: "timestamp(_?ntz| without time zone)?|datetime[0-9]*",
    CsvType.TIMESTAMP_WITH_OFFSET: "timestamp(_?l?tz| with (local )?time zone)",
}
"""Names of types, of several warehouses, by what their values are."""
_DBT_RELATION = re.compile(r"\s*(ref|source)\(.*?['\"](?P<name>[^'\"]+)['\"]\s*\)\s*")
"""As exposures state what they depend on: the last text names a model, or a source's table."""


def skeleton(data: str, *, relative_to: Path, sample: str | None = None) -> str:
    """Return the text of a spec for a source.

    Parameters
    ----------
    data : str
        A file, directory, glob or URL of Parquet or delimited text; or a source of any kind in braces, as a
        spec states it. Only its schema is read; of delimited text the line of names.
    relative_to : Path
        The directory the spec will stand in. Paths in braces start there, as in the spec.
    sample : str, optional
        A local file of delimited text that its owner declares public or synthetic: its values say which
        types are proposed.

    Returns
    -------
    str
        YAML in which epsilon, dataset, bounds, categories and types of texts are empty, which a spec may not
        be.

    Raises
    ------
    UsageError
        Where there is no such file, or the source cannot be opened or has no columns; where it names columns
        that are not there, or the sample is of the source.
    SpecError
        Where the text in braces is no source.
    """
    folders = frozenset[str]()
    is_stated = data.lstrip().startswith("{")
    stated = " ".join(data.split()) if is_stated else f"{{csv: {_written(data, relative_to)}}}"
    if not is_stated and not _is_delimited(data):
        stated = f"{{parquet: {_written(data, relative_to)}}}"
        _refuse_sample(sample)
        return _text(data, f" {stated}", _of_parquet(data), folders)
    spec, content = _loaded(stated, relative_to)
    if not isinstance(spec.source, CsvSpec):
        _refuse_sample(sample)
        folders = frozenset(getattr(spec.source, "hive", ()))
        return _text(spec.source_address, f" {stated}", _of_source(spec), folders)
    types = _types_of_texts(spec, spec.source, sample)
    schema = pa.schema([(name, TEXT_TYPES[kind] if kind else _UNSTATED) for name, kind in types.items()])
    is_whole = spec.source.columns.keys() == types.keys()
    source = f" {stated}" if is_whole else _source_of_texts(content, types)
    return _text(spec.source_address, source, schema, folders)


def dbt_skeleton(path: str, exposure: str | None = None, *, relative_to: Path) -> str:
    """Return the text of a spec for an exposure that dbt's YAML declares; nothing else is opened.

    The exposure depends on one model, or one table of a source, in the same file, and states where its rows
    are::

        meta: {suffice: {source: {parquet: exports/flights}}}

    Parameters
    ----------
    path : str
    exposure : str, optional
        Its name, where several have such a `meta`.
    relative_to : Path
        The directory the spec will stand in; the source's path starts there.

    Raises
    ------
    UsageError, SpecError
        Where there is no such exposure, or it lacks what is needed.
    """
    content = _dbt_content(path)
    sources = {
        str(entry.get("name")): source
        for entry in _entries(content, "exposures")
        if (source := _dbt_source(entry)) is not None and exposure in {None, entry.get("name")}
    }
    if len(sources) != 1:
        which = "several exposures state" if sources else "no exposure of that name states"
        message = (
            f"--dbt {path}: {which} meta: {{suffice: {{source: ...}}}}: name one, as in suffice init NAME"
        )
        raise UsageError(message)
    ((name, stated),) = sources.items()
    columns = _dbt_columns(content, name, path)
    spec = _spec_of(stated, relative_to)
    schema = pa.schema(
        [(column, TEXT_TYPES[kind] if kind else _UNSTATED) for column, kind in columns.items()]
    )
    types = columns if isinstance(spec.source, CsvSpec) and not spec.source.columns else {}
    return _text(name, _source_of_texts(stated, types), schema, frozenset(getattr(spec.source, "hive", ())))


def _dbt_content(path: str) -> Mapping[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - a text
            content = yaml.safe_load(file)  # anchors and empty values are usual here
    except (OSError, ValueError, yaml.YAMLError):
        content = None
    if not isinstance(content, dict):
        message = f"--dbt {path}: it cannot be read as dbt's YAML of models and exposures"
        raise UsageError(message)
    return content


def _entries(content: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    entries = content.get(key)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _dbt_source(entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what an exposure's `meta`, which newer versions of dbt have below `config`, says of a source."""
    for above in (entry, entry.get("config")):
        meta = above.get("meta") if isinstance(above, dict) else None
        ours = meta.get("suffice") if isinstance(meta, dict) else None
        source = ours.get("source") if isinstance(ours, dict) else None
        if isinstance(source, dict):
            return source
    return None


def _dbt_columns(content: Mapping[str, Any], exposure: str, path: str) -> dict[str, CsvType | None]:
    """Return the columns of what an exposure depends on, and what their types say of their values."""
    (entry,) = (entry for entry in _entries(content, "exposures") if str(entry.get("name")) == exposure)
    depends = entry.get("depends_on")
    relation = (
        _DBT_RELATION.fullmatch(str(depends[0])) if isinstance(depends, list) and len(depends) == 1 else None
    )
    tables = [table for source in _entries(content, "sources") for table in _entries(source, "tables")]
    columns = {
        str(column.get("name")): _dbt_type(str(column.get("data_type", "")))
        for table in [*_entries(content, "models"), *tables]
        if relation is not None and table.get("name") == relation["name"]
        for column in _entries(table, "columns")
    }
    if not columns:
        message = (
            f"--dbt {path}: {exposure} must depend on one ref('MODEL') or source('SOURCE', 'TABLE'), "
            "which lists its columns in this file"
        )
        raise UsageError(message)
    return columns


def _dbt_type(name: str) -> CsvType | None:
    plain = re.sub(r"\s*\([^)]*\)", "", name.strip().lower())
    return next((kind for kind, names in _DBT_TYPES.items() if re.fullmatch(names, plain)), None)


def _text(address: str, source: str, schema: pa.Schema, folders: frozenset[str]) -> str:
    head = _HEAD.format(name=_release_name(address), source=source, window=_window(schema, folders))
    return head + "".join(_statistics(schema))


def _refuse_sample(sample: str | None) -> None:
    if sample is not None:
        message = "--sample: only columns of delimited text need their types stated"
        raise UsageError(message)


def _is_delimited(data: str) -> bool:
    """Tell whether a path names delimited text: by its end, or as it is a directory of such files alone."""
    last = re.split(r"[/\\]", data.rstrip("/"))[-1]
    if is_data_file(re.sub(r"[*?\[\]]+", "any", last), "csv"):
        return True
    if is_url(data) or not os.path.isdir(data):  # noqa: PTH112 - a text
        return False
    names = os.listdir(data)  # noqa: PTH208 - a text
    return any(is_data_file(name, "csv") for name in names) and not any(map(is_data_file, names))


def _written(data: str, directory: Path) -> str:
    """Return a path as a spec in a directory writes it."""
    path = data if is_url(data) else os.path.relpath(data, directory)
    return _quoted(path + ("/" if data.endswith("/") else ""))


def _loaded(source: str, directory: Path) -> tuple[Spec, Mapping[str, Any]]:
    """Return a spec of a source that is stated as in a spec, and what the source states."""
    content = read_yaml(source, "DATA").content
    return _spec_of(content, directory), content


def _spec_of(content: Any, directory: Path) -> Spec:
    """Return a spec of a source; its columns are still unknown."""
    terms = {
        "name": "skeleton",
        "dataset": "skeleton",
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
        "statistics": {"rows": {"family": "bernoulli", "column": "no column yet"}},
    }
    try:
        return load_spec({**terms, "source": content}).model_copy(update={"directory": directory})
    except SpecError as error:
        raise SpecError("DATA", str(error).removeprefix("spec: ")) from None


def _of_source(spec: Spec) -> pa.Schema:
    """Return the columns of a source that knows them."""
    kind = SOURCES[spec.source.kind]
    pin = kind.pin(spec)
    try:
        return kind.schema(pin)[0].columns
    finally:
        pin.close()


def _types_of_texts(spec: Spec, source: CsvSpec, sample: str | None) -> dict[str, CsvType | None]:
    """Return each column of the first file, and its type: as stated, as a sample suggests, or None."""
    names = csv_files.column_names(spec)
    unknown = [name for name in source.columns if name not in names]
    if unknown:
        message = (
            f"source.csv: the first file has no column {', '.join(map(repr, unknown))}; "
            f"it has {', '.join(map(repr, names))}"
        )
        raise UsageError(message)
    proposed = {} if sample is None else _types_in_sample(spec, source, sample)
    return {name: source.columns.get(name, proposed.get(name)) for name in names}


def _types_in_sample(spec: Spec, source: CsvSpec, sample: str) -> dict[str, CsvType]:
    """Return the first type, by column, as which most values of a sample read: text where few do."""
    path = os.path.realpath(sample)
    if not is_url(spec.source_address) and reaches(spec.source_address, path, "csv"):
        message = f"--sample {sample}: it is a file of the source: a sample is public or synthetic"
        raise UsageError(message)

    def of_sample(columns: dict[str, CsvType]) -> Spec:
        return spec.model_copy(update={"source": source.model_copy(update={"csv": path, "columns": columns})})

    names = csv_files.column_names(of_sample({}))
    values, read = Counter[str](), {name: Counter[CsvType]() for name in names}
    try:
        pin = csv_files.pin(of_sample(dict.fromkeys(names, CsvType.TEXT)))
        for split in csv_files.splits(pin):
            for batch in csv_files.read(split, names, _SAMPLE_ROWS):
                for name, texts in zip(names, batch.columns, strict=True):
                    values[name] += pc.count(texts).as_py()
                    for kind in _NARROWEST_FIRST:
                        read[name][kind] += pc.count(read_texts(texts, kind)).as_py()
    except (OSError, pa.ArrowException, StageFailedError):
        message = f"--sample {sample}: it cannot be read as delimited text"
        raise UsageError(message) from None
    types = {}
    for name in names:
        kind = max(_NARROWEST_FIRST, key=lambda kind: read[name][kind])  # the first of those that tie
        if values[name]:
            types[name] = kind if read[name][kind] >= _FITTING * values[name] else CsvType.TEXT
    return types


def _source_of_texts(content: Mapping[str, Any], types: Mapping[str, CsvType | None]) -> str:
    """Return a source over several lines, in which types that nobody has stated are empty."""
    keys = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in content.items()]
    types_stated = [f"  {_quoted(name)}: {kind or ''}".rstrip() for name, kind in types.items()]
    lines = [key for key in keys if not (types and key.startswith("columns:"))]
    if types:
        lines += [f"columns:    # {_TYPES}; --sample proposes them", *types_stated]
    return "".join(f"\n  {line}" for line in lines)


def _of_parquet(data: str) -> pa.Schema:
    """Return the columns of the first of Parquet files."""
    first = _first(data)
    try:
        with opened(first) as file, parquet_file(file) as parquet:
            return stored_columns(parquet)
    except (OSError, pa.ArrowException):
        message = f"{first.address} is no Parquet file; {_OTHER_KINDS}"
        raise UsageError(message) from None


def _release_name(address: str) -> str:
    """Return a name for the release: the last word of where the rows are."""
    fixed = re.sub(r"/*[*?\[].*$", "", address).rstrip("/")
    last = re.split(r"[/:]", re.sub(r"\.(parquet|csv(\.(gz|zst|bz2))?)$", "", fixed))[-1]
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

    A folder's comes first: of the others' windows every folder is read. Where there is none, numbers or texts
    whose column is named like a date may say one.
    """
    dated = [field for field in schema if pa.types.is_date(field.type) or pa.types.is_timestamp(field.type)]
    dated.sort(key=lambda field: field.name not in folders)
    if dated:
        return _WINDOW.format(column=_quoted(dated[0].name))
    raw = [
        field.name
        for field in schema
        if _DATE.search(field.name) and (pa.types.is_integer(field.type) or pa.types.is_string(field.type))
    ]
    if not raw:
        return ""
    taken = {name.lower() for name in schema.names}
    name = next(name for name in ("day", "day_read", f"{raw[0]}_read") if name.lower() not in taken)
    return _PARSED_WINDOW.format(column=_quoted(raw[0]), name=_quoted(name))


def _statistics(schema: pa.Schema) -> Iterable[str]:
    used: set[str] = set()
    for column in schema:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", column.name).lstrip("_.-")[:63] or "column"
        while name.lower() in used:
            name = f"{name[:58]}_{len(used)}"
        used.add(name.lower())
        entry = _entry(column)
        if entry:
            yield f"  {name}: {entry}\n"
        elif pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
            window = f"window: {{column: {_quoted(column.name)}, every: month}}"
            yield f"  # {name}: dates: a window perhaps ({window}), or what others are derived from\n"
        elif column.type == _UNSTATED:
            yield f"  # {name}: state what its values are, and here a family of such a column\n"
        elif _ID.search(column.name):
            yield f"  # {name}: named like an id: a unit perhaps (privacy.unit), and nothing to sum\n"
        else:
            yield f"  # {name}: no family for a column of type {column.type}\n"


def _entry(field: pa.Field) -> str | None:
    if _ID.search(field.name) or field.type == _UNSTATED:
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
