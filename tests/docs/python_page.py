"""The page about Python: every public name of `detent`, from its signature and its docstring."""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Collection, Iterable, Iterator
from dataclasses import MISSING, is_dataclass
from dataclasses import fields as dataclass_fields
from typing import Any, Literal

import msgspec

import detent
from detent.app.nouns import Nouns
from detent.declare.enqueue import EnqueueKeywords

__all__ = ["GROUPS", "TWINS", "members", "nouns", "python_page"]

HEAD = """\
# Python reference

Every public name of the package `detent`: its signature and what it promises. Import the names from `detent`;
everything else is private. The [guide](guide.md) shows how they are used together.

- The nouns are reached from the application: `app.jobs`, `app.queues`, … You do not import them.
- `app.aio` has the same nouns, verbs and arguments, awaited ([async twins](#async-twins)).
- Errors that a call raises are named in its description. All of them are in `detent.errors` ([errors](errors.md)).
- A verb that changes something takes `actor` and `reason` for the record. The default actor is the setting `actor`.
- A list takes `limit` and `after`. Pass its `.next` as `after` to get the next page.

This page is generated from the code by `python -m tests.docs.pages`.
"""

GROUPS: dict[str, tuple[str, ...]] = {
    "Handles": (
        "Job",
        "JobSelection",
        "Operation",
        "Run",
        "BatchRun",
        "PipelineRun",
        "Reconciliation",
        "Worker",
        "ListPage",
        "TransactionClient",
    ),
    "Declaring": (
        "Task",
        "Call",
        "Graph",
        "Node",
        "Retry",
        "Limit",
        "Probed",
        "shell",
        "Change",
        "Partition",
        "Page",
        "split_by_count",
        "Lifecycle",
        "Transition",
        "IncomingWebhook",
        "WebhookDelivery",
    ),
    "Inside a task": (
        "Context",
        "TargetContext",
        "Tx",
        "AsyncTx",
        "Fatal",
        "Critical",
        "Snooze",
        "Throttled",
        "JobCancelled",
    ),
    "Inside a workflow": (
        "WorkflowContext",
        "Step",
        "StepCall",
        "Local",
        "Wait",
        "Arrival",
        "Child",
        "ChildGroup",
        "GroupResult",
        "Stream",
        "WaitTimeout",
        "ChildFailed",
        "StepAmbiguous",
        "HistoryFull",
        "WorkflowDrift",
        "ParkSwallowed",
        "JobEnded",
        "MailboxFull",
        "WrongToken",
        "TokenUsed",
        "WaitOver",
        "BeingUndone",
        "UndoRefused",
        "CopyRefused",
    ),
    "Records": (
        "AcceptedDelivery",
        "Alert",
        "AlertPolicy",
        "Cancelled",
        "CreatedToken",
        "DeadGroup",
        "Declarations",
        "Delivery",
        "Environment",
        "Event",
        "Execution",
        "FetchedPartition",
        "Figures",
        "Rates",
        "Identity",
        "JobCount",
        "JobDetails",
        "JobTree",
        "TreeNode",
        "Undo",
        "ChildCounts",
        "RecordedStep",
        "SignalSent",
        "StreamLine",
        "Workflow",
        "WorkflowCheck",
        "WorkflowVersion",
        "WorkflowWait",
        "LimitState",
        "Mismatch",
        "Moved",
        "OpsRun",
        "Queue",
        "QueueRecovery",
        "ReconciliationState",
        "RecordedTransition",
        "Invariant",
        "RepairStep",
        "StateCount",
        "Schedule",
        "SilentJob",
        "SinkOutcome",
        "Target",
        "TargetChange",
        "Token",
        "Violation",
        "Token",
        "CreatedToken",
        "Watermark",
        "Webhook",
        "WebhookTarget",
    ),
}
"""The exported names by heading, apart from `Detent`, `errors` and the async twins."""

TWINS = tuple(name for name in detent.__all__ if name.startswith("Async") and name not in GROUPS["Inside a task"])
EXPORTED = {id(getattr(detent, name)): name for name in detent.__all__}
LINE_MAX = 110
CALLED = {
    "AsyncTx": "tx",
    "BatchRun": "run",
    "Context": "ctx",
    "JobSelection": "selection",
    "LimitState": "limit",
    "ListPage": "page",
    "PipelineRun": "run",
    "TargetContext": "ctx",
    "TransactionClient": "app.using(connection)",
}
"""What an object of a class is called in the examples, if not by the name of the class in small letters."""
MADE_BY_USERS = ("detent.declare", "detent.model.backoff", "detent.lifecycle")
"""Where the dataclasses are that users make themselves: they are shown by their signature, others by their fields."""


