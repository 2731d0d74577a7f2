"""The contract's verbs of ops runs: a job each, in the words of operations.

The words are those of `contract`, which has these verbs too. An ops run is a job of the task `ops.run`: one attempt, no
dead letter. It is *queued* while the job is pending, *claimed* while it is leased and has not begun, *running* from its
first event on, and ends as *success*, *failed* or *cancelled*; then nothing moves it any more. Its holder is whoever
claimed it, for 300 seconds from the claim and for 600 from each event or renewal. A lease that ran out is taken by the
reaper as any other: a claimed run is then cancelled, a running one has failed.

A token says which claim is meant. Without one the current holder is meant, whoever that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from detent.errors import DetentError, IdConflict, InvalidTransition, KeyConflict, LeaseLost, NotFound
from detent.model.ops_records import EnvironmentRow, NewOpsRun, OpsClaimed, OpsEnd, OpsRunRow, OpsToken
from detent.model.records import Appended, Enqueued, Moved
from detent.store.verb import verb

__all__ = ["OpsVerbs"]


class OpsVerbs(Protocol):
    """Ops runs."""

    @verb("client", IdConflict, KeyConflict)
    def ops_queue(self, item: NewOpsRun) -> Enqueued | DetentError:
        """Accept a run, queued. A project or environment that is new is made with it.

        Ids and keys are those of `job_enqueue`: the same key answers the same run where project, environment, sha and
        ref are the same (its metadata may differ), else `KeyConflict`. Keys of ops runs are apart from those of jobs.
        A run that nobody has claimed by `expires_at` is cancelled.
        """
        ...

    @verb("worker")
    def ops_claim(self, lease_id: int, worker: str) -> OpsClaimed | None:
        """Take the run that was queued first, and put a line about it among its events; None where none waits.

        Runs whose lease ran out are ended first, as the reaper would, and expired jobs are cancelled, as the promoter
        would: where shell scripts are all the workers there are, nobody else does either.
        """
        ...

    @verb("worker", LeaseLost, NotFound)
    def ops_append(
        self,
        job_id: int,
        level: str,
        message: str,
        payload: str | None = None,
        key: str | None = None,
        token: OpsToken | None = None,
    ) -> Appended | DetentError:
        """Append a line as the holder, as `event_append` does: the first one makes a claimed run running. It is a sign
        of life. `LeaseLost` where nobody holds the run, or another than the token says; `NotFound`."""
        ...

    @verb("worker", LeaseLost, NotFound)
    def ops_renew(self, job_id: int, token: OpsToken | None = None) -> Moved | DetentError:
        """Extend the lease as the holder to 600 seconds from now: a sign of life without a line. The state of the run,
        which stays. `LeaseLost` where nobody holds the run, or another than the token says; `NotFound`."""
        ...

    @verb("worker", LeaseLost, InvalidTransition, NotFound)
    def ops_finish(
        self,
        job_id: int,
        state: OpsEnd,
        metadata: str,
        actor: str,
        reason: str | None = None,
        error: str | None = None,
        token: OpsToken | None = None,
    ) -> Moved | DetentError:
        """End a run; `metadata` is kept beside what it was queued with. The same end again changes nothing.

        Success and failed are the holder's, of a running run. Cancelled is anybody's who has no token, also of a run
        that is queued or only claimed; a holder with a token must hold it. Other ends: `InvalidTransition`; not the
        holder: `LeaseLost`; `NotFound`.
        """
        ...

    @verb("client", InvalidTransition, NotFound)
    def ops_cancel(self, job_id: int, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Stop a run, whoever holds it: it is cancelled at once, and its holder is refused from then on. Cancelled:
        nothing to do. Ended as something else: `InvalidTransition`; `NotFound`."""
        ...

    @verb("viewer")
    def ops_get(self, ids: Sequence[int]) -> list[OpsRunRow | None]: ...

    @verb("viewer")
    def ops_list(
        self,
        project_id: str | None = None,
        env: str | None = None,
        state: str | None = None,
        before_id: int | None = None,
        limit: int = 100,
    ) -> list[OpsRunRow]:
        """Runs that fit, None is any; the newest first, below `before_id`."""
        ...

    @verb("viewer")
    def ops_environments(self, project_id: str | None = None) -> list[EnvironmentRow]:
        """The environments (of a project), by project and name."""
        ...
