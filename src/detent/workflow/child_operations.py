"""Children of a workflow: spawning, waiting for their end, and reading what became of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from detent.declare.signals import JobCancelled
from detent.declare.task import Call
from detent.declare.workflow import Seconds, check_name, seconds_of
from detent.declare.workflow_context import Arrival, Child, Wait
from detent.errors import ChildFailed, DetentError, InvalidInput, UnknownTask
from detent.model import json_codec
from detent.model.records import JobRow
from detent.model.workflow_records import CancelFound, Spawn, Spawned, WaitOn
from detent.workflow.branch import inside_step
from detent.workflow.requests import Do, Operation
from detent.workflow.run import WorkflowRun
from detent.workflow.wait_operations import WaitOperations

__all__ = ["ChildOperations", "Counts", "GroupOfChildren", "GroupOutcome"]

_PORTION = 1000
_CHILDREN_MAX = 100_000


class SpawnValue(msgspec.Struct, frozen=True):
    """The value of a step that spawns."""

    first_id: int
    total: int


class Counts(msgspec.Struct, frozen=True):
    """The value of a step that joins: how the children of the group have ended."""

    succeeded: int = 0
    failed: int = 0
    dead: int = 0


@dataclass(frozen=True, slots=True)
class GroupOfChildren:
    """Children that were spawned together."""

    path: str
    first_id: int
    total: int


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """How a group has ended."""

    group: GroupOfChildren
    total: int
    succeeded: int
    failed: int


class Portions:
    """Calls that are read in portions, one call ahead. While they are made, the function asks for no steps: after a
    crash, its record would not say how many of them belong to which portion."""

    def __init__(self, calls: Iterable[Call[Any]], path: str) -> None:
        self._path = path
        self._calls = iter(calls)
        self._next = list(self._read(1))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left."""
        return not self._next

    def take(self) -> list[Call[Any]]:
        """Return the next portion."""
        found = self._next + list(self._read(_PORTION - 1)) if self._next else []
        self._next = list(self._read(1)) if len(found) == _PORTION else []
        return found

    def _read(self, count: int) -> Iterator[Call[Any]]:
        token = inside_step.set(self._path)
        try:
            for call in islice(self._calls, count):
                if not isinstance(call, Call):
                    raise InvalidInput("calls", repr(call)[:80], "calls of tasks, such as task.call(…)")
                yield call
        finally:
            inside_step.reset(token)


