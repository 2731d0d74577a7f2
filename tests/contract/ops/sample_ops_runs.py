"""Ops runs for tests, in each of their states."""

from __future__ import annotations

from typing import Any, cast, get_args

from detent.model.ops_records import NewOpsRun, OpsClaimed, OpsEnd, OpsRunRow, OpsToken
from detent.model.records import Enqueued, Moved
from detent.store.contract import Verbs

__all__ = ["claim_run", "ops_run", "queue_run", "run_in"]


def queue_run(store: Verbs, **overrides: Any) -> int:
    """Queue one ops run that must be new; its job."""
    fields: dict[str, Any] = {"nonce": 1, "project_id": "shop", "env": "staging", "git_sha": "abc", "git_ref": "main"}
    item = NewOpsRun(**({"id": store.ids_reserve(1)} | fields | overrides))
    assert store.ops_queue(item) == Enqueued(item.id, True)
    return item.id


def claim_run(store: Verbs, worker: str = "ana") -> OpsClaimed:
    """Claim the ops run that waits longest; there must be one."""
    held = store.ops_claim(store.ids_reserve(1), worker)
    assert held is not None
    return held


def run_in(store: Verbs, state: str) -> OpsClaimed:
    """An ops run that came to this state in the ordinary way, and its claim; a queued one's is of nobody."""
    job_id = queue_run(store)
    if state == "queued":
        return OpsClaimed(
            job_id=job_id,
            project_id="shop",
            env_id=0,
            env="staging",
            git_sha="abc",
            git_ref="main",
            metadata="{}",
            token=OpsToken(1, 999_999),
        )
    held = claim_run(store)
    assert held.job_id == job_id
    if state != "claimed":
        store.ops_append(job_id, "info", "building", token=held.token)
    if state in get_args(OpsEnd):
        ended = store.ops_finish(job_id, cast(OpsEnd, state), '{"exit_code":0}', "ana", token=held.token)
        assert ended == Moved(f"run-{job_id}", state, True)
    return held


def ops_run(store: Verbs, job_id: int) -> OpsRunRow:
    """The run, which must be there."""
    (row,) = store.ops_get([job_id])
    assert row is not None
    return row
