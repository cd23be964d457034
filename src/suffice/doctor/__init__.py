"""Whether an installation can do its work: versions, pins, ledger, stores, cluster, clock, entropy.

In: the profile, the environment, ledgers, stores and clusters; never a source's rows.
Out: findings of each check: what was looked at, what was found, what to do. Nothing is changed.
May import: monitoring and below.
"""
