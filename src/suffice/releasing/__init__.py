"""From a spec to a published release: one run, one release, many windows, and a rehearsal of all of it.

The plain functions behind the command line and the flows: they order ledger, engine, mechanism and store.
"""
