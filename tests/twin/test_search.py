"""Every interleaving of one job, three workers and three attempts; and the mutants that the search must find.

A mutant is the reference model with one guard taken out, all others intact. Where the search does not find it, the
search is blind there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from detent.errors import DetentError, LeaseLost
from detent.model.records import Abort, Commit, Committed, Finish, Finished, Reaped
from prove.reference.model import Model
from prove.reference.rows import Job
from tests.twin.search import Search


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "not-idempotent"])
def test_no_interleaving_breaks_an_invariant_and_every_state_can_still_end(
    idempotent: bool, whole: bool, record_testsuite_property: Callable[[str, object], None]
) -> None:
    """C1, C2, C4, C6, J1, J5, J6, J7: one job, three workers, two attempts that count (three if
    the job is not idempotent, in the whole), and all that can go wrong."""
    found = Search(idempotent=idempotent, attempts_max=3 if whole and not idempotent else 2).run()
    record_testsuite_property(f"states searched, idempotent {idempotent}", (found.databases, found.worlds))
    assert found.fault is None, found.path
    assert found.outcomes == {"succeeded", "quarantined", "cancelled"}
    assert found.databases > 800, "the search has become smaller"
    assert found.worlds > 6_000, "the search has become smaller"


class WithoutFence(Model):
    """Any caller may write while the job is running."""

    def lost(self, job_id: int, attempt: int) -> LeaseLost | None:
        job = self.job[job_id]
        return None if job.state == "running" else LeaseLost(job_id, attempt, f"the job is {job.state}")


class WithoutFenceOnCommit(Model):
    def job_commit(self, item: Commit) -> Committed | DetentError:
        return WithoutFence.job_commit(_unfenced(self), item)


class WithoutFenceOnFinish(Model):
    def job_finish(self, items: Sequence[Finish], worker: str) -> list[Finished | DetentError]:
        return WithoutFence.job_finish(_unfenced(self), items, worker)


def _unfenced(model: Model) -> WithoutFence:
    """The same record behind an open door."""
    opened = WithoutFence()
    opened.__dict__ = model.__dict__
    return opened


class WithoutAttemptCheck(Model):
    """The lease is checked, the attempt is not."""

    def lost(self, job_id: int, attempt: int) -> LeaseLost | None:
        return super().lost(job_id, self.job[job_id].attempt)


class WithoutLeaseCheck(Model):
    """The attempt is checked, the lease is not: an expired one still writes."""

    def lost(self, job_id: int, attempt: int) -> LeaseLost | None:
        said = super().lost(job_id, attempt)
        return None if said is not None and said.found == "its lease has expired" else said


class RepeatsCommits(Model):
    """A commit whose answer was lost is simply made again."""

    def job_commit(self, item: Commit) -> Committed | DetentError:
        job = self.job[item.job_id]
        if self.committed_by(job, item.attempt):
            return Committed(job.id, item.attempt)
        return super().job_commit(item)


class ReapsCommitted(Model):
    """The reaper does not ask whether the attempt was committed."""

    def _reap(self, job: Job, worker: str, aborted: list[int], recovered: list[int]) -> None:
        self.end(job, Abort(job_id=job.id, attempt=job.attempt, outcome="expired"), worker)


class ForgetsTheQueue(Model):
    """A job that goes back to pending gets no place in the queue."""

    def enter_queue(self, job: Job, *, holds_key: bool) -> None:
        if job.attempt == 0:
            super().enter_queue(job, holds_key=holds_key)


class NeverReaps(Model):
    """Nobody takes an expired lease away."""

    def lease_reap(self, limit: int, grace: float | None = None) -> Reaped:
        return Reaped()


MUTANTS: list[tuple[type[Model], str]] = [
    (WithoutFence, "INV_002"),
    (WithoutFenceOnCommit, "INV_002"),
    (WithoutFenceOnFinish, "INV_002"),
    (WithoutAttemptCheck, "INV_002"),
    (WithoutLeaseCheck, "G3"),
    (RepeatsCommits, "INV_001"),
    (ReapsCommitted, "INV_003: attempt 1 went from committed to aborted"),
    (ForgetsTheQueue, "INV_004: pending"),
    (NeverReaps, "liveness"),
]


@pytest.mark.parametrize(("mutant", "fault"), MUTANTS, ids=[mutant.__name__ for mutant, _ in MUTANTS])
def test_a_missing_guard_is_found(mutant: type[Model], fault: str) -> None:
    """C1, C4, C6, J5: taking out any one guard leads somewhere it must not, and the search shows the way."""
    found = Search(mutant, heed=fault).run()
    assert found.fault is not None
    assert found.fault.startswith(fault)
    assert found.path


def test_a_reaper_that_does_not_look_again_is_found() -> None:
    """J6: between a look and an act in two steps the holder may renew and commit."""
    found = Search(reaper_steps=2).run()
    assert found.fault is not None
    assert found.fault.startswith("INV_003: attempt 1 went from committed to aborted")
    assert found.path[-4:] == ("reaper sees lease 1 expired", "renew", "commit", "reap blindly 1")
