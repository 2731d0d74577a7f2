"""The application of the tests of the HTTP API."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from detent import Change, Context, Detent, Retry

__all__ = ["declare_tasks"]


def declare_tasks(app: Detent) -> Detent:
    """Declare the tasks `add` and `fail` and the batch `reprice`, and return the application."""

    @app.task(name="add")
    def add(ctx: Context, a: int, b: int) -> int:
        ctx.event("adding", a=a, b=b)
        return a + b

    @app.task(name="fail", retry=Retry(0))
    def fail(ctx: Context) -> None:
        raise RuntimeError("as it must")

    @app.batch(name="reprice")
    @dataclass
    class Reprice:
        many: int

        def targets(self) -> Iterator[str]:
            return (f"item-{number:03}" for number in range(self.many))

        def preview(self, ref: str) -> Change[int]:
            return Change(before=1, after=2)

        def apply(self, ctx: Context, ref: str, change: Change[int]) -> None: ...

        def revert(self, ctx: Context, ref: str, change: Change[int]) -> None: ...

    return app
