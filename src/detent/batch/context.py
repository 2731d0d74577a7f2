"""What `apply` and `revert` hold in their hand: the attempt's own context, in the words of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from detent.declare.context import Context

__all__ = ["InsideTarget"]


class InsideTarget:
    """What `TargetContext` promises: the effect's key names database, tenant, run, ref and action, and never an attempt
    (B7). Everything else is the attempt's own."""

    def __init__(self, ctx: Context, run_id: int, ref: str, action: Literal["apply", "revert"]) -> None:
        self._ctx = ctx
        self.run_id = run_id
        self.ref = ref
        self.action = action

    @property
    def effect_key(self) -> str:
        """The same in every attempt at this action on this target, also after a retry by a person."""
        # A target has one job for each action, so the identity in its job's key is the same in every attempt.
        identity, _, _ = self._ctx.effect_key.partition("/")
        return f"{identity}/{self._ctx.tenant}/run/{self.run_id}/{self.ref}/{self.action}"

    @property
    def event_key(self) -> str:
        """For a line that is to be written once in an attempt: run, target, action and attempt."""
        return f"{self.run_id}:{self.ref}:{self.action}:{self._ctx.attempt}"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return getattr(self._ctx, name)
