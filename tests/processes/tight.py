"""The same application in little room."""

from __future__ import annotations

import resource
from pathlib import Path

from tests.processes.tasks import make_app

pages = int(Path("/proc/self/statm").read_text().split()[0])
ROOM = pages * resource.getpagesize() + 2**30
resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))

app = make_app()
