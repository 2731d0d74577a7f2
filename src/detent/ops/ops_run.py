"""The public record of an ops run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from detent.errors import InvalidInput
from detent.lifecycle.library import OPS_RUN
from detent.model import json_codec
from detent.model.ops_records import OpsRunRow, OpsToken

__all__ = ["OpsRun", "event_id", "read_run_id", "read_token", "run_id", "run_of"]

_RUN_ID = re.compile(r"run-([0-9]{1,18})", re.ASCII)
_TOKEN = re.compile(r"([0-9]{1,9})\.([0-9]{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class OpsRun:
    """An ops run as it was when it was read.

    `metadata` merges what it was queued with, what the engine knows about its end, and what it was finished with; later
    values take precedence. `started_at` is the time of the claim. `token` is set if this call claimed the run: pass it
    to later calls, so that they are refused if another worker holds the run. `created` is False if an earlier run had
    the key.
    """

    id: str
    project_id: str
    env: str
    env_id: str
    git_sha: str | None
    git_ref: str | None
    state: str
    claimed_by: str | None
    metadata: dict[str, Any] = field(hash=False)
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    updated_at: datetime
    key: str | None = None
    token: str | None = None
    created: bool = True

    @property
    def rests(self) -> bool:
        """Whether it has ended."""
        return self.state in OPS_RUN.final


def run_of(row: OpsRunRow, *, depth_max: int, token: OpsToken | None = None, created: bool = True) -> OpsRun:
    """Return the run of a row."""

    def read(text: str) -> dict[str, Any]:
        found: dict[str, Any] = json_codec.decode(text, field="metadata", depth_max=depth_max)
        return found

    return OpsRun(
        id=run_id(row.job_id),
        project_id=row.project_id,
        env=row.env,
        env_id=f"env-{row.env_id}",
        git_sha=row.git_sha,
        git_ref=row.git_ref,
        state=row.state,
        claimed_by=row.claimed_by,
        metadata=read(row.metadata) | _end_metadata(row) | read(row.finish_metadata or "{}"),
        queued_at=row.queued_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        updated_at=row.updated_at,
        key=row.key,
        token=None if token is None else f"{token.attempt}.{token.lease_id}",
        created=created,
    )


def _end_metadata(row: OpsRunRow) -> dict[str, Any]:
    """Return the metadata about the end of a run that follows from the record."""
    claimed = {"original_worker": row.claimed_by, "claimed_at": row.started_at and row.started_at.isoformat()}
    if row.outcome == "expired" and row.state == "failed":
        silent = "Stalled run (running for >10 minutes without events)"
        return {"error": "No sign of life for 10 minutes", "reason": silent, **claimed}
    if row.outcome == "expired" and row.begun_at is None:
        reason = row.cancel_reason or "Stale run (claimed for >5 minutes without events)"
        return {"cancelled_by": row.cancelled_by or "system", "reason": reason, **claimed}
    if row.state == "cancelled":
        known = {"cancelled_by": row.cancelled_by, "reason": row.cancel_reason}
        return {name: value for name, value in known.items() if value is not None}
    return {}


def run_id(job_id: int) -> str:
    """Return the id of the run of a job."""
    return f"run-{job_id}"


def event_id(job_id: int, seq: int) -> str:
    """Return the id of an event of a run."""
    return f"run-{job_id}/{seq}"


def read_run_id(value: OpsRun | str) -> int:
    """Return the job id of a run, such as run-17. `InvalidInput`."""
    text = value.id if isinstance(value, OpsRun) else value
    found = _RUN_ID.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise InvalidInput("run", repr(value)[:80], "the id of a run, such as run-17")
    return int(found[1])


def read_token(value: str | None) -> OpsToken | None:
    """Return the claim that a token names; None without a token. `InvalidInput`."""
    if value is None:
        return None
    found = _TOKEN.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise InvalidInput("token", repr(value)[:80], "the token that claim returned, or None")
    return OpsToken(int(found[1]), int(found[2]))
