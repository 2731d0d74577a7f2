"""A small application as a user would write it, on a throw-away database of either kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from detent import Context, Detent, Job, Retry
from detent.testing.harness import Harness
from detent.testing.stores import Dumps, plain_connection, row_violations
from tests.deadlines import until

__all__ = ["Shop", "open_shop", "until"]


class Shop(Harness):
    """The tasks of a shop, declared on an application of its own."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        app = self.app

        @app.task(name="welcome", queue="mail")
        def welcome(ctx: Context, user_id: int, lang: str = "en") -> str:
            ctx.event("writing", user_id=user_id)
            return f"sent to {user_id}"

        @app.task(name="fails", retry=Retry(1))
        def fails(ctx: Context, why: str) -> None:
            raise RuntimeError(why)

        @app.task(name="rests", retry=Retry(0), dead_letter=False)
        def rests(ctx: Context) -> None:
            raise RuntimeError("no dead letters")

        @app.task(name="later")
        async def later(ctx: Context, numbers: list[int]) -> int:
            return sum(numbers)

        @app.task(name="sync", unique="pending")
        def sync(ctx: Context, source: str) -> None: ...

        self.welcome, self.fails, self.rests, self.later, self.sync = welcome, fails, rests, later, sync

    def quarantined(self) -> Job[None]:
        """A job whose attempts are used up."""
        job = self.fails.enqueue(why="boom")
        while not job.refresh().rests:
            self.work()
            self.clock.advance(100)
        assert job.state == "quarantined"
        return job

    def connect(self) -> Any:
        """A connection of the user's own, closed by `with`."""
        return closing(plain_connection(self.url))

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Nothing inside may change a single row."""
        with closing(Dumps(self.url)) as take:
            before = take()
            yield
            assert take() == before

    def second(self, **settings: Any) -> Detent:
        """Another application on the same database, as another process would have it."""
        return Detent(self.url, **settings)


@contextmanager
def open_shop(url: str) -> Iterator[Shop]:
    """A shop that ends healthy: no row breaks an invariant when it closes (R2)."""
    shop = Shop(url)
    try:
        yield shop
        found = row_violations(shop.store, url)
        assert found == [], found
    finally:
        shop.close()
