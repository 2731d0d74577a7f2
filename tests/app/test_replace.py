"""A dead job is replaced by one with corrected arguments."""

from __future__ import annotations

import pytest

from detent.errors import InvalidArguments, InvalidInput, InvalidTransition, NotFound
from tests.app.shop import Shop


def test_the_new_job_runs_and_both_are_on_record(shop: Shop) -> None:
    dead = shop.quarantined()
    before = dead.refresh().row
    new = dead.replace({"why": ""}, actor="ana", reason="a typo")
    old = shop.app.jobs.get(dead.id)
    assert (old.state, old.row.payload, old.error) == ("cancelled", before.payload, before.error)
    last = dead.history()[-1]
    assert (last.trigger, last.actor, last.reason) == ("discard", "ana", f"replaced by job {new.id}: a typo")
    assert (new.state, new.payload, new.row.queue) == ("pending", {"why": ""}, before.queue)
    assert (new.metadata["replaces"], new.row.correlation_id) == (str(dead.id), str(dead.id))
    assert shop.app.jobs.list(metadata={"replaces": str(dead.id)}) == [new]
    with pytest.raises(InvalidTransition):
        dead.replace({"why": ""}, actor="ana", reason="again")


def test_what_cannot_be_replaced_is_refused(shop: Shop) -> None:
    dead, waiting = shop.quarantined(), shop.welcome.enqueue(1)
    with shop.untouched():
        with pytest.raises(InvalidArguments):
            dead.replace({"why": 7}, actor="ana", reason="a typo")
        with pytest.raises(InvalidArguments):
            dead.replace('{"wy": "x"}', actor="ana", reason="a typo")
        with pytest.raises(InvalidInput, match="reason"):
            dead.replace({"why": ""}, actor="ana", reason="")
        with pytest.raises(InvalidTransition):
            waiting.replace({"user_id": 2}, actor="ana", reason="a typo")
        with pytest.raises(NotFound):
            shop.app.jobs.get(10**6).replace({}, actor="ana", reason="a typo")
