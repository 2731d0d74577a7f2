"""The application that tests of the console run: some of everything that a page can show."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from detent import (
    AsyncWorkflowContext,
    Change,
    Context,
    Detent,
    Lifecycle,
    Limit,
    Page,
    Partition,
    Retry,
    Step,
    Transition,
    WorkflowContext,
)
from detent.model.clock import Clock, SystemClock

__all__ = ["ORDER", "ORDERS", "Diamonds", "Reprice", "app", "clock", "spend"]

app = Detent()
"""The database is that of DETENT_DATABASE_URL."""

clock: list[Clock] = [SystemClock()]
"""The clock that the functions below wait by; the seed turns its own."""

ORDER = Lifecycle(
    "order",
    means="An order of the shop.",
    states={
        "placed": "Waits for the payment.",
        "paid": "Is packed.",
        "shipped": "Is on its way.",
        "returned": "Came back.",
    },
    initial="placed",
    final=frozenset({"returned"}),
    transitions=(
        Transition("placed", "paid", "pay", "client", "The payment has arrived."),
        Transition("paid", "shipped", "ship", "worker", "The parcel was handed over."),
        Transition("shipped", "returned", "return", "client", "The customer sent it back."),
    ),
)
ORDERS = "CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT NOT NULL DEFAULT 'placed')"
app.lifecycles.attach(ORDER, table="orders")
app.limit_queue("web", Limit(rate=20, burst=40))


def spend(seconds: float) -> None:
    """Let time pass for a job."""
    clock[0].sleep(seconds)


class CardDeclined(Exception):
    """The bank has refused the card."""


class PaymentFailed(Exception):
    """A payment that cannot be made."""


@app.task(name="shop.welcome", queue="mail", retry=Retry(2, base=20))
def welcome(ctx: Context, user_id: int, address: str = "") -> str:
    """Send a mail."""
    ctx.event("rendering the template", template="welcome", language="en")
    spend(0.3 + user_id % 7 / 5)
    ctx.event("sent", to=address or f"user-{user_id}@shop.example")
    return f"message-{user_id}"


@app.task(name="shop.charge", queue="payments", retry=Retry(1, base=30), idempotent=False)
def charge(ctx: Context, order: int, cents: int) -> dict[str, Any]:
    """Charge a card; some are declined."""
    ctx.event("asking the bank", order=order, cents=cents)
    spend(0.9 + order % 5 / 3)
    if order % 9 == 4:
        try:
            raise CardDeclined(f"the bank declined card ending in {4000 + order}: insufficient funds")
        except CardDeclined as error:
            ctx.event("the bank declined the card", level="error", code="insufficient_funds")
            raise PaymentFailed(f"order {order} of {cents / 100:.2f} EUR was not paid") from error
    return {"charge": f"ch_{order:05}", "cents": cents}


@app.task(name="shop.thumbnail", queue="images", limit=Limit(concurrency=4), retry=Retry(3, base=5))
def thumbnail(ctx: Context, photo: str) -> None:
    """Resize a photo; broken ones never work."""
    for done in range(1, 5):
        spend(0.6)
        ctx.progress(done, total=4)
    if photo.endswith("7.jpg"):
        raise ValueError(f"{photo}: not a JPEG file: starts with 0x3c 0x21")


@app.task(name="shop.sync", queue="web", retry=Retry(6, base=10))
def sync(ctx: Context, supplier: str, page: int) -> None:
    """Fetch a page; the supplier is down now and then."""
    ctx.event("fetching", level="debug", supplier=supplier, page=page)
    spend(1.5)
    if page % 4 == 0 and ctx.attempt <= 2:
        ctx.event("the supplier answered 503", level="warning", supplier=supplier)
        raise ConnectionError(f"{supplier} answered 503 Service Unavailable")


@app.task(name="shop.report", queue="reports", timeout=3600)
def report(ctx: Context, month: str) -> dict[str, Any]:
    """Write many lines."""
    for number in range(1, 41):
        level = "warning" if number % 13 == 0 else "debug" if number % 5 == 0 else "info"
        ctx.event(f"chapter {number} of 40: {month}", level=level, rows=number * 137)
        ctx.progress(number, total=40)
        spend(0.4)
    return {"rows": 112_340, "file": f"https://files.shop.example/{month}.pdf"}


@app.task(name="shop.fragile", queue="live", retry=Retry(0))
def fragile(ctx: Context, number: int) -> str:
    """Fail at the first attempt, and succeed after a person has retried it."""
    ctx.event("trying", number=number)
    if ctx.attempt == 1:
        raise RuntimeError(f"glass number {number} is broken")
    return "mended"


@app.task(name="shop.watch", queue="live")
async def watch(ctx: Context, seconds: float) -> str:
    """Run for a while and say so, in real time."""
    for number in range(int(seconds * 4)):
        ctx.event(f"tick {number + 1}", level="warning" if number % 10 == 9 else "info")
        ctx.progress(number + 1, total=int(seconds * 4))
        await asyncio.sleep(0.25)
    return "watched"


def ask_boss(report: int) -> dict[str, Any]:
    """Send a question."""
    spend(0.8)
    return {"report": report, "asked": "boss@shop.example"}


@app.workflow(name="shop.expense", queue="live", version=2, supports=(1, 2))
def expense(ctx: WorkflowContext, report: int) -> str:
    """Ask, and wait for the decision of a person."""
    ctx.step("ask", ask_boss, report)
    ctx.step(Step("password", secret=True), lambda: "hunter2")
    ctx.set_status(waits_for="the boss")
    decision = ctx.wait_for("decision", timeout=3 * 86_400)
    return ctx.step("book", lambda: f"report {report}: {decision}")


def reserve(order: int) -> str:
    """Take it from the stock."""
    spend(1.4)
    return f"shelf {order % 7}"


def give_back(shelf: str) -> None:
    """Put it back."""
    spend(0.5)


@app.workflow(name="shop.parcel", queue="live", retry=Retry(1, base=20))
def parcel(ctx: WorkflowContext, order: int) -> int:
    """Reserve, wait a while, send mails as children, and hand over; some orders fail and are undone."""
    ctx.step(Step("reserve", undo=give_back), reserve, order)
    ctx.sleep(600)
    mails = ctx.spawn_many("mails", [welcome.call(user_id=order + one) for one in range(2)])
    sent = mails.join().succeeded
    if order % 2:
        raise ConnectionError("the carrier answered 503")
    ctx.wait_for("picked-up")
    return sent


@app.workflow(name="shop.gift", queue="live")
def gift(ctx: WorkflowContext, order: int) -> str:
    """Reserve and wrap: both can be undone."""
    ctx.step(Step("reserve", undo=give_back), reserve, order)
    return ctx.step(Step("wrap", undo=lambda _: None), lambda: "wrapped")


def hand_back(key: str) -> None:
    """Hand the key of the room back; the hotel is closed at night."""
    if key == "night":
        raise ConnectionError("the hotel is closed")


@app.workflow(name="shop.trip", queue="live", retry=Retry(0))
def trip(ctx: WorkflowContext, time: str) -> str:
    """Take a room, and wait for the payment; at night there is none, and the room cannot be handed back."""
    ctx.step(Step("room", undo=hand_back, retry=Retry(0)), lambda: time)
    if time == "night":
        raise ValueError("nobody pays at night")
    return str(ctx.wait_for("payment"))


async def call_taxi() -> str:
    """Call a taxi. Nobody answers, so it is unknown whether it comes."""
    await asyncio.sleep(3600)
    return "never"


@app.workflow(name="shop.taxi", queue="live", retry=Retry(0))
async def taxi(ctx: AsyncWorkflowContext) -> str:
    """Call a taxi, at most once."""
    return await ctx.step(Step("call", once=True, timeout=0.2), call_taxi)


@app.batch(name="reprice", queue="prices", retry=Retry(1, base=1))
@dataclass
class Reprice:
    """Take some percent off every ring. Some cannot be changed at first."""

    percent: int
    many: int = 60
    broken: int = 0
    mends: bool = False
    """Whether the broken ones work after two attempts."""

    def targets(self) -> Iterator[str]:
        """The rings."""
        return (f"ring-{number:03}" for number in range(1, self.many + 1))

    def preview(self, ref: str) -> Change[dict[str, Any]]:
        """The price before and after; every fifth ring stays as it is."""
        number = int(ref[5:])
        price = 900 + 37 * number
        before = {"title": f"Ring {number}", "price": price, "tags": ["gold", "sale"] if number % 3 else ["gold"]}
        if number % 5 == 0:
            return Change(before=before, after=before)
        return Change(before=before, after=before | {"price": price * (100 - self.percent) // 100})

    def apply(self, ctx: Context, ref: str, change: Change[dict[str, Any]]) -> None:
        """Change it."""
        spend(0.2)
        if int(ref[5:]) <= self.broken and not (self.mends and ctx.attempt > 2):
            raise ConnectionError(f"the shop answered 500 for {ref}")

    def revert(self, ctx: Context, ref: str, change: Change[dict[str, Any]]) -> None:
        """Change it back."""
        spend(0.2)

    def observe(self, ref: str) -> dict[str, Any]:
        """Ring 7 was changed by a person."""
        after = self.preview(ref).after
        return after | {"price": 1} if ref == "ring-007" else after


@app.pipeline(name="diamonds", watermark="diamonds", queue="ingest", retry=Retry(1, base=1))
@dataclass
class Diamonds:
    """Fetch diamonds by price."""

    parts: int = 24
    pages: int = 4
    broken: str = ""

    def plan(self, since: datetime | None) -> list[Partition]:
        """Equal parts."""
        return [Partition(f"{n * 500}-{n * 500 + 499}", {"n": n}) for n in range(self.parts)]

    def page(self, partition: Partition, offset: int) -> Page:
        """A hundred stones."""
        spend(0.4)
        n = partition.payload["n"]
        if str(n) in self.broken.split(",") and offset >= 100:
            raise ConnectionError(f"the supplier closed the connection at offset {offset}")
        stones = [(f"stone-{n}-{offset + one}", {"carat": one / 50}) for one in range(100)]
        return Page(records=stones, next=offset + 100 if offset < (self.pages - 1) * 100 else None)

    def consolidate(self, tx: Any, records: list[tuple[str, Any]]) -> None:
        """Nothing is kept."""
