"""`DetentBackend`, tried by the test runner of Django in the project of the example, on databases of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from detent.testing.stores import is_sqlite, plain_connection
from tests.deadlines import scaled
from tests.examples.example_server import EXAMPLES, Place

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.timeout(scaled(240) + 60)


def test_the_cases_pass(database_url: str, tmp_path: Path) -> None:
    """The runner of Django makes a database of its own and drops it, which fails if Detent still has a connection."""
    place = Place("django_shop", tmp_path, database_url)
    del place.environment["DETENT_DATABASE_URL"]
    place.environment["PYTHONPATH"] += f":{ROOT}"
    place.environment["SHOP_PLACE"] = str(tmp_path)
    if not is_sqlite(database_url):
        place.environment["SHOP_DATABASE"] = database_url
    manage = (sys.executable, str(EXAMPLES / "django_shop" / "manage.py"))
    told = place.run(*manage, "test", "--noinput", "shop", "tests.integrations.django.cases")
    assert "OK" in told
    assert not (tmp_path / "shop.sqlite3").exists(), "nothing was written to the database of the project"
    if not is_sqlite(database_url):
        with closing(plain_connection(database_url)) as connection:
            assert connection.execute("SELECT to_regnamespace('detent')").fetchone() == (None,)


@pytest.mark.parametrize(
    ("missing", "module", "told"),
    [
        ("django", "detent.integrations.django.backend", r"needs Django.*pip install 'detent\[django\]'"),
        ("django_tasks", "detent.integrations.django.tasks_api", r"django-tasks.*pip install 'detent\[django\]'"),
    ],
)
def test_a_package_that_is_missing_is_named(missing: str, module: str, told: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=scaled(60))
    assert done.returncode == 1
    *_, last = done.stderr.splitlines()
    assert last.startswith("ImportError: ")
    assert re.search(told, last)
