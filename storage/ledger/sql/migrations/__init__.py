"""The ledger's schema, revision by revision."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Bring a database to a revision, the newest unless said, within `connection`'s transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    command.upgrade(config, revision)
