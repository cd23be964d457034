"""Accounts of a measure: epsilon, as all were, or rho. One set of columns counts either."""

from __future__ import annotations

from alembic import op

from suffice.storage.ledger.sql.migrations.rules_0002 import RENAMED, rules

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rename the columns of amounts, and give accounts their measure; no row is written."""
    for table, names in RENAMED.items():
        for before, after in names.items():
            op.execute(f"ALTER TABLE {table} RENAME COLUMN {before} TO {after}")
    op.execute(
        "ALTER TABLE accounts ADD COLUMN measure TEXT DEFAULT 'epsilon' NOT NULL "
        "CONSTRAINT measures CHECK (measure IN ('epsilon', 'rho'))"
    )
    for statement in rules(op.get_context().dialect.name):
        op.execute(statement)
