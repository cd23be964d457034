"""What a source holds, for its owner's eyes: a contract that fits it, and how much of it fits a contract.

Everything here is exact: numbers of folders, files, rows and values. It is for a person inside the trusted
boundary, and for no release, log or flow.

A spec's skeleton follows from a schema alone: what a person must state is left empty, and refused until
stated.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from suffice.errors import SpecError, UsageError
from suffice.pipeline.rows.sources import SOURCES, csv_files, parquet
from suffice.pipeline.rows.sources.column_values import as_family, read_texts, stored_family
from suffice.pipeline.rows.sources.contract import exact_data, spec_columns
from suffice.pipeline.rows.sources.file_access import PinnedFile, list_files, list_objects, opened, status
from suffice.pipeline.rows.sources.table_files import PinnedTable
from suffice.pipeline.spec.contract_fit import FAMILIES_OF_TEXTS, LOOSE_KINDS, column_uses, delimited_form
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.column_types import ColumnFamily, TypeFamily
from suffice.pipeline.terms.declaration.data_contract import DataContract, SourceForm, WindowRule
from suffice.pipeline.terms.declaration.source_specs import CsvSpec, CsvType, ParquetSpec, is_url, source_path
from suffice.pipeline.terms.declaration.spec_text import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
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

    A folder's comes first: of the others' windows every folder is read.
    """
    dated = [field for field in schema if pa.types.is_date(field.type) or pa.types.is_timestamp(field.type)]
    dated.sort(key=lambda field: field.name not in folders)
    return _WINDOW.format(column=_quoted(dated[0].name)) if dated else ""


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
        elif _ID.search(column.name):
            yield f"  # {name}: named like an id: a unit perhaps (privacy.unit), and nothing to sum\n"
        else:
            yield f"  # {name}: no family for a column of type {column.type}\n"


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


_BLOCK_ROWS = 1 << 16
_NO_TYPE = "no values"
_NOT_READ = "not read"
_NEEDED = {
    TypeFamily.NUMERIC: ColumnFamily.FLOATING,
    TypeFamily.TEXT: ColumnFamily.TEXT,
    TypeFamily.BOOLEAN: ColumnFamily.BOOLEAN,
    TypeFamily.DATE: ColumnFamily.DATE,
    TypeFamily.TIMESTAMP: ColumnFamily.TIMESTAMP,
}
"""What a column is proposed to be that no file says anything of, by what the spec needs of it."""


@dataclass(slots=True, kw_only=True)
class ColumnFit:
    """How much of a column fits a contract; all of it is exact.

    Attributes
    ----------
    values : int
        Rows in which it has a value.
    fit : int
        Of those, which read as the contract's family.
    types : Counter of str
        By what files hold it as, in how many: a family, or in words.
    """

    values: int = 0
    fit: int = 0
    types: Counter[str] = field(default_factory=Counter)


@exact_data(travels=False)
class Inspection:
    """What was found at a source, and the contract that it was held against; exact, and for its owner.

    Parameters
    ----------
    contract : DataContract
        Proposed, or the one that was given.
    folders, files, read, rows : int or None
        Folders that hold data files, the files, those of them that can be read, and their rows; None where a
        catalogue says what the columns are.
    columns : dict of str to ColumnFit
        Of those that the spec reads.
    unread : tuple of str
        Folders with data files whose names state a key's value that does not read as it is declared.
    """

    contract: DataContract
    folders: int | None
    files: int | None
    read: int | None
    rows: int | None
    columns: dict[str, ColumnFit]
    unread: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Notes:
    """What looking at files counts."""

    folders: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    files: int = 0
    read: int = 0
    rows: int = 0
    rows_by_family: dict[str, Counter[ColumnFamily]] = field(default_factory=dict)


