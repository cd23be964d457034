"""The ledger in SQL: one implementation, a file per database.

In: connections.
Out: conditional updates inside of one transaction each.
May import: ledger and below. The only room that knows SQLAlchemy.
"""
