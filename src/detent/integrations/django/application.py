"""The Detent application of a Django project, on the database of the project."""

from __future__ import annotations

import os.path
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import close_old_connections, connections

from detent.app.detent import Detent
from detent.client.client import DirectClient
from detent.client.engine import Engine
from detent.declare.context import Context
from detent.errors import InvalidSetting

__all__ = ["ALIAS", "CONSOLE_URL", "app", "client", "current"]

_DRIVER_ONLY = ("client_encoding", "passfile", "service")
"""Options of Django's connection that are text and belong into a URL, besides those that begin with the following."""
_OPTIONS = ("ssl", "gss", "keepalives", "tcp_", "target_session", "application_name", "connect_timeout", "options")


def _chosen() -> dict[str, Any]:
    found = getattr(settings, "DETENT", {})
    if not isinstance(found, Mapping):
        raise ImproperlyConfigured(f"DETENT is a {type(found).__name__}. Set it to a dict such as {{'actor': 'shop'}}.")
    return dict(found)


_SETTINGS = _chosen()
ALIAS: str = _SETTINGS.pop("database", "default")
"""The entry of DATABASES in which Detent has its tables."""
CONSOLE_URL: str | None = _SETTINGS.pop("console", None)
"""Where the console is; None if the admin shows no link to it."""


def _url() -> str:
    """Return the URL of the database that Django uses now: its test runner changes it."""
    connection = connections[ALIAS]
    found = connection.settings_dict
    match connection.vendor:
        case "sqlite":
            path = str(found["NAME"])
            if path == ":memory:" or "mode=memory" in path:
                raise ImproperlyConfigured(
                    f"DATABASES[{ALIAS!r}] is SQLite in memory, which no worker could see. Give it a file; for tests, "
                    'set "TEST": {"NAME": BASE_DIR / "test.sqlite3"} in its settings.'
                )
            return f"sqlite:///{os.path.abspath(path).replace('%', '%25').replace('?', '%3F')}"
        case "postgresql":
            named = {"user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
            parts = {name: str(found[key]) for name, key in named.items() if found.get(key)}
            for name, value in found.get("OPTIONS", {}).items():
                if name in _DRIVER_ONLY or name.startswith(_OPTIONS):
                    parts[name] = str(value)
            return f"postgresql:///{quote(str(found['NAME'] or ''), safe='')}?{urlencode(parts, quote_via=quote)}"
        case vendor:
            raise ImproperlyConfigured(
                f"DATABASES[{ALIAS!r}] is a database of the kind {vendor!r}. Detent needs SQLite or PostgreSQL: name "
                "another entry with DETENT = {'database': ...}."
            )


def _build() -> Detent:
    try:
        return Detent(_url(), **_SETTINGS)
    except InvalidSetting as error:
        raise ImproperlyConfigured(f"DETENT: {error}") from error


app = _build()
_configured = app.settings.database_url


@app.around
def _renew_connections(ctx: Context) -> Iterator[None]:
    """Close connections of Django that are broken or too old, as Django does around requests."""
    if app.find_task(ctx.task).is_async:
        yield
        return
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()


@app.around
async def _renew_connections_async(ctx: Context) -> AsyncIterator[None]:
    await sync_to_async(close_old_connections)()
    try:
        yield
    finally:
        await sync_to_async(close_old_connections)()


@contextmanager
def current() -> Iterator[Detent]:
    """Yield the application on the database that Django uses now. On the database of a test, its connections are closed
    afterwards: the test runner could not drop a database that is in use."""
    url = _url()
    if url != app.settings.database_url:
        app.settings = replace(app.settings, database_url=url)
        app.rewire(Engine(app.settings, None)).close()
    try:
        yield app
    finally:
        if url != _configured:
            app.close()


@contextmanager
def client() -> Iterator[Detent | DirectClient]:
    """Yield what enqueues and reads jobs: in the open transaction of Django if there is one, else the application."""
    connection = connections[ALIAS]
    with current() as found:
        yield found.using(connection.connection) if connection.in_atomic_block else found
