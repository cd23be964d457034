"""Who may spend how much of whose privacy, and who did. The contract, and what holds for any database.

In: grants and charges.
Out: durable states of charges, and a hash chain of entries.
May import: signatures and below; `sql` has the databases.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "account": ("Account", "check_store", "counts_by_window", "overlapping"),
    "chain": ("Entry", "Head"),
    "charge": (
        "Charge",
        "ChargeRequest",
        "ChargeState",
        "ChargeSummary",
        "LIVE",
        "SpoolName",
        "label",
        "newest_published",
        "release_id",
    ),
    "export": ("Export", "export_lines", "read_export"),
    "holder": ("is_held",),
    "ledger": ("LEASE", "Ledger"),
    "opening": ("create_ledger", "open_ledger"),
    "replay": ("Books", "Row", "replay", "sha256"),
    "rerun": ("Decision", "decide_rerun", "in_progress_error", "spent_error"),
    "stores": ("KnownStore",),
}
"""What other rooms may import, by module; empty: the module as a whole."""
