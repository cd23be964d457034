"""Parquet files that a path, a directory, a pattern or a URL names, with the columns that folders state."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from suffice.errors import SchemaError, StageFailedError, UsageError
from suffice.pipeline.rows.sources.checksums import fits, mismatch
from suffice.pipeline.rows.sources.contract import PartSchema, Pin, Split, spec_columns
from suffice.pipeline.rows.sources.contracted_columns import contract_schema, contracted
from suffice.pipeline.rows.sources.exact_data import exact_data
from suffice.pipeline.rows.sources.file_access import PinnedFile, status
from suffice.pipeline.rows.sources.file_columns import AS_STORED, FileColumns
from suffice.pipeline.rows.sources.file_listing import (
    list_files,
    list_objects,
    refuse_delta_table,
    refuse_twice,
)
from suffice.pipeline.rows.sources.hive_folders import (
    Needed,
    file_columns,
    folder_files,
    is_there,
    needed,
    stated_by,
)
from suffice.pipeline.rows.sources.parquet_files import (
    PinnedFiles,
    check_files,
    file_schemas,
    file_splits,
    pin_files,
    read_files,
)
from suffice.pipeline.spec.windows_and_amendments import ALL
from suffice.pipeline.terms.declaration.source_specs import ParquetSpec, is_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.rows.sources.contracted_columns import ColumnsOf
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.column_types import HiveColumn
    from suffice.pipeline.terms.declaration.data_contract import DataContract

KIND = ParquetSpec.kind

_PLACE = f"source.{KIND}"

read = read_files


@exact_data(travels=False)
class _Pinned:
    """The private part of a pin: the files, and which others would have been pinned, were they there."""

    files: PinnedFiles
    hive: tuple[str, ...]
    wanted: tuple[Needed, ...]
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
    """
    address, hive = spec.source_address, _hive(spec)
    wanted = needed(spec, hive, window) if hive else ()
    is_contracted = contract is not None
    listed: list[tuple[PinnedFile, ColumnsOf]] = list(
        listed_files(address, hive, wanted, is_contracted=is_contracted)
    )
    if contract is not None:
        listed = [(file, contracted(columns, spec, contract)) for file, columns in listed]
    files = pin_files(listed, spec_columns(spec), place=_PLACE, root=address if hive else None)
    return Pin(
        kind=KIND,
        public={"kind": KIND, "address": address},
        private=_Pinned(
            files=files,
            hive=tuple(hive),
            wanted=wanted,
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
    parts = file_schemas(pinned.files)
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
    return file_splits(KIND, pin.private.files)


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
    try:
        is_fit = fits([file.address for file in pinned.files.files], checksums, address, is_reached)
        check(pin)
    except StageFailedError:  # a file changed while it was hashed
        is_fit = False
    if not is_fit:
        raise mismatch(f"{_PLACE}: {address}")


def check(pin: Pin) -> None:
    """Check every file's size and version, as reading does before and after each piece.

    Raises
    ------
    StageFailedError
        Where a file is gone, or its size, time of modification or entity tag is not the pinned one.
    """
    check_files(pin.private.files)


def listed_files(
    address: str, hive: Mapping[str, HiveColumn], wanted: tuple[Needed, ...] = (), *, is_contracted: bool
) -> list[tuple[PinnedFile, FileColumns]]:
    """Return the files at an address, each with the columns that folders state; see `pin`.

    Raises
    ------
    UsageError
        As `pin`.
    """
    if hive:
        return _in_folders(address, hive, wanted, is_contracted=is_contracted)
    return [(file, AS_STORED) for file in _listed(address, may_be_empty=is_contracted)]


def _hive(spec: Spec) -> Mapping[str, HiveColumn]:
    return spec.source.hive if isinstance(spec.source, ParquetSpec) else {}


def _listed(address: str, *, may_be_empty: bool) -> list[PinnedFile]:
    if is_url(address):
        return list_objects(address, may_be_empty=may_be_empty)
    return [_pinned(path) for path in list_files(address, may_be_empty=may_be_empty)]


def _in_folders(
    root: str, hive: Mapping[str, HiveColumn], wanted: tuple[Needed, ...], *, is_contracted: bool
) -> list[tuple[PinnedFile, FileColumns]]:
    refuse_delta_table(root)
    try:
        # Of a prefix nothing but its objects shows that it is there.
        if not (is_contracted and is_url(root)) and not is_there(root):
            message = f"{_PLACE}: no folder at {root}; with hive it names the one that holds the KEY=VALUE"
            raise UsageError(message)
        files_by_folder = folder_files(root, wanted)
        if not is_url(root):
            refuse_twice([file.address for file, _ in files_by_folder], root=root)
    except OSError:
        message = f"{_PLACE}: {root} cannot be listed: it is not there, or access to it or below it is denied"
        raise UsageError(message) from None
    return [(file, file_columns(hive, texts)) for file, texts in files_by_folder]


def _is_needed(root: str, wanted: tuple[Needed, ...], address: str) -> bool:
    """Tell whether a file would have been pinned, were it there."""
    texts = stated_by(root, address)
    return texts is not None and all(each.admits(texts, is_file=True) for each in wanted)


def _pinned(path: str) -> PinnedFile:
    try:
        return status(path)
    except OSError:
        message = f"{_PLACE}: {path} cannot be read as a Parquet file"
        raise UsageError(message) from None
