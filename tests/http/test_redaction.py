"""Declared secret fields: a canary in them is in no answer of any route, and the function gets it whole."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from detent import Context, Detent, Retry, WorkflowContext
from detent.cli.main import main
from detent.errors import InvalidSetting
from detent.http.api import build_api, list_verbs
from detent.testing.harness import Harness
from tests.http.event_streams import Follower, serve

CARD, IBAN, PIN, TOKEN = "canary-4111-1111", "canary-DE89-3704", 990417, "canary-token-77"
PAYLOAD = {"card": CARD, "customer": {"name": "Ana", "iban": IBAN}, "pins": [{"pin": PIN}, {"pin": 5}], "amount": 30}
CANARY = re.compile("canary|990417")


def declare(app: Detent, *, secret: bool = True) -> Detent:
    options: dict[str, Any] = {"secret": ("card", "customer.iban", "pins.pin", "result.token")} if secret else {}

    @app.task(name="pay", retry=Retry(0), **options)
    def pay(ctx: Context, card: str, customer: dict[str, Any], pins: list[Any], amount: int) -> dict[str, Any]:
        assert (card, customer["iban"], pins[0]["pin"]) == (CARD, IBAN, PIN)
        ctx.event(f"charging {card}", card=card, seen=[f"the iban {customer['iban']}"], amount=amount)
        ctx.progress(1, 2)
        if amount > 100:
            raise RuntimeError(f"the card {card} of {customer['iban']} with {pins[0]['pin']} was declined")
        return {"token": TOKEN, "note": f"charged {card}", "amount": amount}

    return app


@pytest.fixture
def harness(sqlite_store_url: str) -> Iterator[Harness]:
    with closing(Harness(sqlite_store_url)) as found:
        yield found


def _filled(app: Detent, harness: Harness) -> tuple[str, str]:
    paid = app.enqueue_named("pay", json.dumps(PAYLOAD), metadata={"for": CARD}, correlation_id="c")
    declined = app.enqueue_named("pay", json.dumps(PAYLOAD | {"amount": 200}))
    app.schedules.set("nightly", "0 3 * * *", app.call_named("pay", json.dumps(PAYLOAD)))
    harness.work()
    app.jobs.get(declined.id).retry(reason=f"try {CARD} again")
    harness.work()
    app.alerts.judge()
    assert (app.jobs.get(paid.id).state, app.jobs.get(declined.id).state) == ("succeeded", "quarantined")
    return str(paid.id), str(declined.id)


@pytest.mark.parametrize("knows_the_code", [True, False])
def test_no_route_answers_with_a_secret(harness: Harness, knows_the_code: bool) -> None:
    """S4: also of a server that does not know the code of the task: the fields are on record."""
    app = harness.use(declare(Detent(harness.url)))
    paid, declined = _filled(app, harness)
    server = app if knows_the_code else harness.use(Detent(harness.url))
    api = build_api(server, tokens_required=False)
    http = TestClient(api, base_url="http://localhost")

    async def ask() -> int:
        tried = 0
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(api), base_url="http://localhost") as client:
            for verb in list_verbs():
                for job_id in (paid, declined) if "{job_id}" in verb.path else (paid,):
                    path = verb.path.replace("{job_id}", job_id).replace("{name:path}", "nightly")
                    query = "?when=2030-01-01T00:00:00Z" if verb.name == "state_at" else ""
                    method = "POST" if verb.changes else "GET"
                    answer = await client.request(method, f"/api/v1{path}{query}", json={} if verb.changes else None)
                    assert not CANARY.search(answer.text), (path, answer.text)
                    tried += answer.status_code == 200
        return tried

    assert asyncio.run(ask()) > 50
    shown = http.get(f"/api/v1/jobs/{paid}").json()
    assert shown["payload"] == {
        "card": "[redacted]", "customer": {"name": "Ana", "iban": "[redacted]"},
        "pins": [{"pin": "[redacted]"}, {"pin": "[redacted]"}], "amount": 30,
    }  # fmt: skip
    assert shown["result"] == {"token": "[redacted]", "note": "charged [redacted]", "amount": 30}
    events = http.get(f"/api/v1/jobs/{paid}/events").json()["items"]
    assert events[0]["message"] == "charging [redacted]"
    assert events[0]["payload"] == {"card": "[redacted]", "seen": ["the iban [redacted]"], "amount": 30}


def test_streams_have_no_secrets(harness: Harness) -> None:
    app = harness.use(declare(Detent(harness.url)))
    paid, _ = _filled(app, harness)
    with serve(build_api(app, tokens_required=False)) as url:
        follower = Follower(url, job=paid)
        assert follower.ended()
    found = [str(one) for one in follower.of("event")]
    assert "charging [redacted]" in str(found)
    assert not CANARY.search(str(vars(follower)))


def test_events_for_outgoing_webhooks_have_no_secrets(harness: Harness) -> None:
    """The error of a failed job is part of the event, which the payload of the delivery shows too."""
    app = harness.use(declare(Detent(harness.url)))
    app.notify("erp", "https://erp.example/hook", on=["job.*"], secret="whsec_QUJDREVGR0hJSktMTU5PUFFS")
    job = app.enqueue_named("pay", json.dumps(PAYLOAD | {"amount": 200}), correlation_id=f"for {CARD}")
    harness.work()
    announcements = app.announcements
    assert announcements is not None
    announcements.announce_ends([(job.id, 1)])
    (delivery,) = app.jobs.list(task="detent.webhook")
    assert "was declined" in delivery.row.payload
    assert not CANARY.search(delivery.row.payload)


def test_what_is_not_declared_is_shown(harness: Harness) -> None:
    """The guard of the tests above: without the declaration the canary is there."""
    app = harness.use(declare(Detent(harness.url), secret=False))
    paid, _ = _filled(app, harness)
    http = TestClient(build_api(app, tokens_required=False), base_url="http://localhost")
    for path in ("", "/events", "/history"):
        assert CANARY.search(http.get(f"/api/v1/jobs/{paid}{path}").text) or path == "/history"


def test_the_command_line_shows_no_secret(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    """S4: though it does not know the code of the task."""
    paid, declined = _filled(harness.use(declare(Detent(harness.url))), harness)
    commands = [
        ("jobs", "list"), ("dead", "list"), ("dead", "report"), ("record", "search"), ("schedules", "list"),
        ("schedules", "get", "nightly"),
        *(("jobs", verb, job_id) for verb in ("get", "events", "history", "executions", "why", "wait")
          for job_id in (paid, declined)),
    ]  # fmt: skip
    for command in commands:
        for more in ((), ("--json",)):
            assert main([*command, *more, "--database", harness.url]) in (0, 1), command
            shown = capsys.readouterr()
            assert not CANARY.search(shown.out + shown.err), (command, shown.out)
            assert shown.out


def test_python_code_reads_jobs_whole(harness: Harness) -> None:
    app = harness.use(declare(Detent(harness.url)))
    paid, _ = _filled(app, harness)
    assert json.loads(app.jobs.get(paid).row.payload) == PAYLOAD


@pytest.mark.parametrize(
    ("secret", "complaint"),
    [
        ("card", "a tuple of paths"),
        (("card", ""), "a tuple of paths"),
        (("customer..iban",), "a tuple of paths"),
        (("crad",), "has no parameter 'crad'"),
    ],
)
def test_a_path_that_cannot_be_meant_is_refused(sqlite_url: str, secret: Any, complaint: str) -> None:
    """A typing error would show the secret."""
    with pytest.raises(InvalidSetting, match=complaint):

        @Detent(sqlite_url).task(secret=secret)
        def pay(ctx: Context, card: str, customer: dict[str, str]) -> None: ...


@pytest.mark.parametrize("how", ["continued", "forked"])
def test_secrets_of_other_arguments_of_a_workflow(harness: Harness, how: str) -> None:
    """S4: those with which it has continued, and those of the workflow whose steps a fork has copied: an operator who
    forked a workflow with a card of his own read the card of the original in its steps."""
    app = harness.app

    @app.workflow(name="order", secret=("card",))
    def order(ctx: WorkflowContext, card: str, again: bool = False) -> None:
        if again:
            ctx.continue_as_new(card=CARD)
        ctx.event(f"charging {card}")
        ctx.step("charge", lambda: f"charged {card}")
        ctx.wait_for("delivery")

    job = order.enqueue(card="4000" if how == "continued" else CARD, again=how == "continued")
    harness.work()
    http = TestClient(build_api(app, tokens_required=False), base_url="http://localhost")
    shown = str(job.id)
    if how == "forked":
        shown = http.post(f"/api/v1/workflows/{shown}/fork", json={"payload": {"card": "4000"}}).json()["id"]
    steps = http.get(f"/api/v1/workflows/{shown}/steps")
    assert [one["value"] for one in steps.json()["items"]] == ["charged [redacted]"]
    assert CANARY.search(http.get(f"/api/v1/jobs/{shown}/events").text) is None
    preview = http.get(f"/api/v1/workflows/{shown}/preview-undo")
    assert CANARY.search(preview.text) is None
