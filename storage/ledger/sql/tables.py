"""The ledger's tables as queries name them; constraints and triggers stand in the migrations.

Amounts are integers of the smallest amount of their account's measure, times are ISO 8601 text in UTC.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Integer, LargeBinary, MetaData, Table, Text

REVISION = "0002"
"""The Alembic revision that this version of the package reads and writes."""

UNPUBLISHED = "state <> 'published'"
"""Which charges the index `charges_to_settle` has: few, whatever the history."""

metadata = MetaData()

ledger = Table(
    "ledger",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("ledger_id", Text, nullable=False),
    Column("head_sequence", BigInteger, nullable=False),
    Column("head_hash", Text, nullable=False),
    Column("created_at", Text, nullable=False),
)

entries = Table(
    "entries",
    metadata,
    Column("sequence", BigInteger, primary_key=True),
    Column("previous_hash", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("time", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("hash", Text, nullable=False),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
)
"""One row: the last checkpoint; the hashes of all are in the entries."""

accounts = Table(
    "accounts",
    metadata,
    Column("dataset", Text, primary_key=True),
    Column("neighboring", Text, nullable=False),
    Column("unit", Text, nullable=False),
    Column("per_window", Text),
    Column("units_disjoint", Boolean, nullable=False),
    Column("sources", Text, nullable=False),
    Column("checksums", Text),
    Column("failed_readings", Integer, nullable=False),
    Column("max_windows", Integer),
    Column("stores", Text, nullable=False),
    Column("witness", Text),
    Column("contract", Text),
    Column("contract_sha256", Text),
    Column("audit_sha256", Text),
    Column("audit_plan_hash", Text),
    Column("granted", BigInteger, nullable=False),
    Column("spent", BigInteger, nullable=False),
    Column("reserved", BigInteger, nullable=False),
    Column("measure", Text, nullable=False),
)

windows = Table(
    "windows",
    metadata,
    Column("dataset", Text, primary_key=True),
    Column("window", Text, primary_key=True),
    Column("spent", BigInteger, nullable=False),
    Column("reserved", BigInteger, nullable=False),
)

names = Table(
    "names",
    metadata,
    Column("name", Text, primary_key=True),
    Column("dataset", Text, nullable=False),
)

stores = Table(
    "stores",
    metadata,
    Column("store_id", Text, primary_key=True),
    Column("uri", Text, nullable=False),
    Column("first_sequence", BigInteger, nullable=False),
    Column("last_marker", BigInteger, nullable=False),
    Column("retired", Boolean, nullable=False),
)

plans = Table(
    "plans",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("content", Text, nullable=False),
)
"""Canonical plans, each once, whatever the number of charges that name it."""

charges = Table(
    "charges",
    metadata,
    Column("charge_id", Text, primary_key=True),
    Column("release_id", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("window", Text, nullable=False),
    Column("amendment", Integer, nullable=False),
    Column("amends", Text),
    Column("amended_sha256", Text),
    Column("attempt", Integer, nullable=False),
    Column("charged", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("marked", Boolean, nullable=False),
    Column("drew", Boolean, nullable=False),
    Column("draw_returned", Boolean, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("holder", Text, nullable=False),
    Column("lease_expires", Text, nullable=False),
    Column("holder_process", Text, nullable=False),
    Column("spool_id", Text),
    Column("spool_host", Text),
    Column("plan_hash", Text, nullable=False),
    Column("store_id", Text, nullable=False),
    Column("store_uri", Text, nullable=False),
    Column("witness", Text),
    Column("reserved_sequence", BigInteger, nullable=False),
    Column("drawing_sequence", BigInteger),
    Column("drawing_hash", Text),
    Column("drawing_epoch", Integer),
    Column("manifest_sha256", Text),
    Column("created_at", Text, nullable=False),
)

staged_manifests = Table(
    "staged_manifests",
    metadata,
    Column("charge_id", Text, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
"""The bytes to publish, while a charge is ``staged``; a store has them afterwards."""

staged_files = Table(
    "staged_files",
    metadata,
    Column("charge_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
"""The data files of a charge while it is ``staged``, of a ledger on a server: any host publishes them."""
