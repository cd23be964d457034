"""Alembic migrations of the ledger, revision 0001 on."""
