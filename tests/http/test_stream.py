"""`GET /stream`: a client that reconnects misses nothing and gets nothing twice."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from detent.http.api import build_api
from detent.testing.stores import is_sqlite, plain_connection
from tests.contract.jobs.sample_jobs import claim, enqueue, event, finish
from tests.deadlines import scaled, until
from tests.http.conftest import World
from tests.http.event_streams import Follower, serve


@pytest.fixture
def url(world: World) -> Iterator[str]:
    with serve(build_api(world.app, actor="ana", tokens_required=False)) as url:
        yield url


def test_a_job_from_its_beginning_to_its_end(world: World, url: str) -> None:
    """Its events and every step of its attempts, in order; and after any of them again, the rest."""
    job = world.app.enqueue_named("add", '{"a": 1, "b": 2}')
    live = Follower(url, job=job.id)
    assert live.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert (live.headers["cache-control"], live.headers["x-accel-buffering"]) == ("no-store", "no")
    until(lambda: live.messages)
    world.harness.work()
    assert live.ended()
    steps = [(one.data.get("trigger") or one.data["message"]) for one in live.of("transition", "event")]
    assert steps == ["enqueue", "claim", "lease", "start", "adding", "commit", "finish", "finish"]
    assert live.messages[-1].event == "end"
    assert live.messages[-1].id is None
    numbered = [one for one in live.messages if one.id is not None]
    assert len(numbered) == len(steps)
    for place, one in enumerate(numbered):
        again = Follower(url, last=one.id, job=job.id)
        assert again.ended()
        assert [each for each in again.messages if each.id is not None] == numbered[place + 1 :]
    first = Follower(url, job=job.id, after=numbered[0].id)
    assert first.ended()
    assert first.messages[0] == numbered[1]


def test_a_job_that_is_retried_while_it_is_followed(world: World, url: str) -> None:
    job = world.app.enqueue_named("fail", "{}")
    world.harness.work()
    live = Follower(url, job=job.id, follow="true")
    until(lambda: [one for one in live.of("transition") if one.data["to_state"] == "quarantined"])
    world.app.jobs.get(job.id).retry(actor="ana", reason="mended")
    until(lambda: [one for one in live.of("transition") if one.data["trigger"] == "retry"])
    assert live.of("transition")[-1].data["actor"] == "ana"
    world.harness.work()
    until(lambda: live.of("transition")[-1].data["attempt"] == 2)
    whole = [row.trigger for row in world.app.jobs.get(job.id).history()]
    until(lambda: [one.data["trigger"] for one in live.of("transition") if one.data["entity"] == "job"] == whole)
    assert not live.has_ended


def test_everyone_sees_every_change(world: World, url: str) -> None:
    """O-03, O-01: also without an id to begin with; counts have no id."""
    crowd = [Follower(url) for _ in range(8)]
    until(lambda: all(one.of("counts") for one in crowd))
    world.app.queues.pause("mail", actor="ana", reason="down")
    world.app.queues.resume("mail", actor="ben")
    world.app.enqueue_named("add", '{"a": 1, "b": 2}')
    for one in crowd:
        until(lambda one=one: len(one.of("change")) == 2)  # type: ignore[misc]
        assert [each.data["actor"] for each in one.of("change")] == ["ana", "ben"]
        until(lambda one=one: one.of("counts")[-1].data["queues"] == {"default": {"pending": 1}})  # type: ignore[misc]
        assert all(each.id is None for each in one.of("counts"))
    after = crowd[0].of("change")[0].id
    again = Follower(url, last=after)
    until(lambda: again.of("change"))
    assert again.of("change") == crowd[0].of("change")[1:]
    assert not again.of("reset")


def test_a_client_that_was_away_before_the_first_line_misses_none(world: World, url: str) -> None:
    """The stream tells the place before the first line too."""
    away = Follower(url)
    until(lambda: away.last)
    world.app.queues.pause("mail", actor="ana")
    back = Follower(url, last=away.last)
    until(lambda: back.of("change"))
    assert back.of("change")[0].data["entity_id"] == "mail"


def test_ids_that_are_not_ours(world: World, url: str) -> None:
    """An id beyond the record is answered by a reset, and the stream goes on; one that is no id is refused."""
    job = world.app.enqueue_named("add", '{"a": 1, "b": 2}')
    for wrong in ("x", "1.2", "1~", "9" * 40):
        assert Follower(url, last=wrong).status == 422
        assert Follower(url, last=wrong, job=job.id).status == 422
    lost = Follower(url, last="900000")
    until(lambda: lost.of("reset"))
    world.app.queues.pause("mail", actor="ana")
    until(lambda: lost.of("change"))
    again = Follower(url, last="7.1.31.0", job=job.id, follow="true")
    until(lambda: again.of("transition"))
    assert [one.event for one in again.messages] == ["reset", "transition"]


def test_subjects_that_there_are_not(world: World, url: str) -> None:
    job = world.app.enqueue_named("add", '{"a": 1, "b": 2}')
    assert Follower(url, job="1000000").status == 404
    assert Follower(url, run="1000000").status == 404
    assert Follower(url, ops="run-1000000").status == 404
    assert Follower(url, job="x").status == 422
    assert Follower(url, job=job.id, run="1").status == 422
    assert Follower(url, wrong="1").status == 422


def test_a_batch_run(world: World, url: str) -> None:
    """Its state changes have ids; the run itself comes without one whenever it has changed."""
    run = world.app.runs.preview_named("reprice", '{"many": 3}')
    live = Follower(url, run=run.id, follow="true")
    world.harness.work()
    until(lambda: live.of("run") and live.of("run")[-1].data["state"] == "preview")
    run.refresh().apply()
    world.harness.work()
    until(lambda: live.of("transition") and live.of("transition")[-1].data["to_state"] == "applied")
    states = [one.data["to_state"] for one in live.of("transition")]
    assert states[-3:] == ["queued", "applying", "applied"]
    until(lambda: live.of("run")[-1].data["state"] == "applied")
    again = Follower(url, run=run.id, last=live.of("transition")[0].id)
    assert again.ended()
    assert again.of("transition") == live.of("transition")[1:]
    assert again.messages[-1].event == "end"


def test_an_ops_run(world: World, url: str) -> None:
    run = world.app.ops.queue("shop", "prod")
    live = Follower(url, ops=run.id)
    claimed = world.app.ops.claim("runner")
    assert claimed is not None
    world.app.ops.event(claimed, "building")
    world.app.ops.finish(claimed, "success")
    assert live.ended()
    log = world.app.store.job_events(int(run.id.removeprefix("run-")))
    assert [one.data["message"] for one in live.of("event")] == [line.message for line in log]
    assert live.messages[-1].event == "end"


def test_streams_have_a_limit(world: World) -> None:
    api = build_api(world.app, actor="ana", tokens_required=False)
    api.state.streams.streams_max = 2
    with serve(api) as url:
        first, second = Follower(url), Follower(url)
        third = Follower(url)
        assert (first.status, second.status, third.status) == (200, 200, 503)
        assert third.headers["retry-after"] == "5"


def test_streams_that_are_opened_together_have_the_same_limit(world: World) -> None:
    """All of them are let in before the first one is open."""
    api = build_api(world.app, actor="ana", tokens_required=False)
    api.state.streams.streams_max = 2
    with serve(api) as url, ExitStack() as stack:
        address = url.removeprefix("http://").partition("/")[0]
        host, _, port = address.partition(":")
        clients = [stack.enter_context(socket.create_connection((host, int(port)), scaled(30))) for _ in range(12)]
        for client in clients:
            client.sendall(f"GET /api/v1/stream HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
        answers = [client.recv(12).split()[1] for client in clients]
        assert sorted(answers) == [b"200"] * 2 + [b"503"] * 10


def test_a_token_of_a_tenant_follows_what_is_of_its_tenant(world: World) -> None:
    """Changes and jobs of others do not exist for it, and its counts are its own."""
    acme = world.app.tokens.create("acme", tenant="acme").token
    mine = world.app.enqueue_named("add", '{"a": 1, "b": 2}', tenant="acme")
    other = world.app.enqueue_named("add", '{"a": 1, "b": 2}', tenant="other")
    run = world.app.runs.preview_named("reprice", '{"many": 1}', tenant="other")
    with serve(build_api(world.app)) as url:
        assert Follower(url).status == 401
        assert Follower(url, token="dtn_wrong", job=mine.id).status == 401
        assert [Follower(url, token=acme, job=one.id).status for one in (mine, other)] == [200, 404]
        assert Follower(url, token=acme, run=run.id).status == 404
        live = Follower(url, token=acme)
        until(lambda: live.of("counts"))
        assert live.of("counts")[-1].data == {"queues": {"default": {"pending": 1}}}
        world.app.jobs.get(other.id).cancel()
        world.app.queues.pause("mail")
        world.app.jobs.get(mine.id).cancel()
        until(lambda: live.of("change"))
        assert [one.data["entity_id"] for one in live.of("change")] == [str(mine.id)]


def test_streams_end_when_their_token_is_revoked(world: World) -> None:
    created = world.app.tokens.create("robot")
    job = world.app.enqueue_named("add", '{"a": 1, "b": 2}')
    with serve(build_api(world.app)) as url:
        streams = [Follower(url, token=created.token), Follower(url, token=created.token, job=job.id)]
        assert [one.status for one in streams] == [200, 200]
        world.app.tokens.revoke("robot")
        assert all(one.ended() for one in streams)
        assert [one.messages[-1].event for one in streams] == ["end", "end"]
        assert "revoked" in streams[0].messages[-1].data["reason"]
        assert Follower(url, last=streams[0].last, token=created.token).status == 401


def test_a_job_that_is_deleted_while_it_is_followed(world: World, url: str) -> None:
    job = world.app.enqueue_named("add", '{"a": 1, "b": 2}')
    world.harness.work()
    live = Follower(url, job=job.id, follow="true")
    until(lambda: live.of("transition"))
    world.app.store.job_drop([job.id], world.app.store.now() + timedelta(days=1), "retention")
    assert live.ended()
    assert live.messages[-1].data["reason"] == "it was deleted"


def test_a_client_that_reads_slowly_gets_everything(world: World, url: str) -> None:
    """The server keeps a few pages, waits while the client takes nothing, and reads what it has missed again."""
    store = world.app.store
    job_id = enqueue(store)
    (held,) = claim(store)
    with socket.socket() as slow:
        slow.settimeout(scaled(30))
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        slow.connect((urlsplit(url).hostname, urlsplit(url).port))
        slow.sendall(f"GET /api/v1/stream?job={job_id} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert slow.recv(100).startswith(b"HTTP/1.1 200")
        for n in range(40):
            lines = [event(held, 20_000 * "x", key=f"{n}.{line}") for line in range(5)]
            assert len(store.event_append(lines)) == 5
        finish(store, held)
        received = b""
        while b"event: end" not in received[-1000:]:
            received += slow.recv(1 << 20)
    seen = [int(number) for number in re.findall(rb'"seq":(\d+)', received)]
    assert seen == list(range(1, 201))


def test_a_row_that_cannot_be_read_stops_its_own_stream_only(world: World, url: str, store_url: str) -> None:
    """One bad row harms itself only: the streams behind it went silent with it."""
    bad, good = (world.app.enqueue_named("add", '{"a": 1, "b": 2}') for _ in range(2))
    followers = [Follower(url, job=job.id) for job in (bad, good)]
    until(lambda: all(one.messages for one in followers))
    table, now = ("detent_event", "1") if is_sqlite(store_url) else ("detent.event", "now()")
    with closing(plain_connection(store_url)) as connection:
        line = f"INSERT INTO {table} (job_id, seq, attempt, level, message, payload, at) VALUES"
        connection.execute(f"{line} ({bad.id}, 1, 1, 'info', 'damaged', '{{', {now})")
        connection.commit()
    world.app.jobs.get(good.id).cancel(actor="ana", reason="enough")
    assert followers[1].ended()
