"""The context of a real attempt: its lines and its commit go straight to the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from detent.client.client import one
from detent.declare.enqueue import Sending, new_job
from detent.declare.settings import Settings
from detent.declare.task import Call, Task
from detent.errors import InvalidInput
from detent.model import jsondoor
from detent.model.ids import Ids
from detent.model.records import Claimed, NewEvent
from detent.model.sanitize import message_text
from detent.store.contract import Store, Tx

__all__ = ["AttemptContext"]

_LEVELS = ("debug", "info", "warning", "error")


class AttemptContext:
    """One attempt at a job, held under its lease. See `Context` for what each name promises."""

    def __init__(self, claimed: Claimed, task: Task[..., Any], store: Store, ids: Ids, settings: Settings) -> None:
        self._claimed = claimed
        self._task = task
        self._store = store
        self._ids = ids
        self._settings = settings
        self.committed = False

    @property
    def job_id(self) -> int:
        return self._claimed.job_id

    @property
    def attempt(self) -> int:
        return self._claimed.attempt

    @property
    def tenant(self) -> str:
        return self._claimed.tenant

    @property
    def effect_key(self) -> str:
        return f"{self._claimed.tenant}/job/{self._claimed.job_id}"

    @property
    def correlation_id(self) -> str | None:
        return self._claimed.correlation_id

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        found: dict[str, Any] = {} if self._claimed.metadata is None else jsondoor.decode(self._claimed.metadata)
        return found

    @property
    def cancelled(self) -> bool:
        (row,) = self._store.job_get([self.job_id])
        return row is not None and row.cancel_requested_at is not None

    def event(self, message: str, /, *, level: str = "info", key: str | None = None, **payload: Any) -> None:
        if level not in _LEVELS:
            raise InvalidInput("level", repr(level), ", ".join(_LEVELS))
        text = jsondoor.encode(payload, field="event", size_max=self._settings.event_max) if payload else None
        if key is not None:
            jsondoor.text(key, field="event key", bytes_max=self._settings.key_max)
        line = NewEvent(
            job_id=self.job_id,
            attempt=self.attempt,
            level=level,
            message=message_text(message, bytes_max=self._settings.event_max),
            payload=text,
            key=key,
        )
        one(self._store.event_append([line])[0])

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        payload: dict[str, Any] = {"done": done} if total is None else {"done": done, "total": total}
        self.event(message or "progress", **payload)

    def commit(self) -> AbstractContextManager[Block]:
        return self._commit()

    @contextmanager
    def _commit(self) -> Iterator[Block]:
        with self._store.commit_block(self.job_id, self.attempt) as tx:
            yield Block(tx, self)
        self.committed = True

    def intent(self, call: Call[Any], key: str | None, number: int) -> Any:
        """The job of an intent: under a key that every attempt would make again."""
        sending = Sending(
            key=key or f"{self.effect_key}/{call.task.name}/{number}"[: self._settings.key_max],
            tenant=self.tenant,
            correlation_id=self.correlation_id or str(self.job_id),
        )
        job = new_job(call, sending, settings=self._settings)
        return replace(job, id=self._ids.take(1)[0], nonce=self._ids.nonce())

    def encode_result(self, value: object) -> str | None:
        """A result as its task stores it."""
        return self._task.encode_result(value)


class Block:
    """The open commit boundary. See `CommitBlock` for what each name promises."""

    def __init__(self, tx: Tx, context: AttemptContext) -> None:
        self._tx = tx
        self._context = context
        self._intents = 0

    @property
    def connection(self) -> Any:
        return self._tx.connection

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> tuple[list[tuple[Any, ...]], int]:
        return self._tx.execute(sql, params)

    def intend(self, call: Call[Any], *, key: str | None = None) -> None:
        self._intents += 1
        self._tx.intend(self._context.intent(call, key, self._intents))

    def result(self, value: object) -> None:
        text = self._context.encode_result(value)
        if text is not None:
            self._tx.result(text)
