"""The records of ops runs: builds, deploys and backups. Each run is a job. Frozen, as in `records`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

__all__ = [
    "CLAIM_SECONDS",
    "OPS_KEYS",
    "OPS_QUEUE",
    "OPS_TASK",
    "SIGN_SECONDS",
    "EnvironmentRow",
    "NewOpsRun",
    "OpsClaimed",
    "OpsEnd",
    "OpsRunRow",
    "OpsToken",
    "ops_state",
]

OPS_TASK = "ops.run"
"""The task of the jobs of ops runs. No application may declare it: workers of any language claim these runs."""
OPS_QUEUE = "ops"
"""The queue of ops runs. It can be paused and limited like any other."""

CLAIM_SECONDS = 300.0
"""Seconds after which a claimed run without an event is stale."""
SIGN_SECONDS = 600.0
"""Seconds after the last event after which a running run has failed."""

OPS_KEYS = "detent:ops:"
"""The prefix of the keys of runs, so that no ordinary job has the same key."""

OpsEnd = Literal["success", "failed", "cancelled"]


class NewOpsRun(Struct, frozen=True, kw_only=True):
    """A run to queue. Its id was reserved before, so sending it twice is harmless."""

    id: int
    nonce: int
    project_id: str
    env: str
    git_sha: str | None = None
    git_ref: str | None = None
    metadata: str = "{}"
    key: str | None = None
    expires_at: datetime | None = None


class OpsToken(Struct, frozen=True):
    """The token of a claim: the attempt and its lease. A caller with another token is not the holder."""

    attempt: int
    lease_id: int


class OpsClaimed(Struct, frozen=True, kw_only=True):
    """A run that was claimed."""

    job_id: int
    project_id: str
    env_id: int
    env: str
    git_sha: str | None
    git_ref: str | None
    metadata: str
    token: OpsToken


class OpsRunRow(Struct, frozen=True, kw_only=True):
    """An ops run. `started_at` is the time of its claim, `begun_at` that of its first event, if any.

    `metadata` is what it was queued with, `finish_metadata` what it was finished with. `outcome` is how its attempt
    ended. If it was cancelled, `cancelled_by` and `cancel_reason` say by whom and why.
    """

    job_id: int
    project_id: str
    env_id: int
    env: str
    git_sha: str | None
    git_ref: str | None
    state: str
    claimed_by: str | None
    key: str | None
    metadata: str
    finish_metadata: str | None
    queued_at: datetime
    started_at: datetime | None
    begun_at: datetime | None
    finished_at: datetime | None
    updated_at: datetime
    outcome: str | None
    cancelled_by: str | None
    cancel_reason: str | None


class EnvironmentRow(Struct, frozen=True, kw_only=True):
    """An environment of a project, such as staging."""

    id: int
    project_id: str
    name: str
    created_at: datetime


def ops_state(job_state: str, begun: bool) -> str:
    """Return the state of an ops run from the state of its job, and whether its execution has begun."""
    match job_state:
        case "pending":
            return "queued"
        case "running":
            return "running" if begun else "claimed"
        case "succeeded":
            return "success"
        case _:
            return job_state
