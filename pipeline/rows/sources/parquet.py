"""Parquet files that a path, a directory, a pattern or a URL names, with the columns that folders state.

Of files below folders such as ``year=1993/month=06`` a release reads those it needs.
Folders are public by the spec that declares them: which of them are listed follows from their names, the
window and the declared keys alone. A folder that is not there is one without rows. The rows of a file are
read in ``parquet_files.py``, for tables of files too.
"""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from suffice.arrays import number_array, text_array
from suffice.errors import SchemaError, UsageError
from suffice.pipeline.rows.sources import file_access, parquet_files, window_files
from suffice.pipeline.rows.sources.checksums import require_listed
from suffice.pipeline.rows.sources.contract import PartSchema, Pin, Split, exact_data, spec_columns
from suffice.pipeline.rows.sources.contracted_columns import (
    AS_STORED,
    FileColumns,
    contract_schema,
    contracted,
)
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.column_types import NULL_FOLDER, HiveColumn, HiveType
from suffice.pipeline.terms.declaration.domains import Domain, DomainKind, next_period, period_start
from suffice.pipeline.terms.declaration.exact_numbers import parse_decimal
from suffice.pipeline.terms.declaration.source_specs import ParquetSpec, is_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    from suffice.pipeline.rows.sources.contracted_columns import ColumnsOf
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.column_types import HiveColumn
    from suffice.pipeline.terms.declaration.data_contract import DataContract

    Texts: TypeAlias = Mapping[str, str | None]
    """What folders state, by key: decoded, null as None."""


