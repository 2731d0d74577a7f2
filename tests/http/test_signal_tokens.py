"""`/hooks/signals/{token}`: a link shows what it is for, and only a POST sends its signal."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from starlette.testclient import TestClient

from detent import WorkflowContext
from detent.errors import DatabaseUnreachable
from detent.http.api import build_api

from .conftest import World

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


class Links:
    """An application that requires tokens, a workflow that waits, and its link."""

    def __init__(self, world: World) -> None:
        self.app, self.harness = world.app, world.harness
        made: list[str] = []

        @self.app.workflow(name="expense <b>")
        def expense(ctx: WorkflowContext) -> Any:
            made.append(ctx.token("decision"))
            return ctx.wait_for("decision")

        self.job = self.app.enqueue(expense.call(), tenant="acme")
        self.harness.work()
        self.token = made[0]
        self.path = f"/hooks/signals/{self.token}"
        self.http = TestClient(build_api(self.app), base_url="http://localhost", raise_server_exceptions=False)

    @property
    def signals(self) -> list[str]:
        return [one.payload for one in self.app.store.signal_list(self.job.id)]


@pytest.fixture
def links(world: World) -> Links:
    return Links(world)


def test_opening_a_link_takes_nothing(links: Links) -> None:
    """Mail scanners open links, also with HEAD and more than once."""
    answer = links.http.get(links.path)
    assert answer.json() == {"signal": "decision", "job_id": str(links.job.id), "task": "expense <b>"}
    page = links.http.get(links.path, headers=BROWSER)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "expense &lt;b&gt;" in page.text
    assert "<b>" not in page.text
    assert '<form method="post">' in page.text
    assert "script" not in page.text
    assert page.headers["cache-control"] == "no-store"
    assert "form-action 'self'" in page.headers["content-security-policy"]
    links.http.head(links.path)
    assert links.signals == []


def test_the_payload_of_a_link_is_shown_before_it_is_sent(links: Links) -> None:
    """Two links, one token: approve and refuse. The first that is sent counts."""
    page = links.http.get(links.path, params={"payload": '{"ok": "<i>"}'}, headers=BROWSER)
    assert "{&quot;ok&quot;: &quot;&lt;i&gt;&quot;}" in page.text
    sent = links.http.post(links.path, data={"payload": '{"ok": true}'}, headers=BROWSER)
    assert sent.status_code == 200
    assert "The answer has arrived." in sent.text
    again = links.http.post(links.path, data={"payload": '{"ok": true}'}, headers=BROWSER)
    assert "It was sent before" in again.text
    other = links.http.post(links.path, data={"payload": "false"}, headers=BROWSER)
    assert other.status_code == 409
    assert "It was sent with another answer. The first answer counts." in other.text
    assert links.signals == ['{"ok":true}']


def test_a_link_with_a_payload_that_is_no_json_says_so_at_once(links: Links) -> None:
    """Not only when its button is pressed."""
    page = links.http.get(links.path, params={"payload": "yes"}, headers=BROWSER)
    assert page.status_code == 422
    assert "payload: found malformed JSON" in page.text
    assert "<form" not in page.text


def test_a_program_posts_json(links: Links) -> None:
    answer = links.http.post(links.path, json={"approved": True})
    assert (answer.status_code, answer.json()["created"]) == (200, True)
    assert links.http.post(links.path, json={"approved": True}).json()["created"] is False
    refused = links.http.post(links.path, json=False)
    assert (refused.status_code, refused.json()["title"]) == (409, "TokenUsed")
    links.harness.work()
    assert links.job.refresh().result == {"approved": True}
    assert [one.actor for one in links.app.store.signal_list(links.job.id)] == ["signal token"]
    # Repeated after the end, as by a client that has lost the answer.
    assert links.http.post(links.path, json={"approved": True}).json()["created"] is False
    assert links.http.get(links.path).status_code == 409


def test_no_body_is_null(links: Links) -> None:
    assert links.http.post(links.path).status_code == 200
    assert links.signals == ["null"]


@pytest.mark.parametrize(
    ("content", "kind", "status", "says"),
    [
        (b"{", "application/json", 422, "payload"),
        (b"\xff", "application/json", 422, "UTF-8"),
        (b"1" * 1_100_000, "application/json", 413, "more than 1048576 bytes"),
        (b"[" * 100_000, "application/json", 422, "payload"),
        (b"payload=" + b"%22" * 1_200_000, "application/x-www-form-urlencoded", 413, "bytes"),
        (b"payload=%22" + b"x" * 1_100_000 + b"%22", "application/x-www-form-urlencoded", 422, "payload"),
        # Not "an unexpected error", whose answer and log line name the path, and so the token.
        (b"a=1&" * 10 + b"payload=1", "application/x-www-form-urlencoded", 422, "more than 10 fields"),
        (b"1", "text/plain", 415, "text/plain"),
    ],
)
def test_a_bad_body_changes_nothing(links: Links, content: bytes, kind: str, status: int, says: str) -> None:
    answer = links.http.post(links.path, content=content, headers={"content-type": kind})
    assert answer.status_code == status, answer.text
    assert says in answer.json()["detail"]
    assert links.signals == []
    assert links.http.post(links.path, json=1).status_code == 200


def test_forged_tokens_are_refused_and_slowed_down(links: Links) -> None:
    """As failed logins; a valid token always gets through, since many people may share the address of a proxy."""
    codes = [links.http.post(f"{links.path}{n}", json=1).status_code for n in range(12)]
    assert codes[:9] == [401] * 9
    assert codes[-1] == 429
    answer = links.http.get(f"{links.path}x")
    assert (answer.status_code, answer.headers["retry-after"] != "") == (429, True)
    assert links.http.get(links.path).status_code == 200
    assert links.http.post(links.path, json=1).status_code == 200


def test_an_ended_or_deleted_workflow(links: Links) -> None:
    links.job.cancel()
    assert links.http.get(links.path).json()["title"] == "JobEnded"
    assert links.http.post(links.path, json=1).json()["title"] == "JobEnded"
    page = links.http.get(links.path, headers=BROWSER)
    assert "This question is closed" in page.text
    assert "app.workflows" not in page.text, "a person is told what a program should call"
    links.harness.clock.advance(86_400 * 400)
    links.app.store.job_prune(links.harness.clock.now(), None, 1000, "test")
    assert links.http.get(links.path).status_code == 404
    assert links.http.post(links.path, json=1).status_code == 404


def test_the_log_has_no_token(links: Links, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def away(*_: Any) -> Any:
        raise DatabaseUnreachable("shop.db", "it is away")

    monkeypatch.setattr(links.app.store, "signing_key", away)
    with caplog.at_level(logging.INFO, "detent"):
        answer = links.http.post(links.path, json=1)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    ours = [one.getMessage() for one in caplog.records if one.name.startswith("detent")]
    assert "it is away" in ours[0]
    assert not any(links.token in one for one in ours)


def test_over_the_api_the_tenant_of_the_caller_does_not_matter(links: Links) -> None:
    """The token is the right; the caller needs the role for changes."""
    bearer = links.app.tokens.create("globex", role="operator", tenant="globex").token
    viewer = links.app.tokens.create("eye", role="viewer").token
    body = {"token": links.token, "payload": 7}
    refused = links.http.post("/api/v1/workflows/redeem", json=body, headers={"authorization": f"Bearer {viewer}"})
    assert refused.status_code == 403
    answer = links.http.post("/api/v1/workflows/redeem", json=body, headers={"authorization": f"Bearer {bearer}"})
    assert answer.status_code == 200, answer.text
    assert links.signals == ["7"]
    assert links.app.store.signal_list(links.job.id)[0].actor == "globex"
