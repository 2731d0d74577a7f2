"""A batch whose effects leave traces: a row in a ledger through the commit boundary, and a line in the shop's book for
every call, with its key."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from detent import Change, Context, Detent, Retry

PATIENT = Retry(100, base=0.05, cap=0.5)
INSERT = "INSERT INTO changes (ref, price) VALUES (:ref, :price)"


def make_app(url: str | None = None) -> Detent:
    app = Detent(url)

    @app.batch(name="change", retry=PATIENT)
    @dataclass
    class Changes:
        many: int
        book: str
        ms: int = 0

        def targets(self) -> Iterator[str]:
            return (f"ref-{number}" for number in range(self.many))

        def preview(self, ref: str) -> Change[int]:
            return Change(before=0, after=int(ref.removeprefix("ref-")) + 1)

        def apply(self, ctx: Context, ref: str, change: Change[int]) -> None:
            self._do(ctx, ref, change.after)

        def revert(self, ctx: Context, ref: str, change: Change[int]) -> None:
            self._do(ctx, ref, change.before)

        def _do(self, ctx: Context, ref: str, price: int) -> None:
            note(self.book, f"{ref} {price} {ctx.effect_key}\n")
            time.sleep(self.ms / 1000)
            with ctx.commit() as tx:
                tx.execute(INSERT, {"ref": ref, "price": price})

    return app


def note(book: str, line: str) -> None:
    """One write, whole or not at all, however many processes write at once."""
    file = os.open(book, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def changes(app: Detent, **fields: Any) -> Any:
    """A value of the batch `change`."""
    return app.batches["change"].kind(**fields)


app = make_app()
