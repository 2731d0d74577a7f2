"""`detent doctor`: each condition that it reports is produced, and it says what to do."""

from __future__ import annotations

import os
import shlex
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from detent.cli.doctor import database
from detent.cli.doctor.database import check_clock, check_space
from detent.cli.doctor.finding import Finding, duration
from detent.model.clock import TurnableClock
from detent.model.database_facts import OpenTransaction, Space, TableRows
from detent.model.service_records import WorkerSeen
from detent.testing.stores import START, is_sqlite, plain_connection, table
from prove.upgrades.next_release import NextRelease
from tests.cli.shell import Shell, World
from tests.cli.test_maintenance import lose_the_ready_rows
from tests.deadlines import until


def found_by(shell: Shell) -> dict[str, Any]:
    return {one["check"]: one for one in shell.run("doctor", "--json").json}


def test_doctor_creates_no_database(bare_shell: Shell) -> None:
    """U2"""
    ended = bare_shell.run("doctor", "--json")
    (found,) = ended.json
    assert (ended.code, found["check"], found["verdict"]) == (1, "schema", "fail")
    assert "`detent migrate` makes it" in found["detail"]
    assert not list(bare_shell.directory.glob("*.db*"))


def test_doctor_has_a_verdict_on_each_check(shell: Shell, world: World) -> None:
    world.dead(queue="mail")
    world.app.queues.pause("mail", actor="ana")
    world.app.alerts.raise_("disk_full", "9 GB left", scope="host:db1")
    job_id = world.pending()
    ended = shell.run("doctor")
    assert ended.code == 0
    found = shell.run("doctor", "--json").json
    facts = world.app.store.facts()
    assert found[0]["detail"].startswith(f"{facts.kind} {facts.version} at ")
    assert found[1]["detail"].startswith(f"schema {facts.schema}, ")
    assert all(f"{name} = {value}" in found[2]["detail"] for name, value in facts.durability.items())
    assert {one["check"]: one["verdict"] for one in found} == {
        "database": "warn" if facts.version_caution else "ok",
        "schema": "ok",
        "durability": "warn" if facts.durability_caution else "ok",
        **({} if world.app.store.log_growth() is None else {"log": "ok", "disk": "ok"}),
        "space": "ok",
        "clock": "ok",
        "record": "ok",
        "jobs": "ok",
        "queues": "warn",
        "dead jobs": "warn",
        "workers": "warn",
        "oldest ready": "ok",
        "leases": "ok",
        "alerts": "warn",
        "schedules": "ok",
    }
    assert "firing: disk_full/host:db1; see" in ended.out
    assert f"job {job_id} in queue default, due" in ended.out
    assert "paused: mail" in ended.out
    assert "none is alive, and 1 job pending" in ended.out


def test_a_log_that_a_reader_keeps_from_being_reset(sqlite_shell: Shell) -> None:
    """G6: a reader that keeps its snapshot open makes the log grow, and doctor did not report it."""
    url = sqlite_shell.environment["DETENT_DATABASE_URL"]
    assert found_by(sqlite_shell)["log"]["verdict"] == "ok"
    with closing(plain_connection(url)) as reader, closing(plain_connection(url)) as writer:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM detent_job").fetchone()
        writer.execute("CREATE TABLE report (page blob)")
        for _ in range(70):
            writer.execute("INSERT INTO report VALUES (zeroblob(1048576))")
            writer.commit()
        found = found_by(sqlite_shell)["log"]
    assert found["verdict"] == "warn"
    assert f"while a reader (process {os.getpid()}" in found["detail"]
    assert "end its transaction or cursor" in found["detail"]


def test_a_sqlite_that_may_corrupt_its_log_is_named(sqlite_shell: Shell) -> None:
    found = found_by(sqlite_shell)["database"]
    is_sound = sqlite3.sqlite_version_info >= (3, 51, 3)
    assert found["verdict"] == ("ok" if is_sound else "warn")
    assert ("or use a Python with a later SQLite" in found["detail"]) is not is_sound
    assert f"SQLite {sqlite3.sqlite_version} " in found["detail"]


def test_a_schema_that_is_behind(shell: Shell, tmp_path: Path) -> None:
    """The next release finds the database of this one, and touches nothing."""
    release = NextRelease(tmp_path / "next").with_number().with_column()
    done = subprocess.run(
        shell.argv("doctor"),
        cwd=release.source,
        env=shell.environment | {"PYTHONPATH": str(release.source)},
        capture_output=True,
        text=True,
    )
    (line,) = (line for line in done.stdout.splitlines() if " schema " in line)
    assert line.startswith("fail")
    assert "is older than this version of Detent, which needs 2; run `detent migrate`" in line
    assert done.returncode == 1
    assert found_by(shell)["schema"]["verdict"] == "ok"


