"""Bytes and transactions: objects, signatures, the ledger, the release store, and operations on both.

In: plans, noisy statistics, addresses.
Out: durable charges, and releases that exist or do not.
May import: pipeline and errors. Rooms are listed in the order in which they may import each other.
"""