class ChildOperations:
    """The operations with children, for one scope of a workflow."""

    def __init__(self, run: WorkflowRun, scope: str) -> None:
        self._context = run.context
        self._run = run
        self._scope = scope

    # -- spawning ----------------------------------------------------------------------------------------------

    def spawn(self, call: Call[Any], name: str | None, detached: bool) -> Operation[Child[Any]]:
        """Enqueue one child."""
        if not isinstance(call, Call):
            raise InvalidInput("call", repr(call)[:80], "a call of a task, such as task.call(…)")
        called = call.task.__name__ if name is None else check_name("child", name)
        group = yield from self._spawn(called, [call], 1, detached)
        return Child(group.first_id, called, group.path, call.task.name, detached)

    def spawn_many(self, name: str, calls: Iterable[Call[Any]], limit: int | None) -> Operation[GroupOfChildren]:
        """Enqueue many children, in portions: calls that are made one by one are never all in memory."""
        check_name("group", name)
        if limit is not None and (type(limit) is not int or not 1 <= limit <= _CHILDREN_MAX):
            raise InvalidInput("limit", repr(limit)[:80], f"1 to {_CHILDREN_MAX:,} children that run at once")
        total = len(calls) if isinstance(calls, Sized) else None
        if total is not None and total > _CHILDREN_MAX:
            raise too_many(total)
        return (yield from self._spawn(name, calls, total, False, limit))

    def _spawn(
        self, name: str, calls: Iterable[Call[Any]], total: int | None, detached: bool, limit: int | None = None
    ) -> Operation[GroupOfChildren]:
        run, context = self._run, self._context
        path, row, new = run.begin_spawn(self._scope, name)
        if row is not None or new is None:
            found = run.decoded(None if row is None else row.value, SpawnValue, path)
            return GroupOfChildren(path, found.first_id, found.total)
        store, portions = context.store, Portions(calls, path)
        first = portions.take()
        most = total if total is not None else len(first) if portions.is_empty else _CHILDREN_MAX
        first_id: int = (yield Do(lambda: store.ids_reserve(most))) if most else 0
        answer: Spawned | None = None
        portion, sent = first, 0
        while answer is None or portion:
            start, sent = sent, sent + len(portion)
            if sent > most:
                raise too_many(sent)
            size = sent if portions.is_empty else most
            step = msgspec.structs.replace(new, value=encoded_group(first_id, size))
            answer = yield from self._send(
                Spawn(
                    step=step,
                    first_id=first_id,
                    total=size,
                    jobs=tuple(context.child_job(call, first_id + start + n) for n, call in enumerate(portion)),
                    closed=portions.is_empty,
                    detached=detached,
                    limit=limit,
                )
            )
            if not answer.created:
                break
            if answer.first_id != first_id:
                # An interrupted attempt has begun the group: the rest goes under its ids.
                first_id = answer.first_id
            portion = portions.take()
        assert answer is not None
        run.note_recorded(msgspec.structs.replace(new, value="null"), None)
        return GroupOfChildren(path, answer.first_id, answer.total)

    def _send(self, item: Spawn) -> Operation[Spawned]:
        answer: Spawned | CancelFound | DetentError = yield Do(lambda: self._context.store.workflow_spawn(item))
        if isinstance(answer, CancelFound):
            self._context.request_cancel()
            raise JobCancelled
        if isinstance(answer, DetentError):
            raise answer
        return answer

    # -- joining -----------------------------------------------------------------------------------------------

    def join(self, child: Child[Any], wait: bool) -> Operation[Any]:
        """Wait for one child; return its result."""
        if not isinstance(child, Child):
            raise InvalidInput("child", repr(child)[:80], "what ctx.spawn returned")
        if child.detached:
            raise InvalidInput("child", f"the detached child {child.name!r}", "a child that was not detached")
        counts = yield from self._join(child.path, f"child {child.name}", wait)
        return (yield from self._result(child, counts))

    def join_many(self, group: GroupOfChildren, tolerate: int | str, wait: bool) -> Operation[GroupOutcome]:
        """Wait for a group; return how it has ended."""
        most = tolerated(tolerate, group.total)
        if group.total == 0:
            return GroupOutcome(group, 0, 0, 0)
        counts = yield from self._join(group.path, f"{group.total:,} children of {group.path}", wait)
        failed = counts.failed + counts.dead
        if failed > most:
            child_id, state, error = yield Do(lambda: self._first_failure(group))
            raise ChildFailed(self._context.job_id, child_id, state, error, failed, group.total)
        return GroupOutcome(group, group.total, counts.succeeded, failed)

    def _join(self, path: str, words: str, wait: bool) -> Operation[Counts]:
        self._run.begin("join")
        on = (WaitOn("children", path, wait),)
        _, value = yield from WaitOperations(self._run, self._scope).wait(f"{path}~join", on, words, kind="join")
        counts: Counts = self._run.decoded(value, Counts, path)
        return counts

    def _result(self, child: Child[Any], counts: Counts) -> Operation[Any]:
        row = yield Do(lambda: self._context.store.job_get([child.id])[0])
        if row is None or counts.succeeded == 0:
            state, error = ("gone", None) if row is None else (row.state, row.error)
            raise ChildFailed(self._context.job_id, child.id, state, error)
        return self._decoded(row)

    def _decoded(self, row: JobRow | None) -> Any:
        if row is None or row.result is None:
            return None
        try:
            return self._context.find_task(row.task).decode_result(row.result)
        except UnknownTask:
            return json_codec.decode(row.result)

    def _first_failure(self, group: GroupOfChildren) -> tuple[int, str, str | None]:
        store = self._context.store
        for state in ("failed", "quarantined", "cancelled"):
            for child_id in store.child_list(self._context.job_id, path=group.path, state=state, limit=1):
                (row,) = store.job_get([child_id])
                return child_id, state, None if row is None else row.error
        return group.first_id, "not successful", None

    # -- reading -----------------------------------------------------------------------------------------------

    def results(self, group: GroupOfChildren) -> Iterator[Any]:
        """Return the results of the children that succeeded, page by page."""
        for row in self._pages(group, succeeded=True):
            yield self._decoded(row)

    def failures(self, group: GroupOfChildren) -> Iterator[Child[Any]]:
        """Return the children that did not succeed, page by page."""
        for row in self._pages(group, succeeded=False):
            yield Child(row.id, f"{group.path}[{row.id - group.first_id}]", group.path, row.task)

    def _pages(self, group: GroupOfChildren, *, succeeded: bool) -> Iterator[JobRow]:
        for start in range(group.first_id, group.first_id + group.total, _PORTION):
            ids = range(start, min(start + _PORTION, group.first_id + group.total))
            for row in self._context.store.job_get(ids):
                if row is not None and (row.state == "succeeded") is succeeded:
                    yield row

    # -- first of several --------------------------------------------------------------------------------------

    def first(self, waits: Sequence[Wait[Any]], timeout: Seconds | None) -> Operation[Arrival[Any]]:
        """Wait for whichever comes first."""
        if not waits:
            raise InvalidInput("waits", "none", "at least one of ctx.on(…) and ctx.ended(…)")
        words = " or ".join(f"signal {one.name}" if one.kind == "signal" else f"child {one.name}" for one in waits)
        on = [WaitOn("signal" if one.kind == "signal" else "children", one.name) for one in waits]
        lasts = None if timeout is None else seconds_of("timeout", timeout)
        self._run.begin("first")
        path, _ = self._run.ask(self._scope, "first")
        kind, value = yield from WaitOperations(self._run, self._scope).wait(
            path, on, words, timeout=lasts, kind="choice", chooses=True
        )
        chosen = json_codec.decode(value or "{}")
        if kind == "timeout" or chosen.get("n") is None:
            raise self._run.timed_out(words)
        wait = waits[chosen["n"]]
        if wait.kind == "signal":
            text = json_codec.encode(chosen["value"], field="value", size_max=2**26)
            return Arrival(wait, self._run.payload(text, wait.type, wait.name, path))
        counts = msgspec.convert(chosen["value"], Counts)
        child: Child[Any] = Child(wait.child_id or 0, wait.name, wait.name, "")
        return Arrival(wait, (yield from self._result(child, counts)))


def too_many(count: int) -> InvalidInput:
    """Return the refusal of a group that is too large."""
    return InvalidInput("calls", f"{count:,} children", f"at most {_CHILDREN_MAX:,} in a group")


def encoded_group(first_id: int, total: int) -> str:
    """Return the value of a step that spawns."""
    return json_codec.encode(SpawnValue(first_id, total), field="spawn", size_max=1000)


def tolerated(tolerate: int | str, total: int) -> int:
    """Return how many of `total` children may fail. `InvalidInput`."""
    if isinstance(tolerate, str) and tolerate.endswith("%"):
        try:
            share = float(tolerate[:-1])
        except ValueError:
            share = -1.0
        if 0 <= share <= 100:
            return int(total * share / 100)
    elif isinstance(tolerate, int) and not isinstance(tolerate, bool) and tolerate >= 0:
        return tolerate
    raise InvalidInput("tolerate", repr(tolerate)[:80], 'a number of children, or a share such as "5%"')
