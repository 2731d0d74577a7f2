"""The pytest plugin: a fixture `detent` with a throw-away database, a clock to turn, `work()` and `crash()`.

    def test_welcome(detent):
        app = detent.use(shop.app)
        job = shop.welcome.enqueue(user_id=7)
        detent.work()
        assert job.refresh().result == "sent"

The database is a SQLite file in the test's own directory. To test on PostgreSQL, override the fixture
`detent_database_url` with the URL of an empty database.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from detent.testing.harness import Harness

__all__ = ["detent", "detent_database_url"]


@pytest.fixture
def detent_database_url(tmp_path: Path) -> str:
    """Where the fixture `detent` keeps its record: an empty database that the test may fill."""
    return f"sqlite:///{tmp_path / 'detent.db'}"


@pytest.fixture
def detent(detent_database_url: str) -> Iterator[Harness]:
    """A Detent application on a throw-away database."""
    harness = Harness(detent_database_url)
    yield harness
    harness.close()
