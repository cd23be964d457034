"""Ed25519 keys and signatures.

In: a document, a key.
Out: a signature, a check.
May import: objects.
"""
