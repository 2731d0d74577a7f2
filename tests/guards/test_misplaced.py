"""A pending job whose queue, priority or due time was changed at a prompt: no move leaves a row behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from detent.errors import GuardViolation
from detent.store.contract import Store
from detent.testing.stores import StoreClock, dump
from tests.contract.jobs.sample_jobs import claim, enqueue, state
from tests.guards.prompt import Prompt

MOVES: dict[str, Callable[[Store, int], object]] = {
    "cancel": lambda store, job_id: store.job_cancel([job_id], "ana"),
    "force": lambda store, job_id: store.job_force(job_id, "quarantined", "ana", "it is so"),
    "move": lambda store, job_id: store.job_move([job_id], "bulk", 5, "ana"),
}


@pytest.fixture
def prompt(store: Store, store_url: str) -> Iterator[Prompt]:
    with closing(Prompt(store_url)) as prompt:
        yield prompt


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("column", ["queue", "priority", "due_at"])
def test_it_is_refused_until_it_is_repaired(
    store: Store, clock: StoreClock, prompt: Prompt, column: str, move: str
) -> None:
    """J1, R3: it used to leave its place in the queue behind, at which every later claim failed."""
    job_id = enqueue(store)
    value = {"queue": "'other'", "priority": "priority + 1", "due_at": prompt.later("due_at")}[column]
    prompt.run(f"UPDATE {{job}} SET {column} = {value} WHERE id = {job_id}")
    before = dump(prompt.url)
    with pytest.raises(GuardViolation, match=f"job {job_id} is not in the queue where .*`detent repair` puts it right"):
        MOVES[move](store, job_id)
    assert dump(prompt.url) == before
    assert "pending_is_queued_once" in {violation.invariant for violation in store.verify()}
    store.repair("ana", "typed by hand", apply=True)
    assert store.verify() == []
    MOVES[move](store, job_id)
    assert store.verify() == []
    clock.advance(1)
    store.job_promote(10)
    assert (state(store, job_id) == "pending") == bool(claim(store))
