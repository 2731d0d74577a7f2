"""A savepoint for each row, so that a damaged row undoes nothing but itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from detent.store.apart import cause_of, is_of_one_row
from detent.store.sqlite.driver.failures import translated
from detent.store.sqlite.verbs.base import VerbBase

__all__ = ["SavepointVerbs"]


class SavepointVerbs(VerbBase):
    """Verbs that handle rows one by one."""

    def _alone(self, work: Callable[[], None]) -> str | None:
        """Run `work` under a savepoint. If a row makes it fail, undo it and return the cause."""
        self._db.change("SAVEPOINT one_row")
        try:
            work()
        except Exception as error:
            known = translated(error, self._database) if isinstance(error, sqlite3.Error) else error
            if not is_of_one_row(known):
                raise
            self._db.change("ROLLBACK TO one_row")
            self._db.change("RELEASE one_row")
            self._lanes.clear()
            return cause_of(known)
        self._db.change("RELEASE one_row")
        return None