_ARROW = {
    HiveType.INTEGER: pa.int64(),
    HiveType.TEXT: pa.string(),
    HiveType.DATE: pa.date32(),
    HiveType.BOOLEAN: pa.bool_(),
}
_EPOCH = dt.date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What a release needs of a column that folders state: rows of other values enter nothing.

    Parameters
    ----------
    column : HiveColumn
        The column.
    dates : (date, date) or None
        The first and the last date, where it is one of dates.
    values : frozenset or None
        The values, where it is none of dates.
    """

    column: HiveColumn
    dates: tuple[dt.date, dt.date] | None = None
    values: frozenset[Any] | None = None

    def admits(self, texts: Texts, *, is_file: bool) -> bool:
        """Tell whether rows in a file, or below a folder, may have such a value."""
        if not is_file and any(key not in texts for key in self.column.keys):
            between = self.column.dates(texts)
            if between is None or self.dates is None:
                return True
            return max(between[0], self.dates[0]) <= min(between[1], self.dates[1])
        value = self.column.value(texts)
        if value is None:
            return False
        if self.dates is None:
            return self.values is None or value in self.values
        return isinstance(value, dt.date) and self.dates[0] <= value <= self.dates[1]


def needed(spec: Spec, columns: Mapping[str, HiveColumn], window: str = ALL) -> tuple[Needed, ...]:
    """Return what a release needs of the columns that folders state.

    Nothing is left out where the number of all records is public: it counts them whatever their window.
    """
    if compile_plan(spec).n_is_public:
        return ()
    # proof: groups
    first, *others = spec.all_groups.values()
    shared = {name: of for name, of in first.items() if all(groups.get(name) == of for groups in others)}
    masks = [_of_domain(columns[name], domain) for name, domain in shared.items() if name in columns]
    if spec.window is not None and window != ALL and spec.window.column in columns:
        period = Domain(kind=DomainKind.PERIOD, keys=(window,), every=spec.window.every)
        masks.append(_of_domain(columns[spec.window.column], period))
    return tuple(each for each in masks if each is not None)


def folder_files(root: str, wanted: tuple[Needed, ...]) -> list[tuple[file_access.PinnedFile, Texts]]:
    """List the data files below a root that a release needs, with what their folders state.

    Parameters
    ----------
    root : str
        A directory, or a prefix of a bucket.
    wanted : tuple of Needed
        What decides which folders are looked into.

    Raises
    ------
    OSError
        Where the root is not there or a folder cannot be listed.
    """
    folders = list(_walk_objects(root, root, {}, wanted) if is_url(root) else _walk(root, {}, wanted))
    return sorted(folders, key=lambda each: each[0].address)


def is_there(root: str) -> bool:
    """Tell whether a root is a directory, or a prefix below which there is any object.

    Raises
    ------
    OSError
        Where it cannot be looked at.
    """
    if not is_url(root):
        return os.path.isdir(root)  # noqa: PTH112 - no Path object
    below = file_access.objects_below(root, recursive=False)
    return bool(file_access.prefixes_below(root)) or next(below, None) is not None


def stated_by(root: str, address: str) -> Texts | None:
    """Return what the folders of a file state, given its address; None where it is no data file of a root.

    Of a key that several folders state the outermost counts, for it decides whether the others are listed.
    """
    if not address.startswith(f"{root}/"):
        return None
    *folders, name = address[len(root) + 1 :].split("/")
    texts: dict[str, str | None] = {}
    for folder in folders:
        stated = _folder(folder)
        if stated is None:
            return None
        texts = stated | texts
    return texts if file_access.is_data_file(name) else None


def file_columns(columns: Mapping[str, HiveColumn], texts: Texts) -> FileColumns:
    """Return what folders state as the constant columns of a file."""
    return FileColumns(
        constants=tuple((name, _scalar(column.value(texts), column.type)) for name, column in columns.items())
    )


def _walk(
    folder: str, texts: Texts, wanted: tuple[Needed, ...]
) -> Iterator[tuple[file_access.PinnedFile, Texts]]:
    with os.scandir(folder) as entries:
        below = [(entry.name, entry.path, entry.is_dir()) for entry in entries]
    for name, path, is_folder in below:
        stated = _folder(name) if is_folder else None
        if stated is not None:
            inner = {**stated, **texts}
            if all(each.admits(inner, is_file=False) for each in wanted):
                yield from _walk(path, inner, wanted)
        elif (
            not is_folder
            and file_access.is_data_file(name)
            and all(each.admits(texts, is_file=True) for each in wanted)
        ):
            yield file_access.status(path), texts


def _walk_objects(
    root: str, prefix: str, texts: Texts, wanted: tuple[Needed, ...]
) -> Iterator[tuple[file_access.PinnedFile, Texts]]:
    """List level by level while a key below may decide, and then everything at once."""
    is_decided = all(key in texts for each in wanted for key in each.column.keys)
    for address, size, version in file_access.objects_below(prefix, recursive=is_decided):
        stated = stated_by(root, address)
        if stated is not None and all(each.admits(stated, is_file=True) for each in wanted):
            yield file_access.PinnedFile(address=address, size=size, version=version), stated
    if is_decided:
        return
    for below in file_access.prefixes_below(prefix):
        stated = _folder(below.rpartition("/")[2])
        if stated is not None:
            inner = {**stated, **texts}
            if all(each.admits(inner, is_file=False) for each in wanted):
                yield from _walk_objects(root, below, inner, wanted)


def _folder(name: str) -> dict[str, str | None] | None:
    """Return the key and the value that a folder's name states; None for other folders, and hidden ones."""
    key, equals, value = name.partition("=")
    if not equals or not key or name.startswith("."):
        return None
    return {_decoded(key) or key: None if value == NULL_FOLDER else _decoded(value)}


def _decoded(text: str) -> str | None:
    """Return a text without its escapes; None where it is no UTF-8."""
    try:
        decoded = unquote(text, errors="strict")
        decoded.encode()
    except UnicodeError:
        return None
    return decoded


def _of_domain(column: HiveColumn, domain: Domain) -> Needed | None:
    """Return the values that a domain has a key for; None where nothing can be left out by them."""
    if column.type is HiveType.DATE and domain.kind is DomainKind.PERIOD and domain.every is not None:
        labels = [str(label) for label in domain]
        return Needed(
            column=column,
            dates=(period_start(labels[0], domain.every), _last_day(labels[-1], domain.every)),
        )
    if column.type is HiveType.TEXT and domain.kind in {DomainKind.LIST, DomainKind.RANGE}:
        return Needed(column=column, values=frozenset(str(key) for key in domain))
    if column.type is HiveType.INTEGER and domain.kind in {DomainKind.LIST, DomainKind.RANGE}:
        return Needed(column=column, values=frozenset(_numbers(domain)))
    return None


