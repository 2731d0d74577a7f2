"""The order of the rooms and the touch table hold, and the checker that says so can say no."""

from __future__ import annotations

from pathlib import Path

import pytest

import detent
from tests.house.rooms import violations

PACKAGE = Path(detent.__file__).parent


def test_the_house_is_in_order() -> None:
    assert violations(PACKAGE) == []


def plant(root: Path, files: dict[str, str]) -> Path:
    package = root / "detent"
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return package


@pytest.mark.parametrize(
    ("place", "line", "complaint"),
    [
        ("model/job.py", "import detent.store.contract", "model imports store, which is above it"),
        ("model/job.py", "from detent.app import Detent", "model imports app, which is above it"),
        ("model/job.py", "from ..store import contract", "model imports store, which is above it"),
        ("model/job.py", "from .. import worker", "model imports worker, which is above it"),
        ("errors.py", "def f():\n    from detent.model import ids", "errors imports model, which is above it"),
        ("views/job_explanation.py", "from detent.client import job", "views imports client, which is above it"),
        ("batch/run.py", "from detent.pipeline import run", "batch imports pipeline, which is beside it"),
        ("http/api.py", "import detent.testing", "http imports testing, which is beside it"),
        ("client/do.py", "from detent import Detent", "client goes out by the front door"),
        ("client/do.py", "import detent", "client goes out by the front door"),
        ("attic/box.py", "import json", "attic is not a room"),
        ("model/job.py", "import time", "touches time, chance and ids"),
        ("store/group_writer.py", "from time import monotonic", "touches time, chance and ids"),
        ("client/do.py", "from datetime import datetime as D\nD.now()", "touches time, chance and ids"),
        ("client/do.py", "import datetime\nx = datetime.date.today", "touches time, chance and ids"),
        ("worker/child/core.py", "import os\nos.urandom(8)", "touches time, chance and ids"),
        ("declare/task.py", "from uuid import uuid4", "touches time, chance and ids"),
        ("testing/plugin.py", "import random", "touches time, chance and ids"),
        ("client/do.py", "import sqlite3", "touches a database driver"),
        ("views/job_explanation.py", "def f():\n    import psycopg.rows", "touches a database driver"),
        ("app/facade.py", "from detent.store.sqlite import store", "touches a backend by name"),
        ("app/facade.py", "from detent.store import postgres", "touches a backend by name"),
        ("app/facade.py", "from detent.store.jobs.postgres_claim import job_claim", "touches a backend by name"),
        ("store/open.py", "import os\nos.environ['X']", "touches the environment"),
        ("client/do.py", "from os import getenv", "touches the environment"),
        ("model/job.py", "import threading", "touches threads and async"),
        ("client/do.py", "import asyncio", "touches threads and async"),
        ("worker/attempt/context.py", "import detent.worker.child.core", "imports worker/child, which is above it"),
        ("worker/supervisor/board.py", "from detent.worker.child import core", "imports worker/child, which is above"),
        ("worker/options.py", "import detent.worker.services.service", "imports worker/services, which is above it"),
        ("worker/child/core.py", "import threading", "core is pure"),
        ("worker/supervisor/child_health.py", "import detent.store.contract", "child_health is pure"),
        ("store/sqlite/verbs.py", "from concurrent.futures import Future", "touches threads and async"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, place: str, line: str, complaint: str) -> None:
    found = violations(plant(tmp_path, {place: line}))
    assert found
    assert all(entry.startswith(f"{place}:") for entry in found)
    assert any(complaint in entry for entry in found)


def test_what_is_allowed_is_not_complained_of(tmp_path: Path) -> None:
    package = plant(
        tmp_path,
        {
            "__init__.py": "from detent.app import Detent",
            "model/clock.py": "import time\nfrom datetime import UTC, datetime\ndatetime.now(UTC)",
            "model/ids.py": "import secrets",
            "model/job.py": "import datetime, uuid\nuuid.UUID\nfrom detent import errors\nfrom . import clock",
            "store/group_writer.py": "import threading\nfrom concurrent.futures import Future",
            "store/sqlite/driver.py": "import sqlite3, threading",
            "store/postgres/wake.py": "import threading\nimport psycopg",
            "declare/settings.py": "import os\nos.environ.get('DETENT_DATABASE_URL')",
            "client/aio_client.py": "import asyncio\nfrom detent.store import contract",
            "worker/child/process.py": "import asyncio\nimport os\nfrom detent.worker.supervisor import board",
            "testing/plugin.py": "import threading\nfrom detent.worker import child\nimport detent.store.sqlite.driver",
            "cli/main.py": "from detent.testing import postgres\nimport os\nos.environ",
        },
    )
    assert violations(package) == []
