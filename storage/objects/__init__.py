"""Where bytes are kept: local directories and buckets, behind one create-only contract.

In: an address.
Out: an object store.
May import: errors alone.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "address": ("Address", "read_address"),
    "mounts": ("network_file_system",),
    "object_store": ("ObjectStore",),
    "patience": ("ONCE", "Patience", "patiently"),
    "probe": ("check_create_only", "is_left_probe"),
    "reasons": ("of_system_error",),
}
"""What other rooms may import, by module; empty: the module as a whole."""
