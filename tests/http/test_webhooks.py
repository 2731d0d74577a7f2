"""`POST /hooks/{name}`: signed deliveries become jobs, once; everything else is refused."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from detent import Call, OpsRun, WebhookDelivery
from detent.errors import DatabaseUnreachable, InvalidInput, InvalidSetting
from detent.http.api import build_api
from detent.ops.github_push import queue_push, read_push
from detent.webhooks.incoming import IncomingWebhook
from detent.webhooks.signatures import VERIFIERS

from .conftest import World

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PUSH = {"ref": "refs/heads/main", "after": "9" * 40, "repository": {"full_name": "acme/site"}}


class Hooks:
    """An application with webhooks, and a client that sends deliveries to them."""

    def __init__(self, world: World) -> None:
        self.app, self.harness = world.app, world.harness
        self.seen: list[WebhookDelivery] = []
        self.add = self.app.find_task("add")

    def declare(self, name: str, **options: Any) -> IncomingWebhook:
        @self.app.webhook(name, **{"secret": SECRET, **options})
        def take(delivery: WebhookDelivery) -> Call[Any]:
            self.seen.append(delivery)
            return self.add.call(1, 2)

        self.http = TestClient(build_api(self.app), base_url="http://localhost", raise_server_exceptions=False)
        return take

    def send(self, hook: IncomingWebhook, body: bytes, *, delivery_id: str = "d-1", **changed: Any) -> Any:
        headers = hook.signed(body, delivery_id, "push")
        for name, value in changed.items():
            headers.pop(name.replace("_", "-"), None)
            if value is not None:
                headers[name.replace("_", "-")] = value
        return self.http.post(hook.path, content=body, headers=headers)


@pytest.fixture
def hooks(world: World) -> Hooks:
    return Hooks(world)


IDS = {"stripe": "evt_1", "slack": "Ev1"}
BODY = b'{"id": "evt_1", "event_id": "Ev1", "type": "order.paid", "n": 7}'


@pytest.mark.parametrize("verify", VERIFIERS)
def test_a_delivery_becomes_a_job_once(hooks: Hooks, verify: str) -> None:
    """TW1, TW2, O3: the id of the delivery is the key."""
    hook = hooks.declare("shop", verify=verify)
    delivery_id = IDS.get(verify, "d-1")
    answer = hooks.send(hook, BODY)
    assert answer.status_code == 202, answer.text
    (job_id,) = answer.json()["jobs"]
    assert answer.json() == {"delivery_id": delivery_id, "jobs": [job_id], "runs": []}
    again = hooks.send(hook, BODY)
    assert (again.status_code, again.json()) == (200, answer.json())
    (delivery, _) = hooks.seen
    assert (delivery.webhook, delivery.id, delivery.data["n"], delivery.body) == ("shop", delivery_id, 7, BODY)
    assert delivery.event == ("order.paid" if verify in ("stripe", "slack", "standard") else "push")
    (job,) = hooks.app.jobs.list(key=f"webhook:shop:{delivery_id}")
    assert (str(job.id), job.row.correlation_id) == (job_id, delivery_id)
    assert len(hooks.app.jobs.list()) == 1


@pytest.mark.parametrize("verify", VERIFIERS)
def test_without_the_right_signature_nothing_happens(hooks: Hooks, verify: str) -> None:
    """TW1: 401 without a detail, and the function is not called."""
    hook = hooks.declare("shop", verify=verify)
    proof = hook.verifier.proof
    for wrong in (None, "", "x", "sha256=" + "0" * 64):
        changed: dict[str, Any] = {proof: wrong}
        answer = hooks.send(hook, BODY, **changed)
        assert answer.status_code == 401
        assert answer.json()["detail"] == "the signature is missing, wrong or too old"
    if verify != "gitlab":
        written_again = json.dumps(json.loads(BODY), separators=(",", ":")).encode()
        headers = hook.signed(BODY, "d-1", "push")
        assert hooks.http.post(hook.path, content=written_again, headers=headers).status_code == 401
    assert not hooks.seen
    assert not hooks.app.jobs.list()


@pytest.mark.parametrize("verify", ["stripe", "slack", "standard"])
def test_a_replay_finds_the_job_or_is_too_late(hooks: Hooks, verify: str) -> None:
    """S-09, TW2: inside the window the same job, outside of it 401."""
    hook = hooks.declare("shop", verify=verify)
    headers = hook.signed(BODY, "d-1")
    statuses = [hooks.http.post(hook.path, content=BODY, headers=headers).status_code]
    for seconds in (200, 90, 20):
        hooks.harness.clock.advance(seconds)
        statuses.append(hooks.http.post(hook.path, content=BODY, headers=headers).status_code)
    assert statuses == [202, 200, 200, 401]
    assert len(hooks.app.jobs.list()) == 1
    assert hooks.send(hook, BODY).status_code == 200, "the provider sends it again, with a new time"


def test_a_delivery_may_make_several_jobs_and_all_or_none(hooks: Hooks) -> None:
    """TW2: also if the function returns other calls the second time."""
    rounds = iter([[1, 2], [1, 2, 3], [9], []])

    @hooks.app.webhook("many", secret="s", verify="github")
    def take(delivery: WebhookDelivery) -> list[Call[Any]]:
        return [hooks.add.call(one, one) for one in next(rounds)]

    hooks.declare("other")
    first = hooks.send(take, BODY)
    assert (first.status_code, len(first.json()["jobs"])) == (202, 2)
    for _ in range(2):
        again = hooks.send(take, BODY)
        assert (again.status_code, again.json()["jobs"][0]) == (200, first.json()["jobs"][0])
    assert len(hooks.app.jobs.list()) == 2
    nothing = hooks.send(take, BODY, delivery_id="d-2")
    assert (nothing.status_code, nothing.json()["jobs"]) == (202, [])


def test_a_push_queues_an_ops_run_once(hooks: Hooks) -> None:
    """O3: seed 000."""

    @hooks.app.webhook("push", secret="s", verify="github", size_max=25 * 1024 * 1024)
    def deploy(delivery: WebhookDelivery) -> OpsRun | None:
        push = read_push(delivery.id, delivery.data)
        return None if push is None else queue_push(hooks.app.ops, push, env="staging")

    hooks.declare("other")
    body = json.dumps(PUSH).encode()
    first, again = hooks.send(deploy, body), hooks.send(deploy, body)
    assert (first.status_code, again.status_code) == (202, 200)
    (run,) = hooks.app.ops.list()
    assert first.json()["runs"] == again.json()["runs"] == [run.id]
    assert hooks.send(deploy, b"[]", delivery_id="d-2").status_code == 400


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b'{"a": NaN}', b'{"a": "\\ud800"}', b"[" * 5000, b'{"n": "\\u0000"}']
)
def test_a_signed_body_that_is_no_json_is_refused(hooks: Hooks, body: bytes) -> None:
    """TW3, S3"""
    hook = hooks.declare("shop", verify="github")
    assert hooks.send(hook, body).status_code == 400
    assert not hooks.seen


def test_what_is_signed_and_cannot_be_a_delivery_is_refused(hooks: Hooks) -> None:
    hook = hooks.declare("shop", verify="github")
    assert hooks.send(hook, BODY, content_type="text/plain").status_code == 400
    assert hooks.send(hook, BODY, x_github_delivery=None).status_code == 400
    assert hooks.send(hook, BODY, x_github_delivery="x" * 201).status_code == 400
    assert hooks.http.get(hook.path).status_code == 401, "only deliveries need no token"
    for path in ("/hooks/none", "/hooks/", "/hooks/shop/more", "/hooks/%2e%2e/shop"):
        assert hooks.http.post(path, content=BODY, headers=hook.signed(BODY, "d-1")).status_code in (401, 404)
    assert not hooks.seen


def test_a_body_that_is_too_large_is_not_read(hooks: Hooks) -> None:
    """TW3: the server stops at the limit, with a length that is announced, and with one that is not."""
    hook = hooks.declare("shop", verify="github", size_max=1000)
    chunk, sent = b"x" * 100, 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(250_000):
            sent += len(chunk)
            yield chunk

    unsigned = {"x-hub-signature-256": "sha256=" + "0" * 64}
    assert hooks.http.post(hook.path, content=b"x" * 25_000_000, headers=unsigned).status_code == 413
    assert hooks.http.post(hook.path, content=b"x" * 25_000_000).status_code == 401
    assert hooks.http.post(hook.path, content=b"x" * 1000, headers=unsigned).status_code == 401
    exact = b'"' + b"x" * 998 + b'"'
    assert hooks.send(hook, exact).status_code == 202
    assert hooks.send(hook, exact + b" ", delivery_id="d-2").status_code == 413
    assert hooks.http.post(hook.path, content=endless(), headers=unsigned).status_code == 413


def test_a_webhook_without_a_secret_is_off(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """TW1: off, not open."""
    monkeypatch.delenv("NO_SUCH_SECRET", raising=False)
    on = hooks.declare("on", verify="gitlab")
    off = hooks.declare("off", verify="gitlab", secret="env:NO_SUCH_SECRET")
    for token in ("", "None", "env:NO_SUCH_SECRET", SECRET):
        headers = {**on.signed(BODY, "d-1"), "x-gitlab-token": token}
        assert hooks.http.post(off.path, content=BODY, headers=headers).status_code == 404
    assert [(row.name, row.is_on) for row in hooks.app.webhooks.list()] == [("off", False), ("on", True)]
    assert "NO_SUCH_SECRET is not set" in caplog.text
    assert not hooks.seen


@pytest.mark.parametrize("secret", ["", b"", [], ["good", ""]])
def test_an_empty_secret_is_refused_at_declaration(hooks: Hooks, secret: Any) -> None:
    """TW1"""
    with pytest.raises(InvalidSetting):
        hooks.declare("shop", secret=secret, verify="github")
    assert not hooks.app.incoming_webhooks


def test_what_cannot_be_declared(hooks: Hooks) -> None:
    hooks.declare("shop")
    with pytest.raises(InvalidInput, match="twice"):
        hooks.declare("shop")
    for name in ("", "a/b", "..", "a b", "ä", "x" * 101):
        with pytest.raises(InvalidInput):
            hooks.declare(name)
    with pytest.raises(InvalidSetting, match="github"):
        hooks.declare("other", verify="md5")
    with pytest.raises(InvalidSetting, match="size_max"):
        hooks.declare("other", size_max=26 * 1024 * 1024)
    with pytest.raises(InvalidInput, match="plain function"):

        @hooks.app.webhook("other", secret="whsec_c2VjcmV0")  # type: ignore[arg-type]
        async def take(delivery: WebhookDelivery) -> None: ...


def test_an_error_of_the_function_is_logged_and_not_told(hooks: Hooks, caplog: pytest.LogCaptureFixture) -> None:
    @hooks.app.webhook("bad", secret="s", verify="github")
    def take(delivery: WebhookDelivery) -> Any:
        if delivery.data["n"] == 7:
            return 7
        raise KeyError(SECRET)

    hooks.declare("other")
    for body in (BODY, b'{"n": 8}'):
        answer = hooks.send(take, body)
        assert answer.status_code == 500
        assert SECRET not in answer.text
    assert "Webhook bad failed" in caplog.text


def test_the_provider_is_asked_to_send_again_while_the_database_is_away(hooks: Hooks) -> None:
    """So that no delivery is lost: 503 with Retry-After, and then the delivery becomes a job."""
    is_away = True

    @hooks.app.webhook("away", secret="s", verify="github")
    def take(delivery: WebhookDelivery) -> Call[Any]:
        if is_away:
            raise DatabaseUnreachable("shop", "connection refused")
        return hooks.add.call(1, 2)

    hooks.declare("other")
    answer = hooks.send(take, BODY)
    assert (answer.status_code, "retry-after" in answer.headers) == (503, True)
    is_away = False
    assert hooks.send(take, BODY).status_code == 202


def test_slack_gets_its_challenge_back_if_it_signed_it(hooks: Hooks) -> None:
    hook = hooks.declare("slack", verify="slack")
    body = b'{"type": "url_verification", "challenge": "3eZbrw1aB", "token": "x"}'
    answer = hooks.send(hook, body)
    assert (answer.status_code, answer.json()) == (200, {"challenge": "3eZbrw1aB"})
    assert hooks.send(hook, body, x_slack_signature="v0=" + "0" * 64).status_code == 401
    assert not hooks.seen


def test_slack_sends_forms_too(hooks: Hooks) -> None:
    hook = hooks.declare("slack", verify="slack")
    form = b"command=%2Fdeploy&text=shop&trigger_id=13345224609.738474920.8088930838d88f008e0"
    for _ in range(2):
        answer = hooks.send(hook, form, content_type="application/x-www-form-urlencoded")
        assert (answer.status_code, answer.content) == (200, b"")
    assert (hooks.seen[0].event, hooks.seen[0].data["text"]) == ("/deploy", "shop")
    inner = b"payload=%7B%22type%22%3A%22block_actions%22%7D"
    assert hooks.send(hook, inner, content_type="application/x-www-form-urlencoded").status_code == 200
    assert hooks.seen[-1].data == {"type": "block_actions"}
    assert len(hooks.app.jobs.list()) == 2
    assert hooks.send(hook, b"payload=%7B", content_type="application/x-www-form-urlencoded").status_code == 400


def test_secrets_are_nowhere_to_be_seen(hooks: Hooks, caplog: pytest.LogCaptureFixture) -> None:
    """TW7"""
    caplog.set_level(logging.DEBUG)
    hook = hooks.declare("shop", verify="github")
    hooks.send(hook, BODY)
    hooks.send(hook, BODY, x_hub_signature_256="x")
    viewer = TestClient(build_api(hooks.app, tokens_required=False), base_url="http://localhost")
    listed = viewer.get("/api/v1/webhooks")
    shown = [caplog.text, repr(hook), repr(hooks.app.webhooks.list()), listed.text]
    shown += [repr(job.row) + repr(job.history()) for job in hooks.app.jobs.list()]
    assert not [text for text in shown if SECRET in text]
    assert listed.json()["items"][0]["name"] == "shop"


def test_a_function_is_tested_by_a_plain_call(hooks: Hooks) -> None:
    hook = hooks.declare("shop")
    assert isinstance(hook(WebhookDelivery("shop", "d-1", "push", {})), Call)


def test_a_webhook_needs_no_server(hooks: Hooks) -> None:
    """A server of your own passes headers and body on."""
    hook = hooks.declare("shop", verify="github")
    headers = {name.title(): value for name, value in hook.signed(BODY, "d-1").items()}
    first, again = hook.receive(headers, BODY), hook.receive(headers, BODY)
    assert (first.jobs, first.created, again.created) == (again.jobs, True, False)
    with pytest.raises(InvalidInput, match="bytes"):
        hook.receive(headers, b"x" * 2_000_000)
