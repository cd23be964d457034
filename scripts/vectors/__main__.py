"""Write the test vectors of the format: ``python -m scripts.vectors --write``.

They are kept in ``tests/vectors/``. Rows, totals and noise are the same wherever this runs; a data file's
bytes also follow the version of pyarrow, and a manifest names the versions that wrote it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from scripts.vectors.conflicts import FILES, conflicts_document
from scripts.vectors.expected import expected_document
from scripts.vectors.hostile import write_hostile
from scripts.vectors.joint import histograms_document, trees_document
from scripts.vectors.releases import known_document, make_all, vectors_signer, written
from scripts.vectors.rows import write_rows
from scripts.vectors.specs import VALID
from suffice.storage.releases.release_store import open_release

VECTORS = Path(__file__).parent.parent.parent / "tests" / "vectors"


def main() -> int:
    """Write everything anew, but for the page and the keys."""
    if sys.argv[1:] != ["--write"]:
        sys.stderr.write("usage: python -m scripts.vectors --write\n")
        return 2
    for folder in ("valid", "hostile"):
        shutil.rmtree(VECTORS / folder, ignore_errors=True)
    write_rows(VECTORS / "rows.csv")
    index = []
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        made = make_all(VECTORS, scratch)
        for vector, release in made.items():
            directory = VECTORS / "valid" / vector
            release.write(directory / "release")
            opened = open_release(directory / "release")
            spec = VALID[vector]
            (directory / "known.json").write_bytes(written(known_document(release)))
            (directory / "expected.json").write_bytes(written(expected_document(opened, spec.asked)))
            if vector in FILES:
                (VECTORS / FILES[vector]).write_bytes(written(conflicts_document(opened, vector)))
            index.append({"name": vector, "about": spec.about, "signed": spec.signed})
            sys.stdout.write(f"{vector}\n")
        (VECTORS / "index.json").write_bytes(written({"valid": index}))
        write_hostile(VECTORS, made, vectors_signer(VECTORS, scratch))
    (VECTORS / "trees.json").write_bytes(written(trees_document()))
    (VECTORS / "histograms.json").write_bytes(written(histograms_document()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
