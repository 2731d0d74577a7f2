"""Who acts, and why: a call's own words, else those of the block, else the setting `actor`."""

from __future__ import annotations

import asyncio
import threading

import pytest

from detent.errors import InvalidInput
from tests.app.shop import Shop


def by(shop: Shop, queue: str) -> tuple[str, str | None]:
    line = shop.store.transitions("queue", queue)[-1]
    return line.actor, line.reason


def test_the_setting_then_the_block_then_the_call(shop: Shop) -> None:
    app = shop.app
    app.queues.pause("a")
    assert by(shop, "a") == (app.actor, None) == ("client", None)
    with app.acting_as("ana", reason="the provider is down"):
        app.queues.pause("b")
        app.queues.pause("c", actor="ben")
        with app.acting_as("eve"):
            app.queues.pause("d")
        app.queues.pause("e", reason="tired")
    app.queues.resume("a")
    assert [by(shop, queue) for queue in "bcde"] == [
        ("ana", "the provider is down"),
        ("ben", "the provider is down"),
        ("eve", None),
        ("ana", "tired"),
    ]
    assert by(shop, "a") == ("client", None)


def test_the_actor_of_the_settings(shop: Shop) -> None:
    with shop.second(actor="shop") as app:
        app.queues.pause("mail")
    assert by(shop, "mail") == ("shop", None)


def test_a_block_covers_its_own_calls_only(shop: Shop) -> None:
    """Another thread acts for itself; an awaited verb acts as its task does."""
    app = shop.app
    with app.acting_as("ana"):
        other = threading.Thread(target=app.queues.pause, args=("theirs",))
        other.start()
        other.join()

    async def story() -> None:
        async def as_(name: str) -> None:
            with app.aio.acting_as(name, reason=f"{name} says so"):
                await asyncio.sleep(0)
                await app.aio.queues.pause(name)

        await asyncio.gather(as_("ana"), as_("ben"))

    asyncio.run(story())
    assert by(shop, "theirs") == ("client", None)
    assert (by(shop, "ana"), by(shop, "ben")) == (("ana", "ana says so"), ("ben", "ben says so"))


def test_a_reason_that_is_required_may_come_from_the_block(shop: Shop) -> None:
    dead = shop.quarantined()
    with pytest.raises(InvalidInput, match="reason"):
        dead.force("succeeded")
    with shop.app.acting_as("ana", reason="seen in the books"):
        dead.force("succeeded")
    assert dead.history()[-1].reason == "seen in the books"


@pytest.mark.parametrize(("actor", "reason"), [("", None), ("a\0", None), ("ana", "r" * 2001)])
def test_what_cannot_be_on_record_is_refused_at_once(shop: Shop, actor: str, reason: str | None) -> None:
    with pytest.raises(InvalidInput), shop.app.acting_as(actor, reason=reason):
        raise AssertionError("the block was entered")
