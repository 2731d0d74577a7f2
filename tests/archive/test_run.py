"""Archiving finished jobs, and finding them in the files: with the whole record, also after an interruption."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from detent.archive.file import find_files
from detent.archive.reader import ArchivedJob, Wanted, search
from detent.archive.run import ArchiveRun, Chosen
from detent.model.service_records import TaskSecrets
from detent.store.contract import Store
from detent.store.jobs.filters import RecordSearch
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import claim_one, enqueue, event, finish, quarantined, succeeded
from tests.contract.workflows.sample_workflows import record


class Stopped(Exception):
    """The program was stopped here."""


def found(directory: Path, wanted: Wanted | None = None) -> Iterator[ArchivedJob]:
    for one in search(directory, wanted or Wanted()):
        assert one.archived is not None, one.damage
        yield one.archived


def ids(directory: Path, wanted: Wanted | None = None) -> list[int]:
    return [one.job.id for one in found(directory, wanted)]


def test_a_job_is_found_as_it_was(store: Store, clock: StoreClock, tmp_path: Path) -> None:
    """J16: the row, the attempts, the transitions, the events, the steps and the key."""
    done = enqueue(store, key="order 1", tenant="acme", metadata='{"from":"ana"}', correlation_id="c-1")
    held = claim_one(store)
    store.event_append([event(held, f"line {n}", key=str(n)) for n in range(3)])
    record(store, held, "charge", seq=1, value='{"n":1}')
    record(store, held, "password", seq=2, secret=True, value='"hunter2"')
    finish(store, held, '"12345678901234567890"')
    dead = quarantined(store)
    clock.advance(60)
    steps = store.step_list(done).rows
    expected = (store.job_get([done])[0], store.job_details([done])[0], store.job_executions(done))
    assert ArchiveRun(store, tmp_path, clock.now(), Chosen()).run().jobs == 2
    (one,) = found(tmp_path, Wanted(key="order 1"))
    assert expected[0] is not None
    assert (one.job.id, one.job.result, one.job.metadata) == (done, expected[0].result, expected[0].metadata)
    assert {name: getattr(one.job, name) for name in one.job.__struct_fields__ if name != "nonce"} == {
        name: getattr(expected[0], name) for name in expected[0].__struct_fields__ if name != "nonce"
    }
    assert (one.details, one.executions) == expected[1:]
    assert one.transitions == store.transitions("job", str(done))
    assert one.events == store.job_events(done)
    assert [(step.path, step.value) for step in one.steps] == [("charge", steps[0].value), ("password", '"[redacted]"')]
    (lost,) = found(tmp_path, Wanted(state="quarantined"))
    assert (lost.job.id, lost.executions) == (dead, store.job_executions(dead))
    for wanted in (Wanted(tenant="acme"), Wanted(correlation_id="c-1"), Wanted(text="line 2"), Wanted(id=done)):
        assert ids(tmp_path, wanted) == [done]
    assert ids(tmp_path, Wanted(text=(lost.job.error or "")[:5])) == [dead]
    assert ids(tmp_path, Wanted(since=clock.now())) == ids(tmp_path, Wanted(text="line 7")) == []


def test_deleted_are_exactly_the_jobs_that_were_archived(store: Store, clock: StoreClock, tmp_path: Path) -> None:
    """J16: chosen by state, queue, tenant and task, below the horizon, on record with actor and reason."""
    chosen = [succeeded(store, tenant="acme", queue="mail") for _ in range(3)]
    others = [succeeded(store), succeeded(store, tenant="acme"), quarantined(store, tenant="acme", queue="mail")]
    clock.advance(60)
    before = clock.now()
    clock.advance(1)
    others.append(succeeded(store, tenant="acme", queue="mail"))
    which = Chosen(state="succeeded", tenant="acme", queue="mail", task="mail.send")
    report = ArchiveRun(store, tmp_path, before, which, drop=("ana", "a year old")).run(portion=2)
    assert (report.jobs, report.deleted) == (3, 3)
    assert store.job_get(chosen) == [None] * 3
    assert None not in store.job_get(others)
    assert sorted(ids(tmp_path)) == sorted(chosen)
    lines = store.record_search(RecordSearch(entity="database", entity_id="retention")).rows
    assert {(line.actor, line.reason) for line in lines} == {("ana", "a year old")}
    assert store.verify() == []


def test_an_interrupted_call_continues(store: Store, clock: StoreClock, tmp_path: Path) -> None:
    """J16: with the time of the first call, after the last file that was complete."""
    done = [succeeded(store) for _ in range(7)]
    clock.advance(60)
    before = clock.now()

    def stop(jobs: int) -> None:
        if jobs >= 4:
            raise Stopped

    with pytest.raises(Stopped):
        ArchiveRun(store, tmp_path, before, Chosen(), watch=stop).run(portion=2)
    clock.advance(timedelta(days=1))
    late = succeeded(store)
    clock.advance(60)
    other = ArchiveRun(store, tmp_path, clock.now(), Chosen(tenant="acme")).run(portion=2)
    assert (other.continued, other.jobs) == (False, 0)
    report = ArchiveRun(store, tmp_path, clock.now(), Chosen()).run(portion=2)
    assert (report.continued, report.before) == (True, before)
    assert set(ids(tmp_path)) == set(done)
    assert len(ids(tmp_path)) <= len(done) + 2
    again = ArchiveRun(store, tmp_path, clock.now(), Chosen()).run()
    assert (again.continued, again.jobs) == (False, 8)
    assert late in ids(tmp_path)


def test_what_a_task_keeps_secret_is_not_shown(store: Store, clock: StoreClock, tmp_path: Path) -> None:
    """J16, S4: as it was declared when the job was archived; in arguments, and wherever the value stands in texts."""
    store.task_secrets_put([TaskSecrets(task="mail.send", paths=("card",))], False)
    enqueue(store, payload='{"card":"4111 1111"}')
    held = claim_one(store)
    store.event_append([event(held, "charging 4111 1111")])
    finish(store, held)
    clock.advance(60)
    ArchiveRun(store, tmp_path, clock.now(), Chosen()).run()
    (one,) = found(tmp_path)
    assert one.job.payload == '{"card":"[redacted]"}'
    assert one.events[0].message == "charging [redacted]"
    assert ids(tmp_path, Wanted(text="4111")) == []


def test_a_damaged_file_does_not_hide_the_others(store: Store, clock: StoreClock, tmp_path: Path) -> None:
    """J16, R3: its jobs are not shown, and it is named."""
    done = [succeeded(store) for _ in range(3)]
    clock.advance(60)
    ArchiveRun(store, tmp_path, clock.now(), Chosen()).run(portion=1)
    broken = find_files(tmp_path)[1]
    broken.write_bytes(broken.read_bytes()[:-1])
    results = list(search(tmp_path, Wanted()))
    shown = [one.archived.job.id for one in results if one.archived is not None]
    assert len(shown) == 2
    assert set(shown) < set(done)
    (damaged,) = (one for one in results if one.archived is None)
    assert damaged.path == broken
    assert f"{broken} is damaged" in str(damaged.damage)
