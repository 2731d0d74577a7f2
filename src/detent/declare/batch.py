"""A batch is a decorated dataclass whose methods find targets, and preview, apply and revert a change of each."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import math
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from detent.declare.cost import check_cost, cost_within
from detent.declare.fields import refuse_unknown
from detent.declare.limit import Limit
from detent.declare.settings import Settings
from detent.declare.task import Options, name_of
from detent.errors import InvalidArguments, InvalidInput, InvalidPayload, InvalidSetting
from detent.model import jsondoor
from detent.model.backoff import Retry

__all__ = ["Batch", "BatchMethods", "BatchOptions", "Change", "same"]

T = TypeVar("T")

_CHUNK_MAX = 10_000
_ROOM_FOR_WORDS = 1024
"""Bytes of an apply job's payload around its ref and its change."""


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
        """Make one change."""
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
            raise InvalidSetting("version", repr(self.version)[:80], "a text")
        tolerated = self.tolerate
        if tolerated is not None and not _is_tolerable(tolerated):
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


class Batch:
    """A declared batch: its class, its options, and the encoding of its values.

    `InvalidSetting` at declaration if the class is no dataclass, lacks a method, has one with the wrong parameters, or
    has fields that JSON cannot represent.
    """

    def __init__(
        self, kind: type[Any], *, name: str | None, aliases: Sequence[str], options: BatchOptions, settings: Settings
    ) -> None:
        self.kind = kind
        self.name = name_of(kind) if name is None else name
        self.aliases = tuple(aliases)
        self.options = options
        self._settings = settings
        for one in (self.name, *self.aliases):
            jsondoor.text(one, field="batch name", bytes_max=settings.name_max - len(".reconcile"))
        if not isinstance(kind, type) or not dataclasses.is_dataclass(kind):
            raise InvalidSetting(self.name, f"{kind!r:.80}, which is no dataclass", "@app.batch above @dataclass")
        for method, (asked, needed) in _METHODS.items():
            _check_method(self.name, kind, method, asked, needed)
        self._check_fields()

    def __repr__(self) -> str:
        return f"<Batch {self.name}>"

    @property
    def reverts(self) -> bool:
        """Whether it can be rolled back."""
        return hasattr(self.kind, "revert")

    @property
    def observes(self) -> bool:
        """Whether the world can be compared with what was applied."""
        return hasattr(self.kind, "observe")

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the declaration: its fields and its version."""
        shape = [(one.name, str(one.type)) for one in dataclasses.fields(self.kind)]
        return hashlib.sha256(msgspec.json.encode([self.name, self.options.version, shape])).hexdigest()[:32]

    def encode(self, value: Any) -> str:
        """Return the fields of a batch as they are stored. `InvalidArguments` if they do not fit their annotations."""
        settings = self._settings
        text = jsondoor.encode(value, field=self.name, size_max=settings.payload_max, depth_max=settings.depth_max)
        self.decode(text)
        return text

    def decode(self, payload: str) -> Any:
        """Return a stored batch. `InvalidArguments` if its fields no longer fit."""
        try:
            return jsondoor.decode(payload, self.kind, field=self.name, depth_max=self._settings.depth_max)
        except InvalidPayload as error:
            raise InvalidArguments(error.field, error.found, error.allowed) from None

    def told(self, text: str) -> Any:
        """Return a batch from JSON text that a person wrote. `InvalidArguments` if a field does not fit or is
        unknown."""
        value = self.decode(text)
        refuse_unknown(self.kind, self.name, text)
        return value

    def encode_change(self, ref: str, change: object) -> tuple[str, str, bool]:
        """Return before and after as they are stored, and whether they differ. `InvalidPayload`."""
        if not isinstance(change, Change):
            raise InvalidPayload(f"preview of {ref!r:.80}", f"a value of type {type(change).__name__}", "a Change")
        before, after = (self._encode(ref, name, getattr(change, name)) for name in ("before", "after"))
        size = len(before.encode()) + len(after.encode()) + len(ref.encode()) + _ROOM_FOR_WORDS
        if size > self._settings.payload_max:
            most = f"less than {self._settings.payload_max} bytes together (payload_max)"
            raise InvalidPayload(f"change of {ref!r:.80}", f"{size} bytes of before and after", most)
        return before, after, not same(before, after)

    def encode_observed(self, ref: str, value: object) -> str:
        """Return the observed value of a target as it is stored. `InvalidPayload`."""
        return self._encode(ref, "observed", value)

    def change(self, before: Any, after: Any) -> Change[Any]:
        """Return a stored change, typed by the return annotation of `preview`, such as `Change[Price]`."""
        hint = self._value_type
        if hint is Any:
            return Change(before=before, after=after)
        return Change(before=msgspec.convert(before, hint), after=msgspec.convert(after, hint))

    def limit_key_of(self, value: Any, ref: str) -> str | None:
        """Return the key of a target's own limit; None if it is under the limit of the batch. `InvalidInput`."""
        if not callable(self.options.limit_key):
            return None
        try:
            key: object = self.options.limit_key(value, ref)
        except Exception as error:
            found = f"its function raised {type(error).__name__}: {error}"[:200]
            raise InvalidInput("limit_key", found, "a function of the batch and a ref that gives a text") from error
        return jsondoor.text(typing.cast(str, key), field="limit_key", bytes_max=self._settings.name_max)

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
                said = f"its function raised {type(error).__name__}: {error}"[:200]
                raise InvalidInput("cost", said, "a function of the batch and a ref that gives a number") from error
        return None if (tokens := cost_within(found, limit)) == 1 else tokens

    def _encode(self, ref: str, what: str, value: object) -> str:
        settings = self._settings
        return jsondoor.encode(
            value, field=f"{what} of {ref!r:.80}", size_max=settings.payload_max, depth_max=settings.depth_max
        )

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

    def _check_fields(self) -> None:
        try:
            msgspec.json.Decoder(self.kind)
        except (TypeError, NameError) as error:
            raise InvalidSetting(self.name, f"a field that JSON cannot carry: {error}"[:300], _CARRIED) from None


def same(one: str, other: str) -> bool:
    """Whether two stored values are equal, whatever the order of their keys."""
    return one == other or jsondoor.fingerprint("", one) == jsondoor.fingerprint("", other)


_CARRIED = "types at module level that JSON can tell apart: numbers, strings, lists, dicts, dates, enums and the like"
_METHODS = {
    "targets": ("targets(self)", True),
    "preview": ("preview(self, ref)", True),
    "apply": ("apply(self, ctx, ref, change)", True),
    "revert": ("revert(self, ctx, ref, change)", False),
    "observe": ("observe(self, ref)", False),
}


def _check_method(name: str, kind: type[Any], method: str, asked: str, needed: bool) -> None:
    found = getattr(kind, method, None)
    if found is None and not needed:
        return
    if not callable(found):
        raise InvalidSetting(name, f"a batch without {method}", asked)
    try:
        inspect.signature(found).bind(*([None] * len(asked.split(","))))
    except TypeError as error:
        raise InvalidSetting(name, f"{method}{inspect.signature(found)}: {error}"[:200], asked) from None


def _is_tolerable(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= 0 if isinstance(value, int) else math.isfinite(value) and 0 <= value < 1
