"""The supervisor as a process: it imports what it uses, and little else."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.deadlines import scaled

STARTS = """
import json, sys
from detent.store.open import open_store
import detent.worker.supervisor.__main__

open_store("postgresql://nobody@localhost/none")
print(json.dumps(sorted(sys.modules)))
"""
NOT_USED = {
    "hashlib",
    "sqlite3",
    "gzip",
    "cronsim",
    "click",
    "smtplib",
    "urllib.request",
} | {
    *("detent.app", "detent.cli", "detent.client", "detent.declare", "detent.store.lifecycle_sql", "detent.schedule"),
    *("detent.store.migrate", "detent.store.repair", "detent.store.sqlite", "detent.alerts.http_sinks"),
}


def test_it_imports_neither_the_application_nor_what_only_some_of_its_work_needs() -> None:
    """W1: a supervisor lives as long as its worker, so what it imports stays in memory."""
    said = subprocess.run([sys.executable, "-c", STARTS], capture_output=True, text=True, timeout=scaled(60))
    assert said.returncode == 0, said.stderr
    loaded = set(json.loads(said.stdout))
    assert {"psycopg", "detent.worker.supervisor.process"} <= loaded
    assert loaded & NOT_USED == set()
