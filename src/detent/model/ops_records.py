"""The records of ops runs: builds, deploys and backups in the words of operations, over a job each.

Frozen, without behaviour, as in `records`.
"""

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
"""The task of every ops run's job. No application may declare it: whoever asks for the next run is its worker."""
OPS_QUEUE = "ops"
"""The queue that they are in, so that they can be paused and bounded like any other."""

CLAIM_SECONDS = 300.0
"""For so long a claimed run may be silent before it is stale."""
SIGN_SECONDS = 600.0
"""For so long a running one may be silent before it has failed; each event begins it anew."""

OPS_KEYS = "detent:ops:"
"""Before the key of each run, so that no plain job has the same one."""

OpsEnd = Literal["success", "failed", "cancelled"]


class NewOpsRun(Struct, frozen=True, kw_only=True):
    """A run as somebody asks for it; the id was reserved before, so sending it twice is harmless."""

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
    """What a claim hands out: which attempt, under which lease. Whoever has another is not the holder."""

    attempt: int
    lease_id: int


class OpsClaimed(Struct, frozen=True, kw_only=True):
    """A run handed to its claimer."""

    job_id: int
    project_id: str
    env_id: int
    env: str
    git_sha: str | None
    git_ref: str | None
    metadata: str
    token: OpsToken


class OpsRunRow(Struct, frozen=True, kw_only=True):
    """A run as it stands. `started_at` is its claim; `begun_at` its first event, where there was one.

    `metadata` is as queued, `finish_metadata` as finished. `outcome` is how its attempt ended; who stopped it and why
    is on record where it was cancelled.
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
    """What a job and its execution are in the words of operations."""
    match job_state:
        case "pending":
            return "queued"
        case "running":
            return "running" if begun else "claimed"
        case "succeeded":
            return "success"
        case _:
            return job_state
