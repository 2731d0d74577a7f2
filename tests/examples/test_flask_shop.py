"""The example `flask_shop`: an order and its job are one transaction; worker and console run beside the web server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deadlines import scaled
from tests.examples.example_server import Place

pytestmark = pytest.mark.timeout(scaled(180) + 60)


def test_as_the_readme_says(database_url: str, tmp_path: Path) -> None:
    """J2, J3: an order whose job is refused is not there either."""
    place = Place("flask_shop", tmp_path, database_url)
    with place.server("flask", "--app", "shop", "run", "--port", "{port}", health="/orders/0") as http:
        placed = http.post("/orders", json={"item": "lamp", "key": "order-1"})
        assert placed.status_code == 201
        order, job = placed.json()["order"], placed.json()["job"]
        assert http.post("/orders", json={"item": "chair", "key": "order-1"}).status_code == 409
        assert http.get(f"/jobs/{job}").json()["state"] == "pending"
        assert http.get("/jobs/999999").status_code == 404
        assert "1 succeeded" in place.run("detent", "worker", "shop:jobs", "--drain")
        assert http.get(f"/orders/{order}").json() == {"item": "lamp", "state": "confirmed"}
        assert http.get(f"/orders/{order + 1}").status_code == 404
    with place.server("detent", "server", "shop:jobs", "--port", "{port}", health="/healthz") as console:
        assert '<base href="/" />' in console.get("/", headers={"Accept": "text/html"}).text
        assert [one["state"] for one in console.get("/api/v1/jobs").json()["items"]] == ["succeeded"]
