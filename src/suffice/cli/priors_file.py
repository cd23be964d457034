"""Several named priors from a file: of the command line alone, as priors elsewhere are text."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

_LARGEST = 2**20
_MOST_PRIORS = 100


def read_priors(path: Path) -> dict[str, str]:
    """Read names and priors: ``flat: Beta(1, 1)`` a line in YAML, or the same in TOML or JSON.

    Raises
    ------
    UsageError
        Where the file cannot be read, or holds anything else than two named priors or more.
    """
    from suffice.pipeline.terms.declaration.document import (  # yaml is slow
        read_json,
        read_small_file,
        read_yaml,
    )

    place = f"--priors {path}"
    try:
        data = read_small_file(str(path), _LARGEST)
        text = None if data is None else data.decode("utf-8-sig")
    except (OSError, ValueError):
        message = f"{place}: the file cannot be read: name a YAML, TOML or JSON file in UTF-8"
        raise UsageError(message) from None
    if text is None:
        message = f"{place}: the file is larger than 1 MiB"
        raise UsageError(message)
    content: Any
    if path.suffix == ".toml":
        try:
            content = tomllib.loads(text)
        except (ValueError, RecursionError):
            message = f"{place}: this is not valid TOML"
            raise UsageError(message) from None
    else:
        read = read_json if path.suffix == ".json" else read_yaml
        content = read(text, str(path)).content
    if not isinstance(content, dict) or not all(isinstance(prior, str) for prior in content.values()):
        message = f"{place}: write a name and a prior on each line, as  flat: Beta(1, 1)"
        raise UsageError(message)
    if not 2 <= len(content) <= _MOST_PRIORS or not all(content):
        message = f"{place}: name 2 to {_MOST_PRIORS} priors, as  flat: Beta(1, 1)"
        raise UsageError(message)
    return {str(name): str(prior) for name, prior in content.items()}
