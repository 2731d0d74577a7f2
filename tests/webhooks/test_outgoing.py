"""Events are delivered to targets: signed, once, with retries, and by jobs that hold no secret."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from detent import Change, Context, Detent, JobCancelled, Retry
from detent.errors import DatabaseBusy, InvalidInput, InvalidSetting
from detent.model.records import NewJob
from detent.testing.harness import Harness
from detent.webhooks.announcements import Announcements
from detent.webhooks.outgoing import DELIVERY_TASK
from prove.security.canary import Canary, canary
from tests.contract.jobs.sample_jobs import claim

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
EVERYTHING = ("job.*", "run.*", "alert.*")


class Shop:
    """An application whose events go to a receiver on loopback, which is on the allow-list."""

    def __init__(self, url: str, receiver: Canary) -> None:
        self.receiver = receiver
        self.app = Detent(url, webhook_allow=f"127.0.0.1:{receiver.port}")
        self.harness = Harness(url)
        self.harness.use(self.app)
        self.harness.delivers_webhooks = True

        @self.app.task(name="fail", retry=Retry(0))
        def fail(ctx: Context, key: str = "") -> None:
            raise RuntimeError("as it must")

        @self.app.task(name="fail softly", retry=Retry(0), dead_letter=False)
        def fail_softly(ctx: Context) -> None:
            raise RuntimeError("as it must")

        @self.app.batch(name="reprice")
        @dataclass
        class Reprice:
            many: int

            def targets(self) -> Iterator[str]:
                return (str(number) for number in range(self.many))

            def preview(self, ref: str) -> Change[int]:
                return Change(before=1, after=2)

            def apply(self, ctx: Context, ref: str, change: Change[int]) -> None: ...

        self.fail, self.fail_softly, self.batch = fail, fail_softly, Reprice

    def notify(self, name: str = "erp", path: str = "/hook", **options: Any) -> None:
        url = f"http://127.0.0.1:{self.receiver.port}{path}"
        self.app.notify(name, url, **{"secret": SECRET, "on": EVERYTHING, **options})

    @property
    def announcements(self) -> Announcements:
        found = self.app.announcements
        assert found is not None
        return found

    def work(self) -> None:
        """Do what a worker does: run jobs, announce events, deliver them."""
        self.harness.work()

    def deliveries(self) -> list[Any]:
        return sorted(self.app.jobs.list(task=DELIVERY_TASK), key=lambda job: job.id)

    def received(self) -> list[dict[str, Any]]:
        return [json.loads(request.partition(b"\r\n\r\n")[2]) for request in self.receiver.requests]


@pytest.fixture
def receiver() -> Iterator[Canary]:
    with canary() as found:
        yield found


@pytest.fixture
def shop(store_url: str, receiver: Canary) -> Iterator[Shop]:
    made = Shop(store_url, receiver)
    with closing(made.harness):
        yield made


def test_a_failed_job_is_delivered_once_and_signed(shop: Shop) -> None:
    """U3: the signature is that of Standard Webhooks, over id, time and body."""
    shop.notify()
    dead, failed = shop.fail.enqueue("7"), shop.fail_softly.enqueue()
    shop.work()
    shop.announcements.announce_ends([(dead.id, 1), (failed.id, 1)])
    shop.work()
    assert sorted((one["type"], one["data"]["job_id"]) for one in shop.received()) == sorted(
        [("job.quarantined", str(dead.id)), ("job.failed", str(failed.id))]
    )
    for request in shop.receiver.requests:
        head, _, body = request.partition(b"\r\n\r\n")
        headers = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:])
        raw = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
        signed = headers[b"webhook-id"] + b"." + headers[b"webhook-timestamp"] + b"." + body
        digest = hmac.new(base64.b64decode(SECRET.removeprefix("whsec_")), signed, hashlib.sha256).digest()
        assert raw[b"webhook-signature"] == b"v1," + base64.b64encode(digest)
    told = shop.received()[0]["data"]
    assert "as it must" in told["error"]
    assert "payload" not in told


def test_runs_and_alerts_are_delivered_in_order(shop: Shop) -> None:
    shop.notify(on=("run.*", "alert.*"))
    shop.work()
    run = shop.app.runs.preview(shop.batch(2))
    shop.work()
    shop.app.alerts.raise_("shop_closed", "no one answers")
    shop.work()
    told = [one.payload["event"] for one in shop.deliveries()]
    kinds = [one["type"] for one in told]
    assert kinds[-1] == "alert.firing"
    assert {one["data"]["run_id"] for one in told[:-1]} == {str(run.id)}
    assert [one["data"]["to"] for one in told[:-1]] == [one.to_state for one in run.history()]
    assert sorted(one["type"] for one in shop.received()) == sorted(kinds)


def test_a_new_target_is_not_told_of_the_past(shop: Shop) -> None:
    shop.app.alerts.raise_("shop_closed", "no one answers")
    shop.notify()
    shop.work()
    shop.app.alerts.resolve("shop_closed")
    shop.work()
    assert [one.payload["event"]["type"] for one in shop.deliveries()] == ["alert.resolved"]


def test_only_what_a_target_asks_for(shop: Shop) -> None:
    shop.notify("one", on=("job.quarantined",), tasks=[shop.fail])
    shop.notify("other", on=("job.failed",), tasks=["nothing of the kind"])
    shop.fail.enqueue()
    shop.fail_softly.enqueue()
    shop.work()
    assert [(one.payload["target"], one.payload["event"]["type"]) for one in shop.deliveries()] == [
        ("one", "job.quarantined")
    ]


def test_successes_are_told_if_they_are_asked_for(shop: Shop) -> None:
    """Each once, by name of the type and of the task only; other tasks cost nothing."""

    @shop.app.task(name="ship")
    def ship(ctx: Context, order: int) -> str:
        return "shipped"

    @shop.app.task(name="other")
    def other(ctx: Context) -> None: ...

    shop.notify("all")
    shop.notify("erp", on=("job.succeeded",), tasks=[ship])
    hooked: list[int] = []
    shop.app.on_failure(lambda job: hooked.append(job.id))
    shop.work()
    first, second = ship.enqueue(1), ship.enqueue(2)
    other.enqueue()
    shop.work()
    shop.announcements.announce_ends([(first.id, 1)])
    shop.work()
    told = [(one.payload["target"], one.payload["event"]["data"]) for one in shop.deliveries()]
    assert [(target, data["job_id"], data["state"]) for target, data in told] == [
        ("erp", str(first.id), "succeeded"),
        ("erp", str(second.id), "succeeded"),
    ]
    assert "shipped" not in str(told)
    assert (hooked, shop.app.store.failure_report_take(["ship", "other"], 10, 60)) == ([], [])


def test_a_job_that_is_declared_done_has_succeeded(shop: Shop) -> None:
    shop.notify(on=("job.succeeded",), tasks=[shop.fail])
    shop.work()
    job = shop.fail.enqueue()
    shop.work()
    job.force("succeeded", actor="ana", reason="done by hand")
    shop.work()
    (delivery,) = shop.deliveries()
    event = delivery.payload["event"]
    assert (event["type"], event["data"]["actor"], event["data"]["reason"]) == ("job.succeeded", "ana", "done by hand")


def test_cancelled_jobs_are_told_of(shop: Shop) -> None:
    """One that waited, one that was discarded, and one that ran: the request is no event, the end is."""

    @shop.app.task(name="run")
    def run(ctx: Context) -> None:
        shop.app.jobs.get(ctx.job_id).cancel(actor="ana", reason="too slow")
        raise JobCancelled

    shop.notify(on=("job.cancelled",))
    shop.work()
    waiting = shop.app.enqueue(run.call(), due_at=shop.harness.clock.now() + timedelta(days=1))
    waiting.cancel(actor="ben")
    dead, running = shop.fail.enqueue(), run.enqueue()
    shop.work()
    dead.discard(actor="ben", reason="not needed")
    shop.work()
    told = {one.payload["event"]["data"]["job_id"]: one.payload["event"]["data"] for one in shop.deliveries()}
    assert {job.id: told[str(job.id)]["state"] for job in (waiting, dead, running)} == dict.fromkeys(
        (waiting.id, dead.id, running.id), "cancelled"
    )
    assert len(shop.deliveries()) == 3
    assert (told[str(dead.id)]["trigger"], told[str(dead.id)]["reason"]) == ("discard", "not needed")
    assert told[str(running.id)]["attempt"] == 1


def test_a_job_is_told_of_only_when_it_has_ended(shop: Shop) -> None:
    """A request to cancel a running job is read at once; the job may end much later."""
    shop.notify(on=("job.cancelled",))
    job = shop.fail.enqueue()
    (held,) = claim(shop.app.store, tasks=["fail"])
    assert shop.announcements.announce_ends([(held.job_id, held.attempt)]) == [(job.id, 1)]
    assert shop.deliveries() == []


def test_successes_of_every_task_are_too_many(shop: Shop) -> None:
    with pytest.raises(InvalidInput, match=r"tasks: found none, for job.succeeded; allowed: the tasks whose successes"):
        shop.notify(on=("job.succeeded",))


def test_a_delivery_that_fails_is_no_event(shop: Shop, receiver: Canary) -> None:
    """Otherwise a receiver that is gone would make deliveries for ever."""
    shop.notify()
    shop.fail.enqueue()
    receiver._talk = lambda connection, request: connection.sendall(b"HTTP/1.1 410 Gone\r\n\r\n")
    shop.work()
    (delivery,) = shop.deliveries()
    assert delivery.state == "quarantined", "410: the receiver wants no more"
    shop.work()
    assert len(shop.deliveries()) == 1


def test_a_delivery_is_retried_under_the_same_id(shop: Shop, receiver: Canary) -> None:
    """TW6"""
    shop.notify()
    shop.fail.enqueue()
    talk = receiver._talk
    receiver._talk = lambda connection, request: connection.sendall(b"HTTP/1.1 500 Oops\r\n\r\nbroken\x1b[0m")
    shop.work()
    (delivery,) = shop.deliveries()
    assert delivery.state == "pending"
    assert "answered 500: broken" in str(delivery.executions()[0].error)
    assert "\x1b" not in str(delivery.executions()[0].error)
    receiver._talk = talk
    shop.harness.clock.advance(60)
    shop.work()
    assert delivery.refresh().state == "succeeded"
    assert delivery.refresh().result == {"status": 200, "answer": "hello"}
    ids = [request.lower().partition(b"webhook-id: ")[2].partition(b"\r\n")[0] for request in receiver.requests]
    assert len(ids) == 2
    assert ids[0] == ids[1]


def test_a_failure_between_place_and_deliveries_loses_and_repeats_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place moves in the transaction that enqueues the deliveries."""
    shop.notify()
    shop.work()
    shop.app.alerts.raise_("shop_closed", "no one answers")
    store = type(shop.app.store)
    together = store.together

    def die_after_the_move(self: Any, work: Any) -> Any:
        def half(verbs: Any) -> Any:
            class Dying:
                def __getattr__(self, name: str) -> Any:
                    return getattr(verbs, name)

                def job_enqueue(self, items: list[NewJob]) -> Any:
                    raise DatabaseBusy("shop", "the process died here")

            return work(Dying())

        return together(self, half)

    with monkeypatch.context() as patch:
        patch.setattr(store, "together", die_after_the_move)
        with pytest.raises(DatabaseBusy):
            shop.announcements.read_record()
    assert not shop.deliveries()
    for _ in range(2):
        shop.announcements.read_record()
    assert len(shop.deliveries()) == 1


