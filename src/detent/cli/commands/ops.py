"""`detent ops`: runs of builds, deploys and backups, for shell scripts."""

from __future__ import annotations

import dataclasses
import os
import select
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, get_args

import click

from detent.cli import output
from detent.cli.command import Group, with_app
from detent.cli.failures import FAILED, NOT_FOUND, OK, print_error
from detent.cli.options import combined, duration, flag, option, page_options, reason_option
from detent.cli.session import Session
from detent.errors import DatabaseError, DetentError
from detent.lifecycle.library import OPS_RUN
from detent.model import json_codec
from detent.model.ops_records import OpsEnd
from detent.model.terminal_text import line
from detent.ops.ops_run import OpsRun, event_id

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["ops"]

ops = Group(
    "ops",
    help="""Queue, claim, log and finish ops runs.

    The states of a run: queued, claimed, running, and in the end success, failed or cancelled.
    """,
    examples=("detent ops queue shop staging --git-sha abc", "detent ops follow run-17"),
)
run_argument = click.argument("run", metavar="RUN")
token_option = option("--token", "Token of the claim. Default: the current holder.", "TOKEN")
_STDIN = "-"
_READ_SIZE = 65536


def _json_object(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for text in texts:
        found = json_codec.decode(text, field=str(option.name))
        if not isinstance(found, dict):
            raise click.BadParameter("a JSON object is needed")
        whole |= found
    return whole


def _named_texts(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any]:
    pairs = [text.partition("=") for text in texts]
    for name, sign, _ in pairs:
        if not sign or not name:
            raise click.BadParameter("NAME=TEXT is needed")
    return {name: text for name, _, text in pairs}


metadata_options = combined(
    option(
        "--metadata", "JSON object to keep with the run (repeatable).", "JSON", multiple=True, callback=_json_object
    ),
    option(
        "--set", "One text of the metadata (repeatable).", "NAME=TEXT", to="texts", multiple=True, callback=_named_texts
    ),
)


@ops.command()
@click.argument("project_id", metavar="PROJECT")
@click.argument("env", metavar="ENV")
@option("--git-sha", "Commit.", "SHA")
@option("--git-ref", "Branch or tag.", "REF")
@metadata_options
@option("--key", "Idempotency key: the same key returns the same run.", "TEXT")
@option("--expires-in", "Cancel the run if no worker claims it in this time.", duration)
@with_app
def queue(
    session: Session,
    app: Detent,
    metadata: dict[str, Any],
    texts: dict[str, Any],
    expires_in: float | None,
    **options: Any,
) -> None:
    """Queue a run. Prints its id, or that of the earlier run with the same key."""
    expires_at = None if expires_in is None else app.store.now() + timedelta(seconds=expires_in)
    run = app.ops.queue(**options, metadata=metadata | texts, expires_at=expires_at)
    session.answer(_run_object(run) | {"created": run.created}, run.id)
    if not run.created and not session.json:
        output.print_note("the key belongs to this run already; nothing was queued")


@ops.command()
@click.argument("worker", metavar="WORKER")
@with_app
def claim(session: Session, app: Detent, worker: str) -> int:
    """Claim the run that was queued first. Exit code 3 if none is queued.

    Prints lines of the form name=value: run_id, token, project_id, env, git_sha, git_ref. Write the first event within
    five minutes, and pass the token to every other command for the run. While no Detent worker runs, a claim also
    judges alerts.
    """
    run = app.ops.claim(worker)
    if not app.workers.list():
        _judge_alerts(app)
    if run is None:
        if session.json:
            output.print_json(None)
        output.print_note("no run is queued")
        return NOT_FOUND
    if session.json:
        output.print_json(_run_object(run) | {"token": run.token})
        return OK
    claimed = {"run_id": run.id, "token": run.token, "project_id": run.project_id, "env": run.env}
    for name, value in (claimed | {"git_sha": run.git_sha, "git_ref": run.git_ref}).items():
        output.print_text(f"{name}={line(value or '')}")
    return OK


def _judge_alerts(app: Detent) -> None:
    """Judge alerts, since no worker does. An error is printed, and the claim goes on."""
    try:
        app.alerts.judge()
    except DetentError as error:
        print_error(f"alerts were not judged: {error}")


@ops.command()
@run_argument
@click.argument("message", metavar="MESSAGE")
@option("--level", "Level of the event.", "LEVEL", default="info")
@option("--payload", "JSON object of the event (repeatable).", "JSON", multiple=True, callback=_json_object)
@option("--key", "Idempotency key: the same key returns the same event.", "TEXT")
@option("--renew-every", "With `-`: renew the lease if no line has come for this long.", duration, default="1m")
@token_option
@click.pass_obj
def event(
    session: Session,
    run: str,
    message: str,
    payload: dict[str, Any],
    key: str | None,
    renew_every: float,
    token: str | None,
    level: str,
) -> None:
    """Append an event to a run. It is a heartbeat: one is needed every ten minutes.

    The first event starts a claimed run. `-` appends each line of stdin as it comes, with its number, and renews the
    lease while no line comes, so a build may be silent for long. Exit code 4 as soon as the run is no longer yours,
    such as after a cancel, even while no line comes; the program that writes into the pipe then gets SIGPIPE.
    """
    if message == _STDIN and key is not None:
        raise click.UsageError("Lines of stdin take no --key: their numbers tell them apart.")
    if renew_every <= 0:
        raise click.UsageError("--renew-every must be longer than 0 seconds.")
    with session.open() as app:

        def renew() -> None:
            try:
                app.ops.renew(run, token=token)
            except DatabaseError as error:
                # The lease outlives a short outage of the database; the next line or renewal is refused if it did not.
                print_error(str(error))

        lines = _stdin_lines(app.settings.event_max, payload, renew_every, renew)
        for text, more in lines if message == _STDIN else [(message, payload or None)]:
            written = app.ops.event(run, text, level=level, payload=more, key=key, token=token)
            if session.json:
                output.print_json_line({"event_id": written})
            elif message != _STDIN:
                output.print_text(written)


def _stdin_lines(
    most: int, payload: Mapping[str, Any], renew_every: float, renew: Callable[[], None]
) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """Yield the lines of stdin, each with a payload that has its number. Bytes that are not UTF-8 are replaced, and
    long lines are cut. Calls `renew` if no line has come for `renew_every` seconds."""
    for number, text in enumerate(_raw_stdin_lines(most // 3, renew_every, renew), start=1):
        yield text.decode(errors="replace").replace("\0", "\ufffd"), {**payload, "line": number}


def _raw_stdin_lines(most: int, renew_every: float, renew: Callable[[], None]) -> Iterator[bytes]:
    """Yield the lines of stdin without their ends, cut to `most` bytes. A partial line is kept until it is complete."""
    stdin = sys.stdin.fileno()
    partial = b""
    while True:
        if not select.select([stdin], [], [], renew_every)[0]:
            renew()
            continue
        piece = os.read(stdin, _READ_SIZE)
        *lines, rest = piece.split(b"\n")
        for one in lines:
            yield (partial + one)[:most]
            partial = b""
        partial = (partial + rest)[:most]
        if not piece:
            if partial:
                yield partial
            return


@ops.command("renew")
@run_argument
@token_option
@with_app
def renew_(session: Session, app: Detent, run: str, token: str | None) -> None:
    """Renew the lease of a run without an event.

    The lease then lasts ten minutes from now. Prints the state of the run. Exit code 4 if the run is no longer yours,
    such as after a cancel.
    """
    state = app.ops.renew(run, token=token)
    session.answer({"run_id": run, "state": state}, state)


@ops.command()
@run_argument
@click.argument("state", metavar="STATE", type=click.Choice(get_args(OpsEnd)))
@metadata_options
@token_option
@reason_option
@with_app
def finish(
    session: Session,
    app: Detent,
    run: str,
    state: OpsEnd,
    metadata: dict[str, Any],
    texts: dict[str, Any],
    token: str | None,
    reason: str | None,
) -> None:
    """End a run.

    STATE is success, failed or cancelled. The same end again is a no-op; another end is refused with exit code 4. The
    metadata is merged with that of the run. Prints the state of the run.
    """
    found = app.ops.finish(run, state, metadata=metadata | texts, token=token, reason=reason)
    session.answer(_run_object(found), found.state)


@ops.command()
@run_argument
@reason_option
@with_app
def cancel(session: Session, app: Detent, run: str, reason: str | None) -> None:
    """Cancel a run. From then on its holder is refused."""
    found = app.ops.cancel(run, reason=reason)
    session.answer(_run_object(found), found.state)


@ops.command("list")
@option("--project-id", "Only runs of this project.", "NAME")
@option("--env", "Only runs for this environment.", "NAME")
@option("--state", "Only runs in this state.", list(OPS_RUN.states))
@page_options
@with_app
def list_(session: Session, app: Detent, **chosen: Any) -> None:
    """List runs, the newest first."""
    found = app.ops.list(**chosen)
    revision = (("REF", "git_ref"), ("SHA", lambda run: (run.git_sha or "")[:12]))
    times = ("queued_at", "finished_at")
    columns = output.columns(("RUN", "id"), "project_id", "env", "state", *revision, ("WORKER", "claimed_by"), *times)
    session.show_rows(found, columns, empty="no runs", objects=map(_run_object, found))


@ops.command()
@run_argument
@with_app
def get(session: Session, app: Detent, run: str) -> None:
    """Show a run with its metadata."""
    found = app.ops.get(run)
    if session.json:
        output.print_json(_run_object(found))
        return
    metadata = json_codec.encode(found.metadata, field="metadata", size_max=1 << 22, depth_max=256)
    output.print_fields(_run_object(found) | {"metadata": None if metadata == "{}" else metadata})


@ops.command()
@click.argument("project_id", metavar="[PROJECT]", required=False)
@with_app
def environments(session: Session, app: Detent, project_id: str | None) -> None:
    """List the environments of all projects, or of one."""
    found = app.ops.environments(project_id)
    session.show_rows(found, output.columns("project_id", ("ENV", "name")), empty="no environments")


@ops.command()
@run_argument
@flag("--wait/--no-wait", "Wait until the run has ended, or print the events so far. Default: --wait.", default=True)
@with_app
def follow(session: Session, app: Detent, run: str, wait: bool) -> int:
    """Print the events of a run as they come, until it has ended. Exit code 1 if it did not end with success."""
    for one in app.ops.follow(run, wait=wait):
        if session.json:
            output.print_json_line({"event_id": event_id(one.job_id, one.seq), **output.to_object(one)})
        else:
            output.print_event(one)
            output.flush()
    found = app.ops.get(run)
    if not wait and not found.rests:
        return OK
    if session.json:
        output.print_json_line({"run_id": found.id, "state": found.state})
    else:
        output.print_text(f"{found.id}: {found.state}")
    return OK if found.state == "success" else FAILED


def _run_object(run: OpsRun) -> dict[str, Any]:
    fields = {one.name: getattr(run, one.name) for one in dataclasses.fields(run)}
    return {"run_id": fields.pop("id")} | {name: fields[name] for name in fields if name not in ("token", "created")}
