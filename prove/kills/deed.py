"""A deed: something that a process does, in the middle of which it dies, and what must have come of it at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

from detent.client.job import Job
from detent.testing.harness import Harness
from detent.testing.stores import plain_connection

__all__ = ["INSERT", "LEASE", "TABLES", "Deed", "Finding", "look_at_effects", "look_at_job", "rows", "settle", "work"]

LEASE = 30.0
TABLES = (
    "CREATE TABLE ledger (root bigint NOT NULL, job_id bigint NOT NULL)",
    "CREATE TABLE changed (root bigint NOT NULL, ref text NOT NULL, price bigint NOT NULL)",
    "CREATE TABLE canonical (id text PRIMARY KEY, times bigint NOT NULL)",
)
"""Tables of the user. The first two have no key, so a second effect shows as a second row. `root` is what the effect
belongs to: for a job that another job intends, that is the other one."""
INSERT = "INSERT INTO ledger (root, job_id) VALUES (:root, :job_id)"

Finding = tuple[Literal["lost", "doubled", "stuck", "wrong"], str]


def work(harness: Harness, _subject: Any) -> None:
    """Let a worker do everything that is due."""
    harness.work()


@dataclass(frozen=True)
class Deed:
    """`prepare` makes what it is done to; `act` is done by a process that dies; `recover` is what others do after it,
    several times, with `pause` seconds before each; `look` tells what is wrong then."""

    prepare: Callable[[Harness], Any]
    act: Callable[[Harness, Any], object]
    look: Callable[[Harness, Any], Iterator[Finding]]
    recover: Callable[[Harness, Any], object] = work
    pause: float = LEASE + 1


def settle(harness: Harness, deed: Deed, subject: Any) -> None:
    """Others go on: leases run out, backoffs pass, everything is done that can be done."""
    for _ in range(3):
        harness.clock.advance(deed.pause)
        deed.recover(harness, subject)


def look_at_job(harness: Harness, job: Job[Any], *, effects: int, state: str = "succeeded") -> Iterator[Finding]:
    """The job has ended in that state with so many effects."""
    job.refresh()
    if job.state != state:
        kind: Literal["stuck", "wrong"] = "stuck" if job.state in ("pending", "running") else "wrong"
        yield kind, f"job {job.id} is {job.state} instead of {state}: {job.error}"
    yield from look_at_effects(harness, job.id, effects)


def look_at_effects(harness: Harness, root: int, effects: int) -> Iterator[Finding]:
    """So many jobs have left a row that belongs to `root`, and each has left one."""
    found = Counter(job_id for (job_id,) in rows(harness, f"SELECT job_id FROM ledger WHERE root = {root}"))
    for job_id, count in found.items():
        if count > 1:
            yield "doubled", f"job {job_id} has left {count} rows"
    if len(found) < effects:
        yield "lost", f"of {effects} rows of {root} there are {len(found)}"
    if len(found) > effects:
        yield "doubled", f"{len(found)} jobs instead of {effects} have left rows of {root}"


def rows(harness: Harness, sql: str) -> list[tuple[Any, ...]]:
    """Read rows by a plain connection."""
    with closing(plain_connection(harness.url)) as connection:
        found: list[tuple[Any, ...]] = connection.execute(sql).fetchall()
        return found
