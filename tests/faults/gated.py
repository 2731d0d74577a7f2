"""The application again, on a store that stops at a gate: when a claim has been answered, or before an end is written.

Which of the two, and the gate, come from the environment of the worker that loads it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, cast

from detent.client.engine import Engine
from detent.store.contract import Store
from tests.faults.tasks import make_app, wait_at

MOMENT, GATE = "FAULT_MOMENT", "FAULT_GATE"


class GatedStore:
    """A store like any other, but for the gate."""

    def __init__(self, store: Store, moment: str, gate: str) -> None:
        self._store = store
        self._moment = moment
        self._gate = gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def job_claim(self, **asked: Any) -> Any:
        found = self._store.job_claim(**asked)
        if found and self._moment == "claimed":
            wait_at(self._gate)
        return found

    def job_finish(self, *asked: Any) -> Any:
        if self._moment == "finishing":
            wait_at(self._gate)
        return self._store.job_finish(*asked)

    def together(self, work: Any) -> Any:
        if self._moment == "finishing":
            wait_at(self._gate)
        return self._store.together(work)


app = make_app()
# Only in the child, which claims and ends: its supervisor's reaper writes together too, and is not to stop at the gate.
if MOMENT in os.environ and Path(sys.argv[0]).parts[-2:] == ("child", "__main__.py"):
    gated = cast(Store, GatedStore(app.store, os.environ[MOMENT], os.environ[GATE]))
    app.rewire(Engine(app.settings, None, gated))
