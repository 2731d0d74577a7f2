"""The verbs of the HTTP API, read from the Python surface.

A method of a noun becomes a path: `app.queues.pause(name)` is `POST /api/v1/queues/{name}/pause`, `app.jobs.list(…)` is
`GET /api/v1/jobs`, and `job.why()` is `GET /api/v1/jobs/{job_id}/why`. Verbs whose arguments have no JSON form are
written by hand in `special_verbs`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, get_overloads, get_type_hints

import msgspec

from detent.app.alerts import Alerts, Policies
from detent.app.batch_run import BatchRun
from detent.app.detent import Detent
from detent.app.jobs import DeadJobs, Jobs, Operations
from detent.app.lifecycles import Lifecycles
from detent.app.pipeline_run import PipelineRun
from detent.app.queues import Limits, Queues
from detent.app.record import Identities, Record
from detent.app.runs import Runs, Watermarks
from detent.app.schedules import Schedules
from detent.app.tokens import Tokens
from detent.app.webhooks import Webhooks
from detent.app.workers import Worker, Workers
from detent.app.workflows import Workflows
from detent.client.job import Job
from detent.client.operation import Operation
from detent.errors import InvalidInput
from detent.http.arguments import NO_ARGUMENTS, arguments_of
from detent.ops.ops import Ops

__all__ = ["APPLICATION_VERBS", "LEFT_OUT", "WORKFLOW_VERBS", "Verb", "surface_verbs"]

Call = Callable[[Detent, dict[str, str], SimpleNamespace], Any]
"""Takes the ids of the path, and the arguments."""


class Verb(msgspec.Struct, frozen=True, kw_only=True):
    """One verb: where it is found, what it takes, what it calls and what it returns."""

    noun: str
    name: str
    path: str
    """Below `/api/v1`."""
    changes: bool
    """Whether it is a POST with a body. Otherwise it is a GET with a query."""
    arguments: type[msgspec.Struct]
    """What the query of a GET holds, or the body of a POST."""
    call: Call
    returns: Any
    summary: str
    makes_new: bool = False
    """Whether it answers 201 if it created something."""
    filters: type[msgspec.Struct] = NO_ARGUMENTS
    """What the query of a POST holds."""


_NOUNS: tuple[tuple[str, str, type[Any]], ...] = (
    ("jobs", "jobs", Jobs),
    ("dead", "dead", DeadJobs),
    ("queues", "queues", Queues),
    ("limits", "limits", Limits),
    ("schedules", "schedules", Schedules),
    ("workers", "workers", Workers),
    ("operations", "operations", Operations),
    ("runs", "runs", Runs),
    ("watermarks", "watermarks", Watermarks),
    ("workflows", "workflows", Workflows),
    ("alerts/policies", "alerts.policies", Policies),
    ("alerts", "alerts", Alerts),
    ("ops", "ops", Ops),
    ("lifecycles", "lifecycles", Lifecycles),
    ("identities", "identities", Identities),
    ("record", "record", Record),
    ("tokens", "tokens", Tokens),
    ("webhooks", "webhooks", Webhooks),
)
"""Path, attribute of the application, class."""

APPLICATION_VERBS = ("figures", "rates")
"""Verbs of the application that read and belong to no noun."""

_HANDLES: tuple[tuple[str, type[Any]], ...] = (
    ("jobs", Job),
    ("operations", Operation),
    ("runs", BatchRun),
    ("runs", PipelineRun),
    ("workers", Worker),
)

WORKFLOW_VERBS = frozenset({"fork", "preview_undo", "rewind", "signal", "steps", "stream", "tree", "undo"})
"""Verbs of the handle of a job that are found under `workflows`, since other jobs have nothing of the kind."""

_IDS = {"job_id", "name", "key", "alert_id", "operation_id", "run", "run_id", "worker_id"}
"""Arguments that say which one is meant: they are part of the path."""

_CHANGING = {("alerts", "judge"), ("alerts", "test"), ("ops", "claim"), ("ops", "event")} | {
    ("ops", "queue"), ("ops", "renew"), ("record", "repair")
}  # fmt: skip
"""Verbs without an actor that change something all the same."""

LEFT_OUT = {
    ("jobs", "refresh"): "every request reads anew",
    ("jobs", "wait"): "read the job, or follow the stream",
    ("lifecycles", "attach"): "declared in code",
    ("operations", "refresh"): "every request reads anew",
    ("operations", "step"): "workers carry operations out",
    ("operations", "wait"): "read the operation",
    ("runs", "newer_runs"): "`roll-back` refuses and names them",
    ("runs", "refresh"): "every request reads anew",
    ("runs", "wait"): "read the run",
    ("runs", "events"): "the jobs of its targets have them",
    ("runs", "export"): "`changes`, page by page",
    ("workflows", "check"): "a server can only check the code that it runs",
    ("runs", "targets"): "`changes`",
    ("schedules", "left"): "what is declared in code",
    ("schedules", "origins"): "what is declared in code",
    ("ops", "follow"): "`events`",
    ("workers", "refresh"): "every request reads anew",
}
"""Verbs that need no path, and why."""

SPECIAL = {
    ("jobs", "where"), ("jobs", "events"), ("jobs", "replace"), ("queues", "limit"), ("schedules", "set"),
    ("runs", "preview"), ("runs", "preview_named"), ("runs", "start"), ("runs", "start_named"), ("runs", "changes"),
    ("runs", "partitions"),
    ("lifecycles", "move"), ("lifecycles", "history"), ("workflows", "signal"), ("jobs", "stream"),
}  # fmt: skip
"""Verbs that `special_verbs` has."""


def surface_verbs() -> Iterator[Verb]:
    """Yield the verbs that follow from the signatures. Those of a collection come before those of one thing, so that
    `jobs/counts` is not taken for a job."""
    found = [*_application_verbs(), *_noun_verbs(), *_handle_verbs()]
    return iter(sorted(found, key=lambda verb: "{" in verb.path))


def _application_verbs() -> Iterator[Verb]:
    """Yield the verbs of the application itself: `app.figures()` is `GET /api/v1/figures`."""
    for name in APPLICATION_VERBS:
        method = getattr(Detent, name)
        yield Verb(
            noun=name,
            name="get",
            path=f"/{name}",
            changes=False,
            arguments=arguments_of(_title(name, "get"), method, without=()),
            call=_application_call(name),
            returns=get_type_hints(method)["return"],
            summary=_summary(method),
        )


def _noun_verbs() -> Iterator[Verb]:
    for path, attribute, kind in _NOUNS:
        noun = path.replace("/", " ")
        for name, method in _public_methods(kind):
            if (noun, name) in LEFT_OUT or (noun, name) in SPECIAL:
                continue
            parameters = [one for one in inspect.signature(method).parameters if one != "self"]
            id_name = parameters[0] if parameters and parameters[0] in _IDS and name != "list" else None
            yield Verb(
                noun=noun,
                name=name,
                path=_path(path, id_name, "" if name in ("list", "get") else name),
                changes=("actor" in parameters and name != "search") or (noun, name) in _CHANGING,
                arguments=arguments_of(
                    _title(noun, name),
                    method,
                    without={"actor", id_name or ""} - ({"actor"} if name == "search" else set()),
                ),
                call=_noun_call(attribute, name, id_name),
                returns=_returned(method),
                summary=_summary(method),
                makes_new=(noun, name) in (("ops", "queue"), ("tokens", "create")),
            )


def _handle_verbs() -> Iterator[Verb]:
    shared: dict[tuple[str, str], list[type[Any]]] = {}
    for noun, kind in _HANDLES:
        for name, _ in _public_methods(kind):
            shared.setdefault((noun, name), []).append(kind)
    for (noun, name), kinds in shared.items():
        if (noun, name) in LEFT_OUT or (noun, name) in SPECIAL:
            continue
        method = getattr(kinds[0], name)
        shown = "workflows" if noun == "jobs" and name in WORKFLOW_VERBS else noun
        yield Verb(
            noun=shown,
            name=name,
            path=_path(shown, _id_name(noun), name),
            changes="actor" in inspect.signature(method).parameters,
            arguments=arguments_of(_title(shown, name), method, without={"actor"}),
            call=_handle_call(noun, name, tuple(kinds)),
            returns=_returned(method),
            summary=_summary(method),
        )


def _returned(method: Any) -> Any:
    """Return the type that a method returns; of one with overloads, that of the last, which is the most general."""
    hint = get_type_hints(method).get("return", Any)
    overloads = get_overloads(method)
    return get_type_hints(overloads[-1])["return"] if hint is Any and overloads else hint


def _application_call(name: str) -> Call:
    def call(app: Detent, _: dict[str, str], arguments: SimpleNamespace) -> Any:
        return getattr(app, name)(**vars(arguments))

    return call


def _noun_call(attribute: str, name: str, id_name: str | None) -> Call:
    def call(app: Detent, ids: dict[str, str], arguments: SimpleNamespace) -> Any:
        noun: Any = app
        for part in attribute.split("."):
            noun = getattr(noun, part)
        positional, keywords = _split(getattr(type(noun), name), arguments)
        return getattr(noun, name)(*([ids[id_name]] if id_name else []), *positional, **keywords)

    return call


def _handle_call(noun: str, name: str, kinds: tuple[type[Any], ...]) -> Call:
    def call(app: Detent, ids: dict[str, str], arguments: SimpleNamespace) -> Any:
        handle = getattr(app, noun).get(ids[_id_name(noun)])
        if not isinstance(handle, kinds):
            allowed = " or ".join(kind.__name__ for kind in kinds)
            raise InvalidInput(_id_name(noun), f"a {type(handle).__name__}", f"a {allowed}")
        positional, keywords = _split(getattr(type(handle), name), arguments)
        return getattr(handle, name)(*positional, **keywords)

    return call


def _split(method: Callable[..., Any], arguments: SimpleNamespace) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments as the method takes them: by position where it does not take them by name."""
    parameters = inspect.signature(method).parameters
    given = dict(vars(arguments))
    positional = [given.pop(name) for name in list(given) if parameters[name].kind is inspect.Parameter.POSITIONAL_ONLY]
    return positional, given


def _public_methods(kind: type[Any]) -> list[tuple[str, Callable[..., Any]]]:
    return [
        (name, method)
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and name != "like"
    ]


def _id_name(noun: str) -> str:
    return {"jobs": "job_id", "operations": "operation_id", "runs": "run_id", "workers": "worker_id"}[noun]


def _path(noun: str, id_name: str | None, verb: str) -> str:
    parts = ["", noun]
    if id_name is not None:
        # Names may hold slashes; numbers may not.
        parts.append("{" + id_name + (":path}" if id_name in ("name", "key", "alert_id") else "}"))
    if verb:
        parts.append(verb.rstrip("_").replace("_", "-"))
    return "/".join(parts)


def _title(noun: str, name: str) -> str:
    return "".join(word.capitalize() for word in f"{noun} {name}".replace("_", " ").split())


def _summary(method: Callable[..., Any]) -> str:
    return (inspect.getdoc(method) or "").partition("\n\n")[0].replace("\n", " ")
