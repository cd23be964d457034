"""What a source holds, for its owner's eyes: a contract that fits it, and how much of it fits a contract.

Everything here is exact: numbers of folders, files, rows and values. It is for a person inside the trusted
boundary, and for no release, log or flow.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from suffice.errors import SchemaError, UsageError
from suffice.pipeline.rows.sources import SOURCES, csv_files, parquet
from suffice.pipeline.rows.sources.column_values import as_family, read_texts, stored_family
from suffice.pipeline.rows.sources.contract import exact_data, spec_columns
from suffice.pipeline.rows.sources.file_access import PinnedFile, is_data_file, opened
from suffice.pipeline.rows.sources.table_files import PinnedTable
from suffice.pipeline.rows.sources.times_of_96_bits import (
    WALL_TIMES,
    parquet_file,
    stored_columns,
    with_instants,
)
from suffice.pipeline.spec.contract_fit import FAMILIES_OF_TEXTS, LOOSE_KINDS, column_uses, delimited_form
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.column_types import ColumnFamily, TypeFamily
from suffice.pipeline.terms.declaration.data_contract import DataContract, SourceForm, WindowRule
from suffice.pipeline.terms.declaration.row_rules import entry_of
from suffice.pipeline.terms.declaration.source_specs import CsvSpec, CsvType, ParquetSpec, is_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from suffice.pipeline.spec.spec import Spec

_BLOCK_ROWS = 1 << 16
_NO_TYPE, _ABSENT = "no values", "absent"
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
    others : int or None
        Files beside them on this machine that are not read because of how their names end; hidden ones and
        markers apart. None of a URL, a pattern or a catalogue.
    """

    contract: DataContract
    folders: int | None
    files: int | None
    read: int | None
    rows: int | None
    columns: dict[str, ColumnFit]
    unread: tuple[str, ...] = ()
    others: int | None = None


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
    _require_columns(spec, columns, is_proposed=contract is None)
    return Inspection(
        contract=held,
        folders=len(notes.folders),
        files=notes.files,
        read=notes.read,
        rows=notes.rows,
        columns=columns,
        unread=tuple(sorted(notes.unread)),
        others=_other_files(spec),
    )


def _other_files(spec: Spec) -> int | None:
    """Count files beside those that are read, and are none by their names, as Hive's ``000000_0``."""
    root, source = Path(spec.source_address), spec.source
    if is_url(spec.source_address) or not root.is_dir():
        return None
    paths = root.rglob("*") if isinstance(source, ParquetSpec) and source.hive else root.iterdir()
    below = (path.relative_to(root).parts for path in paths if path.is_file())
    return sum(
        not is_data_file(parts[-1], source.kind) and not any(part.startswith((".", "_")) for part in parts)
        for parts in below
    )


def _require_columns(spec: Spec, columns: Mapping[str, ColumnFit], *, is_proposed: bool) -> None:
    """Propose no contract of a column that no file has: with it the spec would be released, and empty."""
    for name, fit in columns.items():
        if is_proposed and fit.types and not set(fit.types) - {_ABSENT}:
            message = (
                f"{spec.source_address}: no file has a column {name!r}, which the spec reads: correct its "
                "name; a column that is still to come is stated in a contract by hand"
            )
            raise SchemaError(message)


def proposed_contract(spec: Spec, columns: dict[str, ColumnFamily]) -> DataContract:
    """Return a contract of these columns, and of those that the spec needs beside them."""
    for _, of in column_uses(spec):
        if of.column not in spec.derived and of.column not in columns:
            needed = sorted(of.families - {TypeFamily.NULL})
            columns[of.column] = _NEEDED[needed[0]] if len(needed) == 1 else ColumnFamily.TEXT
    unit = spec.privacy.column_unit
    ruled = [*([spec.window.column] if spec.window else []), *([unit.column] if unit else [])]
    source = spec.source
    folders = source.hive if isinstance(source, ParquetSpec) else {}
    is_csv = isinstance(source, CsvSpec)
    is_file = source.kind in {*LOOSE_KINDS, "delta", "iceberg"}
    return DataContract(
        columns=columns,
        derived={name: entry_of(spec.derived[name]) for name in ruled if name in spec.derived} or None,
        unit="row" if unit is None else f"column:{unit.column}",
        window=None
        if spec.window is None
        else WindowRule(
            column=spec.window.column,
            time_zone=spec.window.time_zone,
            files_by_window=spec.window.files_by_window,
        ),
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
    names = spec.window.file_names(ALL) if spec.window else None
    for file, columns in parquet.listed_files(spec.source_address, folders, names=names, is_contracted=True):
        notes.files += 1
        folder = file.address.rpartition("/")[0]
        notes.folders.add(folder)
        texts = (parquet.stated_by(spec.source_address, file.address) or {}) if folders else {}
        if any(of.value(texts) is None and all(texts.get(key) for key in of.keys) for of in folders.values()):
            notes.unread.add(folder.removeprefix(f"{spec.source_address}/"))
        try:
            with opened(file) as content, parquet_file(content) as stored:
                schema, metadata = stored_columns(stored), stored.metadata
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
            with opened(file) as content, parquet_file(content) as stored:
                schema, n_rows = stored_columns(stored), stored.metadata.num_rows
                for name, fit in fits.items():
                    if name in of_folders:
                        fit.values += n_rows
                        fit.fit += n_rows * of_folders[name]
                        fit.types["folder"] += 1
                    elif schema.names.count(name) != 1:
                        fit.types[_ABSENT if name not in schema.names else "twice"] += 1
                    else:
                        fit.types[_type_name(schema.field(name).type)] += 1
                        family = contract.columns.get(name)
                        for batch in stored.iter_batches(_BLOCK_ROWS, columns=[name]):
                            read = batch if family in WALL_TIMES else with_instants(batch, stored)
                            _count(fit, read.column(0), family)
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
            occurs = csv.names.count(name)
            fits[name].types["text" if occurs == 1 else "twice" if occurs else _ABSENT] += 1
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