def _last_day(label: str, every: Any) -> dt.date:
    try:
        return next_period(period_start(label, every), every) - dt.timedelta(days=1)
    except OverflowError:
        return dt.date.max


def _numbers(domain: Domain) -> Iterator[Fraction]:
    for key in domain:
        try:
            yield parse_decimal(str(key))
        except ValueError:  # equal to no integer
            continue


def _scalar(value: int | str | dt.date | bool | None, kind: HiveType) -> pa.Scalar:
    if isinstance(value, str):
        return text_array([value])[0]
    if isinstance(value, dt.date):
        return number_array(np.array([value.toordinal() - _EPOCH], np.int32)).view(pa.date32())[0]
    if isinstance(value, bool):
        return number_array(np.array([value], np.uint8)).cast(pa.bool_())[0]
    if isinstance(value, int):
        return number_array(np.array([value], np.int64))[0]
    return pa.nulls(1, _ARROW[kind])[0]


KIND = ParquetSpec.kind

_PLACE = f"source.{KIND}"

read = parquet_files.read_files


@exact_data(travels=False)
class _Pinned:
    """The private part of a pin: the files, and which others would have been pinned, were they there."""

    files: parquet_files.PinnedFiles
    hive: tuple[str, ...]
    wanted: tuple[Needed, ...]
    names: tuple[str, ...] | None
    contracted: PartSchema | None


def pin(spec: Spec, window: str = ALL, contract: DataContract | None = None) -> Pin:
    """List the spec's files and pin them. Reads metadata only.

    Parameters
    ----------
    spec : Spec
        Its ``source.parquet`` is a file, a directory (its ``*.parquet``, not those below it), a pattern or a
        URL; with ``source.hive`` a directory or URL, whose folders ``KEY=VALUE`` are read too.
    window : str
        The window that will be read, or ``all``: folders that state another one are not listed.
    contract : DataContract, optional
        What files are read as, by a total rule: the directory, or that of the pattern, need be there.

    Raises
    ------
    UsageError
        Where no file is there, one is no Parquet file, or two names are the same file. With ``source.hive``
        the directory need be there, and no file.

    Notes
    -----
    A column that a file lacks and another holds is null in that file: it was added later. By the contract it
    is so in any case.
    """
    address = spec.source_address
    hive = spec.source.hive if isinstance(spec.source, ParquetSpec) else {}
    wanted = needed(spec, hive, window) if hive else ()
    is_contracted = contract is not None
    names = spec.window.file_names(window) if spec.window else None
    listed: list[tuple[file_access.PinnedFile, ColumnsOf]] = list(
        listed_files(address, hive, wanted, names, is_contracted=is_contracted)
    )
    if contract is not None:
        listed = [(file, contracted(of, spec, contract)) for file, of in listed]
    columns = spec_columns(spec)
    files = parquet_files.pin_files(listed, columns, place=_PLACE, root=address if hive else None)
    if not is_contracted:
        files = parquet_files.with_added_columns(files, columns, spec.stored_unit)
    return Pin(
        kind=KIND,
        public={"kind": KIND, "address": address},
        private=_Pinned(
            files=files,
            hive=tuple(hive),
            wanted=wanted,
            names=names,
            contracted=None if contract is None else contract_schema(spec, contract, address),
        ),
    )


