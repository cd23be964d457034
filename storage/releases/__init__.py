"""The release store: formats, names and the order in which files appear.

In: noisy statistics and a manifest.
Out: files of a size that depends on no value; the manifest last.
May import: ledger and below.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "citation": ("citation",),
    "descriptions": ("DESCRIPTIONS", "describe"),
    "layout": (
        "LARGEST_SEQUENCE",
        "MARKERS",
        "Place",
        "REHEARSALS",
        "is_rehearsed",
        "marker_key",
        "marker_sequence",
        "read_place",
    ),
    "location": ("Location", "MANIFEST", "is_path"),
    "manifest": (
        "DataFile",
        "checksum",
        "compose_manifest",
        "is_tombstone",
        "rehearsal_manifest",
        "require_manifest",
        "software_versions",
    ),
    "manifest_model": (
        "FORMAT_VERSION",
        "FileEntry",
        "Hex16",
        "Hex32",
        "Hex64",
        "Manifest",
        "SignatureEntry",
        "Version",
    ),
    "manifest_reader": ("LARGEST_MANIFEST", "parse_manifest"),
    "release_parquet": ("StatisticWriter", "encoded_size"),
    "release_store": (
        "ListedRelease",
        "ReleaseStore",
        "locate",
        "newer_edition",
        "open_release",
        "open_store",
    ),
    "spool": ("Spool", "find_spool", "open_spool", "spool_path"),
    "spool_entry": ("SpoolEntry", "write_all"),
    "store_identity": ("KEY", "StoreIdentity", "read_identity", "require_empty", "write_identity"),
    "thrift": ("ThriftReader",),
    "withdrawal": ("LARGEST_WITHDRAWAL", "WITHDRAWN", "compose_withdrawal", "parse_withdrawal"),
}
"""What other rooms may import, by module; empty: the module as a whole."""
