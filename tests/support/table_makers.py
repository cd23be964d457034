"""How tests make Delta and Iceberg tables."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

CATALOG = "warehouse"
TABLE = "sales.orders"
URI = f"PYICEBERG_CATALOG__{CATALOG.upper()}__URI"


def write_delta(directory: Path, table: pa.Table) -> dict[str, Any]:
    """Write a table in two files."""
    root = directory / "delta"
    shutil.rmtree(root, ignore_errors=True)
    half = table.num_rows // 2
    for part in (table.slice(0, half), table.slice(half)):
        write_deltalake(root, part, mode="append")
    return {"delta": str(root)}


def delta_files(directory: Path) -> list[Path]:
    """Return the files of the newest version."""
    return sorted(type(directory)(path) for path in DeltaTable(directory / "delta").file_uris())


def catalog_of(directory: Path) -> Catalog:
    """Return the catalog in a directory, which the environment names from then on."""
    from pyiceberg.catalog import load_catalog

    os.environ[URI] = f"sqlite:///{directory}/catalog.db"
    return load_catalog(CATALOG, type="sql", uri=os.environ[URI], warehouse=f"file://{directory}/warehouse")


def write_iceberg(directory: Path, table: pa.Table) -> dict[str, Any]:
    """Write a table in two files."""
    catalog = catalog_of(directory)
    catalog.create_namespace_if_not_exists(TABLE.partition(".")[0])
    if catalog.table_exists(TABLE):
        catalog.drop_table(TABLE)
    made = catalog.create_table(TABLE, schema=table.schema)
    half = table.num_rows // 2
    for part in (table.slice(0, half), table.slice(half)):
        if part.num_rows:
            made.append(part)
    return {"iceberg": TABLE, "catalog": CATALOG}


def iceberg_table(directory: Path) -> Table:
    """Return the table that was written in a directory."""
    return catalog_of(directory).load_table(TABLE)


def iceberg_files(directory: Path) -> list[Path]:
    """Return the files of the newest snapshot."""
    tasks = iceberg_table(directory).scan().plan_files()
    return sorted(type(directory)(task.file.file_path.removeprefix("file://")) for task in tasks)


def change_file(file: Path) -> None:
    """Write a data file again with one row less, behind its table's back."""
    schema = pq.read_schema(file)
    pq.write_table(pq.read_table(file).slice(1).cast(schema), file)
