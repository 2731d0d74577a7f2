"""Retention: what is old goes, is archived before where that is asked for, and results go when their time is over."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from detent.archive.file import find_files, read_lines
from detent.archive.writer import Archive
from detent.errors import DatabaseBusy, DatabaseUnreachable
from detent.model.records import Enqueued, Finished
from detent.model.service_records import TaskTimes
from detent.store.contract import Store, Verbs
from detent.store.jobs.filters import JobFilter
from detent.store.open import open_store
from detent.testing.stores import StoreClock
from detent.worker.services.retention import Keep, Retention
from tests.contract.jobs.sample_jobs import claim_one, enqueue, event, finish, new_job, quarantined, state, succeeded


class TestRetention:
    """J16: by age, in small portions."""

    def test_each_kind_after_its_time(self, store: Store, clock: StoreClock) -> None:
        """J16: what succeeded sooner than what failed, and what has not finished never."""
        waiting = enqueue(store, task="nobody")
        old = [succeeded(store), quarantined(store)]
        clock.advance(timedelta(days=6, hours=23))
        young = [succeeded(store), quarantined(store)]
        retention = Retention(store, Keep(succeeded=7, others=30))
        retention.run(0.0)
        assert None not in store.job_get([*old, *young])
        clock.advance(timedelta(hours=2))
        retention.run(1.0)
        assert [row is None for row in store.job_get([*old, *young])] == [True, False, False, False]
        clock.advance(timedelta(days=23))
        retention.run(2.0)
        assert [row is None for row in store.job_get([*old, *young])] == [True, True, True, False]
        assert state(store, waiting) == "pending"

    def test_what_belongs_to_no_job_goes_after_its_time(self, store: Store, clock: StoreClock) -> None:
        """J16, J3: lines of the log after `keep_log`, keys after `key_ttl` or with their job; each walk is bounded."""
        kept, gone = succeeded(store, key="for ever"), succeeded(store, key="for a day", key_ttl=86_400.0)
        for _ in range(20):
            store.queue_pause("mail", "ana")
            store.queue_resume("mail", "ana")
        clock.advance(timedelta(days=40))
        keep = Keep(succeeded=7, others=30, log=60)

        def runs(retention: Retention) -> None:
            for second in range(50):
                retention.run(float(second))

        runs(Retention(store, keep, portion=3))
        assert store.job_get([kept, gone]) == [None, None]
        assert len(store.transitions("queue", "mail")) == 40
        assert store.key_expire(10) == 0
        assert store.job_enqueue([new_job(store, key="for ever")]) == [Enqueued(kept, False)]
        clock.advance(timedelta(days=30))
        runs(Retention(store, replace(keep, keys_as_jobs=True), portion=3))
        assert len(store.transitions("queue", "mail")) == 1
        assert store.key_forget(("", ""), 10).keys == 0
        (made,) = store.job_enqueue([new_job(store, key="for ever")])
        assert isinstance(made, Enqueued)
        assert made.created

    def test_passes_may_follow_each_other_sooner_than_every_hour(self, store: Store, clock: StoreClock) -> None:
        """J16: the horizon moves with each pass. The soak of prove/ runs one every 15 seconds."""
        retention = Retention(store, Keep(succeeded=60 / 86_400, others=0), every=15)
        retention.run(0.0)
        done = succeeded(store)
        clock.advance(timedelta(seconds=59))
        retention.run(1.0)
        assert state(store, done) == "succeeded"
        clock.advance(timedelta(seconds=16))
        retention.run(2.0)
        assert store.job_get([done]) == [None]

    def test_nothing_goes_where_everything_is_kept(self, store: Store, clock: StoreClock) -> None:
        """J16: 0 days means for ever."""
        done = succeeded(store)
        clock.advance(timedelta(days=10_000))
        Retention(store, Keep(succeeded=0, others=0)).run(0.0)
        assert state(store, done) == "succeeded"

    def test_portion_by_portion_while_jobs_run(self, store: Store, clock: StoreClock) -> None:
        """J16: a pass takes five small portions, the first of the limits, and leaves the rest to the next; the horizon
        is on record once."""
        for _ in range(12):
            succeeded(store)
        clock.advance(timedelta(days=8))
        running = enqueue(store)
        held = claim_one(store, lease=86_400.0)
        retention = Retention(store, Keep(succeeded=7, others=0), portion=2)
        retention.run(0.0)
        assert store.job_count(JobFilter(state="succeeded")) == 4
        retention.run(1.0)
        assert store.job_count(JobFilter(state="succeeded")) == 0
        assert finish(store, held) == Finished(running, 1)
        retention.run(2.0)
        assert state(store, running) == "succeeded"
        assert store.verify() == []


def test_results_go_when_their_time_is_over(store: Store, clock: StoreClock) -> None:
    """J13: with the walk of every hour, also where jobs are kept for ever."""
    store.task_times_put([TaskTimes(task="mail.send", result_ttl=60.0)])
    jobs = []
    for _ in range(3):
        jobs.append(enqueue(store))
        finish(store, claim_one(store), '"kept"')
    retention = Retention(store, Keep(succeeded=0, others=0), portion=2)
    retention.run(0.0)
    assert [row.result for row in store.job_get(jobs) if row is not None] == ['"kept"'] * 3
    clock.advance(3600)
    retention.run(1.0)
    assert [(row.state, row.result) for row in store.job_get(jobs) if row is not None] == [("succeeded", None)] * 3


class TestArchive:
    """J16: what is deleted for its age is in a file before."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        (tmp_path / "archive").mkdir()
        return tmp_path / "archive"

    def old_jobs(self, store: Store, clock: StoreClock) -> tuple[int, int]:
        dead, done = quarantined(store), enqueue(store, metadata='{"from":"ana"}')
        held = claim_one(store)
        store.event_append([event(held, f"line {n}", key=str(n)) for n in range(3)])
        finish(store, held, '{"n":12345678901234567890}')
        clock.advance(timedelta(days=40))
        return done, dead

    def lines(self, directory: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for path in find_files(directory) for line in read_lines(path)]

    def test_jobs_are_written_with_all_their_records(self, store: Store, clock: StoreClock, place: Path) -> None:
        """J16: one line for each, as the command line shows them; afterwards they are gone."""
        done, dead = self.old_jobs(store, clock)
        spared = succeeded(store)
        retention = Retention(store, Keep(7, 30), portion=1, archive=Archive(place))
        for second in range(3):
            retention.run(float(second))
        assert store.job_get([done, dead]) == [None, None]
        assert store.job_get([spared]) != [None]
        by_id = {line["job"]["id"]: line for line in self.lines(place)}
        assert set(by_id) == {str(done), str(dead)}
        line = by_id[str(done)]
        assert (line["job"]["state"], line["job"]["result"]) == ("succeeded", {"n": 12345678901234567890})
        assert line["job"]["metadata"] == {"from": "ana"}
        assert [one["outcome"] for one in line["executions"]] == ["done"]
        assert [one["message"] for one in line["events"]] == ["line 0", "line 1", "line 2"]
        assert [one["to_state"] for one in line["transitions"]] == ["pending", "running", "succeeded"]
        assert {path.parent for path in find_files(place)} == {place / f"{clock.now():%Y-%m-%d}"}

    def test_what_was_not_deleted_after_it_was_written_is_written_again(
        self, store: Store, clock: StoreClock, place: Path
    ) -> None:
        """J16: doubled under the same id, and never lost."""
        done, _ = self.old_jobs(store, clock)

        def interrupted(verbs: Verbs) -> None:
            Archive(place).write(verbs, [done], clock.now())
            raise DatabaseBusy("it", "died")

        with pytest.raises(DatabaseBusy):
            store.together(interrupted)
        assert store.job_get([done]) != [None]
        Retention(store, Keep(7, 30), archive=Archive(place)).run(0.0)
        found = [line["job"]["id"] for line in self.lines(place)]
        assert found.count(str(done)) == 2

    def test_what_cannot_be_archived_stays(
        self, store: Store, clock: StoreClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """J16: it is said once an hour, and tried again in the next; what was written in vain is taken back."""
        done, dead = self.old_jobs(store, clock)
        directory = tmp_path / "there"
        retention = Retention(store, Keep(7, 30), archive=Archive(directory))
        retention.run(0.0)
        assert None not in store.job_get([done, dead])
        said = caplog.text
        assert "cannot be archived" in said
        retention.run(0.0)
        assert caplog.text == said
        directory.mkdir()
        clock.advance(3600)
        retention.run(1.0)
        assert store.job_get([done, dead]) == [None, None]
        before = self.lines(directory)

        with closing(open_store(f"sqlite:///{tmp_path}/nowhere.db")) as gone, pytest.raises(DatabaseUnreachable):
            Archive(directory).write(gone, [1], clock.now())
        assert self.lines(directory) == before
