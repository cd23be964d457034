"""Who may spend how much of whose privacy, and who did. The contract, and what holds for any database.

In: grants and charges.
Out: durable states of charges, and a hash chain of entries.
May import: signatures and below; `sql` has the databases.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "account": ("Account", "NamedAudit", "check_store", "counts_by_window", "overlapping"),
    "chain": ("Entry", "EntryKind", "Head", "PublicEntry", "canonical_json", "public_entry"),
    "charge": (
        "ALL",
        "Charge",
        "ChargeRequest",
        "ChargeState",
        "ChargeSummary",
        "LIVE",
        "SpoolName",
        "check_name",
        "label",
        "newest_published",
        "release_id",
    ),
    "export": ("Export", "export_lines", "public_fields", "read_export", "read_fields"),
    "guards": ("UNGUARDED", "chosen_witness"),
    "holder": ("is_held",),
    "ledger": ("LEASE", "Ledger"),
    "opening": ("check_ledger_url", "create_ledger", "open_ledger"),
    "person": ("person_view",),
    "reconciliation": ("LostCharge", "Reconciled"),
    "replay": ("Books", "Row", "replay", "sha256"),
    "rerun": ("Decision", "decide_rerun", "in_progress_error", "spent_error"),
    "stores": ("KnownStore",),
}
"""What other rooms may import, by module; empty: the module as a whole."""
