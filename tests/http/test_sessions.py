"""Sessions: who is logged in, and what is refused without a token."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from detent.http.api import build_api
from tests.http.conftest import World


def test_without_tokens_the_caller_is_the_actor_of_the_application(world: World) -> None:
    assert world.get("session") == {
        "name": "ana", "role": "admin", "tenant": None, "tokens_required": False, "expires_at": None
    }  # fmt: skip


@pytest.mark.parametrize("path", ["/api/v1/session", "/api/v1/jobs", "/api/v1/nothing", "/metrics", "/hooks/nothing"])
def test_a_request_without_a_token_is_refused_before_routing(world: World, path: str) -> None:
    """S4: whether a route has the path or not."""
    http = TestClient(build_api(world.app), base_url="http://localhost")
    answer = http.get(path)
    assert (answer.status_code, answer.json()["code"]) == (401, "HTTP401")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_request_that_a_proxy_forwarded_is_nobody_on_this_machine(world: World) -> None:
    """S4: a proxy in front of a server without tokens would let the whole network in."""
    answer = world.http.get("/api/v1/jobs", headers={"X-Forwarded-For": "192.0.2.1"})
    assert answer.status_code == 401
