"""Schedules and limits that are declared in code: when they are written, and what stays as a person left it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from detent import Context, Detent, Limit
from detent.errors import InvalidInput
from detent.model.clock import TurnableClock
from detent.testing.stores import START, is_sqlite
from tests.app.shop import Shop


def another(url: str) -> Detent:
    """An application as another process would have it, by the clock of the test."""
    return Detent(url, clock=TurnableClock(START) if is_sqlite(url) else None)


def program(url: str, cron: str | None = "0 2 * * *", concurrency: int = 5) -> Detent:
    """One version of a program, as another process would have it."""
    app = another(url)

    @app.task(name="report", limit=Limit(concurrency=concurrency), limit_key="reports")
    def report(ctx: Context, day: str = "today") -> None: ...

    if cron is not None:
        assert app.schedule(cron, report.call(), name="nightly") == "nightly"
    app.limit_queue("mail", Limit(concurrency=concurrency))
    return app


def standing(app: Detent) -> dict[str, Any]:
    schedules = {row.name: row.cron for row in app.schedules.list()}
    return schedules | {row.key: row.concurrency_max for row in app.limits.list()}


@pytest.mark.parametrize("url", ["sqlite:///{path}/shop.db", "postgresql://nobody@127.0.0.1:1/none"])
def test_declaring_touches_no_database(tmp_path: Path, url: str) -> None:
    """A module can be imported while the database is away, and importing it never makes one."""
    with program(url.format(path=tmp_path)):
        assert list(tmp_path.iterdir()) == []


def test_what_is_declared_is_written_once(shop: Shop) -> None:
    """L3: by a worker when it starts, or by `migrate`; the same again writes nothing."""
    with program(shop.url) as first, program(shop.url) as second:
        assert standing(first) == {}
        assert first.put_declared().written == ("limit queue:mail", "limit task:report", "schedule nightly")
        assert standing(first) == {"nightly": "0 2 * * *", "queue:mail": 5, "reports": 5}
        with shop.untouched():
            assert second.put_declared() == type(second.put_declared())()
            second.migrate()


def test_what_a_person_changed_stays_until_the_code_changes(shop: Shop) -> None:
    with program(shop.url) as app, program(shop.url, "0 4 * * *", 7) as changed:
        app.migrate()
        app.schedules.pause("nightly", actor="ana")
        app.schedules.set("nightly", "0 3 * * *", app.find_task("report").call())
        app.queues.limit("mail", Limit(concurrency=1))
        app.put_declared()
        app.migrate()
        assert standing(app) == {"nightly": "0 3 * * *", "queue:mail": 1, "reports": 5}
        changed.put_declared()
        assert standing(app) == {"nightly": "0 4 * * *", "queue:mail": 7, "reports": 7}
        assert app.schedules.list()[0].paused_by == "ana"


def test_older_code_that_starts_again_takes_nothing_back(shop: Shop) -> None:
    """A rolling deploy: workers of both versions run, and one of the older version starts again."""
    with program(shop.url) as old, program(shop.url, "0 4 * * *", 7) as new:
        old.put_declared()
        new.put_declared()
        found = old.put_declared()
        assert (found.written, found.replaced) == ((), ("limit queue:mail", "limit task:report", "schedule nightly"))
        assert standing(old) == {"nightly": "0 4 * * *", "queue:mail": 7, "reports": 7}
        old.migrate()
        assert standing(old) == {"nightly": "0 2 * * *", "queue:mail": 5, "reports": 5}


def test_a_schedule_that_left_the_code_is_told_and_can_be_removed(shop: Shop) -> None:
    """Schedules that were set by hand, or belong to other programs, are left alone."""
    with program(shop.url) as old, program(shop.url, cron=None) as new:
        old.put_declared()
        new.schedules.set("by hand", "0 1 * * *", new.find_task("report").call())
        shop.app.schedule("0 5 * * *", shop.welcome.call(user_id=1), name="of another")
        shop.app.put_declared()
        assert old.schedules.left() == []
        assert new.put_declared().left == ("nightly",)
        assert new.schedules.origins() == {"by hand": "hand", "nightly": "left the code", "of another": "code"}
        assert [moved.entity_id for moved in new.schedules.prune(actor="ana")] == ["nightly"]
        assert [row.name for row in new.schedules.list()] == ["by hand", "of another"]
        assert new.put_declared().left == ()
        assert old.put_declared().replaced == ("schedule nightly",)


def test_a_limit_that_was_removed_comes_back_when_it_is_asked_for(shop: Shop) -> None:
    with program(shop.url) as app:
        app.put_declared()
        app.limits.remove("reports", actor="ana")
        assert app.put_declared().replaced == ("limit task:report",)
        app.migrate()
        assert standing(app)["reports"] == 5


def test_two_programs_may_share_a_limit(shop: Shop) -> None:
    """Each declares the same bounds for tasks of its own, and neither replaces the other."""
    with program(shop.url) as app, another(shop.url) as other:

        @other.task(name="other", limit=Limit(concurrency=5), limit_key="reports")
        def task(ctx: Context) -> None: ...

        app.put_declared()
        assert other.put_declared().written == ("limit task:other",)
        assert app.put_declared().replaced == ()
        (row,) = [row for row in app.limits.list() if row.key == "reports"]
        assert row.tasks == ("other", "report")


def test_two_different_declarations_of_one_name_are_refused(shop: Shop) -> None:
    call = shop.welcome.call(user_id=7)
    shop.app.schedule("0 2 * * *", call, name="nightly")
    shop.app.schedule("0 2 * * *", call, name="nightly")
    with pytest.raises(InvalidInput, match="two schedules declared as 'nightly'"):
        shop.app.schedule("0 3 * * *", call, name="nightly")
    shop.app.limit_queue("mail", Limit(concurrency=5))
    with pytest.raises(InvalidInput, match="two limits declared for the queue 'mail'"):
        shop.app.limit_queue("mail", Limit(concurrency=6))
