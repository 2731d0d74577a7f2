"""Declaring workflows: their options, steps, local times, and what they wait for."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import FunctionType
from typing import Any, Generic, Literal, ParamSpec, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from detent.declare.probe import Probed
from detent.declare.task import AnyTask, check_seconds
from detent.errors import InvalidInput, InvalidSetting
from detent.model.backoff import Retry

__all__ = ["VERSION_MAX", "Local", "Seconds", "Step", "StepCall", "WorkflowOptions", "seconds_of", "versions_continued"]

P = ParamSpec("P")
T = TypeVar("T")

Seconds = float | timedelta
"""A duration: a number of seconds, or a timedelta."""

_LONGEST = 100 * 366 * 86_400.0
VERSION_MAX = 1_000_000
_NAME_MAX = 200
_RESERVED = "/#:~"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowOptions:
    """The options that a workflow has besides those of a task.

    - `version`: the version of the code; a workflow keeps the one under which it recorded its first step.
    - `supports`: versions that this code can continue; they contain `version`.
    - `drift`: `"refuse"` stops a workflow whose code no longer fits its record, `"report"` only says so.
    - `undo`: `"on_failure"` runs the undo of its steps when it fails for good or is cancelled, `"on_request"` only when
      asked.
    - `linger`: seconds that a short wait stays in its slot before it parks.
    """

    version: int = 1
    supports: tuple[int, ...] = ()
    drift: Literal["refuse", "report"] = "refuse"
    undo: Literal["on_failure", "on_request"] = "on_failure"
    linger: float = 0.05

    def __post_init__(self) -> None:
        _check_version("version", self.version)
        given: object = self.supports
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise InvalidSetting("supports", repr(given)[:80], "a tuple of versions such as (1, 2)")
        for one in self.supports:
            _check_version("supports", one)
        supports = tuple(sorted({*self.supports, self.version})) if not self.supports else tuple(self.supports)
        if self.version not in supports:
            found = f"{supports}, without version {self.version} itself"
            raise InvalidSetting("supports", found, "versions among which is the current one")
        object.__setattr__(self, "supports", supports)
        if self.drift not in ("refuse", "report"):
            raise InvalidSetting("drift", repr(self.drift)[:80], "'refuse' or 'report'")
        if self.undo not in ("on_failure", "on_request"):
            raise InvalidSetting("undo", repr(self.undo)[:80], "'on_failure' or 'on_request'")
        if isinstance(self.linger, bool) or not isinstance(self.linger, int | float) or not 0 <= self.linger <= 60:
            raise InvalidSetting("linger", repr(self.linger)[:80], "a number of seconds from 0 to 60")


def versions_continued(tasks: Mapping[str, AnyTask]) -> dict[str, tuple[int, ...]]:
    """Return the versions of workflows that this code can continue, by task."""
    return {name: task.workflow.supports for name, task in tasks.items() if task.workflow is not None}


def _check_version(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= VERSION_MAX:
        raise InvalidSetting(name, repr(value)[:80], f"a whole number from 1 to {VERSION_MAX:,}")


@dataclass(frozen=True)  # with slots, `Step[int]("charge")` raises in Python 3.11
class Step(Generic[T]):
    """A step of a workflow: its name, and how it is called.

    - `key`: tells steps of one name apart that may run at the same time, such as an id or a page number. It must not
      be a time or a random value: the next attempt has to come to the same key.
    - `retry`: retries of this step alone. Without it, an error that leaves the workflow's function ends the attempt,
      and the retry policy of the workflow counts; the next attempt continues with this step.
    - `timeout`: time limit of one call in seconds; for async functions only.
    - `undo`: a function of the step's value that undoes what the step has done. In an async workflow, `undo` and
      `probe` may be async.
    - `once`: do not call the step again if it is unknown whether its effect has happened. `probe`: a function with the
      arguments of the step that finds out, and returns a `Probed`.
    - `adapt`: converts a recorded value that no longer fits the declared type.
    - `lazy`: record the value together with the next step, without waiting; for cheap steps without effects.
    - `secret`: the recorded value is never shown.
    """

    name: str
    key: str | int | None = field(default=None, kw_only=True)
    retry: Retry | None = field(default=None, kw_only=True)
    timeout: float | None = field(default=None, kw_only=True)
    undo: Callable[[T], object] | None = field(default=None, kw_only=True)
    once: bool = field(default=False, kw_only=True)
    probe: Callable[..., Probed | Awaitable[Probed]] | None = field(default=None, kw_only=True)
    adapt: Callable[[Any], T] | None = field(default=None, kw_only=True)
    lazy: bool = field(default=False, kw_only=True)
    secret: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check_name("step", self.name)
        if self.key is not None and (isinstance(self.key, bool) or not isinstance(self.key, str | int)):
            raise InvalidInput("key", f"{self.key!r:.80} of step {self.name!r}", "a string or a whole number")
        if self.retry is not None and not isinstance(self.retry, Retry):
            raise InvalidInput("retry", repr(self.retry)[:80], "a policy such as Retry(3)")
        if self.timeout is not None:
            check_seconds("timeout", self.timeout)
        if self.probe is not None and not self.once:
            raise InvalidInput("probe", f"a probe of step {self.name!r}", "once=True together with probe")
        if self.lazy and (self.once or self.undo is not None):
            raise InvalidInput("lazy", f"a lazy step {self.name!r} with once or undo", "lazy for steps without effects")


class StepCall(Generic[T]):
    """A step that is described and not yet run, for `ctx.gather`."""

    __slots__ = ("args", "fn", "kwargs", "step")

    def __init__(self, step: str | Step[T], fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> None:
        self.step = as_step(step)
        self.fn = fn
        self.args = args
        self.kwargs = kwargs


@dataclass(frozen=True, slots=True)
class Local:
    """A local time in a time zone, such as `Local("2027-03-28 02:30", "Europe/Berlin")`.

    If the clocks skip that time, it is the first moment after the gap; if they show it twice, it is the first.
    """

    time: str | datetime
    zone: str

    def moment(self) -> datetime:
        """Return the moment in UTC. `InvalidInput`."""
        try:
            zone = ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise InvalidInput("zone", repr(self.zone)[:80], "a time zone such as Europe/Berlin") from None
        try:
            naive = self.time if isinstance(self.time, datetime) else datetime.fromisoformat(self.time)
        except (TypeError, ValueError):
            raise InvalidInput("time", repr(self.time)[:80], "a local time such as 2027-03-28 02:30") from None
        if naive.tzinfo is not None:
            raise InvalidInput("time", f"{naive}, which has a zone already", "a local time without a zone")
        first = naive.replace(tzinfo=zone, fold=0).astimezone(UTC)
        if first.astimezone(zone).replace(tzinfo=None) == naive:
            return first
        # The clocks skip this time. The change is between the two readings of it.
        low, high = naive.replace(tzinfo=zone, fold=1).astimezone(UTC), first
        before = low.astimezone(zone).utcoffset()
        while high - low > timedelta(microseconds=1):
            middle = low + (high - low) / 2
            low, high = (middle, high) if middle.astimezone(zone).utcoffset() == before else (low, middle)
        return high


def as_step(step: str | Step[T]) -> Step[T]:
    """Return a step that was given as a name or as a `Step`."""
    if isinstance(step, Step):
        return step
    if not isinstance(step, str):
        raise InvalidInput("step", repr(step)[:80], "a name, or a Step with more options")
    return _named_step(step)


@lru_cache(maxsize=4096)
def _named_step(name: str) -> Step[Any]:
    """Return a step that has only a name. A replay asks for the same ones again."""
    return Step(name)


def check_name(what: str, name: object) -> str:
    """Return the name of a step, scope, signal or child if it is allowed. `InvalidInput`."""
    if not isinstance(name, str) or not name or len(name.encode(errors="replace")) > _NAME_MAX:
        raise InvalidInput(f"name of a {what}", repr(name)[:80], f"text of 1 to {_NAME_MAX} bytes")
    if any(one in name for one in _RESERVED) or not name.isprintable():
        found = f"{name!r:.80}"
        raise InvalidInput(
            f"name of a {what}", found, f"printable text without {' '.join(_RESERVED)}; put data into key"
        )
    return name


def seconds_of(field_name: str, value: Seconds) -> float:
    """Return a duration in seconds. `InvalidInput` if it is negative, not finite or longer than a century."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= _LONGEST:
        raise InvalidInput(field_name, repr(value)[:80], "seconds or a timedelta, from 0 to a hundred years")
    return float(seconds)


def is_async(fn: Callable[..., Any]) -> bool:
    """Whether a function has to be awaited, also if it is wrapped in a partial or is an object with `__call__`."""
    if isinstance(fn, FunctionType):
        return inspect.iscoroutinefunction(fn)
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004
