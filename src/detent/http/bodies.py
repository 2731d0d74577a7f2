"""Answers as JSON: what a verb returns, in the form that the command line's `--json` has too.

Ids are strings, times are ISO 8601 in UTC, and stored JSON stands as itself.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, Union, get_args, get_origin

import msgspec

from detent.client.handle import Handle
from detent.client.job import JobSnapshot
from detent.client.list_page import ListPage
from detent.lifecycle.definition import Lifecycle
from detent.model.service_records import ScheduleRow
from detent.model.workflow_records import StepRow, Undo, Workflow
from detent.schedule.cron import explain_cron

__all__ = ["IDS", "LifecycleBody", "answer_of", "body_type", "encode", "to_body"]

IDS = frozenset({
    *("id", "job_id", "lease_id", "run_id", "entity_id", "sample_id", "apply_job_id", "revert_job_id"),
    *("parent_id", "root_id", "forked_from", "first_id", "undo_of", "undone_by", "undo_id"),
})  # fmt: skip
_JSON_TEXT = frozenset({"payload", "metadata", "result", "facts", "filter"})
_JSON_TEXT_OF: dict[type[msgspec.Struct], frozenset[str]] = {
    StepRow: frozenset({"value"}),
    Undo: frozenset({"value"}),
    Workflow: frozenset({"status"}),
}
"""More of them in these records; elsewhere the names mean something else."""
_PRIVATE = frozenset({"nonce"})
"""Which client process sent a job is the engine's own business."""
_DERIVED: dict[type[msgspec.Struct], dict[str, Callable[[Any], str]]] = {
    ScheduleRow: {"words": lambda row: explain_cron(row.cron)},
}
"""What a body says beside the fields of its record, as texts."""


def encode(value: Any) -> bytes:
    """Return the JSON text of what `to_body` made."""
    return msgspec.json.encode(value)


def answer_of(name: str, value: Any, *, may_be_null: bool = False) -> Any:
    """Return the JSON that answers a verb of this name. A list is its only page; a single value has the verb's name:
    `{"why": "it waits for …"}`. With `may_be_null` None is null."""
    body = to_body(value)
    if body is None and may_be_null:
        return None
    if isinstance(body, list):
        return {"items": body, "next": None}
    return body if isinstance(body, dict) else {name: body}


def to_body(value: Any) -> Any:
    """Return what a verb returned as JSON values."""
    match value:
        case JobSnapshot() if value._row is None:
            return {"id": str(value.id), "created": value.created}
        case JobSnapshot() | Handle():
            return _record(value.row)
        case ListPage():
            return {"items": [to_body(one) for one in value], "next": value.next}
        case list() | tuple() | Iterator():
            return [to_body(one) for one in value]
        case dict():
            return {str(name): to_body(one) for name, one in value.items()}
        case Lifecycle():
            return _lifecycle(value)
        case msgspec.Struct():
            return _record(value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {one.name: _field(one.name, getattr(value, one.name)) for one in fields(value)}
        case _:
            return value


def _lifecycle(value: Lifecycle) -> dict[str, Any]:
    """Return a lifecycle with what each state and each transition means."""
    return {
        "name": value.name,
        "means": value.means,
        "version": value.version,
        "initial": value.initial,
        "final": sorted(value.final),
        "rests": sorted(value.rests),
        "states": [{"name": name, "means": means} for name, means in value.states.items()],
        "transitions": [to_body(one) for one in value.transitions],
    }


class StateBody(msgspec.Struct):
    """A state of a lifecycle, and what it means."""

    name: str
    means: str


class TransitionBody(msgspec.Struct):
    """A declared move of a lifecycle. A folded one happens only as a step of several in one."""

    source: str
    target: str
    trigger: str
    actor: str
    means: str
    record: str
    folded: bool


class LifecycleBody(msgspec.Struct):
    """A lifecycle: its states, and every move between them."""

    name: str
    means: str
    version: int
    initial: str
    final: list[str]
    rests: list[str]
    states: list[StateBody]
    transitions: list[TransitionBody]


def _record(row: Any) -> dict[str, Any]:
    texts = _JSON_TEXT_OF.get(type(row), frozenset())
    found = {
        name: _stored_json(value) if name in texts and isinstance(value, str) else _field(name, value)
        for name in row.__struct_fields__
        if name not in _PRIVATE
        for value in (getattr(row, name),)
    }
    for name, derive in _DERIVED.get(type(row), {}).items():
        found[name] = derive(row)
    return found


def _field(name: str, value: Any) -> Any:
    if value is None or isinstance(value, datetime):
        return value
    if name in IDS:
        return str(value)
    if name in _JSON_TEXT and isinstance(value, str):
        return _stored_json(value)
    return to_body(value)


def _stored_json(text: str) -> Any:
    """The text itself, digit for digit, so that no number is rounded on the way; damaged text as a string."""
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return msgspec.Raw(text.encode())


_bodies: dict[type[msgspec.Struct], type[msgspec.Struct]] = {}


def body_type(kind: Any) -> Any:
    """Return the type that describes the JSON of a record: as the record, with ids as strings and JSON as any value."""
    if get_origin(kind) in (Union, types.UnionType):
        return Union[tuple(body_type(one) for one in get_args(kind))]  # noqa: UP007 - known at run time only
    if get_origin(kind) in (list, dict):
        return get_origin(kind)[tuple(body_type(one) for one in get_args(kind))]
    if get_origin(kind) is list:
        return list[body_type(get_args(kind)[0])]  # type: ignore[misc]
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return kind
    if kind not in _bodies:
        described = [
            (one.name, Any if one.name in _JSON_TEXT_OF.get(kind, ()) else _described(one.name, one.type))
            for one in msgspec.structs.fields(kind)
            if one.name not in _PRIVATE
        ]
        described += [(name, str) for name in _DERIVED.get(kind, {})]
        name = kind.__name__.removesuffix("Row")
        _bodies[kind] = msgspec.defstruct(name, described, kw_only=True, namespace={"__doc__": kind.__doc__})
    return _bodies[kind]


def _described(name: str, kind: Any) -> Any:
    is_optional = type(None) in get_args(kind)
    if name in IDS:
        return str | None if is_optional else str
    if name in _JSON_TEXT:
        return Any
    return body_type(kind)
