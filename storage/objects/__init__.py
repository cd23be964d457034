"""Where bytes are kept: local directories and buckets, behind one create-only contract.

In: an address.
Out: an object store.
May import: errors alone.
"""
