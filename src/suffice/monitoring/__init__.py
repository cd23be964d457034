"""What a monitor may know: releases, refusals, epsilon, overdue windows, charges in the spool.

In: ledgers, stores, specs and the profile; never a source.
Out: lines of a log, the standing of an installation, and a Prometheus textfile.
May import: releasing and below.
"""