def inspect(spec: Spec, contract: DataContract | None = None) -> Inspection:
    """Look at all that a spec's source holds: the only function here that tells exact numbers.

    Parameters
    ----------
    spec : Spec
    contract : DataContract, optional
        What the data are held against; one that fits them is proposed where it is left out.

    Raises
    ------
    UsageError
        Where the source is not there.
    StageFailedError
        Where a file cannot be read.
    """
    from suffice.pipeline.spec.spec import require_source  # few specs have none

    require_source(spec)
    if spec.source.kind not in LOOSE_KINDS:
        proposed = contract or proposed_contract(spec, _of_catalogue(spec))
        return Inspection(contract=proposed, folders=None, files=None, read=None, rows=None, columns={})
    notes = _Notes()
    if isinstance(spec.source, CsvSpec):
        held = contract or proposed_contract(spec, columns_of_texts(spec, spec.source))
        columns = _csv_fits(spec, spec.source, held, notes)
    else:
        stored = list(_parquet_schemas(spec, notes))
        held = contract or proposed_contract(spec, _of_files(spec, notes))
        columns = _parquet_fits(spec, held, stored)
    return Inspection(
        contract=held,
        folders=len(notes.folders),
        files=notes.files,
        read=notes.read,
        rows=notes.rows,
        columns=columns,
        unread=tuple(sorted(notes.unread)),
    )


def proposed_contract(spec: Spec, columns: dict[str, ColumnFamily]) -> DataContract:
    """Return a contract of these columns, and of those that the spec needs beside them."""
    for _, of in column_uses(spec):
        if of.column not in spec.derived and of.column not in columns:
            needed = sorted(of.families - {TypeFamily.NULL})
            columns[of.column] = _NEEDED[needed[0]] if len(needed) == 1 else ColumnFamily.TEXT
    unit = spec.privacy.column_unit
    source = spec.source
    folders = source.hive if isinstance(source, ParquetSpec) else {}
    is_csv = isinstance(source, CsvSpec)
    is_file = source.kind in {*LOOSE_KINDS, "delta", "iceberg"}
    return DataContract(
        columns=columns,
        unit="row" if unit is None else f"column:{unit.column}",
        window=None
        if spec.window is None
        else WindowRule(column=spec.window.column, time_zone=spec.window.time_zone),
        source=SourceForm(
            kind=source.kind,
            compression="by_suffix" if is_csv else "as_stored" if is_file else None,
            dates="iso_8601" if is_csv or folders else None,
            folders=dict(folders),
            delimited=delimited_form(source) if isinstance(source, CsvSpec) else None,
        ),
    )


def _of_catalogue(spec: Spec) -> dict[str, ColumnFamily]:
    """Return the families of a table's columns that are read at all."""
    kind = SOURCES[spec.source.kind]
    with contextlib.closing(kind.pin(spec)) as pin:
        private = pin.private
        schema = private.columns if isinstance(private, PinnedTable) else kind.schema(pin)[0].columns
    families = {name: stored_family(schema.field(name).type) for name in schema.names}
    return {name: family for name, family in families.items() if family is not None}


def columns_of_texts(spec: Spec, source: CsvSpec) -> dict[str, ColumnFamily]:
    """Return what columns of delimited text hold: a spec says what each is read as."""
    names = {*spec_columns(spec), *source.columns, *(source.header or ())}
    return {name: FAMILIES_OF_TEXTS[source.columns.get(name, CsvType.TEXT)] for name in sorted(names)}


def _of_files(spec: Spec, notes: _Notes) -> dict[str, ColumnFamily]:
    """Return the family that most rows have, of each column of files; of folders, what the spec states."""
    families = {name: counts.most_common(1)[0][0] for name, counts in notes.rows_by_family.items()}
    folders = spec.source.hive if isinstance(spec.source, ParquetSpec) else {}
    families |= {name: ColumnFamily(str(folder.type)) for name, folder in folders.items()}
    return dict(sorted(families.items()))


