"""The attempt whose function runs in this thread or task."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

__all__ = ["running_attempt"]

running_attempt: ContextVar[Any] = ContextVar("running_attempt", default=None)
"""The context that a worker gave the function, with `task` and `claimed`; None outside of jobs."""
