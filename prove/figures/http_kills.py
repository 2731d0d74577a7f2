"""P16: a server that is killed at random moments, while programs send jobs under keys and follow streams."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

from detent import Context, Detent
from detent.http.bodies import to_body
from detent.model.records import NewEvent
from detent.store.contract import Store
from detent.testing.postgres import start_cluster
from prove.coverage import fault_points
from prove.figure import Budget, Tally
from prove.http_kills.clients import Follower, Sender
from prove.http_kills.server import KilledServer
from prove.kills.scene import Kind

__all__ = ["check_jobs", "compare", "run"]

_SENDERS = 3
_LIFE_MAX = 0.5
"""Seconds from the first answer of a server to its death, at most. The mean is a third of it, so some die before."""
_END_SECONDS_MAX = 60.0
_POLL = 0.01
_NAMES: dict[Kind, str] = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


def run(budget: Budget, most: int | None = None) -> Tally:
    """Kill servers on both databases, each for half of the time, or so often in all."""
    tally = Tally()
    most = most or budget.count(commit=60, nightly=1_000, release=10_000)
    for number, kind in enumerate(_NAMES):
        until = budget.began_at + budget.seconds * (number + 1) / len(_NAMES)
        with _database(kind) as url:
            _on(kind, url, budget.seed, until, most // len(_NAMES), tally)
    return tally


@contextmanager
def _database(kind: Kind) -> Iterator[str]:
    """A database with the schema, and with the clock of the machine."""
    with ExitStack() as exits:
        if kind == "sqlite":
            url = f"sqlite:///{exits.enter_context(tempfile.TemporaryDirectory(prefix='detent-http-'))}/http.db"
        else:
            cluster = exits.enter_context(start_cluster())
            name = cluster.new_name("http")
            url = cluster.create_database(name)
            exits.callback(cluster.drop_database, name)
        with Detent(url) as app:
            app.migrate()
        yield url


def _on(kind: Kind, url: str, seed: int, until: float, most: int, tally: Tally) -> None:
    random = Random(f"{seed}/{kind}")
    with ExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="detent-http-app-")))
        app = exits.enter_context(Detent(url, actor="ana"))
        store = app.store
        subject = _subject(store, app)
        begin = store.record_feed().next
        server = exits.enter_context(closing(KilledServer(folder, url)))
        senders = [Sender(server.url, number, seed) for number in range(_SENDERS)]
        of_record, of_job = Follower(server.url, begin), Follower(server.url, "", job=str(subject))
        programs = [*senders, of_record, of_job]
        for program in programs:
            program.start()
        kills = events = 0
        while kills < most and time.monotonic() < until:
            server.start()
            _await_change(senders, until)
            pause = time.monotonic() + random.random() ** 2 * _LIFE_MAX
            while time.monotonic() < pause:
                events += 1
                event = NewEvent(job_id=subject, attempt=None, level="info", message=f"line {events}", payload=None)
                store.event_append([event])
                time.sleep(_POLL)
            server.kill()
            kills += 1
        server.start()
        tally.injected[f"SIGKILL of the server, {_NAMES[kind]}"] += kills
        tally.covered.update(dict.fromkeys(fault_points("SIGKILL"), kills))
        where = f"seed {seed}, {_NAMES[kind]}, {kills} kills"
        for sender in senders:
            _end(sender, where, tally)
        check_jobs(store, senders, where, tally)
        wanted = _lines_after(store, begin)
        _catch_up(lambda: sum(one.event == "change" for one in of_record.messages) >= len(wanted))
        _catch_up(lambda: sum(one.event == "event" for one in of_job.messages) >= events)
        for follower in (of_record, of_job):
            follower.wrong += [] if follower.connections else ["it was never connected"]
        said = sum((one.said for one in senders), Counter())
        server.close()
        for follower in (of_record, of_job):
            _end(follower, where, tally)
        compare(
            [one.data for one in of_record.messages if one.event == "change"], wanted, f"{where}, the record", tally
        )
        found = [one.data["message"] for one in of_job.messages if one.event == "event"]
        compare(found, [f"line {number}" for number in range(1, events + 1)], f"{where}, the events of a job", tally)
        tally.injected[f"answers that broke off, {_NAMES[kind]}"] += sum(
            count for name, count in said.items() if not name.isdigit() and name != "ConnectError"
        )
        tally.notes.append(
            f"{_NAMES[kind]}: {sum(len(one.jobs) for one in senders):,} jobs under keys, {len(wanted):,} lines of the "
            f"record and {events:,} events followed over {of_record.connections + of_job.connections} connections"
        )


def _subject(store: Store, app: Detent) -> int:
    """Return a job whose events are followed. It never ends."""

    @app.task(name="followed", queue="followed")
    def followed(ctx: Context) -> None: ...

    return followed.enqueue().id


def _await_change(senders: list[Sender], until: float) -> None:
    """Return when the server has answered, or when the time is up."""
    before = sum(one.said.total() - one.said["ConnectError"] for one in senders)
    while sum(one.said.total() - one.said["ConnectError"] for one in senders) == before and time.monotonic() < until:
        time.sleep(_POLL)


def _catch_up(is_there: Callable[[], bool]) -> None:
    """Wait for the end of a stream, and a little longer: what is shown twice may come after it."""
    until = time.monotonic() + _END_SECONDS_MAX
    while not is_there() and time.monotonic() < until:
        time.sleep(_POLL)
    time.sleep(_POLL * 20)


def _end(program: Sender | Follower, where: str, tally: Tally) -> None:
    if not program.stop(_END_SECONDS_MAX):
        tally.stuck += 1
        tally.stories.append(f"{where}: a {type(program).__name__.lower()} did not end: {program.error}")
    for text in [*program.wrong[:3], *([program.error] if program.error else [])]:
        tally.wrong += 1
        tally.stories.append(f"{where}: {text}")


def check_jobs(store: Store, senders: list[Sender], where: str, tally: Tally) -> None:
    """Each key has one job, which has its payload, and there are no others."""
    sent = {key: payload for sender in senders for key, payload in sender.payloads.items()}
    answered = {key: ids for sender in senders for key, ids in sender.jobs.items()}
    for key, ids in answered.items():
        if len(ids) > 1:
            tally.doubled += 1
            tally.stories.append(f"{where}: the key {key} was answered with {sorted(ids)}")
    pairs = [(key, int(one)) for key, several in answered.items() for one in several]
    for (key, job_id), row in zip(pairs, store.job_get([one for _, one in pairs]), strict=True):
        if row is None:
            tally.lost += 1
            tally.stories.append(f"{where}: job {job_id} of the key {key} was acknowledged and is gone")
        elif row.payload.replace(" ", "") != str(sent[key]).replace(" ", "").replace("'", '"'):
            tally.wrong += 1
            tally.stories.append(f"{where}: job {job_id} of the key {key} has the payload {row.payload}")
    there = sum(one.jobs for one in store.counts() if one.queue == "default")
    if there > len(sent):
        tally.doubled += there - len(sent)
        tally.stories.append(f"{where}: there are {there} jobs, and {len(sent)} keys")


def _lines_after(store: Store, place: str) -> list[Any]:
    """Return the lines of the record after a place, as the stream shows them."""
    import msgspec

    found: list[Any] = []
    while True:
        page = store.record_feed(place, 200)
        found += [msgspec.json.decode(msgspec.json.encode(to_body(line.row))) for line in page.lines]
        place = page.next
        if not page.more:
            return found


def compare(found: list[Any], wanted: list[Any], where: str, tally: Tally) -> None:
    """What was followed is what is there, each line once. Lines of different entities may change places."""
    seen, there = Counter(map(repr, found)), Counter(map(repr, wanted))
    if missing := there - seen:
        tally.lost += missing.total()
        tally.stories.append(
            f"{where}: the stream has missed {missing.total()} of {len(wanted)}, such as {next(iter(missing))[:300]}"
        )
    if more := seen - there:
        tally.doubled += more.total()
        tally.stories.append(
            f"{where}: the stream has shown {more.total()} too often, such as {next(iter(more))[:300]}"
        )
