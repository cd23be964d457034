"""What is done to a store and a ledger together: settle, recover, verify, disclose.

In: a ledger, a store.
Out: an end for every charge, and findings.
May import: publications and below.
"""
