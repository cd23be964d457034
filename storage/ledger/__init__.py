"""Who may spend how much of whose privacy, and who did. The contract, and what holds for any database.

In: grants and charges.
Out: durable states of charges, and a hash chain of entries.
May import: signatures and below; `sql` has the databases.
"""
