"""The schemas of all that commands print with ``--json``, by command; a test holds them against the commands.

``error`` is what any of them prints in place of its document where it fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.schemas import of_answers, of_ledgers, of_models, of_operations, of_publications

if TYPE_CHECKING:
    from scripts.schemas.shapes import Schema

ERROR = "error"
PRINTED: dict[str, Schema] = {
    ERROR: of_operations.FAILED,
    **of_operations.COMMANDS,
    **of_ledgers.COMMANDS,
    **of_answers.COMMANDS,
    **of_models.COMMANDS,
    **of_publications.COMMANDS,
}


def file_name(command: str) -> str:
    """Return the name of a command's schema."""
    return f"cli/{command.replace(' ', '-')}-1"
