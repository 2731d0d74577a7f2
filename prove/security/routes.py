"""The routes of the HTTP API, read from the application, and what is tried on each of them."""

from __future__ import annotations

import re
from typing import Any

from starlette.routing import Route

from detent.http.api import list_verbs
from detent.http.verbs import Verb

__all__ = [
    "METHODS",
    "OF_A_TENANT",
    "REACHED_BY_A_TENANT",
    "TRICKS",
    "VERBS",
    "arguments_for",
    "path_of",
    "routes_of",
]

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE")
VERBS = [(verb, "POST" if verb.changes else "GET") for verb in list_verbs()]
OF_A_TENANT = ("jobs", "dead", "runs", "operations", "watermarks", "workflows")
REACHED_BY_A_TENANT = {"/api/v1", "/api/v1/openapi.json", "/api/v1/session", "/api/v1/stream"}
TRICKS = (
    "//api/v1/jobs", "/api//v1/jobs", "/api/v1/jobs/", "/api/v1/../v1/jobs", "/api/v1/%2e%2e/v1/jobs", "/API/v1/jobs",
    "/healthz/../api/v1/jobs", "/healthz/", "/api/v1/jobs/healthz", "/api/v1/x/session", "/api/v1/session/x",
    "/hooks/../api/v1/jobs", "/api/v1/jobs%2f1", "/api/v1/jobs;x=1", "/api/v1/jobs/1/%2e%2e", "/assets/../api/v1/jobs",
    "/%61pi/v1/jobs", "/api/v1/jobs%00", "/metrics/", "/metrics",
)  # fmt: skip
"""Spellings of paths with which a request may hope to pass the check of its token."""


def routes_of(api: Any) -> list[tuple[str, set[str]]]:
    """Return the routes of an application with their methods, without those of the console."""
    routes = [one for one in api.routes if isinstance(one, Route)]
    return [(one.path, set(one.methods or ())) for one in routes if one.path != "/{path:path}"]


def path_of(template: str, ids: dict[str, str]) -> str:
    """Return the path of a route, with these ids in it and 1 for others."""
    for name, value in ids.items():
        template = template.replace("{" + name + "}", value)
    return re.sub(r"{[\w:]+}", "1", template)


def arguments_for(verb: Verb) -> dict[str, Any]:
    """Return a body with what the verb requires, so that it is not refused for that."""
    known = {"state": "cancelled", "payload": {}, "done": True, "reason": "why", "task": "add", "name": "reprice"}
    return {name: value for name, value in known.items() if name in verb.arguments.__struct_fields__}
