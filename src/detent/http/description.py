"""The OpenAPI 3.1 description of the HTTP API, from the same types that decode requests and encode answers."""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Union, get_args, get_origin

import msgspec

from detent.app.batch_run import BatchRun
from detent.app.pipeline_run import PipelineRun
from detent.app.reconciliation import Reconciliation
from detent.app.workers import Worker
from detent.client.job import Job
from detent.client.list_page import ListPage
from detent.client.operation import Operation
from detent.http.bodies import LifecycleBody, body_type
from detent.http.problems import PROBLEM, Problem
from detent.http.verbs import Verb
from detent.lifecycle.definition import Lifecycle
from detent.model.batch_records import BatchRunRow, ReconciliationRow
from detent.model.pipeline_records import PipelineRunRow
from detent.model.records import JobRow
from detent.model.service_records import OperationRow, WorkerRow

__all__ = ["answer_type", "describe", "may_be_null"]

_ROWS = {
    Job: JobRow,
    Operation: OperationRow,
    Worker: WorkerRow,
    BatchRun: BatchRunRow,
    PipelineRun: PipelineRunRow,
    Reconciliation: ReconciliationRow,
}
_REFS = "#/components/schemas/{name}"


def describe(verbs: Iterable[Verb], *, version: str) -> dict[str, Any]:
    """Return the description of these verbs as a JSON object."""
    listed = list(verbs)
    bodies = [answer_type(verb) for verb in listed]
    arguments = [verb.arguments for verb in listed]
    filters = {verb.filters for verb in listed}
    several = [one for body in bodies for one in _records_in(body)]
    schemas, components = msgspec.json.schema_components(
        [*filters, *several, *bodies, *arguments, Problem], ref_template=_REFS, schema_hook=_without_schema
    )
    schemas = schemas[len(filters) + len(several) :]
    paths: dict[str, dict[str, Any]] = {}
    for verb, answer, taken in zip(listed, schemas[: len(listed)], schemas[len(listed) : -1], strict=True):
        path = "/api/v1" + verb.path.replace(":path}", "}")
        operation = _operation(verb, answer, taken, components, schemas[-1])
        paths.setdefault(path, {})["post" if verb.changes else "get"] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Detent", "version": version, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "paths": paths,
        "components": {"schemas": components},
    }


def _operation(
    verb: Verb, answer: dict[str, Any], taken: dict[str, Any], components: dict[str, Any], problem: dict[str, Any]
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": f"{verb.noun.replace(' ', '_')}_{verb.name.rstrip('_')}",
        "tags": [verb.noun],
        "summary": verb.summary,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"{(\w+)", verb.path)
        ],
        "responses": {
            "200": {"description": "The answer.", "content": {"application/json": {"schema": answer}}},
            "default": {"description": "Why the request was refused.", "content": {PROBLEM: {"schema": problem}}},
        },
    }
    if verb.makes_new:
        described["responses"]["201"] = described["responses"]["200"] | {"description": "It was created."}
    if verb.changes:
        described["requestBody"] = {"content": {"application/json": {"schema": taken}}}
        described["parameters"] += _query(components[verb.filters.__name__])
    else:
        described["parameters"] += _query(components[taken["$ref"].rpartition("/")[2]])
    return described


def _query(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name, kind in schema.get("properties", {}).items():
        yield {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": kind}


def answer_type(verb: Verb) -> Any:
    """Return the type of the JSON that a verb is answered with."""
    returned = _returned(verb.returns)
    if get_origin(returned) is list:
        return _page_type(get_args(returned)[0])
    if returned in (str, int, bool, str | None, int | None, datetime | None):
        return _value_type(verb.name, returned)
    return returned


def may_be_null(verb: Verb) -> bool:
    """Return whether the answer is null if the verb returns None: where it otherwise returns a record."""
    return types.NoneType in get_args(answer_type(verb))


@functools.cache
def _value_type(name: str, kind: Any) -> type[msgspec.Struct]:
    return msgspec.defstruct(f"{name.title().replace('_', '')}Value", [(name, kind)])


@functools.cache
def _page_type(item: Any) -> type[msgspec.Struct]:
    name = getattr(item, "__name__", "Value")
    return msgspec.defstruct(f"{name[0].upper()}{name[1:]}List", [("items", list[item]), ("next", str | None)])


class _OneOf:
    """A value of one of several records. msgspec describes no such union itself."""

    records: tuple[type[msgspec.Struct], ...] = ()


@functools.cache
def _one_of(*records: type[msgspec.Struct]) -> type[_OneOf]:
    return type("Or".join(one.__name__ for one in records), (_OneOf,), {"records": records})


def _records_in(kind: Any) -> Iterator[Any]:
    """Yield the records that a type names as one of several."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for one in msgspec.structs.fields(kind):
            yield from _records_in(one.type)
    elif isinstance(kind, type) and issubclass(kind, _OneOf):
        yield from kind.records
    for inner in get_args(kind):
        yield from _records_in(inner)


def _without_schema(kind: type[Any]) -> dict[str, Any]:
    if issubclass(kind, _OneOf):
        return {"anyOf": [{"$ref": _REFS.format(name=one.__name__)} for one in kind.records]}
    return {"description": f"A {kind.__name__}."}


def _returned(hint: Any) -> Any:
    """Return the type of the JSON that is answered for a return type of Python."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint in _ROWS or origin in _ROWS:
        return body_type(_ROWS[origin or hint])
    if origin is ListPage:
        return _page_type(_returned(inner[0]))
    if origin in (Union, types.UnionType):
        members = [_returned(one) for one in inner]
        if sum(isinstance(one, type) and issubclass(one, msgspec.Struct) for one in members) > 1:
            return _one_of(*members)
        return Union[tuple(members)]  # noqa: UP007 - known at run time only
    if origin is list:
        return list[_returned(inner[0])]  # type: ignore[misc]
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return body_type(hint)
    if hint is Lifecycle:
        return LifecycleBody
    if getattr(origin, "__name__", "") in ("Iterator", "dict") or not isinstance(hint, type):
        return Any
    return hint
