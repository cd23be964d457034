"""Where tasks run: threads of this process, processes of this machine, or a cluster given by address.

In: an address.
Out: something that runs a graph of tasks.
May import: errors. It holds no data, so trusted rooms and consumers may both use it.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "certificates": ("certificates_in",),
    "connection": (
        "Cluster",
        "LOCAL",
        "MAY_SPILL",
        "Notice",
        "Progress",
        "THREADS",
        "Watched",
        "check_cluster",
        "check_workers",
        "open_cluster",
        "report_finished",
        "require_dask",
        "this_worker_may_spill",
    ),
    "stalls": ("LONGEST_STALL", "STALL_SECONDS"),
    "stream": ("stream",),
}
"""What other rooms may import, by module; empty: the module as a whole."""
