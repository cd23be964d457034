"""What a monitor may know: releases, refusals, epsilon, overdue windows, charges in the spool.

In: ledgers, stores, specs and the profile; never a source.
Out: one standing of an installation, as rows, JSON and a Prometheus textfile.
May import: releasing, gap_report and below.
"""

PUBLIC: dict[str, tuple[str, ...]] = {}
"""What other rooms may import, by module; empty: the module as a whole."""
