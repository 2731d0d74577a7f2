"""The example `sqlalchemy_orders`: jobs in the transaction of a Session and of an AsyncSession."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest

from detent.testing.stores import plain_connection
from tests.deadlines import scaled
from tests.examples.example_server import EXAMPLES, Place

pytestmark = pytest.mark.timeout(scaled(120) + 60)


def test_as_the_readme_says(database_url: str, tmp_path: Path) -> None:
    """J2: two orders with their jobs; those of the unicorns are rolled back. The ORM commits with the job."""
    place = Place("sqlalchemy_orders", tmp_path, database_url)
    told = place.run(sys.executable, str(EXAMPLES / "sqlalchemy_orders" / "orders.py"))
    assert told.splitlines() == ["unicorn: sold out", "unicorn: sold out", "2 orders and 2 jobs"]
    assert "2 succeeded, 0 retried, 0 dead" in place.run("detent", "worker", "orders:app", "--drain")
    with closing(plain_connection(database_url)) as connection:
        assert connection.execute("SELECT item, state FROM orders").fetchall() == [("lamp", "confirmed")] * 2
    assert "healthy" in place.run("detent", "verify")
