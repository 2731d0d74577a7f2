"""Paths that need no token: the console, and checks of health. Every other path is refused without one, whether a route
has it or not."""

from __future__ import annotations

from starlette.types import Scope

__all__ = ["is_public", "path_below_mount"]

_EXACT = frozenset(
    {
        ("POST", "/api/v1/session"),  # checks the token in its body
        ("POST", "/api/v1/session/end"),
    }
)
_BELOW = (
    ("POST", "/hooks/"),  # each webhook verifies the signature of its sender
    ("GET", "/hooks/signals/"),  # the token in the path is signed; it is shown what it is for
)
_WITH_DATA = ("/api/", "/hooks/", "/metrics")
"""Every other path that is read is a page or a file of the console (`console.py`), which hold no data."""


def path_below_mount(scope: Scope) -> str:
    """Return the path that routes are compared with: without the prefix under which the API is mounted."""
    path: str = scope["path"]
    prefix: str = scope.get("root_path", "")
    if prefix and (path == prefix or path.startswith(f"{prefix}/")):
        return path[len(prefix) :]
    return path


def is_public(method: str, path: str) -> bool:
    """Return whether a request needs no token. Compares the path exactly as the routes do."""
    method = "GET" if method == "HEAD" else method
    if method == "GET" and not path.startswith(_WITH_DATA):
        return True
    return (method, path) in _EXACT or any(
        method == one and path.startswith(prefix) and path != prefix for one, prefix in _BELOW
    )
