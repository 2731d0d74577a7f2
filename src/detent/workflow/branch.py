"""Which branch of a function runs: the function itself, or one of the tasks or threads that it has started.

An error of a step counts as caught when the branch in which it happened goes on, or one that started it. A branch
beside it says nothing: the error may still be on its way to the function."""

from __future__ import annotations

from contextvars import ContextVar
from itertools import count

__all__ = ["Branch", "current_branch", "inside_step", "set_branch"]

Branch = tuple[int, ...]

_numbers = count(1)
_branch: ContextVar[tuple[object, Branch]] = ContextVar("branch", default=(None, ()))

inside_step: ContextVar[str | None] = ContextVar("inside_step", default=None)
"""The path of the step whose function runs here; None outside of steps."""


def current_branch(runner: object) -> Branch:
    """Return the branch that runs on this task or thread. One that is new gets a number below the one that started it,
    whose context variables it has inherited."""
    owner, branch = _branch.get()
    if owner == runner:
        return branch
    if owner is not None:
        branch = (*branch, next(_numbers))
    _branch.set((runner, branch))
    return branch


def set_branch(runner: object, branch: Branch = ()) -> None:
    """Say which branch runs on this task or thread from now on; by default the function itself."""
    _branch.set((runner, branch))
