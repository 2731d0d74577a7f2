"""The example `django_shop`: an order and its task are one transaction, on the connection of Django."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from detent.testing.stores import is_sqlite
from tests.deadlines import scaled
from tests.examples.example_server import EXAMPLES, Place

pytestmark = pytest.mark.timeout(scaled(240) + 60)
MANAGE = (sys.executable, str(EXAMPLES / "django_shop" / "manage.py"))
UVICORN = ("uvicorn", "project.asgi:application", "--port", "{port}", "--timeout-graceful-shutdown", "2")
HTML = {"Accept": "text/html"}


def test_as_the_readme_says(database_url: str, tmp_path: Path) -> None:
    """J2: `manage.py migrate` makes the tables of Detent too; the order and its task are there, or neither; the admin
    leads to the console."""
    place = Place("django_shop", tmp_path, database_url)
    del place.environment["DETENT_DATABASE_URL"]
    place.environment |= {"SHOP_PLACE": str(tmp_path), "DJANGO_SUPERUSER_PASSWORD": "lamp"}
    if not is_sqlite(database_url):
        place.environment["SHOP_DATABASE"] = database_url
    migrated = place.run(*MANAGE, "migrate")
    assert re.search(r"Applied \S+ of Detent", migrated)
    assert "of Detent" not in place.run(*MANAGE, "migrate")
    place.run(*MANAGE, "createsuperuser", "--noinput", "--username", "ana", "--email", "ana@shop.example")
    with place.server(*UVICORN, health="/detent/healthz") as http:
        placed = http.post("/orders", json={"item": "lamp"})
        assert placed.status_code == 201
        order, result = placed.json()["order"], placed.json()["result"]
        assert http.post("/orders", json={"item": "unicorn"}).status_code == 409
        assert http.get(f"/results/{result}").json()["status"] == "READY"
        ended = place.run(*MANAGE, "detent", "worker", "--drain")
        assert "2 succeeded, 0 retried, 0 dead" in ended, "the tasks of the order that was rolled back are not there"
        assert http.get(f"/orders/{order}").json() == {"item": "lamp", "state": "packed"}
        assert http.get(f"/orders/{order + 1}").status_code == 404
        value = f"order {order} is confirmed, attempt 1"
        assert http.get(f"/results/{result}").json() == {"status": "SUCCESSFUL", "attempts": 1, "value": value}

        assert '<base href="/detent/" />' in http.get("/detent/", headers=HTML).text
        assert http.get("/detent/api/v1/jobs").status_code == 401
        hidden = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', http.get("/admin/login/").text)
        assert hidden is not None
        login = {"username": "ana", "password": "lamp", "csrfmiddlewaretoken": hidden[1]}
        assert http.post("/admin/login/?next=/admin/", data=login).status_code == 302
        assert 'href="/admin/detent/console/"' in http.get("/admin/").text
        assert http.get("/admin/detent/console/").headers["location"] == "/detent/"
    assert "healthy" in place.run(*MANAGE, "detent", "verify")
    assert "there is no job 999999" in place.run(*MANAGE, "detent", "jobs", "get", "999999", code=3)
    assert "jobs" in place.run(*MANAGE, "detent")
