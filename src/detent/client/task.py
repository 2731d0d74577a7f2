"""Tasks that can be enqueued."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from detent.client.job import Job
from detent.declare.context import Context
from detent.declare.enqueue import ENQUEUE_OPTIONS
from detent.declare.settings import Settings
from detent.declare.task import Call, Options, Task
from detent.errors import InvalidArguments

__all__ = ["AsyncTask", "DeclareTask", "PlainTask", "SendableTask", "Sender"]

P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D")


class Sender(Protocol):
    """Sends calls: the application."""

    def enqueue(self, call: Call[R], /) -> Job[R]:
        """Enqueue the call with the options of its task."""
        ...


class SendableTask(Task[P, R, D]):
    """A declared task, as `@app.task` returns it. `task.call(...)` describes a call and `task.enqueue(...)` sends it,
    both typed by the function's own signature. `task(ctx, ...)` just runs the function. `name`, `aliases` and `options`
    are those of the declaration."""

    def __init__(
        self,
        function: Callable[Concatenate[Context, P], D],
        *,
        name: str | None,
        aliases: Sequence[str],
        options: Options,
        settings: Settings,
        sender: Sender,
    ) -> None:
        super().__init__(function, name=name, aliases=aliases, options=options, settings=settings)
        self._sender = sender

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Enqueue a call with the task's own options, and return the job. To pass options such as `key`, use
        `app.enqueue(task.call(...), key=…)`. `InvalidArguments`."""
        try:
            call = self.call(*args, **kwargs)
        except InvalidArguments as error:
            misplaced = [name for name in kwargs if name in ENQUEUE_OPTIONS and name not in self.parameters]
            if not misplaced:
                raise
            found = f"{misplaced[0]}, an option of enqueue, among the arguments"
            how = f"app.enqueue({self.__name__}.call(...), {misplaced[0]}=...)"
            raise InvalidArguments(self.name, found, how) from error
        return self._sender.enqueue(call)


PlainTask = SendableTask[P, R, R]
AsyncTask = SendableTask[P, R, Coroutine[Any, Any, R]]


class DeclareTask(Protocol):
    """The decorator that `@app.task(...)` returns. The result of a coroutine function's jobs is what it returns."""

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> PlainTask[P, R]: ...
