"""A shop in memory and the rule that reprices it: what the stories of batch runs are told about.

The shop notes every call with its key, and does what it is told to do wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from detent import Change, Context, Detent, Fatal, TargetContext

Trouble = Callable[[], None]


class Shop:
    """Prices by ref, every effect key seen by ref, and trouble on order."""

    def __init__(self, rings: int = 6) -> None:
        self.prices = {f"ring-{number}": 100 * number for number in range(1, rings + 1)}
        self.trouble: dict[str, Trouble] = {}
        self.keys: dict[str, set[str]] = {}
        self.calls: Counter[str] = Counter()
        self.changes: Counter[tuple[str, int]] = Counter()

    def put(self, ref: str, price: int, key: str) -> None:
        self.calls[ref] += 1
        self.keys.setdefault(ref, set()).add(key)
        if ref in self.trouble:
            self.trouble[ref]()
        self.set(ref, price)

    def set(self, ref: str, price: int) -> None:
        self.prices[ref] = price
        self.changes[ref, price] += 1

    def fails(self, *refs: str, error: Exception | None = None) -> None:
        """From now on these fail."""

        def fail() -> None:
            raise error or RuntimeError("the shop says 500")

        self.trouble.update(dict.fromkeys(refs, fail))

    def heals(self) -> None:
        self.trouble.clear()


def make_app(url: str, shop: Shop, **options: Any) -> tuple[Detent, type[Any]]:
    """An application with the batch `reprice` on that shop."""
    app = Detent(url)

    @app.batch(name="reprice", **options)
    @dataclass
    class Reprice:
        percent: int = 10

        def targets(self) -> Iterator[str]:
            yield from shop.prices

        def preview(self, ref: str) -> Change[int]:
            if ref in shop.trouble and ref.endswith("unseen"):
                raise Fatal("nobody can look at it")
            price = shop.prices[ref]
            return Change(before=price, after=price * (100 - self.percent) // 100)

        def apply(self, ctx: TargetContext, ref: str, change: Change[int]) -> None:
            for _ in range(2):
                ctx.event("applying", key=ctx.event_key, price=change.after)
            shop.put(ref, change.after, ctx.effect_key)

        def revert(self, ctx: Context, ref: str, change: Change[int]) -> None:
            shop.put(ref, change.before, ctx.effect_key)

        def observe(self, ref: str) -> int:
            return shop.prices[ref]

    return app, Reprice
