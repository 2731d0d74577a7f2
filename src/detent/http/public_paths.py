"""Paths that need no token. Every other path is refused without one, whether a route has it or not."""

from __future__ import annotations

from starlette.types import Scope

__all__ = ["is_public", "path_below_mount"]

_EXACT = frozenset(
    {
        ("GET", "/"),  # the console's page, or a hint
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("POST", "/api/v1/session"),  # checks the token in its body
        ("POST", "/api/v1/session/end"),
    }
)
_BELOW = (
    ("GET", "/console/"),  # static files: no data
    ("POST", "/hooks/"),  # each webhook verifies the signature of its sender
)


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
    return (method, path) in _EXACT or any(
        method == one and path.startswith(prefix) and path != prefix for one, prefix in _BELOW
    )
