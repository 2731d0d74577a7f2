"""Schedules through the front door."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from detent.errors import InvalidInput, NotFound
from detent.schedule.due_ticks import fire_due
from tests.app.shop import Shop


def fire(shop: Shop) -> list[Any]:
    """What a worker does once a second; the jobs that it made."""
    return [shop.app.jobs.get(job_id) for job_id in fire_due(shop.app.store, shop.app.ids)]


def test_a_call_by_the_clock(shop: Shop) -> None:
    """J11: the job is as if somebody had enqueued it at that moment, and says which tick it is of."""
    row = shop.app.schedules.set("nightly", "30 2 * * *", shop.welcome.call(user_id=7), zone="Europe/Berlin")
    assert (row.name, row.task, row.queue, row.catch_up) == ("nightly", "welcome", "mail", "latest")
    assert shop.app.schedules.next("nightly", 2) == [
        datetime(2026, 1, 1, 1, 30, tzinfo=UTC),
        datetime(2026, 1, 2, 1, 30, tzinfo=UTC),
    ]
    assert fire(shop) == []
    shop.clock.advance(timedelta(hours=2))
    (job,) = fire(shop)
    assert (job.task, job.payload["user_id"], job.row.queue) == ("welcome", 7, "mail")
    assert job.metadata == {"schedule": "nightly", "tick": "2026-01-01T01:30:00+00:00"}
    shop.work()
    assert job.refresh().result == "sent to 7"
    assert shop.app.schedules.list()[0].last_at == datetime(2026, 1, 1, 1, 30, tzinfo=UTC)


def test_said_again_at_every_start_it_stays_as_it_is(shop: Shop) -> None:
    """L3"""
    first = shop.app.schedules.set("welcome", "0 * * * *", shop.welcome.call(user_id=7))
    shop.clock.advance(timedelta(minutes=90))
    with shop.untouched():
        assert shop.app.schedules.set("welcome", "0 * * * *", shop.welcome.call(user_id=7)) == first
    assert [row.name for row in shop.app.schedules.list()] == ["welcome"]


def test_paused_it_makes_nothing_and_makes_nothing_up(shop: Shop) -> None:
    """J11"""
    shop.app.schedules.set("welcome", "0 * * * *", shop.welcome.call(user_id=7), catch_up="all")
    shop.app.schedules.pause("welcome", actor="ana", reason="quiet")
    shop.clock.advance(timedelta(hours=3, minutes=30))
    assert fire(shop) == []
    shop.app.schedules.resume("welcome", actor="ana")
    assert fire(shop) == []
    shop.clock.advance(timedelta(minutes=30))
    assert len(fire(shop)) == 1


def test_taken_away_it_is_gone(shop: Shop) -> None:
    shop.app.schedules.set("welcome", "0 * * * *", shop.welcome.call(user_id=7))
    shop.app.schedules.remove("welcome", actor="ana")
    assert shop.app.schedules.list() == []
    for act in (shop.app.schedules.remove, shop.app.schedules.pause, shop.app.schedules.resume):
        with pytest.raises(NotFound):
            act("welcome", actor="ana")
    with pytest.raises(NotFound):
        shop.app.schedules.next("welcome")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cron": "every day"}, "cron"),
        ({"zone": "Berlin"}, "zone"),
        ({"name": ""}, "name"),
        ({"name": "\x00"}, "name"),
        ({"catch_up": "some"}, "catch_up"),
        ({"priority": 10**6}, "priority"),
        ({"queue": ""}, "queue"),
        ({"call": "welcome"}, "call"),
    ],
)
def test_what_cannot_be_taken_is_refused(shop: Shop, changes: dict[str, Any], field: str) -> None:
    """Nothing is written, and the message names the field."""
    said: dict[str, Any] = {"name": "n", "cron": "0 * * * *", "call": shop.welcome.call(user_id=7)} | changes
    shop.app.schedules.list()
    for verb in (shop.app.schedule, shop.app.schedules.set):
        with shop.untouched(), pytest.raises(InvalidInput) as refused:
            verb(**said)
        assert refused.value.field == field
