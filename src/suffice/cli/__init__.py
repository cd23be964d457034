"""The command line: parsing and printing only.

In: words, and environment variables.
Out: text or one JSON document, and an exit status.
May import: everything but trusted rooms; only `python -m suffice` imports it.
"""
