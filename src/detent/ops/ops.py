"""`app.ops`: queueing, claiming and finishing ops runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, get_args

from msgspec.structs import replace

from detent.client.actor import actor_and_reason
from detent.client.engine import Engine
from detent.client.job_verbs import unwrap
from detent.client.list_page import ListPage, check_limit
from detent.client.polling import event_pages, items_of
from detent.declare.enqueue import encode_metadata
from detent.errors import InvalidInput, KeyConflict, NotFound
from detent.lifecycle.library import OPS_RUN
from detent.model import json_codec
from detent.model.clock import to_micros
from detent.model.ops_records import EnvironmentRow, NewOpsRun, OpsEnd, OpsRunRow
from detent.model.records import EventRow
from detent.ops.ops_run import OpsRun, event_id, read_run_id, read_token, run_of
from detent.store.contract import Store

__all__ = ["Ops"]

_GIT_REF_MAX = 1000
_Events = list[EventRow]


class Ops:
    """Ops runs: builds, deploys and backups, with workers in any language. The schema `ops` offers the same in SQL.

    A run goes from queued through claimed and running to success, failed or cancelled. A claimed run without an event
    within five minutes is cancelled; a running one without an event for ten minutes fails.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ids = engine.ids
        self._settings = engine.settings

    def _store(self) -> Store:
        return self._engine.store

    # -- queueing ----------------------------------------------------------------------------------------------

    def queue(
        self,
        project_id: str,
        env: str,
        *,
        git_sha: str | None = None,
        git_ref: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        key: str | None = None,
        expires_at: datetime | None = None,
    ) -> OpsRun:
        """Queue a run of a revision for an environment of a project. A new project or environment is created.

        The same key returns the same run, whatever its metadata. `KeyConflict` if project, environment, sha or ref
        differ. Keys of runs are separate from keys of jobs. A run that no worker has claimed by `expires_at` is
        cancelled. `InvalidInput`.
        """
        if expires_at is not None:
            to_micros(expires_at, field="expires_at")
        names = self._settings.name_max
        store = self._store()
        item = NewOpsRun(
            id=0,
            nonce=self._ids.nonce(),
            project_id=json_codec.text(project_id, field="project_id", bytes_max=names),
            env=json_codec.text(env, field="env", bytes_max=names),
            git_sha=_optional(git_sha, "git_sha", names),
            git_ref=_optional(git_ref, "git_ref", _GIT_REF_MAX),
            metadata=encode_metadata(metadata or {}, self._settings) or "{}",
            key=None if key is None else json_codec.text(key, field="key", bytes_max=self._settings.key_max),
            expires_at=expires_at,
        )
        queued = unwrap(store.ops_queue(replace(item, id=self._ids.take(1)[0])))
        (row,) = store.ops_get([queued.job_id])
        if row is None:
            # A key may outlive its run.
            raise KeyConflict(key or "", "", queued.job_id)
        return run_of(row, depth_max=self._settings.depth_max, created=queued.created)

    def cancel(self, run: OpsRun | str, *, actor: str | None = None, reason: str | None = None) -> OpsRun:
        """Cancel a run at once, whichever worker holds it; the worker's next call is refused. A no-op if it is
        cancelled already. `InvalidTransition` if it ended otherwise, `NotFound`."""
        job_id = read_run_id(run)
        unwrap(self._store().ops_cancel(job_id, *actor_and_reason(actor, reason, self._settings)))
        return self._get(job_id)

    # -- working -----------------------------------------------------------------------------------------------

    def claim(self, worker: str) -> OpsRun | None:
        """Claim the run that was queued first, and return it with its token; None if no run is queued."""
        name = json_codec.text(worker, field="worker", bytes_max=self._settings.name_max)
        store = self._store()
        (lease_id,) = self._ids.take(1)
        held = store.ops_claim(lease_id, name)
        if held is None:
            return None
        (row,) = store.ops_get([held.job_id])
        if row is None:
            raise NotFound("ops_run", f"run-{held.job_id}")
        return run_of(row, depth_max=self._settings.depth_max, token=held.token)

    def event(
        self,
        run: OpsRun | str,
        message: str,
        *,
        level: str = "info",
        payload: Mapping[str, Any] | None = None,
        key: str | None = None,
        token: str | None = None,
    ) -> str:
        """Append an event, which also extends the lease, and return its id. The first one makes a claimed run running.

        An event with a key is stored once; without a key, the same event within ten seconds is stored once. A run that
        `claim` returned carries its token. `LeaseLost` if the run is not held, or by another claim; `NotFound`.
        """
        settings = self._settings
        text = json_codec.text(message, field="message", bytes_max=settings.event_max, allow_empty=True)
        more = None
        if payload is not None:
            more = json_codec.encode(
                dict(payload), field="payload", size_max=settings.event_max, depth_max=settings.depth_max
            )
        appended = unwrap(
            self._store().ops_append(
                read_run_id(run),
                json_codec.text(level, field="level", bytes_max=settings.name_max),
                text,
                more,
                None if key is None else json_codec.text(key, field="key", bytes_max=settings.key_max),
                read_token(_token_of(run, token)),
            )
        )
        return event_id(appended.job_id, appended.seq)

    def renew(self, run: OpsRun | str, *, token: str | None = None) -> str:
        """Renew the lease of a run for ten minutes without an event. Return the state of the run, which stays.
        `LeaseLost` if the run is not held, or by another claim, as after a cancel; `NotFound`."""
        return unwrap(self._store().ops_renew(read_run_id(run), read_token(_token_of(run, token)))).state

    def finish(
        self,
        run: OpsRun | str,
        state: OpsEnd,
        *,
        metadata: Mapping[str, Any] | None = None,
        token: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> OpsRun:
        """End a run as success, failed or cancelled, and merge the metadata with those it was queued with. The same end
        again is a no-op.

        The actor of a success or a failure is the worker that claimed the run. Those of a cancel are `actor` and
        `reason`; if they are not given, `cancelled_by` and `reason` of the metadata, then the worker of a run that
        `claim` returned. `error` of the metadata is the error of a failure. `InvalidTransition`, `LeaseLost`,
        `NotFound`.
        """
        if state not in get_args(OpsEnd):
            raise InvalidInput("state", repr(state)[:80], ", ".join(get_args(OpsEnd)))
        job_id = read_run_id(run)
        given = dict(metadata or {})
        text = encode_metadata(given, self._settings) or "{}"
        who = actor or given.get("cancelled_by") or (run.claimed_by if isinstance(run, OpsRun) else None)
        why, error = given.get("reason") if reason is None else reason, given.get("error")
        by, because = actor_and_reason(
            None if who is None else str(who), None if why is None else str(why), self._settings
        )
        token_given = read_token(_token_of(run, token))
        error_text = None if error is None else str(error)
        unwrap(self._store().ops_finish(job_id, state, text, by, because, error_text, token_given))
        return self._get(job_id)

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, run: OpsRun | str) -> OpsRun:
        """Return a run. `NotFound`."""
        return self._get(read_run_id(run))

    def list(
        self,
        *,
        project_id: str | None = None,
        env: str | None = None,
        state: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[OpsRun]:
        """List matching runs, the newest first. `.next` of the list is the `after` of the next page. `InvalidInput`."""
        if state is not None and state not in OPS_RUN.states:
            raise InvalidInput("state", repr(state)[:80], ", ".join(OPS_RUN.states))
        most, below = check_limit(limit), None if after is None else read_run_id(after)
        found = [self._run(row) for row in self._store().ops_list(project_id, env, state, below, most)]
        return ListPage(found, found[-1].id if len(found) == most else None)

    def follow(self, run: OpsRun | str, *, wait: bool = True) -> Iterator[EventRow]:
        """Yield the events of a run in order, and new ones until the run has ended; without `wait`, only those so far.
        `NotFound`."""
        self._get(read_run_id(run))
        return items_of(self._follow_pages(run, wait=wait), self._engine.clock)

    def _follow_pages(self, run: OpsRun | str, *, wait: bool = True) -> Iterator[tuple[_Events, float]]:
        job_id = read_run_id(run)
        self._get(job_id)
        yield from event_pages(self._store(), job_id, self._settings, follow=wait)

    def environments(self, project_id: str | None = None) -> ListPage[EnvironmentRow]:
        """List environments, of all projects or of one, by project and name."""
        return ListPage(self._store().ops_environments(_optional(project_id, "project_id", self._settings.name_max)))

    def _get(self, job_id: int) -> OpsRun:
        (row,) = self._store().ops_get([job_id])
        if row is None:
            raise NotFound("ops_run", f"run-{job_id}")
        return self._run(row)

    def _run(self, row: OpsRunRow) -> OpsRun:
        return run_of(row, depth_max=self._settings.depth_max)


def _token_of(run: OpsRun | str, token: str | None) -> str | None:
    return token if token is not None or not isinstance(run, OpsRun) else run.token


def _optional(value: str | None, field: str, bytes_max: int) -> str | None:
    return None if value is None else json_codec.text(value, field=field, bytes_max=bytes_max, allow_empty=True)
