"""What a call of `detent` was told that holds for every command: which database, which application, who, and how to
answer."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from detent.cli import render
from detent.cli.failures import USAGE, CommandFailed
from detent.errors import DetentError, InvalidSetting

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["Session"]

_DATABASE_URL = "DETENT_DATABASE_URL"
_APP = "DETENT_APP"


@dataclass
class Session:
    """Filled by the common options, wherever on the line they stand."""

    database: str | None = None
    app: str | None = None
    actor: str | None = None
    json: bool = False

    @property
    def who(self) -> str:
        """Who acts, for the record: as said, else the login name."""
        if self.actor is not None:
            return self.actor
        try:
            return getpass.getuser()
        except (KeyError, OSError):
            return f"uid {os.getuid()}"

    @property
    def application(self) -> str | None:
        """The application: the one that `--app` names, else the one in the environment."""
        return self.app or os.environ.get(_APP) or None

    @property
    def asks(self) -> bool:
        """Whether there is somebody at a terminal who can be asked."""
        return sys.stdin is not None and sys.stdin.isatty() and not self.json

    @contextmanager
    def open(self) -> Iterator[Detent]:
        """Open the application on a database that exists, acting as the actor of this call. Nothing is created: a
        mistyped URL is refused. `SchemaMissing`, and what `open_or_new` refuses."""
        with self.open_or_new() as app, app.acting_as(self.who):
            app.store_as_found.ready(create=False)
            if ignored := self.ignored_url(app):
                render.note(ignored)
            yield app

    def ignored_url(self, app: Detent) -> str | None:
        """Return a sentence if the environment names another database than the application does: its code wins."""
        named = os.environ.get(_DATABASE_URL)
        where = self.application
        if where is None or not named or named == app.settings.database_url:
            return None
        return f"{_DATABASE_URL} is ignored: {where} names its own database, {app.store_as_found.name}"

    def open_or_new(self) -> Detent:
        """Return the application, or one without tasks if none is named. The database is not touched yet, and its first
        use may create it. The caller closes it. `InvalidSetting`, or `CommandFailed` if it cannot be imported."""
        from detent.app.detent import Detent

        where = self.application
        if where is None:
            return Detent(self.database)
        if self.database is not None:
            # An application without a URL of its own takes this one, in the worker's children too.
            os.environ[_DATABASE_URL] = self.database
        app = _import_app(where, "app" if self.app else _APP)
        if self.database is not None and app.settings.database_url != self.database:
            raise InvalidSetting(
                "--database", f"{where} names its own database", "leave --database out, or the URL out of the code"
            )
        return app

    @contextmanager
    def open_with_tasks(self) -> Iterator[Detent]:
        """Like `open`, for a command that needs an application."""
        self.require_application()
        with self.open() as app:
            yield app

    def require_application(self) -> str:
        """Return the application, which must be named. `CommandFailed`."""
        where = self.application
        if where is None:
            raise CommandFailed(f"an application is missing: add --app shop:app, or set {_APP}=shop:app", USAGE)
        return where


def _import_app(where: str, said_in: str) -> Detent:
    from detent.worker.child.application import describe_import_error, load_app

    try:
        return load_app(where)
    except InvalidSetting as error:
        raise InvalidSetting(said_in, error.found, error.allowed) if error.field == "app" else error from None
    except DetentError:
        raise
    except (Exception, SystemExit) as error:
        raise CommandFailed(describe_import_error(where, error)) from error
