"""`app.workflows`: finding workflows, what they wait for, and sending them signals."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from detent.client.engine import Engine
from detent.client.job import JobSnapshot
from detent.client.job_verbs import check_id
from detent.client.list_page import ListPage, check_limit
from detent.client.signal_tokens import redeem_token
from detent.client.workflow_verbs import find_by_key, new_signal, signal_or_start
from detent.declare.task import Call, Task
from detent.declare.workflow import VERSION_MAX
from detent.errors import InvalidInput, NotFound, UnknownTask
from detent.lifecycle.library import JOB
from detent.model import json_codec
from detent.model.clock import to_micros
from detent.model.workflow_records import SignalSent, VersionCount, WaitRow, Workflow, WorkflowSearch
from detent.store.jobs.filters import LOOKS_MAX
from detent.views.workflows import workflow_of, workflows_of
from detent.workflow.aio_check import WorkflowCheck, check_workflow

__all__ = ["Workflows"]

_PORTION = 1000
_PARKED = "parked"


class Workflows:
    """The workflows on record."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def get(self, job_id: int | str) -> Workflow:
        """Return a workflow: its job, what is on record about it, and what it waits for. For the verbs on it, get its
        handle with `app.jobs.get`. `NotFound`."""
        number = check_id(job_id)
        (row,) = self._engine.store.job_get([number])
        if row is None or not self._is_workflow(row.task, number):
            raise NotFound("workflow", str(number))
        return workflow_of(self._engine.store, row)

    def _is_workflow(self, task: str, job_id: int) -> bool:
        known = self._engine.tasks.get(task)
        if known is not None:
            return known.workflow is not None
        return self._engine.store.workflow_get([job_id])[0] is not None

    def list(
        self,
        *,
        task: str | None = None,
        version: int | None = None,
        state: str | None = None,
        tenant: str | None = None,
        since: datetime | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[Workflow]:
        """List workflows that have recorded something, the newest first by id. `.next` of the list is the `after` of
        the next page.

        `state` is a state of a job, or `parked` for those that wait without a worker. `since` is about the time of
        creation. A page looks at 25,000 workflows at most, so it may be short or empty although it has a `next`. Jobs
        that have not recorded a step or a wait yet are in `app.jobs.list`. `InvalidInput`.
        """
        chosen = self._search(task, version, state, tenant, since)
        most, below = check_limit(limit), 2**63 - 1 if after is None else check_id(after, "after")
        store, ids, place = self._engine.store, list[int](), None
        for _ in range(LOOKS_MAX // _PORTION):
            page = store.workflow_list(chosen, before=below, limit=_PORTION)
            ids += page.ids
            place = page.next
            if len(ids) > most:
                ids, place = ids[:most], ids[most - 1]
            if place is None or len(ids) == most:
                break
            below = place
        rows = [row for row in store.job_get(ids) if row is not None]
        return ListPage(workflows_of(store, rows), None if place is None else str(place))

    def _search(
        self, task: str | None, version: int | None, state: str | None, tenant: str | None, since: datetime | None
    ) -> WorkflowSearch:
        if state is not None and state not in (*JOB.states, _PARKED):
            raise InvalidInput("state", repr(state)[:80], ", ".join((*JOB.states, _PARKED)))
        is_number = isinstance(version, int) and not isinstance(version, bool)
        if version is not None and not (is_number and 0 <= version <= VERSION_MAX):
            raise InvalidInput("version", repr(version)[:80], "a version, such as 2")
        self._check_names(task=task, tenant=tenant)
        if since is not None:
            to_micros(since, field="since")
        parked = state == _PARKED
        return WorkflowSearch(
            task=task, version=version, state=None if parked else state, parked=parked, tenant=tenant, since=since
        )

    def _check_names(self, **names: str | None) -> None:
        for field, name in names.items():
            if name is not None:
                most = self._engine.settings.name_max
                json_codec.text(name, field=field, bytes_max=most, allow_empty=field == "tenant")

    def waits(
        self,
        *,
        signal: str | None = None,
        tenant: str | None = None,
        job_id: int | str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[WaitRow]:
        """List what parked workflows wait for, by job: signals, groups of children and times; or only those of one job,
        or those that wait for one signal. A workflow that waits for several things has a row for each. `.next` of the
        list is the `after` of the next page.

        A page looks at 25,000 rows at most, so it may be short or empty although it has a `next`: workflows that were
        woken and not claimed yet are passed over. `InvalidInput`.
        """
        self._check_names(signal=signal, tenant=tenant)
        number = None if job_id is None else check_id(job_id)
        most, place = check_limit(limit), _wait_place(after)
        found: list[WaitRow] = []
        following: tuple[int, int] | None = None
        looks = 0
        while looks < LOOKS_MAX:
            # A portion is as long as the page, which is what is needed if none of them was woken.
            portion = most + 1 if looks == 0 else _PORTION
            page = self._engine.store.wait_list(job_id=number, signal=signal, tenant=tenant, after=place, limit=portion)
            found += page.rows
            following, looks = page.next, looks + portion
            if len(found) > most:
                found, following = found[:most], (found[most - 1].job_id, found[most - 1].n)
            if following is None or len(found) == most:
                break
            place = following
        return ListPage(found, None if following is None else f"{following[0]}-{following[1]}")

    def versions(self, *, task: str | None = None) -> ListPage[VersionCount]:
        """Count the workflows that have begun and not ended, by task and by the version under which they began. A
        version without workflows needs no code any more. `InvalidInput`."""
        self._check_names(task=task)
        return ListPage(self._engine.store.workflow_versions(task))

    def check(self, *, task: str | None = None, limit: int = 1000, after: str | None = None) -> ListPage[WorkflowCheck]:
        """Replay parked workflows against this code, before it is deployed: without effects, up to the first step that
        is not on record. Say of each whether it continues, and where, or why it would be refused. The newest come
        first; `.next` of the list is the `after` of the next page.

        Nothing is written and no step is called; what the functions do between their steps is done. `InvalidInput`.
        """
        engine = self._engine
        chosen = self._search(task, None, _PARKED, None, None)
        below = 2**63 - 1 if after is None else check_id(after, "after")
        page = engine.store.workflow_list(chosen, before=below, limit=check_limit(limit))
        rows = [row for row in engine.store.job_get(page.ids) if row is not None]
        begun = engine.store.workflow_get([row.id for row in rows])
        found = [
            check_workflow(engine.store, engine.settings, row, one, self._find_task)
            for row, one in zip(rows, begun, strict=True)
        ]
        return ListPage(found, None if page.next is None else str(page.next))

    def _find_task(self, name: str) -> Task[..., Any, Any]:
        found = self._engine.tasks.get(name)
        if found is None:
            raise UnknownTask(name, tuple(sorted(self._engine.tasks)))
        return found

    def signal(
        self,
        key: str | int | JobSnapshot[Any],
        name: str,
        payload: Any = None,
        *,
        tenant: str = "",
        dedupe: str | None = None,
        start: Call[Any] | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> SignalSent:
        """Send a signal to the workflow with this key (a string), or to a job by its id (a whole number) or handle.

        With `start`, a call, the workflow is created under the key if there is none, in the same transaction: so the
        first of several senders creates it, and no signal is lost. `dedupe` as for `job.signal`. `JobEnded`,
        `KeyConflict`, `MailboxFull`, `NotFound`, `InvalidInput`, `InvalidPayload`.
        """
        engine, settings = self._engine, self._engine.settings
        if start is not None:
            if not isinstance(key, str):
                raise InvalidInput("start", f"a call together with {key!r:.80}", "a key, under which it is started")
            signal = new_signal(0, name, payload, dedupe, actor, reason, settings)
            return signal_or_start(engine.store, engine.ids, start, key, tenant, signal, settings)
        if isinstance(key, str):
            number = find_by_key(engine.store, key, tenant, settings)
        else:
            number = key.id if isinstance(key, JobSnapshot) else check_id(key)
        (row,) = engine.store.job_get([number])
        if row is None:
            raise NotFound("job", str(number))
        return engine.job(row).signal(name, payload, dedupe=dedupe, actor=actor, reason=reason)

    def redeem(
        self, token: str, payload: Any = None, *, actor: str | None = None, reason: str | None = None
    ) -> SignalSent:
        """Send the signal for which `ctx.token` made this token. It counts once: the same payload again is the same
        signal, and its `created` is False; another payload is refused.

        `WrongToken` if the token is not one of this database, `TokenUsed`, `WaitOver`, `JobEnded`, `MailboxFull`,
        `NotFound`, `InvalidPayload`.
        """
        return redeem_token(self._engine.store, token, payload, actor, reason, self._engine.settings)


def _wait_place(after: str | None) -> tuple[int, int]:
    if after is None:
        return (0, 0)
    job, dash, n = after.partition("-") if isinstance(after, str) else ("", "", "")
    if not (dash and all(part.isascii() and part.isdecimal() and len(part) < 19 for part in (job, n))):
        raise InvalidInput("after", repr(after)[:80], "the `next` of the page before, such as 17-0")
    return int(job), int(n)
