"""The supervisor as a process: it has in memory what it uses, and little else."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.deadlines import scaled

STARTS = """
import json, sys
from detent.store.open import open_store
from detent.worker.supervisor.__main__ import importing_little

with importing_little():
    open_store("postgresql://nobody@localhost/none")
print(json.dumps(sorted(sys.modules)))
import ssl, urllib.request
from importlib import metadata
assert ssl.create_default_context() and urllib.request.HTTPSHandler
assert metadata.version("psycopg") and "importlib.metadata" in sys.modules
"""
NOT_USED = {
    "ssl",
    "importlib.metadata",
    "email",
    "hashlib",
    "sqlite3",
    "gzip",
    "bz2",
    "lzma",
    "zipfile",
    "importlib.resources",
    "cronsim",
    "click",
    "smtplib",
    "urllib.request",
} | {
    *("detent.app", "detent.cli", "detent.client", "detent.declare", "detent.store.lifecycle_sql", "detent.schedule"),
    *("detent.store.migrate", "detent.store.repair", "detent.store.sqlite", "detent.alerts.posting"),
}


def test_it_has_little_in_memory_and_can_still_have_tls() -> None:
    """W1: neither the command line nor the application, nor what only some of its work needs; OpenSSL alone is 4 MB.
    A sink that wants TLS later gets it."""
    said = subprocess.run([sys.executable, "-c", STARTS], capture_output=True, text=True, timeout=scaled(60))
    assert said.returncode == 0, said.stderr
    loaded = set(json.loads(said.stdout))
    assert {"psycopg", "detent.worker.supervisor.process"} <= loaded
    assert loaded & NOT_USED == set()
