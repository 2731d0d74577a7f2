"""Fills a database so that every page of the console has something to show.

`python -m tests.console.seed sqlite:////tmp/shop.db` makes it; then `detent server tests.console.shop:app --database …`
and `detent worker tests.console.shop:app --database …` show it live. The data cover the last day.
"""

from __future__ import annotations

import os
import random
import sys
from contextlib import closing
from datetime import timedelta
from typing import Any

from detent import Detent
from detent.model.clock import SystemClock
from detent.testing.harness import Harness
from detent.testing.stores import plain_connection

__all__ = ["fill"]

HOURS = 24
NASTY = "<script>alert(1)</script><img src=x onerror=alert(2)> \u202egnp.exe \x1b[31mred\x07"


def fill(url: str, *, hours: int = HOURS) -> None:
    """Fill an empty database with the jobs of the last `hours` hours."""
    os.environ["DETENT_DATABASE_URL"] = url
    with closing(Detent(url)) as empty:
        empty.migrate()
    from tests.console import shop

    with closing(plain_connection(url)) as connection:
        connection.execute(shop.ORDERS)
        connection.commit()
    with closing(Harness(url)) as harness:
        real = shop.clock[0]
        shop.clock[0] = harness.clock
        try:
            harness.clock.set(SystemClock().now() - timedelta(hours=hours, minutes=2))
            app = harness.use(shop.app)
            app.migrate()
            _orders(app, url)
            _fill(app, harness, shop, hours)
        finally:
            shop.clock[0] = real


def _fill(app: Detent, harness: Harness, shop: Any, hours: int) -> None:
    chance = random.Random(17)
    _schedules(app, shop)
    for hour in range(hours):
        with app.acting_as("shop"):
            _hour(app, shop, chance, hour)
            _ops(app, harness, hour)
        harness.work()
        if hour == hours // 4:
            _batch(app, harness, shop)
        if hour == hours // 2:
            _pipelines(app, harness, shop)
        harness.clock.set(harness.clock.now() + timedelta(minutes=20))
        harness.work()
        app.alerts.judge()
        harness.clock.set(harness.clock.now() + timedelta(minutes=20))
        harness.work()
        _fold(app)
        ahead = (hours - hour - 1) * 3600
        left = SystemClock().now() - timedelta(seconds=ahead) - harness.clock.now()
        if left.total_seconds() > 60:
            harness.clock.set(harness.clock.now() + left - timedelta(seconds=45))
    _now(app, harness, shop)


def _fold(app: Detent) -> None:
    """Count what has moved, as a worker does: the rates follow from it."""
    while app.store.counts_fold(1000):
        pass


def _orders(app: Detent, url: str) -> None:
    with closing(plain_connection(url)) as connection:
        connection.executemany("INSERT INTO orders (id) VALUES (?)", [(number,) for number in range(1, 21)])
        connection.commit()
    from tests.console.shop import ORDER

    for number in range(1, 15):
        app.lifecycles.move(ORDER, number, "pay", actor="shop")
    for number in range(1, 9):
        app.lifecycles.move(ORDER, number, "ship", actor="warehouse")
    app.lifecycles.move(ORDER, 1, "return", actor="ana", reason="wrong size")


def _schedules(app: Detent, shop: Any) -> None:
    app.schedules.set("monthly-report", "0 6 1 * *", shop.report.call(month="2026-11"), zone="Europe/Berlin")
    app.schedules.set("sync-suppliers", "*/30 * * * *", shop.sync.call(supplier="north", page=1))
    app.schedules.set("newsletter", "30 9 * * MON-FRI", shop.welcome.call(user_id=1), zone="America/New_York")
    app.schedules.pause("newsletter", actor="ana", reason="the template is being rewritten")


