"""What a workflow's function can ask for, apart from what writes or waits. See `WorkflowContext` for what each name
promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import UTC, datetime
from typing import Any, Self
from uuid import UUID, uuid5

from detent.declare.workflow import Local, check_name
from detent.declare.workflow_context import Child, Wait
from detent.errors import InvalidInput
from detent.model.clock import to_micros
from detent.model.ids import Random
from detent.workflow.child_operations import ChildOperations
from detent.workflow.run import WorkflowRun
from detent.workflow.step_operations import StepOperations
from detent.workflow.text_stream import TextStream
from detent.workflow.wait_operations import WaitOperations

__all__ = ["Surface", "moment_of"]

_NAMESPACE = UUID("6f7e7c4e-6d2b-5d53-9a55-0a2d6d0f6b1e")


class Surface(ABC):
    """The context of one scope of a workflow. Contexts of inner scopes share its run."""

    run: WorkflowRun
    scope_path = ""

    @property
    @abstractmethod
    def job_key(self) -> str:
        """The key of the job among all databases."""

    @abstractmethod
    def event(self, message: str, /, *, level: str = "info", key: str | None = None, **payload: Any) -> None:
        """Append an event to the job."""

    @property
    def steps(self) -> StepOperations:
        """Steps and scopes."""
        return StepOperations(self.run, self.scope_path)

    @property
    def waits(self) -> WaitOperations:
        """Waits for times and signals."""
        return WaitOperations(self.run, self.scope_path)

    @property
    def children(self) -> ChildOperations:
        """Children, and waits for them."""
        return ChildOperations(self.run, self.scope_path)

    def inner(self, path: str) -> Self:
        """Return the context of an inner scope."""
        inner = object.__new__(type(self))
        inner.__dict__.update(self.__dict__)
        inner.scope_path = path
        return inner

    @property
    def version(self) -> int:
        return self.run.history.version

    @property
    def generation(self) -> int:
        return self.run.history.generation

    @property
    def replaying(self) -> bool:
        return self.run.history.is_replaying

    @property
    def _seed(self) -> str:
        """From what chance follows here: from the job, its generation and the scope; or while copies of steps are
        replayed, from those of the record in which they were recorded."""
        seed = self.run.history.copied_seed or f"{self.job_key}/{self.generation}"
        return f"{seed}/{self.scope_path}"

    @property
    def random(self) -> Random:
        randoms, seed = self.run.randoms, self._seed
        if seed not in randoms:
            randoms[seed] = Random(seed)
        return randoms[seed]

    def now(self) -> datetime:
        return self.run.time()

    def uuid(self, name: str) -> UUID:
        check_name("uuid", name)
        return uuid5(_NAMESPACE, f"{self._seed}/{name}")

    def on(self, signal: str, kind: Any = Any) -> Wait[Any]:
        return Wait("signal", check_name("signal", signal), kind)

    def ended(self, child: Child[Any]) -> Wait[Any]:
        return Wait("children", child.path, Any, child.id)

    def token(self, signal: str, *, next_wait_only: bool = False) -> str:
        check_name("signal", signal)
        token = self.run.new_token(self.scope_path, signal, next_wait_only)
        return token.text(self.run.context.store.signing_key())

    @abstractmethod
    def stream_line(self, stream: str, text: str, number: int) -> None:
        """Append text to a stream of the job."""

    def stream(self, name: str) -> TextStream:
        check_name("stream", name)
        return TextStream(name, self.run.streams, self.stream_line)

    def set_status(self, **facts: Any) -> None:
        self.event("status", **facts)


def moment_of(when: datetime | Local) -> datetime:
    """Return a moment in UTC. `InvalidInput` for a time without a zone."""
    if isinstance(when, Local):
        return when.moment()
    if not isinstance(when, datetime) or when.tzinfo is None or when.utcoffset() is None:
        allowed = "a time with a zone, or Local('2027-03-28 02:30', 'Europe/Berlin')"
        raise InvalidInput("when", repr(when)[:80], allowed)
    to_micros(when, field="when")
    return when.astimezone(UTC)
