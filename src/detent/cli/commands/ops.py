"""`detent ops`: runs of builds, deploys and backups, for shells without psql and for SQLite."""

from __future__ import annotations

import dataclasses
import os
import select
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, get_args

import click

from detent.cli import render
from detent.cli.command import Group, duration, paged, reason_option, say_more
from detent.cli.failures import FAILED, NOT_FOUND, OK, say
from detent.cli.session import Session
from detent.errors import DatabaseError, DetentError
from detent.lifecycle.library import OPS_RUN
from detent.model import jsondoor
from detent.model.escape import line
from detent.model.ops_records import OpsEnd
from detent.model.records import EventRow
from detent.ops.run import OpsRun, event_id

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["command"]

run_argument = click.argument("run", metavar="RUN")
token_option = click.option("--token", metavar="TOKEN", help="Token of the claim. Default: the current holder.")
_STDIN = "-"
_READ_SIZE = 65536


def _json_object(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for text in texts:
        found = jsondoor.decode(text, field=str(option.name))
        if not isinstance(found, dict):
            raise click.BadParameter("a JSON object is needed")
        whole |= found
    return whole


def _named_text(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any]:
    parted = [text.partition("=") for text in texts]
    for name, sign, _ in parted:
        if not sign or not name:
            raise click.BadParameter("NAME=TEXT is needed")
    return {name: text for name, _, text in parted}


def metadata_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is kept with a run: objects, and texts that need no quoting."""
    for option in (
        click.option(
            "--set", "texts", multiple=True, callback=_named_text, metavar="NAME=TEXT", help="One text of the metadata."
        ),
        click.option(
            "--metadata", multiple=True, callback=_json_object, metavar="JSON", help="An object to be kept with it."
        ),
    ):
        function = option(function)
    return function


@click.group("ops", cls=Group)
def command() -> None:
    """Queue, claim, log and finish ops runs.

    A run goes from queued through claimed and running to success, failed or cancelled.
    """


@command.command()
@click.argument("project_id", metavar="PROJECT")
@click.argument("env", metavar="ENV")
@click.option("--git-sha", metavar="SHA", help="The commit.")
@click.option("--git-ref", metavar="REF", help="The branch or tag.")
@metadata_options
@click.option("--key", metavar="TEXT", help="The same key answers the same run.")
@click.option("--expires-in", type=duration, metavar="TIME", help="Cancel the run if no worker claims it in this time.")
@click.pass_obj
def queue(
    session: Session,
    project_id: str,
    env: str,
    git_sha: str | None,
    git_ref: str | None,
    metadata: dict[str, Any],
    texts: dict[str, Any],
    key: str | None,
    expires_in: float | None,
) -> None:
    """Queue a run. Prints its id; where the key found an earlier run, that one's."""
    with session.open() as app:
        expires_at = None if expires_in is None else app.store.now() + timedelta(seconds=expires_in)
        run = app.ops.queue(
            project_id,
            env,
            git_sha=git_sha,
            git_ref=git_ref,
            metadata=metadata | texts,
            key=key,
            expires_at=expires_at,
        )
    if session.json:
        render.json_value(_object(run) | {"created": run.created})
        return
    render.out(run.id)
    if not run.created:
        render.note("the key found this run; nothing was queued")


@command.command()
@click.argument("worker", metavar="WORKER")
@click.pass_obj
def claim(session: Session, worker: str) -> int:
    """Take the run that was queued first. Exit code 3 where none waits.

    Prints lines of the form name=value: run_id, token, project_id, env, git_sha, git_ref. Begin within five minutes,
    and give the token along with whatever you say of the run. While no Detent worker runs, a claim also judges alerts.
    """
    with session.open() as app:
        run = app.ops.claim(worker)
        if not app.workers.list():
            _judge(app)
    if run is None:
        if session.json:
            render.json_value(None)
        render.note("no run is queued")
        return NOT_FOUND
    if session.json:
        render.json_value(_object(run) | {"token": run.token})
        return OK
    told = {"run_id": run.id, "token": run.token, "project_id": run.project_id, "env": run.env}
    for name, value in (told | {"git_sha": run.git_sha, "git_ref": run.git_ref}).items():
        render.out(f"{name}={line(value or '')}")
    return OK


def _judge(app: Detent) -> None:
    """Judge alerts if no worker runs that would. A claim never fails because of it."""
    try:
        app.alerts.judge()
    except DetentError as error:
        say(f"alerts were not judged: {error}")


@command.command()
@run_argument
@click.argument("message", metavar="MESSAGE")
@click.option("--level", default="info", show_default=True, metavar="LEVEL", help="How much it matters.")
@click.option("--payload", multiple=True, callback=_json_object, metavar="JSON", help="An object that goes with it.")
@click.option("--key", metavar="TEXT", help="The same key answers the same line.")
@click.option(
    "--renew-every",
    type=duration,
    default="1m",
    show_default=True,
    metavar="TIME",
    help="With `-`: renew the run when no line has come for this long.",
)
@token_option
@click.pass_obj
def event(
    session: Session,
    run: str,
    message: str,
    level: str,
    payload: dict[str, Any],
    key: str | None,
    renew_every: float,
    token: str | None,
) -> None:
    """Append a line to a run: a sign of life, of which there must be one every ten minutes.

    The first one makes a claimed run running. `-` appends each line of stdin as it comes, with its number, and renews
    the run while no line comes, so a build may be silent for as long as it likes. Exit code 4 as soon as the run is no
    longer yours, such as after a cancel, also while no line comes; what writes into the pipe then gets SIGPIPE.
    """
    if message == _STDIN and key is not None:
        raise click.UsageError("Lines of stdin have numbers, and no --key.")
    if renew_every <= 0:
        raise click.UsageError("--renew-every is more than 0 seconds.")
    with session.open() as app:
        most = app.settings.event_max

        def renew() -> None:
            try:
                app.ops.renew(run, token=token)
            except DatabaseError as error:
                # The lease outlives a short outage of the database; the next line or renewal tells.
                say(str(error))

        lines = _lines(most, payload, renew_every, renew) if message == _STDIN else [(message, payload or None)]
        for text, more in lines:
            name = app.ops.event(run, text, level=level, payload=more, key=key, token=token)
            if session.json:
                render.json_line({"event_id": name})
            elif message != _STDIN:
                render.out(name)


def _lines(
    most: int, payload: Mapping[str, Any], renew_every: float, renew: Callable[[], None]
) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """Lines of stdin with their numbers: so that those that read alike are told apart. Whatever a command prints can be
    said: what is no text becomes marks, and what is too long is cut. Calls `renew` when no line has come for long."""
    for number, text in enumerate(_raw_lines(most // 3, renew_every, renew), start=1):
        yield text.decode(errors="replace").replace("\0", "\ufffd"), {**payload, "line": number}


def _raw_lines(most: int, renew_every: float, renew: Callable[[], None]) -> Iterator[bytes]:
    """Lines of stdin without their ends, cut to `most` bytes. A line that comes in pieces is kept until it is whole."""
    stdin = sys.stdin.fileno()
    begun = b""
    while True:
        if not select.select([stdin], [], [], renew_every)[0]:
            renew()
            continue
        piece = os.read(stdin, _READ_SIZE)
        *lines, rest = piece.split(b"\n")
        for one in lines:
            yield (begun + one)[:most]
            begun = b""
        begun = (begun + rest)[:most]
        if not piece:
            if begun:
                yield begun
            return


@command.command("renew")
@run_argument
@token_option
@click.pass_obj
def renew_(session: Session, run: str, token: str | None) -> None:
    """Extend the lease of a run to ten minutes from now, without a line.

    For workers that have nothing to say for long. Prints the state of the run; exit code 4 if the run is no longer
    yours, such as after a cancel.
    """
    with session.open() as app:
        state = app.ops.renew(run, token=token)
    if session.json:
        render.json_value({"run_id": run, "state": state})
    else:
        render.out(state)


@command.command()
@run_argument
@click.argument("state", type=click.Choice(get_args(OpsEnd)))
@metadata_options
@token_option
@click.pass_obj
def finish(
    session: Session, run: str, state: OpsEnd, metadata: dict[str, Any], texts: dict[str, Any], token: str | None
) -> None:
    """End a run. The same end again changes nothing; another one is refused with exit code 4.

    The metadata is merged with what it was queued with. Prints the state it has now.
    """
    with session.open() as app:
        _say(session, app.ops.finish(run, state, metadata=metadata | texts, token=token))


@command.command()
@run_argument
@reason_option
@click.pass_obj
def cancel(session: Session, run: str, reason: str | None) -> None:
    """Stop a run. Its holder is refused from then on."""
    with session.open() as app:
        _say(session, app.ops.cancel(run, reason=reason))


@command.command("list")
@click.option("--project-id", metavar="NAME", help="Only runs of this project.")
@click.option("--env", metavar="NAME", help="Only runs for this environment.")
@click.option("--state", type=click.Choice(list(OPS_RUN.states)), help="Only runs in this state.")
@paged
@click.pass_obj
def list_(
    session: Session, project_id: str | None, env: str | None, state: str | None, limit: int, after: str | None
) -> None:
    """List runs, the newest first."""
    with session.open() as app:
        runs = app.ops.list(project_id=project_id, env=env, state=state, limit=limit, after=after)
    say_more(runs)
    if session.json:
        render.json_value([_object(run) for run in runs])
        return
    render.table(
        ["RUN", "PROJECT", "ENV", "STATE", "REF", "SHA", "WORKER", "QUEUED", "FINISHED"],
        [
            [
                *(run.id, run.project_id, run.env, run.state, run.git_ref, (run.git_sha or "")[:12], run.claimed_by),
                *(run.queued_at, run.finished_at),
            ]
            for run in runs
        ],
        empty="no runs",
    )


@command.command()
@run_argument
@click.pass_obj
def get(session: Session, run: str) -> None:
    """Show a run with its metadata."""
    with session.open() as app:
        found = app.ops.get(run)
    if session.json:
        render.json_value(_object(found))
        return
    told = {name: value for name, value in _object(found).items() if name != "metadata"}
    metadata = jsondoor.encode(found.metadata, field="metadata", size_max=1 << 22, depth_max=256)
    render.fields(told | {"metadata": None if metadata == "{}" else metadata})


@command.command()
@click.argument("project_id", metavar="[PROJECT]", required=False)
@click.pass_obj
def environments(session: Session, project_id: str | None) -> None:
    """List environments (of a project)."""
    with session.open() as app:
        found = app.ops.environments(project_id)
    if session.json:
        render.json_value(render.records(found))
        return
    render.table(["PROJECT", "ENV"], [[one.project_id, one.name] for one in found], empty="no environments")


@command.command()
@run_argument
@click.option("--wait/--no-wait", default=True, help="Go on until the run has ended, or only print the lines so far.")
@click.pass_obj
def follow(session: Session, run: str, wait: bool) -> int:
    """Print a run's lines as they come, until it has ended. Exit code 1 where it ended without success."""
    with session.open() as app:
        for event in app.ops.follow(run, wait=wait):
            _print(session, event)
        found = app.ops.get(run)
    if not wait and not found.rests:
        return OK
    if session.json:
        render.json_line({"run_id": found.id, "state": found.state})
    else:
        render.out(f"{found.id}: {found.state}")
    return OK if found.state == "success" else FAILED


def _print(session: Session, event: EventRow) -> None:
    if session.json:
        render.json_line({"event_id": event_id(event.job_id, event.seq), **render.plain(event)})
        return
    payload = "" if event.payload in (None, "{}") else f"  {line(event.payload or '')}"
    render.out(f"{render.when(event.at)}  {line(event.level):<8}  {line(event.message)}{payload}")
    render.flush()


def _say(session: Session, run: OpsRun) -> None:
    if session.json:
        render.json_value(_object(run))
    else:
        render.out(run.state)


def _object(run: OpsRun) -> dict[str, Any]:
    told = {one.name: getattr(run, one.name) for one in dataclasses.fields(run)}
    return {"run_id": told.pop("id")} | {name: told[name] for name in told if name not in ("token", "created")}
