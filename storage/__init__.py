"""Bytes and transactions: objects, signatures, the ledger, the release store, and operations on both.

From the ground up: objects, signatures, ledger, releases, operations. A room imports only rooms below it, and
the pipeline; no module lies beside them.
"""