def _parquet_schemas(spec: Spec, notes: _Notes) -> Iterator[tuple[PinnedFile, Mapping[str, bool]]]:
    """Give the readable files, each with whether its folders state each of their columns; count meanwhile."""
    folders = spec.source.hive if isinstance(spec.source, ParquetSpec) else {}
    for file, columns in parquet.listed_files(spec.source_address, folders, is_contracted=True):
        notes.files += 1
        folder = file.address.rpartition("/")[0]
        notes.folders.add(folder)
        texts = (parquet.stated_by(spec.source_address, file.address) or {}) if folders else {}
        if any(of.value(texts) is None and all(texts.get(key) for key in of.keys) for of in folders.values()):
            notes.unread.add(folder.removeprefix(f"{spec.source_address}/"))
        try:
            with opened(file) as content, pq.ParquetFile(content) as stored:
                schema, metadata = stored.schema_arrow, stored.metadata
        except (pa.ArrowException, OSError):
            continue
        notes.read += 1
        notes.rows += metadata.num_rows
        for name in schema.names:
            family = stored_family(schema.field(schema.names.index(name)).type)
            if family is not None and schema.names.count(name) == 1:
                n_values = metadata.num_rows - _null_count(metadata, name)
                if n_values:  # what a column without a value is typed as says nothing
                    notes.rows_by_family.setdefault(name, Counter())[family] += n_values
        yield file, {name: not columns.lacks(name) for name in folders}


def _null_count(metadata: pq.FileMetaData, name: str) -> int:
    """Return how many nulls a file's footer tells of a column; 0 where it tells none."""
    index = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}.get(name)
    if index is None:
        return 0
    groups = (metadata.row_group(at).column(index).statistics for at in range(metadata.num_row_groups))
    return sum(of.null_count for of in groups if of is not None and of.has_null_count)


def _parquet_fits(
    spec: Spec, contract: DataContract, files: Iterable[tuple[PinnedFile, Mapping[str, bool]]]
) -> dict[str, ColumnFit]:
    """Count the values of every column, and those of them that read as the contract says."""
    fits = {name: ColumnFit() for name in spec_columns(spec)}
    for file, of_folders in files:
        try:
            with opened(file) as content, pq.ParquetFile(content) as stored:
                schema, n_rows = stored.schema_arrow, stored.metadata.num_rows
                for name, fit in fits.items():
                    if name in of_folders:
                        fit.values += n_rows
                        fit.fit += n_rows * of_folders[name]
                        fit.types["folder"] += 1
                    elif schema.names.count(name) != 1:
                        fit.types["absent" if name not in schema.names else "twice"] += 1
                    else:
                        fit.types[_type_name(schema.field(name).type)] += 1
                        family = contract.columns.get(name)
                        for batch in stored.iter_batches(_BLOCK_ROWS, columns=[name]):
                            _count(fit, batch.column(0), family)
        except (pa.ArrowException, OSError):
            message = f"a data file of {spec.source_address} cannot be read: it is damaged"
            raise UsageError(message) from None
    return fits


def _count(fit: ColumnFit, column: pa.Array, family: ColumnFamily | None) -> None:
    fit.values += len(column) - column.null_count
    if family is not None:
        read = as_family(column, family)
        fit.fit += len(read) - read.null_count


def _csv_fits(spec: Spec, source: CsvSpec, contract: DataContract, notes: _Notes) -> dict[str, ColumnFit]:
    """Read all columns as text, and then as the spec says."""
    names = spec_columns(spec)
    fits = {name: ColumnFit() for name in names}
    as_text = spec.model_copy(update={"source": source.model_copy(update={"columns": {}})})
    pin = csv_files.pin(as_text, contract=contract)
    notes.files = notes.read = len(pin.private.files)
    for csv in pin.private.files:
        notes.folders.add(csv.file.address.rpartition("/")[0])
        for name in names:
            fits[name].types[_NOT_READ if csv.names.count(name) != 1 else "text"] += 1
    for split in csv_files.splits(pin):
        notes.rows += split.n_rows
        for batch in csv_files.read(split, names, _BLOCK_ROWS):
            for name in names:
                texts = batch.column(name)
                read = read_texts(texts, source.columns.get(name, CsvType.TEXT))
                fits[name].values += pc.count(texts).as_py()
                fits[name].fit += pc.count(read).as_py()
    return fits


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_null(kind):
        return _NO_TYPE
    return str(stored_family(kind) or _NOT_READ)
