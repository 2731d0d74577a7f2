"""Calls with hostile arguments: what is sent, to which verb, and what came back.

The verbs are those that the HTTP API has (`list_verbs`), so a new one is tried without being listed. About half of the
arguments of a call are good, so that the others get past the first check.
"""

from __future__ import annotations

import inspect
import signal
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
import psycopg

from detent.app.detent import Detent
from detent.app.jobs import Jobs
from detent.declare.limit import Limit
from detent.errors import DetentError
from detent.http.api import list_verbs
from detent.http.arguments import arguments_of
from detent.http.bodies import answer_of, encode
from detent.http.special_verbs import EnqueueArguments
from detent.http.verbs import Verb
from prove.hostile.values import Values
from prove.hostile.world import World

__all__ = ["VERBS", "Call", "Verdict", "argument", "hostile", "python_call", "timed"]

VERBS = [verb for verb in list_verbs() if (verb.noun, verb.name) not in {("record", "verify"), ("record", "repair")}]
"""Those two read the whole database; `the end of a round` calls the first of them."""
_RANDOM_ANSWERS = {"tokens", "webhooks", "identities", "workers", "ops"}
"""Their answers hold secrets, or the time of the machine."""
_CPU_MAX, _WALL_MAX = 1.0, 60.0
"""A call that needs more seconds of the processor, or waits for longer, hangs."""
_CLIP = 160
_DOORS = ("Python, values of other types", "Python")
_NUMBERS = {
    *(
        "limit",
        "priority",
        "key_ttl",
        "debounce",
        "concurrency",
        "rate",
        "per",
        "burst",
        "expires_in",
        "count",
        "window",
    ),
    *(
        "seconds",
        "stale_after",
        "hours",
        "minutes",
        "days",
        "older_than",
        "timeout",
        "version",
        "n",
        "lease",
        "to_priority",
    ),
}
_TIMES = {"due_at", "expires_at", "since", "until", "at", "when", "before"}
_JSON = {"payload", "metadata", "result", "start", "facts", "filter", "options", "only"}
_IDS = {"job_id", "run_id", "operation_id", "worker_id", "run", "alert_id", "lease_id", "parent"}


class Verdict(NamedTuple):
    """What came of a call: whether it was accepted, and what was said, which must be the same on both databases."""

    accepted: bool
    said: str
    wrong: str = ""
    """Why no answer may be like that; empty if it may."""


@dataclass(frozen=True)
class Call:
    """A call through one door. `send` may be repeated on any world."""

    door: str
    text: str
    """What is sent, for the story."""
    send: Callable[[World], Verdict]