def test_two_readers_enqueue_each_delivery_once(shop: Shop) -> None:
    shop.notify()
    shop.work()
    for number in range(5):
        shop.app.alerts.raise_(f"alert_{number}", "x")
    one, other = shop.announcements, shop.announcements
    for reader in (one, other, one, other):
        reader.read_record()
    assert len(shop.deliveries()) == 5
    assert len({job.payload["id"] for job in shop.deliveries()}) == 5


def test_the_allow_list_is_checked_at_each_delivery(shop: Shop, receiver: Canary) -> None:
    """TW4: not only when the target is declared."""
    with canary() as trap:
        shop.app.notify("evil", f"https://evil.example:{8443}/", secret=SECRET)
        target = shop.app._registry.targets["evil"]
        answers = iter([["127.0.0.1"], ["169.254.169.254"], ["::1"]])
        target.resolver = lambda host, port: next(answers)
        shop.fail.enqueue()
        for _ in range(3):
            shop.work()
            shop.harness.clock.advance(10_000)
        (delivery,) = shop.deliveries()
        errors = [str(one.error) for one in delivery.executions()]
        assert len(errors) == 3
        assert all("not in webhook_allow" in error for error in errors)
        assert (trap.connections, receiver.connections) == (0, 0)


def test_what_cannot_be_declared(shop: Shop) -> None:
    shop.notify()
    with pytest.raises(InvalidInput, match="twice"):
        shop.notify()
    for wrong in ("job.succeded", "jobs.*", "", "queue.paused"):
        with pytest.raises(InvalidInput, match=r"job\.failed"):
            shop.notify("other", on=(wrong,))
    with pytest.raises(InvalidInput):
        shop.notify("other", on=())
    for secret in ("", "plain text", "whsec_"):
        with pytest.raises(InvalidSetting):
            shop.notify("other", secret=secret)
    for url in ("http://127.0.0.1:1/", "https://10.0.0.1/", "https://localhost:22/", "file:///etc/passwd"):
        with pytest.raises(InvalidSetting):
            shop.app.notify("other", url, secret=SECRET)
    with pytest.raises(InvalidInput):
        shop.notify("other", timeout=1000)
    assert list(shop.app._registry.targets) == ["erp"]


