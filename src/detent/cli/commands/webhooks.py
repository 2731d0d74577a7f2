"""`detent webhooks`: list the declared webhooks, and send a test delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from detent.cli import output
from detent.cli.command import Group, with_tasks
from detent.cli.failures import FAILED, CommandFailed
from detent.cli.options import option, page_options
from detent.cli.session import Session
from detent.errors import InvalidInput, NotFound
from detent.model.terminal_text import line

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["webhooks"]

_SECONDS_MAX = 30
_ANSWER_MAX = 1000

webhooks = Group(
    "webhooks",
    help="List the declared webhooks, and send a test delivery.",
    examples=("detent webhooks list --app shop:app", "detent webhooks send github-push push.json --app shop:app"),
)


@webhooks.command("list")
@page_options
@with_tasks
def list_(session: Session, app: Detent, limit: int, after: str | None) -> None:
    """List incoming webhooks. Needs an application.

    STATE is `off` if the secret of a webhook is missing here. Secrets are never shown.
    """
    found = app.webhooks.list(limit=limit, after=after)
    state = ("STATE", lambda one: "on" if one.is_on else "off")
    session.show_rows(found, output.columns("name", state, "path", "verify", "size_max"), empty="no webhooks")


@webhooks.command()
@page_options
@with_tasks
def targets(session: Session, app: Detent, limit: int, after: str | None) -> None:
    """List the targets of outgoing webhooks. Needs an application.

    STATE is `off` if the secret or the URL of a target is missing here. Paths of URLs are not shown.
    """
    found = app.webhooks.targets(limit=limit, after=after)
    state = ("STATE", lambda one: "on" if one.is_on else "off")
    events = ("EVENTS", lambda one: ", ".join(one.events))
    tasks = ("TASKS", lambda one: ", ".join(one.tasks) or "all")
    session.show_rows(found, output.columns("name", state, "origin", events, tasks), empty="no targets")


@webhooks.command()
@click.argument("name", metavar="NAME")
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@option("--to", "URL of the server.", "URL", default="http://127.0.0.1:8321")
@option("--event", "Name of the event, for providers that send it in a header.", "NAME", default="test")
@option("--delivery-id", "Id of the delivery. Default: a new one.", "ID")
@with_tasks
def send(
    session: Session, app: Detent, name: str, file: str, to: str, event: str, delivery_id: str | None
) -> int | None:
    """Send a test delivery to a server, signed as the provider signs it. Needs an application.

    FILE has the body; `-` reads the standard input. The secret is that of the declaration.
    """
    hook = app.incoming_webhooks.get(name)
    if hook is None:
        raise NotFound("webhook", repr(name))
    try:
        with click.open_file(file, "rb") as opened:
            body = opened.read()
    except OSError as error:
        raise InvalidInput("file", f"{file}: {error.strerror}", "a file that can be read, or - for the input") from None
    headers = hook.signed(body, delivery_id or f"test-{app.ids.nonce():x}", event)
    url = f"{to.rstrip('/')}{hook.path}"
    status, text = _post(url, body, headers)
    session.answer({"status": status, "answer": text}, f"{line(url)}: {status} {line(text)}")
    return None if status < 300 else FAILED


def _post(url: str, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
    """Post a delivery, and return the status and the beginning of the answer."""
    from urllib import error, request

    if not url.startswith(("http://", "https://")):
        raise InvalidInput("to", repr(url)[:80], "a URL such as http://127.0.0.1:8321")
    try:
        with request.urlopen(request.Request(url, body, headers, method="POST"), timeout=_SECONDS_MAX) as answer:
            return answer.status, answer.read(_ANSWER_MAX).decode("utf-8", "replace")
    except error.HTTPError as refused:
        with refused:
            return refused.code, refused.read(_ANSWER_MAX).decode("utf-8", "replace")
    except (OSError, ValueError) as failed:
        reason = failed.reason if isinstance(failed, error.URLError) else failed
        hint = "Is the server running? Start it with `detent server`"
        raise CommandFailed(f"no answer from {url[:200]}: {reason}. {hint}") from None
