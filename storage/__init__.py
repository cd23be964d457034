"""Bytes and transactions: the ledger, the release store and their formats."""
