"""SIGKILL at every statement of whoever rewinds or forks a workflow: nothing of it, or all of it."""

from __future__ import annotations

from typing import Any

import pytest

from detent.client.workflow_copies import fork_job, rewind_job
from detent.declare.settings import Settings
from detent.model.records import Claimed
from detent.store.contract import Store
from detent.testing.stores import row_violations
from prove.trap import killed_at
from tests.contract.jobs.sample_jobs import abort, claim, finish, state
from tests.contract.workflows.sample_workflows import begin, load, look, paths, record, send, signal, step
from tests.contract.workflows.test_workflow_fork import everything
from tests.faults.test_statements import die_everywhere

SETTINGS = Settings()


class OneId:
    """The id of the fork, so that it is known who was killed."""

    def __init__(self, number: int) -> None:
        self.number = number

    def take(self, count: int) -> range:
        return range(self.number, self.number + count)

    def nonce(self) -> int:
        return 1


def at_rest(store: Store) -> Claimed:
    """A workflow that has failed after a step, a wait and a step that happens once."""
    held = begin(store, attempts_max=1)
    record(store, held, "a")
    send(store, held.job_id, payload="7")
    assert look(store, held, signal(), outcome=step(held, "w", seq=2, kind="signal", value=None)).value == "7"
    store.step_begin([step(held, "once", seq=3)])
    record(store, held, "once", seq=3)
    record(store, held, "z", seq=4)
    abort(store, held)
    return held


def claimed(store: Store, job_id: int) -> Claimed:
    (held,) = [one for one in claim(store) if one.job_id == job_id]
    return held


@pytest.mark.timeout(600)
def test_a_rewind_killed_anywhere_is_whole_or_not_there(store: Store, store_url: str, whole: bool) -> None:
    """F17: the next generation with its copies, its signal and its place in the queue, or the job as it was."""

    def die(k: int, after: bool) -> bool:
        held = at_rest(store)
        before = everything(store, held.job_id)

        def act() -> Any:
            return rewind_job(store, held.job_id, "w", True, "ana", "again", SETTINGS)

        died = killed_at(k, act, after=after)
        if state(store, held.job_id) != "pending":
            assert everything(store, held.job_id) == before, (k, after)
            act()
        assert row_violations(store, store_url) == [], (k, after)
        again = claimed(store, held.job_id)
        assert paths(load(store, again)) == ["a"], (k, after)
        assert [one.payload for one in store.signal_list(held.job_id) if one.path is None] == ["7"], (k, after)
        finish(store, again)
        return died

    die_everywhere(whole, die, 2)
    assert store.verify() == []


@pytest.mark.timeout(600)
def test_a_fork_killed_anywhere_is_whole_or_not_there(store: Store, store_url: str, whole: bool) -> None:
    """F17: the new job with all its copies, or no job; the original is byte-equal whatever happened."""
    held = at_rest(store)
    before = everything(store, held.job_id)

    def die(k: int, after: bool) -> bool:
        ids: Any = OneId(store.ids_reserve(1))

        def act() -> Any:
            replaced = {"a": 8}
            return fork_job(store, ids, None, held.job_id, "once", replaced, None, True, "ana", "what if", SETTINGS)

        died = killed_at(k, act, after=after)
        if store.job_get([ids.number]) == [None]:
            assert store.workflow_get([ids.number]) == [None], (k, after)
            assert store.step_list(ids.number, generation=1).rows == [], (k, after)
            act()
        assert everything(store, held.job_id) == before, (k, after)
        assert row_violations(store, store_url) == [], (k, after)
        again = claimed(store, ids.number)
        assert [(one.path, one.value) for one in load(store, again).steps] == [("a", "8"), ("w", "7")], (k, after)
        finish(store, again)
        return died

    die_everywhere(whole, die, 2)
    assert store.verify() == []
