"""Bytes and transactions: objects, signatures, the ledger, releases, publications, and operations on them.

From the ground up: objects, signatures, ledger, releases, publications, operations. A room imports only rooms
below it, and the pipeline; no module lies beside them.
"""