def python_page() -> str:
    """Return the whole page."""
    return "\n".join(_parts())


def nouns() -> dict[str, type[Any]]:
    """Return the nouns of an application by their path, such as `app.alerts.policies`."""
    found: dict[str, type[Any]] = {}
    for name, noun in _noun_properties(Nouns):
        found[f"app.{name}"] = noun
        found |= {f"app.{name}.{part}": inner for part, inner in _noun_properties(noun)}
    return found


def members(kind: type[Any]) -> dict[str, Any]:
    """Return the public methods and properties of a class in the order of its source, inherited ones last. Those of an
    exported base are described there."""
    found: dict[str, Any] = {}
    for one in kind.__mro__:
        if one.__module__.startswith("detent") and (one is kind or id(one) not in EXPORTED):
            for name, value in vars(one).items():
                is_verb = inspect.isfunction(value) or isinstance(value, classmethod | property)
                if is_verb and not name.startswith("_") and name != "like":
                    found.setdefault(name, value)
    return found


def _noun_properties(kind: type[Any]) -> Iterator[tuple[str, type[Any]]]:
    for name, value in members(kind).items():
        if isinstance(value, property):
            noun = typing.get_type_hints(value.fget).get("return")
            if isinstance(noun, type) and noun.__module__.startswith(("detent.app", "detent.ops")):
                yield name, noun


def _parts() -> Iterator[str]:
    yield HEAD
    yield "## Detent\n"
    yield from _callable("Detent", detent.Detent)
    yield _text(detent.Detent)
    paths = nouns()
    yield from _members("app", detent.Detent, skipped={path.removeprefix("app.") for path in paths})
    yield "## Nouns\n"
    yield _table(
        ("noun", "what it is"), ((f"[`{path}`](#{_anchor(path)})", _first(one)) for path, one in paths.items())
    )
    for path, noun in paths.items():
        yield f"### {path}\n"
        yield _text(noun)
        yield from _members(path, noun, skipped={inner.rpartition(".")[2] for inner in paths}, level="####")
    for heading, names in GROUPS.items():
        yield f"## {heading}\n"
        for name in names:
            yield from _name(name, getattr(detent, name))
    yield "## Async twins\n"
    yield (
        "Each has the attributes and verbs of its plain twin, with the same arguments. "
        "Verbs are awaited, and iterators are async.\n"
    )
    yield _table(("class", "what it is"), ((f"`{name}`", _first(getattr(detent, name))) for name in TWINS))
    own = {path.removeprefix("app.") for path in paths}
    for name, path in (("AsyncDetent", "app.aio"), ("AsyncTransactionClient", "app.aio.using(connection)")):
        yield f"### {name}\n"
        yield _text(getattr(detent, name))
        yield from _members(path, getattr(detent, name), skipped=own, level="####")
    yield "## errors\n"
    yield "The module of all errors: [errors.md](errors.md).\n"


def _name(name: str, found: Any) -> Iterator[str]:
    yield f"### {name}\n"
    if inspect.isfunction(found):
        yield from _callable(name, found)
        yield _text(found)
        return
    if not isinstance(found, type):
        yield f"One of: {', '.join(f'`{one.__name__}`' for one in typing.get_args(found))}.\n"
        return
    if _is_made_by_users(found):
        yield from _callable(name, found)
    yield _text(found)
    yield from _fields(found)
    for base in found.__mro__[1:]:
        if id(base) in EXPORTED:
            yield f"It also has everything that `{EXPORTED[id(base)]}` has.\n"
    yield from _members(CALLED.get(name, name.lower()), found, level="####")


def _is_made_by_users(kind: type[Any]) -> bool:
    if issubclass(kind, Exception):
        return "__init__" in vars(kind)
    return is_dataclass(kind) and kind.__module__.startswith(MADE_BY_USERS)


def _members(owner: str, kind: type[Any], *, skipped: Collection[str] = (), level: str = "###") -> Iterator[str]:
    found = {name: value for name, value in members(kind).items() if name not in skipped}
    attributes = {name: value for name, value in found.items() if isinstance(value, property)}
    if attributes:
        rows = ((f"`{name}`", f"`{_returns(one.fget)}`", _text(one).strip()) for name, one in attributes.items())
        yield _table(("attribute", "type", "meaning"), rows)
    for name, value in found.items():
        if name not in attributes:
            is_made_by = isinstance(value, classmethod)
            path = f"{EXPORTED[id(kind)] if is_made_by else owner}.{name}"
            yield f"{level} {path}\n"
            yield from _callable(path, value.__func__ if is_made_by else value)
            yield _text(value)


