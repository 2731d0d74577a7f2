"""A shell task: a job that runs a command. Its output becomes events of the job, and its exit code the result."""

from __future__ import annotations

import inspect
import os
import selectors
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from detent.app.detent import Detent
from detent.client.task import PlainTask
from detent.declare.context import Context
from detent.declare.settings import inherited_environment
from detent.errors import DetentError, InvalidArguments, InvalidSetting
from detent.worker.attempt.context import AttemptContext
from detent.worker.supervisor.guarded_process import GuardedProcess, describe_exit

__all__ = ["CommandFailed", "shell"]

_INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")
_LINE_MAX = 8192
_TAIL_LINES = 20
_READ = 65_536
_LEVELS = {"stdout": "info", "stderr": "warning"}


class CommandFailed(DetentError):
    """The command of a shell task ended with an exit code other than 0."""

    def __init__(self, command: str, exit_code: int, tail: Sequence[str]) -> None:
        self.command = command
        self.exit_code = exit_code
        self.tail = tuple(tail)
        said = "".join(f"\n  {line}" for line in self.tail)
        super().__init__(f"{command} ended with {describe_exit(exit_code)}{said}")


def shell(
    app: Detent,
    name: str,
    command: Sequence[str] | Callable[..., Sequence[str]],
    *,
    env: Mapping[str, str] | None = None,
    inherit: Sequence[str] = _INHERITED,
    cwd: str | os.PathLike[str] | None = None,
    grace: float = 5.0,
    lines_max: int = 10_000,
    **options: Any,
) -> PlainTask[..., int]:
    """Declare a task that runs a command: `build = shell(app, "build", ["make", "site"])`.

    `command` is a list of words, or a function of the job's arguments that returns one. No shell interprets the words.
    The command gets the environment variables named in `inherit`, those of `env`, and DETENT_JOB_ID, DETENT_ATTEMPT and
    DETENT_EFFECT_KEY.

    Lines of standard output become events of level info, lines of standard error events of level warning. A long line
    is cut. After `lines_max` lines the rest is read but not kept. Exit code 0 is the result; any other raises
    `CommandFailed`, which is retried as the task's `retry` says. A cancel or a time-out sends SIGTERM to the whole
    process group, and SIGKILL after `grace` seconds. No process of the command outlives the command or its worker.
    """
    make, parameters, hints = _maker(name, command)
    if not isinstance(grace, int | float) or not 0 <= grace <= 3600:
        raise InvalidSetting("grace", repr(grace), "seconds from 0 to 3600")

    def run(ctx: Context, **arguments: Any) -> int:
        words = _words(name, make(**arguments))
        own = {
            "DETENT_JOB_ID": str(ctx.job_id),
            "DETENT_ATTEMPT": str(ctx.attempt),
            "DETENT_EFFECT_KEY": ctx.effect_key,
        }
        environment = inherited_environment(inherit) | dict(env or {}) | own
        pipe = subprocess.PIPE
        process = GuardedProcess(words, grace=grace, stdout=pipe, stderr=pipe, env=environment, cwd=cwd)
        try:
            if isinstance(ctx, AttemptContext):
                ctx.on_cancel(process.terminate)
            output = _Output(ctx, lines_max)
            output.follow({"stdout": process.stdout, "stderr": process.stderr})
            code = process.wait()
        finally:
            process.close()
        if code != 0:
            raise CommandFailed(words[0], code, output.tail)
        return code

    run.__doc__ = f"Run the command of {name}."
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_ONLY), *parameters], return_annotation=int
    )
    run.__annotations__ = {**hints, "return": int}
    task: PlainTask[..., int] = app.task(name=name, **options)(run)
    return task


def _maker(
    name: str, command: Sequence[str] | Callable[..., Sequence[str]]
) -> tuple[Callable[..., Sequence[str]], list[inspect.Parameter], dict[str, Any]]:
    """Return the function that makes the words of the command, with its parameters and their types."""
    if callable(command):
        hints = {key: hint for key, hint in inspect.get_annotations(command, eval_str=True).items() if key != "return"}
        return command, list(inspect.signature(command).parameters.values()), hints
    words = _words(name, command)
    return lambda: words, [], {}


def _words(name: str, found: Any) -> list[str]:
    if isinstance(found, str | bytes) or not isinstance(found, Sequence) or not found:
        raise InvalidArguments(name, repr(found)[:80], 'a list of words, such as ["make", "site"]')
    for word in found:
        if not isinstance(word, str) or "\0" in word:
            raise InvalidArguments(name, repr(word)[:80], "words that are strings without NUL")
    return list(found)


class _Output:
    """Turns the output of a command into events, line by line as it comes."""

    def __init__(self, ctx: Context, lines_max: int) -> None:
        self._ctx = ctx
        self._lines_max = lines_max
        self._lines = 0
        self.tail: deque[str] = deque(maxlen=_TAIL_LINES)
        """The last lines of the standard error."""

    def follow(self, streams: Mapping[str, IO[bytes]]) -> None:
        """Read until all other ends of the pipes are closed."""
        with selectors.DefaultSelector() as selector:
            for name, stream in streams.items():
                selector.register(stream.fileno(), selectors.EVENT_READ, _Stream(name))
            while selector.get_map():
                for key, _ in selector.select():
                    stream_ = key.data
                    data = os.read(key.fd, _READ)
                    for line in stream_.lines(data):
                        self._line(stream_.name, line)
                    if not data:
                        selector.unregister(key.fd)

    def _line(self, stream: str, line: bytes) -> None:
        text = line.decode("utf-8", "replace").replace("\0", "\ufffd")
        if stream == "stderr":
            self.tail.append(text)
        self._lines += 1
        # A key for each line, so that equal lines are separate events.
        key = f"{self._ctx.attempt}:{self._lines}"
        if self._lines <= self._lines_max:
            self._ctx.event(text, level=_LEVELS[stream], key=key)
        elif self._lines == self._lines_max + 1:
            self._ctx.event(f"more than {self._lines_max} lines: the rest is not kept", level="warning", key=key)


class _Stream:
    """Splits the bytes of a stream into lines, and cuts lines that are too long."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._rest = b""
        self._cut = False

    def lines(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete with this data. Empty data ends the stream: return what is left."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        if not data and self._rest:
            whole, self._rest = [*whole, self._rest], b""
        found = [line for line in map(self._within, whole) if line is not None]
        if len(self._rest) > _LINE_MAX:
            if not self._cut:
                found.append(_short(self._rest))
            self._cut, self._rest = True, b""
        return found

    def _within(self, line: bytes) -> bytes | None:
        if self._cut:
            # This is the rest of a line whose beginning was returned already.
            self._cut = False
            return None
        line = line.removesuffix(b"\r")
        return _short(line) if len(line) > _LINE_MAX else line


def _short(line: bytes) -> bytes:
    return line[:_LINE_MAX] + " … cut".encode()
