"""What must be true of a workflow that has come to its end, wherever its workers were killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Literal

from detent.client.job import Job
from detent.testing.harness import Harness
from detent.testing.stores import plain_connection
from prove.kills.deed import Finding
from prove.workflows.lives import Calls, Life, steps_of

__all__ = ["BOOKED", "calls_of_recorded", "look"]

BOOKED = "CREATE TABLE booked (job_id bigint NOT NULL, amount bigint NOT NULL)"
"""The table of the user in which transactions leave rows."""
_CALLS = {"gather": 9, "tries": 3, "order": 6, "generations": 3}
"""How many calls a workflow makes without kills, if it is not one for each word."""
_Kind = Literal["lost", "doubled", "stuck", "wrong"]
_UNRECORDED = {"gather": 8, "branches": 2, "caught": 2}
"""How many calls a kill can repeat, if it is not one: steps at the same time, and an error that the function has caught
together with the next step."""


def look(
    harness: Harness, calls: Calls, life: Life, job: Job[Any], recorded: dict[str, int], *, kills: int = 1
) -> Iterator[Finding]:
    """Tell what is wrong. `recorded` is how often the steps were called that were on record after the kill."""
    state = job.refresh().state
    if state != life.state:
        kind: _Kind = "stuck" if state in ("pending", "running") else "wrong"
        yield kind, f"it is {state} instead of {life.state}: {job}"
    if life.state == state == "succeeded" and job.result != life.result:
        yield "wrong", f"its result is {job.result!r} instead of {life.result!r}"
    noted = calls.of(job.id)
    for word in life.once:
        if noted[word] != 1:
            kind = "doubled" if noted[word] else "lost"
            yield kind, f"the step {word} was called {noted[word]} times"
    for word in life.often:
        if len(calls.keys(job.id, word)) > 1:
            yield "wrong", f"the step {word} was called under several effect keys"
    most = _CALLS.get(life.body, len(life.often) + len(life.once)) + kills * _UNRECORDED.get(life.body, 1)
    if sum(noted.values()) > most:
        yield "doubled", f"its steps were called more than {most} times: {dict(noted)}"
    if again := {word for word, count in recorded.items() if noted[word] != count}:
        yield "doubled", f"steps that were on record were called again: {sorted(again)}"
    if (found := _booked(harness, job)) != list(life.booked):
        kind = "doubled" if len(found) > len(life.booked) else "lost"
        yield kind, f"its transactions left {found} instead of {list(life.booked)}"
    yield from _look_at_undo(harness, calls, life, job)
    if life.paths:
        paths = {path for path in steps_of(harness, job) if "/" not in path}
        if paths != set(life.paths):
            yield "wrong", f"the steps on record are {sorted(paths)}"
    try:
        life.look(harness, calls, job)
    except AssertionError as error:
        yield "wrong", str(error)


def _look_at_undo(harness: Harness, calls: Calls, life: Life, job: Job[Any]) -> Iterator[Finding]:
    if not life.undone:
        return
    undone = [one.path for one in job.preview_undo() if one.undone_at]
    if undone != list(life.undone):
        yield "wrong", f"the steps that were undone are {undone}"
    noted = calls.of(job.id)
    if not all(noted[f"undo-{path[-1]}"] for path in life.undone):
        yield "lost", f"not every undo was called: {dict(noted)}"
    undoing = harness.app.workflows.get(job.id).undone_by or 0
    if harness.app.jobs.get(undoing).state != "succeeded":
        yield "stuck", f"the job {undoing} that undoes its steps has not succeeded"


def _booked(harness: Harness, job: Job[Any]) -> list[int]:
    with closing(plain_connection(harness.url)) as connection:
        rows = connection.execute(f"SELECT amount FROM booked WHERE job_id = {job.id} ORDER BY amount").fetchall()
        return [amount for (amount,) in rows]


def calls_of_recorded(harness: Harness, calls: Calls, life: Life, job: Job[Any]) -> dict[str, int]:
    """Return how often the steps that are on record were called, for steps named as what they note."""
    noted, found = calls.of(job.id), steps_of(harness, job)
    return {word: noted[word] for word in life.often if word in found}