def test_a_clock_that_is_set_wrong(lone_shell: Shell, postgres_store_url: str) -> None:
    """The server's time is another one than this machine's."""
    lone_shell.environment["DETENT_DATABASE_URL"] = postgres_store_url
    found = found_by(lone_shell)["clock"]
    assert found["verdict"] == "warn"
    apart = abs(START - datetime.now(UTC)) / timedelta(days=1)
    assert f" are {apart:.3g} days apart: " in found["detail"]
    assert "set both clocks by NTP" in found["detail"]


@pytest.mark.parametrize(
    ("ahead", "takes", "verdict"), [(0, 3600, "ok"), (7, 0, "warn"), (-7, 0, "warn"), (-3600, 30, "warn")]
)
def test_a_slow_answer_is_no_clock_skew(monkeypatch: pytest.MonkeyPatch, ahead: int, takes: int, verdict: str) -> None:
    """U2: a database that took six seconds to answer was reported as six seconds apart."""
    here = TurnableClock(START)

    def now() -> datetime:
        there = here.now() + timedelta(seconds=ahead)
        here.advance(takes)
        return there

    monkeypatch.setattr(database, "SystemClock", lambda: here)
    app: Any = SimpleNamespace(store=SimpleNamespace(now=now))
    assert check_clock(app).verdict == verdict


def test_doctor_fails_if_the_record_is_damaged(shell: Shell, world: World) -> None:
    world.pending()
    lose_the_ready_rows(shell)
    ended = shell.run("doctor")
    assert ended.code == 1
    (row,) = (row for row in ended.rows if row[:2] == ["fail", "record"])
    assert row[2] == "1"


def test_doctor_says_when_there_is_no_database(lone_shell: Shell) -> None:
    ended = lone_shell.run("doctor", "--database", "sqlite:///nowhere/x.db", "--json")
    assert ended.code == 1
    (found,) = ended.json
    assert (found["check"], found["verdict"]) == ("database", "fail")
    assert "cannot be reached" in found["detail"]


def test_the_oldest_ready_job_is_named_with_its_reason(lone_shell: Shell, postgres_store_url: str) -> None:
    """The newest pending job was named, so a queue that was stuck for hours looked well as long as jobs came in."""
    lone_shell.environment["DETENT_DATABASE_URL"] = postgres_store_url
    with closing(World(postgres_store_url).app) as app, closing(plain_connection(postgres_store_url)) as connection:
        oldest = app.enqueue_named("do", '{"n":1}', queue="mail").id
        connection.execute("UPDATE detent.test_clock SET at = at + interval '3 hours'")
        connection.commit()
        app.enqueue_named("do", '{"n":1}', queue="mail")
        app.queues.pause("mail", actor="ana", reason="the provider is down")
    found = found_by(lone_shell)["oldest ready"]
    assert found["verdict"] == "warn"
    assert found["detail"].startswith(f"job {oldest} in queue mail, due ")
    assert found["detail"].endswith(", 3 h ago: its queue 'mail' is paused by ana: the provider is down")
    assert "`detent queues resume`" in found_by(lone_shell)["queues"]["detail"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.25, "0.25 s"), (119, "119 s"), (600, "10 min"), (11_520, "3.2 h"), (864_000, "10 days")],
)
def test_durations_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("tasks", "queues", "verdict"),
    [(("do",), None, "ok"), (("do",), ("mail",), "ok"), (("other",), None, "warn"), (("do",), ("files",), "warn")],
    ids=["takes it", "serves the queue", "does not know the task", "serves another queue"],
)
def test_a_task_that_no_live_worker_takes(
    shell: Shell, world: World, tasks: tuple[str, ...], queues: tuple[str, ...] | None, verdict: str
) -> None:
    job_id = world.pending("do", queue="mail")
    assert "tasks" not in found_by(shell)  # without a worker, that is the finding
    seen = WorkerSeen(id=7, name="w", host="here", pid=os.getpid(), queues=queues, tasks=tasks, slots=1)
    world.app.store.worker_seen(seen)
    found = found_by(shell)["tasks"]
    assert found["verdict"] == verdict
    assert (f"do in queue mail (job {job_id})" in found["detail"]) is (verdict == "warn")


def test_leases_that_expire_although_nothing_died(shell: Shell, world: World) -> None:
    assert found_by(shell)["leases"]["detail"] == "0 lost in the last 24 h"
    for _ in range(3):
        world.pending()
        world.app.store.job_claim(
            lease_id=world.app.store.ids_reserve(1), worker="w1", queues=None, tasks=["do"], limit=1, lease=0.001
        )
        until(lambda: world.app.store.lease_reap(10).leases, "the end of the lease")
    found = found_by(shell)["leases"]
    assert found["verdict"] == "warn"
    assert "3 of 3 attempts lost the lease in the last 24 h (do); if no machine died, the lease is too short" in str(
        found
    )


