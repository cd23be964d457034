"""The graph of tasks, and the cluster that runs it. A trusted room.

In: splits of a source.
Out: exact sums, in the calling process.
May import: contribution and below. The only room that knows Dask.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "cluster": ("Cluster", "open_cluster"),
    "push_down": ("pushed_sums", "require_threads"),
    "survey": ("surveyed_on",),
    "tree": ("exact_sums",),
}
"""What other rooms may import, by module; empty: the module as a whole."""
