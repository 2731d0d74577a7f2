"""The rule: rings get cheaper by some percent, one request to the shop for each.

The shop counts requests and points. Points are the batch's own limit: each change takes what it is reckoned at, and
puts it right when the answer says what it has cost. Requests are the limit of the queue, whoever makes them.
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from detent import Change, Context, Detent, Limit, Retry, Throttled

SHOP = os.environ.get("SHOP_URL", "http://127.0.0.1:8008")
SECONDS_MAX = 5.0

app = Detent()


def ask(method: str, path: str, body: Any = None, key: str = "", spend: Callable[[float], None] | None = None) -> Any:
    """One request to the shop, and what it has cost. `Throttled` where it says 429; an error where it fails."""
    request = urllib.request.Request(
        SHOP + path,
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={"Content-Type": "application/json", "Idempotency-Key": key},
    )
    try:
        with urllib.request.urlopen(request, timeout=SECONDS_MAX) as response:
            if spend is not None and (cost := response.headers.get("X-Cost")):
                spend(float(cost))
            return json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            Throttled.check(error)
            raise RuntimeError(f"the shop says {error.code} to {method} {path}") from None


@app.batch(
    name="reprice",
    queue="shop",
    limit=Limit(rate=20, burst=350),
    limit_key="shop-points",
    cost=12,
    retry=Retry(2, base=1.0),
    timeout=30,
)
@dataclass
class Reprice:
    """Takes some percent off every ring."""

    percent: int

    def targets(self) -> Iterator[str]:
        yield from _prices()

    def preview(self, ref: str) -> Change[int]:
        price = _prices()[ref]
        return Change(before=price, after=price * (100 - self.percent) // 100)

    def apply(self, ctx: Context, ref: str, change: Change[int]) -> None:
        ask("PUT", f"/products/{ref}", {"price": change.after}, ctx.effect_key, ctx.spend)

    def revert(self, ctx: Context, ref: str, change: Change[int]) -> None:
        ask("PUT", f"/products/{ref}", {"price": change.before}, ctx.effect_key, ctx.spend)

    def observe(self, ref: str) -> int:
        price: int = ask("GET", f"/products/{ref}")["price"]
        return price


def _prices() -> dict[str, int]:
    """The whole list in one request, at most a second old: a preview of many targets need not ask for each."""
    return _list_of(int(time.monotonic()))


@lru_cache(maxsize=1)
def _list_of(second: int) -> dict[str, int]:
    prices: dict[str, int] = ask("GET", "/products")
    return prices
