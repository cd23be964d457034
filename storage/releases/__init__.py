"""The release store: formats, names and the order in which files appear.

In: noisy statistics and a manifest.
Out: files of a size that depends on no value; the manifest last.
May import: ledger and below.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "location": ("Location", "MANIFEST"),
    "manifest": ("compose_manifest", "is_tombstone", "require_manifest"),
    "manifest_model": ("Manifest",),
    "manifest_reader": ("parse_manifest",),
    "release_parquet": ("encode_statistic",),
    "release_store": ("ReleaseStore", "locate", "open_release", "open_store"),
}
"""What other rooms may import, by module; empty: the module as a whole."""