def test_an_index_that_is_missing(shell: Shell, world: World) -> None:
    url = shell.environment["DETENT_DATABASE_URL"]
    with closing(plain_connection(url)) as connection:
        connection.execute(f"DROP INDEX {table(url, 'waiting_due')}")
        connection.commit()
    found = found_by(shell)["record"]
    assert (found["verdict"], "see `detent verify`" in found["detail"]) == ("fail", True)
    assert "waiting_due: it is missing; " in found["detail"]
    assert "`detent repair` shows how to mend it" in found["detail"]
    assert "waiting_due" in shell.run("verify").out


def test_space_is_that_of_the_database(world: World, ready_url: str) -> None:
    space = world.app.store.space()
    assert space is not None
    assert space.bytes > 100_000
    if not is_sqlite(ready_url):
        assert space.disk_bytes is None
    else:
        disk = os.statvfs(Path(ready_url.removeprefix("sqlite:///")).parent)
        assert space.disk_bytes == disk.f_blocks * disk.f_frsize


def test_a_disk_that_is_nearly_full(tmp_path: Path, sqlite_shell: Shell) -> None:
    """In a mount namespace of its own: the small disk is gone when the process ends."""
    small = tmp_path / "small"
    small.mkdir()
    script = (
        f"mount -t tmpfs -o size=50m none {small} && "
        f"{shlex.join(sqlite_shell.argv('migrate'))} && {shlex.join(sqlite_shell.argv('doctor'))}"
    )
    environment = sqlite_shell.environment | {"DETENT_DATABASE_URL": f"sqlite:///{small}/x.db"}
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        cwd=sqlite_shell.directory,
        env=environment,
        capture_output=True,
        text=True,
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    (line,) = (line for line in done.stdout.splitlines() if " disk " in line)
    assert line.startswith("fail")
    assert "of 52.4 MB are free: nothing can be written when the disk is full; make room now" in line
    assert done.returncode == 1


GB = 1_000_000_000


@pytest.mark.parametrize(
    ("space", "check", "verdict", "says"),
    [
        (Space(bytes=1, free_bytes=50 * GB, disk_bytes=100 * GB), "disk", "ok", "50.0 GB of 100.0 GB are free"),
        (Space(bytes=1, free_bytes=2 * GB, disk_bytes=100 * GB), "disk", "warn", "make room"),
        (Space(bytes=1, free_bytes=GB // 2, disk_bytes=5 * GB), "disk", "warn", "make room"),
        (Space(bytes=1, free_bytes=GB // 20, disk_bytes=100 * GB), "disk", "fail", "make room now"),
        (Space(bytes=3 * GB, unused_bytes=2 * GB), "space", "warn", "VACUUM"),
        (Space(bytes=3 * GB, unused_bytes=GB), "space", "ok", "3.0 GB"),
        (
            Space(bytes=1, tables=(TableRows(name="ready", live=10, dead=2_000_000),)),
            "space",
            "warn",
            "table ready has 2,000,000 dead rows beside 10 live ones: autovacuum is off, too slow, or waits",
        ),
        (Space(bytes=1, tables=(TableRows(name="job", live=900_000, dead=200_000),)), "space", "ok", ""),
        (
            Space(bytes=1, oldest=OpenTransaction(who="process 7 (psql)", seconds=11_520)),
            "transactions",
            "warn",
            "process 7 (psql) has had a transaction open for 3.2 h",
        ),
    ],
)
def test_verdicts_on_space(space: Space, check: str, verdict: str, says: str) -> None:
    (found,) = (one for one in check_space(space) if one.check == check)
    assert found.verdict == verdict
    assert says in found.detail


def test_no_space_no_verdict() -> None:
    assert list(check_space(None)) == []
    assert list(check_space(Space(bytes=1, oldest=OpenTransaction(who="process 7", seconds=30)))) == [
        Finding("space", "ok", "the database takes 1 bytes")
    ]


@contextmanager
def held_open(url: str) -> Iterator[None]:
    with closing(plain_connection(url)) as connection:
        connection.execute("SET application_name = 'a report'")
        yield


def test_dead_rows_that_a_transaction_keeps(lone_shell: Shell, postgres_url: str) -> None:
    lone_shell.environment["DETENT_DATABASE_URL"] = postgres_url
    lone_shell.run("migrate")
    world = World(postgres_url)
    with held_open(postgres_url), closing(plain_connection(postgres_url)) as connection, closing(world.app):
        connection.execute("INSERT INTO detent.queue (name) SELECT 'q' || n FROM generate_series(1, 100500) n")
        connection.execute("DELETE FROM detent.queue")
        connection.commit()
        until(lambda: _dead_rows(world) > 100_000, "the statistics of the server")
        found = found_by(lone_shell)["space"]
    assert found["verdict"] == "warn"
    assert "table queue has 100,500 dead rows beside 0 live ones" in found["detail"]
    assert "waits for an old transaction; mend that and VACUUM the table" in found["detail"]


def _dead_rows(world: World) -> int:
    space = world.app.store.space()
    assert space is not None
    assert space.oldest is not None
    assert "(a report)" in space.oldest.who
    return max((one.dead for one in space.tables if one.name == "queue"), default=0)
