"""Ed25519 keys and signatures.

In: a document, a key.
Out: a signature, a check.
May import: objects.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "keys": (
        "KeyReference",
        "PublicKey",
        "load_public_keys",
        "new_keys",
        "pinned_keys",
        "pinned_publication_keys",
    ),
    "signing": (
        "AUDIT",
        "PART",
        "PUBLICATION",
        "SIGNING_KEY",
        "SignatureStatus",
        "Signer",
        "WITHDRAWAL",
        "check_signature",
        "is_signature_value",
        "publication_signer_from_environment",
        "signature_status",
        "signer_from_environment",
    ),
}
"""What other rooms may import, by module; empty: the module as a whole."""
