"""What is done to a store and a ledger together: settle, recover, verify, disclose.

In: a ledger, a store.
Out: an end for every charge, and findings.
May import: releases and below.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "disclosure": ("disclosure", "to_yaml"),
    "publishing": ("Patience", "forget", "publish_patiently"),
    "recovery": ("recover",),
    "settling": ("abandon", "abandon_lost", "remove_orphans", "settle"),
    "spooling": ("spool_files", "spool_sizes"),
    "verify_ledger": ("compare_with_store", "refuse_older_ledger"),
    "verify_release": ("verify_release",),
}
"""What other rooms may import, by module; empty: the module as a whole."""