def _hour(app: Detent, shop: Any, chance: random.Random, hour: int) -> None:
    busy = 4 + abs(12 - hour) // 2
    for number in range(busy * 2):
        app.enqueue(shop.welcome.call(user_id=hour * 100 + number), tenant=chance.choice(("", "acme", "globex")))
    for number in range(busy):
        app.enqueue(shop.charge.call(order=hour * 20 + number, cents=chance.randrange(500, 90_000)), tenant="acme",
                    key=f"order-{hour * 20 + number}", correlation_id=f"checkout-{hour}")  # fmt: skip
    for number in range(busy):
        app.enqueue(shop.sync.call(supplier=chance.choice(("north", "south")), page=number))
    if hour % 3 == 0:
        for number in range(3):
            app.enqueue(shop.thumbnail.call(photo=f"photo-{hour}{number * 7}.jpg"))
    if hour % 2 == 0:
        app.enqueue(shop.parcel.call(order=hour // 2), tenant="acme")
    if hour % 8 == 0:
        app.enqueue(shop.report.call(month=f"2026-{hour % 12 + 1:02}"))


def _ops(app: Detent, harness: Harness, hour: int) -> None:
    if hour % 4:
        return
    project, env = ("shop", "production") if hour % 8 == 0 else ("warehouse", "staging")
    sha = f"{0xA1B2C3D4E5F6 * (hour + 3):x}"[:12]
    app.ops.queue(project, env, git_sha=sha, git_ref="refs/heads/main", metadata={"kind": "deploy", "by": "ana"})
    run = app.ops.claim("runner-1")
    assert run is not None
    for text in ("checkout", "installing 214 packages", "running 1,204 tests", "building the image", "deploying"):
        app.ops.event(run, text)
        harness.clock.sleep(17)
    if hour % 16 == 12:
        app.ops.event(run, "the health check failed three times", level="error")
        app.ops.finish(run, "failed", metadata={"exit_code": 1})
    else:
        more = {"deploy_url": f"https://{project}.example", "artifacts": [f"https://files.example/{sha}.tar.gz"]}
        app.ops.finish(run, "success", metadata=more)


def _batch(app: Detent, harness: Harness, shop: Any) -> None:
    run = app.runs.preview(shop.Reprice(percent=10), actor="ana", reason="spring sale")
    harness.work()
    run.refresh().apply(actor="ana", reason="agreed with ben")
    harness.work()
    run.refresh().reconcile(actor="ana")
    harness.work()
    run = app.runs.preview(shop.Reprice(percent=25, many=40, broken=3), actor="ben", reason="clearance")
    harness.work()
    run.refresh().apply(actor="ben")
    harness.work()
    harness.clock.sleep(30)
    harness.work()
    app.runs.preview(shop.Reprice(percent=5, many=30), actor="ana", reason="a smaller one")
    harness.work()


def _pipelines(app: Detent, harness: Harness, shop: Any) -> None:
    app.runs.start(shop.Diamonds(), actor="ana", reason="first load")
    harness.work()
    harness.clock.sleep(60)
    app.runs.start(shop.Diamonds(parts=30, broken="3,11"), actor="nightly")
    harness.work()
    harness.clock.sleep(30)
    harness.work()


def _now(app: Detent, harness: Harness, shop: Any) -> None:
    """Leave some things undone: pending, scheduled, paused, limited, dead with a nasty payload, cancelled."""
    app.enqueue(shop.welcome.call(user_id=7, address=NASTY), tenant=NASTY[:40], metadata={NASTY: NASTY})
    harness.work()
    app.queues.pause("images", actor="ana", reason="the image server is being moved")
    for number in range(9):
        app.enqueue(shop.thumbnail.call(photo=f"new-{number}.jpg"), tenant="acme")
    for number in range(4):
        app.enqueue(shop.welcome.call(user_id=9000 + number), due_at=harness.clock.now() + timedelta(hours=number + 1))
    cancelled = app.enqueue(shop.report.call(month="2025-12"), due_at=harness.clock.now() + timedelta(days=1))
    cancelled.cancel(actor="ben", reason="not needed any more")
    for number in range(3):
        asked = app.enqueue(shop.expense.call(report=40 + number), tenant="globex")
        harness.work()
        if number == 0:
            asked.signal("decision", {"approved": True}, actor="ben", reason="small enough")
            harness.work()
    app.ops.queue("shop", "production", git_sha="0ddba11cafe5", git_ref="refs/heads/main", metadata={"kind": "deploy"})
    app.alerts.raise_("disk_full", "The disk of db-1 is 92 % full.", severity="critical", facts={"host": "db-1"})
    app.alerts.raise_("slow_supplier", "The supplier north answers in 4.1 s.", facts={"supplier": "north"})
    app.alerts.judge()
    _fold(app)


if __name__ == "__main__":
    fill(sys.argv[1])
