"""F6: every order of moves of two jobs, three workers and three attempts, compared with the reference model.

The store is the real one, on SQLite in memory. After each move its answer, its rows and the user's effects must be
those of the model, and no promise may be broken; in each new state all invariants of `detent verify` must hold.
"""

from __future__ import annotations

from prove.exhaustive.moves import Bounds
from prove.exhaustive.search import Search
from prove.figure import Budget, Tally

__all__ = ["run"]

_SMALL = Bounds(attempts=(2, 1), releases=0, has_people=False)
_PEOPLE = Bounds(attempts=(1, 1), releases=0, has_people=True)
_THREE = Bounds(attempts=(3, 3), releases=0, has_people=False)
_TWO_AND_PEOPLE = Bounds(attempts=(2, 2), releases=1, has_people=True)
_ALL = Bounds(attempts=(3, 3), releases=1, has_people=True)
_WALKS = {
    "commit": (_SMALL,),
    "nightly": (_PEOPLE, _THREE, _TWO_AND_PEOPLE),
    "release": (_THREE, _ALL),
}


def run(budget: Budget) -> Tally:
    """Walk one after the other. The seed decides in which order, which matters if the time is up first."""
    tally = Tally()
    for bounds in _WALKS[budget.tier]:
        if budget.is_spent or not tally.is_clean:
            break
        search = Search(bounds, budget)
        tally.add(search.run())
        extent = "all of them" if search.is_whole else "stopped when the time was up"
        tally.notes.append(f"{bounds}: {len(search.states):,} states, {extent}")
    return tally
