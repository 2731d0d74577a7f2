"""SIGKILL at every statement of what workers and clients do to jobs (prove/kills/jobs.py).

`make faults`: before and after each, with every invariant checked after every kill. For every change, the figures P1
and P2 of `make prove` do the same at statements that a seed draws, also to runs, and in pairs. `make test` only shows
that an effect outside the commit boundary would be found.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from detent import Context, Retry
from detent.testing.harness import Harness
from detent.testing.stores import is_sqlite, plain_connection
from prove.kills.deed import LEASE, TABLES, Deed, settle
from prove.kills.jobs import AT_MOST, JOBS, KEYED, SCHEDULES, declare, one_job, send
from prove.trap import killed_at

DEEDS = {**JOBS, **SCHEDULES, **AT_MOST, **KEYED}
SLICE = {"sqlite": 8, "postgres": 4}
"""In `make test`, other modules kill a process before every so many statements."""


@pytest.fixture
def harness(store_url: str) -> Iterator[Harness]:
    with closing(plain_connection(store_url)) as connection:
        for table in TABLES:
            connection.execute(table)
        connection.commit()
    one = Harness(store_url, lease=LEASE)
    declare(one)
    yield one
    one.close()


def apart(harness: Harness) -> int:
    return SLICE["sqlite" if is_sqlite(harness.url) else "postgres"]


def die_everywhere(whole: bool, die: Callable[[int, bool], bool], apart: int) -> None:
    """Let it die at one statement after the other, until it is done before it comes to die. Without `whole`, these
    statements are `apart` from each other."""
    begin = 1 if whole else 1 + secrets.randbelow(apart)
    for after in (False, True) if whole else (False,):
        deaths = 0
        for k in itertools.count(begin, 1 if whole else apart):
            if not die(k, after):
                break
            deaths += 1
        assert deaths or begin > 1


def settled(harness: Harness, deed: Deed, k: int, after: bool, whole: bool) -> bool:
    """Do it, dying at that statement; let others go on; look. Whether it died."""
    subject = deed.prepare(harness)
    died = killed_at(k, lambda: deed.act(harness, subject), after=after)
    if whole:
        assert harness.store.verify() == []
    settle(harness, deed, subject)
    assert list(deed.look(harness, subject)) == [], f"{'after' if after else 'before'} statement {k}"
    return died


@pytest.mark.timeout(600)
@pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS)
def test_killed_at_every_statement(harness: Harness, deed: Deed, whole: bool) -> None:
    """G1, G2, J5, J11: wherever the process died, others bring the job to its end; nothing is lost, nothing doubled."""
    if not whole:
        pytest.skip("part of make faults, and of the figures P1 and P2")
    die_everywhere(whole, lambda k, after: settled(harness, deed, k, after, whole), apart(harness))
    assert harness.store.verify() == []


@pytest.mark.timeout(600)
def test_an_effect_outside_the_boundary_is_found_to_be_doubled(harness: Harness) -> None:
    """What the test above would say of a job that writes past its commit boundary."""

    def leave_row_outside(ctx: Context) -> None:
        with closing(plain_connection(harness.url)) as connection:
            connection.execute(f"INSERT INTO ledger (root, job_id) VALUES ({ctx.job_id}, {ctx.job_id})")
            connection.commit()

    harness.app.task(name="leave_row_outside", retry=Retry(100, base=1))(leave_row_outside)
    deed = one_job(lambda harness: send(harness, "leave_row_outside"))
    # A file is written to in many statements after that one, and every fourth is enough; on a server it is the last.
    every = not is_sqlite(harness.url)
    with pytest.raises(AssertionError, match="before statement"):
        die_everywhere(every, lambda k, after: settled(harness, deed, k, after, False), 4)