def _fields(kind: type[Any]) -> Iterator[str]:
    if issubclass(kind, msgspec.Struct):
        rows = [(one.name, one.default) for one in msgspec.structs.fields(kind)]
        none: object = msgspec.NODEFAULT
    elif is_dataclass(kind) and not _is_made_by_users(kind):
        rows = [(one.name, one.default) for one in dataclass_fields(kind)]
        none = MISSING
    else:
        return
    hints = {
        name: hint for one in reversed(kind.__mro__) for name, hint in vars(one).get("__annotations__", {}).items()
    }
    yield _table(
        ("field", "type", "default"),
        (
            (f"`{n}`", f"`{_annotation(hints[n], kind)}`", "" if value is none else f"`{_value(value)}`")
            for n, value in rows
        ),
    )


def _callable(name: str, found: Any) -> Iterator[str]:
    shown = _shown(found)
    parameters = [one for one in shown.parameters.values() if one.name not in ("self", "cls")]
    said = list(_arguments(parameters, found))
    returns = "" if isinstance(found, type) else f" -> {_returns(found)}"
    line = f"{name}({', '.join(said)}){returns}"
    if len(line) > LINE_MAX:
        line = f"{name}(\n" + "".join(f"    {one},\n" for one in said) + f"){returns}"
    yield f"```\n{line}\n```\n"


def _shown(found: Any) -> inspect.Signature:
    """Return the signature that says most: of a decorator with options, the overload that lists them."""
    signature = inspect.signature(found)
    overloads = [inspect.signature(one) for one in typing.get_overloads(found)] if inspect.isfunction(found) else []
    has_rest = any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values())
    return max(overloads, key=lambda one: len(one.parameters)) if overloads and has_rest else signature


def _arguments(parameters: list[inspect.Parameter], found: Any) -> Iterator[str]:
    keyword_only = False
    for n, one in enumerate(parameters):
        if one.kind is one.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            yield "*"
        if found is detent.Detent.enqueue and one.kind is one.VAR_KEYWORD:
            yield "*"
            yield from (f"{name}: {hint.__forward_arg__} = …" for name, hint in EnqueueKeywords.__annotations__.items())
        else:
            yield _argument(one, found)
        after = parameters[n + 1] if n + 1 < len(parameters) else None
        if one.kind is one.POSITIONAL_ONLY and (after is None or after.kind is not one.POSITIONAL_ONLY):
            yield "/"


def _argument(one: inspect.Parameter, found: Any) -> str:
    stars = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
    is_plain = one.annotation is not one.empty and "Unpack" not in str(one.annotation)
    hint = f": {_annotation(one.annotation, found)}" if is_plain else ""
    default = "" if one.default is one.empty else f" = {_value(one.default)}"
    return f"{stars}{one.name}{hint}{default}"


def _value(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple) and len(value) > 1:
        return f"({', '.join(map(_value, value))})"
    if isinstance(value, tuple) and value:
        return f"({_value(value[0])},)"
    if isinstance(value, type):
        return value.__name__
    return "…" if callable(value) or repr(value).startswith("<") else repr(value)


def _returns(found: Any) -> str:
    overloads = typing.get_overloads(found)
    hint = inspect.signature(overloads[-1] if overloads else found).return_annotation
    return _annotation(hint, found)


def _annotation(hint: Any, owner: Any) -> str:
    """Return a type as a reader writes it: by its exported name, with literals spelled out."""
    known = vars(sys.modules[owner.__module__])

    def public(match: re.Match[str]) -> str:
        found = known.get(match[0])
        if id(found) in EXPORTED:
            return EXPORTED[id(found)]
        if typing.get_origin(found) is Literal:
            return f"Literal[{', '.join(map(_value, typing.get_args(found)))}]"
        return match[0]

    text = hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))
    return re.sub(r"\"[^\"]*\"|'[^']*'|\w+", public, text)


def _text(found: Any) -> str:
    said = inspect.getdoc(found.__func__ if isinstance(found, classmethod) else found) or ""
    return f"{said}\n"


def _first(found: Any) -> str:
    return " ".join((inspect.getdoc(found) or "").split("\n\n")[0].split())


def _anchor(path: str) -> str:
    return re.sub(r"[^\w-]", "", path.lower())


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
