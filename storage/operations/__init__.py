"""What is done to a store and a ledger together: settle, recover, verify, disclose.

In: a ledger, a store.
Out: an end for every charge, and findings.
May import: releases and below.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "adoption": ("adopt_store",),
    "audits": ("FittingAudit", "encode_audit", "fitting_audit"),
    "describing": ("describe_release", "descriptions_of"),
    "disclosure": ("disclosure", "to_yaml"),
    "failures": ("clean_up", "give_back", "published_by_another", "spend"),
    "known_stores": ("ask", "find_for_release", "open_for_release"),
    "markers": ("may_have_drawn", "put_marker", "refuse_newer", "refuse_older_ledger"),
    "publishing": ("publish_patiently",),
    "reconciliation": ("reconcile",),
    "recovery": ("Action", "Report", "recover"),
    "rehearsals": ("RehearsalPlace", "compose_rehearsal", "rehearsed_charge"),
    "resting": ("RestingRelease", "resting_releases"),
    "settling": ("abandon_lost", "settle"),
    "spooling": ("spool_files", "spool_sizes"),
    "verify_ledger": ("compare_with_store",),
    "verify_publication": ("verify_publication",),
    "verify_release": ("verify_release",),
    "verify_store": ("verify_store",),
    "withdrawing": ("withdraw",),
    "witness": ("check_witness", "follow_witness", "make_witness", "move_witness"),
}
"""What other rooms may import, by module; empty: the module as a whole."""
