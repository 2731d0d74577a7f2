"""A task that can be sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from detent.client.job import Job
from detent.declare.context import Context
from detent.declare.settings import Settings
from detent.declare.task import Call, Options, Task

__all__ = ["SendableTask", "Sender"]

P = ParamSpec("P")
R = TypeVar("R")


class Sender(Protocol):
    """Whoever sends: the application."""

    def enqueue(self, call: Call[R], /) -> Job[R]:
        """Enqueue the call as its task says."""
        ...


class SendableTask(Task[P, R]):
    """What `@app.task` gives: `task.enqueue(...)` sends a call, typed by the function's own signature."""

    def __init__(
        self,
        function: Callable[Concatenate[Context, P], R],
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
        """Send a call with the task's own options; the job's handle. For more, `app.enqueue(task.call(...), key=…)`."""
        return self._sender.enqueue(self.call(*args, **kwargs))
