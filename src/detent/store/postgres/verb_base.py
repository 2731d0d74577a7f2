"""What every verb on PostgreSQL is built from: a session, and a function that makes the statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from detent.store.postgres.driver.lane_memory import ClaimBounds, KnownLanes
from detent.store.postgres.driver.session import Session
from detent.store.postgres.statement import Statement

__all__ = ["VerbBase", "requeues", "runs", "runs_each"]

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V", bound="VerbBase")


class VerbBase:
    """A session to run statements in. `bounds` is how far claims have come; None in a caller's own transaction."""

    def __init__(
        self, session: Session, name: str, bounds: ClaimBounds | None = None, lanes: KnownLanes | None = None
    ) -> None:
        self._session = session
        self._lanes = lanes
        self._name = name
        self._bounds = bounds
        # A caller's transaction may stay open for long, so it must not lock the row that says that a worker waits.
        self._callers_own = bounds is None

    def _forget_bounds(self) -> None:
        """Let the next claim start at the beginning of each lane: jobs may have been put before its bounds."""
        if self._bounds is not None:
            self._bounds.forget()


def runs(statement: Callable[P, Statement[R]]) -> Callable[Concatenate[VerbBase, P], R]:
    """Make a verb of a function that returns its statement."""

    def verb(self: VerbBase, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._session.run(statement(*args, **kwargs))

    return _named(verb, statement)


def runs_each(statement: Callable[P, Statement[list[R]]]) -> Callable[Concatenate[VerbBase, P], list[R]]:
    """Make a verb of a function whose first argument are the items. Without items it does not ask the database."""

    def verb(self: VerbBase, /, *args: P.args, **kwargs: P.kwargs) -> list[R]:
        items = args[0] if args else next(iter(kwargs.values()))
        return self._session.run(statement(*args, **kwargs)) if items else []

    return _named(verb, statement)


def requeues(verb: Callable[Concatenate[V, P], R]) -> Callable[Concatenate[V, P], R]:
    """Let claims start at the beginning of each lane again after a verb that may put jobs back into the queue."""

    def requeuing(self: V, /, *args: P.args, **kwargs: P.kwargs) -> R:
        answer = verb(self, *args, **kwargs)
        self._forget_bounds()
        return answer

    return _named(requeuing, verb)


def _named(verb: Callable[P, R], after: Callable[..., Any]) -> Callable[P, R]:
    verb.__name__, verb.__doc__ = after.__name__, after.__doc__
    return verb
