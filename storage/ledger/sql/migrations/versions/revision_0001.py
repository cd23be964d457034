"""The first schema: accounts, windows, names, plans, charges, staged manifests and the chain of entries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from suffice.storage.ledger.sql.migrations.rules_0001 import rules

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "ledger",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("ledger_id", sa.Text, nullable=False),
        sa.Column("head_sequence", sa.BigInteger, nullable=False),
        sa.Column("head_hash", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.CheckConstraint("id = 1", name="one_ledger"),
    )
    op.create_table(
        "entries",
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("previous_hash", sa.Text, nullable=False, unique=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("time", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False, unique=True),
    )
    op.create_table(
        "checkpoints",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("sequence", sa.BigInteger, sa.ForeignKey("entries.sequence"), nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.CheckConstraint("id = 1", name="one_checkpoint"),
    )
    op.create_table(
        "accounts",
        sa.Column("dataset", sa.Text, primary_key=True),
        sa.Column("neighboring", sa.Text, nullable=False),
        sa.Column("unit", sa.Text, nullable=False),
        sa.Column("per_window", sa.Text),
        sa.Column("units_disjoint", sa.Boolean, nullable=False),
        sa.Column("sources", sa.Text, nullable=False),
        sa.Column("checksums", sa.Text),
        sa.Column("failed_readings", sa.Integer, nullable=False),
        sa.Column("max_windows", sa.Integer),
        sa.Column("stores", sa.Text, nullable=False),
        sa.Column("witness", sa.Text),
        sa.Column("contract", sa.Text),
        sa.Column("contract_sha256", sa.Text),
        sa.Column("audit_sha256", sa.Text),
        sa.Column("audit_plan_hash", sa.Text),
        sa.Column("micro_granted", sa.BigInteger, nullable=False),
        sa.Column("micro_spent", sa.BigInteger, nullable=False),
        sa.Column("micro_reserved", sa.BigInteger, nullable=False),
        sa.CheckConstraint("micro_granted > 0 AND micro_spent >= 0 AND micro_reserved >= 0", name="signs"),
        sa.CheckConstraint("micro_spent + micro_reserved <= micro_granted", name="never_overspent"),
        sa.CheckConstraint("(contract IS NULL) = (contract_sha256 IS NULL)", name="contract_and_hash"),
        sa.CheckConstraint("(audit_sha256 IS NULL) = (audit_plan_hash IS NULL)", name="audit_and_plan"),
        sa.CheckConstraint("failed_readings >= 0", name="failed_readings_allowed"),
        sa.CheckConstraint("max_windows IS NULL OR max_windows >= 1", name="windows_assumed"),
        sa.CheckConstraint("neighboring IN ('add_or_remove_one', 'replace_one')", name="relation"),
    )
    op.create_table(
        "windows",
        sa.Column("dataset", sa.Text, sa.ForeignKey("accounts.dataset"), primary_key=True),
        sa.Column("window", sa.Text, primary_key=True),
        sa.Column("micro_spent", sa.BigInteger, nullable=False),
        sa.Column("micro_reserved", sa.BigInteger, nullable=False),
        sa.CheckConstraint("micro_spent >= 0 AND micro_reserved >= 0", name="window_signs"),
    )
    op.create_table(
        "names",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("dataset", sa.Text, sa.ForeignKey("accounts.dataset"), nullable=False),
        sa.UniqueConstraint("name", "dataset", name="one_dataset_a_name"),
    )
    op.create_table(
        "stores",
        sa.Column("store_id", sa.Text, primary_key=True),
        sa.Column("uri", sa.Text, nullable=False),
        sa.Column("first_sequence", sa.BigInteger, sa.ForeignKey("entries.sequence"), nullable=False),
        sa.Column("last_marker", sa.BigInteger, nullable=False),
        sa.Column("retired", sa.Boolean, nullable=False),
    )
    op.create_table(
        "plans",
        sa.Column("sha256", sa.Text, primary_key=True),
        sa.Column("content", sa.Text, nullable=False),
    )
    op.create_table(
        "charges",
        sa.Column("charge_id", sa.Text, primary_key=True),
        sa.Column("release_id", sa.Text, nullable=False, unique=True),
        sa.Column("dataset", sa.Text, sa.ForeignKey("accounts.dataset"), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("window", sa.Text, nullable=False),
        sa.Column("amendment", sa.Integer, nullable=False),
        sa.Column("amends", sa.Text),
        sa.Column("amended_sha256", sa.Text),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("micro_epsilon", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("marked", sa.Boolean, nullable=False),
        sa.Column("drew", sa.Boolean, nullable=False),
        sa.Column("draw_returned", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("lease_expires", sa.Text, nullable=False),
        sa.Column("holder_process", sa.Text, nullable=False),
        sa.Column("spool_id", sa.Text),
        sa.Column("spool_host", sa.Text),
        sa.Column("plan_hash", sa.Text, sa.ForeignKey("plans.sha256"), nullable=False),
        sa.Column("store_id", sa.Text, nullable=False),
        sa.Column("store_uri", sa.Text, nullable=False),
        sa.Column("witness", sa.Text),
        sa.Column("reserved_sequence", sa.BigInteger, sa.ForeignKey("entries.sequence"), nullable=False),
        sa.Column("drawing_sequence", sa.BigInteger, sa.ForeignKey("entries.sequence")),
        sa.Column("drawing_hash", sa.Text),
        sa.Column("drawing_epoch", sa.Integer),
        sa.Column("manifest_sha256", sa.Text),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["name", "dataset"], ["names.name", "names.dataset"]),
        sa.UniqueConstraint(
            "dataset", "name", "window", "amendment", "attempt", name="one_charge_an_attempt"
        ),
        sa.CheckConstraint(
            "(amendment = 0 AND amends IS NULL AND amended_sha256 IS NULL) "
            "OR (amendment > 0 AND amends IS NOT NULL AND amended_sha256 IS NOT NULL)",
            name="what_is_amended",
        ),
        sa.CheckConstraint("attempt >= 1 AND epoch >= 1 AND micro_epsilon > 0", name="charge_signs"),
        sa.CheckConstraint(
            "(state = 'reserved' AND NOT drew) OR (state IN ('drawing', 'staged', 'published') AND drew) "
            "OR state = 'abandoned'",
            name="states",
        ),
        sa.CheckConstraint("NOT draw_returned OR (state = 'abandoned' AND drew)", name="returned_draws"),
        sa.CheckConstraint(
            "state NOT IN ('staged', 'published') OR manifest_sha256 IS NOT NULL", name="staged_bytes"
        ),
    )
    op.create_table(
        "staged_manifests",
        sa.Column("charge_id", sa.Text, sa.ForeignKey("charges.charge_id"), primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "staged_files",
        sa.Column("charge_id", sa.Text, sa.ForeignKey("charges.charge_id"), primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_index(
        "one_live_charge_a_key",
        "charges",
        ["dataset", "name", "window", "amendment"],
        unique=True,
        sqlite_where=sa.text("state <> 'abandoned'"),
        postgresql_where=sa.text("state <> 'abandoned'"),
    )
    op.create_index(
        "unfinished_charges",
        "charges",
        ["store_id"],
        sqlite_where=sa.text("state IN ('reserved', 'drawing')"),
        postgresql_where=sa.text("state IN ('reserved', 'drawing')"),
    )
    # No query on the way of a release may cost more because of the charges before it.
    op.create_index("charges_of_an_account", "charges", ["dataset", "reserved_sequence"])
    op.create_index(
        "charges_to_settle",
        "charges",
        ["reserved_sequence"],
        sqlite_where=sa.text("state <> 'published'"),
        postgresql_where=sa.text("state <> 'published'"),
    )
    op.create_index("windows_by_taken", "windows", ["dataset", sa.text("(micro_spent + micro_reserved)")])
    for statement in rules(op.get_context().dialect.name):
        op.execute(statement)
