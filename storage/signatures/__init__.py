"""Canonical JSON, Ed25519 keys and signatures.

In: a document, a key.
Out: its canonical bytes, a signature, a check.
May import: objects.
"""
