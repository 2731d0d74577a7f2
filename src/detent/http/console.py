"""The console: the files that `console/build.py` made, served beside the API under any prefix."""

from __future__ import annotations

import mimetypes
from dataclasses import dataclass
from html import escape
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from detent.http.problems import refuse

__all__ = ["POLICY", "console_route"]

_FILES = Path(__file__).with_name("console_files")
_INDEX = "index.html"
_BASE = '<base href="/" />'
_API = ("api/", "hooks/", "metrics")
"""As in `public_paths`: these need a token, and are never answered with a page."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
_FOR_A_YEAR = "public, max-age=31536000, immutable"
_NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><base href="/" /><title>Detent</title></head>
<body><h1>The console is not built</h1>
<p>The HTTP API works: see <a href="api/v1/openapi.json">its description</a>. To build the console in a checkout of
Detent, run <code>make console-build</code> and start the server again. A released package has it built in.</p>
</body></html>
"""


@dataclass(frozen=True)
class _File:
    content: bytes
    media_type: str
    cache: str


class _ConsoleRoute(Route):
    """Leaves the paths of the API alone, so that a wrong one there is answered as the API answers."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, found = super().matches(scope)
        if match is not Match.NONE and found["path_params"]["path"].startswith(_API):
            return Match.NONE, {}
        return match, found


def console_route() -> Route:
    """Return the route of everything that no other route answers: files of the console, and its pages."""
    files = _read_files()
    page = files.pop(_INDEX).content.decode() if _INDEX in files else _NOT_BUILT

    async def console(request: Request) -> Response:
        path = request.path_params["path"]
        if (found := files.get(path)) is not None:
            return _answer(found.content, found.media_type, found.cache)
        wants_page = "text/html" in request.headers.get("accept", "")
        if path.startswith("assets/") or not wants_page:
            return refuse(404, f"there is no {request.url.path[:80]!r} here")
        base = escape(request.scope.get("root_path", "").rstrip("/") + "/", quote=True)
        html = page.replace(_BASE, f'<base href="{base}" />', 1)
        return _answer(html.encode(), "text/html; charset=utf-8", "no-cache")

    return _ConsoleRoute("/{path:path}", console, methods=["GET"], include_in_schema=False)


def _read_files() -> dict[str, _File]:
    """Return the built files by path. They are few and small, and stay in memory."""
    found = {}
    for path in _FILES.rglob("*") if _FILES.is_dir() else ():
        name = path.relative_to(_FILES).as_posix()
        if path.is_file() and not path.name.startswith("."):
            kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
            found[name] = _File(path.read_bytes(), kind, _FOR_A_YEAR if name.startswith("assets/") else "no-cache")
    return found


def _answer(content: bytes, media_type: str, cache: str) -> Response:
    headers = {"Cache-Control": cache, "Content-Security-Policy": POLICY}
    return Response(content, media_type=media_type, headers=headers)
