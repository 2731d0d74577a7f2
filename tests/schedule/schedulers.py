"""Several schedulers that look at one clock, each with a store of its own, all at the same moment."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from threading import Barrier

import msgspec

from detent.model.ids import ReservedIds
from detent.model.service_records import NewSchedule
from detent.schedule.cron import next_tick
from detent.schedule.due_ticks import fire_due
from detent.store.contract import Store
from detent.store.jobs.filters import JobSearch
from detent.testing.stores import StoreClock, another_store

__all__ = ["Schedulers", "schedulers", "ticks", "weekly"]

PATIENCE = 90.0


class Schedulers:
    """They fire together when told to."""

    def __init__(self, stores: list[Store], pool: ThreadPoolExecutor) -> None:
        self._stores = stores
        self._pool = pool

    def fire(self) -> list[int]:
        """All of them at once; the jobs they made."""
        together = Barrier(len(self._stores))

        def one(store: Store) -> list[int]:
            together.wait(PATIENCE)
            return fire_due(store, ReservedIds(store.ids_reserve, 1))

        return sorted(job_id for made in self._pool.map(one, self._stores) for job_id in made)


@contextmanager
def schedulers(url: str, clock: StoreClock, count: int = 3) -> Iterator[Schedulers]:
    """That many, as if in processes of their own."""
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(count))
        yield Schedulers([stack.enter_context(closing(another_store(url, clock))) for _ in range(count)], pool)


def weekly(store: Store, name: str, cron: str, zone: str, catch_up: str = "all") -> None:
    """Put a schedule that begins now."""
    first = next_tick(cron, zone, store.now())
    fields = {"name": name, "cron": cron, "zone": zone, "catch_up": catch_up, "next_at": first}
    call = {"task": "mail.send", "payload": "{}", "queue": "mail", "attempts_max": 4}
    store.schedule_put(msgspec.convert(fields | call, NewSchedule))


def ticks(store: Store, name: str) -> list[str]:
    """The ticks of a schedule that made jobs, one for each job, in the order of time."""
    told = [msgspec.json.decode(row.metadata or "{}") for row in store.job_list(JobSearch(), limit=10_000).rows]
    return sorted(one["tick"].removesuffix("+00:00") for one in told if one.get("schedule") == name)
