"""An entry for BibTeX, which a release's page offers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss

if TYPE_CHECKING:
    from collections.abc import Mapping

_SPECIAL = re.compile(r"([&%$#_{}])")


def bibtex(facts: Mapping[str, Any], url: str | None) -> str:
    """Return an entry for BibTeX; texts are escaped for it."""

    def text(value: object) -> str:
        return _SPECIAL.sub(r"\\\1", str(value))

    fields = {
        "title": f"{{{text(facts['title'] or facts['label'])}}}: a differentially private release of "
        f"{{{text(facts['dataset'])}}}",
        "year": facts["created"][:4],
        "month": str(int(facts["created"][5:7])),
        "note": (
            f"{PrivacyLoss.read(facts)}, release {facts['release_id']}, "
            f"manifest SHA-256 {facts['manifest_sha256']}"
        ),
        **({"howpublished": f"\\url{{{url}}}"} if url else {}),
    }
    lines = "".join(f"  {name:<12} = {{{value}}},\n" for name, value in fields.items())
    return f"@misc{{{re.sub('[^a-z0-9]', '-', facts['name'])}-{facts['release_id']},\n{lines}}}\n"
