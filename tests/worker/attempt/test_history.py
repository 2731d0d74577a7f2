"""Effects that were called and whose end nobody heard: the probe is asked first, and a person where it cannot tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from detent import Context, Detent, Fatal, Job, Probed, Retry, Snooze, errors
from detent.testing.harness import Harness
from detent.testing.stores import row_violations

ONCE = Retry(0)
AGAIN = Retry(1, base=1, jitter=0)
LOOKS = 4


class Bank:
    """The other side: what it was asked to do, and how often it was asked about it."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.asked: list[tuple[int, str]] = []
        self.answer: Callable[[], Any] = lambda: Probed.cannot_tell("closed")


class Place:
    """A shop whose task pays through the bank."""

    def __init__(self, harness: Harness, bank: Bank) -> None:
        self.harness = harness
        self.bank = bank
        self.app = harness.app

    def declare(self, retry: Retry = AGAIN, **options: Any) -> Any:
        def pay(ctx: Context, order_id: int) -> str:
            self.bank.paid.append(ctx.effect_key)
            return f"paid {order_id}"

        def has_paid(ctx: Context, order_id: int) -> Probed:
            self.bank.asked.append((order_id, ctx.effect_key))
            found: Probed = self.bank.answer()
            return found

        return self.app.task(name="pay", retry=retry, idempotent=False, **({"probe": has_paid} | options))(pay)

    def lost(self, task: Any, at: Any = "returned") -> Job[Any]:
        """A job whose worker died after the call, its lease run out."""
        job: Job[Any] = task.enqueue(order_id=7)
        self.harness.crash(job, at=at)
        self.harness.work()
        self.harness.clock.advance(31)
        return job

    def work(self, seconds: float = 0.0) -> None:
        self.harness.clock.advance(seconds)
        self.harness.work()

    def outcomes(self, job: Job[Any]) -> list[str | None]:
        return [execution.outcome for execution in job.executions()]

    def said(self, job: Job[Any]) -> list[str]:
        return [line.message for line in job.events()]


@pytest.fixture
def place(store_url: str) -> Iterator[Place]:
    with closing(Harness(store_url)) as harness:
        yield Place(harness, Bank())
        assert row_violations(harness.store, store_url) == []


def test_it_had_happened(place: Place) -> None:
    """C5: the next attempt asks the probe, under the same key, and the function is not called again."""
    place.bank.answer = lambda: Probed.done("paid 7, they say")
    job = place.lost(place.declare())
    place.work()
    assert job.refresh().state == "succeeded"
    assert job.result == "paid 7, they say"
    (key,) = place.bank.paid
    assert place.bank.asked == [(7, key)]
    assert place.outcomes(job) == ["unknown", "done"]
    assert place.said(job) == ["attempt 1 may have had its effect: asking the probe", "the probe says: done"]


@pytest.mark.parametrize("coroutine", [False, True])
def test_it_had_not(place: Place, coroutine: bool) -> None:
    """C5: then the function is called, in the same attempt."""

    async def has_paid(ctx: Context, order_id: int) -> Probed:
        return Probed.not_done()

    options: dict[str, Any] = {"probe": has_paid} if coroutine else {}
    place.bank.answer = Probed.not_done
    job = place.lost(place.declare(AGAIN, **options), at="started")
    assert place.bank.paid == []
    place.work()
    assert (job.refresh().state, job.result) == ("succeeded", "paid 7")
    assert len(place.bank.paid) == 1
    assert place.outcomes(job) == ["unknown", "done"]


def test_the_probe_looks_also_where_no_attempt_is_left(place: Place) -> None:
    """C5, J7: looking is no repetition; but the function is not called more often than its policy says."""
    place.bank.answer = Probed.done
    job = place.lost(place.declare(ONCE))
    place.work()
    assert job.refresh().state == "succeeded"
    place.bank.answer = Probed.not_done
    second = place.lost(place.app.find_task("pay"), at="started")
    place.work()
    assert (second.refresh().state, place.outcomes(second)) == ("quarantined", ["unknown", "error"])
    assert place.bank.paid == [f"{place.app.identities.current()}//job/{job.id}"]
    assert "no attempt is left" in (second.error or "")


def raises() -> Any:
    raise ConnectionError("no line")


def gives_nonsense() -> Any:
    return True


@pytest.mark.parametrize("answer", [lambda: Probed.cannot_tell("closed"), raises, gives_nonsense])
def test_a_probe_without_an_answer_is_asked_again_and_then_a_person_is(place: Place, answer: Callable[[], Any]) -> None:
    """C5: by its own count; the job rests as unknown, and the function is never called."""
    place.bank.answer = answer
    job = place.lost(place.declare(ONCE))
    for _ in range(LOOKS + 2):
        place.work(100)
    assert job.refresh().state == "quarantined"
    assert place.outcomes(job) == ["unknown"] * (1 + LOOKS)
    assert (len(place.bank.paid), len(place.bank.asked)) == (1, LOOKS)
    assert (job.row.attempt, job.row.spared) == (1 + LOOKS, LOOKS - 1)


def test_a_probe_may_put_off_its_answer_and_give_up(place: Place) -> None:
    def sleepy() -> Any:
        raise Snooze(600)

    def over() -> Any:
        raise Fatal("they are out of business")

    place.bank.answer = sleepy
    job = place.lost(place.declare(ONCE))
    for _ in range(LOOKS + 2):
        place.work(600)
    assert job.refresh().state == "pending"
    place.bank.answer = over
    place.work(600)
    assert (job.refresh().state, place.outcomes(job)[-1]) == ("quarantined", "unknown")


