"""What a PostgreSQL server says about itself."""

from __future__ import annotations

from collections.abc import Mapping

from detent.model.database_facts import Facts
from detent.store.migrate import Applied, names, pending
from detent.store.postgres.create import differing_parts
from detent.store.postgres.driver.connection import Connection
from detent.store.postgres.schema import KNOWN

__all__ = ["facts"]

_ASK = """
SELECT name, setting FROM pg_settings
WHERE name IN ('server_version', 'synchronous_commit', 'fsync', 'full_page_writes') ORDER BY name
"""


def facts(connection: Connection, applied: Mapping[int, Applied]) -> Facts:
    """As a connection of Detent's sees it."""
    settings: dict[str, str] = dict(connection.execute(_ASK).fetchall())
    version = settings.pop("server_version")
    weak = [f"{name} = {value}" for name, value in settings.items() if value == "off"]
    return Facts(
        kind="PostgreSQL",
        version=version,
        version_caution=None,
        schema=max(applied, default=0),
        missing=names(pending(KNOWN, applied)),
        differs=differing_parts(connection, applied),
        durability=settings,
        durability_caution=f"what was acknowledged may be lost in a crash: {', '.join(weak)}" if weak else None,
    )
