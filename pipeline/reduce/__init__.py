"""The graph of tasks, and what travels between them. A trusted room.

In: splits of a source.
Out: exact sums, in the calling process.
May import: contribution and below; clusters are opened by the room `cluster`.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "links": ("open_cluster_for_sums",),
    "push_down": ("pushed_sums", "require_threads"),
    "survey": ("surveyed_on",),
    "tree": ("exact_sums",),
}
"""What other rooms may import, by module; empty: the module as a whole."""
