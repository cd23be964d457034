"""Whether an installation can do its work: versions, pins, ledger, stores, cluster, clock, entropy.

In: the profile, the environment, ledgers, stores and clusters; never a source's rows.
Out: one finding a check: what was looked at, what was found, what to do.
May import: monitoring and below.
"""

PUBLIC: dict[str, tuple[str, ...]] = {}
"""What other rooms may import, by module; empty: the module as a whole."""
