"""A batch is a decorated dataclass whose methods find targets, and preview, apply and revert a change of each."""

from __future__ import annotations

import dataclasses
import hashlib
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec

from detent.declare.declaration import RunDeclaration, is_tolerance
from detent.declare.limit import Limit, check_cost, cost_within
from detent.declare.settings import Settings
from detent.declare.task import Options
from detent.errors import InvalidInput, InvalidPayload, InvalidSetting
from detent.model import json_codec
from detent.model.backoff import Retry

__all__ = ["Batch", "BatchMethods", "BatchOptions", "Change", "same"]

T = TypeVar("T")

_CHUNK_MAX = 10_000
_PAYLOAD_OVERHEAD = 1024
"""Bytes of the payload of an apply job beside its ref and its change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Generic[T]):
    """The change of a target: its value before and after. Both must be values that JSON can represent."""

    before: T
    after: T


class BatchMethods(Protocol):
    """The methods that a batch needs; any of them may be a coroutine. Optional: `revert(ctx, ref, change)`, which
    undoes one change, and `observe(ref)`, which returns the current value of a target."""

    def targets(self) -> Any:
        """Return the refs of all targets, as an iterable of strings; it may be a generator."""
        ...

    def preview(self, ref: str, /) -> Any:
        """Return the `Change` of one target, without changing anything."""
        ...

    def apply(self, ctx: Any, ref: str, change: Any, /) -> Any:
        """Apply the change of one target."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """The options of a batch, checked when it is declared."""

    queue: str = "default"
    priority: int = 0
    retry: Retry = field(default_factory=Retry)
    timeout: float | None = None
    idempotent: bool = True
    limit: Limit | None = None
    limit_key: str | Callable[[Any, str], str] | None = None
    cost: int | Callable[[Any, str], int] | None = None
    tolerate: float | None = None
    chunk: int = 500
    version: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.chunk, bool) or not isinstance(self.chunk, int) or not 1 <= self.chunk <= _CHUNK_MAX:
            raise InvalidSetting("chunk", repr(self.chunk)[:80], f"a whole number from 1 to {_CHUNK_MAX}")
        if not isinstance(self.version, str):
            raise InvalidSetting("version", repr(self.version)[:80], "a string")
        tolerated = self.tolerate
        if tolerated is not None and not is_tolerance(tolerated):
            allowed = "a count (tolerate=5), or a share below 1 (tolerate=0.02)"
            raise InvalidSetting("tolerate", repr(tolerated)[:80], allowed)
        self.for_tasks("", timeout=self.timeout, idempotent=self.idempotent)
        check_cost(self.cost, self.limit)

    def for_tasks(self, key: str, **more: Any) -> Options:
        """Return the options of one of its tasks. A limit is under the key of the batch, or the one that it names."""
        own = self.limit_key if isinstance(self.limit_key, str) else key
        if self.limit_key is not None and self.limit is None:
            raise InvalidSetting("limit_key", f"{self.limit_key!r} without a limit"[:80], "limit_key with limit")
        chosen: dict[str, Any] = {"queue": self.queue, "priority": self.priority, "retry": self.retry, **more}
        return Options(limit=self.limit, limit_key=own if self.limit is not None else None, **chosen)

    @property
    def tolerated(self) -> tuple[int | None, float | None]:
        """Number of targets, or share of them, that may fail without an alert."""
        if self.tolerate is None:
            return None, None
        return (self.tolerate, None) if isinstance(self.tolerate, int) else (None, self.tolerate)


class Batch(RunDeclaration):
    """A declared batch: its class, its options, and how its values are stored."""

    noun = "batch"
    methods: ClassVar = {
        "targets": ("targets(self)", True),
        "preview": ("preview(self, ref)", True),
        "apply": ("apply(self, ctx, ref, change)", True),
        "revert": ("revert(self, ctx, ref, change)", False),
        "observe": ("observe(self, ref)", False),
    }

    def __init__(
        self, kind: type[Any], *, name: str | None, aliases: Sequence[str], options: BatchOptions, settings: Settings
    ) -> None:
        name_max = settings.name_max - len(".reconcile")
        super().__init__(kind, name, name_max, settings)
        self.aliases = tuple(aliases)
        self.options = options
        for alias in self.aliases:
            json_codec.text(alias, field="batch name", bytes_max=name_max)

    @property
    def reverts(self) -> bool:
        """Whether a run can be rolled back."""
        return self.method("revert") is not None

    @property
    def observes(self) -> bool:
        """Whether targets can be compared with what was applied."""
        return self.method("observe") is not None

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the name, the fields and the version: it tells one declaration of a batch from another."""
        shape = [(one.name, str(one.type)) for one in dataclasses.fields(self.kind)]
        return hashlib.sha256(msgspec.json.encode([self.name, self.options.version, shape])).hexdigest()[:32]

    def encode_change(self, ref: str, change: object) -> tuple[str, str, bool]:
        """Return before and after as they are stored, and whether they differ. `InvalidPayload`."""
        if not isinstance(change, Change):
            raise InvalidPayload(f"preview of {ref!r:.80}", f"a value of type {type(change).__name__}", "a Change")
        before, after = (self._encode(f"{name} of {ref!r:.80}", getattr(change, name)) for name in ("before", "after"))
        size = len(before.encode()) + len(after.encode()) + len(ref.encode()) + _PAYLOAD_OVERHEAD
        if size > self._settings.payload_max:
            most = f"less than {self._settings.payload_max} bytes together (payload_max)"
            raise InvalidPayload(f"change of {ref!r:.80}", f"{size} bytes of before and after", most)
        return before, after, not same(before, after)

    def encode_observed(self, ref: str, value: object) -> str:
        """Return the observed value of a target as it is stored. `InvalidPayload`."""
        return self._encode(f"observed of {ref!r:.80}", value)

    def change(self, before: Any, after: Any) -> Change[Any]:
        """Return a stored change, typed by the return annotation of `preview`, such as `Change[Price]`."""
        hint = self._value_type
        if hint is Any:
            return Change(before=before, after=after)
        return Change(before=json_codec.convert(before, hint), after=json_codec.convert(after, hint))

    def limit_key_of(self, value: Any, ref: str) -> str | None:
        """Return the key of a target's own limit; None if it is under the limit of the batch. `InvalidInput`."""
        if not callable(self.options.limit_key):
            return None
        try:
            key: object = self.options.limit_key(value, ref)
        except Exception as error:
            found = f"a function that raised {type(error).__name__}: {error}"[:200]
            raise InvalidInput("limit_key", found, "a function of the batch and a ref that returns a string") from error
        return json_codec.text(typing.cast(str, key), field="limit_key", bytes_max=self._settings.name_max)

    def cost_of(self, value: Any, ref: str) -> int | None:
        """Return how many tokens applying or reverting a target takes; None is one. `InvalidInput`."""
        cost, limit = self.options.cost, self.options.limit
        if cost is None or limit is None:
            return None
        found: object = cost
        if callable(cost):
            try:
                found = cost(value, ref)
            except Exception as error:
                raised = f"a function that raised {type(error).__name__}: {error}"[:200]
                raise InvalidInput("cost", raised, "a function of the batch and a ref that returns a number") from error
        return None if (tokens := cost_within(found, limit)) == 1 else tokens

    @cached_property
    def _value_type(self) -> Any:
        try:
            found = typing.get_type_hints(self.kind.preview).get("return", Any)
        except NameError:
            return Any
        if typing.get_origin(found) is not Change:
            return Any
        (hint,) = typing.get_args(found)
        return Any if isinstance(hint, TypeVar) else hint


def same(one: str, other: str) -> bool:
    """Whether two stored JSON values are equal, whatever the order of their keys."""
    return one == other or json_codec.fingerprint("", one) == json_codec.fingerprint("", other)
