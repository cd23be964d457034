"""Read a spec file: JSON or YAML, by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.errors import SpecError
from suffice.pipeline.terms.declaration.spec_text import read_json, read_small_file

if TYPE_CHECKING:
    from suffice.pipeline.terms.declaration.spec_text import Document

_LARGEST_BYTES = 64 * 2**20


def read_file(path: str) -> Document:
    """Read a spec file: JSON where its name ends in ``.json``, else YAML.

    Raises
    ------
    SpecError
        Where it is no regular file or cannot be read, or its bytes are not UTF-8, too many, or not in the
        format.
    """
    try:
        data = read_small_file(path, _LARGEST_BYTES)
    except FileNotFoundError:
        rule = "the spec cannot be read: there is no such file"
        raise SpecError(path, rule, "name a YAML or JSON file") from None
    except (OSError, ValueError):  # a path may also hold what no file system takes
        raise SpecError(path, "the spec cannot be read", "name a YAML or JSON file") from None
    if data is None:
        raise SpecError(path, "the spec is larger than 64 MiB", "put long domains into files")
    try:
        decoded = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SpecError(path, "the spec is not UTF-8 text") from None
    if path.endswith(".json"):
        return read_json(decoded, path)
    from suffice.pipeline.terms.declaration.spec_yaml import read_yaml  # yaml is slow to import

    return read_yaml(decoded, path)
