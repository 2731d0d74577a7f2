"""An application with its HTTP API, on each database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.testclient import TestClient

from detent import Change, Context, Detent, Retry
from detent.http.api import build_api
from detent.testing.harness import Harness


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
    app = Detent(store_url, actor="shop")

    @app.task(name="add")
    def add(ctx: Context, a: int, b: int) -> int:
        ctx.event("adding", a=a, b=b)
        return a + b

    @app.task(name="fail", retry=Retry(0))
    def fail(ctx: Context) -> None:
        raise RuntimeError("as it must")

    @app.batch(name="reprice")
    @dataclass
    class Reprice:
        many: int

        def targets(self) -> Iterator[str]:
            return (f"item-{number:03}" for number in range(self.many))

        def preview(self, ref: str) -> Change[int]:
            return Change(before=1, after=2)

        def apply(self, ctx: Context, ref: str, change: Change[int]) -> None: ...

        def revert(self, ctx: Context, ref: str, change: Change[int]) -> None: ...

    with closing(Harness(store_url)) as harness:
        harness.use(app)
        yield World(
            app, TestClient(build_api(app, actor="ana", tokens_required=False), base_url="http://localhost"), harness
        )
