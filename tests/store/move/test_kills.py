"""A move whose process is killed, at statements and round trips all the way from the first to the last."""

from __future__ import annotations

import itertools
import secrets

import pytest

from detent.model.clock import SystemClock
from detent.store.move.mover import Mover
from prove.trap import killed_at
from tests.store.move.conftest import Databases
from tests.store.move.moving import KINDS, other
from tests.store.move.whole_life import everything

APART = 307
"""In `make test`, a process is killed before every so many statements; in `make faults`, at a tenth of that."""


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_move_continues(databases: Databases, kind: str, whole: bool) -> None:
    """J15: wherever it was killed, never both databases are open, and the same call continues to the same end."""
    apart = APART // 10 if whole else APART
    before = everything(databases.with_life(kind))
    deaths = 0
    for k in itertools.count(1 + secrets.randbelow(apart), apart):
        url, empty = databases.with_life(kind), databases.empty(other(kind))

        def move(url: str = url, empty: str = empty) -> None:
            source, target = databases.open(url), databases.open(empty)
            Mover(source, target, SystemClock(), actor="ana", rows_max=20).run()

        died = killed_at(k, move, after=bool(k % 2), round_trips=True)
        source, target = databases.open(url), databases.open(empty)
        here = {row.state for row in source.database_moves()}
        target.ready()
        there = {row.state for row in target.database_moves()}
        assert here in (set(), {"moving"}, {"moved"})
        assert there in (set(), {"loading"}, {"arrived"})
        assert there != {"arrived"} or here == {"moved"}, f"both were open after statement {k}"
        assert here == {"moved"} or target.movable().table_with_rows() is None or there == {"loading"}
        move()
        assert everything(empty) == before, f"killed at statement {k}"
        source.close()
        target.close()
        if not died:
            break
        deaths += 1
    assert deaths >= 3
