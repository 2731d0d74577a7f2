"""The common options of one call of `detent`, and what follows from them: the application, the actor, the output."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from detent.cli import output
from detent.cli.failures import USAGE, CommandFailed
from detent.errors import DetentError, InvalidSetting
from detent.model.terminal_text import line

if TYPE_CHECKING:
    from detent.app.detent import Detent
    from detent.app.redaction import Redaction
    from detent.model.records import Moved

__all__ = ["Session", "redaction_of"]

_DATABASE_URL = "DETENT_DATABASE_URL"
_APP = "DETENT_APP"


@dataclass
class Session:
    """The common options. They are set wherever on the line they stand."""

    database: str | None = None
    app: str | None = None
    actor: str | None = None
    json: bool = False

    # -- the application -------------------------------------------------------------------------------------------

    @property
    def actor_name(self) -> str:
        """The actor for the record: `--actor`, else the login name."""
        if self.actor is not None:
            return self.actor
        try:
            return getpass.getuser()
        except (KeyError, OSError):
            return f"uid {os.getuid()}"

    @property
    def application(self) -> str | None:
        """The application that `--app` names, else the one in the environment."""
        return self.app or os.environ.get(_APP) or None

    @contextmanager
    def open(self) -> Iterator[Detent]:
        """Open the application on an existing database, as the actor of this call. Creates nothing, so a mistyped URL
        is refused. `SchemaMissing`, and what `open_or_create` raises."""
        with self.open_or_create() as app, app.acting_as(self.actor_name):
            app.open_existing()
            if ignored := self.ignored_url(app):
                output.print_note(ignored)
            yield app

    def ignored_url(self, app: Detent) -> str | None:
        """Return a warning if the environment names another database than the application, whose own URL is used."""
        named = os.environ.get(_DATABASE_URL)
        where = self.application
        if where is None or not named or named == app.settings.database_url:
            return None
        return f"{_DATABASE_URL} is ignored: {where} names its own database, {app.store_as_found.name}"

    def open_or_create(self) -> Detent:
        """Return the application, or one without tasks if none is named. Its first use of the database may create it.
        The caller closes it. `InvalidSetting`, or `CommandFailed` if it cannot be imported."""
        from detent.app.detent import Detent

        where = self.application
        if where is None:
            return Detent(self.database)
        if self.database is not None:
            # An application without a URL of its own takes this one, in the worker's children too.
            os.environ[_DATABASE_URL] = self.database
        app = _import_app(where, "--app" if self.app else _APP)
        if self.database is not None and app.settings.database_url != self.database:
            raise InvalidSetting(
                "--database", f"{where} names its own database", "leave --database out, or the URL out of the code"
            )
        return app

    def require_application(self) -> str:
        """Return the name of the application. `CommandFailed` if there is none."""
        where = self.application
        if where is None:
            raise CommandFailed(f"an application is missing: add --app shop:app, or set {_APP}=shop:app", USAGE)
        return where

    # -- confirmation ----------------------------------------------------------------------------------------------

    @property
    def is_interactive(self) -> bool:
        """Whether a question can be asked: stdin is a terminal, and the output is not JSON."""
        return sys.stdin is not None and sys.stdin.isatty() and not self.json

    def confirm(self, action: str, *, yes: bool) -> None:
        """Return if the user agrees: by `--yes`, or at a terminal. `CommandFailed` if there is no terminal."""
        if yes:
            return
        if not self.is_interactive:
            raise CommandFailed(f"{action}: needs --yes, since there is no terminal to ask at; nothing changed", USAGE)
        click.confirm(f"{action}?", abort=True, err=True)

    # -- output ----------------------------------------------------------------------------------------------------

    def answer(self, value: Any, text: str) -> None:
        """Print a value as JSON, or a text for people."""
        if self.json:
            output.print_json(value)
        else:
            output.print_text(text)

    def show_rows(
        self,
        rows: Iterable[Any],
        columns: output.Columns,
        *,
        empty: str,
        objects: Iterable[Any] | None = None,
    ) -> None:
        """Print rows as a table, or as a JSON array. The objects of the array are the rows themselves, or `objects`. A
        page that is not the last one is followed by a note on stderr: how to get the next one."""
        rows = rows if isinstance(rows, list) else list(rows)
        if self.json:
            output.print_json(output.records(rows) if objects is None else list(objects))
        else:
            output.print_rows(rows, columns, empty=empty)
        if (after := getattr(rows, "next", None)) is not None:  # a `ListPage` has it
            output.print_note(f"There may be more: --after {after}")

    def show_record(self, value: dict[str, Any]) -> None:
        """Print one object: its fields below each other, or as JSON."""
        if self.json:
            output.print_json(value)
        else:
            output.print_fields(value)

    def show_moved(self, what: str, moved: Moved, *, done: str | None = None) -> None:
        """Print the state of a queue, a schedule or the like after a change; for people, `done` if it has changed."""
        outcome = (done or moved.state) if moved.changed else f"{moved.state} (unchanged)"
        self.answer(
            {what: moved.entity_id, "state": moved.state, "changed": moved.changed},
            f"{what} {line(moved.entity_id)}: {outcome}",
        )


def redaction_of(app: Detent) -> Redaction:
    """Return what redacts the secret fields of jobs. Imported when it is needed."""
    from detent.app import redaction

    return redaction.redaction_of(app)


def _import_app(where: str, named_in: str) -> Detent:
    from detent.worker.child.application import describe_import_error, load_app

    try:
        return load_app(where)
    except InvalidSetting as error:
        raise InvalidSetting(named_in, error.found, error.allowed) if error.field == "app" else error from None
    except DetentError:
        raise
    except (Exception, SystemExit) as error:
        raise CommandFailed(describe_import_error(where, error)) from error
