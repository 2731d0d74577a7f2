"""The verbs of ops runs: deployments and the like, which scripts queue, claim and finish.

`store/contract.py` defines the words used here. An ops run is a job of the task `ops.run` with one attempt and no dead
letter. It is *queued* while the job is pending, *claimed* while it is leased and has not begun, *running* from its
first event on, and ends as *success*, *failed* or *cancelled*, which is final. Its holder is the worker that claimed
it, for 300 seconds from the claim and for 600 from each event or renewal. The reaper takes an expired lease: then a
claimed run is cancelled, and a running one has failed.

A token names a claim. Without a token, the verb acts for the current holder.
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
        """Queue a run. A new environment is created with it.

        Ids and keys work as in `job_enqueue`: the same key returns the same run if project, environment, sha and ref
        are the same (metadata may differ), else `KeyConflict`. Keys of ops runs do not collide with those of jobs. A
        run that is not claimed by `expires_at` is cancelled.
        """
        ...

    @verb("worker")
    def ops_claim(self, lease_id: int, worker: str) -> OpsClaimed | None:
        """Claim the run that was queued first, and append an event about it; None if no run is queued.

        Before that, it ends runs whose lease has expired and cancels expired jobs, as reaper and promoter do: if shell
        scripts are the only workers, no other process does it.
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
        """Append an event as the holder, as `event_append` does, and renew the lease. The first one makes a claimed run
        running. `LeaseLost` if no worker holds the run, or the token names another claim; `NotFound`."""
        ...

    @verb("worker", LeaseLost, NotFound)
    def ops_renew(self, job_id: int, token: OpsToken | None = None) -> Moved | DetentError:
        """Renew the lease as the holder, to 600 seconds from now, and return the state of the run, which does not
        change. `LeaseLost` if no worker holds the run, or the token names another claim; `NotFound`."""
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
        """End a run. `metadata` is kept beside the metadata that it was queued with. The same end again is a no-op.

        Only the holder of a running run can end it as success or failed. Without a token, any caller can cancel a run,
        also one that is queued or claimed; with a token, only its holder. Other ends: `InvalidTransition`; not the
        holder: `LeaseLost`; `NotFound`.
        """
        ...

    @verb("client", InvalidTransition, NotFound)
    def ops_cancel(self, job_id: int, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Cancel a run at once, also while a worker holds it; the holder is refused from then on. Cancelled: a no-op.
        Ended as something else: `InvalidTransition`; `NotFound`."""
        ...

    @verb("viewer")
    def ops_get(self, ids: Sequence[int]) -> list[OpsRunRow | None]:
        """Return runs in the order of `ids`, None for those that do not exist."""
        ...

    @verb("viewer")
    def ops_list(
        self,
        project_id: str | None = None,
        env: str | None = None,
        state: str | None = None,
        before_id: int | None = None,
        limit: int = 100,
    ) -> list[OpsRunRow]:
        """Return runs that fit (None is any), newest first, with ids below `before_id`."""
        ...

    @verb("viewer")
    def ops_environments(self, project_id: str | None = None) -> list[EnvironmentRow]:
        """Return the environments (of a project), by project and name."""
        ...
