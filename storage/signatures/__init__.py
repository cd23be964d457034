"""Canonical JSON, Ed25519 keys and signatures.

In: a document, a key.
Out: its canonical bytes, a signature, a check.
May import: objects.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "": ("canonical_json",),
    "keys": (
        "KeyReference",
        "PublicKey",
        "load_public_keys",
        "new_keys",
        "pinned_keys",
        "pinned_publication_keys",
    ),
    "signing": (
        "PUBLICATION",
        "SignatureStatus",
        "Signer",
        "check_signature",
        "is_signature_value",
        "signature_status",
        "signer_from_environment",
    ),
}
"""What other rooms may import, by module; empty: the module as a whole."""
