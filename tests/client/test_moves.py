"""Cancel, retry, discard, force: moves by people, with who and why on record."""

from __future__ import annotations

import pytest

from detent.errors import AlreadyCommitted, InvalidInput, InvalidTransition, NotFound
from tests.app.shop import Shop


def last_move(shop: Shop, job_id: int) -> tuple[str | None, str, str, str, str | None, bool]:
    line = shop.app.transitions(job_id)[-1]
    return line.from_state, line.to_state, line.trigger, line.actor, line.reason, line.forced


def test_cancel_a_pending_job(shop: Shop) -> None:
    """J8: at once; who, why and when are recorded."""
    job = shop.welcome.enqueue(user_id=7)
    assert shop.app.cancel(job.id, actor="ana", reason="wrong user").state == "cancelled"
    assert last_move(shop, job.id) == ("pending", "cancelled", "cancel", "ana", "wrong user", False)
    assert shop.work() == []


def test_cancelling_again_is_nothing_to_do(shop: Shop) -> None:
    """L3"""
    job = shop.welcome.enqueue(user_id=7)
    shop.app.cancel(job.id, actor="ana")
    with shop.untouched():
        assert shop.app.cancel(job.id, actor="bob", reason="me too").state == "cancelled"


def test_cancel_a_running_job(shop: Shop) -> None:
    """J8: the request is on record, and the job goes where its holder brings it."""
    job = shop.welcome.enqueue(user_id=7)
    shop.crash(job, "started")
    shop.work()
    assert shop.app.cancel(job.id, actor="ana", reason="enough").state == "running"
    assert "ana asked for it to stop: enough" in shop.app.why(job.id)
    shop.clock.advance(shop.lease + 1)
    shop.work()
    assert job.refresh().state == "cancelled"
    assert shop.app.why(job.id) == "it was cancelled while attempt 1 ran (cancel by ana: enough)"


def test_what_has_happened_is_not_cancelled(shop: Shop) -> None:
    job = shop.welcome.enqueue(user_id=7)
    shop.work()
    with shop.untouched(), pytest.raises(AlreadyCommitted, match="its effect has happened"):
        shop.app.cancel(job.id, actor="ana")


def test_retry_a_dead_letter(shop: Shop) -> None:
    """J10: with all its attempts anew."""
    job = shop.quarantined()
    assert shop.app.retry(job.id, actor="ana", reason="mended").changed
    assert last_move(shop, job.id) == ("quarantined", "pending", "retry", "ana", "mended", False)
    with shop.untouched():
        assert not shop.app.retry(job.id, actor="ana").changed
    shop.work()
    assert (job.refresh().state, job.attempt) == ("pending", 3)


def test_discard_a_dead_letter(shop: Shop) -> None:
    """J10"""
    job = shop.quarantined()
    assert shop.app.discard(job.id, actor="ana", reason="hopeless").changed
    assert last_move(shop, job.id) == ("quarantined", "cancelled", "discard", "ana", "hopeless", False)


def test_force_is_marked(shop: Shop) -> None:
    """E4: an override has an operator and a reason, and is marked."""
    job = shop.quarantined()
    assert shop.app.force(job.id, "succeeded", actor="ana", reason="done by hand").changed
    assert last_move(shop, job.id) == ("quarantined", "succeeded", "force", "ana", "done by hand", True)
    assert job.refresh().result is None


def test_an_undeclared_move_says_what_is_allowed(shop: Shop) -> None:
    """L2: and nothing is written."""
    succeeded = shop.welcome.enqueue(user_id=7)
    shop.work()
    pending = shop.welcome.enqueue(user_id=8)
    with shop.untouched():
        with pytest.raises(InvalidTransition) as refusal:
            shop.app.retry(succeeded.id, actor="ana")
        assert str(refusal.value) == (
            f"job {succeeded.id} cannot go from succeeded to pending; allowed from succeeded: nothing, it is final"
        )
        with pytest.raises(InvalidTransition) as refusal:
            shop.app.discard(pending.id, actor="ana")
        assert str(refusal.value) == (
            f"job {pending.id} cannot go from pending to cancelled by discard; "
            "allowed: discard from quarantined, failed"
        )
        with pytest.raises(InvalidTransition) as refusal:
            shop.app.force(pending.id, "succeeded", actor="ana", reason="why not")
        assert str(refusal.value) == (
            f"job {pending.id} cannot go from pending to succeeded; "
            "allowed from pending: running, cancelled, quarantined"
        )
        with pytest.raises(InvalidTransition, match="to running by force; allowed: force from nowhere"):
            shop.app.force(pending.id, "running", actor="ana", reason="hurry")
        with pytest.raises(InvalidTransition, match="cannot go from pending to melted"):
            shop.app.force(pending.id, "melted", actor="ana", reason="heat")


def test_a_job_that_is_not_there(shop: Shop) -> None:
    with shop.untouched():
        for move in (shop.app.cancel, shop.app.retry, shop.app.discard):
            with pytest.raises(NotFound):
                move(4711, actor="ana")
        with pytest.raises(NotFound):
            shop.app.force(4711, "succeeded", actor="ana", reason="why not")


@pytest.mark.parametrize(
    ("actor", "reason", "field"),
    [
        ("", None, "actor"),
        (None, None, "actor"),
        ("a\0", None, "actor"),
        ("a" * 201, None, "actor"),
        ("ana", "\ud800", "reason"),
        ("ana", "r" * 2001, "reason"),
        ("ana", 7, "reason"),
    ],
)
def test_who_and_why_come_through_the_door(shop: Shop, actor: str, reason: str, field: str) -> None:
    """S3"""
    job = shop.welcome.enqueue(user_id=7)
    with shop.untouched():
        for move in (shop.app.cancel, shop.app.retry, shop.app.discard):
            with pytest.raises(InvalidInput) as refusal:
                move(job.id, actor=actor, reason=reason)
            assert refusal.value.field == field
        with pytest.raises(InvalidInput):
            shop.app.pause("mail", actor=actor, reason=reason)


def test_an_override_without_a_reason_is_refused(shop: Shop) -> None:
    """E4"""
    job = shop.quarantined()
    with shop.untouched():
        with pytest.raises(InvalidInput, match="reason: found ''; allowed: a reason: an override always has one"):
            shop.app.force(job.id, "succeeded", actor="ana", reason="")
        with pytest.raises(InvalidInput, match="a repair always has one"):
            shop.app.repair(actor="ana", reason="")
