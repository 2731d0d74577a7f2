"""What a probe returns: whether the effect of a task has happened."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

from detent.errors import InvalidSetting

__all__ = ["Probed", "check_probe"]


class Probed:
    """The answer of a probe: `Probed.done(result)`, `Probed.not_done()` or `Probed.cannot_tell("why")`."""

    __slots__ = ("found", "result", "why")

    def __init__(self, found: Literal["done", "not done", "cannot tell"], result: object, why: str) -> None:
        self.found = found
        self.result = result
        self.why = why

    def __repr__(self) -> str:
        return f"<Probed {self.found}>"

    @classmethod
    def done(cls, result: object = None) -> Probed:
        """The effect has happened: the job succeeds with this result, and its function is not called again."""
        return cls("done", result, "")

    @classmethod
    def not_done(cls) -> Probed:
        """The effect has not happened, and no earlier call can still make it happen: the function is called."""
        return cls("not done", None, "")

    @classmethod
    def cannot_tell(cls, why: str = "") -> Probed:
        """Unclear: the probe is called again later; after its last call the job waits for a person."""
        return cls("cannot tell", None, why)


def check_probe(probe: object, function: Callable[..., Any], *, idempotent: bool) -> None:
    """Check that a probe takes the same parameters as the function and that its task is not idempotent.
    `InvalidSetting`."""
    if not callable(probe):
        raise InvalidSetting("probe", repr(probe)[:80], "a function with the parameters of the task")
    if idempotent:
        raise InvalidSetting(
            "probe",
            "a probe of an idempotent task",
            "idempotent=False together with probe: an idempotent task is simply run again",
        )
    ours = list(inspect.signature(function).parameters.values())
    theirs = list(inspect.signature(probe).parameters.values())
    if [(one.name, one.kind) for one in ours[1:]] != [(one.name, one.kind) for one in theirs[1:]] or not theirs:
        raise InvalidSetting(
            "probe", f"a probe with the parameters ({_listed(theirs)})", f"the task's own parameters: ({_listed(ours)})"
        )


def _listed(parameters: list[inspect.Parameter]) -> str:
    return ", ".join(str(one.replace(annotation=inspect.Parameter.empty)) for one in parameters)
