"""What a process of a worker imports before its first job: it pays for that at every start, and in memory."""

from __future__ import annotations

import subprocess
import sys

UNWANTED = ("detent.cli", "detent.testing", "smtplib", "urllib.request", "sqlalchemy")
OF_ONE_DATABASE = {
    "sqlite": ("detent.store.sqlite",),
    "postgresql": ("detent.store.postgres", "psycopg"),
}

CHILD = """
import sys
import detent.worker.child.__main__
from detent.app.detent import Detent
with Detent(sys.argv[1]) as app:
    app.store.now()
    print(*sys.modules)
"""


def imported(url: str) -> set[str]:
    """Return the modules of a child that has its application and has spoken to its database."""
    command = [sys.executable, "-W", "error", "-c", CHILD, url]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_a_child_imports_nothing_of_the_other_database(ready_url: str) -> None:
    """The boundary for databases of the user's imported every verb on SQLite into workers on PostgreSQL."""
    own = OF_ONE_DATABASE[ready_url.partition(":")[0]]
    others = [name for names in OF_ONE_DATABASE.values() if names != own for name in names]
    found = imported(ready_url)
    assert found.issuperset(own)
    assert {name for name in found if any(f"{name}.".startswith(f"{part}.") for part in (*others, *UNWANTED))} == set()
