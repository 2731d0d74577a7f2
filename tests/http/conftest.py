"""An application with its HTTP API, on each database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.testclient import TestClient

from detent import Detent
from detent.http.api import build_api
from detent.testing.harness import Harness
from tests.http.applications import declare_tasks


@dataclass(frozen=True)
class World:
    """The application, a client of its API, and a harness that runs its jobs."""

    app: Detent
    http: TestClient
    harness: Harness

    def get(self, path: str, /, **query: Any) -> Any:
        """Return the JSON answer to a GET, which must succeed."""
        answer = self.http.get(f"/api/v1/{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, /, **body: Any) -> Any:
        """Return the JSON answer to a POST, which must succeed."""
        answer = self.http.post(f"/api/v1/{path}", json=body)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()


@pytest.fixture
def world(store_url: str) -> Iterator[World]:
    app = declare_tasks(Detent(store_url, actor="shop"))
    with closing(Harness(store_url)) as harness:
        harness.use(app)
        yield World(
            app, TestClient(build_api(app, actor="ana", tokens_required=False), base_url="http://localhost"), harness
        )
