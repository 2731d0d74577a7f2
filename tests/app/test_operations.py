"""Doing something to all jobs that fit, through the front door."""

from __future__ import annotations

from typing import Any

import pytest

from detent.client.operation import Operation
from detent.errors import InvalidInput, NotFound
from tests.app.shop import Shop
from tests.deadlines import scaled


def test_first_how_many_then_all_of_them(shop: Shop) -> None:
    """J14: a retry of all dead letters of a task, watched to its end."""
    dead = [shop.quarantined() for _ in range(2)]
    other = shop.welcome.enqueue(user_id=1)
    chosen = shop.app.jobs.where(state="quarantined", task="fails")
    assert (len(shop.app.jobs.list(state="quarantined", task="fails")), chosen.count()) == (2, 2)
    operation = chosen.retry(actor="ana", reason="the provider is back")
    assert (operation.state, operation.changed) == ("running", 0)
    assert operation.wait(timeout=scaled(60)) is operation
    assert (operation.state, operation.changed, operation.refused) == ("done", 2, 0)
    assert [job.refresh().state for job in dead] == ["pending"] * 2
    assert other.refresh().state == "pending"
    assert dead[0].history()[-1].reason == "the provider is back"
    assert chosen.count() == 0


@pytest.mark.parametrize("page", [{"limit": 1}, {"after": "1767225600000000-1"}])
def test_a_selection_cannot_be_cut_off(shop: Shop, page: dict[str, Any]) -> None:
    """J14: `limit=5` and then `retry` retried all 30. A selection is every job that fits, and takes no page."""
    with pytest.raises(TypeError, match=next(iter(page))):
        shop.app.jobs.where(state="quarantined", **page)


def test_each_action(shop: Shop) -> None:
    """J14: cancel, discard and move."""
    dead = shop.quarantined()
    jobs = [shop.welcome.enqueue(user_id=n) for n in range(3)]
    assert shop.app.jobs.where(task="welcome").move(queue="bulk", priority=3, actor="ana").wait().changed == 3
    assert {(job.refresh().row.queue, job.row.priority) for job in jobs} == {("bulk", 3)}
    assert shop.app.jobs.where(queue="bulk").cancel(actor="ana").wait().changed == 3
    assert shop.app.jobs.where(state="quarantined").discard(actor="ana").wait().changed == 1
    assert [job.refresh().state for job in jobs] == ["cancelled"] * 3
    assert dead.refresh().state == "cancelled"


def test_it_can_be_stopped_and_found_again(shop: Shop) -> None:
    """J14, E4: cancelled, audited."""
    job = shop.welcome.enqueue(user_id=1)
    operation = shop.app.jobs.where().cancel(actor="ana")
    assert [one.id for one in shop.app.operations.list(state="running")] == [operation.id]
    operation.cancel(actor="bob", reason="wrong filter")
    assert operation.wait().state == "cancelled"
    assert job.refresh().state == "pending"
    found = shop.app.operations.get(str(operation.id))
    assert isinstance(found, Operation)
    assert (found.state, found.row.actor) == ("cancelled", "ana")
    assert shop.app.operations.list(state="running") == []


def test_what_cannot_be_taken_is_refused(shop: Shop) -> None:
    jobs = shop.app.jobs.where()
    with shop.untouched():
        with pytest.raises(InvalidInput):
            jobs.move(actor="ana")
        with pytest.raises(InvalidInput):
            jobs.move(queue="", actor="ana")
        with pytest.raises(InvalidInput):
            jobs.move(priority=10**6, actor="ana")
        with pytest.raises(InvalidInput):
            jobs.retry(actor="")
        with pytest.raises(InvalidInput):
            shop.app.operations.list(state="over")
        with pytest.raises(NotFound):
            shop.app.operations.get(4711)
