"""The release store: formats, names and the order in which files appear.

In: noisy statistics and a manifest.
Out: files of a size that depends on no value; the manifest last.
May import: ledger and below.
"""
