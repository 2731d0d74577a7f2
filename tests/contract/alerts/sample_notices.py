"""The notices of alerts that are to be delivered."""

from __future__ import annotations

from detent.testing.stores import plain_connection, table

__all__ = ["notices"]


def notices(url: str) -> list[tuple[str, str, int, str]]:
    """What is to be told: policy, scope, episode, kind."""
    connection = plain_connection(url)
    try:
        columns = f"SELECT policy, scope, episode, kind FROM {table(url, 'alert_notice')} ORDER BY n"
        return [tuple(row) for row in connection.execute(columns).fetchall()]
    finally:
        connection.close()