def test_secrets_and_paths_are_nowhere(
    shop: Shop, receiver: Canary, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TW7, S4: not in payload, record, log or error."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("ERP_SECRET", SECRET)
    monkeypatch.setenv("ERP_URL", f"http://127.0.0.1:{receiver.port}/t0ken-in-the-path")
    shop.app.notify("erp", "env:ERP_URL", secret="env:ERP_SECRET")
    receiver._talk = lambda connection, request: connection.sendall(b"HTTP/1.1 500 x\r\n\r\n")
    shop.fail.enqueue()
    shop.work()
    (delivery,) = shop.deliveries()
    assert receiver.requests[0].startswith(b"POST /t0ken-in-the-path ")
    shown = [caplog.text, repr(delivery.row), repr(delivery.executions()), repr(delivery.history())]
    shown.append(repr(list(shop.app.record.search())))
    for text in shown:
        assert SECRET not in text
        assert SECRET.removeprefix("whsec_") not in text
        assert "t0ken" not in text


def test_without_its_secret_nothing_is_sent(shop: Shop, receiver: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_SECRET", raising=False)
    shop.notify(secret="env:NO_SUCH_SECRET")
    shop.fail.enqueue()
    shop.work()
    (delivery,) = shop.deliveries()
    assert delivery.state == "pending"
    assert "no secret" in str(delivery.executions()[0].error)
    assert receiver.connections == 0


def test_a_secret_in_rotation_signs_twice(shop: Shop, receiver: Canary) -> None:
    shop.notify(secret=[SECRET, "whsec_c2VjcmV0IG9mIGFub3RoZXI="])
    shop.fail.enqueue()
    shop.work()
    signatures = receiver.requests[0].partition(b"webhook-signature: ")[2].partition(b"\r\n")[0].split()
    assert [one[:3] for one in signatures] == [b"v1,", b"v1,"]
    assert signatures[0] != signatures[1]


def test_an_ops_run_that_ends_is_delivered_once(shop: Shop) -> None:
    """O4: whoever ends it: its worker, a person, or the reaper."""
    ops = shop.app.ops
    ops.queue("shop", "before the target")
    shop.notify(on=("run.success", "run.failed", "run.cancelled"))
    shop.work()
    done, stopped, stale = (ops.queue("shop", env) for env in ("staging", "production", "test"))
    claimed = ops.claim("w")
    assert claimed is not None
    ops.cancel(claimed)
    for expected in (done, stopped, stale):
        held = ops.claim("w")
        assert held is not None
        assert held.id == expected.id
        if expected is done:
            ops.event(held, "building")
            ops.finish(held, "success")
        elif expected is stopped:
            ops.cancel(held)
    shop.harness.clock.advance(400)
    shop.work()
    shop.work()
    told = [(one["data"]["run_id"], one["type"]) for one in shop.received()]
    assert sorted(told) == sorted(
        [
            (claimed.id, "run.cancelled"),
            (done.id, "run.success"),
            (stopped.id, "run.cancelled"),
            (stale.id, "run.cancelled"),
        ]
    )


def test_ends_of_ops_runs_are_listed_only_for_targets(shop: Shop) -> None:
    """Otherwise the list would grow for ever."""
    run = shop.app.ops.queue("shop", "staging")
    shop.app.ops.cancel(run)
    shop.notify(on=("job.failed",))
    shop.work()
    assert shop.app.store.failure_report_take(["ops.run"], 10, 1) == []


def test_an_event_that_is_too_large_holds_up_no_other(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, and the place moves on."""
    shop.notify(on=("alert.*",))
    shop.work()
    shop.app.alerts.raise_("large", "x", facts={"rows": "y" * 5000})
    shop.app.alerts.raise_("small", "x")
    object.__setattr__(shop.app.settings, "payload_max", 1000)
    shop.work()
    assert [one.payload["event"]["data"]["alert"] for one in shop.deliveries()] == ["small"]
    assert "is not delivered to erp" in caplog.text