def schema(pin: Pin) -> tuple[PartSchema, ...]:
    """Return the columns of the files; as the contract has them, where there is one.

    Raises
    ------
    SchemaError
        Where a column that folders state is also a file's.
    """
    pinned: _Pinned = pin.private
    if pinned.contracted is not None:
        return (pinned.contracted,)
    parts = parquet_files.file_schemas(pinned.files)
    for name in pinned.hive:
        if any(len(part.columns.get_all_field_indices(name)) > 1 for part in parts):
            message = (
                f"source.hive.{name}: a file below {pin.public['address']} has the column {name!r} too: "
                "declare only what folders alone state, or write the files without it"
            )
            raise SchemaError(message)
    return parts


def splits(pin: Pin) -> tuple[Split, ...]:
    """Batch consecutive row groups into tasks; a row group is never divided."""
    return parquet_files.file_splits(KIND, pin.private.files)


def verify(pin: Pin, checksums: str) -> None:
    """Hash every file, and compare with the owner's list.

    What is read later is what was hashed as far as size and version tell.

    Raises
    ------
    InputNotVerifiedError
        Where a file is not in the list or has another SHA-256, one in the list is gone, or there is no list.
    """
    pinned: _Pinned = pin.private
    address = pin.public["address"]
    is_reached = partial(_is_needed, address, pinned.wanted) if pinned.hive else None
    if pinned.names is not None:
        is_reached = partial(window_files.is_of_window, address, pinned.names)
    paths = [file.address for file in pinned.files.files]
    checked = partial(check, pin)
    require_listed(paths, checksums, check=checked, place=_PLACE, address=address, is_reached=is_reached)


def check(pin: Pin) -> None:
    """Check every file's size and version, as reading does before and after each piece.

    Raises
    ------
    StageFailedError
        Where a file is gone, or its size, time of modification or entity tag is not the pinned one.
    """
    parquet_files.check_files(pin.private.files)


def listed_files(
    address: str,
    hive: Mapping[str, HiveColumn],
    wanted: tuple[Needed, ...] = (),
    names: Sequence[str] | None = None,
    *,
    is_contracted: bool,
) -> list[tuple[file_access.PinnedFile, FileColumns]]:
    """Return the files at an address, or of names below it, each with the columns that folders state.

    Raises
    ------
    UsageError
        As `pin`.
    """
    if names is not None:
        files = window_files.files_of_window(address, names, may_be_empty=is_contracted)
        return [(file, AS_STORED) for file in files]
    if hive:
        return _in_folders(address, hive, wanted, is_contracted=is_contracted)
    return [(file, AS_STORED) for file in _listed(address, may_be_empty=is_contracted)]


def _listed(address: str, *, may_be_empty: bool) -> list[file_access.PinnedFile]:
    if is_url(address):
        return file_access.list_objects(address, may_be_empty=may_be_empty)
    return [_pinned(path) for path in file_access.list_files(address, may_be_empty=may_be_empty)]


def _in_folders(
    root: str, hive: Mapping[str, HiveColumn], wanted: tuple[Needed, ...], *, is_contracted: bool
) -> list[tuple[file_access.PinnedFile, FileColumns]]:
    file_access.refuse_delta_table(root)
    try:
        # Of a prefix nothing but its objects shows that it is there.
        if not (is_contracted and is_url(root)) and not is_there(root):
            message = f"{_PLACE}: no folder at {root}; with hive it names the one that holds the KEY=VALUE"
            raise UsageError(message)
        files_by_folder = folder_files(root, wanted)
        if not is_url(root):
            file_access.refuse_twice([file.address for file, _ in files_by_folder], root=root)
    except OSError:
        message = f"{_PLACE}: {root} cannot be listed: it is not there, or access to it or below it is denied"
        raise UsageError(message) from None
    return [(file, file_columns(hive, texts)) for file, texts in files_by_folder]


def _is_needed(root: str, wanted: tuple[Needed, ...], address: str) -> bool:
    """Tell whether a file would have been pinned, were it there."""
    texts = stated_by(root, address)
    return texts is not None and all(each.admits(texts, is_file=True) for each in wanted)


def _pinned(path: str) -> file_access.PinnedFile:
    try:
        return file_access.status(path)
    except OSError:
        message = f"{_PLACE}: {path} cannot be read as a Parquet file"
        raise UsageError(message) from None