def clipped(value: Any) -> str:
    """Return a value as a short text, whatever it is."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _CLIP else f"{text[:_CLIP]}… ({len(text)} characters)"


def good(name: str, ids: dict[str, str], values: Values) -> Any:
    """Return a value that fits an argument of this name, or None if none is known."""
    known: dict[str, tuple[Any, ...]] = {
        "job_id": (ids["done"], ids["dead"], ids["waiting"], ids["pending"]),
        "run_id": (ids["run"],),
        "run": (ids["ops"], ids["run"]),
        "operation_id": (ids["operation"],),
        "name": ("mail", "default", "nightly", "reprice", "job", "decision"),
        "key": ("done", "dead", "waiting", "mail", "new"),
        "task": ("add", "say", "approve"),
        "payload": ({"a": 1, "b": 2}, {}, {"text": "x"}),
        "json_text": ('{"a":1,"b":2}', "{}"),
        "state": ("pending", "succeeded", "quarantined", "applied"),
        "queue": ("mail", "default"),
        "tenant": ("acme", ""),
        "limit": (1, 100),
        "reason": ("why",),
        "cron": ("* * * * *",),
        "zone": ("UTC", "Europe/Berlin"),
        "role": ("viewer", "admin"),
        "catch_up": ("latest", "all", "none"),
        "project_id": ("shop",),
        "env": ("prod",),
        "to_queue": ("mail",),
        "trigger": ("cancel",),
        "entity_id": (ids["done"],),
        "status": ("success", "failed"),
        "worker": ("w1",),
        "event": ("step",),
        "done": (True, False),
    }
    return values.one(known[name]) if name in known else None


def hostile(name: str, values: Values, *, as_text: bool = False) -> Any:
    """Draw a value that an argument of this name should not have. `as_text`: from a program that has text only."""
    if name == "cron":
        return values.cron()
    if name == "zone":
        return values.zone()
    if name == "after":
        return values.cursor()
    if name in _IDS:
        return values.number_text() if as_text or values.random.random() < 0.5 else values.number()
    if name in _TIMES:
        return values.time_text() if as_text else values.time()
    if name in _NUMBERS:
        return values.number_text() if as_text else values.number()
    if name == "json_text" or (name in _JSON and as_text):
        return values.json_text()
    if name in _JSON:
        return values.nested() if values.random.random() < 0.3 else {values.text(): values.nested()}
    return values.text()


def argument(name: str, ids: dict[str, str], values: Values) -> Any:
    """Draw an argument of Python: a good one, one that it should not have, or one of any type."""
    chance = values.random.random()
    if chance < 0.5 and (found := good(name, ids, values)) is not None:
        return found
    return hostile(name, values) if chance < 0.9 else values.anything()


def fits(kind: Any, value: Any) -> bool:
    """Return whether a value is of a declared type, as a type checker would say."""
    try:
        msgspec.convert(value, kind)
    except Exception:  # of any class: the value is of any class, too
        return False
    return True


def all_fit(kind: type[msgspec.Struct], given: dict[str, Any]) -> bool:
    """Return whether all arguments are of their declared types."""
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}
    return all(fits(types.get(name, str | None), value) for name, value in given.items())


def python_call(values: Values, ids: dict[str, str]) -> Call:
    """Draw a call of a method of Python."""
    if values.random.random() < 0.45:
        return _of_special(values, ids)
    verb = values.one(_PLAIN)
    places = {name: argument(name, ids, values) for name in _places(verb)}
    given = SimpleNamespace(
        **{
            field.name: argument(field.name, ids, values)
            for field in msgspec.structs.fields(verb.arguments)
            if field.required or values.random.random() < 0.4
        }
    )
    fields = {field.name: field.default for field in msgspec.structs.fields(verb.arguments) if not field.required}
    for name, default in fields.items():
        if not hasattr(given, name):
            setattr(given, name, default)

    typed = all_fit(verb.arguments, vars(given)) and all(fits(str | int, value) for value in places.values())

    def send(world: World) -> Verdict:
        return _verdict(verb, lambda: verb.call(world.app, places, SimpleNamespace(**vars(given))), typed=typed)

    return Call(_DOORS[typed], f"{verb.noun}.{verb.name}({clipped(places)}, {clipped(vars(given))})", send)


def _places(verb: Verb) -> list[str]:
    return [part.strip("{}").partition(":")[0] for part in verb.path.split("/") if part.startswith("{")]


_SPECIAL = inspect.getmodule(next(verb for verb in VERBS if verb.name == "bulk_cancel").call)
_PLAIN = [verb for verb in VERBS if inspect.getmodule(verb.call) is not _SPECIAL]
"""The verbs whose HTTP form calls the method of Python with the arguments as they are."""


def _of_special(values: Values, ids: dict[str, str]) -> Call:
    """Draw a call of a method whose HTTP form differs from that of Python."""
    chosen = values.one(tuple(_SPECIAL_CALLS))
    kind, act = _SPECIAL_CALLS[chosen]
    given = {
        field.name: argument(field.name, ids, values)
        for field in msgspec.structs.fields(kind)
        if field.required or values.random.random() < 0.25
    }
    typed = all_fit(kind, given)
    return Call(
        _DOORS[typed],
        f"{chosen}({clipped(given)})",
        lambda world: _verdict(None, lambda: act(world.app, dict(given)), typed=typed),
    )


def _sending(*required: tuple[str, Any]) -> type[msgspec.Struct]:
    """Return the arguments of an enqueue, besides those."""
    options = [
        (field.name, field.type, None)
        for field in msgspec.structs.fields(EnqueueArguments)
        if field.name not in ("task", "payload")
    ]
    return msgspec.defstruct("Sending", [*required, *options], kw_only=True)


class _Signal(msgspec.Struct, kw_only=True):
    key: str
    name: str
    payload: Any
    tenant: str = ""
    dedupe: str | None = None
    reason: str | None = None
    actor: str | None = None


class _Schedule(msgspec.Struct, kw_only=True):
    name: str
    cron: str
    zone: str = "UTC"
    catch_up: str = "latest"
    tenant: str = ""
    queue: str | None = None
    priority: int | None = None
    reason: str | None = None
    actor: str | None = None


class _Limit(msgspec.Struct, kw_only=True):
    name: str
    concurrency: int | None = None
    rate: float | None = None
    per: float = 1.0
    burst: float | None = None


class _Preview(msgspec.Struct, kw_only=True):
    name: str
    json_text: str
    tenant: str = ""
    reason: str | None = None


def _set_schedule(app: Detent, given: dict[str, Any]) -> Any:
    return app.schedules.set(given.pop("name"), given.pop("cron"), app.call_named("say", "{}"), **given)


_FILTERS = arguments_of("Filters", Jobs.where, without=())
_SPECIAL_CALLS: dict[str, tuple[type[msgspec.Struct], Callable[[Detent, dict[str, Any]], Any]]] = {
    "enqueue_named": (
        _sending(("task", str), ("json_text", str)),
        lambda app, given: app.enqueue_named(given.pop("task"), given.pop("json_text"), **given),
    ),
    "enqueue": (
        _sending(("payload", Any)),
        lambda app, given: app.enqueue(app.find_task("say").call(given.pop("payload")), **given),
    ),
    "enqueue_many": (
        _sending(("payload", Any)),
        lambda app, given: app.enqueue_many(
            [app.find_task("say").call(1), app.find_task("say").call(given.pop("payload"))], **given
        ),
    ),
    "schedules.set": (_Schedule, _set_schedule),
    "queues.limit": (_Limit, lambda app, given: app.queues.limit(given.pop("name"), Limit(**given))),
    "workflows.signal": (
        _Signal,
        lambda app, given: app.workflows.signal(given.pop("key"), given.pop("name"), given.pop("payload"), **given),
    ),
    "runs.preview_named": (
        _Preview,
        lambda app, given: app.runs.preview_named(given.pop("name"), given.pop("json_text"), **given),
    ),
    "jobs.where.count": (_FILTERS, lambda app, given: app.jobs.where(**given).count()),
    "jobs.where.move": (_FILTERS, lambda app, given: app.jobs.where(**given).move(queue="mail")),
}
"""By what they are called: the arguments, and the call."""


def _verdict(verb: Verb | None, act: Callable[[], Any], *, typed: bool) -> Verdict:
    """Return what came of it. A value of another type than is declared is a mistake of the program. Python may refuse
    it, too; the drivers of the databases may not."""
    try:
        found = act()
    except DetentError as error:
        return Verdict(False, f"{type(error).__name__}: {error}" if typed else "")
    except Exception as error:
        if not typed and not isinstance(error, sqlite3.Error | psycopg.Error):
            return Verdict(False, "")
        return Verdict(False, f"{type(error).__name__}", f"raised {type(error).__name__}: {clipped(str(error))}")
    if not typed:
        return Verdict(True, "")
    if verb is None or verb.noun in _RANDOM_ANSWERS:
        return Verdict(True, type(found).__name__)
    return Verdict(True, clipped(encode(answer_of(verb.name, found, may_be_null=True)).decode()))


def timed(call: Call, world: World) -> tuple[Verdict, bool]:
    """Send a call. Return what came of it, and whether it hung."""
    cpu = time.process_time()
    signal.setitimer(signal.ITIMER_REAL, _WALL_MAX)
    try:
        verdict = call.send(world)
    except _Hung:
        return Verdict(False, ""), True
    except Exception as error:
        broken = f"the door broke down: {type(error).__name__}: {clipped(str(error))}"
        verdict = Verdict(False, type(error).__name__, broken)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return verdict, time.process_time() - cpu > _CPU_MAX


class _Hung(BaseException):
    """A call takes too long. No handler of errors may take this for an answer."""


def _raise_hung(_number: int, _frame: Any) -> None:
    raise _Hung


signal.signal(signal.SIGALRM, _raise_hung)
