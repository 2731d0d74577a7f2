"""The same application; the first process of its own that loads it does not come far."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.processes.tasks import app

__all__ = ["app"]

if "detent.worker.child.attempt_process" in sys.orig_argv:
    once = Path(os.environ["DETENT_DATABASE_URL"].removeprefix("sqlite:///") + ".once")
    if not once.exists():
        once.touch()
        raise MemoryError("not this time")
