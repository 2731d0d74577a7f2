"""Hostile words on the command line: commands run in this process, on the application of a world."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from typing import Any

import click

from detent.cli import output
from detent.cli.command import COMMON
from detent.cli.failures import CommandFailed, exit_code, report
from detent.cli.main import root
from detent.cli.session import Session
from detent.errors import DetentError
from prove.hostile.calls import Call, Verdict, argument, clipped, hostile
from prove.hostile.values import Values
from prove.hostile.world import World

__all__ = ["command_call"]

_LEFT_OUT = {
    *("archive", "backup", "demo", "dev", "doctor", "migrate", "move", "server", "top", "worker", "completion"),
    *("repair", "verify"),
}
"""They start processes, or read or write whole databases and files."""
_LEFT_OUT_OPTIONS = {
    "wait",
    "follow",
    "timeout",
    "watch",
    "every",
    "only_from",
    "to",
    "out",
    "file",
    "url",
    "renew_every",
}
"""They wait, read files, or send to other machines."""
_RANDOM_ANSWERS = {"tokens", "webhooks", "identities", "workers", "ops", "figures", "rates", "operations"}
_RAW = {
    *map(chr, range(0x20)),
    "\x7f",
    *map(chr, range(0x80, 0xA0)),
    *"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
} - {"\n", "\t"}
"""What must not reach a terminal."""
_CALM = (click.ClickException, click.Abort, click.exceptions.Exit, CommandFailed, DetentError, SystemExit)


def _commands(group: click.Group, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if found is None or (not before and name in _LEFT_OUT) or {name, name.replace("-", "_")} & _LEFT_OUT:
            continue
        if isinstance(found, click.Group):
            yield from _commands(found, (*before, name))
        else:
            yield (*before, name), found


_WAIT_OR_SEND = {"wait", "watch", "follow", "send"}
COMMANDS = [one for one in _commands(root) if one[0][-1] not in _WAIT_OR_SEND]


class _Lent(Session):
    """A session on the application of a world, which stays open."""

    def __init__(self, world: World) -> None:
        super().__init__(actor="ana")
        self._app: Any = world.app

    @contextmanager
    def open(self) -> Iterator[Any]:
        with self._app.acting_as(self.actor_name):
            yield self._app

    def open_or_create(self) -> Any:
        return nullcontext(self._app)

    def require_application(self) -> str:
        return "shop:app"


def command_call(values: Values, ids: dict[str, str]) -> Call:
    """Draw a command and its words."""
    path, command = values.one(COMMANDS)
    words: list[str] = []
    for one in command.params:
        name = str(one.name)
        if name in COMMON or name in _LEFT_OUT_OPTIONS:
            continue
        if isinstance(one, click.Option):
            if not (one.required or values.random.random() < 0.25):
                continue
            option = max(one.opts, key=len)
            words += [option] if one.is_flag else [option, _word(one, name, ids, values)]
        elif one.required or values.random.random() < 0.7:
            words.append(_word(one, name, ids, values))
    if values.random.random() < 0.03:
        words.append(values.text())
    if "-" not in words and values.random.random() < 0.3:
        words.append("--json")
    # The system gives a program no NUL, and bytes that are not UTF-8 as surrogates.
    argv = [*path, *(_as_given(word) for word in words if word not in ("--wait", "--follow", "-"))]
    return Call("command line", f"detent {clipped(argv)}", lambda world: _run(world, argv))


def _word(one: click.Parameter, name: str, ids: dict[str, str], values: Values) -> str:
    if isinstance(one.type, click.Choice) and values.random.random() < 0.7:
        return str(values.one(list(one.type.choices)))
    if values.random.random() < 0.5 and (found := argument(name, ids, values)) is not None:
        return clipped(found) if not isinstance(found, str) else found
    return str(hostile(name, values, as_text=True))


def _as_given(word: str) -> str:
    return word.replace("\0", "").encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")[:120_000]


def _run(world: World, argv: list[str]) -> Verdict:
    out, err = io.StringIO(), io.StringIO()
    stdin, sys.stdin = sys.stdin, io.StringIO("")
    code, wrong = 0, ""
    try:
        with redirect_stdout(out), redirect_stderr(err):
            try:
                ended = root.main(list(argv), prog_name="detent", standalone_mode=False, obj=_Lent(world))
                output.flush()
                code = ended if isinstance(ended, int) else 0
            except _CALM as error:
                code = report(error) if isinstance(error, Exception) else exit_code(error)
            except Exception as error:
                code, wrong = 1, f"raised {type(error).__name__}: {clipped(str(error))}"
    finally:
        sys.stdin = stdin
    said, complained = (text.getvalue().replace(world.app.store.name, "DATABASE") for text in (out, err))
    if not wrong and (found := sorted(_RAW.intersection(said + complained))):
        wrong = f"printed {found!r} as it is: {clipped(said + complained)}"
    shown = "" if argv[0] in _RANDOM_ANSWERS and code == 0 else said
    return Verdict(code == 0, f"exit code {code}: {complained}{shown}", wrong)
