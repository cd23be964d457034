"""Publications: answers to requests, below ``publications/`` in a store, the manifest last.

In: files and what they rest on.
Out: a folder named by its request; of two writers the first manifest wins.
May import: releases and below.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "layout": ("MANIFEST", "PUBLICATIONS", "RECEIPT", "publication_of", "read_path"),
    "manifest": ("compose_publication",),
    "manifest_model": ("LONGEST_DIAGNOSTIC", "MOST_FILES", "PublishedEntry", "RestsOn"),
    "presence": ("check_is_there", "holds_publications", "holds_store"),
    "publication": ("Publication", "PublishedFile"),
    "publication_store": ("PublicationStore", "locate_publication", "open_publication"),
    "receipts": ("put_receipt", "with_receipts"),
}
"""What other rooms may import, by module; empty: the module as a whole."""
