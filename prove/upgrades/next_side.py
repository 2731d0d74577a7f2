"""A process of the next release. It answers requests, one line of JSON each, until its standard input ends.

Run with the source of the next release before that of this one in PYTHONPATH. A migrator that is killed is a copy of
this process (`prove/trap.py`), so it need not be started again for each kill.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from detent.errors import DetentError, SchemaTooOld
from detent.model.records import Finish
from detent.store.open import open_store
from prove.trap import killed_at, statements_of

__all__ = ["main"]

_LEASE = 600.0
_LIMIT = 3
_SECONDS_MAX = 120.0


def count(url: str) -> int:
    """Return how many statements the upgrade sends. The database is upgraded."""
    return statements_of(lambda: _migrate(url))


def kill(url: str, k: int, after: bool) -> bool:
    """Begin the upgrade and die at its k-th statement. Return whether it has that many; otherwise it is done."""
    return killed_at(k, lambda: _migrate(url), after=after)


def migrate(url: str) -> list[str]:
    """Upgrade the database, or end an upgrade that was begun."""
    return _migrate(url)


def work(url: str, jobs: int) -> list[int]:
    """Wait until the database has been migrated to this release, finish this number of jobs, and return their ids."""
    done: list[int] = []
    deadline = time.monotonic() + _SECONDS_MAX
    with closing(open_store(url)) as store:
        while True:
            try:
                store.ready()
                break
            except SchemaTooOld:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        while len(done) < jobs and time.monotonic() < deadline:
            lease_id = store.ids_reserve(1)
            held = store.job_claim(
                lease_id=lease_id, worker="new", queues=None, tasks=["plain"], limit=_LIMIT, lease=_LEASE
            )
            answers = store.job_finish([Finish(one.job_id, one.attempt, None) for one in held], "new") if held else []
            if wrong := [answer for answer in answers if isinstance(answer, DetentError)]:
                raise wrong[0]
            done += [one.job_id for one in held]
            if not held:
                time.sleep(0.01)
    return done


def verify(url: str) -> list[str]:
    """Return what this release finds wrong; a further upgrade has nothing to do."""
    with closing(open_store(url)) as store:
        more = store.migrate()
        wrong = [repr(one) for one in store.verify()]
    return [f"a further migrate did {more}", *wrong] if more else wrong


def _migrate(url: str) -> list[str]:
    with closing(open_store(url)) as store:
        return store.migrate()


_VERBS: dict[str, Callable[..., Any]] = {
    "count": count,
    "kill": kill,
    "migrate": migrate,
    "work": work,
    "verify": verify,
}


def main() -> None:
    """Answer requests."""
    for line in sys.stdin:
        name, arguments = json.loads(line)
        answer: dict[str, Any]
        try:
            answer = {"answer": _VERBS[name](**arguments)}
        except BaseException as error:
            answer = {"error": f"{name}: {error!r}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
