"""The example `fastapi_shop`: an order and its job are one transaction, and a worker runs beside the web server."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from starlette.testclient import TestClient

from detent.testing.stores import plain_connection
from tests.deadlines import scaled
from tests.examples.example_server import EXAMPLES, Place

pytestmark = pytest.mark.timeout(scaled(120) + 60)
UVICORN = ("uvicorn", "web:web", "--port", "{port}", "--timeout-graceful-shutdown", "2")


def test_as_the_readme_says(database_url: str, tmp_path: Path) -> None:
    """J2: the order and its job are there, or neither; the console and the API are below the prefix."""
    place = Place("fastapi_shop", tmp_path, database_url)
    with place.server(*UVICORN, health="/detent/healthz") as http:
        placed = http.post("/orders", json={"item": "lamp"})
        assert placed.status_code == 201
        order, job = placed.json()["order"], placed.json()["job"]
        assert http.get(f"/jobs/{job}").json()["state"] == "pending"
        assert http.post("/orders", json={"item": "unicorn"}).status_code == 409
        assert http.post(f"/orders/{order}/reminder").status_code == 202
        place.run("detent", "worker", "orders:app", "--drain")
        assert http.get(f"/orders/{order}").json() == {"item": "lamp", "state": "confirmed"}
        assert http.get(f"/orders/{order + 1}").status_code == 404
        assert http.get(f"/jobs/{job}").json()["state"] == "succeeded"
        assert http.get("/jobs/999999").json()["title"] == "NotFound"

        assert http.get("/detent/api/v1/jobs").status_code == 401
        token = place.run("detent", "tokens", "create", "ana", "--role", "operator").split()
        bearer = {"Authorization": "Bearer " + next(word for word in token if word.startswith("dtn_"))}
        jobs = http.get("/detent/api/v1/jobs", headers=bearer).json()["items"]
        assert [one["task"] for one in jobs] == ["orders.remind", "orders.confirm"]
        assert '<base href="/detent/" />' in http.get("/detent/", headers={"Accept": "text/html"}).text
    assert "healthy" in place.run("detent", "verify")


@pytest.fixture
def web(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of the example, on a database of its own."""
    monkeypatch.setenv("DETENT_DATABASE_URL", database_url)
    monkeypatch.syspath_prepend(str(EXAMPLES / "fastapi_shop"))
    yield importlib.import_module("web")
    for name in ("web", "orders"):
        del sys.modules[name]


def rows(web: Any, table: str) -> int:
    with closing(plain_connection(web.app.settings.database_url)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_a_commit_that_fails_is_no_success(web: Any) -> None:
    """J2: FastAPI commits after the answer by default; the client would be told of an order that is lost."""
    with TestClient(web.web, raise_server_exceptions=False) as http:

        @sqlalchemy.event.listens_for(web.Session, "before_commit", once=True)
        def fail(_: Any) -> None:
            raise RuntimeError("the connection is gone")

        assert http.post("/orders", json={"item": "lamp"}).status_code == 500
        assert (rows(web, "orders"), web.app.jobs.list()) == (0, [])


def test_a_refused_job_takes_its_order_with_it(web: Any) -> None:
    """J3: another order with the same key is a conflict: 409, as Detent's own API answers, and no order."""
    with TestClient(web.web) as http:
        assert http.post("/orders", json={"item": "lamp", "key": "k"}).status_code == 201
        conflict = http.post("/orders", json={"item": "chair", "key": "k"})
        assert (conflict.status_code, conflict.json()["title"]) == (409, "KeyConflict")
        assert (rows(web, "orders"), len(web.app.jobs.list())) == (1, 1)
