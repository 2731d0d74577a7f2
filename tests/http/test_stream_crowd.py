"""Many subscribers, connections that drop at random, a restart of the server: nothing is lost or repeated (O-01, O-06).

Each client continues after the id of its last message, as a browser does. In the end it has exactly what is on record.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx2

from detent.http.api import build_api
from detent.model.follow_records import ChangePlace
from prove.http_kills.event_messages import Message, MessageReader
from tests.contract.jobs.sample_jobs import claim, enqueue, event, finish
from tests.deadlines import scaled, until
from tests.http.conftest import World
from tests.http.event_streams import serve

JOBS = 8
EVENTS = 60
MESSAGES_PER_CONNECTION_MAX = 60


class Crowd:
    """Clients on one event loop of a thread of their own."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._chance = random.Random(17)
        self.connections = 0

    async def follow(self, last: str | None, is_done: Callable[[list[Message]], bool], **query: str) -> list[Message]:
        """Return all messages with an id, over as many connections as it takes."""
        reader, got = MessageReader(last), list[Message]()
        async with httpx2.AsyncClient(timeout=scaled(60), trust_env=False) as client:
            while not is_done(got):
                try:
                    if await self._connect(client, reader, got, is_done, query):
                        break
                except httpx2.HTTPError:
                    await asyncio.sleep(0.1)
        return got

    async def _connect(
        self,
        client: httpx2.AsyncClient,
        reader: MessageReader,
        got: list[Message],
        is_done: Callable[[list[Message]], bool],
        query: dict[str, str],
    ) -> bool:
        """Read until the stream ends or the connection drops. Return whether the stream has said that it is the end."""
        reader.forget_part()
        headers = {} if reader.last is None else {"Last-Event-ID": reader.last}
        left = self._chance.randint(1, MESSAGES_PER_CONNECTION_MAX)
        async with client.stream("GET", self._url, params=query, headers=headers) as answer:
            self.connections += 1
            async for line in answer.aiter_lines():
                if (found := reader.read(line)) is None:
                    continue
                if found.event == "end":
                    return True
                if found.id is not None:
                    got.append(found)
                    left -= 1
                if left <= 0 or is_done(got):
                    return False
        return False


def test_nothing_is_lost_or_repeated(world: World, whole: bool) -> None:
    subscribers = 200 if whole else 12
    store = world.app.store
    jobs = [enqueue(store) for _ in range(JOBS)]
    held = claim(store)
    begin = store.record_feed().next
    written = threading.Event()

    def write(first: int, last: int) -> None:
        for n in range(first, last):
            store.event_append([event(one, f"line {n}") for one in held])
            store.queue_pause("mail", f"actor {n}")
            store.queue_resume("mail", f"actor {n}")

    def lines_on_record() -> list[int]:
        return [line.row.n for line in store.record_feed(begin, 1000).lines]

    def all_lines(got: list[Message]) -> bool:
        return written.is_set() and len(got) >= count[0]

    count = [0]
    with ExitStack() as first_server:
        url = first_server.enter_context(serve(build_api(world.app, tokens_required=False)))
        port = urlsplit(url).port
        assert port is not None
        crowd = Crowd(url)
        results: list[list[Message]] = []

        async def follow_all() -> None:
            of_jobs = [crowd.follow(None, lambda _: False, job=str(jobs[n % JOBS])) for n in range(subscribers // 2)]
            of_record = [crowd.follow(begin, all_lines) for _ in range(subscribers - subscribers // 2)]
            results.extend(await asyncio.gather(*of_jobs, *of_record))

        clients = threading.Thread(target=lambda: asyncio.run(follow_all()), daemon=True)
        clients.start()
        until(lambda: crowd.connections >= subscribers, "a connection of every client")
        write(0, EVENTS // 2)
    with serve(build_api(world.app, tokens_required=False), port):
        write(EVENTS // 2, EVENTS)
        for one in held:
            finish(store, one)
        count[0] = len(lines_on_record())
        written.set()
        clients.join(scaled(60))
        assert not clients.is_alive()
    assert crowd.connections > 2 * subscribers
    for n, got in enumerate(results[: subscribers // 2]):
        events = [one.data["seq"] for one in got if one.event == "event"]
        assert events == list(range(1, EVENTS + 1))
        steps = [(one.data["attempt"], one.data["rank"]) for one in got if one.event == "transition"]
        assert steps == [(row.attempt, row.rank) for row in store.job_changes(jobs[n % JOBS], ChangePlace())]
    record = lines_on_record()
    assert len(record) == 2 * EVENTS
    assert all([one.data["n"] for one in got] == record for got in results[subscribers // 2 :])
