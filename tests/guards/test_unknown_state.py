"""A row in a state this version does not know: written by a newer one, or by somebody who got past every guard."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from detent.errors import DetentError, UnknownState
from detent.lifecycle.library import JOB
from detent.store.contract import Store
from detent.store.jobs.filters import JobSearch
from detent.testing.stores import dump
from tests.contract.jobs.sample_jobs import claim, enqueue
from tests.guards.prompt import Prompt

LOOKS: dict[str, Callable[[Store, int], object]] = {
    "job_get": lambda store, job_id: store.job_get([job_id]),
}
MOVES: dict[str, Callable[[Store, int], object]] = {
    "job_cancel": lambda store, job_id: store.job_cancel([job_id], "ana"),
    "job_retry": lambda store, job_id: store.job_retry([job_id], "ana"),
    "job_discard": lambda store, job_id: store.job_discard([job_id], "ana"),
    "job_force": lambda store, job_id: store.job_force(job_id, "succeeded", "ana", "r"),
}


@pytest.fixture
def strange(store: Store, prompt: Prompt) -> int:
    """A job in state `melted`, planted with the guards taken away."""
    job_id = enqueue(store)
    if prompt.sqlite:
        prompt.script("DROP TRIGGER detent_job_guard; PRAGMA ignore_check_constraints = ON;")
    else:
        prompt.script(
            "DROP TRIGGER job_guard ON detent.job;"
            "ALTER TABLE detent.job DROP CONSTRAINT job_state_known;"
            "ALTER TABLE detent.job DROP CONSTRAINT job_finished_has_time;"
        )
    prompt.run(
        f"UPDATE {{job}} SET state = 'melted' WHERE id = {job_id}", f"DELETE FROM {{ready}} WHERE job_id = {job_id}"
    )
    return job_id


@pytest.mark.parametrize("look", LOOKS)
def test_it_is_reported(store: Store, strange: int, look: str) -> None:
    """L8: never guessed: the error names the job, the state, and the states this version knows."""
    with pytest.raises(UnknownState) as refusal:
        LOOKS[look](store, strange)
    error = refusal.value
    assert (error.entity, error.entity_id, error.state) == ("job", str(strange), "melted")
    assert tuple(error.known) == tuple(JOB.states)


def test_it_does_not_hide_the_others_in_a_list(store: Store, strange: int) -> None:
    """L8: a list shows it with the state that was found, beside all others."""
    other = enqueue(store)
    assert [(row.id, row.state) for row in store.job_list(JobSearch()).rows] == [
        (other, "pending"),
        (strange, "melted"),
    ]


@pytest.mark.parametrize("move", MOVES)
def test_it_is_not_moved(store: Store, store_url: str, strange: int, move: str) -> None:
    """L8: a verb that would move it leaves the row alone and says in which state it was found."""
    before = dump(store_url)
    answer = MOVES[move](store, strange)
    (refusal,) = answer if isinstance(answer, list) else [answer]
    assert isinstance(refusal, DetentError), refusal
    assert "melted" in str(refusal)
    assert dump(store_url) == before


def test_the_others_go_on(store: Store, strange: int) -> None:
    """L8: one strange row does not stop the queue."""
    job_id = enqueue(store)
    assert [held.job_id for held in claim(store)] == [job_id]
