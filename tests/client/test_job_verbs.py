"""Cancel, retry, discard, force: moves by people, with who and why on record."""

from __future__ import annotations

import pytest

from detent.errors import AlreadyCommitted, InvalidInput, InvalidTransition, NotFound
from tests.app.shop import Shop


def last_move(shop: Shop, job_id: int) -> tuple[str | None, str, str, str, str | None, bool]:
    line = shop.app.jobs.get(job_id).history()[-1]
    return line.from_state, line.to_state, line.trigger, line.actor, line.reason, line.forced


def test_cancel_a_pending_job(shop: Shop) -> None:
    """J8: at once; who, why and when are recorded."""
    job = shop.welcome.enqueue(user_id=7)
    assert job.cancel(actor="ana", reason="wrong user").state == "cancelled"
    assert last_move(shop, job.id) == ("pending", "cancelled", "cancel", "ana", "wrong user", False)
    assert shop.work() == []


def test_cancelling_again_is_nothing_to_do(shop: Shop) -> None:
    """L3"""
    job = shop.welcome.enqueue(user_id=7)
    job.cancel(actor="ana")
    with shop.untouched():
        assert job.cancel(actor="bob", reason="me too").state == "cancelled"


def test_cancel_a_running_job(shop: Shop) -> None:
    """J8: the request is on record, and the job goes where its holder brings it."""
    job = shop.welcome.enqueue(user_id=7)
    shop.crash(job, "started")
    shop.work()
    assert job.cancel(actor="ana", reason="enough").state == "running"
    assert "ana asked for it to stop: enough" in job.why()
    shop.clock.advance(shop.lease + 1)
    shop.work()
    assert job.refresh().state == "cancelled"
    assert job.why() == "it was cancelled while attempt 1 ran (cancel by ana: enough)"


def test_what_has_happened_is_not_cancelled(shop: Shop) -> None:
    job = shop.welcome.enqueue(user_id=7)
    shop.work()
    with shop.untouched(), pytest.raises(AlreadyCommitted, match="its effect has happened"):
        job.cancel(actor="ana")


def test_retry_a_dead_letter(shop: Shop) -> None:
    """J10: with all its attempts anew."""
    job = shop.quarantined()
    assert job.retry(actor="ana", reason="mended").changed
    assert last_move(shop, job.id) == ("quarantined", "pending", "retry", "ana", "mended", False)
    with shop.untouched():
        assert not job.retry(actor="ana").changed
    shop.work()
    assert (job.refresh().state, job.attempt) == ("pending", 3)


def test_discard_a_dead_letter(shop: Shop) -> None:
    """J10"""
    job = shop.quarantined()
    assert job.discard(actor="ana", reason="hopeless").changed
    assert last_move(shop, job.id) == ("quarantined", "cancelled", "discard", "ana", "hopeless", False)


def test_force_is_marked(shop: Shop) -> None:
    """E4: an override has an operator and a reason, and is marked."""
    job = shop.quarantined()
    assert job.force("succeeded", actor="ana", reason="done by hand").changed
    assert last_move(shop, job.id) == ("quarantined", "succeeded", "force", "ana", "done by hand", True)
    assert job.refresh().result is None


def test_an_undeclared_move_says_what_is_allowed(shop: Shop) -> None:
    """L2: and nothing is written."""
    succeeded = shop.welcome.enqueue(user_id=7)
    shop.work()
    pending = shop.welcome.enqueue(user_id=8)
    with shop.untouched():
        with pytest.raises(InvalidTransition) as refusal:
            succeeded.retry(actor="ana")
        assert str(refusal.value) == (
            f"job {succeeded.id} cannot go from succeeded to pending; allowed from succeeded: nothing, it is final"
        )
        with pytest.raises(InvalidTransition) as refusal:
            pending.discard(actor="ana")
        assert str(refusal.value) == (
            f"job {pending.id} cannot go from pending to cancelled by discard; "
            "allowed: discard from quarantined, failed"
        )
        with pytest.raises(InvalidTransition) as refusal:
            pending.force("succeeded", actor="ana", reason="why not")
        assert str(refusal.value) == (
            f"job {pending.id} cannot go from pending to succeeded by force; allowed: force from failed, quarantined"
        )
        with pytest.raises(InvalidTransition, match="to running by force; allowed: force from nowhere"):
            pending.force("running", actor="ana", reason="hurry")
        with pytest.raises(InvalidTransition, match="cannot go from pending to melted"):
            pending.force("melted", actor="ana", reason="heat")


def test_a_job_that_is_not_there(shop: Shop) -> None:
    with shop.untouched():
        with shop.connect() as connection:
            client = shop.app.using(connection)
            for move in (client.cancel, client.retry, client.discard):
                with pytest.raises(NotFound):
                    move(4711, actor="ana")
            with pytest.raises(NotFound):
                client.force(4711, "succeeded", actor="ana", reason="why not")
        with pytest.raises(NotFound):
            shop.app.jobs.get(4711)


@pytest.mark.parametrize(
    ("actor", "reason", "field"),
    [
        ("", None, "actor"),
        (7, None, "actor"),
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
        for move in (job.cancel, job.retry, job.discard):
            with pytest.raises(InvalidInput) as refusal:
                move(actor=actor, reason=reason)
            assert refusal.value.field == field
        with pytest.raises(InvalidInput):
            shop.app.queues.pause("mail", actor=actor, reason=reason)


def test_an_override_without_a_reason_is_refused(shop: Shop) -> None:
    """E4"""
    job = shop.quarantined()
    with shop.untouched():
        with pytest.raises(InvalidInput, match="reason: found ''; allowed: a reason: every override needs one"):
            job.force("succeeded", actor="ana", reason="")
        with pytest.raises(InvalidInput, match="every repair needs one"):
            shop.app.record.repair(actor="ana", reason="")