def test_a_cancel_waits_for_the_probe(place: Place) -> None:
    """C5, J8: what has not happened is cancelled then, and not called."""
    place.bank.answer = Probed.not_done
    job = place.declare().enqueue(order_id=7)
    place.harness.crash(job, at="started")
    place.harness.work()
    job.cancel(actor="ana", reason="wrong order")
    place.work(31)
    assert (job.refresh().state, place.bank.paid) == ("cancelled", [])
    assert place.outcomes(job) == ["unknown", "cancelled"]


def test_a_person_says_that_it_has_happened(place: Place) -> None:
    """C5: on record with who and why, with the result that was found."""
    job = place.lost(place.declare(ONCE, probe=None))
    place.work()
    assert job.refresh().state == "quarantined"
    job.settle(done=True, actor="ana", reason="it is on the statement", result="paid 7")
    assert (job.refresh().state, job.result) == ("succeeded", "paid 7")
    last = job.history()[-1]
    assert (last.trigger, last.actor, last.reason) == ("settle", "ana", "it is on the statement")
    assert len(place.bank.paid) == 1


@pytest.mark.parametrize("with_probe", [False, True])
def test_a_person_says_that_it_has_not(place: Place, with_probe: bool) -> None:
    """C5: the function is called then, and a probe that cannot tell is not asked about what is settled."""
    job = place.lost(place.declare(ONCE, **({} if with_probe else {"probe": None})), at="started")
    for _ in range(LOOKS + 2):
        place.work(100)
    assert job.refresh().state == "quarantined"
    asked = len(place.bank.asked)
    job.settle(done=False, actor="ana", reason="nothing on the statement")
    place.work()
    assert (job.refresh().state, job.result) == ("succeeded", "paid 7")
    assert (len(place.bank.paid), len(place.bank.asked)) == (1, asked)


def test_a_retry_asks_the_probe_again(place: Place) -> None:
    """C5: whoever retries many at once has not looked at each; a probe is asked first all the same."""
    job = place.lost(place.declare(ONCE))
    for _ in range(LOOKS + 2):
        place.work(100)
    place.bank.answer = Probed.done
    job.retry(actor="ana")
    place.work()
    assert (job.refresh().state, len(place.bank.paid)) == ("succeeded", 1)


def test_without_a_probe_a_retry_is_a_persons_decision(place: Place) -> None:
    job = place.lost(place.declare(ONCE, probe=None))
    place.work()
    assert place.outcomes(job) == ["unknown"]
    job.retry(actor="ana")
    place.work()
    assert (job.refresh().state, len(place.bank.paid)) == ("succeeded", 2)


def test_a_probe_that_is_gone_leaves_it_to_a_person(place: Place, store_url: str) -> None:
    """C5: code that lost its probe does not repeat blindly what it finds."""
    job = place.lost(place.declare())
    place.harness.store.lease_reap(10)
    assert place.app.jobs.get(job.id).state == "pending"
    place.harness.use(Detent(store_url))
    place.app = place.harness.app
    place.declare(probe=None)
    place.work()
    assert (place.app.jobs.get(job.id).state, len(place.bank.paid)) == ("quarantined", 1)
    assert "has no probe" in (place.app.jobs.get(job.id).error or "")


def test_what_settle_refuses(place: Place) -> None:
    job = place.lost(place.declare(ONCE, probe=None))
    place.work()
    for wrong in ({"reason": ""}, {"done": 1}, {"done": False, "result": 7}, {"actor": ""}, {"result": {1}}):
        with pytest.raises(errors.InvalidInput):
            job.settle(**({"done": True, "actor": "ana", "reason": "seen"} | wrong))  # type: ignore[arg-type]
    assert job.refresh().state == "quarantined"
    waiting = place.app.find_task("pay").enqueue(order_id=8)
    with pytest.raises(errors.InvalidTransition, match="cannot go from pending to succeeded"):
        waiting.settle(done=True, actor="ana", reason="seen")


def test_a_commit_of_our_own_needs_no_probe(place: Place) -> None:
    """C2, C5: what is committed here is known."""

    def has_paid(ctx: Context, order_id: int) -> Probed:
        return Probed.not_done()

    @place.app.task(name="both", retry=ONCE, idempotent=False, probe=has_paid)
    def both(ctx: Context, order_id: int) -> None:
        with ctx.commit():
            pass

    job = both.enqueue(order_id=7)
    place.work()
    assert job.refresh().state == "quarantined"
    assert "in task 'both', which has a probe" in (job.error or "")


def test_probes_that_are_refused(place: Place) -> None:
    """C5: at declaration, with what would be allowed."""

    def other(ctx: Context, number: int) -> Probed:
        return Probed.done()

    def more(ctx: Context, order_id: int, amount: int) -> Probed:
        return Probed.done()

    def nothing() -> Probed:
        return Probed.done()

    def same(ctx: Context, order_id: int) -> Probed:
        return Probed.done()

    def again(ctx: Context, order_id: int) -> None: ...

    for probe in (other, more, nothing, 7):
        with pytest.raises(errors.InvalidSetting, match=r"probe: found .*; allowed: .*"):
            place.declare(probe=probe)
    with pytest.raises(errors.InvalidSetting, match=r"an idempotent task.*idempotent=False"):
        place.app.task(name="again", idempotent=True, probe=same)(again)
    assert dict(place.app.tasks) == {}
